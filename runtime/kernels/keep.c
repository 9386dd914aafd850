/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/kernels/keep.h"

#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/shaders/generated/spirv.h"

/* Bytes from which sharing a copy between tiles pays off, and the greatest number of tiles that
 * share one. */
#define TILE_BYTES (64 * 1024)
#define TILES_MAX 64

bool rt_keep_is_in_place(const struct rt_tensor *a, const struct rt_tensor *b)
{
    return a->binding.buffer == b->binding.buffer && a->binding.slot == b->binding.slot &&
           a->binding.offset == b->binding.offset;
}

/* Rows [begin, end) of all outer indices: the share of tile |x|, in bytes. */
static void keep_range(const struct hal_args *args, uint32_t x, int64_t begin, int64_t end)
{
    const struct rt_keep *k = args->constants;
    int64_t run = (end - begin) * k->row_bytes, tiles = args->grid[0];
    int64_t share = run > 0 ? (run * k->outer + tiles - 1) / tiles : 0;
    int64_t at = x * share, behind = rt_min(at + share, run * k->outer);

    while (at < behind) {
        int64_t outer = at / run, offset = at % run, n = rt_min(run - offset, behind - at);
        int64_t place = (outer * k->rows + begin) * k->row_bytes + offset;
        memcpy((char *)args->bindings[RT_KEEP_OUT] + place,
               (const char *)args->bindings[RT_KEEP_BASE] + place, (size_t)n);
        at += n;
    }
}

/* The number of rows that differ is unknown before the run, so each tile takes a fixed share. */
static void keep_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_keep *k = args->constants;
    int64_t *words = args->bindings[RT_KEEP_WORDS];
    const int64_t *place = args->bindings[RT_KEEP_FIRST];
    int64_t first = place ? *place : k->first, behind = first + k->count;
    int64_t begin = words ? words[RT_UPDATE_STALE] : 0;
    int64_t end = words ? words[RT_UPDATE_STALE_END] : k->rows;

    if (words && tile.x == 0) {
        words[RT_UPDATE_WRITTEN] = first;
        words[RT_UPDATE_WRITTEN_END] = behind;
    }
    if (args->bindings[RT_KEEP_OUT] != args->bindings[RT_KEEP_BASE]) {
        keep_range(args, tile.x, begin, rt_min(end, first));
        keep_range(args, tile.x, rt_max(begin, behind), end);
    }
}

static const struct hal_kernel keep_kernel = {
    .name = "keep", .cpu = keep_tile, .spirv = HAL_SPIRV(keep_spirv)};

enum status rt_keep_emit(struct rt_emit *emit, uint8_t dim, struct rt_place first, int64_t count,
                         struct error *err)
{
    const struct rt_tensor *base = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_keep k = {
        .rows = out->dims[dim],
        .row_bytes = out->strides[dim] * (int64_t)dtype_bytes(out->dtype),
        .first = first.known,
        .count = count,
    };
    struct hal_binding bindings[] = {out->binding, base->binding, {0}, rt_emit_word(emit, first)};

    if (out->numel == 0) {
        return ST_OK;
    }
    const struct rt_update update = {
        .rows = k.rows, .row_bytes = k.row_bytes, .first = first, .count = count};
    TRY(rt_emit_update(emit, &update, &bindings[RT_KEEP_WORDS], err));
    bool is_in_place = rt_keep_is_in_place(base, out);
    if (is_in_place && bindings[RT_KEEP_WORDS].length == 0) {
        return ST_OK;
    }
    k.outer = (int64_t)out->bytes / (k.rows * k.row_bytes);
    int64_t tiles = is_in_place ? 1 : rt_min((int64_t)out->bytes / TILE_BYTES + 1, TILES_MAX);
    struct hal_dispatch dispatch = {
        .kernel = &keep_kernel,
        .grid = {(uint32_t)tiles, 1, 1},
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 4,
        .cost = is_in_place ? 1 : (uint64_t)out->bytes / 8,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}
