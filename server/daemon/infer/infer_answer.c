/* SPDX-License-Identifier: MIT */
/* Results as their model's card says that people want to read them (server/model/answer/answer.h).
 */
#include "config.h"

#include "server/daemon/infer/infer_answer.h"

#include "base/check.h"
#include "protocol/base64.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/infer.h"
#include "server/model/answer/answer.h"
#include "server/model/intake/medium.h"

#define TEXT_BYTES_MAX ((size_t)256 << 20)

/* ---- which ----------------------------------------------------------------------------------- */

static void mark(struct infer_call *call, uint32_t index)
{
    for (size_t i = 0; i < call->output_count; i++) {
        struct infer_output *output = &call->outputs[i];
        if (output->io->index == index) {
            output->is_part = true;
            output->class_count = 0;
        }
    }
}

void infer_answer_choose(struct infer_call *call)
{
    for (size_t i = 0; i < call->output_count; i++) {
        struct infer_output *output = &call->outputs[i];
        const struct answer_form *answer = output->io->answer;
        if (!answer || output->is_binary) {
            continue;
        }
        if (answer->kind == ANSWER_CLASSES) {
            bool has_none = call->parameters->has_top_k && call->parameters->top_k == 0;
            output->class_count = output->class_count ? output->class_count
                                  : has_none          ? 0
                                                      : answer->class_count;
            continue;
        }
        output->is_answer = true;
        output->class_count = 0;
        if (answer->kind == ANSWER_BOXES) {
            mark(call, answer->scores);
            mark(call, answer->classes);
            mark(call, answer->masks);
        }
    }
}

enum status infer_answer_ask(struct infer_output *output, bool is_json, struct error *err)
{
    const struct answer_form *answer = output->io->answer;
    if (!answer) {
        return error_set(err, ST_INVALID, "the model's card says no answer for '%s'",
                         output->io->meta.name);
    }
    output->is_answer = answer->kind != ANSWER_CLASSES;
    output->is_json = is_json;
    output->class_count = output->is_answer ? 0 : answer->class_count;
    return ST_OK;
}

/* ---- what it is made from -------------------------------------------------------------------- */

static struct answer_tensor tensor_of(const struct infer_call *call, uint32_t index)
{
    if (index == ANSWER_NO_INDEX) {
        return (struct answer_tensor){.dtype = DT_F32};
    }
    const struct rt_result *result = rt_invocation_result(call->invocation, index);
    return (struct answer_tensor){
        .dtype = rt_method_result(call->model->method, index)->dtype,
        .shape = result->shape,
        .bytes = result->bytes,
    };
}

static struct answer_source source_of(const struct infer_call *call,
                                      const struct infer_output *output)
{
    const struct model_io *io = output->io;
    const struct medium *picture = call->model->picture;
    const struct shape *pixels =
        picture ? rt_invocation_input_shape(call->invocation, picture->input) : NULL;
    return (struct answer_source){
        .answer = io->answer,
        .tensor = tensor_of(call, io->index),
        .scores = tensor_of(call, io->answer->scores),
        .classes = tensor_of(call, io->answer->classes),
        .masks = tensor_of(call, io->answer->masks),
        .labels = io->labels,
        .label_count = io->label_count,
        .pixels = {pixels ? (uint32_t)pixels->dims[1] : 0, pixels ? (uint32_t)pixels->dims[2] : 0},
        .places = call->places,
        .place_count = call->place_count,
    };
}

size_t infer_answer_cost(const struct infer_call *call, const struct infer_output *output)
{
    const struct answer_source source = source_of(call, output);
    return answer_cost(&source);
}

size_t infer_answer_work_bytes(const struct infer_call *call)
{
    size_t most = 0;
    for (size_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i].is_answer) {
            const struct answer_source source = source_of(call, &call->outputs[i]);
            size_t bytes = answer_work_bytes(&source);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

/* ---- writing --------------------------------------------------------------------------------- */

static enum status add_name(const struct infer_output *output, struct error *err)
{
    return err->code == ST_EXHAUSTED ? err->code
                                     : error_prefix(err, "output '%.64s': ", output->io->meta.name);
}

enum status infer_answer_print(const struct infer_call *call, const struct infer_output *output,
                               struct buf *out, struct error *err)
{
    must(output->is_answer && call->invocation);
    const struct answer_source source = source_of(call, output);
    buf_add_char(out, '[');
    for (size_t row = 0; row < answer_rows(&source) && !buf_failed(out); row++) {
        buf_add_str(out, row ? "," : "");
        if (answer_print(&source, row, out, err) != ST_OK) {
            return add_name(output, err);
        }
    }
    buf_add_char(out, ']');
    return ST_OK;
}

static enum status write_row(const struct infer_output *output, const struct answer_source *source,
                             size_t row, struct buf *out, struct error *err)
{
    return output->is_json ? answer_print(source, row, out, err)
                           : answer_write(source, row, out, err);
}

/* In JSON the bytes of a file are base64. */
static enum status keep_text(struct arena *arena, const struct infer_output *output,
                             const struct buf *text, struct span *out, struct error *err)
{
    bool is_file = output->io->answer->kind == ANSWER_MAP && !output->is_json;
    bool is_coded = is_file && !output->is_binary;
    struct buf coded;
    buf_init(&coded, TEXT_BYTES_MAX);
    if (is_coded) {
        base64_print(&coded, buf_span(text));
    }
    const struct buf *from = is_coded ? &coded : text;
    const char *bytes = from->ptr ? (const char *)from->ptr : "";
    const char *copy = buf_failed(from) ? NULL : arena_strdup(arena, bytes, from->len);
    *out = span_of(copy, copy ? from->len : 0);
    buf_fini(&coded);
    return copy ? ST_OK : arena_fail(arena, "the answer", err);
}

enum status infer_answer_take(struct arena *arena, const struct infer_call *call,
                              struct infer_output *output, struct error *err)
{
    must(output->is_answer && call->invocation);
    const struct answer_source source = source_of(call, output);
    size_t rows = answer_rows(&source);
    struct span *texts = arena_array(arena, rows + 1, sizeof(*texts));
    struct buf text;
    enum status status = texts ? ST_OK : arena_fail(arena, "the answer", err);
    buf_init(&text, TEXT_BYTES_MAX);
    for (size_t row = 0; status == ST_OK && row < rows; row++) {
        buf_reset(&text);
        status = write_row(output, &source, row, &text, err) == ST_OK
                     ? keep_text(arena, output, &text, &texts[row], err)
                     : add_name(output, err);
    }
    buf_fini(&text);
    output->classes = texts;
    output->classes_shape = (struct shape){.rank = 1, .dims = {(int64_t)rows}};
    return status;
}
