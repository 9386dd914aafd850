/* SPDX-License-Identifier: MIT */
/*
 * Masks as indices: one block finds the places of their nonzero elements, the next one uses them.
 */
#include "config.h"

#include "runtime/import/import_priv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"

static bool is_mask(const struct import *im, uint32_t index)
{
    const struct pte_value *v = index == PTE_NO_VALUE ? NULL : &im->plan->values[index];
    return v && v->kind == PTE_TENSOR && (v->tensor->dtype == DT_BOOL || v->tensor->dtype == DT_U8);
}

/* The places where |mask| is not zero, [n, rank], in a new register. */
static enum status find_places(struct import *im, uint32_t mask, uint32_t *out_reg)
{
    struct rt_graph *graph = im->graph;
    uint32_t arg, outs[2];
    TRY(rt_import_use(im, mask, &arg));
    outs[0] = rt_graph_tensor(graph, DT_I64, 2, NULL);
    outs[1] = rt_graph_tensor(graph, DT_I64, 0, NULL);
    uint32_t node = rt_graph_node(graph, rt_op_known(RT_KNOWN_nonzero), &arg, 1, outs, 2);
    TRY(rt_graph_check(graph, im->err));
    TRY(rt_graph_infer(graph, node, im->err));
    TRY(rt_import_add_temporary(im, outs[0], true, out_reg));
    return rt_import_add_out(im, *out_reg, outs[0], outs[1]);
}

static enum status column(struct import *im, uint32_t places, int64_t j, uint32_t *out_value)
{
    uint32_t args[] = {places, rt_graph_int(im->graph, rt_dim_of(1)),
                       rt_graph_int(im->graph, rt_dim_of(j))};
    uint32_t out = rt_graph_tensor(im->graph, DT_I64, 1, NULL);
    uint32_t node = rt_graph_node(im->graph, rt_op_known(RT_KNOWN_select), args, 3, &out, 1);
    TRY(rt_graph_check(im->graph, im->err));
    *out_value = out;
    return rt_graph_infer(im->graph, node, im->err);
}

/* Makes the list of indices, with columns of places instead of masks. */
static enum status list_indices(struct import *im, const struct pte_list *list,
                                const uint32_t *regs)
{
    uint32_t items[2 * SHAPE_RANK_MAX], count = 0, places;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t index = list->values[i];
        uint32_t columns = is_mask(im, index) ? im->plan->values[index].tensor->shape.rank : 1;
        if (count + columns > sizeof(items) / sizeof(items[0])) {
            return error_set(im->err, ST_INVALID, "more indices than a tensor has dims");
        }
        if (index == PTE_NO_VALUE) {
            items[count++] = rt_graph_none(im->graph);
        } else if (!is_mask(im, index)) {
            TRY(rt_import_use(im, index, &items[count++]));
        } else {
            TRY(rt_import_register(im, regs[i], &places));
            for (uint32_t j = 0; j < columns; j++) {
                TRY(column(im, places, j, &items[count++]));
            }
        }
    }
    im->index_list = rt_graph_tensors(im->graph, items, count);
    return rt_graph_check(im->graph, im->err);
}

enum status rt_import_masks(struct import *im, const struct pte_instr *instr)
{
    uint32_t regs[SHAPE_RANK_MAX], masks = 0;
    const struct pte_value *v = instr->arg_count > 1 ? &im->plan->values[instr->args[1]] : NULL;
    im->index_list = 0;
    bool is_list = v && (v->kind == PTE_OPTIONAL_TENSOR_LIST || v->kind == PTE_TENSOR_LIST);
    if (!is_list || v->list.count > SHAPE_RANK_MAX) {
        return ST_OK; /* import_call() refuses such a call */
    }
    for (uint32_t i = 0; i < v->list.count; i++) {
        if (is_mask(im, v->list.values[i])) {
            TRY(find_places(im, v->list.values[i], &regs[i]));
            masks++;
        }
    }
    if (masks == 0) {
        return ST_OK;
    }
    TRY(rt_import_end_block(im, im->position));
    return list_indices(im, &v->list, regs);
}
