/* SPDX-License-Identifier: MIT */
/* Each call is a fresh invocation with inputs decoded again, so that calls do not affect each
 * other. The measured time covers preparing, submitting and waiting, but not decoding. */
#include "config.h"

#include "server/cli/call.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/profile.h"
#include "runtime/program/example.h"
#include "runtime/program/names.h"
#include "server/cli/cli.h"
#include "server/cli/input.h"
#include "server/model/card/card.h"

#define CALL_WORKERS_MAX 1024
#define CALL_RING_BYTES_MAX ((size_t)4 << 30)

/* ---- the command line ------------------------------------------------------------------------ */

const struct cli_option cli_call_option_table[] = {
    {.name = "method",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct cli_call_options, method),
     .preset = "forward, or the only one",
     .doc = "the method"},
    {.name = "input",
     .value = "NAME=X",
     .type = OPTION_TEXTS,
     .at = offsetof(struct cli_call_options, inputs.inputs),
     .count_at = offsetof(struct cli_call_options, inputs.input_count),
     .max = CLI_INPUTS_MAX,
     .doc = "X is FILE.npy, FILE.bin:2x3x4 (raw little-endian and dims) or JSON text; of an input "
            "that the card says to be made from a picture, a sound or a text, X is a file or a "
            "text; repeatable, then each of these is a row. NAME=X alone is the same, and X alone "
            "for the only input, or the only such one. Inputs that are not given get a fixed "
            "pattern",
     .more = ".Ar NAME\nis the input's name, as\n.Cm inspect\nprints it, or\n.Ql input_N\n"
             "for the input with index N.\n"
             "A NumPy file may be in C or Fortran order and of either byte order."},
    {.name = "shape",
     .value = "NAME=2x3x4",
     .type = OPTION_TEXTS,
     .at = offsetof(struct cli_call_options, inputs.shapes),
     .count_at = offsetof(struct cli_call_options, inputs.shape_count),
     .max = CLI_INPUTS_MAX,
     .preset = "the content's; of a pattern: 1 for a batch, else what the file allows; printed",
     .doc = "the shape of an input; repeatable",
     .more =
         "For an input without content,\n.Nm\n"
         "chooses a shape: the size of a batch is 1, and every other dim has its largest size,\n"
         "except that in a method with state the other dims of integer inputs are 1.\n"
         "The chosen shapes are printed on standard error."},
    {.name = "card",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct cli_call_options, card),
     .only = CLI_ONLY_FILE,
     .preset = "FILE.card.json beside FILE.pte, if there is one",
     .doc = "names, steps and answers are in this card"},
    {.name = NULL},
};

const struct cli_option cli_device_option_table[] = {
    {.name = "data",
     .value = "FILE",
     .type = OPTION_FILES,
     .at = offsetof(struct cli_call_options, data),
     .count_at = offsetof(struct cli_call_options, data_count),
     .max = RT_DATA_FILES_MAX,
     .only = CLI_ONLY_FILE,
     .doc = "look for external weights in this .ptd file instead of beside FILE.pte; repeatable"},
    {.name = "workers",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct cli_call_options, workers),
     .min = 1,
     .max = CALL_WORKERS_MAX,
     .only = CLI_ONLY_FILE,
     .preset = "as many as the process may use",
     .doc = "threads that compute"},
    {.name = "cpu",
     .value = "LEVEL",
     .type = OPTION_TEXT,
     .at = offsetof(struct cli_call_options, cpu_level),
     .only = CLI_ONLY_FILE,
     .preset = "the best",
     .doc = "highest instruction set: generic, avx2, avx512, ...",
     .more = "The levels are those of\n.Xr pted 8 ."},
    {.name = "device",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct cli_call_options, device),
     .only = CLI_ONLY_FILE,
     .preset = "cpu",
     .doc = "one of `pte devices`, or auto: a GPU if there is one"},
    {.name = "precision",
     .value = "MODE",
     .type = OPTION_PRECISION,
     .at = offsetof(struct cli_call_options, precision),
     .only = CLI_ONLY_FILE,
     .preset = "fast",
     .doc = "how floats are computed: exact, fast or bf16",
     .more = "The modes are those of\n.Xr pted 8 ."},
    {.name = NULL},
};

enum status cli_call_take(struct cli_call_options *options, const char *text, struct error *err)
{
    if (options->path) {
        return cli_inputs_add(&options->inputs, text, err);
    }
    options->path = text;
    return ST_OK;
}

enum status cli_call_settle(struct cli_call_options *options, struct error *err)
{
    return options->path ? cli_enter_folder(&options->path, options->place, err)
                         : error_set(err, ST_INVALID, "expected FILE");
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status find_method(struct cli_call *call, struct error *err)
{
    if (cli_find_method(call->program, call->options->method, &call->method, err) != ST_OK) {
        return error_prefix(err, "%s: ", call->options->path);
    }
    const struct error *failure = rt_method_failure(call->method);
    return failure ? error_set(err, failure->code, "method '%s': %s", rt_method_name(call->method),
                               failure->text)
                   : ST_OK;
}

static bool is_file(const char *text)
{
    const char *equals = strchr(text, '=');
    return access(equals ? equals + 1 : text, F_OK) == 0 &&
           !cli_input_is_tensor(equals ? equals + 1 : text);
}

/* A file is given that is no tensor: without a card nobody knows what it is. */
static enum status say_card(const struct cli_call *call, struct error *err)
{
    const struct cli_inputs_options *given = &call->options->inputs;
    char beside[PATH_MAX];
    struct error why = *err;
    bool has_file = false;
    for (uint32_t i = 0; i < given->file_count; i++) {
        has_file = has_file || is_file(given->files[i]);
    }
    for (uint32_t i = 0; i < given->input_count; i++) {
        has_file = has_file || is_file(given->inputs[i]);
    }
    return call->card || !has_file || !card_path_of(call->options->path, beside, sizeof(beside))
               ? err->code
               : error_set(err, why.code,
                           "%.240s; there is no %.100s: "
                           "`pte card %.60s >%.100s` begins one",
                           why.text, beside, call->options->path, beside);
}

enum status cli_call_open(struct cli_call *call, const struct cli_call_options *options,
                          struct error *err)
{
    *call = (struct cli_call){.options = options};
    must(uv_sem_init(&call->done, 0) == 0);
    const struct hal_device_options device_options = {
        .workers = (uint32_t)call->options->workers,
        .cpu_level = call->options->cpu_level,
    };
    const char *name = call->options->device ? call->options->device : "cpu";
    TRY(hal_device_open(name, &device_options, &call->device, err));
    TRY(hal_pool_new_up_to(call->device, CALL_RING_BYTES_MAX, &call->pool, err));
    struct rt_load_options load_options = {
        .device = call->device,
        .data_paths = call->options->data,
        .data_count = call->options->data_count,
        .precision = call->options->precision,
        .keep = call->options->keep,
    };
    TRY(cli_load(options->path, &load_options, options->card, &call->program, &call->card, err));
    TRY(find_method(call, err));
    TRY(cli_media_open(call, err));
    uint32_t count = rt_method_input_count(call->method);
    enum status status =
        cli_inputs_assign(&call->inputs, count ? rt_method_input(call->method, 0) : NULL,
                          call->media.kinds, count, &options->inputs, err);
    return status == ST_OK ? ST_OK : say_card(call, err);
}

/* ---- running --------------------------------------------------------------------------------- */

static enum status set_tensor(void *own, uint32_t index, enum dtype dtype,
                              const struct shape *shape, void **out_ptr, struct error *err)
{
    struct cli_call *call = own;
    return rt_invocation_input(call->invocation, index, dtype, shape, out_ptr, err);
}

static enum status set_integer(void *own, uint32_t index, int64_t value, struct error *err)
{
    struct cli_call *call = own;
    return rt_invocation_int(call->invocation, index, value, err);
}

static enum status set_number(void *own, uint32_t index, double value, struct error *err)
{
    struct cli_call *call = own;
    return rt_invocation_float(call->invocation, index, value, err);
}

static enum status set_flag(void *own, uint32_t index, bool value, struct error *err)
{
    struct cli_call *call = own;
    return rt_invocation_bool(call->invocation, index, value, err);
}

static enum status set_string(void *own, uint32_t index, struct span value, struct error *err)
{
    struct cli_call *call = own;
    return rt_invocation_string(call->invocation, index, value, err);
}

static enum status set_media(void *own, uint32_t index, const char *const *items, uint32_t count,
                             struct shape *out_shape, struct error *err)
{
    return cli_media_set(own, index, items, count, out_shape, err);
}

static const struct cli_input_ops invocation_ops = {
    .tensor = set_tensor,
    .integer = set_integer,
    .number = set_number,
    .flag = set_flag,
    .string = set_string,
    .media = set_media,
};

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    struct cli_call *call = arg;
    call->done_status = status;
    uv_sem_post(&call->done);
}

static enum status choose(void *own, const struct shape *const *given, struct shape *shapes,
                          struct error *err)
{
    struct cli_call *call = own;
    return rt_example_shapes(call->method, given, shapes, err);
}

/* Why the call failed, with the element that is to blame, if one is. */
static enum status explain(const struct cli_call *call, struct error *err)
{
    const struct rt_culprit *culprit = rt_invocation_culprit(call->invocation);
    char element[RT_CULPRIT_TEXT_MAX];
    error_set(err, call->done_status, "%s", rt_invocation_error(call->invocation)->text);
    return culprit->is_known
               ? error_prefix(err, "%s%s: ", rt_method_input(call->method, culprit->input)->name,
                              rt_culprit_print(culprit, element))
               : error_prefix(err, "run: ");
}

/* A new call with its inputs. */
static enum status begin(struct cli_call *call, struct error *err)
{
    rt_invocation_free(call->invocation);
    call->invocation = NULL;
    TRY(rt_invocation_new(call->method, call->pool, &call->invocation, err));
    return cli_inputs_set(&call->inputs, &invocation_ops, choose, call, err) == ST_OK
               ? ST_OK
               : say_card(call, err);
}

enum status cli_call_foresee(struct cli_call *call, struct rt_result_info *out_infos,
                             struct error *err)
{
    TRY(begin(call, err));
    const struct shape **shapes = calloc((size_t)call->inputs.count + 1, sizeof(struct shape *));
    if (!shapes) {
        return error_no_memory(err, "the answer");
    }
    for (uint32_t i = 0; i < call->inputs.count; i++) {
        bool is_tensor = call->inputs.ios[i].kind == RT_IO_TENSOR;
        shapes[i] = is_tensor ? &call->inputs.items[i].shape : NULL;
    }
    enum status status = rt_method_result_shapes(call->method, shapes, out_infos, err);
    free(shapes);
    return status;
}

enum status cli_call_once(struct cli_call *call, uint64_t *out_ns, struct error *err)
{
    TRY(begin(call, err));
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

void cli_call_close(struct cli_call *call)
{
    rt_invocation_free(call->invocation);
    cli_media_close(call);
    card_free(call->card);
    cli_inputs_fini(&call->inputs);
    rt_program_unref(call->program);
    hal_pool_free(call->pool);
    if (call->device) {
        hal_device_unref(call->device);
    }
    uv_sem_destroy(&call->done);
}

uint64_t cli_call_quantile(const uint64_t *sorted, uint64_t count, double q)
{
    must(count > 0 && q >= 0 && q <= 1);
    return sorted[(uint64_t)((double)(count - 1) * q + 0.5)];
}

int cli_call_compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}
