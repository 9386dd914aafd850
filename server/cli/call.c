/* SPDX-License-Identifier: MIT */
/* Each call gets inputs that are decoded again, so that calls do not affect each other. */
#include "config.h"

#include "server/cli/call.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/check.h"
#include "base/table.h"
#include "server/cli/cli.h"
#include "server/cli/input.h"
#include "server/cli/result.h"
#include "server/model/card/card.h"

#define CALL_WORKERS_MAX 1024
#define CALL_ARENA_BYTES_MAX ((size_t)64 << 20)

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
     .max = CLI_DATA_FILES_MAX,
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

static const char *name_at(const void *program, uint32_t index)
{
    return pted_method_name(pted_program_method(program, index));
}

static enum status find_method(struct cli_call *call, struct error *err)
{
    const char *wanted = call->options->method;
    struct pted_error why;
    char names[NAMES_TEXT_MAX];
    enum pted_status status = pted_program_find_method(call->program, wanted, &call->method, &why);
    if (status == PTED_NOT_FOUND && !wanted) {
        uint32_t count = (uint32_t)pted_program_method_count(call->program);
        return error_set(err, ST_NOT_FOUND,
                         "%s: no method 'forward', expected --method NAME; the methods are %s",
                         call->options->path, names_join(name_at, call->program, count, names));
    }
    if (cli_take_status(status, &why, err) != ST_OK) {
        return error_prefix(err, "%s: ", call->options->path);
    }
    return cli_take_status(pted_method_verify(call->method, &why), &why, err);
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

static enum status open_device(struct cli_call *call, struct error *err)
{
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    struct pted_error why;
    options.name = call->options->device;
    options.cpu_level = call->options->cpu_level;
    options.workers = (uint32_t)call->options->workers;
    return cli_take_status(pted_device_open(&options, &call->device, &why), &why, err);
}

static enum status load(struct cli_call *call, struct error *err)
{
    static const enum pted_precision precisions[] = {
        [PRECISION_EXACT] = PTED_PRECISION_EXACT,
        [PRECISION_FAST] = PTED_PRECISION_FAST,
        [PRECISION_BF16] = PTED_PRECISION_BF16,
    };
    TABLE_ENDS_WITH(precisions, PRECISION_BF16);
    const struct cli_call_options *options = call->options;
    struct pted_load_options load = PTED_LOAD_OPTIONS_INIT;
    load.files = PTED_FILES_GUARDED;
    load.precision = precisions[options->precision];
    load.data_paths = options->data;
    load.data_count = options->data_count;
    load.keep = options->keep;
    load.keep_arg = options->keep_arg;
    return cli_load_program(call->device, options->path, &load, options->card, &call->program,
                            &call->card, err);
}

static enum status describe(struct cli_call *call, struct error *err)
{
    call->input_count = (uint32_t)pted_method_input_count(call->method);
    call->result_count = (uint32_t)pted_method_output_count(call->method);
    TRY(cli_io_read_inputs(call->method, &call->arena, &call->input_ios, err));
    return cli_io_read_outputs(call->method, &call->arena, &call->result_ios, err);
}

enum status cli_call_open(struct cli_call *call, const struct cli_call_options *options,
                          struct error *err)
{
    *call = (struct cli_call){.options = options};
    arena_init(&call->arena, CALL_ARENA_BYTES_MAX);
    TRY(open_device(call, err));
    TRY(load(call, err));
    TRY(find_method(call, err));
    TRY(describe(call, err));
    TRY(cli_media_open(call, err));
    enum status status = cli_inputs_assign(&call->inputs, call->input_ios, call->media.kinds,
                                           call->input_count, &options->inputs, err);
    return status == ST_OK ? ST_OK : say_card(call, err);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The library begins its refusals of an input with the input's label; here the name comes in front
 * that people have written. */
static enum status take_refusal(const struct cli_call *call, uint32_t index,
                                enum pted_status status, const struct pted_error *why,
                                struct error *err)
{
    const char *label = call->input_ios[index].label;
    struct pted_error own = *why;
    size_t len = strlen(label);
    if (strncmp(why->text, label, len) == 0 && strncmp(why->text + len, ": ", 2) == 0) {
        snprintf(own.text, sizeof(own.text), "%s", why->text + len + 2);
    }
    return cli_take_status(status, &own, err);
}

enum status cli_call_allocate(struct cli_call *call, uint32_t index, enum dtype dtype,
                              const struct shape *shape, void **out_ptr, struct error *err)
{
    struct pted_tensor tensor = {.dtype = (enum pted_dtype)dtype_infos[dtype].executorch,
                                 .rank = shape->rank,
                                 .dims = shape->dims};
    struct pted_error why = {.text = ""};
    enum pted_status status = pted_call_allocate_input(call->call, index, &tensor, &why);
    *out_ptr = tensor.data;
    return status == PTED_OK ? ST_OK : take_refusal(call, index, status, &why, err);
}

static enum status set_tensor(void *own, uint32_t index, enum dtype dtype,
                              const struct shape *shape, void **out_ptr, struct error *err)
{
    return cli_call_allocate(own, index, dtype, shape, out_ptr, err);
}

static enum status set_integer(void *own, uint32_t index, int64_t value, struct error *err)
{
    struct cli_call *call = own;
    struct pted_error why = {.text = ""};
    return take_refusal(call, index, pted_call_set_int(call->call, index, value, &why), &why, err);
}

static enum status set_number(void *own, uint32_t index, double value, struct error *err)
{
    struct cli_call *call = own;
    struct pted_error why = {.text = ""};
    return take_refusal(call, index, pted_call_set_float(call->call, index, value, &why), &why,
                        err);
}

static enum status set_flag(void *own, uint32_t index, bool value, struct error *err)
{
    struct cli_call *call = own;
    struct pted_error why = {.text = ""};
    return take_refusal(call, index, pted_call_set_bool(call->call, index, value, &why), &why, err);
}

static enum status set_string(void *own, uint32_t index, struct span value, struct error *err)
{
    struct cli_call *call = own;
    struct pted_error why = {.text = ""};
    const char *text = (const char *)value.ptr;
    return take_refusal(call, index, pted_call_set_string(call->call, index, text, value.len, &why),
                        &why, err);
}

static enum status set_media(void *own, uint32_t index, const char *const *items, uint32_t count,
                             struct shape *out_shape, struct error *err)
{
    return cli_media_set(own, index, items, count, out_shape, err);
}

static const struct cli_input_ops call_ops = {
    .tensor = set_tensor,
    .integer = set_integer,
    .number = set_number,
    .flag = set_flag,
    .string = set_string,
    .media = set_media,
};

/* |given| in words of the library: |list| points into |shapes|; both have room for all inputs. */
static void give_shapes(uint32_t count, const struct shape *const *given, struct pted_shape *shapes,
                        const struct pted_shape **list)
{
    for (uint32_t i = 0; i < count; i++) {
        if (given[i]) {
            shapes[i] = cli_shape_give(given[i]);
            list[i] = &shapes[i];
        }
    }
}

/* Room for shapes of all inputs; in the call's arena, which has it until the call is closed. */
struct shape_room {
    struct pted_shape *given, *chosen;
    const struct pted_shape **list;
};

static enum status make_room(struct cli_call *call, struct shape_room *out, struct error *err)
{
    size_t count = (size_t)call->input_count + 1;
    *out = (struct shape_room){
        .given = arena_array(&call->arena, count, sizeof(*out->given)),
        .chosen = arena_array(&call->arena, count, sizeof(*out->chosen)),
        .list = arena_array(&call->arena, count, sizeof(const struct pted_shape *)),
    };
    return out->given && out->chosen && out->list ? ST_OK
                                                  : arena_fail(&call->arena, "the inputs", err);
}

static enum status choose(void *own, const struct shape *const *given, struct shape *shapes,
                          struct error *err)
{
    struct cli_call *call = own;
    struct shape_room room;
    struct pted_error why;
    TRY(make_room(call, &room, err));
    give_shapes(call->input_count, given, room.given, room.list);
    TRY(cli_take_status(pted_method_example_shapes(call->method, room.list, room.chosen, &why),
                        &why, err));
    for (uint32_t i = 0; i < call->input_count; i++) {
        shapes[i] = cli_shape_take(&room.chosen[i]);
    }
    return ST_OK;
}

/* A new call with its inputs. */
static enum status begin(struct cli_call *call, struct error *err)
{
    struct pted_error why;
    enum pted_status status = call->call ? pted_call_reset(call->call, &why)
                                         : pted_call_new(call->method, &call->call, &why);
    TRY(cli_take_status(status, &why, err));
    return cli_inputs_set(&call->inputs, &call_ops, choose, call, err) == ST_OK
               ? ST_OK
               : say_card(call, err);
}

static enum status find_sizes(struct cli_call *call, struct pted_output_shape *outputs,
                              struct error *err)
{
    struct shape_room room;
    struct pted_error why;
    TRY(make_room(call, &room, err));
    for (uint32_t i = 0; i < call->input_count; i++) {
        room.given[i] = cli_shape_give(&call->inputs.items[i].shape);
        room.list[i] = call->input_ios[i].kind == PTED_KIND_TENSOR ? &room.given[i] : NULL;
    }
    return cli_take_status(pted_method_output_shapes(call->method, room.list, outputs, &why), &why,
                           err);
}

enum status cli_call_foresee(struct cli_call *call, struct cli_size *out_sizes, struct error *err)
{
    TRY(begin(call, err));
    struct pted_output_shape *outputs =
        arena_array(&call->arena, (size_t)call->result_count + 1, sizeof(*outputs));
    if (!outputs) {
        return arena_fail(&call->arena, "the answer", err);
    }
    TRY(find_sizes(call, outputs, err));
    for (uint32_t i = 0; i < call->result_count; i++) {
        out_sizes[i] = (struct cli_size){
            .shape = cli_shape_take(&outputs[i].shape),
            .bytes = outputs[i].bytes,
            .is_known = outputs[i].open_dims == 0,
        };
    }
    return ST_OK;
}

/* Why the call failed: a text about an element begins with that, and others say that it ran. */
static enum status explain(struct cli_call *call, enum pted_status status,
                           const struct pted_error *why, struct error *err)
{
    struct pted_shape element;
    size_t input;
    bool has_run = pted_call_has_ended(call->call);
    enum status code = cli_take_status(status, why, err);
    return has_run && !pted_call_culprit(call->call, &input, &element) ? error_prefix(err, "run: ")
                                                                       : code;
}

enum status cli_call_once(struct cli_call *call, uint64_t *out_ns, struct error *err)
{
    struct pted_error why;
    TRY(begin(call, err));
    if (call->profile) {
        TRY(cli_take_status(pted_call_set_profile(call->call, call->profile, &why), &why, err));
    }
    call->began_ns = uv_hrtime();
    enum pted_status status = pted_call_run(call->call, &why);
    *out_ns = uv_hrtime() - call->began_ns;
    return status == PTED_OK ? ST_OK : explain(call, status, &why, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static enum pted_status read_tensor(const struct cli_call *call, uint32_t index,
                                    struct cli_result *out, struct pted_error *why)
{
    struct pted_tensor tensor;
    enum pted_status status = pted_call_output(call->call, index, &tensor, why);
    if (status == PTED_OK) {
        out->shape.rank = (uint8_t)tensor.rank;
        memcpy(out->shape.dims, tensor.dims, tensor.rank * sizeof(tensor.dims[0]));
        out->bytes = span_of(tensor.data, tensor.bytes);
    }
    return status;
}

static enum pted_status read_string(const struct cli_call *call, uint32_t index,
                                    struct cli_result *out, struct pted_error *why)
{
    const char *text;
    size_t len;
    enum pted_status status = pted_call_output_string(call->call, index, &text, &len, why);
    out->bytes = status == PTED_OK ? span_of(text, len) : out->bytes;
    return status;
}

static enum pted_status read_scalar(struct cli_call *call, uint32_t index, struct cli_result *out,
                                    struct pted_error *why)
{
    out->bytes = span_of(&call->scalar, dtype_bytes(out->dtype));
    return out->kind == PTED_KIND_INT
               ? pted_call_output_int(call->call, index, &call->scalar.i, why)
           : out->kind == PTED_KIND_FLOAT
               ? pted_call_output_float(call->call, index, &call->scalar.f, why)
               : pted_call_output_bool(call->call, index, &call->scalar.b, why);
}

enum status cli_call_result(struct cli_call *call, uint32_t index, struct cli_result *out,
                            struct error *err)
{
    const struct cli_io *io = &call->result_ios[index];
    struct pted_error why;
    *out = (struct cli_result){
        .name = io->name, .file_name = io->name, .kind = io->kind, .dtype = io->dtype};
    switch (io->kind) {
    case PTED_KIND_NONE:
        return ST_OK;
    case PTED_KIND_TENSOR:
        return cli_take_status(read_tensor(call, index, out, &why), &why, err);
    case PTED_KIND_STRING:
        return cli_take_status(read_string(call, index, out, &why), &why, err);
    default:
        return cli_take_status(read_scalar(call, index, out, &why), &why, err);
    }
}

void cli_call_close(struct cli_call *call)
{
    pted_call_free(call->call);
    cli_media_close(call);
    card_free(call->card);
    cli_inputs_fini(&call->inputs);
    pted_program_free(call->program);
    pted_device_free(call->device);
    arena_fini(&call->arena);
}

/* ---- times ----------------------------------------------------------------------------------- */

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
