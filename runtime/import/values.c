/* SPDX-License-Identifier: MIT */
/* The arguments of a call in the current graph: constants, views, state, scalars and lists. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/import/import_priv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"

enum status rt_import_fail_full(struct import *im)
{
    const struct arena *code = &im->code->arena;
    bool is_graph = im->graph && im->graph->arena.refusal != ST_OK;
    return arena_fail(is_graph ? &im->graph->arena : code, "the method", im->err);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool is_row_major(const struct pte_tensor *t)
{
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        if (t->dim_order[i] != i) {
            return false;
        }
    }
    return true;
}

void rt_import_row_major(const struct pte_tensor *t, uint8_t *to)
{
    if (is_row_major(t)) {
        memcpy(to, t->bytes.ptr, t->byte_count);
        return;
    }
    size_t size = dtype_bytes(t->dtype), stride = size;
    size_t strides[SHAPE_RANK_MAX];
    int64_t index[SHAPE_RANK_MAX] = {0};
    for (int i = t->shape.rank - 1; i >= 0; i--) {
        strides[t->dim_order[i]] = stride;
        stride *= (size_t)t->shape.dims[t->dim_order[i]];
    }
    for (int64_t n = shape_numel(&t->shape); n > 0; n--, to += size) {
        size_t offset = 0;
        for (uint8_t i = 0; i < t->shape.rank; i++) {
            offset += (size_t)index[i] * strides[i];
        }
        memcpy(to, t->bytes.ptr + offset, size);
        for (int i = t->shape.rank - 1; i >= 0 && ++index[i] == t->shape.dims[i]; i--) {
            index[i] = 0;
        }
    }
}

/* The alignment that kernels expect of constants. */
#define CONSTANT_ALIGN 16

enum status rt_import_constant(struct import *im, const struct pte_tensor *t, uint32_t *out_value)
{
    uint32_t value = rt_graph_constant(im->graph, t->dtype, &t->shape, t->bytes);
    TRY(rt_graph_check(im->graph, im->err));
    im->graph->values[value].name = *t->name ? t->name : NULL;
    *out_value = value;
    bool is_aligned = (uintptr_t)t->bytes.ptr % CONSTANT_ALIGN == 0;
    if (t->byte_count == 0 || (is_row_major(t) && is_aligned)) {
        return ST_OK;
    }
    struct hal_buffer *buffer;
    TRY(hal_buffer_new_constant(im->device, t->byte_count, &buffer, im->err));
    rt_import_row_major(t, hal_buffer_map(buffer));
    rt_graph_set_constant(im->graph, value, buffer);
    return ST_OK;
}

enum status rt_import_declare(struct import *im, const struct pte_tensor *t, uint32_t *out_value)
{
    uint32_t value = rt_graph_tensor(im->graph, t->dtype, t->shape.rank, NULL);
    struct rt_dim *declared = arena_array(&im->graph->arena, t->shape.rank, sizeof(struct rt_dim));
    if (!declared || value == 0) {
        return rt_import_fail_full(im);
    }
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        declared[i] = rt_dim_of(t->shape.dims[i]);
    }
    /* without a bound in the file, inference finds one from the inputs */
    im->graph->values[value].declared = t->dynamism == PTE_DYNAMIC_UNBOUND ? NULL : declared;
    im->graph->values[value].is_static = t->dynamism == PTE_STATIC;
    *out_value = value;
    return ST_OK;
}

void rt_import_settle(struct import *im, uint32_t index)
{
    const struct pte_tensor *t = im->plan->values[index].tensor;
    if (t->storage == PTE_PLANNED) {
        im->residents[im->resident_count++] =
            (struct rt_import_resident){t->memory, t->offset, t->byte_count, t->dtype, index};
    }
}

static bool overlaps(const struct rt_import_resident *r, const struct pte_tensor *t)
{
    return r->memory == t->memory && r->offset < t->offset + t->byte_count &&
           t->offset < r->offset + r->bytes;
}

/* The newest write that overlaps the planned memory of |t|, or NULL. */
static const struct rt_import_resident *find_resident(const struct import *im,
                                                      const struct pte_tensor *t)
{
    for (uint32_t i = im->resident_count; t->storage == PTE_PLANNED && i-- > 0;) {
        if (overlaps(&im->residents[i], t)) {
            return &im->residents[i];
        }
    }
    return NULL;
}

uint32_t rt_import_find_resident(const struct import *im, const struct pte_tensor *t)
{
    const struct rt_import_resident *resident = find_resident(im, t);
    return resident ? resident->index : PTE_NO_VALUE;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Plan value |index| is a mutable buffer: its register has its content when the method begins. The
 * buffer always has the dims of its bound, even if the file declares them dynamic. */
static enum status open_state(struct import *im, uint32_t index)
{
    const struct pte_tensor *t = im->plan->values[index].tensor;
    struct rt_import_content *content = &im->contents[index];
    bool is_there;
    uint32_t reg;
    if (im->states->count == IMPORT_STATES_MAX) {
        return error_set(im->err, ST_TOO_LARGE, "more than %d mutable buffers", IMPORT_STATES_MAX);
    }
    TRY(rt_import_register_of(im, index, &reg));
    im->code->registers[reg].fixed_dims = UINT32_MAX;
    im->states->items[im->states->count++] = (struct rt_state_use){.tensor = t, .index = index};
    content->is_state = true;
    content->place = RT_PLACE_REGISTER;
    rt_import_settle(im, index);
    return rt_import_fetch(im, index, &is_there);
}

struct rt_state_use *rt_import_find_own_state(const struct import *im, uint32_t delegate,
                                              uint32_t number)
{
    for (uint32_t i = 0; i < im->states->count; i++) {
        struct rt_state_use *use = &im->states->items[i];
        bool is_own = use->index >= im->plan->value_count - IMPORT_STATES_MAX;
        if (is_own && use->delegate == delegate && use->number == number) {
            return use;
        }
    }
    return NULL;
}

/* The buffer gets a place after the method's own memory, which nothing else uses. */
enum status rt_import_own_state(struct import *im, uint32_t delegate, uint32_t number,
                                const struct pte_tensor *t, uint32_t *out_value)
{
    if (im->own_count == IMPORT_STATES_MAX) {
        return error_set(im->err, ST_TOO_LARGE, "more than %d mutable buffers", IMPORT_STATES_MAX);
    }
    struct pte_tensor *own = arena_alloc(&im->code->arena, sizeof(*own));
    if (!own) {
        return rt_import_fail_full(im);
    }
    uint64_t end = im->plan->memory_count > 0 ? im->plan->memory_bytes[0] : 0;
    for (uint32_t i = 0; i < im->own_count; i++) {
        end += im->own_values[i].tensor->byte_count;
    }
    uint32_t index = im->plan->value_count - IMPORT_STATES_MAX + im->own_count;
    *own = *t;
    own->storage = PTE_PLANNED;
    own->offset = end;
    im->own_values[im->own_count++] = (struct pte_value){.kind = PTE_TENSOR, .tensor = own};
    TRY(open_state(im, index));
    struct rt_state_use *use = &im->states->items[im->states->count - 1];
    use->delegate = delegate;
    use->number = number;
    return rt_import_use(im, index, out_value);
}

/* Does the file itself mark |t| as state? */
static bool is_named_state(const struct pte_tensor *t)
{
    return t->storage == PTE_PLANNED &&
           (t->bytes.ptr || t->is_external || t->name[0] != '\0' || t->memory > 0);
}

/* Such a tensor needs no memory between calls; find_view() makes it a constant. */
static bool is_always_empty(const struct pte_tensor *t)
{
    return t->byte_count == 0 && t->dynamism == PTE_STATIC;
}

bool rt_import_same_place(const struct pte_tensor *a, const struct pte_tensor *b)
{
    return a->storage == PTE_PLANNED && b->storage == PTE_PLANNED && a->memory == b->memory &&
           a->offset == b->offset && a->byte_count == b->byte_count && a->dtype == b->dtype;
}

struct rt_state_use *rt_import_find_state(const struct import *im, const struct pte_tensor *t)
{
    for (uint32_t i = 0; i < im->states->count; i++) {
        if (rt_import_same_place(im->states->items[i].tensor, t)) {
            return &im->states->items[i];
        }
    }
    return NULL;
}

enum status rt_import_note_overwritten(struct import *im, uint32_t index)
{
    const struct pte_tensor *t = im->plan->values[index].tensor;
    bool is_new = is_named_state(t) && !is_always_empty(t) && !rt_import_find_state(im, t) &&
                  !find_resident(im, t);
    return is_new ? open_state(im, index) : ST_OK;
}

enum status rt_import_view(struct import *im, uint32_t value, const struct pte_tensor *t,
                           uint32_t *out_value)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d < t->shape.rank; d++) {
        dims[d] = rt_dim_of(t->shape.dims[d]);
    }
    uint32_t args[] = {value, rt_graph_ints(im->graph, dims, t->shape.rank)};
    uint32_t view = rt_graph_tensor(im->graph, t->dtype, t->shape.rank, dims);
    uint32_t node = rt_graph_node(im->graph, rt_op_known(RT_KNOWN_view), args, 2, &view, 1);
    TRY(rt_graph_check(im->graph, im->err));
    *out_value = view;
    return rt_graph_infer(im->graph, node, im->err);
}

/* ---- views ----------------------------------------------------------------------------------- */

/*
 * A tensor that was not written under its own name is a view of the newest tensor that overlaps its
 * memory, if that has the same range and type. Exporters elide only static views. A tensor whose
 * memory nothing wrote keeps its content from the last call. A tensor without bytes overlaps
 * nothing and is a constant.
 */
static enum status find_view(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_tensor *t = im->plan->values[index].tensor;
    const struct rt_import_resident *found = find_resident(im, t);
    if (is_always_empty(t)) {
        return rt_import_constant(im, t, out_value);
    }
    if (!found && t->storage == PTE_PLANNED) {
        TRY(open_state(im, index));
        *out_value = im->contents[index].current;
        return ST_OK;
    }
    if (!found || found->index == index || found->offset != t->offset ||
        found->bytes != t->byte_count || found->dtype != t->dtype || t->dynamism != PTE_STATIC) {
        return error_set(im->err, ST_UNSUPPORTED, "a tensor is read before it is written");
    }
    uint32_t base = found->index, value;
    TRY(rt_import_use(im, base, &value));
    return rt_import_view(im, value, t, out_value);
}

static enum status import_tensor(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_tensor *t = im->plan->values[index].tensor;
    if (t->storage != PTE_CONSTANT) {
        return find_view(im, index, out_value);
    }
    return rt_import_constant(im, t, out_value);
}

/* ---- values ---------------------------------------------------------------------------------- */

enum status rt_import_use(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    bool is_there;
    TRY(rt_import_fetch(im, index, &is_there));
    uint32_t value = im->contents[index].current;
    if (value == 0) {
        switch (v->kind) {
        case PTE_NULL:
            value = rt_graph_none(im->graph);
            break;
        case PTE_INT:
            value = rt_graph_int(im->graph, rt_dim_of(v->int_value));
            break;
        case PTE_BOOL:
            value = rt_graph_bool(im->graph, v->bool_value);
            break;
        case PTE_DOUBLE:
            value = rt_graph_float(im->graph, v->double_value);
            break;
        case PTE_STRING:
            value = rt_graph_string(im->graph, v->string);
            break;
        case PTE_TENSOR:
            TRY(import_tensor(im, index, &value));
            break;
        default:
            unreachable(); /* pte.h: lists do not nest */
        }
        rt_import_note(im, index, value);
    }
    *out_value = value;
    return rt_graph_check(im->graph, im->err);
}

static enum status use_ints(struct import *im, const struct pte_list *list, uint32_t *out_value)
{
    struct rt_dim *items = arena_array(&im->graph->arena, list->count, sizeof(*items));
    if (!items) {
        return rt_import_fail_full(im);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t item;
        TRY(rt_import_use(im, list->values[i], &item));
        items[i] = im->graph->values[item].i;
    }
    *out_value = rt_graph_ints(im->graph, items, list->count);
    return rt_graph_check(im->graph, im->err);
}

static enum status use_tensors(struct import *im, const struct pte_list *list, uint32_t *out_value)
{
    uint32_t *items = arena_array(&im->graph->arena, list->count, sizeof(*items));
    if (!items) {
        return rt_import_fail_full(im);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->values[i] == PTE_NO_VALUE) {
            items[i] = rt_graph_none(im->graph);
        } else {
            TRY(rt_import_use(im, list->values[i], &items[i]));
        }
    }
    *out_value = rt_graph_tensors(im->graph, items, list->count);
    return rt_graph_check(im->graph, im->err);
}

enum status rt_import_argument(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    switch (v->kind) {
    case PTE_INT_LIST:
        return use_ints(im, &v->list, out_value);
    case PTE_DOUBLE_LIST:
        *out_value = rt_graph_floats(im->graph, v->list.doubles, v->list.count);
        return rt_graph_check(im->graph, im->err);
    case PTE_BOOL_LIST:
        *out_value = rt_graph_bools(im->graph, v->list.bools, v->list.count);
        return rt_graph_check(im->graph, im->err);
    case PTE_TENSOR_LIST:
    case PTE_OPTIONAL_TENSOR_LIST:
        return use_tensors(im, &v->list, out_value);
    default:
        return rt_import_use(im, index, out_value);
    }
}
