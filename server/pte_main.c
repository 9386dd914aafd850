/* SPDX-License-Identifier: MIT */
/* pte: what is in a program, and what it computes, without a daemon. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "hal/device.h"
#include "runtime/program.h"
#include "server/args.h"
#include "server/exit_status.h"
#include "server/pte_ops.h"
#include "server/pte_run.h"
#include "server/pte_sig.h"
#include "server/standard.h"
#include "server/version.h"

#define INSPECT_TEXT_BYTES_MAX ((size_t)1 << 30)

static const char usage[] = "usage: pte inspect [--graph|--plan] [OPTION]... FILE.pte\n"
                            "       pte run [OPTION]... FILE.pte\n"
                            "       pte devices\n"
                            "       pte ops [--json]\n"
                            "       pte sig lex|f|sip|pytree STRING\n"
                            "       pte --help | --version\n";

static const char hint[] = "usage: pte COMMAND [OPTION]... [FILE.pte]; see pte --help\n";

static const char help[] =
    "\n"
    "inspect  prints the container, its methods and operators; with --graph the graph after\n"
    "         the passes, with --plan the regions, the arena, the dispatches, and how many\n"
    "         dispatches and barriers there would be without fusion\n"
    "run      runs a method once and prints its results\n"
    "devices  lists what programs can run on\n"
    "ops      lists the operators: name in graphs, signature, device, kernel calls that mean it\n"
    "sig      checks a function signature and prints it for people and in its canonical spelling;\n"
    "         lex: components, f: raw types, sip: structure, pytree: what an exporter stored, as\n"
    "         {\"encoded_inp_str\": ..., \"encoded_out_str\": ...}; - reads standard input\n"
    "\n"
    "--device NAME    cpu, vulkan, vulkan:N, or auto: a GPU if there is one (cpu)\n"
    "--method NAME    the method (forward, or the only one; of a graph or a plan: all)\n"
    "--data FILE      look for external weights in this .ptd file instead of beside FILE.pte\n"
    "\n"
    "Options of run:\n"
    "  --input NAME=X    X is FILE.npy, FILE.bin:2x3x4 (raw little-endian and dims) or JSON text;\n"
    "                    repeatable; inputs that are not given are filled by a fixed pattern\n"
    "  --output DIR      write NAME.npy for each result instead of printing it\n"
    "  --repeat N        run N times and print the median and the spread\n"
    "  --workers N       threads that compute (as many as the process may use)\n"
    "  --cpu LEVEL       highest instruction set: generic, avx2, avx512, ...\n"
    "\n"
    "Exit status: 0 done, 1 a refused signature, 64 usage, 65 bad file, 66 no such file, method\n"
    "or device, 69 unsupported, 70 internal, 71 system, 74 output not written, 77 no permission.\n";

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
    if (status == ST_OK && (buf_failed(&out) || fwrite(out.ptr, 1, out.len, stdout) != out.len)) {
        status = error_set(err, ST_SYSTEM, "the text cannot be printed");
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

static enum status devices(int argc, char *const argv[], struct error *err)
{
    if (argc) {
        return error_set(err, ST_INVALID, "devices takes no arguments, got '%s'", argv[0]);
    }
    struct buf out;
    buf_init(&out, 4096);
    hal_device_list(&out);
    fwrite(out.ptr, 1, out.len, stdout);
    buf_fini(&out);
    return ST_OK;
}

typedef enum status command_f(int argc, char *const argv[], struct error *err);

struct command {
    const char *name;
    command_f *run;
};

static const struct command commands[] = {
    {"inspect", inspect},
    {"run", pte_run},
    {"devices", devices},
    {"ops", pte_ops},
};

static int run_command(command_f *run, int argc, char *const argv[])
{
    struct error err;
    enum status status = run(argc, argv, &err);
    if (status != ST_OK) {
        fprintf(stderr, "pte: %s\n", err.text);
    }
    if (status == ST_INVALID) {
        fputs(hint, stderr);
    }
    if (fflush(stdout) != 0) {
        return EX_IOERR;
    }
    return exit_status_of(status);
}

static bool asks_for_help(int argc, char *const argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

int main(int argc, char *argv[])
{
    const char *name = argc > 1 ? argv[1] : "";
    standard_open();
    if (asks_for_help(argc, argv)) {
        printf("%s%s", usage, help);
        return EX_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        version_print("pte");
        return EX_OK;
    }
    if (strcmp(name, "sig") == 0) {
        return pte_sig(argc - 2, argv + 2);
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return run_command(commands[i].run, argc - 2, argv + 2);
        }
    }
    if (argc > 1) {
        fprintf(stderr, "pte: expected a command, got '%s'\n%s", name, hint);
    } else {
        fprintf(stderr, "pte: expected a command\n%s", usage);
    }
    return EX_USAGE;
}
