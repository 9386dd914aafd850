/* SPDX-License-Identifier: MIT */
/*
 * Resampling of images of bytes, bit for bit as PyTorch's kernel for uint8: weights are 16-bit
 * integers with as many fraction bits as the largest weight of the dim allows, columns are
 * processed before rows, and intermediate results are rounded to bytes. A dim that keeps its size
 * is left alone, whatever its scale.
 *
 * A tile is some columns of one channel's image: it computes the windows of all rows once.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/resample.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define SCRATCH_MAX ((int64_t)8 << 20) /* scratch bytes, out of the 16 MiB of a worker */
#define PLACES_MAX 22                  /* fraction bits of a weight */
#define BILINEAR_TAPS 2

/* The layout of a tile's scratch. */
struct tile_memory {
    double *weights;                 /* weights of one window, h.taps or w.taps */
    struct rt_resample_window *rows; /* h.out */
    int16_t *row_weights;            /* h.out x h.taps */
    int16_t *column_weights;         /* w.taps */
    uint8_t *line;                   /* h.in, of one output column */
};

/* ---- windows --------------------------------------------------------------------------------- */

/* The two neighbours of an output pixel; a single one if they coincide. */
static struct rt_resample_window neighbours(const struct rt_resample *how,
                                            const struct rt_resample_dim *dim, int64_t at,
                                            double weights[BILINEAR_TAPS])
{
    double source = how->align_corners ? (double)at * dim->scale
                                       : fmax(0, ((double)at + 0.5) * dim->scale - 0.5);
    int64_t begin = rt_min((int64_t)source, dim->in - 1);
    double second = fmin(source - (double)begin, 1);
    bool is_last = begin == dim->in - 1;
    weights[0] = is_last ? 1 : 1 - second;
    weights[1] = second;
    return (struct rt_resample_window){begin, is_last ? 1 : BILINEAR_TAPS};
}

static struct rt_resample_window window_of(const struct rt_resample *how,
                                           const struct rt_resample_dim *dim, int64_t at,
                                           double *weights)
{
    double largest;
    if (dim->in == dim->out) {
        weights[0] = 1;
        return (struct rt_resample_window){at, 1};
    }
    return how->antialiases ? rt_antialias_triangle_f64(dim, at, weights, &largest)
                            : neighbours(how, dim, at, weights);
}

/* The largest weight in all windows of the dim. */
static double largest_weight(const struct rt_resample *how, const struct rt_resample_dim *dim)
{
    double largest = 0, weights[BILINEAR_TAPS], one;
    if (dim->in == dim->out) {
        return 1;
    }
    for (int64_t at = 0; at < dim->out; at++) {
        if (how->antialiases) {
            rt_antialias_triangle_f64(dim, at, NULL, &one);
        } else {
            one = neighbours(how, dim, at, weights).count > 1 ? fmax(weights[0], weights[1]) : 1;
        }
        largest = fmax(largest, one);
    }
    return largest;
}

/* Fraction bits for which the weight |largest| fits into a 16-bit integer. */
static int places_for(double largest)
{
    int places = 0;
    while (places < PLACES_MAX && 0.5 + largest * (double)(1 << (places + 1)) < 1 << 15) {
        places++;
    }
    return places;
}

static void round_weights(const double *weights, int64_t count, int places, int16_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        out[i] = (int16_t)(weights[i] * (double)(1 << places) + 0.5);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* A sum of weighted bytes, |stride| apart. */
static uint8_t filter(const uint8_t *x, int64_t stride, const int16_t *weights, int64_t count,
                      int places)
{
    int32_t sum = places > 0 ? 1 << (places - 1) : 0;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i * stride] * weights[i];
    }
    sum >>= places;
    return (uint8_t)(sum < 0 ? 0 : sum > UINT8_MAX ? UINT8_MAX : sum);
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Bytes of scratch; with |memory| also sets the pointers of |scratch| into it. */
static int64_t lay_out(const struct rt_resample *how, char *scratch, struct tile_memory *memory)
{
    int64_t windows = aligned(rt_max(how->h.taps, how->w.taps) * (int64_t)sizeof(double));
    int64_t rows = windows + aligned(how->h.out * (int64_t)sizeof(struct rt_resample_window));
    int64_t row_weights = rows + aligned(how->h.out * how->h.taps * (int64_t)sizeof(int16_t));
    int64_t column_weights = row_weights + aligned(how->w.taps * (int64_t)sizeof(int16_t));
    if (scratch) {
        memory->weights = (double *)(void *)scratch;
        memory->rows = (struct rt_resample_window *)(void *)(scratch + windows);
        memory->row_weights = (int16_t *)(void *)(scratch + rows);
        memory->column_weights = (int16_t *)(void *)(scratch + row_weights);
        memory->line = (uint8_t *)scratch + column_weights;
    }
    return column_weights + how->h.in;
}

static void resample_column(const struct rt_resample_constants *c, const struct tile_memory *memory,
                            const uint8_t *x, uint8_t *y, int64_t at)
{
    const struct rt_resample *how = &c->how;
    struct rt_resample_window w = window_of(how, &how->w, at, memory->weights);

    round_weights(memory->weights, w.count, c->w_places, memory->column_weights);
    for (int64_t row = 0; row < how->h.in; row++) {
        memory->line[row] = filter(x + row * c->x.h + w.begin * c->x.w, c->x.w,
                                   memory->column_weights, w.count, c->w_places);
    }
    for (int64_t row = 0; row < how->h.out; row++) {
        struct rt_resample_window h = memory->rows[row];
        y[row * c->y.h + at * c->y.w] =
            filter(memory->line + h.begin, 1, memory->row_weights + row * how->h.taps, h.count,
                   c->h_places);
    }
}

/* Bindings: out, image. Tile y is the channel of an image. */
static void resample_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_resample_constants *c = args->constants;
    const struct rt_resample *how = &c->how;
    int64_t n = tile.y / c->channels, channel = tile.y % c->channels;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, how->w.out);
    const uint8_t *x = (const uint8_t *)args->bindings[1] + n * c->x.n + channel * c->x.c;
    uint8_t *y = (uint8_t *)args->bindings[0] + n * c->y.n + channel * c->y.c;
    struct tile_memory memory;

    lay_out(how, args->scratch, &memory);
    for (int64_t row = 0; row < how->h.out; row++) {
        memory.rows[row] = window_of(how, &how->h, row, memory.weights);
        round_weights(memory.weights, memory.rows[row].count, c->h_places,
                      memory.row_weights + row * how->h.taps);
    }
    for (int64_t at = first; at < behind; at++) {
        resample_column(c, &memory, x, y, at);
    }
}

static const struct hal_kernel kernel_resample = {
    .name = "resample_u8",
    .cpu = resample_tile,
    .spirv = {HAL_SPIRV_FORM(resample_spirv, HAL_F64)},
};

/* ---- recording ------------------------------------------------------------------------------- */

enum status rt_resample_emit_u8(struct rt_emit *emit, const struct rt_tensor *self,
                                const struct rt_tensor *out, const struct rt_resample *resample,
                                struct error *err)
{
    struct rt_resample_constants c = {
        .how = *resample,
        .channels = self->dims[1],
        .x = rt_image_of(self),
        .y = rt_image_of(out),
    };
    struct rt_resample_dim *h = &c.how.h, *w = &c.how.w;

    if (!c.how.antialiases) {
        h->taps = w->taps = BILINEAR_TAPS;
    }
    int64_t scratch = lay_out(&c.how, NULL, NULL);
    if (scratch > SCRATCH_MAX) {
        return error_set(err, ST_UNSUPPORTED,
                         "%s: %" PRId64 " rows with %" PRId64 " taps are too large",
                         rt_emit_op(emit)->name, h->out, h->taps);
    }
    c.h_places = places_for(largest_weight(&c.how, h));
    c.w_places = places_for(largest_weight(&c.how, w));
    int64_t column = h->in * w->taps + h->out * h->taps, images = self->dims[0] * c.channels;
    c.tile = rt_cut_things(rt_emit_machine(emit, &kernel_resample), RT_WORK_MACS, images * w->out,
                           column, h->out);
    must(images <= UINT32_MAX);
    return rt_emit_dispatch(
        emit,
        &(struct hal_dispatch){
            .kernel = &kernel_resample,
            .grid = {(uint32_t)((w->out - 1) / c.tile + 1), (uint32_t)images, 1},
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, self->binding},
            .binding_count = 2,
            .scratch_bytes = (size_t)scratch,
            .cost = (uint64_t)(images * w->out * column),
        },
        err);
}
