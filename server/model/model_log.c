/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/model_log.h"

#include <inttypes.h>
#include <stdlib.h>

#include <uv.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/device.h"
#include "runtime/program/resident.h"
#include "runtime/program/results.h"
#include "server/language/generator.h"
#include "server/model/model.h"
#include "server/process/amount.h"
#include "server/process/log.h"

#define TEXT_BYTES_MAX 4096
#define IOS_MAX 8 /* inputs and outputs that a line shows */
#define NS_PER_MS 1e6

/* ---- what goes in and comes out -------------------------------------------------------------- */

/* "FP32[<=360,1,8,8]": types as in metadata, upper bounds of dims that vary. */
static void print_io(const struct model_io *io, const struct rt_io *raw, struct buf *out)
{
    const struct oip_type *type = &io->meta.type;
    buf_printf(out, "%s %s", io->meta.name,
               type->is_bytes ? "BYTES" : dtype_infos[type->dtype].oip);
    for (int dim = 0; io->kind == RT_IO_TENSOR && dim < raw->shape.rank; dim++) {
        buf_printf(out, "%s%s%" PRIi64, dim ? "," : "[", raw->dynamic_dims & 1u << dim ? "<=" : "",
                   raw->shape.dims[dim]);
    }
    buf_add_str(out, io->kind != RT_IO_TENSOR ? "" : raw->shape.rank ? "]" : "[]");
}

static void print_ios(const struct model *model, bool are_inputs, struct buf *out)
{
    must(model->method != NULL);
    const struct model_io *ios = are_inputs ? model->inputs : model->outputs;
    uint32_t count = are_inputs ? model->input_count : model->output_count;
    for (uint32_t i = 0; i < count && i < IOS_MAX; i++) {
        buf_add_str(out, i ? ", " : "");
        print_io(&ios[i],
                 are_inputs ? rt_method_input(model->method, ios[i].index)
                            : rt_method_result(model->method, ios[i].index),
                 out);
    }
    if (count > IOS_MAX) {
        buf_printf(out, " and %u more", count - IOS_MAX);
    }
    buf_add_str(out, count ? "" : "nothing");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void print_bytes(size_t bytes, struct buf *out)
{
    char text[AMOUNT_TEXT_MAX];
    buf_add_str(out, amount_bytes(bytes, text));
}

/* Bytes that a call takes with inputs at their upper bounds: these inputs, results and intermediate
 * values. False: the bounds exclude each other. */
static bool measure_call(const struct model *model, size_t *out_bytes)
{
    must(model->method != NULL);
    size_t input_bytes = 0;
    struct rt_method *method = model->method;
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    const struct shape **shapes = calloc((size_t)inputs + 1, sizeof(struct shape *));
    struct rt_result_info *infos = calloc((size_t)results + 1, sizeof(*infos));
    struct error err;
    bool is_known = shapes && infos;
    for (uint32_t i = 0; is_known && i < inputs; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        size_t bytes = 0;
        shapes[i] = io->kind == RT_IO_TENSOR ? &io->shape : NULL;
        is_known = !shapes[i] || shape_bytes(shapes[i], io->dtype, &bytes, &err) == ST_OK;
        input_bytes += bytes;
    }
    is_known = is_known && rt_method_measure(method, shapes, infos, out_bytes, &err) == ST_OK;
    if (is_known) {
        *out_bytes += input_bytes;
    }
    free(shapes);
    free(infos);
    return is_known;
}

static void print_memory(const struct model *model, struct buf *out)
{
    struct rt_resident weights;
    struct error err;
    size_t bytes;
    buf_add_str(out, "; ");
    if (rt_method_has_own_work(model->method) &&
        rt_method_resident(model->method, &weights, &err) == ST_OK) {
        buf_add_str(out, "weights ");
        print_bytes(weights.own_bytes + weights.file_bytes, out);
        if (weights.file_bytes) {
            buf_add_str(out, " (");
            print_bytes(weights.file_bytes, out);
            buf_add_str(out, " in the file)");
        }
        buf_add_str(out, ", ");
    }
    buf_add_str(out, "a call ");
    if (!measure_call(model, &bytes)) {
        buf_add_str(out, "takes memory that depends on its inputs");
        return;
    }
    bool is_part = rt_method_has_statements(model->method);
    buf_add_str(out, is_part ? "" : "up to ");
    print_bytes(bytes, out);
    buf_add_str(out, is_part ? " and more" : "");
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The time to plan a call of the largest shapes; 0: there is no such call. */
static uint64_t plan(const struct model *model)
{
    struct hal_command_stats stats;
    struct error err;
    uint64_t begin_ns = uv_hrtime();
    bool is_planned = rt_method_place(model->method, NULL, NULL, &stats, &err) == ST_OK;
    return is_planned && rt_method_has_own_work(model->method) ? uv_hrtime() - begin_ns : 0;
}

static void print_times(const struct model *model, uint64_t plan_ns, struct buf *out)
{
    struct buf packed;
    if (model->origin->load_ns) {
        buf_printf(out, "; loaded in %.1f ms", (double)model->origin->load_ns / NS_PER_MS);
    }
    buf_init(&packed, TEXT_BYTES_MAX);
    rt_program_print_packed(model->program, &packed);
    if (packed.len > 0) {
        buf_printf(out, ", %.*s", SPAN_FMT(buf_span(&packed)));
    }
    buf_fini(&packed);
    if (plan_ns) {
        buf_printf(out, ", planned in %.2f ms", (double)plan_ns / NS_PER_MS);
    }
}

static void print_batches(const struct model *model, struct buf *out)
{
    must(model->rows_max >= 1 && model->rows_max <= model->rows_form);
    if (model->rows_max > 1) {
        buf_printf(out, "requests that wait run as batches of up to %" PRIi64 " rows",
                   model->rows_max);
    } else if (model->trial.is_open && model->trial.tries == 0) {
        buf_add_str(out, "batches are being tried");
    } else {
        buf_printf(out, "requests run alone: %s", model->why_alone.text);
    }
}

/* ", floats fast", and the mode that was asked for if the processor does not have it. */
static void print_precision(const struct model *model, struct buf *out)
{
    enum precision asked = (enum precision)model->params.precision;
    enum precision precision = rt_program_precision(model->program);
    if (!rt_method_has_own_work(model->method)) {
        return;
    }
    buf_printf(out, ", precision %s", precision_word(precision));
    if (asked == PRECISION_BF16 && precision != asked) {
        buf_add_str(out, ", not bf16: it has no such products");
    }
    if (rt_program_has_int8_caches(model->program)) {
        buf_add_str(out, ", caches in 8 bits");
    }
}

/* "model add", "model add version 12" */
static void print_name(const struct model *model, struct buf *out)
{
    buf_printf(out, "model %s", model->name);
    if (model->version != 1) {
        buf_printf(out, " version %u", model->version);
    }
    buf_add_str(out, ": ");
}

/* A template that is not understood: the model works, but its chats do not. */
static void log_template(const struct model *model)
{
    const struct chat *chat = model->generator ? &model->generator->chat : NULL;
    struct buf line;
    if (!chat || !chat->is_refused) {
        return;
    }
    buf_init(&line, TEXT_BYTES_MAX);
    print_name(model, &line);
    buf_printf(&line, "chats are refused: %s", chat->failure.text);
    log_line(LOG_WARNING, "%.*s", SPAN_FMT(buf_span(&line)));
    buf_fini(&line);
}

void model_log(const struct model *model, const struct hal_device *device)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    struct buf line;
    if (!model->program) {
        return; /* the file did not load, and has its own line */
    }
    buf_init(&line, TEXT_BYTES_MAX);
    print_name(model, &line);
    if (model_is_ready(model)) {
        uint64_t plan_ns = plan(model); /* first: the call is measured by it */
        print_ios(model, true, &line);
        buf_add_str(&line, " -> ");
        print_ios(model, false, &line);
        print_memory(model, &line);
        print_times(model, plan_ns, &line);
        buf_printf(&line, "; on %s", hal_device_props(device)->name);
        print_precision(model, &line);
        buf_add_str(&line, "; ");
        print_batches(model, &line);
    } else {
        buf_printf(&line, "cannot be called: %s", model_refusal(model));
    }
    enum log_level level = !model_is_ready(model)     ? LOG_WARNING
                           : model_is_constant(model) ? LOG_DEBUG
                                                      : LOG_INFO;
    log_line(level, "%.*s", SPAN_FMT(buf_span(&line)));
    if (model_is_ready(model) && model_lacks_tokenizer(model)) {
        buf_reset(&line);
        print_name(model, &line);
        log_line(LOG_INFO, "%.*sthere is no tokenizer beside it, so it takes tensors, no texts",
                 SPAN_FMT(buf_span(&line)));
    }
    buf_fini(&line);
    log_template(model);
}

/* Logs a language model whose steps have been tried. */
static void print_guesses(const struct generator *generator, struct buf *out)
{
    uint32_t tokens = atomic_load(&generator->speculation_tokens);
    if (tokens > 1) {
        buf_printf(out, "; a step of an answer checks up to %u guessed tokens", tokens - 1);
    } else {
        buf_printf(out, "; guessed tokens are not checked: %s", generator->why_one.text);
    }
}

void model_log_batches(const struct model *model, const struct error *why_not_more)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    struct buf line;
    buf_init(&line, TEXT_BYTES_MAX);
    print_name(model, &line);
    print_batches(model, &line);
    if (model->rows_max > 1 && why_not_more) {
        buf_printf(&line, ", not more: %s", why_not_more->text);
    }
    if (model->trial.was_kept) {
        buf_add_str(&line, "; an earlier start has proven that");
    }
    if (model->trial.is_open) {
        buf_add_str(&line, "; the trial goes on when the device is idle");
    }
    if (model->generator && generator_has_cache(model->generator)) {
        print_guesses(model->generator, &line);
    }
    enum log_level level = model->trial.is_open && model->trial.vain > 0 ? LOG_WARNING : LOG_INFO;
    log_line(level, "%.*s", SPAN_FMT(buf_span(&line)));
    buf_fini(&line);
}
