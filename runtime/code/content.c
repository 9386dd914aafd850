/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/content.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"

void rt_content_number(const struct rt_content *content, uint64_t number)
{
    content->add(content->to, span_of(&number, sizeof(number)));
}

void rt_content_text(const struct rt_content *content, struct span text)
{
    rt_content_number(content, text.len);
    content->add(content->to, text);
}

void rt_content_form(const struct rt_content *content, const struct rt_value *v)
{
    rt_content_number(content, v->dtype);
    rt_content_number(content, v->rank);
    for (uint8_t d = 0; d < v->rank; d++) {
        rt_content_number(content, (uint64_t)v->dims[d].value);
        rt_content_number(content, v->order ? v->order[d] : d);
    }
    rt_content_number(content, v->is_packed | v->is_half << 1);
}

void rt_content_argument(const struct rt_content *content, const struct rt_graph *graph,
                         const struct rt_value *v)
{
    rt_content_number(content, v->kind);
    rt_content_number(content, v->count);
    switch (v->kind) {
    case RT_INT:
        rt_content_number(content, (uint64_t)v->i.value);
        break;
    case RT_FLOAT:
        content->add(content->to, span_of(&v->f, sizeof(v->f)));
        break;
    case RT_BOOL:
        rt_content_number(content, v->b);
        break;
    case RT_STRING:
        rt_content_text(content, v->bytes);
        break;
    case RT_FLOATS:
        content->add(content->to, span_of(v->floats, v->count * sizeof(*v->floats)));
        break;
    case RT_INTS:
        for (uint32_t i = 0; i < v->count; i++) {
            rt_content_number(content, (uint64_t)v->ints[i].value);
        }
        break;
    case RT_BOOLS:
        for (uint32_t i = 0; i < v->count; i++) {
            rt_content_number(content, v->bools[i]);
        }
        break;
    case RT_TENSORS:
        for (uint32_t i = 0; i < v->count; i++) {
            rt_content_number(content, graph->values[v->values[i]].kind);
        }
        break;
    case RT_NONE:
    case RT_TENSOR:
        break;
    }
}

void rt_content_operator(const struct rt_content *content, const struct rt_graph *graph,
                         const struct rt_node *node)
{
    rt_content_text(content, span_str(node->op->name));
    rt_content_number(content, node->arg_count);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        rt_content_argument(content, graph, rt_node_arg(graph, node, i));
    }
}
