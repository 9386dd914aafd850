/* SPDX-License-Identifier: MIT */
/* Answers the questions of emit functions to a plan from the arguments of one call. */
#include "config.h"

#include "tests/unit/ops_call.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"

int64_t draw(int64_t below)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % below;
}

void call_init(struct rt_emit *call, const struct rt_op *family, const char *name)
{
    static const struct rt_op none = {.name = "none"};

    memset(call, 0, sizeof(*call));
    call->op = family ? family : &none;
    while (family && strcmp(call->op->name, name) != 0) {
        call->op++;
        must(call->op->name);
    }
}

struct rt_tensor call_tensor(struct rt_emit *call, enum dtype dtype, uint8_t rank,
                             const int64_t *dims, void *data)
{
    struct rt_tensor t = {.dtype = dtype, .rank = rank, .is_row_major = true, .numel = 1};

    for (uint8_t d = rank; d-- > 0;) {
        t.dims[d] = dims[d];
        t.strides[d] = t.numel;
        t.numel *= dims[d];
    }
    t.pitch = rank > 1 ? dims[1] : 1;
    t.bytes = (size_t)t.numel * dtype_bytes(dtype);
    must(call->slot_count < 3 * CALL_VALUES_MAX);
    t.binding = (struct hal_binding){.slot = call->slot_count, .length = t.bytes};
    call->memory[call->slot_count++] = data;
    return t;
}

struct rt_tensor call_channels_last(struct rt_emit *call, enum dtype dtype, const int64_t *dims,
                                    void *data)
{
    struct rt_tensor t = call_tensor(call, dtype, 4, dims, data);

    t.is_row_major = false;
    t.strides[1] = 1;
    t.strides[3] = dims[1];
    t.strides[2] = dims[1] * dims[3];
    t.strides[0] = dims[1] * dims[3] * dims[2];
    return t;
}

static struct rt_value *next_arg(struct rt_emit *call, enum rt_kind kind)
{
    must(call->arg_count < CALL_VALUES_MAX);
    struct rt_value *value = &call->args[call->arg_count++];
    value->kind = kind;
    return value;
}

void call_arg(struct rt_emit *call, struct rt_tensor tensor)
{
    call->tensors[call->arg_count] = tensor;
    next_arg(call, RT_TENSOR)->dtype = tensor.dtype;
}

void call_arg_none(struct rt_emit *call)
{
    next_arg(call, RT_NONE);
}

void call_arg_int(struct rt_emit *call, int64_t value)
{
    next_arg(call, RT_INT)->i = rt_dim_of(value);
}

void call_arg_bool(struct rt_emit *call, bool value)
{
    next_arg(call, RT_BOOL)->b = value;
}

void call_arg_float(struct rt_emit *call, double value)
{
    next_arg(call, RT_FLOAT)->f = value;
}

void call_arg_ints(struct rt_emit *call, uint32_t count, const int64_t *values)
{
    struct rt_dim *ints = call->ints[call->arg_count];
    struct rt_value *value = next_arg(call, RT_INTS);

    must(count <= SHAPE_RANK_MAX);
    for (uint32_t i = 0; i < count; i++) {
        ints[i] = rt_dim_of(values[i]);
    }
    value->ints = ints;
    value->count = count;
}

void call_item(struct rt_emit *call, const struct rt_tensor *tensor)
{
    must(call->item_count < CALL_VALUES_MAX);
    call->has_item[call->item_count] = tensor != NULL;
    if (tensor) {
        call->items[call->item_count] = *tensor;
    }
    call->item_count++;
}

void call_arg_items(struct rt_emit *call)
{
    next_arg(call, RT_TENSORS)->count = call->item_count;
}

void call_out(struct rt_emit *call, struct rt_tensor tensor)
{
    must(call->out_count < CALL_VALUES_MAX);
    call->outs[call->out_count++] = tensor;
}

enum status call_run(struct rt_emit *call, struct error *err)
{
    hal_fault_reset(&call->fault);
    enum status status = call->op->emit(call, err);
    free(call->workspace);
    call->workspace = NULL;
    return status == ST_OK ? hal_fault_error(&call->fault, err) : status;
}

/* ---- runtime/plan's side --------------------------------------------------------------------- */

const struct rt_op *rt_emit_op(const struct rt_emit *emit)
{
    return emit->op;
}

const struct rt_tensor *rt_emit_arg(struct rt_emit *emit, uint32_t index)
{
    return emit->args[index].kind == RT_NONE ? NULL : &emit->tensors[index];
}

const struct rt_tensor *rt_emit_out(struct rt_emit *emit, uint32_t index)
{
    return index < emit->out_count ? &emit->outs[index] : NULL;
}

static const struct rt_tensor *item_of(struct rt_emit *emit, uint32_t item)
{
    return item < emit->item_count && emit->has_item[item] ? &emit->items[item] : NULL;
}

const struct rt_tensor *rt_emit_arg_item(struct rt_emit *emit, uint32_t index, uint32_t item)
{
    must(emit->args[index].kind == RT_TENSORS);
    return item_of(emit, item);
}

const struct rt_tensor *rt_emit_out_item(struct rt_emit *emit, uint32_t index, uint32_t item)
{
    must(index == 0);
    return item_of(emit, item);
}

const struct rt_value *rt_emit_value(const struct rt_emit *emit, uint32_t index)
{
    must(index < emit->arg_count);
    return &emit->args[index];
}

int64_t rt_emit_int(const struct rt_emit *emit, uint32_t index)
{
    must(emit->args[index].kind == RT_INT);
    return emit->args[index].i.value;
}

const struct rt_machine *rt_emit_machine(const struct rt_emit *emit,
                                         const struct hal_kernel *kernel)
{
    return emit->machine && hal_kernel_has_spirv(kernel) ? emit->machine : rt_cut_workers(2);
}

static struct hal_binding bind_words(struct rt_emit *emit, int64_t *words, size_t count)
{
    must(emit->slot_count < 3 * CALL_VALUES_MAX);
    emit->memory[emit->slot_count] = words;
    return (struct hal_binding){.slot = emit->slot_count++, .length = count * sizeof(*words)};
}

/* A word has the number that the plan would know. The operator must not see the number. */
struct rt_place rt_emit_place(const struct rt_emit *emit, uint32_t index)
{
    int64_t number = rt_emit_int(emit, index);
    must(emit->op->read >> index & 1);
    return emit->reads_places ? (struct rt_place){.is_read = true, .word = index}
                              : (struct rt_place){.known = number};
}

struct hal_binding rt_emit_word(const struct rt_emit *emit, struct rt_place place)
{
    struct rt_emit *call = (struct rt_emit *)(uintptr_t)emit;
    if (!place.is_read) {
        return (struct hal_binding){0};
    }
    call->words[place.word] = rt_emit_int(emit, place.word);
    return bind_words(call, &call->words[place.word], 1);
}

enum status rt_emit_update(struct rt_emit *emit, const struct rt_update *update,
                           struct hal_binding *out_words, struct error *err)
{
    (void)err;
    must(update->rows > 0 && update->row_bytes > 0);
    emit->asked = *update;
    *out_words = emit->has_update ? bind_words(emit, emit->update, RT_UPDATE_WORDS)
                                  : (struct hal_binding){0};
    return ST_OK;
}

bool rt_emit_is_host(const struct rt_emit *emit)
{
    return !emit->machine;
}

/* One for a call. Its content is NaN. */
enum status rt_emit_workspace(struct rt_emit *emit, size_t bytes, struct hal_binding *out_binding,
                              struct error *err)
{
    (void)err;
    must(!emit->workspace && emit->slot_count < sizeof(emit->memory) / sizeof(emit->memory[0]));
    must(posix_memalign(&emit->workspace, RT_EMIT_WORKSPACE_ALIGN, bytes) == 0);
    memset(emit->workspace, 0xff, bytes);
    *out_binding = (struct hal_binding){.slot = emit->slot_count, .length = bytes};
    emit->memory[emit->slot_count++] = emit->workspace;
    return ST_OK;
}

/* Dispatches run at once. */
enum status rt_emit_barrier(struct rt_emit *emit, struct error *err)
{
    (void)emit;
    (void)err;
    return ST_OK;
}

int64_t rt_emit_ints(const struct rt_emit *emit, uint32_t index, uint32_t item)
{
    must(emit->args[index].kind == RT_INTS && item < emit->args[index].count);
    return emit->args[index].ints[item].value;
}

double rt_emit_number(const struct rt_emit *emit, uint32_t index)
{
    const struct rt_value *value = &emit->args[index];
    return value->kind == RT_INT    ? (double)value->i.value
           : value->kind == RT_BOOL ? value->b
                                    : value->f;
}

/* Constants and scratch as a device would have them: copied, aligned, and no larger than
 * requested. */
enum status rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                             struct error *err)
{
    void *bindings[HAL_BINDINGS_MAX], *constants, *scratch = NULL;
    size_t lengths[HAL_BINDINGS_MAX];
    const uint32_t *grid = dispatch->grid;

    (void)err;
    emit->dispatch_count++;
    emit->scratch_bytes = dispatch->scratch_bytes > emit->scratch_bytes ? dispatch->scratch_bytes
                                                                        : emit->scratch_bytes;
    emit->kernel = dispatch->kernel->name;
    must(dispatch->constants_bytes <= HAL_CONSTANTS_MAX);
    must(dispatch->binding_count <= HAL_BINDINGS_MAX);
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        const struct hal_binding *b = &dispatch->bindings[i];
        bindings[i] = b->length ? (char *)emit->memory[b->slot] + b->offset : NULL;
        lengths[i] = b->length;
    }
    must(posix_memalign(&constants, 16, dispatch->constants_bytes) == 0);
    memcpy(constants, dispatch->constants, dispatch->constants_bytes);
    must(posix_memalign(&scratch, 64, dispatch->scratch_bytes) == 0);
    struct hal_args args = {
        .bindings = bindings,
        .lengths = lengths,
        .binding_count = dispatch->binding_count,
        .constants = constants,
        .grid = {grid[0], grid[1], grid[2]},
        .scratch = scratch,
        .label = emit->op->name,
        .fault = &emit->fault,
    };
    for (uint32_t z = grid[2]; z-- > 0;) {
        for (uint32_t y = grid[1]; y-- > 0;) {
            for (uint32_t x = grid[0]; x-- > 0;) {
                dispatch->kernel->cpu(&args, (struct hal_tile){x, y, z});
            }
        }
    }
    free(scratch);
    free(constants);
    return ST_OK;
}
