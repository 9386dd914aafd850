/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/emit/emit.h"

#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "runtime/emit/planner.h"

static const struct rt_tensor *tensor_of(const struct rt_emit *e, uint32_t value)
{
    must(e->graph->values[value].kind == RT_TENSOR);
    must(e->tensors[value]); /* made before the operator was called */
    return e->tensors[value];
}

const struct rt_op *rt_emit_op(const struct rt_emit *e)
{
    return e->node->op;
}

const struct rt_tensor *rt_emit_arg(struct rt_emit *e, uint32_t index)
{
    must(index < e->node->arg_count);
    uint32_t value = e->node->args[index];
    return e->graph->values[value].kind == RT_NONE ? NULL : tensor_of(e, value);
}

const struct rt_tensor *rt_emit_out(struct rt_emit *e, uint32_t index)
{
    must(index < e->node->out_count);
    uint32_t value = e->node->outs[index];
    return index > 0 && !e->is_used[value] ? NULL : tensor_of(e, value);
}

static const struct rt_tensor *list_item(struct rt_emit *e, uint32_t list, uint32_t item)
{
    const struct rt_value *v = &e->graph->values[list];
    must(v->kind == RT_TENSORS && item < v->count);
    return e->graph->values[v->values[item]].kind == RT_NONE ? NULL : tensor_of(e, v->values[item]);
}

const struct rt_tensor *rt_emit_arg_item(struct rt_emit *e, uint32_t index, uint32_t item)
{
    must(index < e->node->arg_count);
    return list_item(e, e->node->args[index], item);
}

const struct rt_tensor *rt_emit_out_item(struct rt_emit *e, uint32_t index, uint32_t item)
{
    must(index < e->node->out_count);
    return list_item(e, e->node->outs[index], item);
}

const struct rt_value *rt_emit_value(const struct rt_emit *e, uint32_t index)
{
    must(index < e->node->arg_count);
    return rt_node_arg(e->graph, e->node, index);
}

int64_t rt_emit_int(const struct rt_emit *e, uint32_t index)
{
    const struct rt_value *v = rt_emit_value(e, index);
    struct rt_place place;
    must(v->kind == RT_INT && !e->planner->find_place(e, index, &place));
    return rt_dim_at(v->i, e->values);
}

struct rt_place rt_emit_place(const struct rt_emit *e, uint32_t index)
{
    struct rt_place place;
    return e->planner->find_place(e, index, &place)
               ? place
               : (struct rt_place){.known = rt_emit_int(e, index)};
}

struct hal_binding rt_emit_word(const struct rt_emit *e, struct rt_place place)
{
    struct hal_binding word = {.slot = e->words.slot};
    if (place.is_read) {
        word.offset = e->words.offset + place.word * sizeof(int64_t);
        word.length = sizeof(int64_t);
    }
    return word;
}

int64_t rt_emit_ints(const struct rt_emit *e, uint32_t index, uint32_t item)
{
    const struct rt_value *v = rt_emit_value(e, index);
    must(v->kind == RT_INTS && item < v->count);
    return rt_dim_at(v->ints[item], e->values);
}

double rt_emit_number(const struct rt_emit *e, uint32_t index)
{
    const struct rt_value *v = rt_emit_value(e, index);
    double number;
    if (v->kind == RT_FLOAT && v->symbol) {
        memcpy(&number, &e->values[v->symbol], sizeof(number));
        return number;
    }
    return v->kind == RT_INT                 ? (double)rt_dim_at(v->i, e->values)
           : v->kind == RT_BOOL && v->symbol ? (double)e->values[v->symbol]
                                             : rt_value_number(v);
}

const struct rt_machine *rt_emit_machine(const struct rt_emit *e, const struct hal_kernel *kernel)
{
    return rt_cut_machine(e->props, kernel);
}

static bool meets(const struct hal_binding *binding, const struct rt_tensor *tensor)
{
    const struct hal_binding *other = &tensor->binding;
    return binding->buffer == other->buffer && (binding->buffer || binding->slot == other->slot) &&
           binding->offset < other->offset + other->length &&
           other->offset < binding->offset + binding->length;
}

/* The bindings of outputs, as bits. */
static uint32_t written_bindings(struct rt_emit *e, const struct hal_dispatch *dispatch)
{
    struct rt_tensors outs = rt_node_out_tensors(e->graph, e->node);
    uint32_t writes = 0;
    for (uint32_t value; rt_tensors_next(&outs, &value);) {
        const struct rt_tensor *tensor = e->tensors[value];
        for (uint32_t b = 0; tensor && b < dispatch->binding_count; b++) {
            writes |= (uint32_t)meets(&dispatch->bindings[b], tensor) << b;
        }
    }
    return writes;
}

/* The tensor among |tensors| that has exactly the bytes of |binding|, or NULL. */
static const struct rt_tensor *tensor_at(const struct rt_emit *e, struct rt_tensors tensors,
                                         const struct hal_binding *binding)
{
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        const struct rt_tensor *tensor = e->tensors[value];
        if (tensor && meets(binding, tensor) && binding->offset == tensor->binding.offset &&
            binding->length == tensor->binding.length) {
            return tensor;
        }
    }
    return NULL;
}

/* The bytes that the dispatch reads and writes, for profiles. The binding of a tensor that is a
 * part of an image reaches to the image's end, over bytes of other parts. */
static uint64_t count_bytes(const struct rt_emit *e, const struct hal_dispatch *dispatch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        const struct hal_binding *binding = &dispatch->bindings[i];
        const struct rt_tensor *t = tensor_at(e, rt_node_out_tensors(e->graph, e->node), binding);
        t = t ? t : tensor_at(e, rt_node_arg_tensors(e->graph, e->node), binding);
        bytes += t && t->bytes < binding->length ? t->bytes : binding->length;
    }
    return bytes;
}

enum status rt_emit_update(struct rt_emit *e, const struct rt_update *update,
                           struct hal_binding *out_words, struct error *err)
{
    return e->planner->update(e, update, out_words, err);
}

bool rt_emit_is_host(const struct rt_emit *e)
{
    return e->props->is_host;
}

enum status rt_emit_workspace(struct rt_emit *e, size_t bytes, struct hal_binding *out_binding,
                              struct error *err)
{
    return e->planner->workspace(e, bytes, out_binding, err);
}

enum status rt_emit_barrier(struct rt_emit *e, struct error *err)
{
    return hal_command_barrier(e->command, err);
}

enum status rt_emit_dispatch(struct rt_emit *e, const struct hal_dispatch *dispatch,
                             struct error *err)
{
    if (dispatch->grid[0] == 0 || dispatch->grid[1] == 0 || dispatch->grid[2] == 0) {
        return ST_OK;
    }
    struct hal_dispatch labelled = *dispatch;
    labelled.label = e->label;
    labelled.tag = (uint32_t)(e->node - e->graph->nodes);
    labelled.bytes = count_bytes(e, dispatch);
    labelled.writes = dispatch->writes | written_bindings(e, dispatch);
    return hal_command_dispatch(e->command, &labelled, err);
}
