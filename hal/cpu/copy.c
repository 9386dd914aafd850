/* SPDX-License-Identifier: MIT */
/* A copy as a kernel. A tile is TILE_BYTES of the target; the last is shorter. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/routine.h"

#define TILE_BYTES 65536

void hal_cpu_copy(const struct hal_args *args, struct hal_tile tile)
{
    size_t begin = (size_t)tile.x * TILE_BYTES, left = args->lengths[1] - begin;
    memcpy((uint8_t *)args->bindings[1] + begin, (const uint8_t *)args->bindings[0] + begin,
           left < TILE_BYTES ? left : TILE_BYTES);
}

void hal_cpu_copy_grid(const struct hal_record *record, uint32_t out_grid[3])
{
    must(record->kind == HAL_COPY);
    size_t length = record->bindings[1].length;
    size_t tiles = length / TILE_BYTES + (length % TILE_BYTES != 0);
    /* A target with more tiles than a grid can count exceeds the limit of a region, which refuses
     * it. */
    out_grid[0] = tiles < UINT32_MAX ? (uint32_t)tiles : UINT32_MAX;
    out_grid[1] = out_grid[2] = 1;
}
