/* SPDX-License-Identifier: MIT */
/* The command `pte inspect`: what is in a program. */
#include "config.h"

#include <stdio.h>

#include "base/buf.h"
#include "hal/device.h"
#include "runtime/program.h"
#include "server/args.h"
#include "server/pte.h"

#define INSPECT_TEXT_BYTES_MAX ((size_t)1 << 30)

enum inspect_what { INSPECT_PROGRAM, INSPECT_GRAPH, INSPECT_PLAN };

struct inspect_options {
    const char *path, *method, *device;
    enum inspect_what what;
    const char *data[RT_DATA_FILES_MAX];
    uint32_t data_count;
};

static enum status set_option(struct inspect_options *options, struct args *args,
                              const struct arg *arg, struct error *err)
{
    if (span_is(arg->option, "--graph")) {
        options->what = INSPECT_GRAPH;
        return ST_OK;
    }
    if (span_is(arg->option, "--plan")) {
        options->what = INSPECT_PLAN;
        return ST_OK;
    }
    if (span_is(arg->option, "--method")) {
        return args_value(args, arg, &options->method, err);
    }
    if (span_is(arg->option, "--device")) {
        return args_value(args, arg, &options->device, err);
    }
    if (span_is(arg->option, "--data")) {
        return args_add_value(args, arg, options->data, &options->data_count, RT_DATA_FILES_MAX,
                              err);
    }
    return args_refuse(arg, err);
}

static enum status parse_inspect(int argc, char *const argv[], struct inspect_options *out,
                                 struct error *err)
{
    struct args args = {.count = argc, .items = argv};
    for (struct arg arg; args_next(&args, &arg);) {
        if (arg.option.len > 0) {
            TRY(set_option(out, &args, &arg, err));
        } else if (out->path) {
            return error_set(err, ST_INVALID, "one FILE only, got '%s' too", arg.text);
        } else {
            out->path = arg.text;
        }
    }
    if (out->method && out->what == INSPECT_PROGRAM) {
        return error_set(err, ST_INVALID, "--method: only with --graph or --plan");
    }
    return out->path ? ST_OK : error_set(err, ST_INVALID, "expected FILE");
}

/* What a call of the plan consists of, and would consist of without fusion. */
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

/* |unfused| is the program once more, for plans only. */
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
        struct rt_method *method = rt_program_find_method(program, span_str(options->method));
        return method ? print_method(method, unfused, out, err)
                      : error_set(err, ST_NOT_FOUND, "no method '%s'", options->method);
    }
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        TRY(print_method(rt_program_method(program, i), unfused, out, err));
    }
    return ST_OK;
}

static enum status print_program(const struct inspect_options *options,
                                 struct rt_program_options *load, struct rt_program *program,
                                 struct buf *out, struct error *err)
{
    struct rt_program *unfused = NULL;
    if (options->what == INSPECT_PROGRAM) {
        rt_program_print(program, out);
        return ST_OK;
    }
    if (options->what == INSPECT_PLAN) {
        load->is_unfused = true;
        TRY(rt_program_load(options->path, load, &unfused, err));
    }
    enum status status = print_methods(options, program, unfused, out, err);
    rt_program_unref(unfused);
    return status;
}

static enum status load_and_print(const struct inspect_options *options, struct hal_device *device,
                                  struct error *err)
{
    struct rt_program_options load = {
        .device = device,
        .data_paths = options->data,
        .data_count = options->data_count,
    };
    struct rt_program *program;
    TRY(rt_program_load(options->path, &load, &program, err));
    struct buf out;
    buf_init(&out, INSPECT_TEXT_BYTES_MAX);
    enum status status = print_program(options, &load, program, &out, err);
    if (status == ST_OK) {
        status = pte_write(&out, err);
    }
    buf_fini(&out);
    rt_program_unref(program);
    return status;
}

static enum status inspect(int argc, char *const argv[], struct error *err)
{
    struct inspect_options options = {0};
    TRY(parse_inspect(argc, argv, &options, err));
    /* One worker: plans are the same whatever the machine has. */
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
    return pte_finish(&pte_inspect_command, inspect(argc, argv, &err), &err);
}

const struct pte_command pte_inspect_command = {
    .name = "inspect",
    .usage = "inspect [OPTION]... FILE.pte",
    .summary = "what is in a program",
    .help = "Prints the container, its methods and operators.\n"
            "\n"
            "  --graph          the graph of each method after the passes instead\n"
            "  --plan           the arena, the dispatches and the barriers between them, at the "
            "largest\n"
            "                   sizes, and how many there would be if nothing was fused\n"
            "  --method NAME    of this method alone\n"
            "  --device NAME    as it is for this device: cpu, vulkan, vulkan:N or auto (cpu)\n"
            "  --data FILE      look for external weights in this .ptd file instead of beside\n"
            "                   FILE.pte; repeatable\n"
            "\n"
            "Examples:\n"
            "  pte inspect mobilenet.pte\n"
            "  pte inspect --plan --device vulkan mobilenet.pte\n",
    .run = run,
};
