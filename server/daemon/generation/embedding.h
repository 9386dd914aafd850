/* SPDX-License-Identifier: MIT */
/*
 * A request to an encoder of texts (server/language/embedder.h): vectors of texts, or how well
 * texts answer a query. It takes the steps of request.def like a call, but DECODE to SAMPLE once
 * for each run of the model:
 *
 *     PARSE   the members of the body, the texts as ids of tokens; on a thread
 *     DECODE  the ids of the next text. Of texts that are padded to one length as many as the model
 *             has been proven to give the same bits for, together or alone; others run alone, so
 *             that no vector depends on what else is in a request
 *     RUN     a job of the scheduler like any other
 *     SAMPLE  the vectors of the run, pooled; on a thread if that takes long
 *
 * A ranking by a cross-encoder is a run for each pair of query and text; by other encoders it is
 * the cosine of the vectors.
 *
 * An embedding belongs to its request, and follows the rules for the request's parts
 * (server/daemon/request/request.h).
 */
#ifndef PTED_SERVER_DAEMON_GENERATION_EMBEDDING_H
#define PTED_SERVER_DAEMON_GENERATION_EMBEDDING_H

#include "server/daemon/infer/infer.h"
#include "server/language/embed_ask.h"

struct infer;

/* For the routes of route.def. */
extern const struct infer_ops embedding_ops;
extern const struct codec embedding_openai, embedding_tei, embedding_rank, embedding_rank_jina,
    embedding_rank_cohere, embedding_ollama, embedding_ollama_one, embedding_predict, embedding_all,
    embedding_sparse, embedding_similar, embedding_cohere, embedding_cohere_one, embedding_score,
    embedding_classify, embedding_pool, embedding_llama;

/*
 * Finds the model that a request of |form| means, if it names none: the one that has what the form
 * needs. A card's word counts first, then names and shapes of results. ST_NOT_FOUND; ST_INVALID:
 * several are alike in that. Any thread.
 */
MUST_CHECK enum status embedding_find_only(struct infer *infer, enum embed_form form,
                                           char out_name[MODEL_NAME_MAX + 1], struct error *err);

#endif
