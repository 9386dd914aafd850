/* SPDX-License-Identifier: MIT */
/* Graphs and sizes as text, deterministically. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

#define PIECES_MAX                                                                                 \
    64 /* operands are shared, so the text of an expression can be longer than memory */
#define DEPTH_MAX 128

#define SOURCE_LINE_MAX 1024

/* Something still to be printed: a text and, unless that is all, an expression after it. */
struct piece {
    const char *text;
    bool is_all;
    bool is_double; /* |d| is the bits of one */
    struct rt_dim d;
};

static void print_constant(const struct piece *piece, struct buf *out)
{
    if (piece->is_double) {
        buf_printf(out, "%g", rt_dim_to_double(piece->d.value));
    } else {
        buf_printf(out, "%" PRId64, piece->d.value);
    }
}

static bool is_function(enum rt_expr_kind kind)
{
    return kind == RT_EXPR_DOUBLE || kind == RT_EXPR_TRUNC;
}

void rt_dim_print(const struct rt_dims *dims, struct rt_dim d, struct buf *out)
{
    static const char *const names[] = {
        [RT_EXPR_SUM] = "+",         [RT_EXPR_PRODUCT] = "*",    [RT_EXPR_FLOORDIV] = "/",
        [RT_EXPR_MOD] = "%",         [RT_EXPR_MAX] = " max ",    [RT_EXPR_MIN] = " min ",
        [RT_EXPR_DOUBLE] = "double", [RT_EXPR_DIFFERENCE] = "-", [RT_EXPR_STEPS] = " ceildiv ",
        [RT_EXPR_TRUNC] = "trunc",
    };
    TABLE_ENDS_WITH(names, RT_EXPR_TRUNC);
    struct piece stack[DEPTH_MAX] = {{.text = "", .d = d}};
    uint32_t depth = 1, pieces = 0;
    while (depth > 0) {
        const struct piece top = stack[--depth];
        const struct rt_expr *e = top.d.expr ? &dims->exprs[top.d.expr] : NULL;
        buf_add_str(out, top.text);
        if (top.is_all) {
            continue;
        }
        if (!e) {
            print_constant(&top, out);
        } else if (e->kind == RT_EXPR_SYMBOL) {
            buf_printf(out, "s%u", top.d.expr);
        } else if (depth + 3 > DEPTH_MAX || ++pieces > PIECES_MAX) {
            buf_add_str(out, "...");
        } else {
            bool of_doubles = e->kind > RT_EXPR_DOUBLE;
            buf_add_str(out, is_function(e->kind) ? names[e->kind] : "");
            buf_add_char(out, '(');
            stack[depth++] = (struct piece){.text = ")", .is_all = true};
            if (!is_function(e->kind)) {
                stack[depth++] = (struct piece){names[e->kind], false, of_doubles, e->b};
            }
            stack[depth++] = (struct piece){"", false, of_doubles, e->a};
        }
    }
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void print_dims(const struct rt_graph *graph, const struct rt_dim *dims, uint32_t count,
                       struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? "," : "");
        rt_dim_print(&graph->dims, dims[i], out);
    }
    buf_add_char(out, ']');
}

static void print_tensor_type(const struct rt_graph *graph, const struct rt_value *v,
                              struct buf *out)
{
    buf_add_str(out, dtype_text(v->dtype));
    if (v->dims) {
        print_dims(graph, v->dims, v->rank, out);
    } else {
        buf_add_str(out, "[unknown]");
    }
    buf_add_str(out, v->is_half ? " half" : "");
    if (v->is_packed) {
        buf_add_str(out, " packed");
    } else if (v->order) {
        buf_add_str(out, " order ");
        for (uint8_t i = 0; i < v->rank; i++) {
            buf_printf(out, "%u", v->order[i]);
        }
    }
    if (v->name && v->node == RT_NO_NODE) {
        buf_printf(out, " \"%s\"", v->name);
    }
}

static void print_double(double d, struct buf *out)
{
    buf_printf(out, "%.9g", d);
}

static void print_bool(bool b, struct buf *out)
{
    buf_add_str(out, b ? "true" : "false");
}

static void print_item(const struct rt_graph *graph, const struct rt_value *list, uint32_t index,
                       struct buf *out)
{
    switch (list->kind) {
    case RT_INTS:
        rt_dim_print(&graph->dims, list->ints[index], out);
        break;
    case RT_FLOATS:
        print_double(list->floats[index], out);
        break;
    case RT_BOOLS:
        print_bool(list->bools[index], out);
        break;
    default:
        must(list->kind == RT_TENSORS);
        buf_printf(out, "%%%u", list->values[index]);
    }
}

static void print_list(const struct rt_graph *graph, const struct rt_value *list, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        buf_add_str(out, i ? "," : "");
        print_item(graph, list, i, out);
    }
    buf_add_char(out, ']');
}

/* The value of a FLOAT or a BOOL. */
static void print_scalar(const struct rt_value *v, struct buf *out)
{
    bool is_float = v->kind == RT_FLOAT;
    if (v->symbol) {
        buf_printf(out, "%s s%u", is_float ? "float" : "bool", v->symbol);
    } else if (is_float) {
        print_double(v->f, out);
    } else {
        print_bool(v->b, out);
    }
}

void rt_value_print(const struct rt_graph *graph, uint32_t value, struct buf *out)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    const struct rt_value *v = &graph->values[value];
    switch (v->kind) {
    case RT_NONE:
        buf_add_str(out, "none");
        break;
    case RT_TENSOR:
        print_tensor_type(graph, v, out);
        break;
    case RT_INT:
        rt_dim_print(&graph->dims, v->i, out);
        break;
    case RT_FLOAT:
    case RT_BOOL:
        print_scalar(v, out);
        break;
    case RT_STRING:
        buf_printf(out, "\"%.*s\"", SPAN_FMT(v->bytes));
        break;
    case RT_INTS:
    case RT_FLOATS:
    case RT_BOOLS:
    case RT_TENSORS:
        print_list(graph, v, out);
        break;
    }
}

/* A use: %n for a tensor with a producer, the content for any other value. */
static void print_use(const struct rt_graph *graph, uint32_t value, struct buf *out)
{
    const struct rt_value *v = &graph->values[value];
    if (v->kind != RT_TENSOR && v->node == RT_NO_NODE) {
        rt_value_print(graph, value, out);
        return;
    }
    buf_printf(out, "%%%u", value);
    if (v->is_constant) {
        buf_add_char(out, ':');
        print_tensor_type(graph, v, out);
    }
}

static void print_node(const struct rt_graph *graph, const struct rt_node *node, struct buf *out)
{
    buf_add_str(out, "  ");
    for (uint32_t i = 0; i < node->out_count; i++) {
        const struct rt_value *v = rt_node_out(graph, node, i);
        buf_printf(out, "%s%%%u", i ? ", " : "", node->outs[i]);
        if (v->kind == RT_TENSOR || v->kind == RT_TENSORS) {
            buf_add_char(out, ':');
            rt_value_print(graph, node->outs[i], out);
        }
    }
    buf_printf(out, " = %s(", node->op->name);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        buf_add_str(out, i ? ", " : "");
        print_use(graph, node->args[i], out);
    }
    buf_add_char(out, ')');
    if (node->origin.handle) {
        buf_printf(out, "  # handle %u", node->origin.handle);
    }
    buf_add_char(out, '\n');
}

/* ---- where nodes come from ------------------------------------------------------------------- */

void rt_node_print_names(const struct rt_graph *graph, const struct rt_node *node, struct buf *out)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_tensors tensors = rt_node_arg_tensors(graph, node);
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        const struct rt_value *v = &graph->values[value];
        if (v->name && v->node == RT_NO_NODE) {
            buf_printf(out, " \"%s\"", v->name);
        }
    }
}

void rt_node_print_layer(const struct rt_graph *graph, const struct rt_node *node, struct buf *out)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_tensors tensors = rt_node_arg_tensors(graph, node);
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        const struct rt_value *v = &graph->values[value];
        const char *dot = v->name && v->node == RT_NO_NODE ? strrchr(v->name, '.') : NULL;
        if (dot) {
            buf_add(out, v->name, (size_t)(dot - v->name));
            return;
        }
    }
}

static bool print_source(const struct rt_node *node, const struct rt_notes *notes, struct buf *out)
{
    return notes && notes->note && node->origin.instr != RT_NO_INSTR &&
           notes->note(notes->arg, node->origin.instr, out);
}

void rt_node_print_origin(const struct rt_node *node, const struct rt_notes *notes,
                          const char *before, struct buf *out)
{
    size_t start = out->len;
    buf_add_str(out, before);
    if (!print_source(node, notes, out) && !buf_failed(out)) {
        out->len = start;
    }
    if (node->origin.handle) {
        buf_printf(out, "%shandle %u", before, node->origin.handle);
    }
}

/* A source line that has been printed: its position in the text. */
struct printed {
    size_t at, len;
};

/* The source line of |node|, if the node before it comes from another line. */
static void print_source_line(const struct rt_node *node, const struct rt_notes *notes,
                              struct buf *out, struct printed *last)
{
    struct buf line;
    buf_init(&line, SOURCE_LINE_MAX);
    bool is_known = print_source(node, notes, &line) && !buf_failed(&line) && !buf_failed(out);
    if (is_known && !span_equal(buf_span(&line), span_of(out->ptr + last->at, last->len))) {
        buf_add_str(out, "  # ");
        *last = (struct printed){out->len, line.len};
        buf_add(out, line.ptr, line.len);
        buf_add_char(out, '\n');
    }
    buf_fini(&line);
}

void rt_graph_print(const struct rt_graph *graph, const struct rt_notes *notes, struct buf *out)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct printed last = {0, 0};
    buf_printf(out, "method %s(", graph->name);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        buf_printf(out, "%s%%%u:", i ? ", " : "", graph->inputs[i]);
        rt_value_print(graph, graph->inputs[i], out);
    }
    buf_add_str(out, ")\n");
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!graph->nodes[i].is_dead) {
            print_source_line(&graph->nodes[i], notes, out, &last);
            print_node(graph, &graph->nodes[i], out);
        }
    }
    buf_add_str(out, "  return ");
    for (uint32_t i = 0; i < graph->output_count; i++) {
        buf_add_str(out, i ? ", " : "");
        print_use(graph, graph->outputs[i], out);
    }
    buf_add_char(out, '\n');
    for (uint32_t i = 0; i < graph->dims.requirement_count; i++) {
        const struct rt_requirement *r = &graph->dims.requirements[i];
        buf_add_str(out, "  require ");
        rt_dim_print(&graph->dims, r->a, out);
        buf_add_str(out, " == ");
        rt_dim_print(&graph->dims, r->b, out);
        buf_add_char(out, '\n');
    }
}
