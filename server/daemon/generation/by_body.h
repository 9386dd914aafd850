/* SPDX-License-Identifier: MIT */
/*
 * POST / and POST /invocations, for models of texts: the members of the body say what the request
 * is, and it is that from then on, with the form of the answer that it has at its own route:
 *
 *     messages   a chat, as at /v1/chat/completions
 *     prompt     a completion, as at /v1/completions
 *     input      embeddings, as at /v1/embeddings
 *     query      a ranking, as at /rerank
 *     inputs     what TEI answers there: classes or vectors, as the model gives them
 *
 * Hosts such as SageMaker know one path alone, at which vLLM and TEI answer them; the clients of
 * Hugging Face ask at the root.
 *
 * Rules as in generation.h and embedding.h.
 */
#ifndef PTED_SERVER_DAEMON_GENERATION_BY_BODY_H
#define PTED_SERVER_DAEMON_GENERATION_BY_BODY_H

#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_ops.h"

extern const struct infer_ops by_body_ops;
extern const struct codec by_body; /* until the body is read */

#endif
