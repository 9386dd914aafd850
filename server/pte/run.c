/* SPDX-License-Identifier: MIT */
/* Each run is a fresh invocation with inputs decoded again, so that runs do not affect each other.
 * The measured time covers preparing, submitting and waiting, but not decoding. */
#include "config.h"

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
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/program/example.h"
#include "runtime/program/names.h"
#include "runtime/program/program.h"
#include "runtime/pte/files.h"
#include "server/process/args.h"
#include "server/process/options.h"
#include "server/pte/input.h"
#include "server/pte/npy.h"
#include "server/pte/print.h"
#include "server/pte/pte.h"

#define RUN_INPUTS_MAX 256
#define RUN_REPEAT_MAX 10000000
#define RUN_WORKERS_MAX 1024
#define RUN_RING_BYTES ((size_t)4 << 30)
#define RUN_TEXT_BYTES_MAX ((size_t)1 << 30)
#define RUN_WARM_UPS 3

struct run_options {
    const char *path, *method, *output, *device, *cpu_level;
    const char *inputs[RUN_INPUTS_MAX]; /* NAME=X */
    const char *shapes[RUN_INPUTS_MAX]; /* NAME=2x3x4 */
    const char *data[RT_DATA_FILES_MAX];
    uint32_t input_count, shape_count, data_count;
    uint64_t repeat, workers, top;
    bool has_top;
};

/* An input: its description on the command line, and its value. */
struct run_input {
    const char *text; /* X, or NULL: a pattern */
    bool has_shape;   /* shape from --shape, or that of the content */
    struct shape shape;
};

struct run {
    const struct run_options *options;
    struct hal_device *device;        /* shared: ref held */
    struct hal_pool *pool;            /* owned */
    struct rt_program *program;       /* shared: ref held */
    struct rt_method *method;         /* borrowed from |program| */
    struct run_input *inputs;         /* owned; by raw input */
    bool is_chosen;                   /* all inputs have their shapes */
    struct rt_invocation *invocation; /* owned; the last invocation */
    uv_sem_t done;
    enum status done_status;
};

/* ---- the command line ------------------------------------------------------------------------ */

static enum status take_number(struct args *args, const struct arg *arg, uint64_t min, uint64_t max,
                               uint64_t *out, struct error *err)
{
    const char *text;
    TRY(args_value(args, arg, &text, err));
    enum status status = options_parse_number(text, OPTION_COUNT, min, max, out, err);
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
        return take_number(args, arg, 1, RUN_REPEAT_MAX, &options->repeat, err);
    }
    if (span_is(arg->option, "--top-k")) {
        options->has_top = true;
        return take_number(args, arg, 0, PTE_PRINT_TOP_MAX, &options->top, err);
    }
    if (span_is(arg->option, "--workers")) {
        return take_number(args, arg, 1, RUN_WORKERS_MAX, &options->workers, err);
    }
    if (span_is(arg->option, "--data")) {
        return args_add_value(args, arg, options->data, &options->data_count, RT_DATA_FILES_MAX,
                              err);
    }
    if (span_is(arg->option, "--input")) {
        return args_add_value(args, arg, options->inputs, &options->input_count, RUN_INPUTS_MAX,
                              err);
    }
    if (span_is(arg->option, "--shape")) {
        return args_add_value(args, arg, options->shapes, &options->shape_count, RUN_INPUTS_MAX,
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
    if (pte_find_method(run->program, run->options->method, &run->method, err) != ST_OK) {
        return error_prefix(err, "%s: ", run->options->path);
    }
    const struct error *failure = rt_method_failure(run->method);
    return failure ? error_set(err, failure->code, "method '%s': %s", rt_method_name(run->method),
                               failure->text)
                   : ST_OK;
}

/* Finds the input that |option|, NAME=X, names (or its alias), and X; |form| describes X for
 * errors. */
static enum status find_input(const struct run *run, const char *option, const char *form,
                              struct run_input **out_input, const char **out_value,
                              struct error *err)
{
    char names[RT_NAMES_TEXT_MAX];
    uint32_t count = rt_method_input_count(run->method), index = 0;
    const char *equals = strchr(option, '=');
    struct span name = span_of(option, equals ? (size_t)(equals - option) : strlen(option));
    while (index < count && !rt_io_is_called(rt_method_input(run->method, index), name)) {
        index++;
    }
    if (!equals || index == count) {
        return error_set(err, ST_INVALID, "%.64s: expected NAME=%s, where NAME is %s", option, form,
                         rt_names_print(run->method, RT_INPUT, names));
    }
    *out_input = &run->inputs[index];
    *out_value = equals + 1;
    return ST_OK;
}

static enum status assign_inputs(struct run *run, struct error *err)
{
    struct run_input *input;
    const char *value;
    run->inputs = calloc((size_t)rt_method_input_count(run->method) + 1, sizeof(*run->inputs));
    if (!run->inputs) {
        return error_set(err, ST_EXHAUSTED, "out of memory");
    }
    for (uint32_t i = 0; i < run->options->input_count; i++) {
        const char *option = run->options->inputs[i];
        if (find_input(run, option, "X", &input, &value, err) != ST_OK) {
            return error_prefix(err, "--input ");
        }
        if (input->text) {
            return error_set(err, ST_INVALID, "--input %.64s: %s is given twice", option,
                             rt_method_input(run->method, (uint32_t)(input - run->inputs))->label);
        }
        input->text = value;
    }
    for (uint32_t i = 0; i < run->options->shape_count; i++) {
        const char *option = run->options->shapes[i];
        if (find_input(run, option, "2x3x4", &input, &value, err) != ST_OK) {
            return error_prefix(err, "--shape ");
        }
        const struct rt_io *io = rt_method_input(run->method, (uint32_t)(input - run->inputs));
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
    const struct rt_load_options options = {
        .device = run->device,
        .data_paths = run->options->data,
        .data_count = run->options->data_count,
    };
    TRY(rt_load_program(run->options->path, &options, &run->program, err));
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

static bool is_tensor(const struct run *run, uint32_t index)
{
    return rt_method_input(run->method, index)->kind == RT_IO_TENSOR;
}

static enum status prefix_input(const struct run *run, uint32_t index, struct error *err)
{
    return error_prefix(err, "%s: ", rt_method_input(run->method, index)->name);
}

/* " input_0=1x3x224x224" for all tensors, or for those whose shape is our choice. */
static void print_shapes(const struct run *run, const struct shape *const *given, FILE *to)
{
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        const struct rt_io *io = rt_method_input(run->method, i);
        const struct shape *shape = &run->inputs[i].shape;
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
static void note_choice(const struct run *run, const struct shape *const *given)
{
    bool has_choice = false;
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        has_choice |=
            !given[i] && is_tensor(run, i) && rt_method_input(run->method, i)->dynamic_dims != 0;
    }
    if (has_choice) {
        fputs("pte: shapes chosen:", stderr);
        print_shapes(run, given, stderr);
        fputs(" (--shape sets others)\n", stderr);
    }
}

static enum status choose_with(struct run *run, const struct shape **given, struct shape *shapes,
                               struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        given[i] = run->inputs[i].has_shape ? &run->inputs[i].shape : NULL;
    }
    TRY(rt_example_shapes(run->method, given, shapes, err));
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        run->inputs[i].shape = shapes[i];
    }
    note_choice(run, given);
    return ST_OK;
}

/* Chooses shapes for inputs without one, to match the inputs that have one. */
static enum status choose_shapes(struct run *run, struct error *err)
{
    uint32_t count = rt_method_input_count(run->method), open = 0;
    for (uint32_t i = 0; i < count; i++) {
        open += is_tensor(run, i) && !(run->inputs[i].text && run->inputs[i].has_shape);
    }
    run->is_chosen = true;
    if (open == 0) {
        return ST_OK;
    }
    const struct shape **given = calloc((size_t)count + 1, sizeof(*given));
    struct shape *shapes = calloc((size_t)count + 1, sizeof(*shapes));
    enum status status = given && shapes ? choose_with(run, given, shapes, err)
                                         : error_set(err, ST_EXHAUSTED, "out of memory");
    free(given);
    free(shapes);
    return status;
}

/* Inputs with a content come first: the shapes of patterns follow from theirs. */
static enum status set_inputs(struct run *run, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        struct run_input *input = &run->inputs[i];
        const struct shape *wanted = input->has_shape ? &input->shape : NULL;
        if (!input->text) {
            continue;
        }
        if (pte_input_set(run->invocation, i, input->text, wanted, &input->shape, err) != ST_OK) {
            return prefix_input(run, i, err);
        }
        input->has_shape = is_tensor(run, i);
    }
    TRY(run->is_chosen ? ST_OK : choose_shapes(run, err));
    for (uint32_t i = 0; i < rt_method_input_count(run->method); i++) {
        if (!run->inputs[i].text &&
            pte_input_fill(run->invocation, i, &run->inputs[i].shape, err) != ST_OK) {
            return prefix_input(run, i, err);
        }
    }
    return ST_OK;
}

/* Why the run failed, with the element that is to blame, if one is. */
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

/* One invocation, kept for its results until the next one. */
static enum status run_once(struct run *run, uint64_t *out_ns, struct error *err)
{
    rt_invocation_free(run->invocation);
    run->invocation = NULL;
    TRY(rt_invocation_new(run->method, run->pool, &run->invocation, err));
    TRY(set_inputs(run, err));
    uint64_t start = uv_hrtime();
    TRY(rt_invocation_prepare(run->invocation, RT_PREPARE_ALL, err));
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
        fputs("shapes:", stdout);
        print_shapes(run, NULL, stdout);
        printf("\nmedian_us: %.1f\n", quantile_us(times, count, 0.5));
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
    return is_ok ? ST_OK : error_set(err, ST_UNWRITTEN, "--output: %s: %s", path, strerror(saved));
}

static enum status write_result(const struct run *run, uint32_t index, struct error *err)
{
    const struct rt_io *io = rt_method_result(run->method, index);
    const struct rt_result *result = rt_invocation_result(run->invocation, index);
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s.npy", run->options->output, io->name) >= PATH_MAX) {
        return error_set(err, ST_UNWRITTEN, "--output: the path is too long");
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

static enum status print_result(const struct run *run, uint32_t index, struct error *err)
{
    const struct rt_io *io = rt_method_result(run->method, index);
    const struct rt_result *result = rt_invocation_result(run->invocation, index);
    const struct pte_print_top top = {
        .count = run->options->has_top ? (uint32_t)run->options->top : PTE_PRINT_TOP_DEFAULT,
        .is_asked = run->options->has_top,
    };
    struct buf out;
    buf_init(&out, RUN_TEXT_BYTES_MAX);
    if (io->kind == RT_IO_STRING) {
        buf_printf(&out, "%s: string ", io->name);
        json_print_string(&out, result->bytes);
        buf_add_char(&out, '\n');
    } else if (io->kind != RT_IO_TENSOR) {
        pte_print_scalar(&out, io->name, io->dtype, result->bytes.ptr);
    } else {
        pte_print_tensor(&out, io->name, io->dtype, &result->shape, result->bytes.ptr, &top);
    }
    enum status status = pte_write(&out, err);
    buf_fini(&out);
    return status;
}

static enum status show_results(const struct run *run, struct error *err)
{
    const char *folder = run->options->output;
    for (uint32_t i = 0; i < rt_method_result_count(run->method); i++) {
        if (rt_method_result(run->method, i)->kind != RT_IO_NONE) {
            TRY(folder ? write_result(run, i, err) : print_result(run, i, err));
        }
    }
    return ST_OK;
}

static enum status make_folder(const char *path, struct error *err)
{
    struct stat info;
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        return error_set(err, ST_UNWRITTEN, "--output %s: %s", path, strerror(errno));
    }
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
        return error_set(err, ST_UNWRITTEN, "--output %s: is a file, expected a folder", path);
    }
    return ST_OK;
}

static enum status run_and_show(struct run *run, struct error *err)
{
    TRY(load(run, err));
    TRY(run->options->output ? make_folder(run->options->output, err) : ST_OK);
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
    free(run->inputs);
    rt_program_unref(run->program);
    hal_pool_free(run->pool);
    if (run->device) {
        hal_device_unref(run->device);
    }
    uv_sem_destroy(&run->done);
}

static enum status run_once_or_more(int argc, char *const argv[], struct error *err)
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

static int run(int argc, char *const argv[])
{
    struct error err;
    return pte_finish(&pte_run_command, run_once_or_more(argc, argv, &err), &err);
}

const struct pte_command pte_run_command = {
    .name = "run",
    .usage = "run [OPTION]... FILE.pte",
    .summary = "run a method and print its results, or its time",
    .help =
        "Runs a method once and prints its results: small ones whole, large ones shortened, with\n"
        "their range and, of scores, the classes with the largest ones.\n"
        "\n"
        "  --method NAME        the method (forward, or the only one)\n"
        "  --input NAME=X       X is FILE.npy, FILE.bin:2x3x4 (raw little-endian and dims) or "
        "JSON\n"
        "                       text; repeatable; inputs that are not given are filled by a fixed\n"
        "                       pattern\n"
        "  --shape NAME=2x3x4   the shape of an input; repeatable (the content's; of a pattern: 1\n"
        "                       for a batch, else what the file allows; printed)\n"
        "  --top-k N            print the N largest values of each row of floats; 0: of none (5, "
        "of\n"
        "                       rows that look like scores)\n"
        "  --output DIR         write NAME.npy for each result instead of printing it\n"
        "  --repeat N           run N times, print the shapes, the median and the spread in us\n"
        "  --data FILE          look for external weights in this .ptd file instead of beside\n"
        "                       FILE.pte; repeatable\n"
        "  --device NAME        one of `pte devices`, or auto: a GPU if there is one (cpu)\n"
        "  --workers N          threads that compute (as many as the process may use)\n"
        "  --cpu LEVEL          highest instruction set: generic, avx2, avx512, ... (the best)\n"
        "\n"
        "Examples:\n"
        "  pte run add.pte --input 'input_0=[[1,2,3],[4,5,6]]' --input input_1=b.npy\n"
        "  pte run mobilenet.pte --input input_0=cat.npy --top-k 3\n"
        "  pte run mobilenet.pte --shape input_0=8x3x224x224 --repeat 100 --workers 1\n",
    .run = run,
};
