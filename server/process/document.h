/* SPDX-License-Identifier: MIT */
/*
 * JSON documents that people write and keep on disk. Requests are not read here but by
 * protocol/json.h, which builds nothing.
 *
 * A document is JSON (RFC 8259) and may have comments wherever it may have blanks. A comment begins
 * with two slashes and ends with its line, or is written as in C. Everything else outside the
 * grammar is refused, and so are invalid UTF-8, NUL (also as an escape), lone surrogates, members
 * that repeat in their object, nesting deeper than DOCUMENT_DEPTH_MAX, and a number of more than
 * DOCUMENT_NUMBER_MAX characters.
 *
 * cJSON builds the tree, but only of a text that document_scan.c has checked: cJSON itself takes
 * "01", "1.", "\uZZZZ" and control characters. cJSON_Minify() is not used. The one of cJSON 1.7.15
 * makes 12 of "1 2" and of "1/2", takes an escaped backslash before a quote for an escaped quote,
 * ends a comment where the text ends, and no message could say a line. Comments become blanks
 * instead.
 *
 * Errors say where: "p.steps[2].inputs.x: expected a string, got a number (line 7, column 21)".
 *
 * Values belong to the document. The tree is immutable. Any thread; cJSON keeps the
 * place of an error in a global variable, so one builds its tree after the other.
 */
#ifndef PTED_SERVER_PROCESS_DOCUMENT_H
#define PTED_SERVER_PROCESS_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "protocol/json.h"

#define DOCUMENT_DEPTH_MAX 64
#define DOCUMENT_TOKEN_ID_MAX (1u << 24)
#define DOCUMENT_NUMBER_MAX 63 /* cJSON 1.7.15 without later patches reads no further */

struct cJSON; /* a value */

struct document_limits {
    size_t bytes_max;    /* of the file; less than 2 GiB */
    uint32_t values_max; /* cJSON takes about 100 bytes for each, and the text of strings */
};

struct document {
    struct buf text;    /* the file with blanks for comments, and NUL behind it */
    struct cJSON *root; /* owned */
};

/* Reads the file at |path|. Fails as file_read() does, with ST_INVALID or ST_TOO_LARGE for its
 * content, and with ST_EXHAUSTED for lack of memory. The caller puts the path in front of the text.
 * After a failure there is nothing to free. */
MUST_CHECK enum status document_open(const char *path, const struct document_limits *limits,
                                     struct document *out, struct error *err);

/* Does the same for a text in memory, which is copied. */
MUST_CHECK enum status document_parse(struct span text, const struct document_limits *limits,
                                      struct document *out, struct error *err);

void document_close(struct document *document);

/* ---- values ---------------------------------------------------------------------------------- */

enum json_type document_type(const struct cJSON *value);

/* Returns the members of an object or the elements of an array in their order; NULL: there is no
 * (other) one. */
const struct cJSON *document_first(const struct cJSON *value);
const struct cJSON *document_next(const struct cJSON *value);

/* Returns the member |key| of an object. NULL: it has none, or |value| is something else or
 * NULL. */
const struct cJSON *document_find(const struct cJSON *value, const char *key);

/* Returns the key of a member. */
const char *document_key(const struct cJSON *member);
bool document_is(const struct cJSON *member, const char *key);

/* Returns the text of an object or array: JSON, with blanks for comments. It lives as long as the
 * document. */
struct span document_raw(const struct document *document, const struct cJSON *value);

/* Is the value of this type? */
MUST_CHECK enum status document_need(const struct document *document, const struct cJSON *value,
                                     enum json_type type, struct error *err);

/* |*out| is terminated and lives as long as the document. The second form refuses an empty text. */
MUST_CHECK enum status document_text(const struct document *document, const struct cJSON *value,
                                     const char **out, struct error *err);
MUST_CHECK enum status document_text_filled(const struct document *document,
                                            const struct cJSON *value, const char **out,
                                            struct error *err);

/* Reads a number without fraction and exponent, exactly as it is written; at least |min| in the
 * second form. */
MUST_CHECK enum status document_u64(const struct document *document, const struct cJSON *value,
                                    uint64_t max, uint64_t *out, struct error *err);
MUST_CHECK enum status document_u64_from(const struct document *document, const struct cJSON *value,
                                         uint64_t min, uint64_t max, uint64_t *out,
                                         struct error *err);

/* Reads the id of a token, or a list of up to |max| of them. False: it is something else. */
MUST_CHECK bool document_token_ids(const struct document *document, const struct cJSON *value,
                                   uint32_t *out_ids, uint32_t max, uint32_t *out_count);

MUST_CHECK enum status document_i64(const struct document *document, const struct cJSON *value,
                                    int64_t min, int64_t max, int64_t *out, struct error *err);

/* Reads a number that is finite. */
MUST_CHECK enum status document_f64(const struct document *document, const struct cJSON *value,
                                    double *out, struct error *err);

MUST_CHECK enum status document_bool(const struct document *document, const struct cJSON *value,
                                     bool *out, struct error *err);

/* Sets an error of the caller's about |value|, with its path, line and column. */
enum status document_fail(const struct document *document, const struct cJSON *value,
                          struct error *err, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts line and column of |value| behind the text in |err|, as in the errors above. */
void document_place(const struct document *document, const struct cJSON *value, struct error *err);

/* Sets the error about a member that is not among the |expected| ones. */
enum status document_refuse_member(const struct document *document, const struct cJSON *member,
                                   const char *expected, struct error *err);

/* Prints an error about the file at |path| as compilers do, with the place in front:
 * "PATH:7:21: p.steps[2].inputs.x: expected a string, got a number". Without a place in the error
 * it is "PATH: TEXT". */
void document_print_error(struct buf *out, const char *path, const struct error *error);

#endif
