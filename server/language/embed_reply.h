/* SPDX-License-Identifier: MIT */
/* Answers of encoders, in the form of the request (server/language/embed_ask.h). Any thread. */
#ifndef PTED_SERVER_LANGUAGE_EMBED_REPLY_H
#define PTED_SERVER_LANGUAGE_EMBED_REPLY_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "server/language/embed_ask.h"

struct texts_ids;

/* Vectors of |width| floats each, one for each text of |ask|, or for each token of each; of a
 * ranking one float each. */
struct embed_reply {
    const struct embed_ask *ask;
    const char *model;
    const float *vectors;
    uint32_t width;
    const struct texts_ids *items; /* the texts as tokens */
    const struct span *labels;     /* of classes: names of the first |label_count| */
    uint32_t label_count;
    uint64_t token_count;
    uint64_t id;     /* of Cohere's and vLLM's forms: a number of its own */
    int64_t created; /* of vLLM's: s since 1970 */
    uint64_t total_ns,
        load_ns; /* of Ollama's form: how long it has taken, and the load of the model */
};

/* Returns the bytes that the answer has at most, about. */
size_t embed_reply_bytes(const struct embed_reply *reply);

/* Prints an answer; the arena has the order of a ranking. ST_EXHAUSTED, ST_TOO_LARGE: it has no
 * room. */
MUST_CHECK enum status embed_reply_print(const struct embed_reply *reply, struct arena *arena,
                                         struct buf *out, struct error *err);

/* {"error": "...", "error_type": "validation"} */
void embed_reply_print_error(struct buf *out, const char *text, int http_status);

/* {"message": "..."}, as Cohere has it. */
void embed_reply_print_message(struct buf *out, const char *text, int http_status);

#endif
