/* SPDX-License-Identifier: MIT */
/*
 * Pooling over windows of volumes: as pool.c, with a depth. Volumes are row-major, one for each
 * channel. A tile is some rows of the output. Maxima of floats without indices are computed line by
 * line, all others element by element in the class of the type.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/view_priv.h"

#define AXES 3
#define TAPS_MAX (16 * 1024) /* larger windows count as this much work */
#define ROW_MAX 16           /* elements that are loaded together */
#define LINE_MAX (64 * 1024) /* floats of a line in scratch memory */

struct volume_constants {
    enum rt_pool_mode mode;
    enum dtype dtype;
    uint32_t counts_padding;
    int64_t divisor; /* 0: divide by the number of the window's elements */
    int64_t rows;    /* channels of all volumes */
    int64_t tile;    /* rows */
    struct rt_pool_dim axes[AXES];
};

/* ---- the kernel ------------------------------------------------------------------------------ */

/* A window's elements: their positions and their class. */
struct scan {
    const struct volume_constants *c;
    rt_load_f *load;
    const char *x; /* the channel's volume */
    struct rt_pool_window w[AXES];
};

/* Divisor for the sum of a window. */
static int64_t divisor_of(const struct scan *s)
{
    int64_t count = 1;

    if (s->c->divisor) {
        return s->c->divisor;
    }
    for (int i = 0; i < AXES; i++) {
        count *= s->c->counts_padding ? s->w[i].padded : s->w[i].count;
    }
    return count;
}

/* Position of the first element of row |n| of the window in its volume. */
static int64_t place_of_row(const struct scan *s, int64_t n)
{
    const struct rt_pool_dim *axes = s->c->axes;
    int64_t depth = s->w[0].begin + n / s->w[1].count * axes[0].dilation;
    int64_t line = s->w[1].begin + n % s->w[1].count * axes[1].dilation;
    return (depth * axes[1].in + line) * axes[2].in + s->w[2].begin;
}

static int64_t first_place(const struct scan *s)
{
    const struct rt_pool_dim *axes = s->c->axes;
    return (s->w[0].begin * axes[1].in + s->w[1].begin) * axes[2].in + s->w[2].begin;
}

/* As in pool.c: a NaN wins, the first of equals stays; integers are divided towards zero. */
#define DEFINE_SCAN(suffix, type, lowest, is_nan, plus, over)                                      \
    static type scan_##suffix(const struct scan *s, int64_t *out_place)                            \
    {                                                                                              \
        int64_t width = (int64_t)dtype_bytes(s->c->dtype);                                         \
        int64_t rows = s->w[0].count * s->w[1].count, step = s->c->axes[2].dilation;               \
        bool is_max = rt_pool_is_max(s->c->mode);                                                  \
        type best = lowest, sum = 0, values[ROW_MAX];                                              \
        *out_place = first_place(s);                                                               \
        for (int64_t row = 0; row < rows; row++) {                                                 \
            int64_t place = place_of_row(s, row);                                                  \
            for (int64_t done = 0, n; done < s->w[2].count; done += n) {                           \
                n = rt_min(s->w[2].count - done, ROW_MAX);                                         \
                s->load(values, s->x + (place + done * step) * width, step * width, n);            \
                for (int64_t i = 0; i < n; i++) {                                                  \
                    type value = values[i];                                                        \
                    sum = is_max ? sum : plus(sum, value);                                         \
                    if (is_max && (value > best || is_nan(value))) {                               \
                        best = value;                                                              \
                        *out_place = place + (done + i) * step;                                    \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return is_max ? best : over(sum, (type)divisor_of(s));                                     \
    }

#define NEVER(value) false
#define PLUS(a, b) ((a) + (b))
#define OVER(a, b) ((a) / (b))
#define WRAPPED_PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define WRAPPED_OVER(a, b) ((b) == -1 ? (int64_t)(0 - (uint64_t)(a)) : (a) / (b))
DEFINE_SCAN(f32, float, -INFINITY, isnan, PLUS, OVER)
DEFINE_SCAN(f64, double, -(double)INFINITY, isnan, PLUS, OVER)
DEFINE_SCAN(i64, int64_t, INT64_MIN, NEVER, WRAPPED_PLUS, WRAPPED_OVER)

static void pool_element(const struct scan *s, char *y, int64_t *index)
{
    enum rt_class class = rt_convert_class(s->c->dtype);
    int64_t place;
    union {
        float f32;
        double f64;
        int64_t i64;
    } value;

    if (class == RT_CLASS_F32) {
        value.f32 = scan_f32(s, &place);
    } else if (class == RT_CLASS_F64) {
        value.f64 = scan_f64(s, &place);
    } else {
        value.i64 = scan_i64(s, &place);
    }
    rt_convert_store(class, s->c->dtype)(y, 0, &value, 1);
    if (index) {
        *index = place;
    }
}

/* Bindings: output, input, indices or none. */
static void pool_volumes(const struct hal_args *args, struct hal_tile tile)
{
    const struct volume_constants *c = args->constants;
    const struct rt_pool_dim *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];
    int64_t width = (int64_t)dtype_bytes(c->dtype), volume = d->in * h->in * w->in;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->rows);
    struct scan s = {.c = c, .load = rt_convert_load(c->dtype, rt_convert_class(c->dtype))};

    for (int64_t r = first; r < behind; r++) {
        int64_t channel = r / (d->out * h->out), y = r * w->out;
        s.x = (const char *)args->bindings[1] + channel * volume * width;
        s.w[0] = rt_pool_window(c->mode, d, r / h->out % d->out);
        s.w[1] = rt_pool_window(c->mode, h, r % h->out);
        for (int64_t column = 0; column < w->out; column++, y++) {
            s.w[2] = rt_pool_window(c->mode, w, column);
            pool_element(&s, (char *)args->bindings[0] + y * width,
                         args->bindings[2] ? (int64_t *)args->bindings[2] + y : NULL);
        }
    }
}

static const struct hal_kernel kernel = {.name = "pool_volumes", .cpu = pool_volumes};

/* The maxima of a line of windows: of their depths and heights for each column of the input, then
 * of neighbouring columns. As in an element's scan, a NaN wins. */
static void max_line(const struct volume_constants *c, float *y, const float *x,
                     const struct rt_pool_window *depth, const struct rt_pool_window *height,
                     float *line)
{
    const struct rt_pool_dim *h = &c->axes[1], *w = &c->axes[2];
    hal_cpu_uk()->window_max_f32(line, &(struct uk_window_f32){
                                           .x = x + (depth->begin * h->in + height->begin) * w->in,
                                           .line = h->in * w->in * c->axes[0].dilation,
                                           .row = w->in * h->dilation,
                                           .lines = (size_t)depth->count,
                                           .rows = (size_t)height->count,
                                           .n = (size_t)w->in,
                                       });
    for (int64_t column = 0; column < w->out; column++) {
        struct rt_pool_window window = rt_pool_window(c->mode, w, column);
        float best = -INFINITY;
        for (int64_t i = 0; i < window.count; i++) {
            float value = line[window.begin + i * w->dilation];
            best = value > best || isnan(value) ? value : best;
        }
        y[column] = best;
    }
}

/* Bindings: output, input. */
static void max_volumes(const struct hal_args *args, struct hal_tile tile)
{
    const struct volume_constants *c = args->constants;
    const struct rt_pool_dim *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->rows);

    for (int64_t r = first; r < behind; r++) {
        int64_t channel = r / (d->out * h->out);
        struct rt_pool_window depth = rt_pool_window(c->mode, d, r / h->out % d->out);
        struct rt_pool_window height = rt_pool_window(c->mode, h, r % h->out);
        max_line(c, (float *)args->bindings[0] + r * w->out,
                 (const float *)args->bindings[1] + channel * d->in * h->in * w->in, &depth,
                 &height, args->scratch);
    }
}

static const struct hal_kernel max_kernel = {.name = "max_volumes", .cpu = max_volumes};

/* ---- shapes ---------------------------------------------------------------------------------- */

static enum status need_volume(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);

    TRY(rt_view_same_dtype(call));
    if (self->rank != AXES + 1 && self->rank != AXES + 2) {
        return rt_shape_refuse(call, "rank %u, expected 4 or 5", self->rank);
    }
    return ST_OK;
}

static enum status set_volume(struct rt_shape_call *call, uint32_t index,
                              const struct rt_dim size[AXES])
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[AXES + 2];

    for (uint8_t i = 0; i < self->rank; i++) {
        uint8_t outer = self->rank - AXES;
        out[i] = i < outer ? self->dims[i] : size[i - outer];
    }
    return rt_shape_set_out(call, index, self->rank, out);
}

/* |dilation|: index of the argument, or 0 without one. */
static enum status count_windows(struct rt_shape_call *call, uint32_t dilation, bool ceil,
                                 struct rt_dim size[AXES])
{
    struct rt_pool_lists lists;

    TRY(need_volume(call));
    TRY(rt_pool_need_lists(call, AXES, dilation, &lists));
    for (uint32_t i = 0; i < AXES; i++) {
        TRY(rt_pool_count(call, &lists, AXES, i, ceil, &size[i]));
    }
    return ST_OK;
}

static enum status max_shape(struct rt_shape_call *call)
{
    struct rt_dim size[AXES];

    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_I64));
    TRY(count_windows(call, 4, rt_shape_arg(call, 5)->b, size));
    TRY(set_volume(call, 0, size));
    return set_volume(call, 1, size);
}

static enum status avg_shape(struct rt_shape_call *call)
{
    struct rt_dim size[AXES];

    TRY(rt_pool_need_divisor(call, 6));
    TRY(count_windows(call, 0, rt_shape_arg(call, 4)->b, size));
    return set_volume(call, 0, size);
}

static enum status adaptive_sizes(struct rt_shape_call *call, struct rt_dim size[AXES])
{
    const struct rt_value *list = rt_shape_arg(call, 1);
    int64_t items[AXES];

    TRY(need_volume(call));
    if (list->count != AXES) {
        return rt_shape_refuse(call, "%u output sizes, expected %d", list->count, AXES);
    }
    TRY(rt_pool_need_list(call, 1, AXES, 0, items));
    for (uint32_t i = 0; i < AXES; i++) {
        size[i] = rt_dim_of(items[i]);
    }
    return ST_OK;
}

static enum status adaptive_shape(struct rt_shape_call *call)
{
    struct rt_dim size[AXES];

    TRY(adaptive_sizes(call, size));
    return set_volume(call, 0, size);
}

static enum status adaptive_max_shape(struct rt_shape_call *call)
{
    struct rt_dim size[AXES];

    TRY(adaptive_sizes(call, size));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_I64));
    TRY(set_volume(call, 0, size));
    return set_volume(call, 1, size);
}

/* ---- recording ------------------------------------------------------------------------------- */

static enum status emit_volumes(struct rt_emit *emit, struct volume_constants *c,
                                const struct rt_tensor *indices, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[3] = {out->binding, self->binding};
    int64_t taps = 1;

    if (out->numel == 0) {
        return ST_OK;
    }
    for (uint8_t i = 0; i < AXES; i++) {
        struct rt_pool_dim *axis = &c->axes[i];
        axis->in = self->dims[self->rank - AXES + i];
        axis->out = out->dims[self->rank - AXES + i];
        taps *= rt_pool_is_adaptive(c->mode) ? axis->in / axis->out + 1 : axis->kernel;
        if (axis->in == 0) {
            return error_set(err, ST_INVALID, "the volume has no elements");
        }
    }
    if (indices) {
        bindings[2] = indices->binding;
    }
    c->dtype = self->dtype;
    c->rows = out->numel / c->axes[2].out;
    int64_t row = c->axes[2].out * rt_min(taps, TAPS_MAX);
    c->tile = rt_cut_things(rt_emit_machine(emit, &kernel), RT_WORK_ELEMENTS, c->rows, row,
                            c->axes[2].out);
    bool has_lines =
        rt_pool_is_max(c->mode) && c->dtype == DT_F32 && !indices && c->axes[2].in <= LINE_MAX;
    return rt_emit_tiles(emit, c->rows, c->tile,
                         &(struct hal_dispatch){
                             .kernel = has_lines ? &max_kernel : &kernel,
                             .scratch_bytes = has_lines ? (size_t)c->axes[2].in * sizeof(float) : 0,
                             .constants = c,
                             .constants_bytes = sizeof(*c),
                             .bindings = bindings,
                             .binding_count = 3,
                             .cost = (uint64_t)(c->rows * row) * 2,
                         },
                         err);
}

static enum status max_emit(struct rt_emit *emit, struct error *err)
{
    struct volume_constants c = {.mode = RT_POOL_MAX};

    for (uint32_t i = 0; i < AXES; i++) {
        rt_pool_read_window(emit, &c.axes[i], i, 4);
    }
    return emit_volumes(emit, &c, rt_emit_out(emit, 1), err);
}

static enum status avg_emit(struct rt_emit *emit, struct error *err)
{
    struct volume_constants c = {.mode = RT_POOL_AVERAGE,
                                 .counts_padding = rt_emit_value(emit, 5)->b};

    for (uint32_t i = 0; i < AXES; i++) {
        rt_pool_read_window(emit, &c.axes[i], i, 0);
    }
    if (rt_emit_value(emit, 6)->kind != RT_NONE) {
        c.divisor = rt_emit_int(emit, 6);
    }
    return emit_volumes(emit, &c, NULL, err);
}

static enum status emit_adaptive(struct rt_emit *emit, enum rt_pool_mode mode,
                                 const struct rt_tensor *indices, struct error *err)
{
    struct volume_constants c = {.mode = mode};

    for (uint32_t i = 0; i < AXES; i++) {
        c.axes[i].dilation = 1;
    }
    return emit_volumes(emit, &c, indices, err);
}

static enum status adaptive_emit(struct rt_emit *emit, struct error *err)
{
    return emit_adaptive(emit, RT_POOL_ADAPTIVE, NULL, err);
}

static enum status adaptive_max_emit(struct rt_emit *emit, struct error *err)
{
    return emit_adaptive(emit, RT_POOL_ADAPTIVE_MAX, rt_emit_out(emit, 1), err);
}

/* clang-format off */
const struct rt_op rt_ops_pool_volume[] = {
    {.name = "max_pool3d", .kernels = "aten::max_pool3d_with_indices.out",
     .args = "TLLLLB>TT", .shape = max_shape, .emit = max_emit, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel},
    {.name = "avg_pool3d", .kernels = "aten::avg_pool3d.out",
     .args = "TLLLBBI?>T", .shape = avg_shape, .emit = avg_emit, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel},
    {.name = "adaptive_avg_pool3d", .kernels = "aten::_adaptive_avg_pool3d.out",
     .args = "TL>T", .shape = adaptive_shape, .emit = adaptive_emit, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel},
    {.name = "adaptive_max_pool3d", .kernels = "aten::adaptive_max_pool3d.out",
     .args = "TL>TT", .shape = adaptive_max_shape, .emit = adaptive_max_emit,
     .batch = rt_batch_each, .dtypes = RT_DTYPES_REAL, .runs = &kernel},
    {0},
};
/* clang-format on */
