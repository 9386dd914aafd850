/* SPDX-License-Identifier: MIT */
/*
 * The command `pte inspect`: the content of a program. inspect_text.c prints the page for
 * people, inspect_json.c the JSON for programs; graphs, plans and the container have printers
 * of their own.
 */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "hal/device.h"
#include "runtime/load/load.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"
#include "runtime/pte/files.h"
#include "server/cli/cli.h"
#include "server/cli/inspect.h"
#include "server/cli/option.h"
#include "server/model/card/card.h"
#include "server/process/model_name.h"

#define INSPECT_TEXT_BYTES_MAX ((size_t)1 << 30)

enum inspect_what {
    INSPECT_PAGE,
    INSPECT_ALL,
    INSPECT_JSON,
    INSPECT_GRAPH,
    INSPECT_PLAN,
    INSPECT_VALUES
};

struct inspect_options {
    const char *path, *method, *device, *card;
    char place[PATH_MAX]; /* of |path|, if a folder was given */
    enum inspect_what what;
    const char *data[RT_DATA_FILES_MAX];
    uint32_t data_count;
    enum precision precision;
};

static enum status choose(struct inspect_options *options, enum inspect_what what,
                          struct error *err)
{
    if (options->what != INSPECT_PAGE && options->what != what) {
        return error_set(err, ST_INVALID,
                         "expected one of --all, --json, --graph, --plan and --values");
    }
    options->what = what;
    return ST_OK;
}

static enum status set_all(void *own, const char *value, struct error *err)
{
    (void)value;
    return choose(own, INSPECT_ALL, err);
}

static enum status set_json(void *own, const char *value, struct error *err)
{
    (void)value;
    return choose(own, INSPECT_JSON, err);
}

static enum status set_graph(void *own, const char *value, struct error *err)
{
    (void)value;
    return choose(own, INSPECT_GRAPH, err);
}

static enum status set_plan(void *own, const char *value, struct error *err)
{
    (void)value;
    return choose(own, INSPECT_PLAN, err);
}

static enum status set_values(void *own, const char *value, struct error *err)
{
    (void)value;
    return choose(own, INSPECT_VALUES, err);
}

static const struct cli_option own_options[] = {
    {.name = "all",
     .type = OPTION_SWITCH,
     .set = set_all,
     .doc = "also the container, its tables and the signatures",
     .more = "The tables have the operators and delegates that methods call."},
    {.name = "json",
     .type = OPTION_SWITCH,
     .set = set_json,
     .doc = "all of it as one JSON object; pte(1) says what is in it"},
    {.name = "graph",
     .type = OPTION_SWITCH,
     .set = set_graph,
     .doc = "the graph of each method after the passes instead",
     .more =
         "Graphs and plans name weights and mutable buffers as the file does.\nIf the exporter "
         "kept source lines\n.Pq Ql emit_stacktrace ,\nthey also show the line of the model's "
         "source for each node.\n.Ql handle\nis the exporter's number of a node in a delegate's "
         "payload.\nThe text is the same for the same file on one kind of processor."},
    {.name = "plan",
     .type = OPTION_SWITCH,
     .set = set_plan,
     .doc = "the workspace, the dispatches and the barriers between them, at the largest sizes, "
            "and how many there would be if nothing was fused"},
    {.name = "values",
     .type = OPTION_SWITCH,
     .set = set_values,
     .doc = "the intermediate values that `pte run --dump` writes, in the order of the program: "
            "their names, types and places in the source or a payload"},
    {.name = "method",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct inspect_options, method),
     .doc = "the graph, plan or values of this method alone"},
    {.name = "device",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct inspect_options, device),
     .preset = "cpu",
     .doc = "as it is for this device: one that `pte devices` lists, or auto"},
    {.name = "precision",
     .value = "MODE",
     .type = OPTION_PRECISION,
     .at = offsetof(struct inspect_options, precision),
     .preset = "fast",
     .doc = "for floats that are computed so: exact, fast or bf16"},
    {.name = "data",
     .value = "FILE",
     .type = OPTION_FILES,
     .at = offsetof(struct inspect_options, data),
     .count_at = offsetof(struct inspect_options, data_count),
     .max = RT_DATA_FILES_MAX,
     .doc = "look for external weights in this .ptd file instead of beside FILE.pte; repeatable"},
    {.name = "card",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct inspect_options, card),
     .preset = "FILE.card.json beside FILE.pte, if there is one",
     .doc = "names of inputs and outputs are in this card"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "inspect", .options = own_options},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct inspect_options *options = own;
    return cli_take_only(&options->path, "FILE", text, err);
}

static enum status parse_inspect(int argc, char *const argv[], struct inspect_options *out,
                                 struct error *err)
{
    TRY(cli_option_parse(&cli_inspect_command, argc, argv, out, err));
    if (out->method && out->what != INSPECT_GRAPH && out->what != INSPECT_PLAN &&
        out->what != INSPECT_VALUES) {
        return error_set(err, ST_INVALID, "--method: only with --graph, --plan or --values");
    }
    return out->path ? cli_enter_folder(&out->path, out->place, err)
                     : error_set(err, ST_INVALID, "expected FILE");
}

/* ---- facts ----------------------------------------------------------------------------------- */

static size_t add_or_max(size_t a, size_t b)
{
    size_t sum;
    return add_size(a, b, &sum) ? sum : SIZE_MAX;
}

/* Bytes of the inputs, and pointers to their shapes. */
static enum status add_inputs(const struct rt_method *method, struct call_memory *memory,
                              const struct shape **pointers, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        size_t bytes = 0;
        pointers[i] = io->kind == RT_IO_TENSOR ? &memory->shapes[i] : NULL;
        if (pointers[i]) {
            TRY(shape_bytes(pointers[i], io->dtype, &bytes, err));
        }
        memory->bytes = add_or_max(memory->bytes, bytes);
    }
    return ST_OK;
}

static enum status choose_shapes(struct rt_method *method, bool is_largest, struct shape *shapes,
                                 struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        shapes[i] = rt_method_input(method, i)->shape;
    }
    return is_largest ? ST_OK : rt_example_shapes(method, NULL, shapes, err);
}

static enum status measure(struct rt_method *method, bool is_largest, struct call_memory *memory,
                           const struct shape **pointers, struct rt_result_info *infos,
                           struct error *err)
{
    size_t bytes;
    TRY(choose_shapes(method, is_largest, memory->shapes, err));
    memory->has_shapes = true;
    TRY(add_inputs(method, memory, pointers, err));
    TRY(rt_method_measure(method, pointers, infos, &bytes, err));
    memory->bytes = add_or_max(memory->bytes, bytes);
    memory->is_known = true;
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        memory->is_known &= !infos[i].is_tensor || infos[i].is_known;
    }
    return ST_OK;
}

enum status call_memory_measure(struct rt_method *method, bool is_largest, struct call_memory *out,
                                struct error *err)
{
    size_t inputs = (size_t)rt_method_input_count(method) + 1;
    size_t results = (size_t)rt_method_result_count(method) + 1;
    const struct shape **pointers = calloc(inputs, sizeof(*pointers));
    struct rt_result_info *infos = calloc(results, sizeof(*infos));
    *out = (struct call_memory){.shapes = calloc(inputs, sizeof(*out->shapes))};
    enum status status = pointers && infos && out->shapes
                             ? measure(method, is_largest, out, pointers, infos, err)
                             : error_no_memory(err, "the description");
    free(pointers);
    free(infos);
    /* The sizes exclude each other or are impossible: then nothing is known. */
    return status == ST_INVALID || status == ST_TOO_LARGE ? ST_OK : status;
}

void call_memory_fini(struct call_memory *memory)
{
    free(memory->shapes);
    memory->shapes = NULL;
}

bool inspect_is_default(const struct inspected *it, const struct rt_method *method)
{
    return rt_program_default_method(it->program) == method;
}

/* ---- graphs and plans ------------------------------------------------------------------------ */

/* The numbers of dispatches in a call of the plan, with and without fusion. */
static enum status print_fusion(struct rt_method *method, struct rt_method *unfused,
                                struct buf *out, struct error *err)
{
    struct hal_command_stats with, without;
    TRY(rt_method_place(method, NULL, NULL, &with, err));
    const struct error *failure = rt_method_failure(unfused);
    if (failure) {
        buf_printf(out, "without fusion: %s\n", failure->text);
        return ST_OK;
    }
    TRY(rt_method_place(unfused, NULL, NULL, &without, err));
    buf_printf(out, "fusion makes %u dispatches of %u, %u barriers of %u\n",
               hal_command_stats_dispatches(&with), hal_command_stats_dispatches(&without),
               with.barriers, without.barriers);
    return ST_OK;
}

/* |unfused| is the same program compiled without fusion, used for plans only. */
static enum status print_method(struct rt_method *method, struct rt_program *unfused,
                                struct buf *out, struct error *err)
{
    const char *name = rt_method_name(method);
    const struct error *failure = rt_method_failure(method);
    if (failure) {
        buf_printf(out, "method %s cannot be called: %s\n", name, failure->text);
        return ST_OK;
    }
    if (!unfused) {
        return rt_method_print_graph(method, out, err);
    }
    TRY(rt_method_print_plan(method, out, err));
    return print_fusion(method, rt_program_find_method(unfused, span_str(name)), out, err);
}

static enum status print_methods(const struct inspect_options *options, struct rt_program *program,
                                 struct rt_program *unfused, struct buf *out, struct error *err)
{
    if (options->method) {
        struct rt_method *method;
        TRY(cli_find_method(program, options->method, &method, err));
        return print_method(method, unfused, out, err);
    }
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        TRY(print_method(rt_program_method(program, i), unfused, out, err));
    }
    return ST_OK;
}

/* Reports once that there is nothing to print. */
static void print_names_note(const struct rt_program *program, struct buf *out)
{
    if (!rt_program_has_sources(program) && !rt_program_has_names(program)) {
        buf_add_str(out, "# the file names neither layers nor weights\n");
    }
}

static enum status print_graphs(const struct inspect_options *options, struct rt_load_options *load,
                                struct rt_program *program, struct buf *out, struct error *err)
{
    struct rt_program *unfused = NULL;
    if (options->what == INSPECT_PLAN) {
        load->is_unfused = true;
        TRY(rt_load_program(options->path, load, &unfused, err));
    }
    enum status status = print_methods(options, program, unfused, out, err);
    rt_program_unref(unfused);
    print_names_note(program, out);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* What is printed while the program is loaded. */
struct values {
    const char *wanted;           /* name of a method, or NULL */
    const struct rt_method *last; /* whose values came last */
    struct buf *out;
};

/* "  conv.12  f32[1,8,32,32]  handle 1"; keeps none. */
static bool print_value(void *arg, const struct rt_method *method,
                        const struct rt_keep_value *value)
{
    struct values *values = arg;
    if (values->wanted && strcmp(values->wanted, rt_method_name(method)) != 0) {
        return false;
    }
    if (method != values->last) {
        buf_printf(values->out, "values of %s\n", rt_method_name(method));
        values->last = method;
    }
    buf_printf(values->out, "  %-24s  %.*s", value->name, SPAN_FMT(value->type));
    buf_add_str(values->out, value->origin.len ? "  # " : "\n");
    if (value->origin.len) {
        buf_printf(values->out, "%.*s\n", SPAN_FMT(value->origin));
    }
    return false;
}

static enum status print_program(const struct inspect_options *options,
                                 struct rt_load_options *load, struct rt_program *program,
                                 struct buf *out, struct error *err)
{
    char name[MODEL_NAME_MAX + 1];
    const struct inspected it = {program, options->path, model_name_of_file(options->path, name)};
    switch (options->what) {
    case INSPECT_PAGE:
        return inspect_print_text(&it, out, err);
    case INSPECT_ALL:
        TRY(inspect_print_text(&it, out, err));
        buf_add_char(out, '\n');
        rt_program_print(program, out);
        return ST_OK;
    case INSPECT_JSON:
        return inspect_print_json(&it, out, err);
    case INSPECT_GRAPH:
    case INSPECT_PLAN:
        return print_graphs(options, load, program, out, err);
    case INSPECT_VALUES:
        print_names_note(program, out);
        return ST_OK; /* the others have been printed */
    }
    unreachable();
}

static enum status load_and_print(const struct inspect_options *options, struct hal_device *device,
                                  struct error *err)
{
    struct buf out;
    struct values values = {.wanted = options->method, .out = &out};
    const struct rt_keep keep = {print_value, &values};
    struct rt_load_options load = {
        .device = device,
        .keep = options->what == INSPECT_VALUES ? &keep : NULL,
        .precision = options->precision,
        .data_paths = options->data,
        .data_count = options->data_count,
    };
    struct rt_program *program;
    struct card *card;
    buf_init(&out, INSPECT_TEXT_BYTES_MAX);
    enum status status = cli_load(options->path, &load, options->card, &program, &card, err);
    if (status == ST_OK) {
        status = print_program(options, &load, program, &out, err);
    }
    if (status == ST_OK) {
        status = cli_write(&out, err);
    }
    buf_fini(&out);
    card_free(card);
    rt_program_unref(program);
    return status;
}

static enum status inspect(int argc, char *const argv[], struct error *err)
{
    struct inspect_options options = {.precision = PRECISION_FAST};
    TRY(parse_inspect(argc, argv, &options, err));
    /* One worker: plans are the same on any machine. */
    const struct hal_device_options device_options = {.workers = 1};
    struct hal_device *device;
    TRY(hal_device_open(options.device ? options.device : "cpu", &device_options, &device, err));
    enum status status = load_and_print(&options, device, err);
    hal_device_unref(device);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_inspect_command, inspect(argc, argv, &err), &err);
}

const struct cli_command cli_inspect_command = {
    .name = "inspect",
    .usage = "inspect [OPTION]... FILE.pte",
    .summary = "what is in a program",
    .about =
        "Prints of each method what goes in and comes out, whether a daemon serves it, what runs "
        "it,\n"
        "how many parameters of which types it has, and the memory that it needs. Sizes that\n"
        "may vary have their largest: batch<=8.\n",
    .after = "Examples:\n"
             "  pte inspect mobilenet.pte\n"
             "  pte inspect --json mobilenet.pte | jq '.methods[].inputs'\n"
             "  pte inspect --plan --device auto mobilenet.pte\n",
    .groups = groups,
    .take = take,
    .run = run,
};
