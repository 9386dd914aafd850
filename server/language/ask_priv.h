/* SPDX-License-Identifier: MIT */
/* Shared by ask.c, ask_cohere.c, ask_llama.c, ask_ollama.c and ask_shape.c: readers of members of
 * requests to language models. Each reads the value that comes next; ST_INVALID with its path,
 * ST_EXHAUSTED. */
#ifndef PTED_SERVER_LANGUAGE_ASK_PRIV_H
#define PTED_SERVER_LANGUAGE_ASK_PRIV_H

#include "base/buf.h"
#include "protocol/json.h"
#include "server/language/ask.h"

/* Rows of ask.def. */
#define ASK_MEMBERS_MAX 192

struct ask_reader {
    struct json *in;
    bool says_cache;                     /* cache_prompt is given */
    uint64_t seen[ASK_MEMBERS_MAX / 64]; /* rows of |members| that are given, a bit each */
    struct sampler_bias *biases;         /* of |ask|, while they are read */
    struct arena *arena;
    struct ask *ask;
    struct error *err;
};

/* Takes the text of a value of |type|, which is checked; it lies in the body. */
MUST_CHECK enum status ask_take_json(struct ask_reader *r, enum json_type type, struct span *out);

/* Bytes of messages in the form that templates know. They are not much more than those of the body,
 * which is bounded: each message has a role, and JSON in a string at most 6 bytes for each of its
 * own. */
#define ASK_MESSAGES_BYTES_MAX (1 << 30)

/* Reads a list of messages into |ask->messages|. |read| appends the next one to |items|. */
MUST_CHECK enum status ask_read_messages(struct ask_reader *r,
                                         enum status (*read)(struct ask_reader *r,
                                                             struct buf *items));

/* ---- ask_ollama.c ---------------------------------------------------------------------------- */

/* Reads a name, see ask_read_tagged_model(). */
MUST_CHECK enum status ask_ollama_model(struct ask_reader *r);
/* Reads messages into the form that templates know; without any the request only loads the model.
 */
MUST_CHECK enum status ask_ollama_messages(struct ask_reader *r);
/* Reads the only message, which is the prompt of a request that is raw. Likewise. */
MUST_CHECK enum status ask_ollama_prompt(struct ask_reader *r);
MUST_CHECK enum status ask_ollama_system(struct ask_reader *r);
/* Reads true, false, or how much: "low". */
MUST_CHECK enum status ask_ollama_think(struct ask_reader *r);
/* Reads a seed; -1 is none. */
MUST_CHECK enum status ask_ollama_seed(struct ask_reader *r);
/* Reads a number of tokens; less than 1: as many as there is room for. */
MUST_CHECK enum status ask_ollama_count(struct ask_reader *r);

/* ---- ask_cohere.c ---------------------------------------------------------------------------- */

/* Reads messages into the form that templates know. */
MUST_CHECK enum status ask_cohere_messages(struct ask_reader *r);
/* Reads "REQUIRED" or "NONE". */
MUST_CHECK enum status ask_cohere_choice(struct ask_reader *r);

/* ---- ask_llama.c ----------------------------------------------------------------------------- */

/* Reads a text, or ids. */
MUST_CHECK enum status ask_llama_prompt(struct ask_reader *r);
/* Reads a text before a gap, that behind it, the beginning of the answer. */
MUST_CHECK enum status ask_llama_before(struct ask_reader *r);
MUST_CHECK enum status ask_llama_after(struct ask_reader *r);
MUST_CHECK enum status ask_llama_begun(struct ask_reader *r);
/* Reads a list of other texts. */
MUST_CHECK enum status ask_llama_extra(struct ask_reader *r);
/* Reads a number of tokens; less than 0: as many as there is room for. */
MUST_CHECK enum status ask_llama_count(struct ask_reader *r);
/* Reads how many probable tokens are told beside each; 0: no probability is. */
MUST_CHECK enum status ask_llama_probabilities(struct ask_reader *r);

/* ---- ask_shape.c ----------------------------------------------------------------------------- */

MUST_CHECK enum status ask_shape_format(struct ask_reader *r);
MUST_CHECK enum status ask_shape_text_format(struct ask_reader *r);
MUST_CHECK enum status ask_shape_output_config(struct ask_reader *r);
MUST_CHECK enum status ask_shape_ollama_format(struct ask_reader *r);
MUST_CHECK enum status ask_shape_json_schema(struct ask_reader *r);
MUST_CHECK enum status ask_shape_guided_json(struct ask_reader *r);
MUST_CHECK enum status ask_shape_guided_choice(struct ask_reader *r);
MUST_CHECK enum status ask_shape_guided_regex(struct ask_reader *r);
MUST_CHECK enum status ask_shape_guided_grammar(struct ask_reader *r);
MUST_CHECK enum status ask_shape_grammar(struct ask_reader *r);
MUST_CHECK enum status ask_shape_structured_outputs(struct ask_reader *r);

#endif
