/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/check.h"
#include "runtime/emit/emit.h"

enum status rt_emit_tiles(struct rt_emit *emit, int64_t count, int64_t tile,
                          const struct hal_dispatch *dispatch, struct error *err)
{
    struct hal_dispatch cut = *dispatch;
    must(tile > 0);
    int64_t tiles = count / tile + (count % tile != 0);
    must(tiles <= UINT32_MAX);
    cut.grid[0] = (uint32_t)tiles;
    cut.grid[1] = cut.grid[2] = 1;
    return rt_emit_dispatch(emit, &cut, err);
}
