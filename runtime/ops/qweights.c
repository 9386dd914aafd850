/* SPDX-License-Identifier: MIT */
/*
 * Weights in the form that integer products read, made when a model is loaded: packed panels, and
 * for each column the numbers that turn its sum into a result. Weights are i8 with zero point 0;
 * packed in 4 bits they are the same numbers in [-8, 7].
 *
 * Only the quantize pass makes these nodes.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/qgemm.h"
#include "runtime/ops/op.h"

/*
 * The product of 4-bit weights is 16 times too large: see v_low_halves() in hal/cpu/uk/simd_u8.h.
 */
#define FACTOR_4BIT 16

static int64_t panels_of(int64_t n)
{
    return uk_panels_u8(hal_cpu_uk(), (uint32_t)n);
}

static enum status set_packed(struct rt_shape_call *call, const int64_t *dims, uint8_t rank)
{
    struct rt_dim out[4];
    for (uint8_t i = 0; i < rank; i++) {
        out[i] = rt_dim_of(dims[i]);
    }
    rt_node_out(call->graph, call->node, 0)->is_packed = true;
    return rt_shape_set_out(call, 0, rank, out);
}

/* ---- panels ---------------------------------------------------------------------------------- */

/* The matrices of one weight tensor, one for each group. */
struct pack {
    struct uk_pack_u8 call; /* the constants, without pointers */
    int64_t source, packed; /* bytes from one matrix to the next */
    int64_t group;          /* weights that share a scale, which the panels have in them; or 0 */
    int64_t scale_bytes;
};

/* Bindings: packed, source. Grid: panels, matrices. */
static void pack_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct pack *p = args->constants;
    struct uk_pack_u8 call = p->call;
    call.src = (const int8_t *)args->bindings[1] + tile.y * p->source;
    call.packed = (uint8_t *)args->bindings[0] + tile.y * p->packed;
    hal_cpu_uk()->pack_u8(&call, tile.x, tile.x + 1);
}

/* The upper half of a float is a bfloat16. */
static void put_scale(uint8_t *to, float scale, size_t bytes)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    uint16_t upper = (uint16_t)(bits >> 16);
    memcpy(to, bytes == sizeof(upper) ? (const void *)&upper : &bits, bytes);
}

/* The weights and scales of a group of one panel, which |call| describes; |from| is the scale of
 * its first column. */
static void pack_group(const struct pack *p, const struct uk_pack_u8 *call, const float *from)
{
    int64_t groups = p->call.column / p->group, nr = hal_cpu_uk()->u8_nr;
    uint8_t *to = call->packed + uk_group_bytes_u8((size_t)nr, (size_t)p->group, call->is_4bit, 0);
    hal_cpu_uk()->pack_u8(call, 0, 1);
    for (int64_t j = 0; j < nr; j++, to += p->scale_bytes) {
        put_scale(to, j < call->n ? from[j * groups] : 0, (size_t)p->scale_bytes);
    }
}

/* Bindings: packed, source, scales, columns. Grid: panels. */
static void pack_grouped_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct pack *p = args->constants;
    const int64_t nr = hal_cpu_uk()->u8_nr, k = p->call.column, groups = k / p->group;
    const int64_t first = tile.x * nr, left = p->call.n - first;
    const size_t numbers = (size_t)(UK_COLUMN_ARRAYS * nr);
    const size_t group_bytes =
        uk_group_bytes_u8((size_t)nr, (size_t)p->group, p->call.is_4bit, (size_t)p->scale_bytes);
    const float *scales = (const float *)args->bindings[2] + first * groups;
    struct uk_pack_u8 call = p->call;
    call.n = (uint32_t)(left < nr ? left : nr);
    call.inner_count = (uint32_t)p->group;
    call.src = (const int8_t *)args->bindings[1] + first * k;
    call.packed = (uint8_t *)args->bindings[0] +
                  tile.x * uk_panel_bytes_u8((size_t)nr, (size_t)k, (size_t)p->group, call.is_4bit,
                                             (size_t)p->scale_bytes);
    for (int64_t g = 0; g < groups; g++) {
        pack_group(p, &call, scales + g);
        call.src += p->group;
        call.packed += group_bytes;
    }
    memcpy(call.packed, (const union uk_number *)args->bindings[3] + tile.x * numbers,
           numbers * sizeof(union uk_number));
}

static const struct hal_kernel pack_kernel = {.name = "pack_u8", .cpu = pack_cpu};
static const struct hal_kernel pack_grouped_kernel = {.name = "pack_u8", .cpu = pack_grouped_cpu};

/* Panels that are larger than their weights, without groups, have sorted words. */
static bool is_sorted(const struct pack *p, const struct rt_tensor *out)
{
    int64_t run = rt_qgemm_run((int64_t)p->call.mid_count * p->call.inner_count, false);
    return !p->group && out->dims[2] > p->call.outer_count * run * hal_cpu_uk()->u8_nr;
}

/* |scales| and |columns| are of weights with groups, and otherwise NULL. */
static enum status emit_pack(struct rt_emit *emit, struct pack *pack,
                             const struct rt_tensor *scales, const struct rt_tensor *columns,
                             struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[4] = {out->binding, w->binding};
    if (pack->group) {
        bindings[2] = scales->binding;
        bindings[3] = columns->binding;
    }
    pack->call.is_sorted = is_sorted(pack, out);
    struct hal_dispatch dispatch = {
        .kernel = pack->group ? &pack_grouped_kernel : &pack_kernel,
        .grid = {(uint32_t)out->dims[1], (uint32_t)out->dims[0], 1},
        .constants = pack,
        .constants_bytes = sizeof(*pack),
        .bindings = bindings,
        .binding_count = pack->group ? 4 : 2,
        .cost = (uint64_t)w->numel * 2,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* A matrix with fewer weights multiplies too little with each copy of a tile. */
#define SORTED_MIN 6144

/* Bytes of a panel of [n, k] weights of 8 bits without groups. */
static int64_t panel_bytes(int64_t n, int64_t k, bool may_sort)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    return may_sort && n * k >= SORTED_MIN && uk_sorts_u8(uk, (size_t)k)
               ? (int64_t)uk_sorted_panel_u8(uk, (size_t)k)
               : k * uk->u8_nr;
}

/* w [n, k], or [k, n] when the flag is set; 4 bits?; for panels with the scales and columns of
 * groups in them, which need [n, k]: scales [n, groups]?, columns?, group (0: none of this),
 * bfloat16 scales?; are words sorted if that is faster, as only the CPU device can read them? ->
 * [1, panels, bytes] */
enum {
    LINEAR_W,
    LINEAR_IS_KN,
    LINEAR_IS_4BIT,
    LINEAR_SCALES,
    LINEAR_COLUMNS,
    LINEAR_GROUP,
    LINEAR_HAS_SHORT_SCALES,
    LINEAR_IS_SORTED
};

static int64_t scale_bytes(bool are_short)
{
    return are_short ? sizeof(uint16_t) : sizeof(float);
}

static enum status pack_linear_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, LINEAR_W);
    bool is_kn = rt_shape_arg(call, LINEAR_IS_KN)->b,
         is_4bit = rt_shape_arg(call, LINEAR_IS_4BIT)->b;
    int64_t k = w->dims[is_kn ? 0 : 1].value, n = w->dims[is_kn ? 1 : 0].value;
    bool is_sorted = rt_shape_arg(call, LINEAR_IS_SORTED)->b && !is_4bit;
    int64_t bytes = panel_bytes(n, rt_qgemm_run(k, is_4bit), is_sorted) / (is_4bit ? 2 : 1);
    int64_t group = rt_shape_arg(call, LINEAR_GROUP)->i.value;
    if (group) {
        int64_t scale = scale_bytes(rt_shape_arg(call, LINEAR_HAS_SHORT_SCALES)->b);
        bytes = (int64_t)uk_panel_bytes_u8(hal_cpu_uk()->u8_nr, (size_t)k, (size_t)group, is_4bit,
                                           (size_t)scale);
    }
    return set_packed(call, (int64_t[]){1, panels_of(n), bytes}, 3);
}

static enum status pack_linear_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, LINEAR_W);
    bool is_kn = rt_emit_value(emit, LINEAR_IS_KN)->b;
    struct pack pack = {
        .call = {.column = is_kn ? 1 : w->dims[1],
                 .inner_stride = is_kn ? w->dims[1] : 1,
                 .n = (uint32_t)w->dims[is_kn ? 1 : 0],
                 .outer_count = 1,
                 .mid_count = 1,
                 .inner_count = (uint32_t)w->dims[is_kn ? 0 : 1],
                 .is_4bit = rt_emit_value(emit, LINEAR_IS_4BIT)->b},
        .group = rt_emit_int(emit, LINEAR_GROUP),
        .scale_bytes = scale_bytes(rt_emit_value(emit, LINEAR_HAS_SHORT_SCALES)->b),
    };
    return emit_pack(emit, &pack, rt_emit_arg(emit, LINEAR_SCALES),
                     rt_emit_arg(emit, LINEAR_COLUMNS), err);
}

/* w OIHW or OIW, groups, do the taps of a line form one run?, are words sorted, as above? ->
 * [groups, panels, bytes] */
enum { CONV_W, CONV_GROUPS, CONV_MERGES, CONV_IS_SORTED };

/* Taps in runs, runs, channels of a group. */
static void conv_runs(const int64_t *dims, uint8_t rank, bool merges, int64_t *mid, int64_t *outer)
{
    int64_t height = rank == 4 ? dims[2] : 1, width = dims[rank - 1];
    *mid = merges ? width : 1;
    *outer = merges ? height : height * width;
}

static enum status pack_conv_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, CONV_W);
    int64_t groups = rt_shape_arg(call, CONV_GROUPS)->i.value, dims[4], mid, outer;
    for (uint8_t i = 0; i < w->rank; i++) {
        dims[i] = w->dims[i].value;
    }
    conv_runs(dims, w->rank, rt_shape_arg(call, CONV_MERGES)->b, &mid, &outer);
    int64_t k = outer * rt_qgemm_run(mid * dims[1], false);
    int64_t out[] = {groups, panels_of(dims[0] / groups),
                     panel_bytes(dims[0] / groups, k, rt_shape_arg(call, CONV_IS_SORTED)->b)};
    return set_packed(call, out, 3);
}

static enum status pack_conv_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, CONV_W), *out = rt_emit_out(emit, 0);
    int64_t groups = rt_emit_int(emit, CONV_GROUPS), mid, outer;
    int64_t width = w->dims[w->rank - 1], taps = width * (w->rank == 4 ? w->dims[2] : 1);
    bool merges = rt_emit_value(emit, CONV_MERGES)->b;
    conv_runs(w->dims, w->rank, merges, &mid, &outer);
    struct pack pack = {
        .call = {.column = w->dims[1] * taps,
                 .outer_stride = merges ? width : 1,
                 .mid_stride = 1,
                 .inner_stride = taps,
                 .n = (uint32_t)(w->dims[0] / groups),
                 .outer_count = (uint32_t)outer,
                 .mid_count = (uint32_t)mid,
                 .inner_count = (uint32_t)w->dims[1]},
        .source = w->numel / groups,
        .packed = out->dims[1] * out->dims[2],
    };
    return emit_pack(emit, &pack, NULL, NULL, err);
}

/* ---- depthwise ------------------------------------------------------------------------------- */

/* w [h, w, 1, channels] -> [bytes] */
static enum status pack_dw_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, 0);
    size_t bytes = uk_dw_u8_bytes(hal_cpu_uk(), (size_t)w->dims[0].value, (size_t)w->dims[1].value,
                                  (size_t)w->dims[3].value);
    return set_packed(call, (int64_t[]){(int64_t)bytes}, 1);
}

struct pack_dw {
    uint32_t kernel_h, kernel_w, channels;
};

static void pack_dw_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct pack_dw *p = args->constants;
    (void)tile;
    hal_cpu_uk()->pack_dw_u8(args->bindings[0], args->bindings[1], p->kernel_h, p->kernel_w,
                             p->channels);
}

static const struct hal_kernel pack_dw_kernel = {.name = "pack_dw_u8", .cpu = pack_dw_cpu};

static enum status pack_dw_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, 0);
    struct pack_dw pack = {(uint32_t)w->dims[0], (uint32_t)w->dims[1], (uint32_t)w->dims[3]};
    struct hal_binding bindings[] = {rt_emit_out(emit, 0)->binding, w->binding};
    struct hal_dispatch dispatch = {
        .kernel = &pack_dw_kernel,
        .grid = {1, 1, 1},
        .constants = &pack,
        .constants_bytes = sizeof(pack),
        .bindings = bindings,
        .binding_count = 2,
        .cost = (uint64_t)w->numel * 4,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- columns --------------------------------------------------------------------------------- */

/*
 * w, the axis of its columns, groups of a convolution (0: depthwise, in blocks), bias?, scales of
 * the columns? or (rank 2) of groups of weights?, scale of all, scale and zero point of the input,
 * scale of the output, 4 bits? -> [panels, arrays, width]
 */
enum {
    COLUMNS_W,
    COLUMNS_AXIS,
    COLUMNS_GROUPS,
    COLUMNS_BIAS,
    COLUMNS_SCALES,
    COLUMNS_SCALE,
    COLUMNS_X_SCALE,
    COLUMNS_X_ZERO,
    COLUMNS_OUT_SCALE,
    COLUMNS_IS_4BIT
};

static uint32_t columns_width(int64_t groups)
{
    return groups == 0 ? hal_cpu_uk()->u8_block : hal_cpu_uk()->u8_nr;
}

static enum status columns_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, COLUMNS_W);
    int64_t n = w->dims[rt_shape_arg(call, COLUMNS_AXIS)->i.value].value;
    int64_t groups = rt_shape_arg(call, COLUMNS_GROUPS)->i.value, width = columns_width(groups);
    int64_t matrices = groups == 0 ? 1 : groups, panels = (n / matrices + width - 1) / width;
    return set_packed(call, (int64_t[]){matrices * panels, UK_COLUMN_ARRAYS, width}, 3);
}

struct columns {
    int64_t n, depth; /* columns in all, and weights of each */
    int64_t column,
        step;           /* elements from one column, and from one weight of a column, to the next */
    int64_t group_outs; /* columns of a matrix */
    int64_t width;      /* columns of a panel */
    int64_t scale_groups; /* scales of a column; 0: one scale for all columns */
    int32_t x_zero, factor;
    double scale, x_scale, out_scale;
};

static int64_t panels_of_matrix(const struct columns *c)
{
    return (c->group_outs + c->width - 1) / c->width;
}

static union uk_number *column_at(const struct columns *c, union uk_number *columns, int64_t j)
{
    int64_t panels = panels_of_matrix(c), i = j % c->group_outs;
    int64_t panel = j / c->group_outs * panels + i / c->width;
    return columns + panel * UK_COLUMN_ARRAYS * c->width + i % c->width;
}

static int32_t sum_weights(const int8_t *w, int64_t count, int64_t step)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += w[i * step];
    }
    return (int32_t)sum;
}

/* The numbers of column |j|. */
static void set_column(const struct columns *c, const struct hal_args *args, int64_t j)
{
    const float *bias = args->bindings[2], *scales = args->bindings[3];
    const int8_t *w = (const int8_t *)args->bindings[1] + j * c->column;
    union uk_number *at = column_at(c, args->bindings[0], j);
    double scale = c->scale * c->x_scale / c->out_scale / c->factor;
    if (c->scale_groups > 1) {
        double sum = 0;
        int64_t length = c->depth / c->scale_groups;
        for (int64_t g = 0; g < c->scale_groups; g++) {
            sum += (double)sum_weights(w + g * length * c->step, length, c->step) *
                   (double)scales[j * c->scale_groups + g];
        }
        at[UK_COLUMN_SUM * c->width].f = (float)(sum * c->factor);
        at[UK_COLUMN_OFFSET * c->width].f = (float)(-c->x_zero * sum * c->factor);
    } else {
        /* Products are summed in 32 bits and wrap around, and so do these sums. */
        int64_t sum = (int64_t)sum_weights(w, c->depth, c->step) * c->factor;
        at[UK_COLUMN_SUM * c->width].i = (int32_t)sum;
        at[UK_COLUMN_OFFSET * c->width].i = (int32_t)(-c->x_zero * sum);
        scale *= scales ? (double)scales[c->scale_groups == 1 ? j : 0] : 1.0;
    }
    at[UK_COLUMN_SCALE * c->width].f = (float)scale;
    at[UK_COLUMN_BIAS * c->width].f = bias ? (float)((double)bias[j] / c->out_scale) : 0.0f;
}

/* Bindings: columns, w, bias, scales. A tile is a panel; the columns that it lacks are zeros. */
static void columns_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct columns *c = args->constants;
    int64_t panels = panels_of_matrix(c), panel = tile.x % panels;
    int64_t first = tile.x / panels * c->group_outs + panel * c->width;
    int64_t left = c->group_outs - panel * c->width;
    size_t numbers = (size_t)(UK_COLUMN_ARRAYS * c->width);
    union uk_number *columns = args->bindings[0];
    memset(columns + (size_t)tile.x * numbers, 0, numbers * sizeof(*columns));
    for (int64_t j = first; j < first + (left < c->width ? left : c->width); j++) {
        set_column(c, args, j);
    }
}

static const struct hal_kernel columns_kernel = {.name = "columns_u8", .cpu = columns_cpu};

static enum status columns_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, COLUMNS_W), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *bias = rt_emit_arg(emit, COLUMNS_BIAS);
    const struct rt_tensor *scales = rt_emit_arg(emit, COLUMNS_SCALES);
    int64_t axis = rt_emit_int(emit, COLUMNS_AXIS), groups = rt_emit_int(emit, COLUMNS_GROUPS);
    int64_t n = w->dims[axis];
    struct columns c = {
        .n = n,
        .depth = n > 0 ? w->numel / n : 0,
        .column = w->strides[axis],
        .step = axis == 0 ? 1 : w->strides[0],
        .group_outs = groups > 0 ? n / groups : n,
        .width = columns_width(groups),
        .scale_groups = scales && n > 0 ? scales->numel / n : 0,
        .x_zero = (int32_t)rt_emit_int(emit, COLUMNS_X_ZERO),
        .factor = rt_emit_value(emit, COLUMNS_IS_4BIT)->b ? FACTOR_4BIT : 1,
        .scale = rt_emit_number(emit, COLUMNS_SCALE),
        .x_scale = rt_emit_number(emit, COLUMNS_X_SCALE),
        .out_scale = rt_emit_number(emit, COLUMNS_OUT_SCALE),
    };
    struct hal_binding bindings[4] = {out->binding, w->binding};
    bindings[2] = bias ? bias->binding : bindings[2];
    bindings[3] = scales ? scales->binding : bindings[3];
    struct hal_dispatch dispatch = {
        .kernel = &columns_kernel,
        .grid = {(uint32_t)out->dims[0], 1, 1},
        .constants = &c,
        .constants_bytes = sizeof(c),
        .bindings = bindings,
        .binding_count = 4,
        .cost = (uint64_t)w->numel,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- scales of groups ------------------------------------------------------------------------ */

/* scales [n, groups] -> [panels, groups, width]: for shaders */
static enum status group_scales_shape(struct rt_shape_call *call)
{
    const struct rt_value *s = rt_shape_arg(call, 0);
    int64_t out[] = {panels_of(s->dims[0].value), s->dims[1].value, hal_cpu_uk()->u8_nr};
    return set_packed(call, out, 3);
}

struct group_scales {
    int64_t n, groups, width;
};

static void group_scales_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct group_scales *s = args->constants;
    float *to = args->bindings[0];
    const float *from = args->bindings[1];
    (void)tile;
    memset(to, 0, args->lengths[0]);
    for (int64_t j = 0; j < s->n; j++) {
        for (int64_t g = 0; g < s->groups; g++) {
            int64_t at = (j / s->width * s->groups + g) * s->width + j % s->width;
            to[at] = from[j * s->groups + g];
        }
    }
}

static const struct hal_kernel group_scales_kernel = {
    .name = "group_scales_u8",
    .cpu = group_scales_cpu,
};

static enum status group_scales_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *s = rt_emit_arg(emit, 0);
    struct group_scales constants = {s->dims[0], s->dims[1], hal_cpu_uk()->u8_nr};
    struct hal_binding bindings[] = {rt_emit_out(emit, 0)->binding, s->binding};
    struct hal_dispatch dispatch = {
        .kernel = &group_scales_kernel,
        .grid = {1, 1, 1},
        .constants = &constants,
        .constants_bytes = sizeof(constants),
        .bindings = bindings,
        .binding_count = 2,
        .cost = (uint64_t)s->numel,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

const struct rt_op rt_ops_qweights[] = {
    {"q_pack_linear", NULL, "TBBT?T?IBB>T", pack_linear_shape, pack_linear_emit, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &pack_kernel},
    {"q_pack_conv", NULL, "TIBB>T", pack_conv_shape, pack_conv_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL,
     NULL, .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &pack_kernel},
    {"q_pack_dw", NULL, "T>T", pack_dw_shape, pack_dw_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &pack_dw_kernel},
    {"q_columns", NULL, "TIIT?T?FFIFB>T", columns_shape, columns_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL,
     NULL, .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &columns_kernel},
    {"q_group_scales", NULL, "T>T", group_scales_shape, group_scales_emit, 0, RT_LAYOUT_ROW_MAJOR,
     NULL, NULL, .dtypes = 1u << DT_F32, .runs = &group_scales_kernel},
    {0},
};
