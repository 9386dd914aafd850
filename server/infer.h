/* SPDX-License-Identifier: MIT */
/*
 * The inference part of a request: what its steps share. Functions are named after the step that
 * calls them (request.def); those of ANYWHERE steps touch nothing but the request.
 */
#ifndef PTED_SERVER_INFER_H
#define PTED_SERVER_INFER_H

#include <stdbool.h>

#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "protocol/oip.h"
#include "protocol/oip_reply.h"
#include "server/body.h"
#include "server/coding.h"
#include "server/model.h"

struct request;
struct rt_invocation;

#define INFER_OUTPUTS_MAX 256
#define INFER_SPANS_MAX (1 + INFER_OUTPUTS_MAX) /* of an answer: JSON and binary tensors */

/* A result that the client wants, in its order. */
struct infer_output {
    const struct model_io *io;
    bool is_binary;
};

struct infer {
    const struct model *model; /* borrowed from server->models */
    struct arena arena;        /* what the request made us allocate */
    struct body inflated;      /* the body without its content coding */
    const struct body *body;   /* whichever of the two is read */
    struct oip_request oip;    /* borrows from |body| */
    struct infer_output *outputs;
    size_t output_count;
    struct rt_invocation *invocation; /* owned; its results live until the answer is written */
    struct oip_encoded encoded;       /* the answer's spans */
    struct buf deflated;              /* the answer with a content coding */
    enum coding coding;               /* of the answer */
};

void infer_init(struct infer *infer, struct request *request);
void infer_fini(struct infer *infer);
void infer_reset(struct infer *infer);

/* Before the body: the model exists, works, and the request's coding is known. 200 or the status.
 */
int infer_begin(struct request *request);

MUST_CHECK enum status infer_parse(struct request *request, struct error *err);
MUST_CHECK enum status infer_decode(struct request *request, struct error *err);
MUST_CHECK enum status infer_prepare(struct request *request, struct error *err);
MUST_CHECK enum status infer_encode(struct request *request, struct error *err);

/* Bytes of results that ENCODE has to touch, to decide who does it: binary ones go out as they are.
 */
size_t infer_encode_bytes(const struct request *request);

/* How long the invocation may take: the daemon's limit or the client's shorter one. */
uint64_t infer_time_limit_ms(const struct request *request);

#endif
