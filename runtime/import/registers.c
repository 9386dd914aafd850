/* SPDX-License-Identifier: MIT */
/* Registers of a method's code: one for each value that outlives a block, and temporaries. */
#include "config.h"

#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "runtime/import/import_priv.h"

void rt_import_touch(struct import *im, uint32_t index)
{
    if (!im->contents[index].is_touched) {
        im->contents[index].is_touched = true;
        im->touched[im->touched_count++] = index;
    }
}

enum status rt_import_add_register(struct import *im, struct rt_register r, uint32_t *out_reg)
{
    struct rt_code *code = im->code;
    size_t count = (size_t)code->register_count + 1;
    if (!ARENA_ROOM(&code->arena, im->writers, im->writer_capacity, count) ||
        !ARENA_ROOM(&code->arena, code->registers, im->register_capacity, count)) {
        return rt_import_fail_full(im);
    }
    im->writers[code->register_count] = (struct rt_import_writer){0};
    code->registers[code->register_count] = r;
    *out_reg = code->register_count++;
    return ST_OK;
}

/* A bound of 1 never means that the dim may vary, except in dim 0: there may be no rows. */
static uint32_t fixed_dims(const struct pte_tensor *t)
{
    uint32_t fixed = 0;
    for (uint8_t d = 0; d < t->shape.rank; d++) {
        fixed |= t->dynamism == PTE_STATIC || (d > 0 && t->shape.dims[d] == 1) ? 1u << d : 0;
    }
    return fixed;
}

struct rt_register rt_import_describe_register(const struct pte_value *v)
{
    struct rt_register r = {.kind = RT_NONE};
    switch (v->kind) {
    case PTE_TENSOR:
        r = (struct rt_register){.kind = RT_TENSOR,
                                 .dtype = v->tensor->dtype,
                                 .bound = v->tensor->shape,
                                 .bytes = v->tensor->byte_count,
                                 .fixed_dims = fixed_dims(v->tensor)};
        break;
    case PTE_INT:
        r.initial = (struct rt_scalar){RT_INT, v->int_value};
        break;
    case PTE_DOUBLE:
        r.initial = rt_scalar_of_double(v->double_value);
        break;
    case PTE_BOOL:
        r.initial = (struct rt_scalar){RT_BOOL, v->bool_value};
        break;
    default:
        break;
    }
    r.kind = r.kind == RT_NONE ? r.initial.kind : r.kind;
    return r;
}

enum status rt_import_register_of(struct import *im, uint32_t index, uint32_t *out_reg)
{
    struct rt_import_content *content = &im->contents[index];
    if (content->reg == 0) {
        uint32_t reg;
        TRY(rt_import_add_register(im, rt_import_describe_register(&im->plan->values[index]),
                                   &reg));
        content->reg = reg + 1;
    }
    *out_reg = content->reg - 1;
    return ST_OK;
}

enum status rt_import_add_temporary(struct import *im, uint32_t value, bool is_extent,
                                    uint32_t *out_reg)
{
    const struct rt_value *v = &im->graph->values[value];
    struct rt_register r = {.kind = v->kind, .dtype = v->dtype, .bound = {.rank = v->rank}};
    for (uint8_t d = 0; v->kind == RT_TENSOR && d < v->rank; d++) {
        r.bound.dims[d] = v->dims[d].value;
        r.fixed_dims |= rt_dim_is_const(v->dims[d]) && !(is_extent && d == 0) ? 1u << d : 0;
    }
    if (v->kind == RT_TENSOR) {
        TRY(shape_bytes(&r.bound, v->dtype, &r.bytes, im->err));
    }
    return rt_import_add_register(im, r, out_reg);
}

enum status rt_import_add_input(struct import *im, uint32_t reg, uint32_t value)
{
    struct rt_graph *graph = im->graph;
    size_t count = (size_t)graph->input_count + 1;
    if (!ARENA_ROOM(&graph->arena, graph->inputs, im->graph_inputs_capacity, count) ||
        !ARENA_ROOM(&graph->arena, im->block->ins, im->block_inputs_capacity, count)) {
        return rt_import_fail_full(im);
    }
    im->block->ins[graph->input_count] = reg;
    graph->inputs[graph->input_count++] = value;
    return rt_graph_check(graph, im->err);
}

/* Dims that may vary become symbols. */
static uint32_t declare_tensor_input(struct import *im, const struct rt_register *r)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d < r->bound.rank; d++) {
        int64_t bound = r->bound.dims[d];
        dims[d] =
            r->fixed_dims >> d & 1 ? rt_dim_of(bound) : rt_dim_symbol(&im->graph->dims, bound);
    }
    return rt_graph_tensor(im->graph, r->dtype, r->bound.rank, dims);
}

enum status rt_import_register(struct import *im, uint32_t reg, uint32_t *out_value)
{
    const struct rt_register *r = &im->code->registers[reg];
    struct rt_graph *graph = im->graph;
    uint32_t value = 0;
    switch (r->kind) {
    case RT_TENSOR:
        value = declare_tensor_input(im, r);
        break;
    case RT_INT:
        value = rt_graph_int(graph, rt_dim_any(&graph->dims));
        break;
    case RT_FLOAT:
        value = rt_graph_run_float(graph, rt_dim_any(&graph->dims));
        break;
    case RT_BOOL:
        value = rt_graph_run_bool(graph, rt_dim_any(&graph->dims));
        break;
    default:
        return error_set(im->err, ST_INVALID, "a value without content is used");
    }
    *out_value = value;
    return rt_import_add_input(im, reg, value);
}

enum status rt_import_read_register(struct import *im, uint32_t index)
{
    struct rt_import_content *content = &im->contents[index];
    must(content->place == RT_PLACE_REGISTER && content->reg);
    const struct pte_value *v = &im->plan->values[index];
    rt_import_touch(im, index);
    TRY(rt_import_register(im, content->reg - 1, &content->current));
    if (v->kind == PTE_TENSOR && *v->tensor->name) {
        im->graph->values[content->current].name = v->tensor->name;
    }
    return ST_OK;
}
