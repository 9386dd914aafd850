/* SPDX-License-Identifier: MIT */
/*
 * Matrix products. The file's forms (mm, bmm, addmm, linear) have no kernels of their own. The
 * lower pass replaces each with "gemm" over a packed right-hand side (halves are converted to
 * floats for it) or, for doubles and integers, with "matmul". Integers wrap around.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/gemm.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* All tensors of a product are of one type. */
#define PRODUCT_TYPES ((RT_DTYPES_REAL & ~(1u << DT_U64)) | RT_DTYPES_COMPLEX)

/* ---- the file's forms ------------------------------------------------------------------------ */

static enum status need_rank(struct rt_shape_call *call, uint32_t index, uint8_t rank)
{
    const struct rt_value *v = rt_shape_arg(call, index);
    if (v->kind != RT_NONE && v->rank != rank) {
        return rt_shape_refuse(call, "argument %u has rank %u, expected %u", index, v->rank, rank);
    }
    return rt_shape_need_dtype(call, index, 1u << rt_shape_out_dtype(call, 0));
}

/* The product of [.., m, k] and [.., k, n], |rank| 2 or 3. */
static enum status product(struct rt_shape_call *call, uint32_t left, uint8_t rank)
{
    const struct rt_value *a = rt_shape_arg(call, left), *b = rt_shape_arg(call, left + 1);
    struct rt_dims *dims = &call->graph->dims;
    TRY(rt_shape_need_out_dtype(call, 0, PRODUCT_TYPES));
    TRY(need_rank(call, left, rank));
    TRY(need_rank(call, left + 1, rank));
    TRY(rt_dim_require_equal(dims, a->dims[rank - 1], b->dims[rank - 2],
                             "columns of the first matrix (must equal the rows of the second)",
                             call->err));
    if (rank == 3) {
        TRY(rt_dim_require_equal(dims, a->dims[0], b->dims[0],
                                 "matrices in the first batch (must equal those in the second)",
                                 call->err));
    }
    struct rt_dim out[3] = {a->dims[0], a->dims[rank - 2]};
    out[rank - 1] = b->dims[rank - 1];
    return rt_shape_set_out(call, 0, rank, out);
}

static enum status mm_shape(struct rt_shape_call *call)
{
    return product(call, 0, 2);
}

static enum status bmm_shape(struct rt_shape_call *call)
{
    return product(call, 0, 3);
}

static enum status addmm_shape(struct rt_shape_call *call)
{
    const struct rt_value *bias = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t rank;
    TRY(rt_shape_need_dtype(call, 0, 1u << rt_shape_out_dtype(call, 0)));
    bool is_float = dtype_is_float(bias->dtype);
    for (uint32_t i = 3; i < 5; i++) {
        if (!rt_value_is_fixed(rt_shape_arg(call, i))) {
            return rt_shape_unsupported(call, "argument %u must not depend on the inputs' dims", i);
        }
        if (rt_shape_arg(call, i)->kind == RT_FLOAT && !is_float) {
            return rt_shape_refuse(call, "argument %u is a float, but the tensors are integers", i);
        }
    }
    TRY(product(call, 1, 2));
    const struct rt_value *result = rt_node_out(call->graph, call->node, 0);
    TRY(rt_shape_broadcast(call, bias->rank, bias->dims, 2, result->dims, out, &rank));
    if (rank != 2) {
        return rt_shape_refuse(call, "the bias has rank %u, expected at most 2", bias->rank);
    }
    for (uint8_t d = 0; d < rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, out[d], result->dims[d],
                                 "the bias is larger than the product", call->err));
    }
    return ST_OK;
}

static enum status linear_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, 0), *w = rt_shape_arg(call, 1),
                          *bias = rt_shape_arg(call, 2);
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim out[SHAPE_RANK_MAX];
    TRY(rt_shape_need_out_dtype(call, 0, PRODUCT_TYPES));
    TRY(rt_shape_need_dtype(call, 0, 1u << rt_shape_out_dtype(call, 0)));
    TRY(need_rank(call, 1, 2));
    TRY(need_rank(call, 2, 1));
    if (x->rank == 0) {
        return rt_shape_refuse(call, "the input has rank 0, expected 1 or more");
    }
    TRY(rt_dim_require_equal(dims, x->dims[x->rank - 1], w->dims[1],
                             "columns of the input (must equal those of the weights)", call->err));
    if (bias->kind == RT_TENSOR) {
        TRY(rt_dim_require_equal(dims, bias->dims[0], w->dims[0],
                                 "elements of the bias (one for each output channel)", call->err));
    }
    for (uint8_t i = 0; i + 1 < x->rank; i++) {
        out[i] = x->dims[i];
    }
    out[x->rank - 1] = w->dims[0];
    return rt_shape_set_out(call, 0, x->rank, out);
}

/* ---- packing --------------------------------------------------------------------------------- */

/* B as [.., k, n] (pack_kn) or as [.., n, k] (pack_nk); the dims before the last two count
 * matrices. */
static enum status pack_shape(struct rt_shape_call *call)
{
    const struct rt_value *b = rt_shape_arg(call, 0);
    bool is_transposed = call->node->op->detail != NULL;
    struct rt_dim k = b->dims[b->rank - (is_transposed ? 1 : 2)];
    struct rt_dim matrices = rt_dim_of(1), out[4];
    for (uint8_t i = 0; i + 2 < b->rank; i++) {
        matrices = rt_dim_mul(&call->graph->dims, matrices, b->dims[i]);
    }
    must(b->rank >= 2);
    if (rt_shape_out_dtype(call, 0) == DT_BF16 && k.value % 2) { /* a constant: see lower.c */
        k = rt_dim_of(k.value + 1);
    }
    rt_gemm_packed_dims(&call->graph->dims, matrices, k, b->dims[b->rank - (is_transposed ? 2 : 1)],
                        out);
    rt_node_out(call->graph, call->node, 0)->is_packed = true;
    return rt_shape_set_out(call, 0, 4, out);
}

static enum status pack_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *b = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    bool is_transposed = rt_emit_op(emit)->detail != NULL;
    int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
    struct rt_pack pack = {
        .column = is_transposed ? columns : 1,
        .inner_stride = is_transposed ? 1 : columns,
        .n = is_transposed ? rows : columns,
        .outer_count = 1,
        .inner_count = is_transposed ? columns : rows,
        .source = rows * columns,
        .packed = out->dims[1] * out->dims[2] * out->dims[3],
    };
    return rt_gemm_emit_pack(emit, &pack, out->dims[0], err);
}

/* ---- gemm ------------------------------------------------------------------------------------ */

/* x [.., m, k], packed, n, bias?, residual?, min, max, activation?. If there are several packed
 * matrices, each multiplies its own x[i]. */
enum { GEMM_X, GEMM_PACKED, GEMM_N, GEMM_BIAS, GEMM_RESIDUAL, GEMM_MIN, GEMM_MAX, GEMM_ACTIVATION };

static enum status gemm_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, GEMM_X);
    struct rt_dim out[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i + 1 < x->rank; i++) {
        out[i] = x->dims[i];
    }
    out[x->rank - 1] = rt_shape_arg(call, GEMM_N)->i;
    return rt_shape_set_out(call, 0, x->rank, out);
}

static struct hal_binding optional_binding(const struct rt_tensor *t)
{
    return t ? t->binding : (struct hal_binding){0};
}

static enum status gemm_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, GEMM_X), *b = rt_emit_arg(emit, GEMM_PACKED);
    const struct rt_tensor *residual = rt_emit_arg(emit, GEMM_RESIDUAL);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    /* Packed pairs of rows may have one more. */
    int64_t k = x->dims[x->rank - 1], n = rt_emit_int(emit, GEMM_N), matrices = b->dims[0];
    int64_t rows = n > 0 ? out->numel / n : 0;
    int64_t images = matrices > 1 ? matrices : 1, m = rows / images;
    struct rt_gemm gemm = {
        .y = {.out = 1, .in = 1, .step = 1, .taps = 1, .spread = 1, .k_spread = 1},
        .x = {.out = m, .in = m, .step = 1, .taps = 1, .spread = 1, .k_spread = 1},
        .images = images,
        .groups = 1,
        .channels = k,
        .outs = n,
        .kernel_w = 1,
        .k = b->dims[2],
        .image_in = m * k,
        .image_out = m * n,
        .line_in = m * k,
        .line_out = m * n,
        .pixel_out = n,
        .image_b = matrices > 1 ? b->dims[1] * b->dims[2] * b->dims[3] : 0,
        .min = (float)rt_emit_number(emit, GEMM_MIN),
        .max = (float)rt_emit_number(emit, GEMM_MAX),
        .is_rounded = out->is_half,
        .activation = rt_activation_read(rt_emit_value(emit, GEMM_ACTIVATION)),
    };
    struct rt_gemm_tensors tensors = {
        .out = out->binding,
        .in = x->binding,
        .weights = b->binding,
        .bias = optional_binding(rt_emit_arg(emit, GEMM_BIAS)),
        .residual = optional_binding(residual),
        .are_halves = x->is_half && b->is_half,
        .is_bf16 = b->dtype == DT_BF16,
        .in_is_bf16 = x->dtype == DT_BF16,
        .residual_is_bf16 = residual && residual->dtype == DT_BF16,
        .out_is_bf16 = out->dtype == DT_BF16,
    };
    return rt_gemm_emit(emit, &gemm, &tensors, err);
}

/* ---- matmul ---------------------------------------------------------------------------------- */

/* A tile is some rows; the kernel walks columns and inner positions in chunks. */
#define MATMUL_CHUNK 128

/* Elements are stored in their class. */
union matmul_row {
    double f[MATMUL_CHUNK];
    uint64_t i[MATMUL_CHUNK]; /* wraps around */
};

struct matmul_scratch {
    union matmul_row sums[RT_MATMUL_ROWS], a[RT_MATMUL_ROWS], b;
};

static void add_product_f64(double *restrict sum, const double *restrict b, double a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        sum[j] += a * b[j];
    }
}

static void add_product_i64(uint64_t *restrict sum, const uint64_t *restrict b, uint64_t a,
                            int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        sum[j] += a * b[j];
    }
}

/*
 * sums += the products over |depth| inner positions; |b| is the row of the first, |n| the columns.
 */
static void add_products(const struct rt_matmul_constants *k, struct matmul_scratch *s,
                         const char *b, int64_t depth, int64_t rows, int64_t n)
{
    int64_t width = (int64_t)dtype_bytes(k->dtype);

    for (int64_t p = 0; p < depth; p++) {
        rt_convert_load(k->dtype, k->class)(&s->b, b + p * k->n * width, width, n);
        for (int64_t r = 0; r < rows; r++) {
            if (k->class == RT_CLASS_F64) {
                add_product_f64(s->sums[r].f, s->b.f, s->a[r].f[p], n);
            } else {
                add_product_i64(s->sums[r].i, s->b.i, s->a[r].i[p], n);
            }
        }
    }
}

/* Computes |n| columns from |column| on of |rows| rows; a, b and out belong to one product. */
static void multiply_columns(const struct rt_matmul_constants *k, struct matmul_scratch *s,
                             const char *a, const char *b, char *out, int64_t rows, int64_t n)
{
    int64_t width = (int64_t)dtype_bytes(k->dtype);

    memset(s->sums, 0, sizeof(s->sums));
    for (int64_t done = 0; done < k->k; done += MATMUL_CHUNK) {
        int64_t depth = k->k - done < MATMUL_CHUNK ? k->k - done : MATMUL_CHUNK;
        for (int64_t r = 0; r < rows; r++) {
            rt_convert_load(k->dtype, k->class)(&s->a[r], a + (r * k->k + done) * width, width,
                                                depth);
        }
        add_products(k, s, b + done * k->n * width, depth, rows, n);
    }
    for (int64_t r = 0; r < rows; r++) {
        rt_convert_store(k->class, k->dtype)(out + r * k->n * width, width, &s->sums[r], n);
    }
}

/* Bindings: out, a, b. Grid: blocks of rows, products. */
static void matmul_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_matmul_constants *k = args->constants;
    int64_t width = (int64_t)dtype_bytes(k->dtype), row = tile.x * k->tile;
    int64_t rows = k->m - row < k->tile ? k->m - row : k->tile;
    const char *a = args->bindings[1], *b = args->bindings[2];
    char *out = args->bindings[0];

    row += tile.y * k->m;
    for (int64_t column = 0; column < k->n; column += MATMUL_CHUNK) {
        int64_t n = k->n - column < MATMUL_CHUNK ? k->n - column : MATMUL_CHUNK;
        multiply_columns(k, args->scratch, a ? a + row * k->k * width : NULL,
                         b ? b + (tile.y * k->matrix + column) * width : NULL,
                         out + (row * k->n + column) * width, rows, n);
    }
}

static const struct hal_kernel matmul_kernel = {
    .name = "matmul", .cpu = matmul_tile, .spirv = HAL_SPIRV(matmul_spirv)};
static const struct hal_kernel matmul_f64_kernel = {.name = "matmul", .cpu = matmul_tile};

/* [.., m, k] x [k, n], or with one right-hand side for each left-hand side. */
static enum status matmul_shape(struct rt_shape_call *call)
{
    const struct rt_value *a = rt_shape_arg(call, 0), *b = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];
    must(a->rank >= 1 && (b->rank == 2 || (b->rank == 3 && a->rank == 3)));
    for (uint8_t i = 0; i + 1 < a->rank; i++) {
        out[i] = a->dims[i];
    }
    out[a->rank - 1] = b->dims[b->rank - 1];
    return rt_shape_set_out(call, 0, a->rank, out);
}

static enum status matmul_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *a = rt_emit_arg(emit, 0), *b = rt_emit_arg(emit, 1);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t count = b->rank == 3 ? b->dims[0] : 1, n = out->dims[out->rank - 1];
    int64_t rows = n > 0 && count > 0 ? out->numel / n / count : 0;
    struct rt_matmul_constants k = {
        .m = rows,
        .k = a->dims[a->rank - 1],
        .n = n,
        .matrix = b->dims[b->rank - 2] * n,
        .dtype = out->dtype,
        .class = out->dtype == DT_F64 ? RT_CLASS_F64 : RT_CLASS_I64,
    };
    struct hal_binding bindings[] = {out->binding, a->binding, b->binding};
    const struct hal_kernel *kernel = k.class == RT_CLASS_F64 ? &matmul_f64_kernel : &matmul_kernel;
    k.tile = rt_cut_block(rt_emit_machine(emit, kernel), rows * count, n, RT_MATMUL_ROWS);
    struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {(uint32_t)((rows + k.tile - 1) / k.tile), (uint32_t)count, 1},
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 3,
        .scratch_bytes = sizeof(struct matmul_scratch),
        .cost = (uint64_t)(out->numel * k.k),
        .macs = (double)out->numel * (double)k.k,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const bool transposed = true;
static const struct rt_epilogue gemm_epilogue = {GEMM_RESIDUAL, GEMM_MIN, GEMM_MAX, true,
                                                 GEMM_ACTIVATION};

const struct rt_op rt_ops_matmul[] = {
    {"mm", "aten::mm.out", "TT>T", mm_shape, NULL, RT_OP_COMPLEX, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = PRODUCT_TYPES, .becomes = "gemm"},
    {"bmm", "aten::bmm.out", "TT>T", bmm_shape, NULL, RT_OP_COMPLEX, RT_LAYOUT_ROW_MAJOR, NULL,
     NULL, .dtypes = PRODUCT_TYPES, .becomes = "gemm"},
    {"addmm", "aten::addmm.out", "TTTSS>T", addmm_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = RT_DTYPES_REAL & ~(1u << DT_U64), .becomes = "gemm"},
    {"linear", "aten::linear.out", "TTT?>T", linear_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = RT_DTYPES_REAL & ~(1u << DT_U64), .becomes = "gemm"},
    {"pack_kn", NULL, "T>T", pack_shape, pack_emit, RT_OP_MOVES, RT_LAYOUT_ROW_MAJOR, NULL,
     rt_batch_each, .dtypes = 1u << DT_F32, .runs = &rt_pack_kernel},
    {"pack_nk", NULL, "T>T", pack_shape, pack_emit, RT_OP_MOVES, RT_LAYOUT_ROW_MAJOR, &transposed,
     rt_batch_each, .dtypes = 1u << DT_F32, .runs = &rt_pack_kernel},
    {"gemm", NULL, "TTIT?T?FFZ?>T", gemm_shape, gemm_emit, RT_OP_EPILOGUE, RT_LAYOUT_ROW_MAJOR,
     &gemm_epilogue, rt_batch_packed, .dtypes = 1u << DT_F32 | 1u << DT_BF16,
     .runs = &rt_gemm_kernel},
    {"matmul", NULL, "TT>T", matmul_shape, matmul_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL,
     rt_batch_matrices, .dtypes = RT_DTYPES_REAL & ~(1u << DT_U64), .runs = &matmul_kernel},
    {0},
};
