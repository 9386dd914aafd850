/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/resize_axis.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

/* ---- filters: the weight at a distance from the centre, in inputs ---------------------------- */

static double weigh_box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

static double weigh_bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys's cubic with a = -1/2. The order of the operations decides the last bits. */
static double weigh_bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
    if (x == 0) {
        return 1;
    }
    x *= M_PI;
    return sin(x) / x;
}

static double weigh_lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct {
    double (*weigh)(double x);
    double support; /* beyond this distance the weight is 0 */
} filters[] = {
    [IMAGE_NEAREST] = {NULL, 0},
    [IMAGE_BOX] = {weigh_box, 0.5},
    [IMAGE_BILINEAR] = {weigh_bilinear, 1},
    [IMAGE_BICUBIC] = {weigh_bicubic, 2},
    [IMAGE_LANCZOS] = {weigh_lanczos, 3},
    [IMAGE_LINEAR] = {weigh_bilinear, 1},
};

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool is_copy(const struct axis_task *task)
{
    return task->filter == IMAGE_NEAREST ||
           (task->in_count == task->out_count && task->in_length == task->in_count);
}

static double step_of(const struct axis_task *task)
{
    return task->in_length / (double)task->out_count;
}

/* How far the filter is stretched: over all inputs that become one output. */
static double scale_of(const struct axis_task *task)
{
    double step = step_of(task);
    return step < 1 || task->filter == IMAGE_LINEAR ? 1 : step;
}

static double support_of(const struct axis_task *task)
{
    return filters[task->filter].support * scale_of(task);
}

uint32_t axis_stride(const struct axis_task *task)
{
    if (is_copy(task)) {
        return 0;
    }
    double most = ceil(support_of(task)) * 2 + 1;
    return ((most < task->in_count ? (uint32_t)most : task->in_count) + 3) & ~3u;
}

static size_t weights_bytes(const struct axis_task *task)
{
    return (size_t)task->count * axis_stride(task) * sizeof(int16_t);
}

static size_t blocks_bytes(const struct axis_task *task)
{
    size_t groups = ((size_t)task->count + HAL_RESIZE_BLOCK - 1) / HAL_RESIZE_BLOCK;
    return groups * (axis_stride(task) / HAL_RESIZE_BLOCK) * HAL_RESIZE_BLOCK_BYTES;
}

size_t axis_bytes(const struct axis_task *task)
{
    size_t numbers = 2 * (size_t)task->count * sizeof(uint32_t);
    size_t doubles = axis_stride(task) * sizeof(double);
    return blocks_bytes(task) +
           align_up(align_up(numbers, 8) + doubles + 2 * weights_bytes(task) + 8, 64);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* No picture that anybody wants begins later. */
#define SUMS_MAX (1 << 20)

/* Places are sums of steps, as errors of rounding in them decide which input is nearest. */
static void init_nearest(struct hal_resize_axis *axis, const struct axis_task *task)
{
    double step = step_of(task), at = step * 0.5;
    if (task->first > SUMS_MAX) {
        at = step * ((double)task->first + 0.5);
    }
    for (uint64_t i = 0; i < task->first && task->first <= SUMS_MAX; i++) {
        at += step;
    }
    for (uint32_t i = 0; i < task->count; i++) {
        uint32_t from = (uint32_t)at;
        axis->from[i] = from < task->in_count ? from : task->in_count - 1;
        axis->taps[i] = 1;
        at += step;
    }
}

static void init_same(struct hal_resize_axis *axis, const struct axis_task *task)
{
    for (uint32_t i = 0; i < task->count; i++) {
        axis->from[i] = (uint32_t)task->first + i;
        axis->taps[i] = 1;
    }
}

static void store_weight(struct hal_resize_axis *axis, size_t at, double weight)
{
    double exact = weight * (1 << HAL_RESIZE_BITS);
    int32_t value = (int32_t)(weight < 0 ? exact - 0.5 : exact + 0.5);
    axis->high[at] = (int16_t)(value >> HAL_RESIZE_LOW_BITS);
    axis->low[at] = (int16_t)(value & ((1 << HAL_RESIZE_LOW_BITS) - 1));
}

/* |weights| has room for one output. */
static void init_output(struct hal_resize_axis *axis, const struct axis_task *task, uint32_t i,
                        double *weights)
{
    double step = step_of(task), scale = scale_of(task), support = support_of(task);
    double centre = ((double)(task->first + i) + 0.5) * step, sum = 0, per_input = 1 / scale;
    double low = centre - support + 0.5, high = centre + support + 0.5;
    uint32_t from = low < 0 ? 0 : (uint32_t)low;
    uint32_t end = high > task->in_count ? task->in_count : (uint32_t)high;
    from = from < end ? from : end - 1;
    uint32_t taps = end - from;
    must(taps <= axis->stride);
    axis->from[i] = from;
    axis->taps[i] = taps;
    for (uint32_t k = 0; k < taps; k++) {
        weights[k] = filters[task->filter].weigh((k + from - centre + 0.5) * per_input);
        sum += weights[k];
    }
    for (uint32_t k = 0; k < taps; k++) {
        uint32_t place = task->is_reversed ? taps - 1 - k : k;
        store_weight(axis, (size_t)i * axis->stride + place,
                     sum != 0 ? weights[k] / sum : weights[k]);
    }
}

static void init_sums(struct hal_resize_axis *axis, const struct axis_task *task, double *weights)
{
    axis->high = (int16_t *)(weights + axis->stride);
    axis->low = axis->high + (size_t)task->count * axis->stride;
    for (uint32_t i = 0; i < task->count; i++) {
        init_output(axis, task, i, weights);
    }
}

static void reverse(struct hal_resize_axis *axis, const struct axis_task *task)
{
    for (uint32_t i = 0; i < axis->count; i++) {
        axis->from[i] = task->in_count - axis->from[i] - axis->taps[i];
    }
}

void axis_init(struct hal_resize_axis *axis, const struct axis_task *task, void *memory)
{
    size_t numbers = align_up(2 * (size_t)task->count * sizeof(uint32_t), 8);
    *axis = (struct hal_resize_axis){.count = task->count,
                                     .is_copy = is_copy(task),
                                     .stride = axis_stride(task),
                                     .blocks = memory};
    memory = (uint8_t *)memory + blocks_bytes(task);
    axis->from = memory;
    axis->taps = axis->from + task->count;
    if (task->filter == IMAGE_NEAREST) {
        init_nearest(axis, task);
    } else if (axis->is_copy) {
        init_same(axis, task);
    } else {
        init_sums(axis, task, (void *)((uint8_t *)memory + numbers));
    }
    if (task->is_reversed) {
        reverse(axis, task);
    }
    for (uint32_t i = 0; i < task->count; i++) {
        uint32_t taps = axis->taps[i];
        axis->tap_count_max = taps > axis->tap_count_max ? taps : axis->tap_count_max;
    }
    axis->block_count = (axis->tap_count_max + HAL_RESIZE_BLOCK - 1) / HAL_RESIZE_BLOCK;
}

static int32_t low_digit(int32_t value)
{
    return ((value + 128) & 255) - 128;
}

/* The weight of |tap| of output |i|, which is |place| taps into its blocks. */
static bool pack_weight(struct hal_resize_axis *axis, uint32_t i, uint32_t tap, uint32_t place)
{
    size_t at = (size_t)i * axis->stride + tap;
    int32_t value = axis->high[at] * (1 << HAL_RESIZE_LOW_BITS) + axis->low[at];
    size_t block = (size_t)(i / HAL_RESIZE_BLOCK) * axis->block_count + place / HAL_RESIZE_BLOCK;
    int8_t *to = axis->blocks + block * HAL_RESIZE_BLOCK_BYTES +
                 (size_t)(i % HAL_RESIZE_BLOCK) * HAL_RESIZE_BLOCK + place % HAL_RESIZE_BLOCK;
    for (int digit = 0; digit < HAL_RESIZE_DIGITS; digit++) {
        to[digit * HAL_RESIZE_BLOCK * HAL_RESIZE_BLOCK] = (int8_t)low_digit(value);
        value = (value - low_digit(value)) / 256;
    }
    return value == 0;
}

/* Blocks have places for more taps than the outputs. Places behind the last input go in front. */
void axis_pack(struct hal_resize_axis *axis, uint32_t end)
{
    uint32_t places = axis->block_count * HAL_RESIZE_BLOCK;
    bool fits = !axis->is_copy;
    for (uint32_t i = 0; i < axis->count && fits; i++) {
        uint32_t last = end - places, from = axis->from[i] < last ? axis->from[i] : last;
        size_t block = (size_t)(i / HAL_RESIZE_BLOCK) * axis->block_count;
        must(end >= places && axis->from[i] + axis->taps[i] <= from + places);
        for (uint32_t tap = 0; tap < axis->taps[i] && fits; tap++) {
            fits = pack_weight(axis, i, tap, tap + axis->from[i] - from);
        }
        memcpy(axis->blocks + block * HAL_RESIZE_BLOCK_BYTES +
                   HAL_RESIZE_DIGITS * HAL_RESIZE_BLOCK * HAL_RESIZE_BLOCK +
                   i % HAL_RESIZE_BLOCK * sizeof(from),
               &from, sizeof(from));
    }
    axis->is_packed = fits;
}

void axis_find_range(const struct hal_resize_axis *axis, uint32_t *first, uint32_t *end)
{
    *first = UINT32_MAX;
    *end = 0;
    for (uint32_t i = 0; i < axis->count; i++) {
        uint32_t last = axis->from[i] + axis->taps[i];
        *first = axis->from[i] < *first ? axis->from[i] : *first;
        *end = last > *end ? last : *end;
    }
}
