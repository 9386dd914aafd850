/* SPDX-License-Identifier: MIT */
/* Requests and answers of gRPC's ModelInfer. The message names the model; after that a request is
 * one of the Open Inference Protocol whose inputs came in another form. */
#include "config.h"

#include "server/daemon/infer/codec_grpc.h"

#include "base/check.h"
#include "protocol/grpc_infer.h"
#include "server/daemon/infer/infer.h"
#include "server/process/model_name.h"

static enum status parse(struct infer *infer, struct infer_call *call, const struct oip_body *parts,
                         struct span *out_rest, struct error *err)
{
    const struct oip_limits limits = codec_oip_limits(infer);
    must(!out_rest);
    call->parameters = &call->oip.parameters;
    TRY(grpc_parse_infer(parts->binary, &limits, &infer->arena, &call->oip, err));
    return codec_oip_check(infer, &call->oip, err);
}

static enum status decode(struct infer *infer, struct infer_call *call, struct error *err)
{
    return codec_oip.decode(infer, call, err);
}

static enum status name_input(const struct infer_call *call, uint32_t index, const char *behind,
                              struct error *err)
{
    return codec_oip.name_input(call, index, behind, err);
}

static enum status store(struct infer_call *call, struct error *err)
{
    return codec_oip.store(call, err);
}

static enum status print(struct infer *infer, struct infer_call *call, struct error *err)
{
    TRY(codec_oip_reply(infer, call, &call->reply, err));
    grpc_print_reply(&call->reply, call->oip.id, infer->out, &infer->encoded);
    return ST_OK;
}

static void print_tail(struct infer *infer, const struct infer_call *call)
{
    grpc_print_tail(&call->reply, infer->out);
}

const struct codec codec_grpc = {.parse = parse,
                                 .decode = decode,
                                 .print = print,
                                 .print_tail = print_tail,
                                 .name_input = name_input,
                                 .store = store,
                                 .is_message = true};

/* For logs and for the load of a file, the name is where that of a target would be. */
enum status codec_grpc_find_model(struct infer *infer, struct span message, struct error *err)
{
    struct span name, version;
    TRY(grpc_read_model(message, &name, &version, err));
    if (model_name_verify(name, err) != ST_OK) {
        return error_prefix(err, "model_name: ");
    }
    if (version.len > 0 && !model_name_parse_version(version, &infer->version)) {
        return error_set(err, ST_INVALID, "model_version: expected a number, got '%.*s'",
                         SPAN_SHORT(version));
    }
    model_name_copy(name, infer->model_name);
    return infer_find_model(infer, &infer->call, infer->model_name, infer->version, err);
}
