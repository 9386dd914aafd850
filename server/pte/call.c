/* SPDX-License-Identifier: MIT */
/* Each call is a fresh invocation with inputs decoded again, so that calls do not affect each
 * other. The measured time covers preparing, submitting and waiting, but not decoding. */
#include "config.h"

#include "server/pte/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/profile.h"
#include "runtime/program/example.h"
#include "runtime/program/names.h"
#include "server/card/card.h"
#include "server/process/options.h"
#include "server/pte/input.h"
#include "server/pte/pte.h"

#define CALL_WORKERS_MAX 1024
#define CALL_RING_BYTES ((size_t)4 << 30)

/* ---- the command line ------------------------------------------------------------------------ */

enum status pte_call_number(struct args *args, const struct arg *arg, uint64_t min, uint64_t max,
                            uint64_t *out, struct error *err)
{
    const char *text;
    TRY(args_value(args, arg, &text, err));
    enum status status = options_parse_number(text, OPTION_COUNT, min, max, out, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(arg->option));
}

/* |take| gets what is not one of |options|. */
static enum status set_option(struct pte_call_options *options, struct args *args,
                              const struct arg *arg, pte_call_take_f *take, void *own,
                              struct error *err)
{
    const struct {
        const char *name, **text;
    } texts[] = {
        {"--method", &options->method},
        {"--device", &options->device},
        {"--cpu", &options->cpu_level},
        {"--card", &options->card},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (span_is(arg->option, texts[i].name)) {
            return args_value(args, arg, texts[i].text, err);
        }
    }
    if (span_is(arg->option, "--workers")) {
        return pte_call_number(args, arg, 1, CALL_WORKERS_MAX, &options->workers, err);
    }
    if (span_is(arg->option, "--precision")) {
        return pte_precision(args, arg, &options->precision, err);
    }
    if (span_is(arg->option, "--data")) {
        return args_add_value(args, arg, options->data, &options->data_count, RT_DATA_FILES_MAX,
                              err);
    }
    if (span_is(arg->option, "--input")) {
        return args_add_value(args, arg, options->inputs, &options->input_count,
                              PTE_CALL_INPUTS_MAX, err);
    }
    if (span_is(arg->option, "--shape")) {
        return args_add_value(args, arg, options->shapes, &options->shape_count,
                              PTE_CALL_INPUTS_MAX, err);
    }
    return take(own, args, arg, err);
}

enum status pte_call_parse(int argc, char *const argv[], struct pte_call_options *options,
                           pte_call_take_f *take, void *own, struct error *err)
{
    struct args args = {.count = argc, .items = argv};
    options->precision = PRECISION_FAST;
    for (struct arg arg; args_next(&args, &arg);) {
        if (arg.option.len > 0) {
            TRY(set_option(options, &args, &arg, take, own, err));
        } else if (options->path) {
            return error_set(err, ST_INVALID, "one FILE only, got '%s' too", arg.text);
        } else {
            options->path = arg.text;
        }
    }
    return options->path ? ST_OK : error_set(err, ST_INVALID, "expected FILE");
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status find_method(struct pte_call *call, struct error *err)
{
    if (pte_find_method(call->program, call->options->method, &call->method, err) != ST_OK) {
        return error_prefix(err, "%s: ", call->options->path);
    }
    const struct error *failure = rt_method_failure(call->method);
    return failure ? error_set(err, failure->code, "method '%s': %s", rt_method_name(call->method),
                               failure->text)
                   : ST_OK;
}

/* Finds the input that |option|, NAME=X, names (or its alias), and X; |form| describes X for
 * errors. */
static enum status find_input(const struct pte_call *call, const char *option, const char *form,
                              struct pte_call_input **out_input, const char **out_value,
                              struct error *err)
{
    char names[RT_NAMES_TEXT_MAX];
    uint32_t count = rt_method_input_count(call->method), index = 0;
    const char *equals = strchr(option, '=');
    struct span name = span_of(option, equals ? (size_t)(equals - option) : strlen(option));
    while (index < count && !rt_io_is_called(rt_method_input(call->method, index), name)) {
        index++;
    }
    if (!equals || index == count) {
        return error_set(err, ST_INVALID, "%.64s: expected NAME=%s, where NAME is %s", option, form,
                         rt_names_print(call->method, RT_INPUT, names));
    }
    *out_input = &call->inputs[index];
    *out_value = equals + 1;
    return ST_OK;
}

static enum status assign_inputs(struct pte_call *call, struct error *err)
{
    struct pte_call_input *input;
    const char *value;
    call->inputs = calloc((size_t)rt_method_input_count(call->method) + 1, sizeof(*call->inputs));
    if (!call->inputs) {
        return error_set(err, ST_EXHAUSTED, "out of memory");
    }
    for (uint32_t i = 0; i < call->options->input_count; i++) {
        const char *option = call->options->inputs[i];
        if (find_input(call, option, "X", &input, &value, err) != ST_OK) {
            return error_prefix(err, "--input ");
        }
        if (input->text) {
            return error_set(
                err, ST_INVALID, "--input %.64s: %s is given twice", option,
                rt_method_input(call->method, (uint32_t)(input - call->inputs))->label);
        }
        input->text = value;
    }
    for (uint32_t i = 0; i < call->options->shape_count; i++) {
        const char *option = call->options->shapes[i];
        if (find_input(call, option, "2x3x4", &input, &value, err) != ST_OK) {
            return error_prefix(err, "--shape ");
        }
        const struct rt_io *io = rt_method_input(call->method, (uint32_t)(input - call->inputs));
        if (io->kind != RT_IO_TENSOR) {
            return error_set(err, ST_INVALID, "--shape %s: the input is no tensor", option);
        }
        if (input->has_shape) {
            return error_set(err, ST_INVALID, "--shape %.64s: %s is given twice", option,
                             io->label);
        }
        if (pte_input_parse_dims(value, &input->shape, err) != ST_OK) {
            return error_prefix(err, "--shape %s: ", option);
        }
        input->has_shape = true;
    }
    return ST_OK;
}

enum status pte_call_open(struct pte_call *call, const struct pte_call_options *options,
                          struct error *err)
{
    *call = (struct pte_call){.options = options};
    must(uv_sem_init(&call->done, 0) == 0);
    const struct hal_device_options device_options = {
        .workers = (uint32_t)call->options->workers,
        .cpu_level = call->options->cpu_level,
    };
    const char *name = call->options->device ? call->options->device : "cpu";
    TRY(hal_device_open(name, &device_options, &call->device, err));
    size_t half = hal_device_props(call->device)->memory_bytes_max / 2;
    TRY(hal_pool_new(call->device, half < CALL_RING_BYTES ? half : CALL_RING_BYTES, &call->pool,
                     err));
    const struct rt_load_options load_options = {
        .device = call->device,
        .data_paths = call->options->data,
        .data_count = call->options->data_count,
        .precision = call->options->precision,
    };
    TRY(rt_load_program(options->path, &load_options, &call->program, err));
    TRY(pte_apply_card(call->program, options->path, options->card, &call->card, err));
    TRY(find_method(call, err));
    return assign_inputs(call, err);
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    struct pte_call *call = arg;
    call->done_status = status;
    uv_sem_post(&call->done);
}

static bool is_tensor(const struct pte_call *call, uint32_t index)
{
    return rt_method_input(call->method, index)->kind == RT_IO_TENSOR;
}

static enum status prefix_input(const struct pte_call *call, uint32_t index, struct error *err)
{
    return error_prefix(err, "%s: ", rt_method_input(call->method, index)->name);
}

/* " input_0=1x3x224x224" for all tensors, or for those whose shape is our choice. */
static void print_shapes(const struct pte_call *call, const struct shape *const *given, FILE *to)
{
    for (uint32_t i = 0; i < rt_method_input_count(call->method); i++) {
        const struct rt_io *io = rt_method_input(call->method, i);
        const struct shape *shape = &call->inputs[i].shape;
        if (io->kind != RT_IO_TENSOR || (given && (given[i] || io->dynamic_dims == 0))) {
            continue;
        }
        fprintf(to, " %s=", io->name);
        for (uint8_t d = 0; d < shape->rank; d++) {
            fprintf(to, "%s%lld", d ? "x" : "", (long long)shape->dims[d]);
        }
    }
}

/* Prints the shapes that we chose, if others were possible. */
static void note_choice(const struct pte_call *call, const struct shape *const *given)
{
    bool has_choice = false;
    for (uint32_t i = 0; i < rt_method_input_count(call->method); i++) {
        has_choice |=
            !given[i] && is_tensor(call, i) && rt_method_input(call->method, i)->dynamic_dims != 0;
    }
    if (has_choice) {
        fputs("pte: shapes chosen:", stderr);
        print_shapes(call, given, stderr);
        fputs(" (--shape sets others)\n", stderr);
    }
}

static enum status choose_with(struct pte_call *call, const struct shape **given,
                               struct shape *shapes, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(call->method); i++) {
        given[i] = call->inputs[i].has_shape ? &call->inputs[i].shape : NULL;
    }
    TRY(rt_example_shapes(call->method, given, shapes, err));
    for (uint32_t i = 0; i < rt_method_input_count(call->method); i++) {
        call->inputs[i].shape = shapes[i];
    }
    note_choice(call, given);
    return ST_OK;
}

/* Chooses shapes for inputs without one, to match the inputs that have one. */
static enum status choose_shapes(struct pte_call *call, struct error *err)
{
    uint32_t count = rt_method_input_count(call->method), open = 0;
    for (uint32_t i = 0; i < count; i++) {
        open += is_tensor(call, i) && !(call->inputs[i].text && call->inputs[i].has_shape);
    }
    call->is_chosen = true;
    if (open == 0) {
        return ST_OK;
    }
    const struct shape **given = calloc((size_t)count + 1, sizeof(*given));
    struct shape *shapes = calloc((size_t)count + 1, sizeof(*shapes));
    enum status status = given && shapes ? choose_with(call, given, shapes, err)
                                         : error_set(err, ST_EXHAUSTED, "out of memory");
    free(given);
    free(shapes);
    return status;
}

/* Inputs with a content come first: the shapes of patterns follow from theirs. */
static enum status set_inputs(struct pte_call *call, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(call->method); i++) {
        struct pte_call_input *input = &call->inputs[i];
        const struct shape *wanted = input->has_shape ? &input->shape : NULL;
        if (!input->text) {
            continue;
        }
        if (pte_input_set(call->invocation, i, input->text, wanted, &input->shape, err) != ST_OK) {
            return prefix_input(call, i, err);
        }
        input->has_shape = is_tensor(call, i);
    }
    TRY(call->is_chosen ? ST_OK : choose_shapes(call, err));
    for (uint32_t i = 0; i < rt_method_input_count(call->method); i++) {
        if (!call->inputs[i].text &&
            pte_input_fill(call->invocation, i, &call->inputs[i].shape, err) != ST_OK) {
            return prefix_input(call, i, err);
        }
    }
    return ST_OK;
}

void pte_call_print_shapes(const struct pte_call *call, FILE *to)
{
    print_shapes(call, NULL, to);
}

/* Why the call failed, with the element that is to blame, if one is. */
static enum status explain(const struct pte_call *call, struct error *err)
{
    const struct rt_culprit *culprit = rt_invocation_culprit(call->invocation);
    char element[RT_CULPRIT_TEXT_MAX];
    error_set(err, call->done_status, "%s", rt_invocation_error(call->invocation)->text);
    return culprit->is_known
               ? error_prefix(err, "%s%s: ", rt_method_input(call->method, culprit->input)->name,
                              rt_culprit_print(culprit, element))
               : error_prefix(err, "run: ");
}

enum status pte_call_once(struct pte_call *call, uint64_t *out_ns, struct error *err)
{
    rt_invocation_free(call->invocation);
    call->invocation = NULL;
    TRY(rt_invocation_new(call->method, call->pool, &call->invocation, err));
    TRY(set_inputs(call, err));
    if (call->profile) {
        rt_invocation_profile(call->invocation, call->profile);
    }
    call->began_ns = uv_hrtime();
    TRY(rt_invocation_prepare(call->invocation, RT_PREPARE_ALL, err));
    rt_invocation_submit(call->invocation, HAL_CALLER_WAITS, on_done, call);
    uv_sem_wait(&call->done);
    *out_ns = uv_hrtime() - call->began_ns;
    return call->done_status == ST_OK ? ST_OK : explain(call, err);
}

void pte_call_close(struct pte_call *call)
{
    rt_invocation_free(call->invocation);
    free(call->inputs);
    card_free(call->card);
    rt_program_unref(call->program);
    hal_pool_free(call->pool);
    if (call->device) {
        hal_device_unref(call->device);
    }
    uv_sem_destroy(&call->done);
}

uint64_t pte_call_quantile(const uint64_t *sorted, uint64_t count, double q)
{
    must(count > 0 && q >= 0 && q <= 1);
    return sorted[(uint64_t)((double)(count - 1) * q + 0.5)];
}

int pte_call_compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}
