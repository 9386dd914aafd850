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
#include "protocol/call.h"
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

/*
 * How the body of a request and that of its answer are written. parse() leaves what it found in
 * struct infer; decode() fills the invocation and lists the outputs; print() prints the answer to
 * request->out and infer->encoded.
 */
typedef enum status infer_parse_f(struct request *request, const struct oip_body *parts,
                                  struct error *err);
typedef enum status infer_form_f(struct request *request, struct error *err);

struct infer_form {
    infer_parse_f *parse;
    infer_form_f *decode, *print;
};

extern const struct infer_form infer_form_oip;  /* infer_oip.c */
extern const struct infer_form infer_form_call; /* infer_call.c */

struct infer {
    const struct model *model; /* borrowed from server->models */
    const struct infer_form *form;
    struct arena arena;       /* what the request made us allocate */
    struct body inflated;     /* the body without its content coding */
    const struct body *body;  /* whichever of the two is read */
    struct oip_request oip;   /* of infer_form_oip; borrows from |body| */
    struct call_leaf *leaves; /* of infer_form_call, by raw index; borrow from |body| */
    uint64_t timeout_us;      /* that the client asked for; 0: none */
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

/* What every request may have at most. */
struct oip_limits infer_limits(const struct request *request);

/* For the forms: raw input |index| lies packed at |bytes| in the body, which is in a buffer. */
MUST_CHECK enum status infer_bind(struct infer *infer, uint32_t index, enum dtype dtype,
                                  const struct shape *shape, struct span bytes, struct error *err);

union infer_scalar {
    int64_t i;
    double f;
    bool b;
};

MUST_CHECK enum status infer_scalar(struct infer *infer, enum rt_io_kind kind, uint32_t index,
                                    const union infer_scalar *value, struct error *err);

/* Bytes of results that ENCODE has to touch, to decide who does it: binary ones go out as they are.
 */
size_t infer_encode_bytes(const struct request *request);

/* How long the invocation may take: the daemon's limit or the client's shorter one. */
uint64_t infer_time_limit_ms(const struct request *request);

#endif
