/* SPDX-License-Identifier: MIT */
/* Fills, copies and updates as kernels. A tile is TILE_BYTES of the target; the last is shorter. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/routine.h"

#define TILE_BYTES 65536

static size_t tile_bytes(size_t begin, size_t length)
{
    return length - begin < TILE_BYTES ? length - begin : TILE_BYTES;
}

/* The constants are the pattern, already repeated to 8 bytes; a tile begins with a whole one. */
static void fill_kernel(const struct hal_args *args, struct hal_tile tile)
{
    size_t begin = (size_t)tile.x * TILE_BYTES;
    size_t left = tile_bytes(begin, args->lengths[0]);
    uint8_t *to = (uint8_t *)args->bindings[0] + begin;
    uint64_t pattern;

    memcpy(&pattern, args->constants, HAL_PATTERN_BYTES);
    for (; left >= HAL_PATTERN_BYTES; left -= HAL_PATTERN_BYTES, to += HAL_PATTERN_BYTES) {
        memcpy(to, &pattern, HAL_PATTERN_BYTES);
    }
    memcpy(to, &pattern, left);
}

static void copy_kernel(const struct hal_args *args, struct hal_tile tile)
{
    size_t begin = (size_t)tile.x * TILE_BYTES;
    memcpy((uint8_t *)args->bindings[1] + begin, (const uint8_t *)args->bindings[0] + begin,
           tile_bytes(begin, args->lengths[1]));
}

static void update_kernel(const struct hal_args *args, struct hal_tile tile)
{
    size_t begin = (size_t)tile.x * TILE_BYTES;
    memcpy((uint8_t *)args->bindings[0] + begin, (const uint8_t *)args->constants + begin,
           tile_bytes(begin, args->lengths[0]));
}

void hal_cpu_transfer(const struct hal_record *record, hal_cpu_kernel_f **out_fn, uint32_t grid[3])
{
    size_t length = record->bindings[0].length;
    size_t tiles = length / TILE_BYTES + (length % TILE_BYTES != 0);
    switch (record->kind) {
    case HAL_FILL:
        *out_fn = fill_kernel;
        break;
    case HAL_COPY:
        *out_fn = copy_kernel;
        break;
    case HAL_UPDATE:
        *out_fn = update_kernel;
        break;
    case HAL_DISPATCH:
    case HAL_BARRIER:
        unreachable();
    }
    /* A target with more tiles than a grid can count exceeds the limit of a region, which refuses
     * it. */
    grid[0] = tiles < UINT32_MAX ? (uint32_t)tiles : UINT32_MAX;
    grid[1] = grid[2] = 1;
}
