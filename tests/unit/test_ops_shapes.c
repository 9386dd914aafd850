/* SPDX-License-Identifier: MIT */
/*
 * Shape functions of the operators that move, index and pool elements. Each row is a call: the dims
 * that it gives, also symbolic ones, or the refusal of arguments that a file may have.
 *
 * Arguments are written as in a printed graph: f32[2,s4] is a tensor whose second dim is a symbol
 * of at most 4; {..} is a list of tensors, (..) a list of ints, <..> a list of floats, - is none.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/op.h"

#define MAX "9223372036854775807"
#define MIN "-9223372036854775808"

struct row {
    const char *op, *args;
    const char *outs; /* types of the outputs; several make a list, or one of the first's rank */
    const char *text; /* the outputs, or a part of the refusal */
};

static struct rt_graph graph;

/* ---- arguments ------------------------------------------------------------------------------- */

static enum dtype read_dtype(const char **at)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        size_t len = strlen(dtype_text((enum dtype)i));
        if (strncmp(*at, dtype_text((enum dtype)i), len) == 0 && (*at)[len] == '[') {
            *at += len;
            return (enum dtype)i;
        }
    }
    unreachable();
}

static struct rt_dim read_dim(const char **at)
{
    bool is_symbol = **at == 's';
    char *end;
    long long value = strtoll(*at + is_symbol, &end, 10);

    *at = end + (*end == ',');
    return is_symbol ? rt_dim_symbol(&graph.dims, value) : rt_dim_of(value);
}

static uint32_t read_tensor(const char **at)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    enum dtype dtype = read_dtype(at);
    uint8_t rank = 0;

    for (++*at; **at != ']';) {
        must(rank < SHAPE_RANK_MAX);
        dims[rank++] = read_dim(at);
    }
    ++*at;
    return rt_graph_tensor(&graph, dtype, rank, dims);
}

static uint32_t read_tensors(const char **at)
{
    uint32_t items[16], count = 0;

    for (++*at; **at != '}'; *at += **at == ',') {
        must(count < 16);
        if (**at == '-') {
            items[count++] = rt_graph_none(&graph);
            ++*at;
        } else {
            items[count++] = read_tensor(at);
        }
    }
    ++*at;
    return rt_graph_tensors(&graph, items, count);
}

static uint32_t read_ints(const char **at)
{
    struct rt_dim items[40];
    uint32_t count = 0;

    for (++*at; **at != ')';) {
        must(count < 40);
        items[count++] = read_dim(at);
    }
    ++*at;
    return rt_graph_ints(&graph, items, count);
}

static uint32_t read_floats(const char **at)
{
    double items[4];
    uint32_t count = 0;
    char *end;

    for (++*at; **at != '>'; *at = end + (*end == ',')) {
        must(count < 4);
        items[count++] = strtod(*at, &end);
    }
    ++*at;
    return rt_graph_floats(&graph, items, count);
}

static uint32_t read_arg(const char **at)
{
    if (strncmp(*at, "true", 4) == 0 || strncmp(*at, "false", 5) == 0) {
        bool value = **at == 't';
        *at += value ? 4 : 5;
        return rt_graph_bool(&graph, value);
    }
    switch (**at) {
    case '{':
        return read_tensors(at);
    case '(':
        return read_ints(at);
    case '<':
        return read_floats(at);
    default:
        break;
    }
    if (strchr("sfiub", **at) && strchr(*at, '[') && !(**at == 's')) {
        return read_tensor(at);
    }
    if (**at == '-' && ((*at)[1] == ' ' || (*at)[1] == '\0')) {
        ++*at;
        return rt_graph_none(&graph);
    }
    return rt_graph_int(&graph, read_dim(at));
}

/* ---- one row --------------------------------------------------------------------------------- */

/* "f32 f32" means two items if the operator returns a list, otherwise two outputs. */
static uint32_t make_outs(const struct row *row, const struct rt_op *op, uint32_t outs[8])
{
    uint32_t count = 0;

    for (const char *at = row->outs; *at; at += *at == ' ') {
        char text[8] = {0};
        size_t len = strcspn(at, " ");
        must(len < sizeof(text) - 1 && count < 8);
        memcpy(text, at, len);
        text[len] = '[';
        const char *dtype = text;
        outs[count++] = rt_graph_tensor(&graph, read_dtype(&dtype), 0, NULL);
        at += len;
    }
    if (op->args[strlen(op->args) - 1] == 'X') {
        outs[0] = rt_graph_tensors(&graph, outs, count);
        count = 1;
    }
    return count;
}

static void print_outs(const uint32_t *outs, uint32_t count, struct buf *text)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_value *v = rt_graph_value(&graph, outs[i]);
        buf_add_str(text, i ? " " : "");
        for (uint32_t j = 0; v->kind == RT_TENSORS && j < v->count; j++) {
            buf_add_str(text, j ? " " : "");
            rt_value_print(&graph, v->values[j], text);
        }
        if (v->kind == RT_TENSOR) {
            rt_value_print(&graph, outs[i], text);
        }
    }
    buf_add_char(text, '\0');
}

static void check(const struct row *row)
{
    const struct rt_op *op = rt_op_find(row->op);
    uint32_t args[8], outs[8], count = 0;
    struct error err = {.code = ST_OK};
    struct buf text;

    assert_non_null(op);
    rt_graph_init(&graph, "test");
    buf_init(&text, 4096);
    for (const char *at = row->args; *at; at += *at == ' ') {
        must(count < 8);
        args[count++] = read_arg(&at);
    }
    uint32_t out_count = make_outs(row, op, outs);
    uint32_t node = rt_graph_node(&graph, op, args, count, outs, out_count);
    enum status status = rt_graph_infer(&graph, node, &err);
    print_outs(outs, status == ST_OK ? out_count : 0, &text);
    const char *got = status == ST_OK ? (const char *)text.ptr : err.text;
    bool is_right = status == ST_OK ? strcmp(got, row->text) == 0 : strstr(got, row->text) != NULL;
    if (!is_right) {
        fail_msg("%s %s: '%s', expected '%s'", row->op, row->args, got, row->text);
    }
    buf_fini(&text);
    rt_graph_fini(&graph);
}

static void check_all(const struct row *rows)
{
    for (; rows->op; rows++) {
        check(rows);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* clang-format off */
static const struct row views[] = {
    {"view", "f32[2,3,4] (6,-1)", "f32", "f32[6,4]"},
    {"view", "f32[s5,6] (-1,3)", "f32", "f32[(2*s1),3]"},
    {"view", "f32[] ()", "f32", "f32[]"},
    {"view", "f32[2,3] (4,-1)", "f32", "elements of a view (must equal the tensor's): got "},
    {"view", "f32[2,3] (-1,-1)", "f32", "size -1 of dim 1, expected 0 or more"},
    {"view", "f32[0,3] (0,-1)", "f32", "-1 together with one of 0"},
    {"view", "f32[2,3] (-2,-3)", "f32", "size -2 of dim 0, expected 0 or more"},
    {"view", "f32[2] (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)", "f32", "rank 17, expected at most 16"},
    {"view", "f32[2] (2)", "f64", "output is f64, expected f32"},
    {"view", "f32[6] (" MAX "," MAX ",6)", "f32",
     "elements of a view (must equal the tensor's): got "},
    {"unsqueeze", "f32[2,s3] -1", "f32", "f32[2,s1,1]"},
    {"unsqueeze", "f32[] 0", "f32", "f32[1]"},
    {"unsqueeze", "f32[2] 2", "f32", "dim 2 does not exist in a tensor of rank 2"},
    {"unsqueeze", "f32[2] " MIN, "f32", "dim -9223372036854775808"},
    {"unsqueeze", "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] 0", "f32", "rank 17"},
    {"squeeze", "f32[1,2,1] (0,1)", "f32", "f32[2,1]"},
    {"squeeze", "f32[1,2,1] (0,-3)", "f32", "dim 0 is listed twice"},
    {"squeeze", "f32[1,2,1] (3)", "f32", "dim 3 does not exist in a tensor of rank 3"},
    {"squeeze_dim", "f32[1,2] 0", "f32", "f32[2]"},
    {"squeeze_dim", "f32[] -1", "f32", "f32[]"},
    {"permute", "f32[2,s3,4] (2,0,-2)", "f32", "f32[4,2,s1]"},
    {"permute", "f32[2,3] (0,0)", "f32", "dim 0 is listed twice"},
    {"permute", "f32[2,3] (0)", "f32", "1 dims, but the tensor has rank 2"},
    {"transpose", "f32[2,3,4] -1 0", "f32", "f32[4,3,2]"},
    {"transpose", "f32[2,3,4] 3 0", "f32", "dim 3"},
    {"t", "f32[2,3]", "f32", "f32[3,2]"},
    {"t", "f32[2]", "f32", "f32[2]"},
    {"t", "f32[2,3,4]", "f32", "rank 3, expected at most 2"},
    {"expand", "f32[s3,1] (2,-1,5) false", "f32", "f32[2,s1,5]"},
    {"expand", "f32[3] (-1,3) false", "f32", "size -1 of dim 0, expected 0 or more"},
    {"expand", "f32[3,2] (2) false", "f32", "1 sizes, but the tensor has rank 2"},
    {"expand", "f32[3] (4) false", "f32", "size of an expanded dim: got 3, expected 4"},
    {"repeat", "f32[s3,2] (4,1,3)", "f32", "f32[4,s1,6]"},
    {"repeat", "f32[3,2] (-1,1)", "f32", "-1 repeats of dim 0, expected 0 or more"},
    {"repeat", "f32[3,2] (1)", "f32", "1 repeats, but the tensor has rank 2"},
    {"pixel_shuffle", "f32[2,12,3,s5] 2", "f32", "f32[2,3,6,(2*s1)]"},
    {"pixel_shuffle", "f32[2,12,3,5] 5", "f32",
     "size of the dim modulo the pixel factor: got 12, expected 0"},
    {"pixel_shuffle", "f32[2,12,3,5] 0", "f32", "factor 0, expected at least 1"},
    {"pixel_shuffle", "f32[2,12,3,5] " MAX, "f32",
     "factor 9223372036854775807, expected at least 1"},
    {"pixel_unshuffle", "f32[3,6,4] 2", "f32", "f32[12,3,2]"},
    {"pixel_unshuffle", "f32[6,4] 2", "f32", "rank 2, expected 3 or more"},
    {0},
};

static const struct row slices[] = {
    {"slice", "f32[4,10] 1 2 " MAX " 3", "f32", "f32[4,3]"},
    {"slice", "f32[4,10] 1 -3 - 1", "f32", "f32[4,3]"},
    {"slice", "f32[4,10] 0 " MIN " " MIN " 1", "f32", "f32[0,10]"},
    {"slice", "f32[4,10] 1 7 3 1", "f32", "f32[4,0]"},
    {"slice", "f32[4,10] 1 0 5 0", "f32", "step 0, expected 1 or more"},
    {"slice", "f32[4,10] 1 0 5 " MAX, "f32", "f32[4,1]"},
    {"slice", "f32[] 0 0 5 1", "f32", "rank 0, expected 1 or more"},
    {"slice", "f32[s4] 0 0 " MAX " 1", "f32", "f32[s1]"},
    {"narrow", "f32[4,10] 1 2 3", "f32", "f32[4,3]"},
    {"narrow", "f32[4,10] 1 2 -3", "f32", "length -3, expected 0 or more"},
    {"select", "f32[4,10] -1 -10", "f32", "f32[4]"},
    {"select", "f32[4,s10] 1 -3", "f32", "f32[4]"},
    {"select", "f32[4,10] 1 10", "f32", "index 10 does not exist in dim 1 of size 10"},
    {"select", "f32[4,10] 1 -11", "f32", "index -11"},
    {"split", "f32[2,5] 2 1", "f32 f32 f32", "f32[2,2] f32[2,2] f32[2,1]"},
    {"split", "f32[2,5] 2 1", "f32 f32", "pieces of a split: got 3, expected 2"},
    {"split", "f32[2,5] 0 1", "f32 f32", "cannot make 2 pieces of 0 elements"},
    {"split", "f32[2,5] " MAX " 1", "f32", "f32[2,5]"},
    {"addmm", "f32[3] f32[1,6] f32[6,3] 1 1", "f32", "f32[1,3]"},
    {"addmm", "f32[6,3] f32[1,6] f32[6,3] 1 1", "f32", "the bias is larger than the product"},
    {"split", "f32[2,5] 2 1", "f32 f16 f32", "output is f16, expected f32 (the input's type)"},
    {"split_sizes", "f32[2,5] (2,3) 1", "f32 i32",
     "output is i32, expected f32 (the input's type)"},
    {"unbind", "f32[2,5] 0", "f64 f32", "output is f64, expected f32 (the input's type)"},
    {"view", "f32[2,4] (-2,-4)", "f32", "dim"},
    {"split_sizes", "f32[2,5] (2,0,3) 1", "f32 f32 f32", "f32[2,2] f32[2,0] f32[2,3]"},
    {"split_sizes", "f32[2,5] (2,2) 1", "f32 f32",
     "elements in all pieces of a split: got 4, expected 5"},
    {"split_sizes", "f32[2,5] (-1,6) 1", "f32 f32", "size -1 of piece 0, expected 0 or more"},
    {"split_sizes", "f32[2,5] (5) 1", "f32 f32", "1 sizes, but 2 outputs"},
    {"unbind", "f32[2,5] 0", "f32 f32", "f32[5] f32[5]"},
    {"unbind", "f32[2,5] 0", "f32", "elements of the dim (one for each output): got 2, expected 1"},
    {"slice_scatter", "f32[4,9] f32[4,3] 1 0 " MAX " 3", "f32", "f32[4,9]"},
    {"slice_scatter", "f32[4,9] f32[4,4] 1 0 9 3", "f32",
     "size of the part (must equal that of its place): got 4, expected 3"},
    {"slice_scatter", "f32[4,9] f32[9] 1 0 9 3", "f32", "the part has rank 1, expected 2"},
    {"slice_scatter", "f32[4,9] f64[4,9] 1 0 9 1", "f32", "f64"},
    {"select_scatter", "f32[4,9] f32[9] 0 1", "f32", "f32[4,9]"},
    {"select_scatter", "f32[4,9] f32[4] 0 1", "f32",
     "size of the part (must equal that of its place): got 4, expected 9"},
    {0},
};

static const struct row walks[] = {
    {"as_strided", "f32[20] (4,s5) (1,3) 2", "f32", "f32[4,s1]"},
    {"as_strided", "f32[20] (4,5) (1) 2", "f32", "2 sizes, but 1 strides"},
    {"as_strided", "f32[20] (-4) (1) 2", "f32", "size -4 of dim 0, expected 0 or more"},
    {"diagonal", "f32[4,3,5] -1 0 2", "f32", "f32[3,3]"},
    {"diagonal", "f32[4,5] " MIN " 0 1", "f32", "f32[0]"},
    {"diagonal", "f32[4,5] " MAX " 0 1", "f32", "f32[0]"},
    {"diagonal", "f32[4,5] 0 1 -1", "f32", "a diagonal needs two dims, got dim 1 twice"},
    {"diagonal", "f32[] 0 0 0", "f32", "got dim 0 twice"},
    {"unfold", "f32[9,s3] 0 4 2", "f32", "f32[3,s1,4]"},
    {"unfold", "f32[] 0 1 1", "f32", "f32[1]"},
    {"unfold", "f32[3] 0 4 1", "f32", "windows of 4"},
    {"unfold", "f32[3] 0 2 0", "f32", "in steps of 0"},
    {"flip", "f32[3,s4] (0,-1)", "f32", "f32[3,s1]"},
    {"flip", "f32[3,4] (0,0)", "f32", "dim 0 is listed twice"},
    {"cat", "{f32[2,s4],f32[2,5],f32[0]} -1", "f32", "f32[2,(s1+5)]"},
    {"cat", "{f32[0],f32[0]} 0", "f32", "f32[0]"},
    {"cat", "{} 0", "f32", "the list of tensors is empty"},
    {"cat", "{f32[2,4],f32[3,4]} 1", "f32", "size of the tensors to join (must be equal): got "},
    {"cat", "{f32[2,4],f32[4]} 1", "f32", "tensors have ranks 2 and 1, expected the same"},
    {"cat", "{f32[],f32[]} 0", "f32", "tensors have rank 0, expected 1 or more"},
    {"cat", "{f32[2],f64[2]} 0", "f32", "tensor 1 is f64, but the output is f32"},
    {"cat", "{f32[2],f32[2]} 1", "f32", "dim 1 does not exist in a tensor of rank 1"},
    {"cat", "{f32[" MAX "],f32[" MAX "]} 0", "f32", "f32[9223372036854775807]"},
    {"stack", "{f32[2,s4],f32[2,4]} 1", "f32", "f32[2,2,s1]"},
    {"stack", "{f32[2],f32[3]} 0", "f32", "size of the tensors to join (must be equal): got "},
    {"stack", "{f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]} 0", "f32", "rank 17"},
    {0},
};

static const struct row pads[] = {
    {"constant_pad", "f32[2,s3] (1,2,-1,0) 0", "f32", "f32[1,(s1+3)]"},
    {"constant_pad", "f32[2,3] (1) 0", "f32", "1 pads do not fit a tensor of rank 2"},
    {"constant_pad", "f32[2] (1,1,1,1) 0", "f32", "4 pads do not fit a tensor of rank 1"},
    {"constant_pad", "f32[2] (-1,-2) 0", "f32", "dim 0 is cropped below 0 elements"},
    {"reflection_pad2d", "f32[2,3,4] (1,1,1,1)", "f32", "f32[2,5,6]"},
    {"reflection_pad2d", "f32[3,4] (1,1,1,1)", "f32", "4 pads do not fit a tensor of rank 2"},
    {"reflection_pad1d", "f32[3,4] (1,1,1,1)", "f32", "4 pads do not fit a tensor of rank 2"},
    {"replication_pad3d", "f32[1,2,3,4,5] (1,1,1,1,1,1)", "f32", "f32[1,2,5,6,7]"},
    {"roll", "f32[3,s4] (1,-2) (0,1)", "f32", "f32[3,s1]"},
    {"roll", "f32[3,4] (1) ()", "f32", "f32[3,4]"},
    {"roll", "f32[3,4] (1,2) ()", "f32", "2 shifts for 0 dims"},
    {"roll", "f32[3,4] () ()", "f32", "0 shifts for 0 dims"},
    {"roll", "f32[3,4] (1) (0,1)", "f32", "1 shifts for 2 dims"},
    {"tril", "f32[s3,4] -1", "f32", "f32[s1,4]"},
    {"tril", "f32[3] 0", "f32", "rank 1, expected 2 or more"},
    {0},
};

static const struct row indices[] = {
    {"index", "f32[4,5,6] {-,i64[2,1],i32[3]}", "f32", "f32[4,2,3]"},
    {"index", "f32[4,5,6] {i64[s7],-,i64[]}", "f32", "f32[s1,5]"},
    {"index", "f32[4,5] {i64[2],i64[3]}", "f32", "size of the operands (must match): got "},
    {"index", "f32[4] {i64[2],i64[2]}", "f32", "2 indices for a tensor of rank 1"},
    {"index", "f32[4] {-}", "f32", "f32[4]"},
    {"index", "f32[4] {bool[4]}", "f32", "indexing by a mask is not supported here"},
    {"index", "f32[4] {f32[4]}", "f32", "the indices are f32, expected i64 or i32"},
    {"index", "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] {i64[1,1]}", "f32", "rank 17"},
    {"index_select", "f32[4,5] -1 i64[s9]", "f32", "f32[4,s1]"},
    {"index_select", "f32[4,5] 1 i64[2,2]", "f32", "the indices have rank 2, expected at most 1"},
    {"index_select", "f32[] 0 i64[2]", "f32", "indices into a tensor of rank 0: got 2, expected 1"},
    {"index_select", "f32[] 0 i64[s3]", "f32", "f32[]"},
    {"topk", "f32[4,s9] 5 -1 true true", "f32 i64", "f32[4,5] i64[4,5]"},
    {"topk", "f32[4,s4] 5 -1 true true", "f32 i64",
     "elements among which topk chooses: got s1, expected 5"},
    {"topk", "f32[] 5 -1 true true", "f32 i64", "f32[] i64[]"},
    {"embedding", "f32[10,4] i64[s3,2] -1 false false", "f32", "f32[s1,2,4]"},
    {"embedding", "f32[10] i64[3] -1 false false", "f32", "the weights have rank 1, expected 2"},
    {"embedding", "f32[10,4] f32[3] -1 false false", "f32", "element type f32"},
    {"index_put", "f32[4,5] {-,i64[3]} f32[4,1] true", "f32", "f32[4,5]"},
    {"index_put", "f32[4,5] {-,i64[3]} f32[2,4,3] true", "f32", "the values have rank 3"},
    {"index_put", "f32[4,5] {-,i64[3]} f32[2] true", "f32",
     "size of the values (must fit the indexed places): got "},
    {"index_put", "f32[4,5] {-,i64[3]} f64[3] true", "f32", "f64"},
    {"gather", "f32[4,5] 1 i64[4,s9] false", "f32", "f32[4,s1]"},
    {"gather", "f32[4,5] 1 i64[4] false", "f32", "the index has rank 1"},
    {"gather", "f32[4,5] 2 i64[4,4] false", "f32", "dim 2"},
    {"gather", "f32[4,5] 1 f32[4,4] false", "f32", "f32"},
    {"scatter", "f32[4,5] 0 i64[2,5] f32[2,5]", "f32", "f32[4,5]"},
    {"scatter", "f32[4,5] 0 i64[2,5] f32[5]", "f32", "the source has rank 1"},
    {"scatter_add", "f32[4,5] 0 i64[2,5] f64[2,5]", "f32", "f64"},
    {"scatter_value", "f32[4,5] 0 i64[2,5] 3", "f32", "f32[4,5]"},
    {0},
};

static const struct row images[] = {
    {"max_pool2d", "f32[1,8,s9,7] (3,2) (2) (1,0) (1) false", "f32 i64",
     "f32[1,8,(((s1+-1)/2)+1),3] i64[1,8,(((s1+-1)/2)+1),3]"},
    {"max_pool2d", "f32[8,6,6] (2) () (0) (1) true", "f32 i64", "f32[8,3,3] i64[8,3,3]"},
    {"max_pool2d", "f32[8,6,6] (3) (2) (1) (1) true", "f32 i64", "f32[8,4,4] i64[8,4,4]"},
    {"max_pool2d", "f32[8,6,6] (2) () (0) (1) true", "f32 i32",
     "output 1 has the unsupported element type i32"},
    {"max_pool2d", "f32[8,6,6] () () (0) (1) true", "f32 i64", "the kernel size is missing"},
    {"max_pool2d", "f32[8,6,6] (2,2,2) () (0) (1) true", "f32 i64", "3 numbers, expected 2"},
    {"max_pool2d", "f32[8,6,6] (0) () (0) (1) true", "f32 i64", "is 0, expected 1 or more"},
    {"max_pool2d", "f32[8,6,6] (2) (0) (0) (1) true", "f32 i64", "is 0, expected 1 or more"},
    {"max_pool2d", "f32[8,6,6] (2) (1) (2) (1) true", "f32 i64",
     "pad 2, expected at most half of the window's size 2"},
    {"max_pool2d", "f32[8,6,6] (2) (1) (-1) (1) true", "f32 i64", "is -1, expected 0 or more"},
    {"max_pool2d", "f32[8,6,6] (2) (1) (0) (0) true", "f32 i64", "is 0, expected 1 or more"},
    {"max_pool2d", "f32[8,6,6] (7) (1) (0) (1) false", "f32 i64", "windows of 7 do not fit"},
    {"max_pool2d", "f32[8,6,6] (" MAX ") (1) (0) (1) false", "f32 i64", "argument 1 is"},
    {"max_pool2d", "f32[6,6] (2) (1) (0) (1) false", "f32 i64", "rank 2, expected 3 or 4"},
    {"max_pool2d", "bool[8,6,6] (2) (1) (0) (1) false", "bool i64", "bool"},
    {"avg_pool2d", "f32[2,8,7,7] (3) (2) (1) true true -", "f32", "f32[2,8,4,4]"},
    {"avg_pool2d", "f32[2,8,7,7] (3) (2) (1) true true 0", "f32", "the divisor is 0"},
    {"adaptive_avg_pool2d", "f32[2,s8,7,7] (1,3)", "f32", "f32[2,s1,1,3]"},
    {"adaptive_avg_pool2d", "f32[2,8,7,7] (1)", "f32", "1 output sizes, expected 2"},
    {"adaptive_avg_pool2d", "f32[2,8,7,7] (-1,1)", "f32", "is -1, expected 0 or more"},
    {"upsample_nearest2d", "f32[1,3,4,s5] - <2,2>", "f32", "f32[1,3,8,(2*s1)]"},
    {"upsample_nearest2d", "f32[1,3,4,5] - <1.5,0.5>", "f32", "f32[1,3,6,2]"},
    {"upsample_nearest2d", "u8[1,3,4,5] (7,9) -", "u8", "u8[1,3,7,9]"},
    {"upsample_nearest2d", "f32[1,3,4,5] (7,9) <1,1>", "f32", "got both"},
    {"upsample_nearest2d", "f32[1,3,4,5] - -", "f32", "got neither"},
    {"upsample_nearest2d", "f32[1,3,4,5] - <nan,1>", "f32", "a scale of nan"},
    {"upsample_nearest2d", "f32[1,3,4,5] - <1e300,1>", "f32", "a scale of 1e+300"},
    {"upsample_nearest2d", "f32[1,3,4,s5] - <1,1.5>", "f32", "f32[1,3,4,((3*s1)/2)]"},
    {"upsample_nearest2d", "f32[1,3,4,s70000] - <1,1.2345678>", "f32", "for up to 70000 pixels"},
    {"upsample_nearest2d", "f32[3,4,5] (7,9) -", "f32", "rank 3, expected 4"},
    {"upsample_bilinear2d", "f32[1,3,4,5] (7,9) true -", "f32", "f32[1,3,7,9]"},
    {"upsample_bilinear2d", "f32[1,3,4,5] (0,9) true -", "f32",
     "an output size of 0 is out of range"},
    {"upsample_bilinear2d", "f32[1,3,4,5] (7) true -", "f32", "1 sizes or scales, expected 2"},
    {"upsample_bilinear2d", "i32[1,3,4,5] (7,9) true -", "i32", "i32"},
    {0},
};
/* clang-format on */

static void test_views(void **ctx)
{
    (void)ctx;
    check_all(views);
}

static void test_slices(void **ctx)
{
    (void)ctx;
    check_all(slices);
}

static void test_walks(void **ctx)
{
    (void)ctx;
    check_all(walks);
}

static void test_pads(void **ctx)
{
    (void)ctx;
    check_all(pads);
}

static void test_indices(void **ctx)
{
    (void)ctx;
    check_all(indices);
}

static void test_images(void **ctx)
{
    (void)ctx;
    check_all(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views), cmocka_unit_test(test_slices),  cmocka_unit_test(test_walks),
        cmocka_unit_test(test_pads),  cmocka_unit_test(test_indices), cmocka_unit_test(test_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
