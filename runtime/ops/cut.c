/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/cut.h"

#include <stdbool.h>

#include "runtime/ops/minmax.h"

/* What a tile should take at least, and where there is more to do; how many of them are few. */
#define TILE_NS_MIN 4000
#define TILE_NS 25000
#define FEW_TILES 8
#define TILES_MAX 512

/* What a register tile's panel costs beside its rows, in rows. */
#define PANEL_ROWS 3

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

int64_t rt_cut_tiles(int64_t ns)
{
    int64_t tiles = 1;
    if (ns > FEW_TILES * TILE_NS) {
        return rt_min(ceil_div(ceil_div(ns, TILE_NS), FEW_TILES) * FEW_TILES, TILES_MAX);
    }
    while (tiles < FEW_TILES && ns >= 2 * tiles * TILE_NS_MIN) {
        tiles *= 2;
    }
    return tiles;
}

/* Would two workers have different numbers of tiles, where that counts? */
static bool is_uneven(int64_t tiles)
{
    return tiles % 2 && tiles > 1 && tiles < 2 * FEW_TILES;
}

int64_t rt_cut_axis(int64_t length, int64_t tiles)
{
    int64_t tile = rt_max(1, ceil_div(length, tiles)), even = tile;
    while (even > 1 && is_uneven(ceil_div(length, even))) {
        even--;
    }
    return is_uneven(ceil_div(length, even)) ? tile : even;
}

int64_t rt_cut_length(int64_t length, int64_t ns, int64_t most)
{
    return rt_max(1, rt_min(rt_cut_axis(length, rt_cut_tiles(ns)), most));
}

/* How long two and four workers take, over what they should: all in all, less is better. */
static int64_t time_of(const struct rt_cut *cut)
{
    int64_t pixels = cut->band_x + PANEL_ROWS * ceil_div(cut->band_x, cut->rows);
    int64_t tiles = ceil_div(cut->lines, cut->band_y) * ceil_div(cut->pixels, cut->band_x) *
                    ceil_div(cut->panels, cut->block);
    return cut->band_y * pixels * cut->block * (ceil_div(tiles, 2) + 2 * ceil_div(tiles, 4));
}

static void cut_into(struct rt_cut *cut, int64_t tiles, int64_t blocks)
{
    cut->block = ceil_div(cut->panels, blocks);
    int64_t bands = ceil_div(tiles, ceil_div(cut->panels, cut->block));
    cut->band_y = cut->lines > 1 ? rt_cut_axis(cut->lines, bands) : 1;
    cut->band_x = cut->pixels;
    if (cut->lines == 1) {
        cut->band_x = rt_max(ceil_div(cut->pixels, bands), rt_min(cut->rows, cut->pixels));
    }
}

/*
 * Tiles that have their rows in common read them more than once, those that have their panels in
 * common the weights: of cuts that are as good, the one that reads less.
 */
static void choose(struct rt_cut *cut, int64_t tiles)
{
    int64_t most = rt_max(1, rt_min(tiles, cut->panels));
    bool is_wide = cut->panels > cut->lines * ceil_div(cut->pixels, cut->rows);
    struct rt_cut best = *cut, next = *cut;
    cut_into(&best, tiles, is_wide ? most : 1);
    for (int64_t i = 2; i <= most; i++) {
        cut_into(&next, tiles, is_wide ? most + 1 - i : i);
        if (time_of(&next) * 20 < time_of(&best) * 19) {
            best = next;
        }
    }
    *cut = best;
}

/* Lines of one pixel are multiplied as pixels of one line. */
void rt_cut_product(struct rt_cut *cut, int64_t tiles)
{
    if (cut->pixels > 1) {
        choose(cut, tiles);
        return;
    }
    struct rt_cut turned = *cut;
    turned.lines = 1;
    turned.pixels = cut->lines;
    choose(&turned, tiles);
    cut->band_x = 1;
    cut->band_y = turned.band_x;
    cut->block = turned.block;
}
