/* SPDX-License-Identifier: MIT */
/*
 * Codecs: how the calls of a request and their answers are written. Each codec is one row of
 * functions. Most codecs read a body of JSON (codec_oip.c, codec_call.c, codec_predict.c). The
 * codecs of forms take over from two of these where a body is a file, a text or a form.
 *
 * Codecs run in steps that run ANYWHERE, so they touch nothing but the request.
 */
#ifndef PTED_SERVER_DAEMON_INFER_CODEC_H
#define PTED_SERVER_DAEMON_INFER_CODEC_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"
#include "protocol/call.h"
#include "protocol/oip.h"
#include "runtime/program/program.h"

struct infer;
struct infer_call;
struct model;

/*
 * parse() stores what it found in |call| and, unless |out_rest| is NULL, stores there the binary
 * data that follows. decode() lists the outputs and fills the invocation, except for promised
 * inputs. print() adds the members of the answer to infer->out and to infer->encoded;
 * print_tail() adds the part of the body that follows the JSON.
 */
struct codec {
    enum status (*parse)(struct infer *infer, struct infer_call *call, const struct oip_body *parts,
                         struct span *out_rest, struct error *err);
    enum status (*decode)(struct infer *infer, struct infer_call *call, struct error *err);
    enum status (*print)(struct infer *infer, struct infer_call *call, struct error *err);
    void (*print_tail)(struct infer *infer, const struct infer_call *call); /* (optional) */
    /* Puts the client's name for raw input |index|, and |behind|, in front of the text in |err|. */
    enum status (*name_input)(const struct infer_call *call, uint32_t index, const char *behind,
                              struct error *err);
    /* Writes the results that do not go into the answer, before any of it is printed. */
    enum status (*store)(struct infer_call *call, struct error *err); /* (optional) */
    const char *stream_type; /* of a stream of the form's answers; NULL: server-sent events */
    bool takes_files;        /* a body may also be a file, or a form with files (codec_form.c) */
    bool is_message;         /* of gRPC: the body is a message, and so is all that print() adds */
};

extern const struct codec codec_oip, codec_call, codec_predict;

/* ---- for all codecs (codec.c) ---------------------------------------------------------------- */

/* Makes an empty list with room for |count| outputs. A repeated attempt to decode uses the memory
 * of the first one, so that a request that waits takes no more and more. */
MUST_CHECK enum status codec_outputs_new(struct arena *arena, struct infer_call *call, size_t count,
                                         struct error *err);

/* The form of a tensor for raw input |index|; borrowed. */
struct codec_tensor {
    uint32_t index;
    enum dtype dtype;
    const struct shape *shape;
    const struct oip_layout *layout;
};

/* Binds a tensor that lies at |bytes| in the body, which is in a buffer. */
MUST_CHECK enum status codec_bind(struct infer *infer, struct infer_call *call,
                                  const struct codec_tensor *tensor, struct span bytes,
                                  struct error *err);

/* Gives memory for a tensor whose bytes are yet to be written: for |stored| bytes in its layout. */
MUST_CHECK enum status codec_stage(struct infer *infer, struct infer_call *call,
                                   const struct codec_tensor *tensor, size_t stored, void **out_ptr,
                                   struct error *err);

/* Copies |string|. */
MUST_CHECK enum status codec_put_string(struct infer *infer, struct infer_call *call,
                                        uint32_t index, struct span string, struct error *err);

union codec_scalar {
    int64_t i;
    double f;
    bool b;
};

MUST_CHECK enum status codec_put_scalar(struct infer_call *call, enum rt_io_kind kind,
                                        uint32_t index, const union codec_scalar *value,
                                        struct error *err);

/* For codecs with the parameters top_k and order: those of the query, if it has some. */
void codec_take_query(const struct infer *infer, struct oip_parameters *parameters);

/* name_input() of requests whose inputs pted makes: the client has no name for such an input. */
enum status codec_name_none(const struct infer_call *call, uint32_t index, const char *behind,
                            struct error *err);

/* ---- codec_oip.c ----------------------------------------------------------------------------- */

/* Returns the limits of every request. */
struct oip_limits codec_oip_limits(const struct infer *infer);

/* Checks the inputs and outputs of a request by the limits of the daemon. */
MUST_CHECK enum status codec_oip_check(struct infer *infer, const struct oip_request *oip,
                                       struct error *err);

/* Makes the results of the call, in the arena, from which its answer is printed. */
MUST_CHECK enum status codec_oip_reply(struct infer *infer, struct infer_call *call,
                                       struct oip_reply *out, struct error *err);

/*
 * Checks that each input of |oip| is one of the model's and that no two are the same. The parser
 * has compared their names, but an input has an alias beside its name. With |needs_all| none may be
 * missing.
 */
MUST_CHECK enum status codec_oip_check_names(struct arena *arena, const struct model *model,
                                             const struct oip_request *oip, bool needs_all,
                                             struct error *err);

/* Chooses all outputs by name, unless the call has chosen some. */
MUST_CHECK enum status codec_oip_choose_outputs(struct infer *infer, struct infer_call *call,
                                                struct error *err);

/* ---- codec_call.c ---------------------------------------------------------------------------- */

struct call_limits codec_call_limits(const struct infer *infer);

/* For codecs whose calls have the same form inside: decode() with an answer of text, and
 * name_input(). */
MUST_CHECK enum status codec_call_decode_text(struct infer *infer, struct infer_call *call,
                                              struct error *err);
enum status codec_call_name_input(const struct infer_call *call, uint32_t index, const char *behind,
                                  struct error *err);

/* For calls whose leaves do not come from one text: outputs, unless they have been chosen; their
 * classes; inputs. */
MUST_CHECK enum status codec_call_list_outputs(struct infer *infer, struct infer_call *call,
                                               bool is_binary, struct error *err);
MUST_CHECK enum status codec_call_choose_classes(struct infer_call *call, struct error *err);
MUST_CHECK enum status codec_call_decode_inputs(struct infer *infer, struct infer_call *call,
                                                struct error *err);

/* ---- codec_form.c ---------------------------------------------------------------------------- */

/* Requests whose body is no JSON: a file or a text alone, or a form of several parts, by its
 * Content-Type and its first bytes. */
extern const struct codec codec_form_oip, codec_form_call;
bool codec_form_is(const struct infer *infer, const struct infer_call *call);

/* Call before the body: 200, or 415 if the model takes no such body. */
int codec_form_check(const struct infer *infer, const struct codec *codec,
                     const struct infer_call *call, struct error *err);

#endif
