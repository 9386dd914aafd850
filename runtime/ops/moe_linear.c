/* SPDX-License-Identifier: MIT */
/*
 * Products with the weights of the experts that each row has chosen. A row and one of its experts
 * are a pair. A tile multiplies some panels of one expert by the rows of all pairs that have it, so
 * the weights of an expert are read once for all rows, and those that no row has chosen are not
 * read. Only the lower pass makes these nodes.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/batch_call.h"
#include "runtime/ops/moe.h"
#include "runtime/ops/op.h"

/* Rows that a tile multiplies at a time. */
#define ROWS_MAX 128

/* Their bytes, and those of their results: a worker has 16 MB of scratch. */
#define PART_BYTES ((int64_t)4 << 20)

/* Rough speed of one core: see runtime/kernels/qgemm.c. */
#define MACS_PER_NS 200
#define BYTES_PER_NS 20

/*
 * x i8 [rows, k], or [rows, chosen, k] if each pair has a row of its own; scale and zero point of
 * each row of x; chosen i32 [rows, chosen]; factors of pairs?; packed weights [1, experts * panels,
 * bytes], columns?, experts, n, 4 bits?, group (0: none), gated? -> [rows, chosen, n], of gated
 * weights silu(a) * b of a panel a and the next panel b.
 */
enum {
    ARG_X,
    ARG_SCALES,
    ARG_ZEROS,
    ARG_CHOSEN,
    ARG_FACTORS,
    ARG_W,
    ARG_COLUMNS,
    ARG_EXPERTS,
    ARG_N,
    ARG_IS_4BIT,
    ARG_GROUP,
    ARG_IS_GATED
};

struct moe_linear {
    int64_t pairs, per_row; /* pairs; those that share a row of x */
    int64_t k, n;
    int64_t panels, block; /* of an expert, of a tile */
    int64_t rows;          /* that a tile multiplies at a time */
    int64_t panel_bytes;
    uint32_t group;
    bool is_4bit, is_gated;
    bool is_by_pair; /* tiles are for pairs, not for experts: there are fewer */
};

int64_t rt_moe_panels(int64_t rows, bool is_gated)
{
    int64_t outs = is_gated ? rows / 2 : rows, width = hal_cpu_uk()->u8_nr;
    return (outs + width - 1) / width * (is_gated ? 2 : 1);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

enum { BIND_OUT, BIND_X, BIND_SCALES, BIND_ZEROS, BIND_CHOSEN, BIND_FACTORS, BIND_W, BIND_COLUMNS };

/* A tile's memory: rows of x, their numbers, results, and memory of the product. */
struct parts {
    uint8_t *x;
    float *scales;
    int32_t *zeros;
    float *results;
    void *scratch;
};

static size_t part_bytes(const struct moe_linear *m, struct parts *p, uint8_t *scratch)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    size_t at[5] = {0};
    at[1] = at[0] + align_up((size_t)(m->rows * m->k), 64);
    at[2] = at[1] + ROWS_MAX * sizeof(float);
    at[3] = at[2] + ROWS_MAX * sizeof(int32_t);
    at[4] = at[3] + align_up((size_t)(m->rows * m->block * uk->u8_nr) * sizeof(float), 64);
    if (p) {
        *p = (struct parts){scratch + at[0], (float *)(void *)(scratch + at[1]),
                            (int32_t *)(void *)(scratch + at[2]),
                            (float *)(void *)(scratch + at[3]), scratch + at[4]};
    }
    return at[4] + uk_gemm_u8_scratch(uk, (size_t)m->k);
}

/* The expert of tile row |y|; -1: an earlier one has it. */
static int32_t expert_of(const struct moe_linear *m, const int32_t *chosen, int64_t y)
{
    if (!m->is_by_pair) {
        return (int32_t)y;
    }
    for (int64_t i = 0; i < y; i++) {
        if (chosen[i] == chosen[y]) {
            return -1;
        }
    }
    return chosen[y];
}

/* The next pairs from *at on that have |expert|. */
static uint32_t find_pairs(const struct moe_linear *m, const int32_t *chosen, int32_t expert,
                           int64_t *at, int64_t found[ROWS_MAX])
{
    uint32_t count = 0;
    for (; *at < m->pairs && count < m->rows; ++*at) {
        if (chosen[*at] == expert) {
            found[count++] = *at;
        }
    }
    return count;
}

/* Copies the rows of pairs as u8, and their numbers. */
static void gather(const struct moe_linear *m, const struct hal_args *args, const int64_t *pairs,
                   uint32_t count, const struct parts *p)
{
    const float *factors = args->bindings[BIND_FACTORS];
    for (uint32_t i = 0; i < count; i++) {
        int64_t row = pairs[i] / m->per_row;
        const uint8_t *from = (const uint8_t *)args->bindings[BIND_X] + row * m->k;
        uint8_t *to = p->x + i * m->k;
        for (int64_t k = 0; k < m->k; k++) {
            to[k] = from[k] ^ 0x80;
        }
        p->scales[i] = ((const float *)args->bindings[BIND_SCALES])[row];
        p->scales[i] *= factors ? factors[pairs[i]] : 1;
        p->zeros[i] = ((const int32_t *)args->bindings[BIND_ZEROS])[row];
    }
}

/* Stores a row of results: those of |panels| panels from |first| on. */
static void store(const struct moe_linear *m, float *results, int64_t first, int64_t panels,
                  float *out)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const int64_t nr = uk->u8_nr;
    if (!m->is_gated) {
        int64_t count = rt_min(panels * nr, m->n - first * nr);
        memcpy(out + first * nr, results, (size_t)count * sizeof(*out));
        return;
    }
    for (int64_t q = 0; q < panels; q += 2) {
        int64_t at = (first + q) / 2 * nr;
        size_t count = (size_t)rt_min(nr, m->n - at);
        float *gate = results + q * nr;
        uk->unary_f32[UK_SILU](gate, gate, count);
        uk->binary_f32[UK_MUL](out + at, gate, gate + nr, count);
    }
}

/* Grid: blocks of panels; experts, or pairs. */
static void moe_linear_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct moe_linear *m = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const int32_t *chosen = args->bindings[BIND_CHOSEN];
    const int32_t expert = expert_of(m, chosen, tile.y);
    const int64_t first = tile.x * m->block, panels = rt_min(m->block, m->panels - first);
    const union uk_number *columns = args->bindings[BIND_COLUMNS];
    int64_t at = m->is_by_pair ? tile.y : 0, pairs[ROWS_MAX];
    struct parts p;

    part_bytes(m, &p, args->scratch);
    while (expert >= 0 && at < m->pairs) {
        uint32_t count = find_pairs(m, chosen, expert, &at, pairs);
        int64_t panel = expert * m->panels + first;
        if (count == 0) {
            break;
        }
        gather(m, args, pairs, count, &p);
        uk->gemm_u8(&(struct uk_gemm_u8){
            .a = p.x,
            .a_row = m->k,
            .run = (uint32_t)m->k,
            .b = (const uint8_t *)args->bindings[BIND_W] + panel * m->panel_bytes,
            .k = (size_t)m->k,
            .is_4bit = m->is_4bit,
            .group = m->group,
            .columns = columns ? columns + panel * UK_COLUMN_ARRAYS * uk->u8_nr : NULL,
            .row_scales = p.scales,
            .row_zeros = p.zeros,
            .c_f32 = p.results,
            .c_row = panels * uk->u8_nr,
            .lines = 1,
            .m = count,
            .n = (uint32_t)(panels * uk->u8_nr),
            .min = -INFINITY,
            .max = INFINITY,
            .scratch = p.scratch,
        });
        for (uint32_t i = 0; i < count; i++) {
            store(m, p.results + i * panels * uk->u8_nr, first, panels,
                  (float *)args->bindings[BIND_OUT] + pairs[i] * m->n);
        }
    }
}

static const struct hal_kernel moe_linear_kernel = {.name = "moe_linear", .cpu = moe_linear_tile};

/* ---- the operator -------------------------------------------------------------------------- */

static enum status moe_linear_shape(struct rt_shape_call *call)
{
    const struct rt_value *chosen = rt_shape_arg(call, ARG_CHOSEN);
    struct rt_dim dims[] = {chosen->dims[0], chosen->dims[1], rt_shape_arg(call, ARG_N)->i};
    return rt_shape_set_out(call, 0, 3, dims);
}

/* All that is of rows carries them, and no weights do. */
static enum status batch_pairs(struct rt_batch_call *call)
{
    for (uint32_t i = 0; i < call->node->arg_count; i++) {
        bool is_of_rows = i <= ARG_FACTORS && rt_batch_arg(call, i)->kind != RT_NONE;
        if (rt_batch_carries(call, i) != is_of_rows) {
            return rt_batch_refuse(call, "not all rows vary, or its weights do");
        }
    }
    return ST_OK;
}

/* Panels of a tile. |slots| experts or pairs have tiles of their own. With many rows some experts
 * have more than others, so that a worker's share is made of several tiles of each. */
static int64_t cut(const struct moe_linear *m, int64_t slots, const struct rt_machine *machine)
{
    double speed = MACS_PER_NS * (double)hal_cpu_uk()->u8_speed;
    double rows = (double)m->pairs * (double)m->n * (double)m->k / speed;
    double bytes = (double)slots * (double)(m->panels * m->panel_bytes) / BYTES_PER_NS;
    double ns = (rows > bytes ? rows : bytes) * (m->is_gated ? 2 : 1);
    int64_t tiles = rt_cut_tiles(machine, ns < 1e15 ? (int64_t)ns : (int64_t)1e15);
    int64_t blocks = (tiles + slots - 1) / slots;
    if (!m->is_by_pair && machine->workers > 1) {
        blocks = rt_max(blocks, 2 * machine->workers);
    }
    int64_t row_bytes = m->rows * hal_cpu_uk()->u8_nr * (int64_t)sizeof(float);
    int64_t block = rt_min(rt_max(1, m->panels / blocks), PART_BYTES / row_bytes);
    return m->is_gated ? (block + 1) / 2 * 2 : block;
}

static enum status moe_linear_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, ARG_X), *w = rt_emit_arg(emit, ARG_W);
    const struct rt_tensor *chosen = rt_emit_arg(emit, ARG_CHOSEN), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *factors = rt_emit_arg(emit, ARG_FACTORS);
    const struct rt_tensor *columns = rt_emit_arg(emit, ARG_COLUMNS);
    const int64_t experts = rt_emit_int(emit, ARG_EXPERTS);
    struct moe_linear m = {
        .pairs = chosen->numel,
        .per_row = x->rank == 2 ? chosen->dims[1] : 1,
        .k = x->dims[x->rank - 1],
        .n = rt_emit_int(emit, ARG_N),
        .panels = w->dims[1] / experts,
        .panel_bytes = w->dims[2],
        .group = (uint32_t)rt_emit_int(emit, ARG_GROUP),
        .is_4bit = rt_emit_value(emit, ARG_IS_4BIT)->b,
        .is_gated = rt_emit_value(emit, ARG_IS_GATED)->b,
        .is_by_pair = chosen->numel < experts,
    };
    int64_t slots = rt_min(m.pairs, experts);
    if (slots == 0) {
        return ST_OK;
    }
    m.rows = rt_max(1, rt_min(rt_min(ROWS_MAX, m.pairs), PART_BYTES / m.k));
    m.block = cut(&m, slots, rt_emit_machine(emit, &moe_linear_kernel));
    const struct hal_binding none = {0};
    struct hal_binding bindings[] = {
        [BIND_OUT] = out->binding,
        [BIND_X] = x->binding,
        [BIND_SCALES] = rt_emit_arg(emit, ARG_SCALES)->binding,
        [BIND_ZEROS] = rt_emit_arg(emit, ARG_ZEROS)->binding,
        [BIND_CHOSEN] = chosen->binding,
        [BIND_FACTORS] = factors ? factors->binding : none,
        [BIND_W] = w->binding,
        [BIND_COLUMNS] = columns ? columns->binding : none,
    };
    double macs = (double)m.pairs * (double)m.k * (double)m.n * (m.is_gated ? 2 : 1);
    struct hal_dispatch dispatch = {
        .kernel = &moe_linear_kernel,
        .grid = {(uint32_t)((m.panels + m.block - 1) / m.block), (uint32_t)slots, 1},
        .constants = &m,
        .constants_bytes = sizeof(m),
        .bindings = bindings,
        .binding_count = sizeof(bindings) / sizeof(bindings[0]),
        .scratch_bytes = part_bytes(&m, NULL, NULL),
        .cost = macs < 1e18 ? (uint64_t)(macs / MACS_PER_NS) + 1 : UINT64_MAX / 1024,
        .macs = macs,
        .macs_kind = HAL_MACS_U8,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

const struct rt_op rt_ops_moe_linear[] = {
    {"moe_linear", NULL, "TTTTT?TT?IIBIB>T", moe_linear_shape, moe_linear_emit, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, batch_pairs, .dtypes = 1u << DT_I8, .runs = &moe_linear_kernel},
    {0},
};
