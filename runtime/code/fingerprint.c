/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/fingerprint.h"

#include "base/check.h"
#include "base/digest.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"
#include "runtime/pte/files.h"

static void add_tensor(struct digest *digest, const struct rt_graph *graph,
                       const struct rt_value *v)
{
    digest_add_number(digest, v->dtype);
    digest_add_number(digest, v->rank);
    for (uint8_t d = 0; d < v->rank; d++) {
        digest_add_number(digest, (uint64_t)v->dims[d].value);
        digest_add_number(digest, v->order ? v->order[d] : d);
    }
    digest_add_number(digest, v->is_packed | v->is_half << 1 | v->is_constant << 2);
    if (v->is_constant && !v->buffer && !rt_files_are_own(graph->files, v->bytes)) {
        digest_add(digest, v->bytes);
    }
}

static void add_value(struct digest *digest, const struct rt_graph *graph, uint32_t index)
{
    const struct rt_value *v = &graph->values[index];
    digest_add_number(digest, index);
    digest_add_number(digest, v->kind);
    digest_add_number(digest, v->count);
    switch (v->kind) {
    case RT_TENSOR:
        add_tensor(digest, graph, v);
        break;
    case RT_INT:
        digest_add_number(digest, (uint64_t)v->i.value);
        break;
    case RT_FLOAT:
        digest_add(digest, span_of(&v->f, sizeof(v->f)));
        break;
    case RT_BOOL:
        digest_add_number(digest, v->b);
        break;
    case RT_STRING:
        digest_add(digest, v->bytes);
        break;
    case RT_FLOATS:
        digest_add(digest, span_of(v->floats, v->count * sizeof(*v->floats)));
        break;
    case RT_INTS:
        for (uint32_t i = 0; i < v->count; i++) {
            digest_add_number(digest, (uint64_t)v->ints[i].value);
        }
        break;
    case RT_BOOLS:
        for (uint32_t i = 0; i < v->count; i++) {
            digest_add_number(digest, v->bools[i]);
        }
        break;
    default:
        break; /* the items of a list of tensors follow; the other kinds have no value */
    }
}

static void add_node(struct digest *digest, const struct rt_graph *graph,
                     const struct rt_node *node)
{
    struct rt_tensors tensors = rt_node_arg_tensors(graph, node);
    digest_add_text(digest, node->op->name);
    digest_add_number(digest, node->arg_count);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        add_value(digest, graph, node->args[i]);
    }
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        add_value(digest, graph, value);
    }
    digest_add_number(digest, node->out_count);
    for (uint32_t i = 0; i < node->out_count; i++) {
        add_value(digest, graph, node->outs[i]);
    }
}

void rt_fingerprint(const struct rt_graph *graph, uint64_t out[2])
{
    struct digest digest;
    digest_init(&digest);
    digest_add_number(&digest, graph->precision);
    digest_add_number(&digest, graph->node_count);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        add_node(&digest, graph, &graph->nodes[i]);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        digest_add_number(&digest, graph->outputs[i]);
    }
    digest_end(&digest, out);
}
