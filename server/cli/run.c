/* SPDX-License-Identifier: MIT */
/* pte run: calls a method once and prints its results, or many times and prints its times. The
 * method is a file's, or a model at a server. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/cli/call.h"
#include "server/cli/cli.h"
#include "server/cli/dump.h"
#include "server/cli/npz.h"
#include "server/cli/option.h"
#include "server/cli/print.h"
#include "server/cli/remote.h"
#include "server/cli/result.h"
#include "server/model/card/card.h"

#define TOP_UNSAID UINT64_MAX
#define RUN_REPEAT_MAX 10000000
#define RUN_ANSWER_BYTES_MIN 1024
#define RUN_ANSWER_BYTES_MAX ((uint64_t)1 << 40)

struct run_options {
    struct cli_call_options call;
    struct client_options client;
    const char *output, *dump;
    uint64_t repeat, top, answer_bytes_max; /* |top|: TOP_UNSAID without --top-k */
};

/* A call and its results, whatever makes them. */
struct run {
    const struct run_options *options;
    void *own; /* passed to the functions */
    enum status (*once)(void *own, uint64_t *out_ns, struct error *err);
    enum status (*show)(const struct run *run, struct error *err);
    const struct cli_inputs *inputs;
};

/* ---- the command line ------------------------------------------------------------------------ */

static const struct cli_option own_options[] = {
    {.name = "top-k",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct run_options, top),
     .min = 0,
     .max = CLI_PRINT_TOP_MAX,
     .preset = "5, of rows that look like scores",
     .doc = "print the N largest values of each row of floats; 0: of none",
     .more =
         "Such rows have at least 10 values, in tensors that have at most one other dim above 1."},
    {.name = "output",
     .value = "DIR",
     .type = OPTION_FILE,
     .at = offsetof(struct run_options, output),
     .doc = "write NAME.npy for each result instead of printing it, and NAME.0.png, .json or .txt "
            "for each row of an answer",
     .more = "The folder is created if there is none."},
    {.name = "dump",
     .value = "PATTERN",
     .type = OPTION_TEXT,
     .at = offsetof(struct run_options, dump),
     .only = CLI_ONLY_FILE,
     .doc = "also intermediate values whose names match the pattern of a shell: conv.*, stem.0.*, "
            "all; `pte inspect --values` shows the names; with --output FILE.npz all are in one "
            "archive",
     .more = "A name is the operator and the number of the value in the graph, behind the module "
             "of its first\nweight where the file names weights.\nThe pattern may leave out the "
             "module.\nThe values are those before operators are joined."},
    {.name = "repeat",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct run_options, repeat),
     .min = 1,
     .max = RUN_REPEAT_MAX,
     .doc = "run N times, print the shapes, the median, the spread and the mean in us",
     .more = "Three runs before these are not measured.\nThe times do not include the decoding of "
             "the inputs.\nWith a URL, the time is that of the whole request."},
    {.name = NULL},
};

static const struct cli_option url_options[] = {
    {.name = "answer-bytes-max",
     .value = "N",
     .type = OPTION_BYTES,
     .at = offsetof(struct run_options, answer_bytes_max),
     .min = RUN_ANSWER_BYTES_MIN,
     .max = RUN_ANSWER_BYTES_MAX,
     .only = CLI_ONLY_URL,
     .preset = "1G",
     .doc = "largest answer that is taken, as 64M"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "call", .options = cli_call_option_table, .at = offsetof(struct run_options, call)},
    {.name = "run", .options = own_options},
    {.name = "device",
     .options = cli_device_option_table,
     .at = offsetof(struct run_options, call)},
    {.name = "url",
     .options = url_options,
     .head = "With a URL, in place of --data, --workers, --cpu, --precision and --device:"},
    {.name = "client", .options = client_option_table, .at = offsetof(struct run_options, client)},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct run_options *options = own;
    return cli_call_take(&options->call, text, err);
}

static bool has_top(const struct run_options *options)
{
    return options->top != TOP_UNSAID;
}

static enum status parse(int argc, char *const argv[], struct run_options *options,
                         struct error *err)
{
    TRY(cli_option_parse(&cli_run_command, argc, argv, options, err));
    TRY(cli_call_settle(&options->call, err));
    bool is_url = target_is_one(options->call.path);
    const struct cli_option *wrong =
        cli_option_said(&cli_run_command, argc, argv, is_url ? CLI_ONLY_FILE : CLI_ONLY_URL);
    return wrong ? error_set(err, ST_INVALID, "--%s: only with %s", wrong->name,
                             is_url ? "a file, not with a URL" : "a URL, not with a file")
                 : ST_OK;
}

/* ---- times ----------------------------------------------------------------------------------- */

static void print_times(const uint64_t *sorted, uint64_t count)
{
    static const struct {
        const char *name;
        double q;
    } rows[] = {{"median", 0.5}, {"p10", 0.1}, {"p90", 0.9}, {"min", 0}, {"max", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double ns = (double)cli_call_quantile(sorted, count, rows[i].q);
        printf("%s_us: %.1f\n", rows[i].name, ns / 1000);
    }
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)sorted[i];
    }
    printf("mean_us: %.1f\n", sum / (double)count / 1000);
}

static enum status run_repeatedly(const struct run *run, struct error *err)
{
    uint64_t count = run->options->repeat, ignored;
    for (int i = 0; i < CLI_CALL_WARM_UPS; i++) {
        TRY(run->once(run->own, &ignored, err));
    }
    uint64_t *times = calloc(count, sizeof(times[0]));
    if (!times) {
        return error_no_memory(err, "a call");
    }
    enum status status = ST_OK;
    for (uint64_t i = 0; status == ST_OK && i < count; i++) {
        status = run->once(run->own, &times[i], err);
    }
    if (status == ST_OK) {
        qsort(times, count, sizeof(times[0]), cli_call_compare_ns);
        fputs("shapes:", stdout);
        cli_inputs_print_shapes(run->inputs, stdout);
        putchar('\n');
        print_times(times, count);
    }
    free(times);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* |labels| may be NULL. |class_count|: so many if the user does not say it; 0: the usual ones. */
static enum status show_result(const struct run *run, const struct cli_result *result,
                               const struct card_labels *labels, uint32_t class_count,
                               struct error *err)
{
    const struct run_options *options = run->options;
    const struct cli_print_top top = {
        .labels = labels ? labels->items : NULL,
        .label_count = labels ? labels->count : 0,
        .count = has_top(options) ? (uint32_t)options->top
                 : class_count    ? class_count
                                  : CLI_PRINT_TOP_DEFAULT,
        .is_asked = has_top(options) || class_count > 0,
    };
    return options->output ? cli_result_write(result, options->output, err)
                           : cli_result_print(result, &top, err);
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

static enum status run_and_show(const struct run *run, struct error *err)
{
    const struct run_options *options = run->options;
    uint64_t ignored;
    TRY(options->output ? make_folder(options->output, err) : ST_OK);
    if (options->repeat) {
        TRY(run_repeatedly(run, err));
        return options->output ? run->show(run, err) : ST_OK;
    }
    TRY(run->once(run->own, &ignored, err));
    return run->show(run, err);
}

/* ---- the result allocator -------------------------------------------------------------------- */

static const char allocator_end[] = "$results"; /* as the signature's "fbr" ends */

static bool is_allocator(const struct run_options *options)
{
    return options->call.method && ends_with(options->call.method, allocator_end);
}

/* The buffer of a result whose size varies. */
static void print_buffer(const struct cli_io *io, const struct cli_size *size)
{
    char text[SHAPE_TEXT_MAX];
    if (io->kind != PTED_KIND_TENSOR || !io->dynamic_dims) {
        return;
    }
    printf("%s: %s%s%s, %zu bytes\n", io->name, size->is_known ? "" : "depends on data, at most ",
           dtype_name(io->dtype), shape_print(&size->shape, text), size->bytes);
}

/* A method has an allocator if the size of a result varies. */
static bool has_allocator(const struct cli_io *ios, uint32_t count)
{
    uint32_t varying = 0;
    for (uint32_t i = 0; i < count; i++) {
        varying |= ios[i].dynamic_dims;
    }
    return varying != 0;
}

static enum status refuse_allocator(const char *name, struct error *err)
{
    return error_set(err, ST_NOT_FOUND, "no method '%.60s': the sizes of results do not vary",
                     name);
}

static enum status print_buffers(struct cli_call *call, const char *name, struct error *err)
{
    if (!has_allocator(call->result_ios, call->result_count)) {
        return refuse_allocator(name, err);
    }
    struct cli_size *sizes = calloc((size_t)call->result_count + 1, sizeof(*sizes));
    if (!sizes) {
        return error_no_memory(err, "a call");
    }
    enum status status = cli_call_foresee(call, sizes, err);
    for (uint32_t i = 0; status == ST_OK && i < call->result_count; i++) {
        print_buffer(&call->result_ios[i], &sizes[i]);
    }
    free(sizes);
    return status;
}

static enum status run_file_allocator(const struct cli_call_options *options, const char *name,
                                      struct error *err)
{
    struct cli_call call;
    enum status status = cli_call_open(&call, options, err);
    if (status == ST_OK) {
        status = print_buffers(&call, name, err);
    }
    cli_call_close(&call);
    return status;
}

static enum status print_remote_buffers(struct cli_remote *remote, const char *name,
                                        struct error *err)
{
    if (!has_allocator(remote->result_ios, remote->result_io_count)) {
        return refuse_allocator(name, err);
    }
    TRY(cli_remote_foresee(remote, err));
    for (uint32_t i = 0; i < remote->result_io_count; i++) {
        print_buffer(&remote->result_ios[i], &remote->sizes[i]);
    }
    return ST_OK;
}

static enum status run_remote_allocator(const struct run_options *options, const char *method,
                                        struct error *err)
{
    struct cli_remote remote;
    enum status status = cli_remote_open(&remote, options->call.path, method, &options->client,
                                         &options->call.inputs, options->answer_bytes_max, err);
    if (status == ST_OK) {
        status = print_remote_buffers(&remote, options->call.method, err);
    }
    cli_remote_close(&remote);
    return status;
}

static enum status run_allocator(const struct run_options *options, struct error *err)
{
    struct cli_call_options of_method = options->call;
    const char *name = of_method.method;
    if (options->output || options->dump || options->repeat || has_top(options)) {
        return error_set(err, ST_INVALID, "--method %.60s: expected no option about results", name);
    }
    char *method = strndup(name, strlen(name) - strlen(allocator_end));
    if (!method) {
        return error_no_memory(err, "a call");
    }
    of_method.method = method;
    enum status status = target_is_one(of_method.path) ? run_remote_allocator(options, method, err)
                                                       : run_file_allocator(&of_method, name, err);
    free(method);
    return status;
}

/* ---- of a file ------------------------------------------------------------------------------- */

static enum status run_once(void *own, uint64_t *out_ns, struct error *err)
{
    return cli_call_once(own, out_ns, err);
}

/* |answer|: its form by the card, or NULL. */
static enum status show_tensor(const struct run *run, uint32_t index,
                               const struct answer_form *answer, struct error *err)
{
    struct cli_call *call = run->own;
    struct cli_result result;
    bool has_classes = answer && answer->kind == ANSWER_CLASSES;
    TRY(cli_call_result(call, index, &result, err));
    return show_result(run, &result, cli_media_labels(call, index),
                       has_classes ? answer->class_count : 0, err);
}

static enum status show_one(const struct run *run, uint32_t index, struct error *err)
{
    struct cli_call *call = run->own;
    const struct answer_form *answer = cli_media_answer(call, index);
    bool is_answer = answer && answer->kind != ANSWER_CLASSES;
    if (call->result_ios[index].kind == PTED_KIND_NONE) {
        return ST_OK;
    }
    if (is_answer && run->options->output) {
        TRY(cli_media_write(call, index, run->options->output, err));
    }
    return is_answer && !run->options->output ? cli_media_print(call, index, err)
                                              : show_tensor(run, index, answer, err);
}

/* Is the answer of another result made from result |index|? */
static bool is_part(const struct cli_call *call, uint32_t index)
{
    for (uint32_t i = 0; i < call->result_count; i++) {
        if (answer_has_part(cli_media_answer(call, i), index)) {
            return true;
        }
    }
    return false;
}

static enum status show_call(const struct run *run, struct error *err)
{
    const struct cli_call *call = run->own;
    for (uint32_t i = 0; i < call->result_count; i++) {
        TRY(!run->options->output && is_part(call, i) ? ST_OK : show_one(run, i, err));
    }
    return ST_OK;
}

/* ---- intermediate values --------------------------------------------------------------------- */

static enum status write_archive(const struct dump *dump, const char *path, struct error *err)
{
    struct npz_entry *entries = calloc((size_t)dump->count + 1, sizeof(*entries));
    uint32_t count = 0;
    if (!entries) {
        return error_no_memory(err, "a call");
    }
    for (uint32_t i = 0; i < dump->count; i++) {
        const struct dump_value *value = &dump->items[i];
        if (value->bytes) {
            entries[count++] =
                (struct npz_entry){value->name, value->dtype, value->shape, dump_bytes(value)};
        }
    }
    enum status status = npz_write("--output", path, entries, count, err);
    free(entries);
    return status;
}

static enum status show_value(const struct run *run, const struct dump_value *value,
                              struct error *err)
{
    const struct cli_result result = {
        .name = value->name,
        .file_name = value->name,
        .kind = PTED_KIND_TENSOR,
        .dtype = value->dtype,
        .shape = value->shape,
        .bytes = dump_bytes(value),
    };
    if (value->bytes) {
        return show_result(run, &result, NULL, 0, err);
    }
    fprintf(stderr, "pte: %s: the call did not compute it\n", value->name);
    return ST_OK;
}

static enum status run_dump(const struct run_options *options, struct error *err)
{
    const struct run run = {.options = options};
    const char *output = options->output;
    bool is_archive = output && ends_with(output, ".npz");
    struct dump dump;
    enum status status = dump_run(&dump, &options->call, options->dump, NULL, NULL, err);
    if (status == ST_OK && is_archive) {
        status = write_archive(&dump, output, err);
    } else if (status == ST_OK && output) {
        status = make_folder(output, err);
    }
    for (uint32_t i = 0; status == ST_OK && !is_archive && i < dump.count; i++) {
        status = show_value(&run, &dump.items[i], err);
    }
    dump_fini(&dump);
    return status;
}

static enum status run_file(const struct run_options *options, struct error *err)
{
    if (options->dump) {
        return run_dump(options, err);
    }
    struct cli_call call;
    const struct run run = {options, &call, run_once, show_call, &call.inputs};
    enum status status = cli_call_open(&call, &options->call, err);
    if (status == ST_OK) {
        status = run_and_show(&run, err);
    }
    cli_call_close(&call);
    return status;
}

/* ---- at a server ----------------------------------------------------------------------------- */

static enum status remote_once(void *own, uint64_t *out_ns, struct error *err)
{
    return cli_remote_once(own, out_ns, err);
}

static enum status verify_names(const struct cli_remote *remote, struct error *err)
{
    for (uint32_t i = 1; i < remote->result_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const struct cli_result *a = &remote->results[i], *b = &remote->results[k];
            bool is_same_kind = (a->answer == ANSWER_TENSOR) == (b->answer == ANSWER_TENSOR);
            if (is_same_kind && strcmp(a->file_name, b->file_name) == 0) {
                return error_set(err, ST_UNWRITTEN, "--output: two results are called '%.64s'",
                                 a->file_name);
            }
        }
    }
    return ST_OK;
}

static enum status show_remote_result(const struct run *run, const struct cli_result *result,
                                      struct error *err)
{
    const struct cli_remote *remote = run->own;
    const struct cli_remote_form *form = cli_remote_find_form(remote, result->name);
    const char *folder = run->options->output;
    if (result->answer != ANSWER_TENSOR) {
        return folder ? cli_remote_write_answer(remote, result, folder, err)
                      : cli_remote_print_answer(remote, result, err);
    }
    return show_result(run, result, cli_remote_find_labels(remote, result->name),
                       form ? form->class_count : 0, err);
}

static enum status show_remote(const struct run *run, struct error *err)
{
    const struct cli_remote *remote = run->own;
    TRY(run->options->output ? verify_names(remote, err) : ST_OK);
    for (uint32_t i = 0; i < remote->result_count; i++) {
        TRY(show_remote_result(run, &remote->results[i], err));
    }
    return ST_OK;
}

/* Calls that are only timed give tensors, because nobody sees their answers; calls of a file do the
 * same. */
static enum cli_remote_wish choose_wish(const struct run_options *options)
{
    return options->output   ? CLI_REMOTE_BOTH
           : options->repeat ? CLI_REMOTE_TENSORS
                             : CLI_REMOTE_ANSWERS;
}

static enum status run_remote(const struct run_options *options, struct error *err)
{
    struct cli_remote remote;
    const struct run run = {options, &remote, remote_once, show_remote, &remote.inputs};
    enum status status =
        cli_remote_open(&remote, options->call.path, options->call.method, &options->client,
                        &options->call.inputs, options->answer_bytes_max, err);
    if (status == ST_OK) {
        cli_remote_wish(&remote, choose_wish(options));
        status = run_and_show(&run, err);
    }
    cli_remote_close(&remote);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum status run_once_or_more(int argc, char *const argv[], struct error *err)
{
    static struct run_options options = {
        .call.precision = PRECISION_FAST,
        .client = CLIENT_OPTIONS_DEFAULT,
        .top = TOP_UNSAID,
        .answer_bytes_max = CLI_REMOTE_ANSWER_BYTES,
    };
    TRY(parse(argc, argv, &options, err));
    if (is_allocator(&options)) {
        return run_allocator(&options, err);
    }
    return target_is_one(options.call.path) ? run_remote(&options, err) : run_file(&options, err);
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_run_command, run_once_or_more(argc, argv, &err), &err);
}

const struct cli_command cli_run_command = {
    .name = "run",
    .usage = "run [OPTION]... FILE.pte|URL/MODEL [FILE|NAME=X]...",
    .summary = "run a method and print its results, or its time",
    .about =
        "Runs a method once and prints its results: small ones whole, large ones shortened, with\n"
        "their range and, of scores, the classes with the largest ones. A result for which the\n"
        "card has an answer is printed as that: boxes, a map or a text. The method is a file's,\n"
        "or that of a model at a server.\n",
    .after =
        CLIENT_HELP "\n"
                    "Examples:\n"
                    "  pte run add.pte --input 'input_0=[[1,2,3],[4,5,6]]' --input input_1=b.npy\n"
                    "  pte run mobilenet.pte cat.jpg --top-k 3\n"
                    "  pte run encoder.pte text='Who is there?' --output results\n"
                    "  pte run mobilenet.pte --shape input_0=8x3x224x224 --repeat 100 --workers 1\n"
                    "  pte run http://127.0.0.1:8000/mobilenet --input input_0=cat.npy\n",
    .groups = groups,
    .take = take,
    .run = run,
};
