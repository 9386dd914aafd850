/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/outline.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "runtime/graph/op.h"
#include "runtime/program/method.h"

#define TEXT_BYTES_MAX 1024u              /* of a type, a layer or a source line */
#define NODE_BYTES_MAX ((size_t)16 << 20) /* of all that is said of one node */

_Static_assert(RT_OUTLINE_NO_NODE == RT_NO_NODE, "one number says that there is no node");

/* The node that is being described; |arena| holds its texts and lists. */
struct outline {
    rt_outline_f *fn;
    void *arg;
    struct rt_notes notes;
    const struct rt_graph *graph;
    uint32_t block;
    struct arena arena;
    struct buf text;
    bool failed;
};

/* Keeps the content of |text|; a text that was too long is left out. */
static struct span keep_text(struct outline *outline)
{
    struct span text = buf_failed(&outline->text) ? span_str("") : buf_span(&outline->text);
    uint8_t *copy = arena_alloc(&outline->arena, text.len + 1);
    outline->failed |= !copy || outline->text.lacks_memory;
    if (copy && text.len) {
        memcpy(copy, text.ptr, text.len);
    }
    buf_reset(&outline->text);
    return copy ? span_of(copy, text.len) : span_str("");
}

static struct rt_outline_value describe_value(struct outline *outline, uint32_t number)
{
    const struct rt_value *v = rt_graph_value(outline->graph, number);
    rt_value_print(outline->graph, number, &outline->text);
    return (struct rt_outline_value){
        .number = number,
        .is_constant = v->is_constant,
        .type = keep_text(outline),
        .name = v->node == RT_NO_NODE ? v->name : NULL,
    };
}

/* The tensors that |tensors| goes through. */
static const struct rt_outline_value *
describe_values(struct outline *outline, struct rt_tensors tensors, uint32_t *out_count)
{
    struct rt_tensors again = tensors;
    uint32_t value, count = 0;
    while (rt_tensors_next(&tensors, &value)) {
        count++;
    }
    struct rt_outline_value *values = arena_array(&outline->arena, count, sizeof(*values));
    outline->failed |= !values;
    for (uint32_t i = 0; values && rt_tensors_next(&again, &value); i++) {
        values[i] = describe_value(outline, value);
    }
    *out_count = values ? count : 0;
    return values;
}

/* Calls |fn| with |node|, and forgets its texts. */
static void tell(struct outline *outline, const struct rt_outline_node *node)
{
    if (!outline->failed) {
        outline->fn(outline->arg, node);
    }
    arena_reset(&outline->arena);
}

static void tell_node(struct outline *outline, uint32_t number)
{
    const struct rt_graph *graph = outline->graph;
    const struct rt_node *node = &graph->nodes[number];
    struct rt_outline_node told = {.block = outline->block, .number = number};
    told.op = node->op->name;
    rt_node_print_layer(graph, node, &outline->text);
    told.layer = keep_text(outline);
    rt_node_print_origin(node, &outline->notes, "", &outline->text);
    told.source = keep_text(outline);
    told.ins = describe_values(outline, rt_node_arg_tensors(graph, node), &told.in_count);
    told.outs = describe_values(outline, rt_node_out_tensors(graph, node), &told.out_count);
    tell(outline, &told);
}

static void tell_block(struct outline *outline)
{
    const struct rt_graph *graph = outline->graph;
    const struct rt_tensors inputs = {
        .graph = graph, .values = graph->inputs, .count = graph->input_count};
    const struct rt_tensors outputs = {
        .graph = graph, .values = graph->outputs, .count = graph->output_count};
    struct rt_outline_node told = {
        .block = outline->block, .number = RT_OUTLINE_NO_NODE, .op = "input"};
    told.outs = describe_values(outline, inputs, &told.out_count);
    tell(outline, &told);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!graph->nodes[i].is_dead) {
            tell_node(outline, i);
        }
    }
    told = (struct rt_outline_node){
        .block = outline->block, .number = RT_OUTLINE_NO_NODE, .op = "output"};
    told.ins = describe_values(outline, outputs, &told.in_count);
    tell(outline, &told);
}

enum status rt_method_outline(struct rt_method *method, rt_outline_f *fn, void *arg,
                              struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (method->failure.code != ST_OK) {
        *err = method->failure;
        return err->code;
    }
    if (!rt_method_has_own_work(method)) {
        return error_set(err, ST_UNSUPPORTED, "a pipeline has steps and no graph of its own");
    }
    struct outline outline = {.fn = fn, .arg = arg, .notes = rt_method_notes(method)};
    arena_init(&outline.arena, NODE_BYTES_MAX);
    buf_init(&outline.text, TEXT_BYTES_MAX);
    for (uint32_t i = 0; i < method->code.block_count; i++) {
        if (rt_code_reaches(&method->code, i)) {
            outline.block = i;
            outline.graph = &method->code.blocks[i]->graph;
            tell_block(&outline);
        }
    }
    buf_fini(&outline.text);
    arena_fini(&outline.arena);
    return outline.failed ? error_no_memory(err, "the graph") : ST_OK;
}
