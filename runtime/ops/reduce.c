/* SPDX-License-Identifier: MIT */
/*
 * Reductions over any set of dims, by strides. A row names the arguments that give the dims, the
 * folding operation, and the results; shapes, types, and the choice between reading rows and
 * reading columns are shared. Outputs are row-major.
 *
 * Refused: dims that are out of range or repeated, an extreme of no elements, a float result
 * declared as an integer.
 */
#include "config.h"

#include "runtime/ops/reduce.h"
#include "runtime/ops/view_priv.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/loop.h"
#include "runtime/ops/op.h"

/* A worker's columns begin at multiples of these, so that two workers read few lines of memory
 * twice. */
#define LINE_COLUMNS 16
#define READS_PER_NS 16 /* along columns */

/* Argument 0 is the tensor, so a 0 means that the operator has no such argument. */
struct row {
    enum rt_fold fold;
    uint8_t dims_arg;       /* an int, ints or none; without this argument all dims are reduced */
    uint8_t keep_arg;       /* without this argument reduced dims are dropped */
    uint8_t correction_arg; /* correction of a variance: a number, a bool (1 or 0) or none (1) */
    bool empty_is_none;     /* an empty list of dims reduces nothing; otherwise it reduces all */
    bool is_float;          /* the result is a float, whatever the input's type */
    uint8_t output_count;
    enum rt_fold_result results[2];
};

/* ---- shapes -------------------------------------------------------------------------------- */

static enum status add_dim(struct rt_shape_call *call, struct rt_dim dim, uint8_t rank,
                           uint32_t *reduced)
{
    uint8_t d;

    if (!rt_dim_is_const(dim)) {
        return rt_shape_unsupported(call, "a dim number must not depend on the inputs");
    }
    TRY(rt_shape_need_dim(call, dim.value, rank, &d));
    if (*reduced >> d & 1) {
        return rt_shape_refuse(call, "dim %d is reduced twice", d);
    }
    *reduced |= 1u << d;
    return ST_OK;
}

/* The set of dims, one bit each. */
static enum status find_reduced(struct rt_shape_call *call, const struct row *row, uint8_t rank,
                                uint32_t *out_reduced)
{
    const struct rt_value *dims = row->dims_arg ? rt_shape_arg(call, row->dims_arg) : NULL;
    uint32_t all = (1u << rank) - 1, reduced = 0;

    if (dims && dims->kind == RT_INT) {
        TRY(add_dim(call, dims->i, rank, &reduced));
    } else if (!dims || dims->kind == RT_NONE || (dims->count == 0 && !row->empty_is_none)) {
        reduced = all;
    } else {
        for (uint32_t i = 0; i < dims->count; i++) {
            TRY(add_dim(call, dims->ints[i], rank, &reduced));
        }
    }
    *out_reduced = reduced & all; /* a scalar accepts dim 0 and -1 but has no dims */
    return ST_OK;
}

static enum status check_types(struct rt_shape_call *call, const struct row *row)
{
    enum dtype in = rt_shape_arg(call, 0)->dtype, out = rt_shape_out_dtype(call, 0);
    bool in_is_float = dtype_is_float(in);
    bool out_is_float = dtype_is_float(out);

    if (dtype_infos[in].kind == DTYPE_COMPLEX || dtype_infos[out].kind == DTYPE_COMPLEX) {
        TRY(rt_view_rank(call, rt_shape_arg(call, 0)->rank +
                                   1u)); /* the parts of a complex number are one more dim */
        return in == out ? ST_OK
                         : rt_shape_refuse(call, "the sum of %s cannot be %s", dtype_text(in),
                                           dtype_text(out));
    }
    for (uint32_t o = 0; o < row->output_count; o++) {
        enum dtype dtype = rt_shape_out_dtype(call, o);
        if (row->results[o] == RT_RESULT_INDEX && dtype != DT_I64) {
            return rt_shape_refuse(call, "the indices are %s, expected i64", dtype_text(dtype));
        }
    }
    if (row->results[0] == RT_RESULT_INDEX || row->fold == RT_FOLD_ANY) {
        return ST_OK;
    }
    bool is_chosen = row->fold == RT_FOLD_MAX || row->fold == RT_FOLD_MIN;
    if (((in_is_float && is_chosen) || row->is_float) && !out_is_float) {
        return rt_shape_refuse(call, "the result is a float and cannot be %s", dtype_text(out));
    }
    if (row->results[0] == RT_RESULT_VARIANCE && !in_is_float) {
        return rt_shape_refuse(call, "the variance cannot be %s, expected a float type",
                               dtype_text(in));
    }
    return ST_OK;
}

/* A result that is a chosen element needs at least one element. */
static enum status need_elements(struct rt_shape_call *call, const struct rt_value *in,
                                 uint32_t reduced)
{
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim counts[2] = {rt_dim_of(1),
                               rt_dim_of(1)}; /* dims that are kept, and dims that are reduced */

    for (uint8_t d = 0; d < in->rank; d++) {
        struct rt_dim *count = &counts[reduced >> d & 1];
        *count = rt_dim_mul(dims, *count, in->dims[d]);
    }
    return rt_shape_need_at_least(call, counts[1], rt_dim_min(dims, counts[0], rt_dim_of(1)),
                                  "elements to choose from");
}

static enum status reduce_shape(struct rt_shape_call *call)
{
    const struct row *row = call->node->op->detail;
    const struct rt_value *in = rt_shape_arg(call, 0);
    bool keep = row->keep_arg && rt_shape_arg(call, row->keep_arg)->b;
    struct rt_dim dims[SHAPE_RANK_MAX];
    uint32_t reduced;
    uint8_t rank = 0;

    TRY(check_types(call, row));
    TRY(find_reduced(call, row, in->rank, &reduced));
    if (row->fold == RT_FOLD_MAX || row->fold == RT_FOLD_MIN) {
        TRY(need_elements(call, in, reduced));
    }
    for (uint8_t d = 0; d < in->rank; d++) {
        if ((reduced >> d & 1) == 0) {
            dims[rank++] = in->dims[d];
        } else if (keep) {
            dims[rank++] = rt_dim_of(1);
        }
    }
    for (uint32_t o = 0; o < row->output_count; o++) {
        TRY(rt_shape_set_out(call, o, rank, dims));
    }
    return ST_OK;
}

/* ---- recording ----------------------------------------------------------------------------- */

/* As find_reduced(), for arguments that it has accepted. */
static uint32_t reduced_dims(struct rt_emit *emit, const struct row *row, uint8_t rank)
{
    uint32_t all = (1u << rank) - 1, reduced = 0;

    if (row->dims_arg == 0 || rank == 0) {
        return all;
    }
    const struct rt_value *dims = rt_emit_value(emit, row->dims_arg);
    bool is_list = dims->kind == RT_INTS;
    if (dims->kind == RT_NONE || (is_list && dims->count == 0 && !row->empty_is_none)) {
        return all;
    }
    for (uint32_t i = 0; i < (is_list ? dims->count : 1); i++) {
        int64_t d =
            is_list ? rt_emit_ints(emit, row->dims_arg, i) : rt_emit_int(emit, row->dims_arg);
        reduced |= 1u << rt_dim_from_first(d, rank);
    }
    return reduced & all;
}

/* A nest of the input's dims in |set|, in their logical order or, if that is free, in the order of
 * memory. */
static struct rt_nest make_nest(const struct rt_tensor *in, uint32_t set, bool in_memory_order)
{
    int64_t dims[SHAPE_RANK_MAX], strides[SHAPE_RANK_MAX], order[SHAPE_RANK_MAX];
    struct rt_nest nest;
    struct rt_loop loop;
    int64_t behind = 1;
    uint8_t rank = 0;

    for (uint8_t d = 0; d < in->rank; d++) {
        if (set >> d & 1) {
            dims[rank] = in->dims[d];
            strides[rank++] = in->strides[d] * (int64_t)dtype_bytes(in->dtype);
        }
    }
    for (uint8_t d = rank; d-- > 0; behind *= dims[d]) {
        order[d] = behind;
    }
    rt_loop_init(&loop, rank, dims);
    rt_loop_add_strides(&loop, in_memory_order ? strides : order, 0);
    rt_loop_add_strides(&loop, strides, 0);
    rt_loop_close(&loop, 1);
    nest = (struct rt_nest){.rank = loop.rank, .numel = loop.numel};
    memcpy(nest.dims, loop.dims, sizeof(nest.dims));
    memcpy(nest.strides, loop.strides[1], sizeof(nest.strides));
    return nest;
}

static double correction_of(struct rt_emit *emit, const struct row *row)
{
    if (row->correction_arg == 0 || rt_emit_value(emit, row->correction_arg)->kind == RT_NONE) {
        return 1;
    }
    return rt_convert_arg(emit, row->correction_arg).f;
}

static enum rt_class class_of(const struct row *row, enum dtype in, enum dtype out)
{
    if (row->fold == RT_FOLD_ANY) {
        return RT_CLASS_TRUTH;
    }
    if (row->results[0] == RT_RESULT_INDEX) {
        return rt_convert_class(in);
    }
    /* Floats with an integer result are converted before the summation. */
    return rt_convert_class(dtype_is_float(out) ? rt_convert_promote(in, out) : out);
}

/* Can columns tell where their extremes are? Only on the CPU, if the numbers are read in place. */
static bool locates_columns(struct rt_emit *emit, const struct rt_reduce_constants *k)
{
    return rt_emit_is_host(emit) && rt_convert_is_direct(k->class, k->dtype);
}

/* Reads columns if neighbouring outputs are contiguous in the input and an output's own elements
 * are not. */
static bool reads_columns(struct rt_emit *emit, const struct rt_reduce_constants *k)
{
    int64_t width = (int64_t)dtype_bytes(k->dtype);
    uint32_t kept = k->kept.rank - 1, reduced = k->reduced.rank - 1;

    for (uint32_t o = 0; o < k->output_count; o++) {
        enum rt_fold_result result = k->outputs[o].result;
        if ((result == RT_RESULT_INDEX && !locates_columns(emit, k)) ||
            result == RT_RESULT_VARIANCE) {
            return false;
        }
    }
    return k->kept.dims[kept] > 1 && k->kept.strides[kept] == width &&
           k->reduced.dims[reduced] > 1 && k->reduced.strides[reduced] != width;
}

/* No SPIR-V form has doubles or complex numbers. */
static bool is_double(enum dtype dtype)
{
    return dtype == DT_F64 || dtype_infos[dtype].kind == DTYPE_COMPLEX;
}

/* The tiles that workers get of the columns at one of |positions|. */
static int64_t column_tiles(const struct rt_machine *machine, const struct rt_reduce_constants *k,
                            int64_t positions)
{
    int64_t ns = k->kept.numel * k->reduced.numel / READS_PER_NS;
    return (rt_cut_tiles(machine, ns) - 1) / positions + 1;
}

/* Columns of a tile, of rows of |width|. */
static int64_t cut_columns(const struct rt_machine *machine, const struct rt_reduce_constants *k,
                           int64_t width)
{
    if (machine->lanes > 1) {
        return rt_cut_block(machine, k->kept.numel, 1, RT_REDUCE_COLUMNS);
    }
    int64_t tiles = column_tiles(machine, k, k->kept.numel / width);
    int64_t lines = rt_cut_axis((width - 1) / LINE_COLUMNS + 1, tiles);
    return rt_min(lines * LINE_COLUMNS, RT_REDUCE_COLUMNS);
}

/*
 * Do several workers share the rows? Nodes around a reduction of pixels cut an image into bands of
 * lines, so a worker's lines are in its own cache; half of its columns would be in another one.
 */
static bool shares_rows(struct rt_emit *emit, const struct rt_reduce_constants *k)
{
    const struct rt_machine *machine = rt_emit_machine(emit, &rt_reduce_blocks_kernel);
    int64_t positions = k->kept.numel / k->kept.dims[k->kept.rank - 1];
    return rt_emit_is_host(emit) && machine->workers > 1 && k->fold == RT_FOLD_SUM &&
           k->class == RT_CLASS_F32 && k->dtype == DT_F32 && k->reduced.rank == 1 &&
           k->reduced.numel > RT_REDUCE_BLOCK_ROWS && column_tiles(machine, k, positions) > 1;
}

/* Sums in two steps; the bits are those of one step. */
static enum status record_blocks(struct rt_emit *emit, struct rt_reduce_constants *k,
                                 const struct hal_binding *bindings, struct error *err)
{
    const struct rt_machine *machine = rt_emit_machine(emit, &rt_reduce_blocks_kernel);
    int64_t width = k->kept.dims[k->kept.rank - 1], positions = k->kept.numel / width;
    int64_t blocks = rt_reduce_blocks(k);
    struct hal_binding sums, of_joined[3] = {bindings[0], bindings[1]};
    TRY(rt_emit_workspace(emit, (size_t)(k->kept.numel * blocks) * sizeof(float), &sums, err));
    k->tile = rt_cut_axis(blocks, column_tiles(machine, k, positions));
    struct hal_dispatch dispatch = {
        .kernel = &rt_reduce_blocks_kernel,
        .grid = {(uint32_t)((blocks - 1) / k->tile + 1), (uint32_t)positions, 1},
        .constants = k,
        .constants_bytes = sizeof(*k),
        .bindings = (const struct hal_binding[]){sums, bindings[k->output_count]},
        .binding_count = 2,
        .cost = (uint64_t)(k->kept.numel * k->reduced.numel / READS_PER_NS),
    };
    TRY(rt_emit_dispatch(emit, &dispatch, err));
    TRY(rt_emit_barrier(emit, err));
    of_joined[k->output_count] = sums;
    k->tile = RT_REDUCE_COLUMNS;
    dispatch.kernel = &rt_reduce_joined_kernel;
    dispatch.grid[0] = (uint32_t)((width - 1) / k->tile + 1);
    dispatch.bindings = of_joined;
    dispatch.binding_count = k->output_count + 1;
    dispatch.cost = (uint64_t)(k->kept.numel * blocks / READS_PER_NS);
    return rt_emit_dispatch(emit, &dispatch, err);
}

static enum status record(struct rt_emit *emit, struct rt_reduce_constants *k,
                          const struct hal_binding *bindings, struct error *err)
{
    int64_t reads = k->reduced.numel > 0 ? k->reduced.numel : 1;
    int64_t width = k->kept.dims[k->kept.rank - 1];
    bool is_f64 = k->class == RT_CLASS_F64 || is_double(k->dtype);
    for (uint32_t o = 0; o < k->output_count; o++) {
        is_f64 |= is_double(k->outputs[o].dtype);
    }
    bool is_columns = k->reduced.numel > 0 && reads_columns(emit, k);
    struct hal_dispatch dispatch = {
        .constants = k,
        .constants_bytes = sizeof(*k),
        .bindings = bindings,
        .binding_count = k->output_count + 1,
        .scratch_bytes = RT_REDUCE_SCRATCH_BYTES,
        .cost = (uint64_t)(k->kept.numel * reads) / 2,
    };

    if (is_columns && shares_rows(emit, k)) {
        return record_blocks(emit, k, bindings, err);
    }
    if (is_columns) {
        dispatch.kernel = is_f64 ? &rt_reduce_columns_f64_kernel : &rt_reduce_columns_kernel;
        k->tile = cut_columns(rt_emit_machine(emit, dispatch.kernel), k, width);
        dispatch.grid[0] = (uint32_t)((width + k->tile - 1) / k->tile);
        dispatch.grid[1] = (uint32_t)(k->kept.numel / width);
    } else {
        dispatch.kernel = is_f64 ? &rt_reduce_rows_f64_kernel : &rt_reduce_rows_kernel;
        const struct rt_machine *machine = rt_emit_machine(emit, dispatch.kernel);
        k->tile = rt_cut_things(machine, RT_WORK_FOLD, k->kept.numel, reads,
                                rt_cut_row(machine, k->reduced.numel));
        dispatch.grid[0] = (uint32_t)((k->kept.numel + k->tile - 1) / k->tile);
        dispatch.grid[1] = 1;
    }
    dispatch.grid[2] = 1;
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* A complex tensor as a real one whose last dim is the two parts. */
static struct rt_tensor parts_of(const struct rt_tensor *tensor)
{
    struct rt_tensor parts = *tensor;

    parts.dtype = rt_convert_part(tensor->dtype);
    for (uint8_t d = 0; d < tensor->rank; d++) {
        parts.strides[d] *= 2;
    }
    parts.dims[parts.rank] = 2;
    parts.strides[parts.rank++] = 1;
    return parts;
}

static enum status reduce_emit(struct rt_emit *emit, struct error *err)
{
    const struct row *row = rt_emit_op(emit)->detail;
    const struct rt_tensor *in = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint32_t reduced = reduced_dims(emit, row, in->rank);
    struct rt_tensor in_parts, out_parts;
    if (dtype_infos[in->dtype].kind == DTYPE_COMPLEX) {
        in_parts = parts_of(in);
        out_parts = parts_of(out);
        in = &in_parts; /* the dim of the parts is kept */
        out = &out_parts;
    }
    uint32_t all = (1u << in->rank) - 1;
    bool tells_index = row->results[row->output_count - 1] == RT_RESULT_INDEX;
    struct hal_binding bindings[3];
    struct rt_reduce_constants k = {
        .kept = make_nest(in, all & ~reduced, false),
        .reduced = make_nest(in, reduced, !tells_index),
        .fold = row->fold,
        .class = class_of(row, in->dtype, out->dtype),
        .dtype = in->dtype,
        .output_count = row->output_count,
        .correction = correction_of(emit, row),
    };

    if (k.kept.numel == 0) {
        return ST_OK;
    }
    must(k.reduced.numel > 0 || (k.fold != RT_FOLD_MAX && k.fold != RT_FOLD_MIN));
    for (uint32_t o = 0; o < row->output_count; o++) {
        const struct rt_tensor *tensor = rt_emit_out(emit, o);
        enum dtype dtype = o == 0 ? out->dtype : tensor ? tensor->dtype : DT_F32;
        k.outputs[o] = (struct rt_reduce_output){row->results[o], dtype};
        bindings[o] = tensor ? tensor->binding : (struct hal_binding){0};
    }
    bindings[row->output_count] = in->binding;
    return record(emit, &k, bindings, err);
}

static enum status reduce_batch(struct rt_batch_call *call)
{
    const struct row *row = call->node->op->detail;
    if (row->dims_arg == 0) {
        return error_set(call->err, ST_UNSUPPORTED, "it works along dim 0");
    }
    must(row->dims_arg == 1);
    return rt_batch_along(call);
}

/* ---- the operators ------------------------------------------------------------------------- */

#define REDUCED (RT_DTYPES_ALL & ~(1u << DT_U64))
#define SUMMED (REDUCED | RT_DTYPES_COMPLEX)
#define REDUCE(name_, kernels_, args_, dtypes_, ...)                                               \
    {                                                                                              \
        .name = (name_), .kernels = (kernels_), .args = (args_), .shape = reduce_shape,            \
        .emit = reduce_emit, .flags = RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY,                      \
        .batch = reduce_batch, .dtypes = (dtypes_), .runs = &rt_reduce_rows_kernel,                \
        .detail = &(const struct row)                                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ONE(result) .output_count = 1, .results = {RT_RESULT_##result}
#define TWO(first, second) .output_count = 2, .results = {RT_RESULT_##first, RT_RESULT_##second}
#define DIMS(dims, keep) .dims_arg = (dims), .keep_arg = (keep)
#define ALL_DIMS DIMS(0, 0)

const struct rt_op rt_ops_reduce[] = {
    REDUCE("sum", "aten::sum.IntList_out", "TL?BI?>T", SUMMED, .fold = RT_FOLD_SUM, DIMS(1, 2),
           ONE(VALUE)),
    REDUCE("mean", "aten::mean.out", "TL?BI?>T", SUMMED, .fold = RT_FOLD_SUM, DIMS(1, 2), ONE(MEAN),
           .is_float = true),
    REDUCE("mean_all", "aten::mean.dtype_out", "TI?>T", SUMMED, .fold = RT_FOLD_SUM, ALL_DIMS,
           ONE(MEAN), .is_float = true),
    REDUCE("prod_all", "aten::prod.out", "TI?>T", REDUCED, .fold = RT_FOLD_PROD, ALL_DIMS,
           ONE(VALUE)),
    REDUCE("prod", "aten::prod.int_out", "TIBI?>T", REDUCED, .fold = RT_FOLD_PROD, DIMS(1, 2),
           ONE(VALUE)),
    REDUCE("amax", "aten::amax.out", "TLB>T", REDUCED, .fold = RT_FOLD_MAX, DIMS(1, 2), ONE(VALUE)),
    REDUCE("amin", "aten::amin.out", "TLB>T", REDUCED, .fold = RT_FOLD_MIN, DIMS(1, 2), ONE(VALUE)),
    REDUCE("max", "aten::max.unary_out", "T>T", REDUCED, .fold = RT_FOLD_MAX, ALL_DIMS, ONE(VALUE)),
    REDUCE("min", "aten::min.unary_out", "T>T", REDUCED, .fold = RT_FOLD_MIN, ALL_DIMS, ONE(VALUE)),
    REDUCE("max_dim", "aten::max.dim_max", "TIB>TT", REDUCED, .fold = RT_FOLD_MAX, DIMS(1, 2),
           TWO(VALUE, INDEX)),
    REDUCE("min_dim", "aten::min.dim_min", "TIB>TT", REDUCED, .fold = RT_FOLD_MIN, DIMS(1, 2),
           TWO(VALUE, INDEX)),
    REDUCE("argmax", "aten::argmax.out", "TI?B>T", REDUCED, .fold = RT_FOLD_MAX, DIMS(1, 2),
           ONE(INDEX)),
    REDUCE("argmin", "aten::argmin.out", "TI?B>T", REDUCED, .fold = RT_FOLD_MIN, DIMS(1, 2),
           ONE(INDEX)),
    REDUCE("any", "aten::any.out", "TIB>T", REDUCED, .fold = RT_FOLD_ANY, DIMS(1, 2), ONE(VALUE)),
    REDUCE("any_dims", "aten::any.dims_out", "TL?B>T", REDUCED, .fold = RT_FOLD_ANY, DIMS(1, 2),
           ONE(VALUE), .empty_is_none = true),
    REDUCE("any_all", "aten::any.all_out", "T>T", REDUCED, .fold = RT_FOLD_ANY, ALL_DIMS,
           ONE(VALUE)),
    REDUCE("var_unbiased", "aten::var.out", "TL?BB>T", RT_DTYPES_FLOAT, .fold = RT_FOLD_SUM,
           DIMS(1, 3), ONE(VARIANCE), .correction_arg = 2),
    REDUCE("var", "aten::var.correction_out", "TL?S?B>T", RT_DTYPES_FLOAT, .fold = RT_FOLD_SUM,
           DIMS(1, 3), ONE(VARIANCE), .correction_arg = 2),
    REDUCE("var_mean", "aten::var_mean.correction_out", "TL?S?B>TT", RT_DTYPES_FLOAT,
           .fold = RT_FOLD_SUM, DIMS(1, 3), TWO(VARIANCE, MEAN), .correction_arg = 2),
    {.name = NULL},
};
