/* SPDX-License-Identifier: MIT */
/* pte run: calls a method once and prints its results, or many times and prints its times. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "protocol/json.h"
#include "server/card/card.h"
#include "server/pte/call.h"
#include "server/pte/npy.h"
#include "server/pte/print.h"
#include "server/pte/pte.h"

#define RUN_REPEAT_MAX 10000000
#define RUN_TEXT_BYTES_MAX ((size_t)1 << 30)

struct run_options {
    struct pte_call_options call;
    const char *output;
    uint64_t repeat, top;
    bool has_top;
};

struct run {
    const struct run_options *options;
    struct pte_call call;
};

static enum status take_option(void *own, struct args *args, const struct arg *arg,
                               struct error *err)
{
    struct run_options *options = own;
    if (span_is(arg->option, "--output")) {
        return args_value(args, arg, &options->output, err);
    }
    if (span_is(arg->option, "--repeat")) {
        return pte_call_number(args, arg, 1, RUN_REPEAT_MAX, &options->repeat, err);
    }
    if (span_is(arg->option, "--top-k")) {
        options->has_top = true;
        return pte_call_number(args, arg, 0, PTE_PRINT_TOP_MAX, &options->top, err);
    }
    return args_refuse(arg, err);
}

static void print_times(const uint64_t *sorted, uint64_t count)
{
    static const struct {
        const char *name;
        double q;
    } rows[] = {{"median", 0.5}, {"p10", 0.1}, {"p90", 0.9}, {"min", 0}, {"max", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double ns = (double)pte_call_quantile(sorted, count, rows[i].q);
        printf("%s_us: %.1f\n", rows[i].name, ns / 1000);
    }
}

static enum status run_repeatedly(struct run *run, struct error *err)
{
    uint64_t count = run->options->repeat, ignored;
    for (int i = 0; i < PTE_CALL_WARM_UPS; i++) {
        TRY(pte_call_once(&run->call, &ignored, err));
    }
    uint64_t *times = calloc(count, sizeof(times[0]));
    if (!times) {
        return error_set(err, ST_EXHAUSTED, "out of memory");
    }
    enum status status = ST_OK;
    for (uint64_t i = 0; status == ST_OK && i < count; i++) {
        status = pte_call_once(&run->call, &times[i], err);
    }
    if (status == ST_OK) {
        qsort(times, count, sizeof(times[0]), pte_call_compare_ns);
        fputs("shapes:", stdout);
        pte_call_print_shapes(&run->call, stdout);
        putchar('\n');
        print_times(times, count);
    }
    free(times);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static enum status write_result(const struct run *run, uint32_t index, struct error *err)
{
    const struct rt_io *io = rt_method_result(run->call.method, index);
    const struct rt_result *result = rt_invocation_result(run->call.invocation, index);
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
    enum status status = pte_write_file("--output", path, buf_span(&head), result->bytes, err);
    buf_fini(&head);
    return status;
}

static enum status print_result(const struct run *run, uint32_t index, struct error *err)
{
    const struct rt_io *io = rt_method_result(run->call.method, index);
    const struct rt_result *result = rt_invocation_result(run->call.invocation, index);
    const struct card *card = run->call.card;
    const struct card_labels *labels =
        card ? card_find_labels(card, run->call.method, index) : NULL;
    const struct pte_print_top top = {
        .labels = labels ? labels->items : NULL,
        .label_count = labels ? labels->count : 0,
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
    for (uint32_t i = 0; i < rt_method_result_count(run->call.method); i++) {
        if (rt_method_result(run->call.method, i)->kind != RT_IO_NONE) {
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
    TRY(pte_call_open(&run->call, &run->options->call, err));
    TRY(run->options->output ? make_folder(run->options->output, err) : ST_OK);
    if (run->options->repeat) {
        TRY(run_repeatedly(run, err));
        return run->options->output ? show_results(run, err) : ST_OK;
    }
    uint64_t ignored;
    TRY(pte_call_once(&run->call, &ignored, err));
    return show_results(run, err);
}

static enum status run_once_or_more(int argc, char *const argv[], struct error *err)
{
    static struct run_options options;
    struct run run = {.options = &options};
    TRY(pte_call_parse(argc, argv, &options.call, take_option, &options, err));
    enum status status = run_and_show(&run, err);
    pte_call_close(&run.call);
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
        "\n" PTE_CALL_HELP
        "  --top-k N            print the N largest values of each row of floats; 0: of none (5, "
        "of\n"
        "                       rows that look like scores)\n"
        "  --output DIR         write NAME.npy for each result instead of printing it\n"
        "  --repeat N           run N times, print the shapes, the median and the spread in "
        "us\n" PTE_CALL_DEVICE_HELP
        "  --device NAME        one of `pte devices`, or auto: a GPU if there is one (cpu)\n"
        "\n"
        "Examples:\n"
        "  pte run add.pte --input 'input_0=[[1,2,3],[4,5,6]]' --input input_1=b.npy\n"
        "  pte run mobilenet.pte --input input_0=cat.npy --top-k 3\n"
        "  pte run mobilenet.pte --shape input_0=8x3x224x224 --repeat 100 --workers 1\n",
    .run = run,
};
