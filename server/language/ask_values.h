/* SPDX-License-Identifier: MIT */
/*
 * Values that requests to language models and to encoders of texts share. Each is the value that
 * comes next in |in|; what is read lies in |arena|. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_VALUES_H
#define PTED_SERVER_LANGUAGE_ASK_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/json.h"

MUST_CHECK enum status ask_read_text(struct json *in, struct arena *arena, struct span *out,
                                     struct error *err);

/* Reads a text without a NUL. */
MUST_CHECK enum status ask_read_model(struct json *in, struct arena *arena, const char **out,
                                      struct error *err);

/* Does the same, for requests in Ollama's form: takes off the tag ":latest", which that prints. */
MUST_CHECK enum status ask_read_tagged_model(struct json *in, struct arena *arena, const char **out,
                                             struct error *err);

/* Reads an array of at most |max| ids of tokens. */
MUST_CHECK enum status ask_read_ids(struct json *in, struct arena *arena, uint32_t max,
                                    const uint32_t **out, uint32_t *out_count, struct error *err);

/* Does an array of numbers come next? Reads nothing. */
bool ask_is_list_of_ids(const struct json *in);

/*
 * Reads the value of keep_alive, as Ollama's clients send it: seconds as a number, or a time of
 * numbers with units, "1h30m" (Go's time.ParseDuration()). |*out_ns| is UINT64_MAX, for ever, if it
 * is negative or too large.
 */
MUST_CHECK enum status ask_read_keep(struct json *in, uint64_t *out_ns, struct error *err);

/* Parses such a text. False: it is none. */
bool ask_parse_duration(struct span text, double *out_s);

/* Tells whether |key| may be a slip for the member |name|. Members of other servers are none. */
bool ask_is_slip(const struct json_string *key, const char *name);

/* Passes over the value of an unknown member. ST_INVALID: it was |meant| to be another one; NULL:
 * it is for other servers. */
MUST_CHECK enum status ask_pass(struct json *in, const char *meant, struct error *err);

#endif
