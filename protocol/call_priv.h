/* SPDX-License-Identifier: MIT */
/* Shared by the walk over a call's structure and the reading of its leaves. */
#ifndef PTED_PROTOCOL_CALL_PRIV_H
#define PTED_PROTOCOL_CALL_PRIV_H

#include "protocol/call.h"
#include "protocol/json_priv.h"
#include "protocol/oip_priv.h"

struct call_parser {
    struct json in;
    struct oip_reader reader; /* of |in| */
    const struct call_method *method;
    const struct call_limits *limits;
    struct arena *arena;
    struct oip_parameters parameters;
    struct call_leaf *leaves;
    struct oip_outputs outputs;
    struct span binary; /* behind the JSON, not taken by a leaf yet */
    struct error *err;
};

/* |p->leaves| is NULL without memory. */
void call_parser_init(struct call_parser *p, const struct oip_body *body,
                      const struct call_method *method, const struct call_limits *limits,
                      struct arena *arena, struct error *err);

/* Finds the leaf of raw input |index|. */
uint32_t call_find_leaf(const struct call_method *method, uint32_t index);

/* Refuses a call that misses an input which has no default. */
MUST_CHECK enum status call_check_missing(const struct call_parser *p);

/* Checks that an argument is given at its place or by its name, but not both ways. */
MUST_CHECK enum status call_check_once(struct call_parser *p, uint32_t leaf);

/* Returns ST_INVALID with the path of |node| among the inputs before the text. */
enum status call_fail(const struct call_parser *p, uint32_t node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the text before a value in its array or object: a comma, a key, |gap| at each position
 * that the structure leaves out. */
void call_print_key(const struct sip_tree *tree, const struct sip_node *node, const char *gap,
                    struct buf *out);

/* If a file, a text or a list of them comes next, and the leaf |node| takes it: reads it. A typed
 * object is left to read_typed(), which finds out by its members what it is. */
MUST_CHECK enum status call_read_media(struct call_parser *p, uint32_t node, bool *out_is_read);

/* A typed object without a type and a shape, as an item of the leaf's media. */
struct call_typed_text {
    struct json_string base64; /* without text: absent */
    bool has_size;
    uint64_t size;
};

MUST_CHECK enum status call_take_file(struct call_parser *p, uint32_t node,
                                      const struct call_typed_text *text, struct call_leaf *leaf);

/* Keeps the string without escapes; in the arena, if it had some. */
MUST_CHECK enum status call_keep_string(struct call_parser *p, const struct json_string *string,
                                        struct span *out);

/* Returns the first byte of the first element of the array that comes next; 0: the text ends. */
uint8_t call_first_of_array(const struct json *in);

/* Does {"$from": ...} come next, in place of the sequence or dict |node|? */
bool call_is_promise(struct call_parser *p, uint32_t node);

/* Reads it: each leaf of |node| is a part of the promised structure. */
MUST_CHECK enum status call_read_promise(struct call_parser *p, uint32_t node);

/* Reads a file or a text, which comes next, as a further item of the leaf's media. */
MUST_CHECK enum status call_read_item(struct call_parser *p, uint32_t node);

/* Is |leaf->shape| one that the input takes? Then the leaf has that many bytes. */
MUST_CHECK enum status call_verify_shape(const struct call_parser *p, uint32_t node,
                                         struct call_leaf *leaf);

/* Row |row| of the leaf |node| comes next. When all |rows| of all inputs are there, each input that
 * has any has to be finished. */
MUST_CHECK enum status call_read_row(struct call_parser *p, uint32_t node, uint32_t row);
MUST_CHECK enum status call_finish_rows(struct call_parser *p, uint32_t node, uint32_t rows);
MUST_CHECK enum status call_decode_rows(const struct call_leaf *leaf, enum dtype dtype,
                                        struct tensor_nan *nan, void *dst, struct error *err);

/* Reads the value of the leaf |node|. */
MUST_CHECK enum status call_read_leaf(struct call_parser *p, uint32_t node);

#endif
