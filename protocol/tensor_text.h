/* SPDX-License-Identifier: MIT */
/*
 * Tensor contents <-> JSON arrays, straight between text and typed memory.
 *
 * Reading accepts one flat array in row-major order, or arrays nested exactly as the shape says;
 * nothing in between. Integers must be integer tokens in the range of their type, BOOL takes true,
 * false, 1 and 0, floats take any number that their type can hold, and NaN, Infinity and -Infinity
 * with or without quotes. Nothing is written outside the given memory whatever the text is. Errors
 * begin with the index path, "[3][1]: expected a number, got a string", for the caller to put a
 * name before.
 *
 * If the shape is not known, tensor_text_measure() finds it from the nesting of the brackets.
 *
 * Any thread; workers for big tensors.
 */
#ifndef PTED_PROTOCOL_TENSOR_TEXT_H
#define PTED_PROTOCOL_TENSOR_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"
#include "protocol/number.h"

/* How the sender of a text writes NaN and the infinities. */
struct tensor_nan {
    bool takes_null; /* null is NaN; else it is refused */
    bool has_tokens; /* set where a word stood without quotes; never cleared */
};

/* Returns the fewest bytes of JSON that can hold |count| elements; saturates. */
size_t tensor_text_bytes_min(int64_t count);

/* Counts the elements of an array even if it is malformed; for error texts. */
size_t tensor_text_count(struct span text);

/* Parses |text|, the whole array with its brackets. |dst| has exactly |bytes| = shape x dtype and
 * may have any alignment. Part of it is written even when the text turns out to be bad. */
MUST_CHECK enum status tensor_text_parse(struct span text, enum dtype dtype,
                                         const struct shape *shape, struct tensor_nan *nan,
                                         void *dst, size_t bytes, struct error *err);

/* Parses the element |text| without brackets; |dst| has room for one. */
MUST_CHECK enum status tensor_text_parse_element(struct span text, enum dtype dtype,
                                                 struct tensor_nan *nan, void *dst,
                                                 struct error *err);

/* Is |text| one of the words for floats, in quotes? */
bool tensor_text_is_word(struct span text);

/* Finds the shape of |text| from its nesting. ST_INVALID: two arrays of the same depth differ in
 * length ("[1]: ragged at depth 1: ..."). Counts the elements without reading them. */
MUST_CHECK enum status tensor_text_measure(struct span text, struct shape *out_shape,
                                           struct error *err);

/* Does as tensor_text_measure() for the array that begins at |at|, and returns the place behind it.
 * NULL: it is irregular, it has no end before |end|, or it has other elements than numbers. */
const uint8_t *tensor_text_pass(const uint8_t *at, const uint8_t *end, struct shape *out_shape);

/* Does as tensor_text_parse() for an array of strings: |out_strings| gets shape_numel() spans,
 * decoded, which borrow from |text| where nothing is escaped and live in |arena| otherwise. */
MUST_CHECK enum status tensor_text_parse_strings(struct span text, const struct shape *shape,
                                                 struct arena *arena, struct span **out_strings,
                                                 struct error *err);

/* Appends a flat array of |count| elements. */
void tensor_text_print(struct buf *out, enum dtype dtype, const void *src, size_t count,
                       enum number_nan nan);
/* Appends arrays nested as |shape| says; of rank 0 the bare element. */
void tensor_text_print_nested(struct buf *out, enum dtype dtype, const struct shape *shape,
                              const void *src, enum number_nan nan);
void tensor_text_print_strings(struct buf *out, const struct span *strings, size_t count);

#endif
