/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/activation.h"

#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/ops/chain.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pointwise.h"

/* Loops of one operand without parameters. A relu is a clamp. */
static const struct {
    enum rt_pointwise_op op;
    enum uk_unary unary;
} activations[] = {
    {RT_PW_gelu, UK_GELU}, {RT_PW_gelu_tanh, UK_GELU_TANH}, {RT_PW_hardsigmoid, UK_HARDSIGMOID},
    {RT_PW_silu, UK_SILU}, {RT_PW_hardswish, UK_HARDSWISH}, {RT_PW_sigmoid, UK_SIGMOID},
    {RT_PW_tanh, UK_TANH},
};

/* The place of |op| in the table; its length for other loops. */
static size_t find(enum rt_pointwise_op op)
{
    size_t i = 0;
    while (i < sizeof(activations) / sizeof(activations[0]) && activations[i].op != op) {
        i++;
    }
    return i;
}

static bool is_known(enum rt_pointwise_op op)
{
    return find(op) < sizeof(activations) / sizeof(activations[0]);
}

bool rt_activation_find(struct rt_graph *graph, const struct rt_node *node, uint32_t *out_input,
                        uint32_t *out_name)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_pointwise_step step;
    if (rt_op_is(node->op, RT_KNOWN_chain)) {
        return rt_chain_find_only_step(graph, node, out_input, out_name) &&
               is_known(rt_chain_op_named(graph->values[*out_name].bytes));
    }
    if (!rt_pointwise_read_step(graph, node, &step) || !is_known(step.op) ||
        step.values[0] == RT_PW_NUMBER) {
        return false;
    }
    const char *name = rt_pointwise_name(step.op);
    *out_input = step.values[0];
    *out_name = rt_graph_string(graph, span_of(name, strlen(name)));
    return true;
}

uint32_t rt_activation_read(const struct rt_value *name)
{
    if (name->kind == RT_NONE) {
        return 0;
    }
    enum rt_pointwise_op op = rt_chain_op_named(name->bytes);
    return is_known(op) ? activations[find(op)].unary + 1 : 0;
}
