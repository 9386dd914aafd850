/* SPDX-License-Identifier: MIT */
/* Reading tokenizer.json: its document, and the tokenizer that becomes of it. */
#ifndef PTED_SERVER_TEXT_TOKENIZER_JSON_READER_H
#define PTED_SERVER_TEXT_TOKENIZER_JSON_READER_H

#include "server/process/document.h"
#include "server/text/tokenizer/tokenizer_priv.h"

struct json_reader {
    struct tokenizer *tokenizer;
    const struct document *document;
    struct error *err;
};

/* Returns the member of an object; NULL: there is none, or it is null. */
const struct cJSON *json_reader_find(struct json_reader *in, const struct cJSON *object,
                                     const char *name);

/* Reads a string, copied into the tokenizer. */
MUST_CHECK enum status json_reader_span(struct json_reader *in, const struct cJSON *value,
                                        struct span *out);

/* Reads the member, or |otherwise| if there is none. NULL: there must be one. */
MUST_CHECK enum status json_reader_text(struct json_reader *in, const struct cJSON *object,
                                        const char *name, const char *otherwise, struct span *out);
MUST_CHECK enum status json_reader_bool(struct json_reader *in, const struct cJSON *object,
                                        const char *name, bool otherwise, bool *out);

/* {"Regex": "..."} or {"String": "..."}: exactly one of the outputs is set. */
MUST_CHECK enum status json_reader_pattern(struct json_reader *in, const struct cJSON *object,
                                           struct pattern **out_pattern, struct span *out_literal);

/* ["a", "b"]: the row of |names| that the member is, as a number. */
MUST_CHECK enum status json_reader_choice(struct json_reader *in, const struct cJSON *object,
                                          const char *name, const char *const *names,
                                          size_t otherwise, size_t *out);

/* Reads the chains of the file, each a member of the root. */
MUST_CHECK enum status json_reader_normalizer(struct json_reader *in);
MUST_CHECK enum status json_reader_pre_tokenizer(struct json_reader *in);
MUST_CHECK enum status json_reader_decoder(struct json_reader *in);
MUST_CHECK enum status json_reader_post_processor(struct json_reader *in);

/* One kind of step: the value of "type", and the function that reads the step. */
struct json_kind {
    const char *type;
    enum status (*read)(struct json_reader *in, const struct cJSON *value);
};

/* Reads |value| by the row of its type. A Sequence has its steps in the member |list|. */
MUST_CHECK enum status json_reader_chain(struct json_reader *in, const struct cJSON *value,
                                         const char *list, const struct json_kind *kinds);

#endif
