/* SPDX-License-Identifier: MIT */
/*
 * Numbers <-> text, as JSON spells them, without locale, allocation or loss.
 *
 * Parsing reads one token of the strict JSON grammar from [*at, end) and leaves *at behind it. It
 * never reads at or behind |end|, which need not be terminated. On failure *at is where the token
 * began and nothing is stored. Integers are exact; floats are rounded to nearest even, bit for bit
 * what strtof() and strtod() give.
 *
 * JSON has no numbers for NaN and the infinities. Clients of the Open Inference Protocol send the
 * bare words NaN, Infinity and -Infinity all the same: number_read_word() reads one, and
 * number_parse_f64() takes it for a number.
 *
 * Printing gives the shortest text that reads back to the same float; NUMBER_TEXT_MAX bytes are
 * enough for each, and the text is not terminated.
 *
 * Any thread.
 */
#ifndef PTED_PROTOCOL_NUMBER_H
#define PTED_PROTOCOL_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum number_result {
    NUMBER_OK,
    NUMBER_SYNTAX,      /* no number starts here, or it is malformed */
    NUMBER_NOT_INTEGER, /* a number with a fraction or an exponent where an integer is wanted */
    NUMBER_RANGE,       /* a well-formed number that the type cannot hold */
};

#define NUMBER_TEXT_MAX 32

enum number_result number_parse_i64(const uint8_t **at, const uint8_t *end, int64_t *out);
enum number_result number_parse_u64(const uint8_t **at, const uint8_t *end, uint64_t *out);
enum number_result number_parse_f64(const uint8_t **at, const uint8_t *end, double *out);

/* Does the same for long arrays: returns the place behind the token, or NULL for whatever is not
 * NUMBER_OK. */
const uint8_t *number_read_i64(const uint8_t *at, const uint8_t *end, int64_t *out);
const uint8_t *number_read_u64(const uint8_t *at, const uint8_t *end, uint64_t *out);
const uint8_t *number_read_f32(const uint8_t *at, const uint8_t *end, float *out);
const uint8_t *number_read_f64(const uint8_t *at, const uint8_t *end, double *out);

/* Reads NaN, Infinity or -Infinity without quotes: returns the place behind the word, or NULL. */
const uint8_t *number_read_word(const uint8_t *at, const uint8_t *end, double *out);

/* How NaN and the infinities are printed. */
enum number_nan {
    NUMBER_NAN_STRING, /* "NaN", "Infinity", "-Infinity" in quotes: JSON, and nothing is lost */
    NUMBER_NAN_TOKEN,  /* the same words without quotes: not JSON */
    NUMBER_NAN_NULL,   /* null: JSON, but a reader cannot tell the three apart */
};

/* Returns the number of bytes written to |text|. */
size_t number_print_i64(uint8_t *text, int64_t value);
size_t number_print_u64(uint8_t *text, uint64_t value);
size_t number_print_f32(uint8_t *text, float value, enum number_nan nan);
size_t number_print_f64(uint8_t *text, double value, enum number_nan nan);

/* Converts IEEE binary16 and bfloat16 as bits; narrowing rounds to nearest even and overflows to
 * infinity. */
float number_from_f16(uint16_t bits);
float number_from_bf16(uint16_t bits);
uint16_t number_to_f16(double value);
uint16_t number_to_bf16(double value);

#endif
