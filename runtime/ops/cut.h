/* SPDX-License-Identifier: MIT */
/*
 * Into how many tiles a dispatch is cut, from what it costs. A cut is the same for any number of
 * workers, and results do not depend on it.
 *
 * A worker that looks on takes a tile in a fraction of a microsecond, so that few microseconds are
 * worth one. While there are few tiles their number is even, a power of two where the shape allows:
 * of three, one of two workers runs two.
 */
#ifndef PTED_RUNTIME_OPS_CUT_H
#define PTED_RUNTIME_OPS_CUT_H

#include <stdint.h>

/* Tiles that |ns| of work is worth. */
int64_t rt_cut_tiles(int64_t ns);

/* Positions of a tile of an axis of |length|, cut into about |tiles|. */
int64_t rt_cut_axis(int64_t length, int64_t tiles);

/* The same for an axis that takes |ns|, and at most |most| positions. */
int64_t rt_cut_length(int64_t length, int64_t ns, int64_t most);

/* A product of |lines| x |pixels| rows with |panels| of columns, |rows| by one panel at a time. */
struct rt_cut {
    int64_t lines, pixels, panels, rows;
    int64_t band_y, band_x, block; /* of a tile: lines, pixels and panels */
};

/* Chooses the tiles, about |tiles| of them: those that two and four workers are done with first. */
void rt_cut_product(struct rt_cut *cut, int64_t tiles);

#endif
