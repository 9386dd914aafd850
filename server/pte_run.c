/* SPDX-License-Identifier: MIT */
/*
 * Each run is a fresh invocation with the inputs decoded again, so that runs do not see each other.
 * The time is that of preparing, submitting and waiting; decoding is not in it.
 */
#include "config.h"

#include "server/pte_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <uv.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "protocol/json.h"
#include "protocol/tensor_text.h"
#include "runtime/invocation.h"
#include "runtime/names.h"
#include "runtime/program.h"
#include "server/args.h"
#include "server/npy.h"
#include "server/options.h"
#include "server/pte_input.h"

#define RUN_INPUTS_MAX 256
#define RUN_REPEAT_MAX 10000000
#define RUN_WORKERS_MAX 1024
#define RUN_RING_BYTES ((size_t)4 << 30)
#define RUN_TEXT_BYTES_MAX ((size_t)4 << 30)
#define RUN_WARM_UPS 3

struct run_options {
    const char *path, *method, *output, *device, *cpu_level;
    const char *inputs[RUN_INPUTS_MAX]; /* NAME=X */
    const char *data[RT_DATA_FILES_MAX];
    uint32_t input_count, data_count;
    uint64_t repeat, workers;
};

struct run {
    const struct run_options *options;
    struct hal_device *device;        /* shared: ref held */
    struct hal_pool *pool;            /* owned */
    struct rt_program *program;       /* shared: ref held */
    struct rt_method *method;         /* borrowed from |program| */
    const char **texts;               /* owned; X of each input, or NULL */
    struct rt_invocation *invocation; /* owned; the last one */
    uv_sem_t done;
    enum status done_status;
};

/* ---- the command line ------------------------------------------------------------------------ */

static enum status take_number(struct args *args, const struct arg *arg, uint64_t max,
                               uint64_t *out, struct error *err)
{
    const char *text;
    TRY(args_value(args, arg, &text, err));
    enum status status = options_parse_number(text, OPTION_COUNT, 1, max, out, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(arg->option));
}

static enum status set_option(struct run_options *options, struct args *args, const struct arg *arg,
                              struct error *err)
{
    const struct {
        const char *name, **text;
    } texts[] = {
        {"--method", &options->method},
        {"--output", &options->output},
        {"--device", &options->device},
        {"--cpu", &options->cpu_level},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (span_is(arg->option, texts[i].name)) {
            return args_value(args, arg, texts[i].text, err);
        }
    }
    if (span_is(arg->option, "--repeat")) {
        return take_number(args, arg, RUN_REPEAT_MAX, &options->repeat, err);
    }
    if (span_is(arg->option, "--workers")) {
        return take_number(args, arg, RUN_WORKERS_MAX, &options->workers, err);
    }
    if (span_is(arg->option, "--data")) {
        return args_add_value(args, arg, options->data, &options->data_count, RT_DATA_FILES_MAX,
                              err);
    }
    if (span_is(arg->option, "--input")) {
        return args_add_value(args, arg, options->inputs, &options->input_count, RUN_INPUTS_MAX,
                              err);
    }
    return args_refuse(arg, err);
}

static enum status parse_options(int argc, char *const argv[], struct run_options *options,
                                 struct error *err)
{
    struct args args = {.count = argc, .items = argv};
    for (struct arg arg; args_next(&args, &arg);) {
        if (arg.option.len > 0) {
            TRY(set_option(options, &args, &arg, err));
        } else if (options->path) {
            return error_set(err, ST_INVALID, "one FILE only, got '%s' too", arg.text);
        } else {
            options->path = arg.text;
        }
    }
    return options->path ? ST_OK : error_set(err, ST_INVALID, "expected FILE");
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status find_method(struct run *run, struct error *err)
{
    const char *name = run->options->method;
    run->method = name ? rt_program_find_method(run->program, span_str(name))
                       : rt_program_default_method(run->program);
    if (!run->method) {
        return error_set(err, ST_NOT_FOUND, "%s: no method '%s'", run->options->path,
                         name ? name : "forward");
    }
    const struct error *failure = rt_method_failure(run->method);
    return failure ? error_set(err, failure->code, "method '%s': %s", rt_method_name(run->method),
                               failure->text)
                   : ST_OK;
}

/* NAME=X to its input, by name or alias. */
static enum status assign_input(struct run *run, const char *option, struct error *err)
{
    uint32_t count = rt_method_input_count(run->method), index = 0;
    const char *equals = strchr(option, '=');
    struct span name = span_of(option, equals ? (size_t)(equals - option) : strlen(option));
    while (index < count && !rt_io_is_called(rt_method_input(run->method, index), name)) {
        index++;
    }
    if (!equals || index == count) {
        char names[RT_NAMES_TEXT_MAX];
        return error_set(err, ST_INVALID, "--input %.64s: expected NAME=X, where NAME is %s",
                         option, rt_names_print(run->method, RT_INPUT, names));
    }
    if (run->texts[index]) {
        return error_set(err, ST_INVALID, "--input %.64s: %s is given twice", option,
                         rt_method_input(run->method, index)->label);
    }
    run->texts[index] = equals + 1;
    return ST_OK;
}

static enum status assign_inputs(struct run *run, struct error *err)
{
    run->texts = calloc(rt_method_input_count(run->method) + 1, sizeof(run->texts[0]));
    if (!run->texts) {
        return error_set(err, ST_EXHAUSTED, "out of memory");
    }
    for (uint32_t i = 0; i < run->options->input_count; i++) {
        TRY(assign_input(run, run->options->inputs[i], err));
    }
    return ST_OK;
}

static enum status load(struct run *run, struct error *err)
{
    const struct hal_device_options device_options = {
        .workers = (uint32_t)run->options->workers,
        .cpu_level = run->options->cpu_level,
    };
    const char *name = run->options->device ? run->options->device : "cpu";
    TRY(hal_device_open(name, &device_options, &run->device, err));
    size_t half = hal_device_props(run->device)->memory_bytes_max / 2;
    TRY(hal_pool_new(run->device, half < RUN_RING_BYTES ? half : RUN_RING_BYTES, &run->pool, err));
    const struct rt_program_options options = {
        .device = run->device,
        .data_paths = run->options->data,
        .data_count = run->options->data_count,
    };
    TRY(rt_program_load(run->options->path, &options, &run->program, err));
    TRY(find_method(run, err));
    return assign_inputs(run, err);
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    struct run *run = arg;
    run->done_status = status;
    uv_sem_post(&run->done);
}

static enum status set_inputs(struct run *run, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        const char *text = run->texts[i];
        enum status status = text ? pte_input_set(run->invocation, i, text, err)
                                  : pte_input_fill(run->invocation, i, err);
        if (status != ST_OK) {
            return error_prefix(err, "%s: ", rt_method_input(run->method, i)->name);
        }
    }
    return ST_OK;
}

/* Why the run failed, and which element of which input is to blame, if one is. */
static enum status explain_run(const struct run *run, struct error *err)
{
    const struct rt_culprit *culprit = rt_invocation_culprit(run->invocation);
    char element[RT_CULPRIT_TEXT_MAX];
    error_set(err, run->done_status, "%s", rt_invocation_error(run->invocation)->text);
    return culprit->is_known
               ? error_prefix(err, "%s%s: ", rt_method_input(run->method, culprit->input)->name,
                              rt_culprit_print(culprit, element))
               : error_prefix(err, "run: ");
}

/* One invocation, kept for its results until the next. */
static enum status run_once(struct run *run, uint64_t *out_ns, struct error *err)
{
    rt_invocation_free(run->invocation);
    run->invocation = NULL;
    TRY(rt_invocation_new(run->method, run->pool, &run->invocation, err));
    TRY(set_inputs(run, err));
    uint64_t start = uv_hrtime();
    TRY(rt_invocation_prepare(run->invocation, err));
    rt_invocation_submit(run->invocation, HAL_CALLER_WAITS, on_done, run);
    uv_sem_wait(&run->done);
    *out_ns = uv_hrtime() - start;
    return run->done_status == ST_OK ? ST_OK : explain_run(run, err);
}

static int compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static double quantile_us(const uint64_t *sorted, uint64_t count, double q)
{
    return (double)sorted[(uint64_t)((double)(count - 1) * q + 0.5)] / 1000;
}

static enum status run_repeatedly(struct run *run, struct error *err)
{
    uint64_t count = run->options->repeat, ignored;
    for (int i = 0; i < RUN_WARM_UPS; i++) {
        TRY(run_once(run, &ignored, err));
    }
    uint64_t *times = calloc(count, sizeof(times[0]));
    if (!times) {
        return error_set(err, ST_EXHAUSTED, "out of memory");
    }
    enum status status = ST_OK;
    for (uint64_t i = 0; status == ST_OK && i < count; i++) {
        status = run_once(run, &times[i], err);
    }
    if (status == ST_OK) {
        qsort(times, count, sizeof(times[0]), compare_ns);
        printf("median_us: %.1f\n", quantile_us(times, count, 0.5));
        printf("p10_us: %.1f\np90_us: %.1f\nmin_us: %.1f\nmax_us: %.1f\n",
               quantile_us(times, count, 0.1), quantile_us(times, count, 0.9),
               quantile_us(times, count, 0), quantile_us(times, count, 1));
    }
    free(times);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static enum status write_file(const char *path, const struct buf *head, struct span bytes,
                              struct error *err)
{
    FILE *file = fopen(path, "wb");
    bool is_ok = file && fwrite(head->ptr, 1, head->len, file) == head->len &&
                 (bytes.len == 0 || fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len);
    int saved = errno;
    if (file && fclose(file) != 0) {
        saved = errno;
        is_ok = false;
    }
    return is_ok ? ST_OK : error_set(err, ST_SYSTEM, "%s: %s", path, strerror(saved));
}

static enum status write_result(const struct run *run, uint32_t index, struct error *err)
{
    const struct rt_io *io = rt_method_result(run->method, index);
    const struct rt_result *result = rt_invocation_result(run->invocation, index);
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s.npy", run->options->output, io->name) >= PATH_MAX) {
        return error_set(err, ST_INVALID, "--output: the path is too long");
    }
    struct buf head;
    buf_init(&head, 1024);
    if (io->kind == RT_IO_STRING) {
        npy_print_string_head(&head, result->bytes.len);
    } else {
        npy_print_head(&head, io->dtype, &result->shape);
    }
    enum status status = write_file(path, &head, result->bytes, err);
    buf_fini(&head);
    return status;
}

/* "output_0: FP32 [2,3] [...]" */
static enum status print_result(const struct run *run, uint32_t index, struct error *err)
{
    const struct rt_io *io = rt_method_result(run->method, index);
    const struct rt_result *result = rt_invocation_result(run->invocation, index);
    struct buf out;
    char shape[SHAPE_TEXT_MAX];
    buf_init(&out, RUN_TEXT_BYTES_MAX);
    if (io->kind == RT_IO_STRING) {
        buf_printf(&out, "%s: BYTES [1] ", io->name);
        json_print_string(&out, result->bytes);
    } else {
        buf_printf(&out, "%s: %s %s ", io->name, dtype_infos[io->dtype].oip,
                   shape_print(&result->shape, shape));
        tensor_text_print(&out, io->dtype, result->bytes.ptr,
                          result->bytes.len / dtype_bytes(io->dtype), NUMBER_NAN_TOKEN);
    }
    buf_add_char(&out, '\n');
    bool is_ok = !buf_failed(&out) && fwrite(out.ptr, 1, out.len, stdout) == out.len;
    buf_fini(&out);
    return is_ok ? ST_OK : error_set(err, ST_SYSTEM, "the result cannot be printed");
}

static enum status show_results(const struct run *run, struct error *err)
{
    if (run->options->output && mkdir(run->options->output, 0777) < 0 && errno != EEXIST) {
        return error_set(err, ST_SYSTEM, "--output %s: %s", run->options->output, strerror(errno));
    }
    for (uint32_t i = 0; i < rt_method_result_count(run->method); i++) {
        if (rt_method_result(run->method, i)->kind != RT_IO_NONE) {
            TRY(run->options->output ? write_result(run, i, err) : print_result(run, i, err));
        }
    }
    return ST_OK;
}

static enum status run_and_show(struct run *run, struct error *err)
{
    TRY(load(run, err));
    if (run->options->repeat) {
        TRY(run_repeatedly(run, err));
        return run->options->output ? show_results(run, err) : ST_OK;
    }
    uint64_t ignored;
    TRY(run_once(run, &ignored, err));
    return show_results(run, err);
}

static void run_fini(struct run *run)
{
    rt_invocation_free(run->invocation);
    free(run->texts);
    rt_program_unref(run->program);
    hal_pool_free(run->pool);
    if (run->device) {
        hal_device_unref(run->device);
    }
    uv_sem_destroy(&run->done);
}

enum status pte_run(int argc, char *const argv[], struct error *err)
{
    static struct run_options options;
    TRY(parse_options(argc, argv, &options, err));
    struct run run = {.options = &options};
    if (uv_sem_init(&run.done, 0) < 0) {
        return error_set(err, ST_SYSTEM, "no semaphore");
    }
    enum status status = run_and_show(&run, err);
    run_fini(&run);
    return status;
}
