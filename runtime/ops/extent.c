/* SPDX-License-Identifier: MIT */
/*
 * Operators whose number of rows depends on data: the positions that are not zero, the elements
 * that a mask chooses. The capacity has room for all elements; the last output is the number of
 * rows found.
 *
 * A tile owns a stretch of the elements. It first counts the chosen elements before its stretch, at
 * the speed of memory, and so knows where its first row goes. No tile waits for another, and one
 * dispatch is enough.
 *
 * The last tile writes the count.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/ops/extent.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* Elements of a tile; with more tiles, counting would cost more than the tiles save. */
#define TILE_MIN (16 << 10)
#define TILES_MAX 16

/* ---- testing --------------------------------------------------------------------------------- */

static uint64_t test_bits(const struct rt_extent *c)
{
    uint64_t all = UINT64_MAX >> (64 - 8 * c->mask_width);
    return c->is_float ? all >> 1 : all;
}

#define TEST(bits)                                                                                 \
    static bool is_set_##bits(const void *mask, int64_t at, uint64_t test)                         \
    {                                                                                              \
        return (((const uint##bits##_t *)mask)[at] & test) != 0;                                   \
    }                                                                                              \
    static int64_t count_##bits(const void *mask, int64_t n, uint64_t test)                        \
    {                                                                                              \
        const uint##bits##_t *m = mask, t = (uint##bits##_t)test;                                  \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            count += (m[i] & t) != 0;                                                              \
        }                                                                                          \
        return count;                                                                              \
    }
TEST(8)
TEST(16)
TEST(32)
TEST(64)

static bool is_set(const struct rt_extent *c, const void *mask, int64_t at, uint64_t test)
{
    switch (c->mask_width) {
    case 1:
        return is_set_8(mask, at, test);
    case 2:
        return is_set_16(mask, at, test);
    case 4:
        return is_set_32(mask, at, test);
    default:
        return is_set_64(mask, at, test);
    }
}

static int64_t count_dense(const struct rt_extent *c, const char *mask, int64_t n, uint64_t test)
{
    switch (c->mask_width) {
    case 1:
        return count_8(mask, n, test);
    case 2:
        return count_16(mask, n, test);
    case 4:
        return count_32(mask, n, test);
    default:
        return count_64(mask, n, test);
    }
}

/* ---- walking --------------------------------------------------------------------------------- */

/* The element at a row-major position, and its offset on both sides. */
struct cursor {
    int64_t index[SHAPE_RANK_MAX];
    int64_t mask, from;
};

static void seek(const struct rt_extent *c, int64_t position, struct cursor *at)
{
    *at = (struct cursor){.mask = 0};
    for (uint32_t d = c->rank; d-- > 0;) {
        at->index[d] = position % c->dims[d];
        position /= c->dims[d];
        at->mask += at->index[d] * c->mask_steps[d];
        at->from += at->index[d] * c->steps[d];
    }
}

static void advance_cursor(const struct rt_extent *c, struct cursor *at)
{
    for (uint32_t d = c->rank; d-- > 0;) {
        at->mask += c->mask_steps[d];
        at->from += c->steps[d];
        if (++at->index[d] < c->dims[d]) {
            return;
        }
        at->mask -= c->dims[d] * c->mask_steps[d];
        at->from -= c->dims[d] * c->steps[d];
        at->index[d] = 0;
    }
}

static int64_t count_before(const struct rt_extent *c, const char *mask, int64_t behind,
                            uint64_t test)
{
    struct cursor at;
    int64_t count = 0;
    if (c->mask_is_dense) {
        return count_dense(c, mask, behind, test);
    }
    if (behind > 0) { /* without this, a dim may be 0 */
        seek(c, 0, &at);
    }
    for (int64_t i = 0; i < behind; i++) {
        count += is_set(c, mask, at.mask, test);
        advance_cursor(c, &at);
    }
    return count;
}

typedef void put_f(const struct rt_extent *c, const struct cursor *at, const void *from, void *out,
                   int64_t row);

static inline void run(const struct hal_args *args, struct hal_tile tile, const char *mask,
                       const void *from, put_f *put)
{
    const struct rt_extent *c = args->constants;
    int64_t begin = (int64_t)tile.x * c->tile, end = begin + c->tile;
    uint64_t test = test_bits(c);
    struct cursor at;
    end = end < c->numel ? end : c->numel;
    int64_t row = count_before(c, mask, begin, test);
    if (begin < end) {
        seek(c, begin, &at);
    }
    for (int64_t i = begin; i < end; i++) {
        if (is_set(c, mask, at.mask, test)) {
            put(c, &at, from, args->bindings[0], row++);
        }
        advance_cursor(c, &at);
    }
    if (tile.x + 1 == args->grid[0]) {
        memcpy(args->bindings[1], &row, sizeof(row));
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void put_place(const struct rt_extent *c, const struct cursor *at, const void *from,
                      void *out, int64_t row)
{
    (void)from;
    if (c->rank > 0) {
        memcpy((int64_t *)out + row * c->rank, at->index, c->rank * sizeof(int64_t));
    }
}

#define PUT(bits)                                                                                  \
    static void put_##bits(const struct rt_extent *c, const struct cursor *at, const void *from,   \
                           void *out, int64_t row)                                                 \
    {                                                                                              \
        (void)c;                                                                                   \
        ((uint##bits##_t *)out)[row] = ((const uint##bits##_t *)from)[at->from];                   \
    }
PUT(8)
PUT(16)
PUT(32)
PUT(64)

static void nonzero(const struct hal_args *args, struct hal_tile tile)
{
    run(args, tile, args->bindings[2], NULL, put_place);
}

static void masked_select(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_extent *c = args->constants;
    const void *from = args->bindings[2];
    const char *mask = args->bindings[3];
    switch (c->width) {
    case 1:
        run(args, tile, mask, from, put_8);
        break;
    case 2:
        run(args, tile, mask, from, put_16);
        break;
    case 4:
        run(args, tile, mask, from, put_32);
        break;
    default:
        run(args, tile, mask, from, put_64);
        break;
    }
}

static const struct hal_kernel nonzero_kernel = {
    .name = "nonzero", .cpu = nonzero, .spirv = HAL_SPIRV(extent_spirv), .variant = RT_NONZERO};
static const struct hal_kernel masked_select_kernel = {.name = "masked_select",
                                                       .cpu = masked_select,
                                                       .spirv = HAL_SPIRV(extent_spirv),
                                                       .variant = RT_MASKED_SELECT};

/* ---- shapes ---------------------------------------------------------------------------------- */

static enum status nonzero_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim dims[] = {rt_value_numel(call->graph, self), rt_dim_of(self->rank)};
    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_I64));
    TRY(rt_shape_set_out(call, 0, 2, dims));
    return rt_shape_set_out(call, 1, 0, NULL);
}

static enum status masked_select_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *mask = rt_shape_arg(call, 1);
    struct rt_dim dims[SHAPE_RANK_MAX], numel = rt_dim_of(1);
    uint8_t rank;
    TRY(rt_shape_need_dtype(call, 1, 1u << DT_BOOL | 1u << DT_U8));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << self->dtype));
    TRY(rt_shape_broadcast(call, self->rank, self->dims, mask->rank, mask->dims, dims, &rank));
    for (uint8_t d = 0; d < rank; d++) {
        numel = rt_dim_mul(&call->graph->dims, numel, dims[d]);
    }
    TRY(rt_shape_set_out(call, 0, 1, &numel));
    return rt_shape_set_out(call, 1, 0, NULL);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Strides of |t| over the dims of the walk: 0 where |t| is broadcast. */
static void set_steps(const struct rt_extent *c, const struct rt_tensor *t, int64_t *steps)
{
    uint32_t skip = c->rank - t->rank;
    for (uint32_t d = 0; d < t->rank; d++) {
        steps[skip + d] = t->dims[d] == 1 ? 0 : t->strides[d];
    }
}

static enum status record(struct rt_emit *emit, struct rt_extent *c,
                          const struct hal_kernel *kernel, const struct hal_binding *bindings,
                          uint32_t binding_count, struct error *err)
{
    int64_t tiles = (c->numel + TILE_MIN - 1) / TILE_MIN;
    tiles = tiles < 1 ? 1 : tiles > TILES_MAX ? TILES_MAX : tiles;
    c->tile = (c->numel + tiles - 1) / tiles;
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = kernel,
                                .grid = {(uint32_t)tiles, 1, 1},
                                .constants = c,
                                .constants_bytes = sizeof(*c),
                                .bindings = bindings,
                                .binding_count = binding_count,
                                .cost = (uint64_t)c->numel * 4,
                            },
                            err);
}

static enum status nonzero_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *rows = rt_emit_out(emit, 0);
    const struct hal_binding bindings[] = {rows->binding, rt_emit_out(emit, 1)->binding,
                                           self->binding};
    struct rt_extent c = {.numel = self->numel,
                          .rank = self->rank,
                          .mask_width = (uint32_t)dtype_bytes(self->dtype),
                          .is_float = dtype_is_float(self->dtype),
                          .mask_is_dense = true};
    memcpy(c.dims, self->dims, self->rank * sizeof(c.dims[0]));
    set_steps(&c, self, c.mask_steps);
    return record(emit, &c, &nonzero_kernel, bindings, 3, err);
}

static enum status masked_select_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *mask = rt_emit_arg(emit, 1);
    const struct rt_tensor *chosen = rt_emit_out(emit, 0);
    const struct hal_binding bindings[] = {chosen->binding, rt_emit_out(emit, 1)->binding,
                                           self->binding, mask->binding};
    struct rt_extent c = {.numel = chosen->numel,
                          .rank = self->rank > mask->rank ? self->rank : mask->rank,
                          .width = (uint32_t)dtype_bytes(self->dtype),
                          .mask_width = 1,
                          .mask_is_dense = mask->numel == chosen->numel};
    for (uint32_t d = 0; d < c.rank; d++) {
        uint32_t skip_self = c.rank - self->rank, skip_mask = c.rank - mask->rank;
        int64_t a = d >= skip_self ? self->dims[d - skip_self] : 1;
        int64_t b = d >= skip_mask ? mask->dims[d - skip_mask] : 1;
        c.dims[d] = a == 1 ? b : a;
    }
    set_steps(&c, self, c.steps);
    set_steps(&c, mask, c.mask_steps);
    return record(emit, &c, &masked_select_kernel, bindings, 4, err);
}

const struct rt_op rt_ops_extent[] = {
    {.name = "nonzero",
     .kernels = "aten::nonzero.out",
     .args = "T>TT",
     .shape = nonzero_shape,
     .emit = nonzero_emit,
     .flags = RT_OP_EXTENT,
     .dtypes = RT_DTYPES_ALL,
     .runs = &nonzero_kernel},
    {.name = "masked_select",
     .kernels = "aten::masked_select.out",
     .args = "TT>TT",
     .shape = masked_select_shape,
     .emit = masked_select_emit,
     .flags = RT_OP_EXTENT,
     .dtypes = RT_DTYPES_ALL,
     .runs = &masked_select_kernel},
    {.name = NULL},
};
