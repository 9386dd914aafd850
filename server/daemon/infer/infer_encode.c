/* SPDX-License-Identifier: MIT */
/* Step ENCODE: from results to the text of an answer, or to tensors that are sent from the memory
 * that the device wrote; and the events of a stream. */
#include "config.h"

#include "server/daemon/infer/infer.h"

#include "base/check.h"
#include "hal/pool.h"
#include "protocol/grpc.h"
#include "protocol/grpc_infer.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_answer.h"
#include "server/daemon/infer/infer_priv.h"
#include "server/daemon/serving/serving.h"

/* A smaller answer is not worth compressing. */
#define DEFLATE_BYTES_MIN 1024

/* A client of gRPC names all codings that it knows in each request; it wants one if it uses one. */
static enum coding wanted_coding(const struct infer *infer)
{
    enum coding coding = CODING_IDENTITY;
    if (infer->is_in_stream) {
        return coding; /* its answer is a part of a message */
    }
    if (infer->call.codec && infer->call.codec->is_message) {
        (void)coding_find(head_value(infer->head, HTTP_GRPC_ENCODING), &coding);
        return coding;
    }
    return coding_accept(head_value(infer->head, HTTP_ACCEPT_ENCODING));
}

/* Finding and printing a class takes as long as printing that many bytes of numbers. */
#define CLASS_TEXT_BYTES 32

static size_t class_bytes(const struct infer_output *output, const struct rt_result *result)
{
    size_t all = (size_t)shape_numel(&result->shape);
    size_t rows = result->shape.rank > 1 ? (size_t)result->shape.dims[0] : 1;
    bool is_all = rows == 0 || output->class_count > all / rows;
    return (is_all ? all : rows * output->class_count) * CLASS_TEXT_BYTES;
}

size_t infer_text_bytes(const struct infer *infer, const struct infer_call *call)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    size_t bytes = 0;
    for (size_t i = 0; i < call->output_count; i++) {
        const struct infer_output *output = &call->outputs[i];
        const struct rt_result *result = rt_invocation_result(call->invocation, output->io->index);
        bool is_printed = !output->is_binary || wanted_coding(infer) != CODING_IDENTITY;
        bytes += is_printed ? result->bytes.len : 0;
        bytes += output->is_channels_last && !result->order ? result->bytes.len : 0;
        bytes += output->class_count ? class_bytes(output, result) : 0;
        bytes += output->is_answer ? infer_answer_cost(call, output) : 0;
    }
    return bytes;
}

size_t infer_encode_bytes(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return INFER_OP(infer, print.encode_bytes)(infer);
}

/* The prefix of a message is not part of what is compressed. */
static enum status compress_message(struct infer *infer, struct error *err)
{
    static const uint8_t prefix[GRPC_PREFIX_BYTES];
    struct oip_encoded *encoded = &infer->encoded;
    struct buf *out = &infer->deflated;
    struct span *first = &encoded->spans[0];
    *first = span_of(first->ptr + GRPC_PREFIX_BYTES, first->len - GRPC_PREFIX_BYTES);
    buf_add(out, prefix, sizeof(prefix));
    TRY(coding_deflate(infer->coding, encoded->spans, encoded->span_count, out, err));
    return grpc_print_prefix(out->ptr, true, out->len - GRPC_PREFIX_BYTES, err);
}

/* The answer is |spans|, of |bytes| in all. */
static enum status compress(struct infer *infer, const struct span *spans, size_t count,
                            size_t bytes, struct error *err)
{
    infer->coding = bytes < DEFLATE_BYTES_MIN ? CODING_IDENTITY : wanted_coding(infer);
    if (infer->coding == CODING_IDENTITY) {
        return ST_OK;
    }
    TRY(infer->encoded.is_message
            ? compress_message(infer, err)
            : coding_deflate(infer->coding, spans, count, &infer->deflated, err));
    buf_fini(infer->out);
    return ST_OK;
}

enum status infer_compress_text(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct span text = buf_span(infer->out);
    return compress(infer, &text, 1, text.len, err);
}

/* Is the answer, or the end of it, the memory of results? */
static bool has_results(const struct infer *infer)
{
    return infer->encoded.has_binary && infer->coding == CODING_IDENTITY;
}

/* Memory that answers take beside their text, such as maps. Nothing has been printed yet, so the
 * request may wait for it. */
static enum status take_for_answers(struct infer *infer, size_t bytes, struct error *err)
{
    struct hal_pool *pool = infer->pool;
    if (hal_pool_try_charge(pool, bytes)) {
        return ST_OK;
    }
    error_set(err, ST_EXHAUSTED, "no memory now for an answer of %zu bytes", bytes);
    size_t held = infer_calls_bytes(infer);
    return infer_refuse_memory(infer, held + bytes, true, err);
}

/* The text of the answer, and the tensors behind it. */
static enum status print(struct infer *infer, struct error *err)
{
    struct oip_encoded *encoded = &infer->encoded;
    size_t spans = INFER_OP(infer, print.tensor_count)(infer) + 1;
    encoded->spans = arena_array(&infer->arena, spans, sizeof(*encoded->spans));
    if (!encoded->spans) {
        return arena_fail(&infer->arena, "the answer", err);
    }
    oip_encode_begin(encoded);
    TRY(INFER_OP(infer, print.print)(infer, err));
    oip_encode_end_json(infer->out, encoded);
    INFER_OP(infer, print.print_tail)(infer);
    TRY(oip_encode_end(infer->out, encoded, err));
    return encoded->is_message ? grpc_end_reply(infer->out, encoded, err) : ST_OK;
}

static enum status encode(struct infer *infer, struct error *err)
{
    size_t bytes = INFER_OP(infer, print.print_bytes)(infer);
    bool is_counted = bytes > INFER_KEEP_BYTES;
    TRY(is_counted ? take_for_answers(infer, bytes, err) : ST_OK);
    enum status status = print(infer, err);
    if (is_counted) {
        hal_pool_discharge(infer->pool, bytes);
    }
    TRY(status);
    TRY(compress(infer, infer->encoded.spans, infer->encoded.span_count, infer->encoded.total_bytes,
                 err));
    if (!has_results(infer)) {
        INFER_OP(infer, print.release)(infer);
    }
    return ST_OK;
}

enum outcome infer_encode(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer_end_step(infer, encode(infer, err), err);
}

bool infer_hand_over(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct error err;
    enum status status = infer_count_answer(infer, 0, &err);
    must(status == ST_OK); /* the text is one that clients take: transfers_update() */
    return !has_results(infer) ||
           INFER_OP(infer, print.hand_over)(infer, infer->serving->transfers, &err) == ST_OK;
}

/* ---- events of a stream ---------------------------------------------------------------------- */

bool infer_is_stream(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct infer_ops *ops = infer->ops;
    return ops && ops->print.is_stream && infer->own && ops->print.is_stream(infer);
}

bool infer_has_events(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer_is_stream(infer) && infer->out->len > 0;
}

void infer_print_error_event(const struct infer *infer, const struct error *why, int http_status,
                             struct buf *out)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    infer->ops->print.print_error_event(infer, why, http_status, out);
}
