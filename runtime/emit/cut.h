/* SPDX-License-Identifier: MIT */
/*
 * Chooses the number of tiles of a dispatch from its cost and from the machine that runs it.
 * Operators ask here and have no tile lengths of their own, except where a kernel's memory bounds
 * them. Results do not depend on a cut.
 *
 * Workers take tiles one after the other. A waiting worker takes one in a fraction of a
 * microsecond, so a tile pays off from a few microseconds on. While there are few tiles their
 * number is even, a power of two where the shape allows: with three tiles one of two workers would
 * run two. Each tile of a product reads weights and inputs, so products get a few tiles for each
 * worker, or as many as are worth taking. Other work is cut alike for up to eight workers above
 * one; more of them make tiles shorter.
 *
 * On a GPU a tile is a workgroup, whose lanes share its elements, and some thousands of workgroups
 * run side by side. So work is spread first: one step of all lanes makes a tile until there are as
 * many tiles as a large GPU has room for. From there on tiles grow to a few steps, which pays for
 * finding the tile's place. Beyond that, only the greatest number of tiles makes them grow further.
 * Products are cut into whole multiples of a workgroup's block.
 *
 * A software driver for a GPU's interface runs workgroups on threads, so its cuts are those for
 * workers.
 */
#ifndef PTED_RUNTIME_EMIT_CUT_H
#define PTED_RUNTIME_EMIT_CUT_H

#include <stdbool.h>
#include <stdint.h>

struct hal_device_props;
struct hal_kernel;

/* The machine that tiles are made for. */
struct rt_machine {
    int64_t few_tiles, tiles_max;
    int64_t tile_ns_min,
        tile_ns; /* workers: number of tiles aimed at when there are few, and when there are more */
    int64_t workers, product_ns; /* workers, and the time of a product's longest tile */
    int64_t lanes;               /* lanes that share a tile; 1: a worker has a tile for itself */
    int64_t steps;               /* steps of all lanes that make a tile when there are many */
    int64_t shared_row;          /* GPUs: elements of a row from which on lanes share it */
    int64_t high, wide;         /* GPUs: rows and columns of a block that is multiplied at a time */
    int64_t big_high, big_wide; /* a larger block, used if it makes at least */
    int64_t big_tiles;          /* this many tiles; 0: never */
};

/* |count| workers of a processor, also of one beside a GPU. */
const struct rt_machine *rt_cut_workers(uint32_t count);

/* Returns the machine on which |kernel| runs: workers, or the only one, if it has no shader. */
const struct rt_machine *rt_cut_machine(const struct hal_device_props *props,
                                        const struct hal_kernel *kernel);

/*
 * Units of cost, each with the number that makes a worker's tile: about 20 us of the dearest kind.
 */
enum rt_work {
    RT_WORK_FILL,     /* bytes written */
    RT_WORK_COPY,     /* bytes read and written in order */
    RT_WORK_MACS,     /* multiplied and added, or compared, by vector instructions */
    RT_WORK_FOLD,     /* elements read into one */
    RT_WORK_ELEMENTS, /* read, converted, written */
    RT_WORK_EXP,      /* with an exponential, or with an address computed for each */
    RT_WORK_DEAR,     /* functions of many instructions */
    RT_WORK_COUNT
};

/* Returns the units of |work| for one tile out of |total|, where tiles are cut along several dims;
 * a lane does |unit| of them in a step. */
int64_t rt_cut_units(const struct rt_machine *machine, enum rt_work work, int64_t total,
                     int64_t unit);

/*
 * Chooses the number of things a tile should have, out of |count| equal ones. One thing is |units|
 * of |work|. Lanes share its |elements|; for rows that lanes share or take one each (group.glsl),
 * the elements are those of rt_cut_row().
 */
int64_t rt_cut_things(const struct rt_machine *machine, enum rt_work work, int64_t count,
                      int64_t units, int64_t elements);

int64_t rt_cut_row(const struct rt_machine *machine, int64_t length);

/* Does the same for kernels that take |most| of them at a time, as workers always do. */
int64_t rt_cut_block(const struct rt_machine *machine, int64_t count, int64_t elements,
                     int64_t most);

/* Returns the number of tiles that |ns| of work makes for workers. */
int64_t rt_cut_tiles(const struct rt_machine *machine, int64_t ns);

/* Returns the positions of a tile of an axis of |length|, cut into about |tiles| tiles. */
int64_t rt_cut_axis(int64_t length, int64_t tiles);

/* Does the same for an axis of elements that takes |ns| in all, with at most |most| positions. */
int64_t rt_cut_length(const struct rt_machine *machine, int64_t length, int64_t ns, int64_t most);

/* Cuts a depthwise convolution: |images| of lines of pixels, |channels| elements each with |macs|
 * multiply-adds, |ns| in all. */
struct rt_cut_image {
    int64_t images, lines, pixels, channels, macs, ns;
    int64_t band_y, band_x; /* of a tile */
};

/* Returns all of its multiply-adds, including those with padding. */
static inline double rt_cut_image_macs(const struct rt_cut_image *image)
{
    return (double)image->images * (double)image->lines * (double)image->pixels *
           (double)image->channels * (double)image->macs;
}

void rt_cut_bands(const struct rt_machine *machine, struct rt_cut_image *image);

/*
 * Cuts products of |lines| x |pixels| rows with |panels| of |width| columns, |rows| by one panel at
 * a time: one product for each of |images| and |groups|, |ns| in all. Images that are multiplied by
 * the same panels may share a tile. Some kernels have a form for big tiles.
 */
struct rt_cut {
    int64_t images, groups, lines, pixels, panels, width, rows, ns;
    int64_t per_read; /* rows that are multiplied while a row of weights comes from memory */
    double per_input; /* columns that are multiplied while a row is read or prepared for a tile */
    bool shares_panels, has_big_form;
    int64_t band_images, band_y, band_x, block; /* of a tile: images, lines, pixels and panels */
};

/* `per_input` of rows of |k| numbers, of which |fresh| are read anew for each row. A part of them
 * is in the cache of another worker. */
static inline double rt_cut_reads(int64_t per_read, double fresh, double k)
{
    return 4.0 / 3 * (double)per_read * (fresh < k ? fresh / k : 1);
}

/* Chooses the tiles. For workers it takes the cut that they finish soonest. */
void rt_cut_product(const struct rt_machine *machine, struct rt_cut *cut);

#endif
