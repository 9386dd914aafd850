/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/recipe.h"

#include "base/blake2b.h"
#include "base/check.h"
#include "runtime/code/content.h"
#include "runtime/graph/graph.h"
#include "runtime/pte/files.h"

_Static_assert(sizeof(struct rt_recipe) == BLAKE2B_BYTES, "a recipe is a hash");

/* One node while its recipe is made. */
struct maker {
    const struct rt_graph *graph;
    const struct rt_value_recipe *recipes; /* by value: of the nodes before */
    struct blake2b hash;
    struct rt_content content; /* adds to |hash| */
    bool is_known;
};

static void add_bytes(void *to, struct span bytes)
{
    blake2b_add(to, bytes);
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
    rt_content_number(&m->content, is_made);
    if (is_made) {
        add_bytes(&m->hash, span_of(&recipe, sizeof(recipe)));
    } else {
        rt_content_number(&m->content, place.file);
        rt_content_number(&m->content, place.offset);
        rt_content_number(&m->content, v->bytes.len);
    }
}

static void add_node(struct maker *m, const struct rt_node *node)
{
    struct rt_tensors tensors = rt_node_arg_tensors(m->graph, node);
    rt_content_operator(&m->content, m->graph, node);
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        rt_content_form(&m->content, &m->graph->values[value]);
        add_content(m, value);
    }
    rt_content_number(&m->content, node->out_count);
    for (uint32_t i = 0; i < node->out_count; i++) {
        rt_content_form(&m->content, rt_node_out(m->graph, node, i));
    }
}

void rt_recipes_find(const struct rt_graph *graph, const struct hal_device *device,
                     struct rt_value_recipe *out)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct maker m = {.graph = graph, .recipes = out};
    m.content = (struct rt_content){.add = add_bytes, .to = &m.hash};
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        m.is_known = true;
        blake2b_init(&m.hash);
        rt_content_number(&m.content, (uintptr_t)device);
        rt_content_number(&m.content, graph->precision);
        add_node(&m, node);
        for (uint32_t j = 0; m.is_known && j < node->out_count; j++) {
            struct blake2b hash = m.hash;
            blake2b_add_number(&hash, j);
            blake2b_end(&hash, (uint8_t *)&out[node->outs[j]].recipe);
            out[node->outs[j]].is_known = true;
        }
    }
}
