/* SPDX-License-Identifier: MIT */
/* `pte inspect --json`; pte(1) describes its members. Members may be added and never change their
 * meaning; otherwise INSPECT_FORMAT changes. */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/tensor_text.h"
#include "runtime/program/results.h"
#include "runtime/program/signature.h"
#include "runtime/program/state.h"
#include "server/cli/inspect.h"
#include "server/model/intake/intake.h"

#define INSPECT_FORMAT 1

/* Longer contents of constant tensors are left out. */
#define CONSTANT_BYTES_MAX 4096

/* ---- members --------------------------------------------------------------------------------- */

/* |before| is "," if a member or an element stands in front. */
static void print_key(struct buf *out, const char *before, const char *key)
{
    buf_printf(out, "%s\"%s\":", before, key);
}

static void print_text(struct buf *out, const char *text)
{
    if (text) {
        json_print_string(out, span_str(text));
    } else {
        buf_add_str(out, "null");
    }
}

static void print_member(struct buf *out, const char *key, const char *text)
{
    print_key(out, ",", key);
    print_text(out, text);
}

static void print_bool(struct buf *out, const char *key, bool value)
{
    buf_printf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

static void print_count(struct buf *out, const char *key, uint64_t value)
{
    buf_printf(out, ",\"%s\":%" PRIu64, key, value);
}

static void print_dims(struct buf *out, const char *key, const struct shape *shape)
{
    print_key(out, ",", key);
    tensor_text_print(out, DT_I64, shape->dims, shape->rank, NUMBER_NAN_STRING);
}

/* ---- inputs and results ---------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [RT_IO_NONE] = "none",   [RT_IO_TENSOR] = "tensor", [RT_IO_INT] = "int",
    [RT_IO_FLOAT] = "float", [RT_IO_BOOL] = "bool",     [RT_IO_STRING] = "string",
};

static void print_fixed(const struct rt_io *io, struct buf *out)
{
    uint8_t number[NUMBER_TEXT_MAX];
    switch (io->kind) {
    case RT_IO_INT:
        buf_add(out, number, number_print_i64(number, io->value.i));
        break;
    case RT_IO_FLOAT:
        buf_add(out, number, number_print_f64(number, io->value.f, NUMBER_NAN_STRING));
        break;
    case RT_IO_BOOL:
        buf_add_str(out, io->value.b ? "true" : "false");
        break;
    case RT_IO_STRING:
        json_print_string(out, io->value.s);
        break;
    default:
        buf_add_str(out, "null");
        break;
    }
}

/* The name of each dim, or null. */
static void print_names(const struct rt_method *method, bool is_input, uint32_t index, uint8_t rank,
                        struct buf *out)
{
    buf_add_str(out, ",\"dim_names\":[");
    for (uint8_t d = 0; d < rank; d++) {
        char text[RT_DIM_NAME_MAX];
        buf_add_str(out, d ? "," : "");
        print_text(out, rt_method_dim_name(method, is_input, index, d, text));
    }
    buf_add_char(out, ']');
}

/* Dims from outermost to innermost; nothing of what is row-major. */
static void print_order(const char *key, const struct rt_io *io, const uint8_t *order,
                        struct buf *out)
{
    struct shape dims = {.rank = io->shape.rank};
    for (uint8_t d = 0; order && d < io->shape.rank; d++) {
        dims.dims[d] = order[d];
    }
    if (order) {
        print_dims(out, key, &dims);
    }
}

static void print_tensor(const struct rt_method *method, bool is_input, uint32_t index,
                         const struct rt_io *io, struct buf *out)
{
    struct shape shape = io->shape;
    for (uint8_t d = 0; d < shape.rank; d++) {
        shape.dims[d] = rt_io_is_dynamic(io, d) ? -1 : shape.dims[d];
    }
    print_member(out, "dtype", dtype_name(io->dtype));
    print_dims(out, "shape", &shape);
    print_dims(out, "max_shape", &io->shape);
    print_names(method, is_input, index, shape.rank, out);
    print_order("order", io, io->order, out);
    print_order("file_order", io, io->file_order, out);
}

static void print_io(const struct rt_method *method, bool is_input, uint32_t index,
                     const struct shape *example, struct buf *out)
{
    const struct rt_io *io =
        is_input ? rt_method_input(method, index) : rt_method_result(method, index);
    struct span constant;
    buf_add_str(out, index ? ",{\"name\":" : "{\"name\":");
    print_text(out, io->name);
    print_member(out, "kind", kind_names[io->kind]);
    if (io->kind == RT_IO_TENSOR) {
        print_tensor(method, is_input, index, io, out);
    }
    if (io->kind == RT_IO_TENSOR && example) {
        print_dims(out, "example_shape", example);
    }
    if (io->is_fixed) {
        print_key(out, ",", "value");
        print_fixed(io, out);
    } else if (!is_input && io->kind == RT_IO_TENSOR &&
               rt_method_constant_result(method, index, &constant) &&
               constant.len <= CONSTANT_BYTES_MAX) {
        print_key(out, ",", "value");
        tensor_text_print_nested(out, io->dtype, &io->shape, constant.ptr, NUMBER_NAN_STRING);
    }
    buf_add_char(out, '}');
}

static void print_ios(const struct rt_method *method, bool is_input,
                      const struct call_memory *chosen, struct buf *out)
{
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    print_key(out, ",", is_input ? "inputs" : "results");
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        bool has_example = is_input && chosen->has_shapes;
        print_io(method, is_input, i, has_example ? &chosen->shapes[i] : NULL, out);
    }
    buf_add_char(out, ']');
}

/* ---- weights --------------------------------------------------------------------------------- */

static void print_sum(const struct rt_weight_sum *sum, struct buf *out)
{
    buf_printf(out, ",\"parameters\":{\"count\":%" PRIu64 ",\"bytes\":%zu,\"tensors\":%u",
               sum->count, sum->bytes, sum->tensors);
    buf_printf(out, ",\"named\":%u,\"types\":[", sum->named);
    for (uint32_t i = 0; i < sum->type_count; i++) {
        const struct rt_weight_type *type = &sum->types[i];
        buf_printf(out, "%s{\"type\":\"%s\",\"count\":%" PRIu64 ",\"bytes\":%zu}", i ? "," : "",
                   type->name, type->count, type->bytes);
    }
    buf_add_str(out, "]}");
}

struct list {
    struct buf *out;
    const char *before;
};

static void print_weight(void *arg, const struct rt_weight_info *weight)
{
    struct list *list = arg;
    buf_printf(list->out, "%s{\"name\":", list->before);
    print_text(list->out, weight->name);
    print_member(list->out, "type", weight->type);
    print_dims(list->out, "shape", &weight->shape);
    print_count(list->out, "count", weight->count);
    print_count(list->out, "bytes", weight->bytes);
    buf_add_char(list->out, '}');
    list->before = ",";
}

static enum status print_weights(const struct inspected *it, const struct rt_method *method,
                                 struct buf *out, struct error *err)
{
    static const char *const activations[] = {
        [RT_ACTIVATIONS_PLAIN] = "plain",
        [RT_ACTIVATIONS_STATIC] = "static",
        [RT_ACTIVATIONS_DYNAMIC] = "dynamic",
    };
    struct rt_weight_sum sum;
    struct list list = {out, ""};
    TRY(rt_program_sum_weights(it->program, method, &sum, err));
    print_sum(&sum, out);
    print_member(out, "activations", activations[rt_method_activations(method)]);
    buf_add_str(out, ",\"weights\":[");
    rt_method_each_weight(method, print_weight, &list);
    buf_add_char(out, ']');
    return ST_OK;
}

/* ---- methods --------------------------------------------------------------------------------- */

static void print_served(const struct inspected *it, const struct rt_method *method,
                         struct buf *out)
{
    const struct error *failure = rt_method_failure(method);
    buf_add_str(out, ",\"served_as\":[");
    if (!failure && inspect_is_default(it, method)) {
        json_print_string(out, it->name);
    } else if (!failure) {
        struct buf name;
        buf_init(&name, 4096);
        buf_printf(&name, "%.*s.%s", SPAN_FMT(it->name), rt_method_name(method));
        json_print_string(out, buf_span(&name));
        out->failed |= buf_failed(&name);
        buf_fini(&name);
    }
    buf_add_char(out, ']');
    print_member(out, "failure", failure ? failure->text : NULL);
}

static void print_callee(void *arg, const struct rt_callee *callee)
{
    struct list *list = arg;
    buf_printf(list->out, "%s{\"name\":", list->before);
    print_text(list->out, callee->name);
    print_bool(list->out, "is_delegate", callee->is_delegate);
    print_count(list->out, "calls", callee->calls);
    if (callee->is_delegate) {
        print_count(list->out, "bytes", callee->bytes);
    }
    buf_add_char(list->out, '}');
    list->before = ",";
}

static void print_signature(const struct rt_method *method, struct buf *out)
{
    const struct rt_signature *signature = rt_method_signature(method);
    buf_add_str(out, ",\"signature\":{\"f\":");
    print_text(out, signature->f);
    print_member(out, "sip", signature->sip);
    print_member(out, "fbr", signature->fbr);
    print_bool(out, "is_positional", signature->is_positional);
    buf_add_char(out, '}');
}

static void print_call(struct buf *out, const char *key, const struct call_memory *memory)
{
    print_key(out, ",", key);
    if (memory->is_known) {
        buf_printf(out, "%zu", memory->bytes);
    } else {
        buf_add_str(out, "null");
    }
}

static enum status print_memory(const struct rt_method *method, const struct call_memory *chosen,
                                const struct call_memory *largest, struct buf *out,
                                struct error *err)
{
    struct rt_resident resident;
    TRY(rt_method_resident(method, &resident, err));
    buf_printf(out, ",\"memory\":{\"weights_in_file\":%zu,\"weights_of_its_own\":%zu",
               resident.file_bytes, resident.own_bytes);
    print_call(out, "call_example", chosen);
    print_call(out, "call_largest", largest);
    print_bool(out, "call_is_at_least", rt_method_has_statements(method));
    buf_add_char(out, '}');
    return ST_OK;
}

/* By what would make it faster, the reason why it does not get that. */
static void print_lacks(struct rt_method *method, struct buf *out)
{
    struct rt_gains gains;
    const char *before = "";
    intake_find_gains(method, &gains);
    buf_add_str(out, ",\"lacks\":{");
    for (int i = 0; i < RT_GAIN_COUNT; i++) {
        const struct error *why = &gains.whys[i];
        if (why->code != ST_OK && why->code != ST_NOT_FOUND) {
            print_key(out, before, rt_gain_name((enum rt_gain)i));
            print_text(out, why->text);
            before = ",";
        }
    }
    buf_add_char(out, '}');
}

static enum status print_method_body(const struct inspected *it, struct rt_method *method,
                                     const struct call_memory *chosen,
                                     const struct call_memory *largest, struct buf *out,
                                     struct error *err)
{
    struct list list = {out, ""};
    buf_add_str(out, "{\"name\":");
    print_text(out, rt_method_name(method));
    print_served(it, method, out);
    print_bool(out, "is_constant", rt_method_is_constant(method));
    print_bool(out, "has_state", rt_method_has_state(method));
    print_ios(method, true, chosen, out);
    print_ios(method, false, chosen, out);
    print_signature(method, out);
    buf_add_str(out, ",\"callees\":[");
    TRY(rt_method_each_callee(method, print_callee, &list, err));
    buf_add_char(out, ']');
    TRY(print_weights(it, method, out, err));
    TRY(print_memory(method, chosen, largest, out, err));
    print_lacks(method, out);
    buf_add_char(out, '}');
    return ST_OK;
}

static enum status print_method(const struct inspected *it, struct rt_method *method,
                                struct buf *out, struct error *err)
{
    struct call_memory chosen = {0}, largest = {0};
    enum status status = ST_OK;
    if (!rt_method_failure(method)) {
        status = call_memory_measure(method, false, &chosen, err);
    }
    if (status == ST_OK && !rt_method_failure(method)) {
        status = call_memory_measure(method, true, &largest, err);
    }
    if (status == ST_OK) {
        status = print_method_body(it, method, &chosen, &largest, out, err);
    }
    call_memory_fini(&chosen);
    call_memory_fini(&largest);
    return status;
}

enum status inspect_print_json(const struct inspected *it, struct buf *out, struct error *err)
{
    struct rt_weight_sum sum;
    const char *path;
    buf_printf(out, "{\"format\":%d,\"file\":", INSPECT_FORMAT);
    print_text(out, it->path);
    print_key(out, ",", "name");
    json_print_string(out, it->name);
    print_count(out, "bytes", rt_program_file_bytes(it->program));
    buf_add_str(out, ",\"data_files\":[");
    for (uint32_t i = 0; (path = rt_program_data_path(it->program, i)); i++) {
        buf_add_str(out, i ? "," : "");
        print_text(out, path);
    }
    buf_add_char(out, ']');
    TRY(rt_program_sum_weights(it->program, NULL, &sum, err));
    print_sum(&sum, out);
    print_bool(out, "has_sources", rt_program_has_sources(it->program));
    print_count(out, "state_bytes", rt_program_state_bytes(it->program));
    buf_add_str(out, ",\"methods\":[");
    for (uint32_t i = 0; i < rt_program_method_count(it->program); i++) {
        buf_add_str(out, i ? ",\n" : "\n");
        TRY(print_method(it, rt_program_method(it->program, i), out, err));
    }
    buf_add_str(out, "\n]}\n");
    return ST_OK;
}
