/* SPDX-License-Identifier: MIT */
/*
 * The first two layers of an inverted residual block as one operator: a 1x1 convolution, which
 * makes many channels of few, and the depthwise convolution that reads them. The expand_dw pass
 * (runtime/passes/expand_dw.c) makes it of "conv" and "conv_dw". There is no form for other
 * devices.
 *
 * The expanded image is the largest of a network and is never stored. A depthwise convolution reads
 * each channel by itself, so a tile computes a block of channels of an image, or of a band of its
 * lines: some lines of the product into scratch memory that stays in a near cache, and from them
 * the output's lines. Lines that the next ones need again are kept. Each number is the result of
 * the same operations in the same order as in the two layers.
 *
 * The product may be one of bfloat16 numbers; the expanded lines are floats all the same, because
 * the depthwise convolution multiplies floats. Without a product, the depthwise convolution reads
 * the input where it lies.
 */
#include "config.h"

#include "runtime/ops/expand_dw.h"

#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/cpu/uk_subnormals.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/chain.h"
#include "runtime/ops/op.h"

/* Multiply-adds of one core in a nanosecond, roughly. */
#define MACS_PER_NS 50
#define DEPTHWISE_MACS_PER_NS 20

/* Channels of a tile: a whole cache line or more of each pixel of the output. */
#define CHANNELS_MIN 32

/* Bytes of expanded lines in scratch memory: a part of a second-level cache. */
#define LINES_BYTES (96 * 1024)

/* Bands compute the lines between them twice: so many times as many lines they must have. */
#define BAND_OVERLAPS 8

/* A layer's activation: a loop; RT_PW_COUNT: none. Products of bfloat16 numbers compute it, if it
 * has a number, an enum uk_unary + 1. */
struct layer {
    const float *bias; /* only in a tile */
    float min, max;
    uint32_t activation, unary;
};

struct expand {
    int64_t image_in, image_out;
    uint32_t ins, channels;         /* of the input, of the output */
    uint32_t block, blocks, widest; /* channels of a tile; the last tile has what is left */
    uint32_t height, width, out_height, out_width;
    uint32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    uint32_t band, lines; /* output lines of a tile, and of a step */
    struct layer product, depthwise;
    bool has_product, is_bf16, in_is_bf16, out_is_bf16; /* is_bf16: the product's weights */
};

/* ---- the kernel ------------------------------------------------------------------------------ */

/* A step of a tile: output lines [y, y_end), and the input lines [begin, end) that they read. */
struct step {
    uint32_t y, y_end, begin, end;
};

struct work {
    const struct expand *e;
    const uint8_t *in, *weights;
    uint8_t *out;         /* of the tile's channels */
    uint32_t n;           /* of them */
    float *taps;          /* depthwise weights of these channels, side by side */
    float *lines, *image; /* expanded lines; output lines, if they are not stored at once */
    void *rows;           /* scratch memory of products of bfloat16 numbers */
    struct layer product, depthwise;
};

static int64_t first_line(const struct expand *e, uint32_t y)
{
    return (int64_t)y * e->stride_h - e->pad_top;
}

static struct step step_at(const struct expand *e, uint32_t y, uint32_t behind)
{
    struct step s = {.y = y, .y_end = behind - y < e->lines ? behind : y + e->lines};
    s.begin = (uint32_t)rt_min(rt_max(first_line(e, y), 0), e->height);
    s.end = (uint32_t)rt_min(first_line(e, s.y_end - 1) + e->kernel_h, e->height);
    s.end = s.end < s.begin ? s.begin : s.end;
    return s;
}

/* |rows| rows of |count| numbers; |to_row| and |from_row| are the distances of their begins. */
struct rows {
    float *to;
    const float *from;
    size_t to_row, from_row, rows, count;
};

/* As the nodes of their own did, activations compute with subnormals. */
static void activate(const struct layer *layer, const struct rows *r, uint64_t mode)
{
    rt_pointwise_loop_f *loop =
        rt_pointwise_loop((enum rt_pointwise_op)layer->activation, RT_CLASS_F32);
    bool is_one = r->to_row == r->count && r->from_row == r->count;
    size_t rows = is_one ? 1 : r->rows, count = is_one ? r->rows * r->count : r->count;
    uint64_t dropped = uk_float_mode();
    uk_subnormals_keep(mode);
    for (size_t i = 0; i < rows; i++) {
        loop(&(struct rt_pointwise_run){
            .out = r->to + i * r->to_row, .in = {r->from + i * r->from_row}, .count = count});
    }
    uk_subnormals_keep(dropped);
}

static bool is_active(const struct layer *layer)
{
    return layer->activation != RT_PW_COUNT;
}

/* Does the product compute its activation? */
static bool activates(const struct expand *e)
{
    return e->is_bf16 && e->product.unary > 0;
}

static size_t number_bytes(bool is_bf16)
{
    return is_bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* Computes lines [begin, end) of the expanded image into |to|. */
static void expand_lines(const struct work *w, uint32_t begin, uint32_t end, float *to,
                         uint64_t mode)
{
    const struct expand *e = w->e;
    if (begin == end) {
        return;
    }
    const uint8_t *in = w->in + (size_t)begin * e->width * e->ins * number_bytes(e->in_is_bf16);
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    (e->is_bf16 ? uk->gemm_bf16 : uk->gemm_f32)(&(struct uk_gemm_f32){
        .a = (const float *)(const void *)in,
        .a_is_bf16 = e->in_is_bf16,
        .a_row = e->ins,
        .segment_count = 1,
        .run = e->ins,
        .b = w->weights,
        .k = e->ins,
        .bias = w->product.bias,
        .c = to,
        .c_row = w->n,
        .lines = 1,
        .m = (end - begin) * e->width,
        .n = w->n,
        .min = w->product.min,
        .max = w->product.max,
        .activation = activates(e) ? uk->unary_f32[e->product.unary - 1] : NULL,
        .scratch = w->rows,
    });
    if (is_active(&w->product) && !activates(e)) {
        size_t pixels = (size_t)(end - begin) * e->width;
        activate(&w->product, &(struct rows){to, to, w->n, w->n, pixels, w->n}, mode);
    }
}

/* Are the results of the depthwise convolution stored at once? */
static bool is_direct(const struct expand *e)
{
    return !is_active(&e->depthwise) && !e->out_is_bf16;
}

/* Stores |pixels| of the output's lines, activated, in |out|. */
static void store_image(const struct work *w, uint8_t *out, size_t pixels, uint64_t mode)
{
    size_t row = w->e->channels;
    struct rows rows = {w->image, w->image, w->n, w->n, pixels, w->n};
    if (!w->e->out_is_bf16) {
        rows.to = (float *)(void *)out;
        rows.to_row = row;
    }
    if (is_active(&w->depthwise)) {
        activate(&w->depthwise, &rows, mode);
    }
    if (w->e->out_is_bf16) {
        hal_cpu_uk()->rows_to_bf16((uint16_t *)(void *)out, (ptrdiff_t)row, w->image, pixels, w->n);
    }
}

/* Computes the output's lines of |s|. Their input lines are at the beginning of the scratch;
 * without a product they are read where they lie. */
static void convolve(const struct work *w, const struct step *s, uint64_t mode)
{
    const struct expand *e = w->e;
    uint8_t *out =
        w->out + (size_t)s->y * e->out_width * e->channels * number_bytes(e->out_is_bf16);
    size_t pixels = (size_t)(s->y_end - s->y) * e->out_width;
    size_t pixel = e->has_product ? w->n : e->channels;
    size_t y_pixel = is_direct(e) ? e->channels : w->n;
    const float *in = (const float *)(const void *)w->in + (size_t)s->begin * e->width * pixel;
    hal_cpu_uk()->dw_f32(&(struct uk_dw_f32){
        .x = e->has_product ? w->lines : in,
        .x_line = (ptrdiff_t)(e->width * pixel),
        .x_pixel = (ptrdiff_t)pixel,
        .w = w->taps,
        .bias = w->depthwise.bias,
        .y = is_direct(e) ? (float *)(void *)out : w->image,
        .y_line = (ptrdiff_t)(e->out_width * y_pixel),
        .y_pixel = (ptrdiff_t)y_pixel,
        .channels = w->n,
        .height = s->end - s->begin,
        .width = e->width,
        .out_width = e->out_width,
        .row_end = s->y_end - s->y,
        .kernel_h = e->kernel_h,
        .kernel_w = e->kernel_w,
        .stride_h = e->stride_h,
        .stride_w = e->stride_w,
        .dilation_h = 1,
        .dilation_w = 1,
        .pad_top = (uint32_t)(s->begin - first_line(e, s->y)),
        .pad_left = e->pad_left,
        .min = w->depthwise.min,
        .max = w->depthwise.max,
    });
    if (!is_direct(e)) {
        store_image(w, out, pixels, mode);
    }
}

static void gather_taps(const struct work *w, const float *from)
{
    for (uint32_t t = 0; t < w->e->kernel_h * w->e->kernel_w; t++) {
        memcpy(w->taps + (size_t)t * w->n, from + (size_t)t * w->e->channels, w->n * sizeof(*from));
    }
}

/* The lines that the step behind |s| needs again move to the beginning; returns their number. */
static uint32_t keep_lines(const struct work *w, const struct step *s, uint32_t next)
{
    size_t line = (size_t)w->e->width * w->n;
    uint32_t kept = next < s->end ? s->end - next : 0;
    if (kept > 0) {
        memmove(w->lines, w->lines + (next - s->begin) * line, kept * line * sizeof(*w->lines));
    }
    return kept;
}

static void run_steps(const struct work *w, uint32_t y, uint32_t behind, uint64_t mode)
{
    if (!w->e->has_product) {
        for (; y < behind; y += w->e->lines) {
            struct step s = step_at(w->e, y, behind);
            convolve(w, &s, mode);
        }
        return;
    }
    struct step s = step_at(w->e, y, behind);
    expand_lines(w, s.begin, s.end, w->lines, mode);
    convolve(w, &s, mode);
    while (s.y_end < behind) {
        struct step next = step_at(w->e, s.y_end, behind);
        uint32_t kept = keep_lines(w, &s, next.begin);
        expand_lines(w, next.begin + kept, next.end, w->lines + (size_t)kept * w->e->width * w->n,
                     mode);
        convolve(w, &next, mode);
        s = next;
    }
}

/* Floats that a tile keeps, each at an address that is a multiple of a cache line. */
static size_t aligned(size_t floats)
{
    return align_up(floats, 16);
}

static size_t taps_floats(const struct expand *e)
{
    return aligned((size_t)e->kernel_h * e->kernel_w * e->widest);
}

static size_t lines_floats(const struct expand *e)
{
    if (!e->has_product) {
        return 0;
    }
    uint32_t reach = (e->lines - 1) * e->stride_h + e->kernel_h;
    return aligned((size_t)(reach < e->height ? reach : e->height) * e->width * e->widest);
}

static size_t image_floats(const struct expand *e)
{
    return is_direct(e) ? 0 : aligned((size_t)e->lines * e->out_width * e->widest);
}

static struct layer at_channel(struct layer layer, const float *bias, uint32_t channel)
{
    layer.bias = bias ? bias + channel : NULL;
    return layer;
}

/*
 * Bindings: out, in, packed weights, bias, depthwise weights and bias. Grid: blocks of channels,
 * bands of lines, images. So two workers have different lines, because one of them takes tiles from
 * the end, as in the layers before and behind, and both get one of the narrower last blocks.
 */
static void expand_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct expand *e = args->constants;
    uint32_t channel = tile.x * e->block;
    uint32_t y = tile.y * e->band,
             behind = e->out_height - y < e->band ? e->out_height : y + e->band;
    float *scratch = args->scratch;
    struct work w = {
        .e = e,
        .in = (const uint8_t *)args->bindings[1] +
              (size_t)(tile.z * e->image_in + (e->has_product ? 0 : channel)) *
                  number_bytes(e->in_is_bf16),
        .weights = (const uint8_t *)args->bindings[2] +
                   (size_t)channel * e->ins * number_bytes(e->is_bf16),
        .out = (uint8_t *)args->bindings[0] +
               (size_t)(tile.z * e->image_out + channel) * number_bytes(e->out_is_bf16),
        .n = tile.x + 1 == e->blocks ? e->channels - channel : e->block,
        .taps = scratch,
        .lines = scratch + taps_floats(e),
        .image = scratch + taps_floats(e) + lines_floats(e),
        .rows = scratch + taps_floats(e) + lines_floats(e) + image_floats(e),
        .product = at_channel(e->product, args->bindings[3], channel),
        .depthwise = at_channel(e->depthwise, args->bindings[5], channel),
    };
    uint64_t mode = uk_subnormals_drop();
    gather_taps(&w, (const float *)args->bindings[4] + channel);
    run_steps(&w, y, behind, mode);
    uk_subnormals_keep(mode);
}

static const struct hal_kernel kernel = {.name = "expand_dw_f32", .cpu = expand_cpu};
static const struct hal_kernel bf16_kernel = {.name = "expand_dw_bf16", .cpu = expand_cpu};

/* ---- the operator ---------------------------------------------------------------------------- */

static int64_t list_at(const struct rt_value *list, uint32_t item)
{
    return list->ints[item].value;
}

static enum status expand_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, RT_EXPAND_X);
    const struct rt_value *w = rt_shape_arg(call, RT_EXPAND_DW_W);
    const struct rt_value *kernel_size = rt_shape_arg(call, RT_EXPAND_KERNEL);
    const struct rt_value *stride = rt_shape_arg(call, RT_EXPAND_STRIDE);
    const struct rt_value *padding = rt_shape_arg(call, RT_EXPAND_PADDING);
    struct rt_dims *dims = &call->graph->dims;
    if (x->rank != 4 || w->rank != 4) {
        return rt_shape_refuse(call, "the input has rank %u and the weights rank %u, expected 4",
                               x->rank, w->rank);
    }
    struct rt_dim out[4] = {x->dims[0], w->dims[3]};
    for (uint32_t i = 0; i < 2; i++) {
        int64_t more = 2 * list_at(padding, i) - list_at(kernel_size, i);
        struct rt_dim room = rt_dim_add(dims, x->dims[2 + i], rt_dim_of(more));
        struct rt_dim steps = rt_dim_floordiv(dims, room, rt_dim_of(list_at(stride, i)));
        out[2 + i] = rt_dim_add(dims, steps, rt_dim_of(1));
    }
    return rt_shape_set_out(call, 0, 4, out);
}

static struct layer read_layer(struct rt_emit *emit, uint32_t min, uint32_t max,
                               uint32_t activation)
{
    const struct rt_value *name = rt_emit_value(emit, activation);
    return (struct layer){
        .min = (float)rt_emit_number(emit, min),
        .max = (float)rt_emit_number(emit, max),
        .activation = name->kind == RT_NONE ? RT_PW_COUNT : rt_chain_op_named(name->bytes),
        .unary = rt_activation_read(name),
    };
}

static enum status describe(struct rt_emit *emit, struct expand *e, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, RT_EXPAND_X), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *weights = rt_emit_arg(emit, RT_EXPAND_W);
    for (uint8_t d = 1; d < 4; d++) {
        if (x->dims[d] > INT32_MAX || out->dims[d] > INT32_MAX) {
            return error_set(err, ST_TOO_LARGE, "the image is too large");
        }
    }
    *e = (struct expand){
        .image_in = x->dims[1] * x->dims[2] * x->dims[3],
        .image_out = out->dims[1] * out->dims[2] * out->dims[3],
        .ins = (uint32_t)x->dims[1],
        .channels = (uint32_t)out->dims[1],
        .height = (uint32_t)x->dims[2],
        .width = (uint32_t)x->dims[3],
        .out_height = (uint32_t)out->dims[2],
        .out_width = (uint32_t)out->dims[3],
        .kernel_h = (uint32_t)rt_emit_ints(emit, RT_EXPAND_KERNEL, 0),
        .kernel_w = (uint32_t)rt_emit_ints(emit, RT_EXPAND_KERNEL, 1),
        .stride_h = (uint32_t)rt_emit_ints(emit, RT_EXPAND_STRIDE, 0),
        .stride_w = (uint32_t)rt_emit_ints(emit, RT_EXPAND_STRIDE, 1),
        .pad_top = (uint32_t)rt_emit_ints(emit, RT_EXPAND_PADDING, 0),
        .pad_left = (uint32_t)rt_emit_ints(emit, RT_EXPAND_PADDING, 1),
        .product = read_layer(emit, RT_EXPAND_MIN, RT_EXPAND_MAX, RT_EXPAND_ACTIVATION),
        .depthwise = read_layer(emit, RT_EXPAND_DW_MIN, RT_EXPAND_DW_MAX, RT_EXPAND_DW_ACTIVATION),
        .has_product = weights != NULL,
        .is_bf16 = weights && weights->dtype == DT_BF16,
        .in_is_bf16 = x->dtype == DT_BF16,
        .out_is_bf16 = out->dtype == DT_BF16,
    };
    return ST_OK;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static double macs_of(const struct expand *e, int64_t images)
{
    double product = e->has_product ? (double)e->height * e->width * e->ins : 0;
    double depthwise = (double)e->out_height * e->out_width * e->kernel_h * e->kernel_w;
    return (double)images * e->channels * (product + depthwise);
}

static int64_t cost_ns(const struct expand *e, int64_t images)
{
    double speed = MACS_PER_NS * (e->is_bf16 ? hal_cpu_uk()->bf16_speed : 1);
    double product = e->has_product ? (double)e->height * e->width * e->ins / speed : 0;
    double depthwise =
        (double)e->out_height * e->out_width * e->kernel_h * e->kernel_w / DEPTHWISE_MACS_PER_NS;
    double ns = (double)images * e->channels * (product + depthwise);
    return ns > 1e15 ? (int64_t)1e15 : (int64_t)ns + 1;
}

/* Chooses the channels and lines of a tile. Blocks of channels cost nothing, bands of lines compute
 * some lines twice. */
static void cut(struct expand *e, int64_t images, int64_t ns, const struct rt_machine *machine)
{
    int64_t panel = hal_cpu_uk()->f32_nr, overlap = rt_max(0, (int64_t)e->kernel_h - e->stride_h);
    int64_t wanted = rt_min(rt_cut_tiles(machine, ns), machine->few_tiles);
    e->block = (uint32_t)rt_min(e->channels, ceil_div(CHANNELS_MIN, panel) * panel);
    /* A few channels that are left join the last block. */
    bool joins = e->channels > e->block && e->channels % e->block < e->block / 2;
    e->blocks = joins ? e->channels / e->block : (uint32_t)ceil_div(e->channels, e->block);
    e->widest = joins ? e->block + e->channels % e->block : e->block;
    int64_t blocks = e->blocks * images;
    int64_t least = ceil_div(BAND_OVERLAPS * overlap, e->stride_h);
    e->band = (uint32_t)rt_cut_axis(e->out_height, ceil_div(wanted, blocks));
    e->band = (uint32_t)rt_min(rt_max(e->band, least), e->out_height);
    int64_t line = rt_max(e->width, e->out_width) * e->block * (int64_t)sizeof(float);
    int64_t lines = (LINES_BYTES / rt_max(line, 1) - e->kernel_h) / e->stride_h + 1;
    e->lines = (uint32_t)rt_min(rt_max(lines, 1), e->band);
}

static enum status expand_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, RT_EXPAND_X), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *weights = rt_emit_arg(emit, RT_EXPAND_W);
    const struct rt_tensor *bias = rt_emit_arg(emit, RT_EXPAND_BIAS);
    const struct rt_tensor *dw_bias = rt_emit_arg(emit, RT_EXPAND_DW_BIAS);
    struct expand e;
    if (out->numel == 0) {
        return ST_OK;
    }
    TRY(describe(emit, &e, err));
    if (out->dims[0] > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld images are too many", (long long)out->dims[0]);
    }
    int64_t ns = cost_ns(&e, out->dims[0]);
    cut(&e, out->dims[0], ns, rt_emit_machine(emit, &kernel));
    struct hal_binding bindings[] = {
        out->binding,
        x->binding,
        weights ? weights->binding : (struct hal_binding){0},
        bias ? bias->binding : (struct hal_binding){0},
        rt_emit_arg(emit, RT_EXPAND_DW_W)->binding,
        dw_bias ? dw_bias->binding : (struct hal_binding){0},
    };
    size_t floats = taps_floats(&e) + lines_floats(&e) + image_floats(&e);
    size_t rows = e.is_bf16 ? uk_gemm_bf16_scratch(hal_cpu_uk(), e.ins) : 0;
    struct hal_dispatch dispatch = {
        .kernel = e.is_bf16 ? &bf16_kernel : &kernel,
        .grid = {e.blocks, (uint32_t)ceil_div(e.out_height, e.band), (uint32_t)out->dims[0]},
        .constants = &e,
        .constants_bytes = sizeof(e),
        .bindings = bindings,
        .binding_count = 6,
        .scratch_bytes = floats * sizeof(float) + rows,
        .cost = (uint64_t)ns,
        .macs = macs_of(&e, out->dims[0]),
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

const struct rt_op rt_ops_expand_dw[] = {
    {.name = "expand_dw",
     .args = "TT?T?FFZ?TT?LLLFFZ?>T",
     .shape = expand_shape,
     .emit = expand_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST,
     .batch = rt_batch_each,
     .dtypes = 1u << DT_F32 | 1u << DT_BF16,
     .runs = &kernel},
    {.name = NULL},
};
