/* SPDX-License-Identifier: MIT */
/*
 * A request to an encoder, read from its body, in one of these forms:
 *
 *     EMBED_OPENAI  /v1/embeddings, OpenAI's: model, input, encoding_format, dimensions
 *     EMBED_TEI     /embed, TEI's: inputs, normalize, dimensions
 *     EMBED_TEI_ALL     /embed_all, likewise: inputs; a vector for each token
 *     EMBED_TEI_SPARSE  /embed_sparse, likewise: inputs; the numbers that are not 0
 *     PREDICT_TEI   /predict, TEI's: inputs, texts or pairs of texts; raw_scores
 *     SIMILAR_TEI   /similarity, TEI's: inputs with source_sentence and sentences
 *     RANK_TEI      /rerank, TEI's: query, texts, raw_scores, return_text
 *     RANK_JINA     /v1/rerank, Jina's: model, query, documents, top_n, return_documents
 *     RANK_COHERE   /v2/rerank, Cohere's: the same; texts that are too long are cut
 *     EMBED_COHERE  /v2/embed, Cohere's: model, texts, embedding_types, output_dimension; likewise
 *     EMBED_COHERE_ONE  /v1/embed, Cohere's first one: the same, without embedding_types lists
 *     EMBED_OLLAMA      /api/embed, Ollama's: model, input, dimensions; likewise
 *     EMBED_OLLAMA_ONE  /api/embeddings, Ollama's older one: model, prompt; likewise
 *
 *     SCORE_VLLM    /score, vLLM's: model, text_1, text_2: a text and texts, or as many of each
 *     CLASSIFY_VLLM     /classify, vLLM's: model, input
 *     POOL_VLLM     /pooling, vLLM's: model, input, task, encoding_format
 *     EMBED_LLAMA   /embeddings, llama.cpp's: content, embd_normalize
 *
 * /rerank takes two of them, RANK_ROOT: a body with documents is RANK_JINA, as vLLM has it there.
 * Likewise a body of /embeddings with input is EMBED_OPENAI: clients of OpenAI may lack "/v1".
 * All have truncate: a text that is too long is cut. The value null stands for the default
 * everywhere; members that are not known are passed over. Reading knows no model.
 */
#ifndef PTED_SERVER_LANGUAGE_EMBED_ASK_H
#define PTED_SERVER_LANGUAGE_EMBED_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

enum embed_form {
    EMBED_OPENAI = 1,
    EMBED_TEI = 2,
    RANK_TEI = 4,
    RANK_JINA = 8,
    RANK_ROOT = RANK_TEI | RANK_JINA, /* of a body that has not been read */
    RANK_COHERE = 16,
    EMBED_OLLAMA = 32,
    EMBED_OLLAMA_ONE = 64,
    PREDICT_TEI = 128,
    EMBED_TEI_ALL = 256,
    EMBED_TEI_SPARSE = 512,
    EMBED_COHERE = 1024,
    SIMILAR_TEI = 2048,
    EMBED_COHERE_ONE = 4096,
    SCORE_VLLM = 8192,
    CLASSIFY_VLLM = 16384,
    POOL_VLLM = 32768,
    EMBED_LLAMA = 65536,
};

/* What POOL_VLLM asks a model for. */
enum embed_task { EMBED_ANY_TASK, EMBED_TEXT_TASK, EMBED_TOKENS_TASK, EMBED_CLASSES_TASK };

#define EMBED_TEXTS_MAX 2048 /* as OpenAI's API takes */

struct embed_text {
    struct span text;
    struct span second; /* of a pair, which may be classified */
    bool is_pair;
    const uint32_t *ids; /* instead of a text; NULL: there is a text */
    uint32_t id_count;
};

/* Everything is in the arena. */
struct embed_ask {
    enum embed_form form;
    const char *model; /* NULL: not named */
    struct embed_text *texts;
    uint32_t text_count;
    bool is_one;          /* to be classified: a text or a pair by itself, not in a list */
    struct span *queries; /* one for all texts, or one for each */
    uint32_t query_count;
    enum embed_task task;
    bool is_base64;
    bool has_floats;     /* of COHERE forms: vectors also come, or come alone, as numbers */
    bool has_types;      /* likewise: the request says which */
    uint32_t dimensions; /* 0: all */
    bool says_normalize, normalizes;
    bool cuts;
    uint32_t cut_tokens; /* texts are cut to so many at most; 0: to what the model takes */
    bool has_keep;       /* keep_alive is given */
    uint64_t keep_ns;    /* for so long; UINT64_MAX: for ever */
    bool wants_raw_scores;
    bool wants_texts; /* of documents, in the answer */
    uint32_t top_count;
};

static inline bool embed_ask_ranks(const struct embed_ask *ask)
{
    return ask->form & (RANK_ROOT | RANK_COHERE | SIMILAR_TEI | SCORE_VLLM);
}

/* Does the answer have a vector for each token? */
static inline bool embed_ask_has_tokens(const struct embed_ask *ask)
{
    return ask->form == EMBED_TEI_ALL || ask->task == EMBED_TOKENS_TASK;
}

/* Does it have scores of classes? */
static inline bool embed_ask_classifies(const struct embed_ask *ask)
{
    return ask->form & (PREDICT_TEI | CLASSIFY_VLLM) || ask->task == EMBED_CLASSES_TASK;
}

/* Documents, and scores called relevance_score. */
static inline bool embed_ask_has_documents(const struct embed_ask *ask)
{
    return ask->form & (RANK_JINA | RANK_COHERE);
}

/* Fails with ST_INVALID, with the path and the byte of the error; with ST_UNSUPPORTED for a wish
 * that pted cannot fulfil; with ST_TOO_LARGE and ST_EXHAUSTED for memory. */
MUST_CHECK enum status embed_ask_parse(enum embed_form form, struct span body, uint32_t depth_max,
                                       struct arena *arena, struct embed_ask *out,
                                       struct error *err);

/* Returns the member that has texts: "input", "inputs", "texts" or "documents"; that which has the
 * query. */
const char *embed_ask_member(const struct embed_ask *ask);
const char *embed_ask_query_member(const struct embed_ask *ask);

#endif
