/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/recipe.h"

#include <string.h>

#include "base/blake2b.h"
#include "base/check.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"
#include "runtime/pte/files.h"

_Static_assert(sizeof(struct rt_recipe) == BLAKE2B_BYTES, "a recipe is a hash");

/* One node while its recipe is made. */
struct maker {
    const struct rt_graph *graph;
    const struct rt_value_recipe *recipes; /* by value: of the nodes before */
    struct blake2b hash;
    bool is_known;
};

static void add_number(struct maker *m, uint64_t number)
{
    blake2b_add_number(&m->hash, number);
}

/* How the bytes of |v| are to be read. */
static void add_form(struct maker *m, const struct rt_value *v)
{
    add_number(m, v->dtype);
    add_number(m, v->rank);
    for (uint8_t d = 0; d < v->rank; d++) {
        add_number(m, (uint64_t)v->dims[d].value);
        add_number(m, v->order ? v->order[d] : d);
    }
    add_number(m, v->is_packed | v->is_half << 1);
}

/* Which bytes they are. */
static void add_content(struct maker *m, uint32_t index)
{
    const struct rt_value *v = &m->graph->values[index];
    struct rt_file_place place = {0};
    struct rt_recipe recipe = m->recipes[index].recipe;
    bool is_made = v->buffer ? rt_shared_recipe(v->buffer, &recipe) : m->recipes[index].is_known;
    bool is_in_file =
        !v->buffer && v->is_constant && rt_files_place(m->graph->files, v->bytes, &place);
    m->is_known &= is_made || is_in_file || (v->is_constant && v->bytes.len == 0);
    add_number(m, is_made);
    if (is_made) {
        blake2b_add(&m->hash, span_of(&recipe, sizeof(recipe)));
    } else {
        add_number(m, place.file);
        add_number(m, place.offset);
        add_number(m, v->bytes.len);
    }
}

static void add_scalars(struct maker *m, const struct rt_value *v)
{
    add_number(m, v->kind);
    add_number(m, v->count);
    switch (v->kind) {
    case RT_INT:
        add_number(m, (uint64_t)v->i.value);
        break;
    case RT_FLOAT:
        blake2b_add(&m->hash, span_of(&v->f, sizeof(v->f)));
        break;
    case RT_BOOL:
        add_number(m, v->b);
        break;
    case RT_STRING:
        add_number(m, v->bytes.len);
        blake2b_add(&m->hash, v->bytes);
        break;
    case RT_FLOATS:
        blake2b_add(&m->hash, span_of(v->floats, v->count * sizeof(*v->floats)));
        break;
    case RT_INTS:
        for (uint32_t i = 0; i < v->count; i++) {
            add_number(m, (uint64_t)v->ints[i].value);
        }
        break;
    case RT_BOOLS:
        for (uint32_t i = 0; i < v->count; i++) {
            add_number(m, v->bools[i]);
        }
        break;
    case RT_TENSORS: /* the items follow; here, which of them are there */
        for (uint32_t i = 0; i < v->count; i++) {
            add_number(m, m->graph->values[v->values[i]].kind);
        }
        break;
    case RT_NONE:
    case RT_TENSOR:
        break;
    }
}

static void add_node(struct maker *m, const struct rt_node *node)
{
    struct rt_tensors tensors = rt_node_arg_tensors(m->graph, node);
    add_number(m, strlen(node->op->name));
    blake2b_add(&m->hash, span_str(node->op->name));
    add_number(m, node->arg_count);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        add_scalars(m, rt_node_arg(m->graph, node, i));
    }
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        add_form(m, &m->graph->values[value]);
        add_content(m, value);
    }
    add_number(m, node->out_count);
    for (uint32_t i = 0; i < node->out_count; i++) {
        add_form(m, rt_node_out(m->graph, node, i));
    }
}

void rt_recipes_find(const struct rt_graph *graph, const struct hal_device *device,
                     struct rt_value_recipe *out)
{
    struct maker m = {.graph = graph, .recipes = out};
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        m.is_known = true;
        blake2b_init(&m.hash);
        add_number(&m, (uintptr_t)device);
        add_number(&m, graph->precision);
        add_node(&m, node);
        for (uint32_t j = 0; m.is_known && j < node->out_count; j++) {
            struct blake2b hash = m.hash;
            blake2b_add_number(&hash, j);
            blake2b_end(&hash, (uint8_t *)&out[node->outs[j]].recipe);
            out[node->outs[j]].is_known = true;
        }
    }
}
