/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/emit/cut.h"

#include "hal/device.h"
#include "hal/kernel.h"
#include "runtime/emit/block.h"
#include "runtime/emit/minmax.h"

/* Cost of a register tile's panel beside its rows, counted in rows. */
#define PANEL_ROWS 3

/* The part of the time for reading weights that shows: some of it passes while other workers
 * multiply. */
#define WEIGHT_READS (2.0 / 3)

#define TILES_PER_WORKER 8
#define WORKERS_MAX 64
#define DRIVER_WORKERS 4 /* assumed of a software driver for a GPU's interface */
#define UNEVEN_TILES 16  /* of so many tiles it does not matter that one is left over */

/*
 * Each tile of a product reads weights and inputs again, so products are cut into tiles that are as
 * long as possible. But a call that was cancelled or that is late ends between two tiles.
 */
#define FEW_TILES(count) ((count) > 32 ? 64 : (count) > 16 ? 32 : (count) > 8 ? 16 : 8)
#define WORKERS(count)                                                                             \
    {                                                                                              \
        .workers = (count), .few_tiles = FEW_TILES(count), .tiles_max = 512, .tile_ns_min = 4000,  \
        .tile_ns = 25000, .product_ns = 4000000, .lanes = 1                                        \
    }
#define FOUR_WORKERS(count)                                                                        \
    WORKERS(count), WORKERS((count) + 1), WORKERS((count) + 2), WORKERS((count) + 3)
#define SIXTEEN_WORKERS(count)                                                                     \
    FOUR_WORKERS(count), FOUR_WORKERS((count) + 4), FOUR_WORKERS((count) + 8),                     \
        FOUR_WORKERS((count) + 12)

static const struct rt_machine many_workers[WORKERS_MAX] = {
    SIXTEEN_WORKERS(1), SIXTEEN_WORKERS(17), SIXTEEN_WORKERS(33), SIXTEEN_WORKERS(49)};

/* One worker shares nothing, so all its tiles are as long as tiles of products. */
static const struct rt_machine one_worker = {.workers = 1,
                                             .few_tiles = 1,
                                             .tiles_max = 512,
                                             .tile_ns_min = 4000,
                                             .tile_ns = 4000000,
                                             .product_ns = 4000000,
                                             .lanes = 1};

const struct rt_machine *rt_cut_workers(uint32_t count)
{
    return count == 1 ? &one_worker : &many_workers[rt_min(rt_max(count, 1), WORKERS_MAX) - 1];
}

/*
 * A GPU with a hundred processors or more has room for some thirty workgroups of 64 lanes on each;
 * several times as many even out their running times. Rows and columns are the sizes of blocks in
 * runtime/kernels/shaders/gemm.comp; group.glsl there says how long a row must be for lanes to
 * share it.
 */
#define GPU(...)                                                                                   \
    {                                                                                              \
        .tiles_max = 16384, .steps = 4, .wide = 64, __VA_ARGS__                                    \
    }

static const struct rt_machine gpu =
    GPU(.few_tiles = 4096, .lanes = 64, .shared_row = 256, .high = 32, .big_high = RT_GEMM_BIG_ROWS,
        .big_wide = RT_GEMM_BIG_COLUMNS, .big_tiles = 512);
/* For subgroups that multiply matrices: runtime/kernels/shaders/gemm_matrices.comp. */
static const struct rt_machine gpu_matrices =
    GPU(.few_tiles = 4096, .lanes = 64, .shared_row = 256, .high = 64);
/* A workgroup has more lanes where subgroups compute the lanes' sums. */
static const struct rt_machine gpu_subgroups =
    GPU(.few_tiles = 1024, .lanes = 256, .shared_row = 64, .high = 32);

const struct rt_machine *rt_cut_machine(const struct hal_device_props *props,
                                        const struct hal_kernel *kernel)
{
    const struct hal_spirv *form = hal_kernel_spirv(kernel, props->capabilities);
    if (!form || !(props->capabilities & HAL_GPU)) {
        return rt_cut_workers(props->is_host ? props->workers : DRIVER_WORKERS);
    }
    return form->needs & (HAL_MATRICES_F16 | HAL_MATRICES_S8) ? &gpu_matrices
           : form->needs & HAL_SUBGROUPS                      ? &gpu_subgroups
                                                              : &gpu;
}

static const int64_t workers_units[RT_WORK_COUNT] = {
    [RT_WORK_FILL] = 256 * 1024, [RT_WORK_COPY] = 128 * 1024,    [RT_WORK_MACS] = 64 * 1024,
    [RT_WORK_FOLD] = 32 * 1024,  [RT_WORK_ELEMENTS] = 16 * 1024, [RT_WORK_EXP] = 8 * 1024,
    [RT_WORK_DEAR] = 2 * 1024,
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Elements of a tile out of |total|, in steps of all lanes, at most |most| of them unless that
 * makes too many tiles. */
static int64_t shared_elements(const struct rt_machine *machine, int64_t total, int64_t most)
{
    int64_t steps = total / (machine->lanes * machine->few_tiles);
    int64_t elements = machine->lanes * rt_max(1, rt_min(steps, most));
    int64_t least = ceil_div(ceil_div(total, machine->tiles_max), machine->lanes);
    return rt_max(elements, least * machine->lanes);
}

int64_t rt_cut_units(const struct rt_machine *machine, enum rt_work work, int64_t total,
                     int64_t unit)
{
    if (machine->lanes == 1) {
        return workers_units[work];
    }
    return unit * shared_elements(machine, ceil_div(total, unit), machine->steps);
}

static int64_t shared_things(const struct rt_machine *machine, int64_t count, int64_t elements,
                             int64_t steps)
{
    /* A tile never has more steps than this, so larger numbers are equivalent. */
    elements = rt_max(1, rt_min(elements, machine->lanes * machine->steps));
    int64_t tile = shared_elements(machine, count * elements, steps);
    return rt_max(ceil_div(tile, elements), ceil_div(count, machine->tiles_max));
}

int64_t rt_cut_things(const struct rt_machine *machine, enum rt_work work, int64_t count,
                      int64_t units, int64_t elements)
{
    units = rt_max(1, units);
    return machine->lanes == 1
               ? rt_max(1, workers_units[work] / units)
               : shared_things(machine, count, elements, machine->steps * elements / units);
}

int64_t rt_cut_row(const struct rt_machine *machine, int64_t length)
{
    return length < machine->shared_row ? 1 : rt_max(length, machine->lanes);
}

int64_t rt_cut_block(const struct rt_machine *machine, int64_t count, int64_t elements,
                     int64_t most)
{
    return machine->lanes == 1
               ? most
               : rt_min(most, shared_things(machine, count, elements, machine->steps));
}

/* ---- workers --------------------------------------------------------------------------------- */

int64_t rt_cut_tiles(const struct rt_machine *machine, int64_t ns)
{
    int64_t few = machine->few_tiles, tiles = 1;
    if (ns > few * machine->tile_ns) {
        return rt_min(ceil_div(ceil_div(ns, machine->tile_ns), few) * few, machine->tiles_max);
    }
    while (tiles < few && ns >= 2 * tiles * machine->tile_ns_min) {
        tiles *= 2;
    }
    return tiles;
}

/* Would two workers get different numbers of tiles, in a case where that matters? */
static bool is_uneven(int64_t tiles)
{
    return tiles % 2 && tiles > 1 && tiles < UNEVEN_TILES;
}

int64_t rt_cut_axis(int64_t length, int64_t tiles)
{
    int64_t tile = rt_max(1, ceil_div(length, tiles)), even = tile;
    while (even > 1 && is_uneven(ceil_div(length, even))) {
        even--;
    }
    return is_uneven(ceil_div(length, even)) ? tile : even;
}

int64_t rt_cut_length(const struct rt_machine *machine, int64_t length, int64_t ns, int64_t most)
{
    if (machine->lanes > 1) {
        return rt_cut_block(machine, length, 1, most);
    }
    return rt_max(1, rt_min(rt_cut_axis(length, rt_cut_tiles(machine, ns)), most));
}

/* ---- images ---------------------------------------------------------------------------------- */

static void cut_into_pixels(struct rt_cut_image *image, int64_t pixels)
{
    int64_t tiles = ceil_div(image->pixels, pixels);
    image->band_x = ceil_div(image->pixels, tiles);
    image->band_y = rt_min(image->lines, rt_max(1, pixels / image->pixels));
}

void rt_cut_bands(const struct rt_machine *machine, struct rt_cut_image *image)
{
    if (machine->lanes > 1) {
        cut_into_pixels(image, rt_cut_things(machine, RT_WORK_MACS,
                                             image->images * image->lines * image->pixels,
                                             image->channels * image->macs, image->channels));
        return;
    }
    int64_t tiles = rt_cut_tiles(machine, image->ns);
    image->band_y = rt_cut_axis(image->lines, (tiles - 1) / image->images + 1);
    image->band_x = image->pixels;
}

/* ---- products -------------------------------------------------------------------------------- */

static int64_t count_tiles(const struct rt_cut *cut)
{
    return ceil_div(cut->images, cut->band_images) * cut->groups *
           ceil_div(cut->lines, cut->band_y) * ceil_div(cut->pixels, cut->band_x) *
           ceil_div(cut->panels, cut->block);
}

/*
 * The time until the last worker is ready. A tile multiplies, and it reads its weights and its
 * input, of which other workers have written a part. When one worker has run its last tile, another
 * one may have begun one: a fourth of a tile more stands for that.
 */
static double time_of(const struct rt_machine *machine, const struct rt_cut *cut)
{
    double lines = (double)(cut->band_images * cut->band_y), pixels = (double)cut->band_x;
    double panels = (double)ceil_div(cut->band_x, cut->rows) * PANEL_ROWS;
    double columns = (double)(cut->block * cut->width), read = (double)cut->per_read;
    double tile = lines * (pixels + panels) * columns + read * columns * WEIGHT_READS +
                  cut->per_input * lines * pixels;
    return tile * ((double)ceil_div(count_tiles(cut), machine->workers) + 0.25);
}

/* Cuts an image into about |tiles|, in |blocks| blocks of panels. */
static void cut_into(struct rt_cut *cut, int64_t tiles, int64_t blocks)
{
    cut->block = ceil_div(cut->panels, blocks);
    int64_t bands = ceil_div(tiles, ceil_div(cut->panels, cut->block));
    cut->band_y = cut->lines > 1 ? ceil_div(cut->lines, bands) : 1;
    cut->band_x = cut->pixels;
    if (cut->lines == 1) {
        cut->band_x = rt_max(ceil_div(cut->pixels, bands), rt_min(cut->rows, cut->pixels));
    }
}

/* Cuts into about |tiles|, first between images and groups, then between bands and panels; keeps
 * the best cut. */
static void try_tiles(const struct rt_machine *machine, struct rt_cut *best, int64_t tiles)
{
    struct rt_cut next = *best;
    int64_t each = ceil_div(tiles, next.images * next.groups);
    next.band_images = next.shares_panels ? ceil_div(next.images, ceil_div(tiles, next.groups)) : 1;
    for (int64_t blocks = 1; blocks <= rt_min(each, next.panels); blocks++) {
        cut_into(&next, each, blocks);
        if (best->block == 0 || time_of(machine, &next) < time_of(machine, best)) {
            *best = next;
        }
    }
}

static void choose(const struct rt_machine *machine, struct rt_cut *cut)
{
    int64_t least = rt_min(ceil_div(cut->ns, machine->product_ns), machine->tiles_max);
    int64_t most = rt_min(cut->ns / machine->tile_ns_min, TILES_PER_WORKER * machine->workers);
    int64_t first = rt_min(machine->workers, most); /* not every worker may be worth a tile */
    cut->block = 0;
    try_tiles(machine, cut, least);
    for (int64_t tiles = first; machine->workers > 1 && tiles > 0 && tiles <= most; tiles *= 2) {
        if (tiles > least) {
            try_tiles(machine, cut, tiles);
        }
    }
}

/* Lines of one pixel are multiplied as the pixels of one line. */
static void cut_for_workers(const struct rt_machine *machine, struct rt_cut *cut)
{
    if (cut->pixels > 1) {
        choose(machine, cut);
        return;
    }
    struct rt_cut turned = *cut;
    turned.lines = 1;
    turned.pixels = cut->lines;
    choose(machine, &turned);
    cut->band_images = turned.band_images;
    cut->band_x = 1;
    cut->band_y = turned.band_x;
    cut->block = turned.block;
}

/* The band size with the fewest multiples of |high| pixels, at most |most| pixels. */
static void cut_rows(struct rt_cut *cut, int64_t high, int64_t most)
{
    int64_t best = INT64_MAX, plane = cut->lines * cut->pixels;
    cut->band_images = 1;
    if (plane <= most) {
        cut->band_y = cut->lines;
        cut->band_x = cut->pixels;
        cut->band_images = cut->shares_panels ? rt_min(cut->images, most / plane) : 1;
        return;
    }
    for (int64_t y = 1; y <= rt_min(cut->lines, most); y++) {
        int64_t x = rt_min(cut->pixels, most / y);
        int64_t multiples =
            ceil_div(cut->lines, y) * ceil_div(cut->pixels, x) * ceil_div(x * y, high);
        if (multiples < best) {
            best = multiples;
            cut->band_y = y;
            cut->band_x = x;
        }
    }
}

static bool cut_into_multiples(struct rt_cut *cut, int64_t high, int64_t wide)
{
    cut->block = rt_min(cut->panels, rt_max(1, wide / cut->width));
    cut_rows(cut, high, high);
    return cut->band_images * cut->band_y * cut->band_x >= high && cut->block * cut->width >= wide;
}

/* One multiple of the multiplied block at a time: of the larger kind if its tiles are whole and
 * fill the GPU; more rows if that makes too many tiles. */
static void cut_for_lanes(const struct rt_machine *machine, struct rt_cut *cut)
{
    int64_t all = cut->images * cut->lines * cut->pixels, high = machine->big_high;
    bool is_big = cut->has_big_form && high > 0 &&
                  cut_into_multiples(cut, high, machine->big_wide) &&
                  count_tiles(cut) >= machine->big_tiles;
    if (!is_big) {
        high = machine->high;
        cut_into_multiples(cut, high, machine->wide);
    }
    for (int64_t most = 2 * high; most < 2 * all && count_tiles(cut) > machine->tiles_max;
         most *= 2) {
        cut_rows(cut, high, most);
    }
}

void rt_cut_product(const struct rt_machine *machine, struct rt_cut *cut)
{
    if (machine->lanes > 1) {
        cut_for_lanes(machine, cut);
    } else {
        cut_for_workers(machine, cut);
    }
}
