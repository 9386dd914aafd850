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

/* A text without a NUL. */
MUST_CHECK enum status ask_read_model(struct json *in, struct arena *arena, const char **out,
                                      struct error *err);

/* An array of at most |max| ids of tokens. */
MUST_CHECK enum status ask_read_ids(struct json *in, struct arena *arena, uint32_t max,
                                    const uint32_t **out, uint32_t *out_count, struct error *err);

/* Does an array of numbers come next? Reads nothing. */
bool ask_is_list_of_ids(const struct json *in);

#endif
