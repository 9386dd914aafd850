/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/fingerprint.h"

#include "base/check.h"
#include "base/digest.h"
#include "runtime/code/content.h"
#include "runtime/graph/graph.h"
#include "runtime/pte/files.h"

static void add_bytes(void *to, struct span bytes)
{
    digest_add(to, bytes);
}

/* Which bytes of a data file they are, or the bytes themselves if no digest says what it has. */
static void add_constant(const struct rt_content *content, const struct rt_files *files,
                         struct span bytes)
{
    struct rt_data_place place;
    bool is_placed = rt_files_data_place(files, bytes, &place);
    rt_content_number(content, is_placed);
    if (is_placed) {
        content->add(content->to, span_of(&place, sizeof(place)));
    } else {
        content->add(content->to, bytes);
    }
}

/* Which value it is, and what it is if the program's own file does not say it. */
static void add_tensor(const struct rt_content *content, const struct rt_graph *graph,
                       uint32_t index)
{
    const struct rt_value *v = &graph->values[index];
    rt_content_number(content, index);
    rt_content_form(content, v);
    rt_content_number(content, v->is_constant);
    if (v->is_constant && !v->buffer && !rt_files_are_own(graph->files, v->bytes)) {
        add_constant(content, graph->files, v->bytes);
    }
}

static void add_node(const struct rt_content *content, const struct rt_graph *graph,
                     const struct rt_node *node)
{
    struct rt_tensors tensors = rt_node_arg_tensors(graph, node);
    rt_content_operator(content, graph, node);
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        add_tensor(content, graph, value);
    }
    rt_content_number(content, node->out_count);
    for (uint32_t i = 0; i < node->out_count; i++) {
        add_tensor(content, graph, node->outs[i]);
    }
}

void rt_fingerprint(const struct rt_graph *graph, uint64_t out[2])
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct digest digest;
    const struct rt_content content = {.add = add_bytes, .to = &digest};
    digest_init(&digest);
    rt_content_number(&content, graph->precision);
    rt_content_number(&content, graph->node_count);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        add_node(&content, graph, &graph->nodes[i]);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        rt_content_number(&content, graph->outputs[i]);
    }
    digest_end(&digest, out);
}
