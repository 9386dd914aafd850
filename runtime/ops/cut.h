/* SPDX-License-Identifier: MIT */
/*
 * Into how many tiles a dispatch is cut: from what it costs, and from the machine that runs it.
 * Operators ask here and have no lengths of tiles of their own, save where a kernel's memory bounds
 * them. A cut is the same for any number of workers, and results do not depend on it.
 *
 * Workers take tiles one after the other. A worker that looks on takes one in a fraction of a
 * microsecond, so that few microseconds are worth one. While there are few tiles their number is
 * even, a power of two where the shape allows: of three, one of two workers runs two.
 *
 * On a GPU a tile is a workgroup, whose lanes share its elements, and some thousands of workgroups
 * are at work side by side. So work is spread first: a step of all lanes is worth a tile until
 * there are as many tiles as a large GPU has room for. From there on tiles grow to a few steps,
 * over which finding the tile's place pays off, and only beyond the most tiles there should be they
 * grow without limit. Products are cut into whole multiples of what a workgroup multiplies at a
 * time.
 *
 * A Vulkan device that is a processor runs workgroups on threads: it is cut for like workers.
 */
#ifndef PTED_RUNTIME_OPS_CUT_H
#define PTED_RUNTIME_OPS_CUT_H

#include <stdbool.h>
#include <stdint.h>

struct hal_device_props;
struct hal_kernel;

/* What tiles are made for. */
struct rt_machine {
    int64_t few_tiles, tiles_max;
    int64_t tile_ns_min, tile_ns; /* workers: of a tile, where there are few, and of more */
    int64_t lanes;                /* that share a tile; 1: a worker has it for itself */
    int64_t steps;                /* of all lanes that are worth a tile where there are many */
    int64_t shared_row;           /* GPUs: elements of a row that lanes share */
    int64_t high, wide;           /* GPUs: rows and columns that are multiplied at a time */
    int64_t big_high, big_wide;   /* and where that makes at least */
    int64_t big_tiles;            /* so many tiles; 0: never */
};

/* Workers of a processor, also those at a GPU's side. */
extern const struct rt_machine rt_workers;

/* What |kernel| runs on: workers, where only they can. */
const struct rt_machine *rt_machine_of(const struct hal_device_props *props,
                                       const struct hal_kernel *kernel);

/* What is counted, and how much of it is a worker's tile: some 20 us of what is the dearest. */
enum rt_work {
    RT_WORK_FILL,     /* bytes written */
    RT_WORK_COPY,     /* bytes read and written in order */
    RT_WORK_MACS,     /* multiplied and added, or compared, by vectors */
    RT_WORK_FOLD,     /* elements read into one */
    RT_WORK_ELEMENTS, /* read, converted, written */
    RT_WORK_EXP,      /* with an exponential, or by an address of their own */
    RT_WORK_DEAR,     /* functions of many steps */
    RT_WORK_COUNT
};

/*
 * Units of |work| that a tile should have of |total|, where tiles are cut along several dims; a
 * lane does |unit| of them in a step.
 */
int64_t rt_cut_units(const struct rt_machine *machine, enum rt_work work, int64_t total,
                     int64_t unit);

/*
 * How many of |count| equal things a tile should have. One is |units| of |work|, and lanes share
 * its |elements|: where rows are shared or a lane's each (group.glsl), those of rt_cut_row().
 */
int64_t rt_cut_things(const struct rt_machine *machine, enum rt_work work, int64_t count,
                      int64_t units, int64_t elements);

int64_t rt_cut_row(const struct rt_machine *machine, int64_t length);

/* Likewise for kernels that take |most| of them at a time, as workers always do. */
int64_t rt_cut_block(const struct rt_machine *machine, int64_t count, int64_t elements,
                     int64_t most);

/* Tiles that |ns| of work is worth to workers. */
int64_t rt_cut_tiles(const struct rt_machine *machine, int64_t ns);

/* Positions of a tile of an axis of |length|, cut into about |tiles|. */
int64_t rt_cut_axis(int64_t length, int64_t tiles);

/* The same for an axis of elements that takes |ns|, and at most |most| positions. */
int64_t rt_cut_length(const struct rt_machine *machine, int64_t length, int64_t ns, int64_t most);

/*
 * |images| of lines of pixels, of |channels| elements each that take |macs|: a depthwise
 * convolution, of |ns| all in all.
 */
struct rt_cut_image {
    int64_t images, lines, pixels, channels, macs, ns;
    int64_t band_y, band_x; /* of a tile */
};

void rt_cut_bands(const struct rt_machine *machine, struct rt_cut_image *image);

/*
 * Products of |lines| x |pixels| rows with |panels| of |width| columns, |rows| by one panel at a
 * time: one for each of |images| and |groups|, |ns| all in all. Images that are multiplied by the
 * same panels may share a tile. Some kernels have a form for big tiles.
 */
struct rt_cut {
    int64_t images, groups, lines, pixels, panels, width, rows, ns;
    bool shares_panels, has_big_form;
    int64_t band_images, band_y, band_x, block; /* of a tile: images, lines, pixels and panels */
};

/* Chooses the tiles; for workers those that two and four of them are done with first. */
void rt_cut_product(const struct rt_machine *machine, struct rt_cut *cut);

#endif
