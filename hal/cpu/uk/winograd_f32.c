/* SPDX-License-Identifier: MIT */
/*
 * Winograd's convolution: see uk_winograd.h. A vector holds channels, so the transformations are
 * sums of vectors.
 *
 * F(4 x 4) interpolates at 0, +-sqrt(1/2), +-sqrt(2) and infinity. With the usual points 0, +-1,
 * +-2 the largest rounding error is four times as large, and the transformations take as many
 * operations. The transformed kernels are computed in double precision.
 */
#include "config.h"

#include <math.h>

#include "base/bytes.h"
#include "hal/cpu/uk/level.h"

#define SIDE_MAX 4
#define PATCH_MAX (SIDE_MAX + 2)

#define ROOT_2 1.41421356237309504880
#define ROOT_HALF 0.70710678118654752440

/* ---- transformations along one axis ---------------------------------------------------------- */

/* B^T d */
UK_INLINE void patch_line(vf out[PATCH_MAX], const vf d[PATCH_MAX], const int side)
{
    if (side == 2) {
        out[0] = d[0] - d[2];
        out[1] = d[1] + d[2];
        out[2] = d[2] - d[1];
        out[3] = d[1] - d[3];
        return;
    }
    vf even = d[4] - 2.0f * d[2], odd = d[3] - 2.0f * d[1];
    out[1] = even + (float)ROOT_HALF * odd;
    out[2] = even - (float)ROOT_HALF * odd;
    even = d[4] - 0.5f * d[2];
    odd = d[3] - 0.5f * d[1];
    out[3] = even + (float)ROOT_2 * odd;
    out[4] = even - (float)ROOT_2 * odd;
    out[0] = d[0] + d[4] - 2.5f * d[2];
    out[5] = d[1] + d[5] - 2.5f * d[3];
}

/* A^T m */
UK_INLINE void output_line(vf out[SIDE_MAX], const vf m[PATCH_MAX], const int side)
{
    vf sum = m[1] + m[2], difference = m[1] - m[2];
    if (side == 2) {
        out[0] = m[0] + sum;
        out[1] = difference - m[3];
        return;
    }
    vf outer_sum = m[3] + m[4], outer_difference = m[3] - m[4];
    out[0] = m[0] + sum + outer_sum;
    out[1] = (float)ROOT_HALF * difference + (float)ROOT_2 * outer_difference;
    out[2] = 0.5f * sum + 2.0f * outer_sum;
    out[3] = m[5] + (float)(ROOT_HALF / 2) * difference + (float)(ROOT_2 * 2) * outer_difference;
}

/* G g */
UK_INLINE void kernel_line(double out[PATCH_MAX], const double g[3], const int side)
{
    if (side == 2) {
        out[0] = g[0];
        out[1] = 0.5 * (g[0] + g[1] + g[2]);
        out[2] = 0.5 * (g[0] - g[1] + g[2]);
        out[3] = g[2];
        return;
    }
    double even = g[0] + 0.5 * g[2], odd = ROOT_HALF * g[1];
    out[0] = g[0];
    out[1] = (even + odd) * (-2.0 / 3.0);
    out[2] = (even - odd) * (-2.0 / 3.0);
    even = g[0] + 2.0 * g[2];
    odd = ROOT_2 * g[1];
    out[3] = (even + odd) * (1.0 / 6.0);
    out[4] = (even - odd) * (1.0 / 6.0);
    out[5] = g[2];
}

/* ---- kernels --------------------------------------------------------------------------------- */

UK_INLINE void pack_kernel(float *to, size_t element, const float *w, const int side)
{
    const int patch = side + 2;
    double rows[PATCH_MAX][3], out[PATCH_MAX];
    for (int x = 0; x < 3; x++) {
        double column[3] = {(double)w[x], (double)w[3 + x], (double)w[6 + x]};
        kernel_line(out, column, side);
        for (int y = 0; y < patch; y++) {
            rows[y][x] = out[y];
        }
    }
    for (int y = 0; y < patch; y++) {
        kernel_line(out, rows[y], side);
        for (int x = 0; x < patch; x++) {
            to[(size_t)(y * patch + x) * element] = (float)out[x];
        }
    }
}

UK_INLINE void pack_panel(const struct uk_winograd_pack *p, uint32_t panel, const int side)
{
    size_t first = (size_t)panel * UK_NR, left = p->n - first, filled = left < UK_NR ? left : UK_NR;
    float *to = p->packed + first * p->channels;
    for (size_t k = 0; k < p->channels; k++, to += UK_NR) {
        const float *w = p->w + (first * p->channels + k) * 9;
        for (size_t j = 0; j < filled; j++) {
            pack_kernel(to + j, p->element, w + j * p->channels * 9, side);
        }
        for (size_t e = 0; e < (size_t)uk_winograd_elements((uint32_t)side) && filled < UK_NR;
             e++) {
            memset(to + e * p->element + filled, 0, (UK_NR - filled) * sizeof(float));
        }
    }
}

void UK_NAME(winograd_pack_f32)(const struct uk_winograd_pack *p, uint32_t panel_begin,
                                uint32_t panel_end)
{
    must(p->side == 2 || p->side == SIDE_MAX);
    must(panel_begin <= panel_end && panel_end <= ((size_t)p->n + UK_NR - 1) / UK_NR);
    for (uint32_t panel = panel_begin; panel < panel_end; panel++) {
        if (p->side == 2) {
            pack_panel(p, panel, 2);
        } else {
            pack_panel(p, panel, SIDE_MAX);
        }
    }
}

/* ---- patches --------------------------------------------------------------------------------- */

/* The scratch memory of a call. */
struct memory {
    float *v; /* transformed patches: by element a matrix with a row for each tile */
    size_t v_row, v_element;
    float *m; /* sums: likewise, with UK_WINOGRAD_COLUMNS columns */
    size_t m_element;
    float *patch; /* of a tile at a border: its inputs, with zeros for the padding */
};

/* Where a tile is. */
struct place {
    ptrdiff_t image;
    int64_t y, x; /* of its first output */
};

static struct place place_of(const struct uk_winograd_f32 *w, uint64_t tile)
{
    uint64_t across = (w->out_width - 1) / w->side + 1, down = (w->out_height - 1) / w->side + 1;
    uint64_t row = tile / across;
    return (struct place){
        .image = (ptrdiff_t)(row / down),
        .y = (int64_t)(row % down * w->side),
        .x = (int64_t)(tile % across * w->side),
    };
}

/* Transforms one patch whose pixels are |pixel| and lines |line| floats apart. */
UK_INLINE void transform_patch(const struct memory *to, float *v, const float *x, ptrdiff_t line,
                               ptrdiff_t pixel, size_t channels, const int side)
{
    const int patch = side + 2;
    for (size_t c = 0; c < channels; c += UK_VL) {
        vf rows[PATCH_MAX][PATCH_MAX], in[PATCH_MAX], out[PATCH_MAX];
        size_t left = channels - c;
        for (int i = 0; i < patch; i++) {
            const float *column = x + i * pixel + c;
            UK_UNROLL
            for (int j = 0; j < patch; j++) {
                in[j] =
                    left < UK_VL ? v_load_part(column + j * line, left) : v_load(column + j * line);
            }
            patch_line(out, in, side);
            UK_UNROLL
            for (int j = 0; j < patch; j++) {
                rows[j][i] = out[j];
            }
        }
        for (int j = 0; j < patch; j++) {
            patch_line(out, rows[j], side);
            UK_UNROLL
            for (int i = 0; i < patch; i++) {
                v_store(v + (size_t)(j * patch + i) * to->v_element + c, out[i]);
            }
        }
    }
}

/* The part of [at, at + count) that lies in [0, size), relative to |at|. */
static void clip(int64_t at, int64_t count, int64_t size, int64_t *out_begin, int64_t *out_end)
{
    int64_t begin = at < 0 ? -at : 0, end = size - at < count ? size - at : count;
    *out_begin = begin < count ? begin : count;
    *out_end = end > *out_begin ? end : *out_begin;
}

/* Copies the patch at row |y| and column |x|, which is partly in the padding. */
static void gather_patch(const struct uk_winograd_f32 *w, float *to, const float *image, int64_t y,
                         int64_t x)
{
    int64_t side = w->side + 2, row, row_end, column, column_end;
    size_t channels = w->channels;
    clip(y, side, w->height, &row, &row_end);
    clip(x, side, w->width, &column, &column_end);
    memset(to, 0, (size_t)(side * side) * channels * sizeof(float));
    for (int64_t i = row; i < row_end; i++) {
        for (int64_t j = column; j < column_end; j++) {
            memcpy(to + (size_t)(i * side + j) * channels,
                   image + (y + i) * w->x_line + (x + j) * w->x_pixel, channels * sizeof(float));
        }
    }
}

UK_INLINE void transform_in(const struct uk_winograd_f32 *w, const struct memory *memory,
                            const int side)
{
    const int64_t patch = side + 2;
    for (uint64_t tile = w->begin; tile < w->end; tile++) {
        struct place at = place_of(w, tile);
        const float *image = w->x + at.image * w->x_image;
        float *v = memory->v + (tile - w->begin) * memory->v_row;
        int64_t y = at.y - w->pad_top, x = at.x - w->pad_left;
        if (y >= 0 && x >= 0 && y + patch <= w->height && x + patch <= w->width) {
            transform_patch(memory, v, image + y * w->x_line + x * w->x_pixel, w->x_line,
                            w->x_pixel, w->channels, side);
        } else {
            gather_patch(w, memory->patch, image, y, x);
            transform_patch(memory, v, memory->patch, (ptrdiff_t)(patch * w->channels),
                            (ptrdiff_t)w->channels, w->channels, side);
        }
    }
}

/* ---- sums and outputs ------------------------------------------------------------------------ */

/* The weights that are read after |width| columns of element |e| from |column| on; NULL: none. */
static const float *next_weights(const struct uk_winograd_f32 *w, size_t column, size_t width,
                                 size_t e)
{
    if (e + 1 < uk_winograd_elements(w->side)) {
        return w->u + (e + 1) * w->u_element + column * w->channels;
    }
    return column + width < w->n ? w->u + (column + width) * w->channels : NULL;
}

/* Multiplies all elements for |width| columns from |column| on, in whole vectors. */
static void multiply(const struct uk_winograd_f32 *w, const struct memory *memory, size_t column,
                     size_t width)
{
    struct uk_gemm_f32 g = {
        .a_row = (ptrdiff_t)memory->v_row,
        .run = w->channels,
        .k = w->channels,
        .c_row = UK_WINOGRAD_COLUMNS,
        .lines = 1,
        .m = (uint32_t)(w->end - w->begin),
        .n = (uint32_t)((width + UK_VL - 1) / UK_VL * UK_VL),
        .min = -INFINITY,
        .max = INFINITY,
    };
    for (size_t e = 0; e < uk_winograd_elements(w->side); e++) {
        g.a = memory->v + e * memory->v_element;
        g.b = w->u + e * w->u_element + column * w->channels;
        g.next_b = next_weights(w, column, width, e);
        g.c = memory->m + e * memory->m_element;
        UK_NAME(gemm_f32)(&g);
    }
}

/* The outputs of a tile: |rows| x |columns| of them are in the image. */
struct target {
    float *y;
    const float *residual, *bias;
    int64_t rows, columns;
};

/* Writes the outputs of one row of a tile for a vector of channels, or |part| of them. */
UK_INLINE void write_row(const struct uk_winograd_f32 *w, const struct target *to, vf *sums,
                         int64_t row, size_t c, vf bias, size_t part, const int side)
{
    vf min = v_splat(w->min), max = v_splat(w->max);
    UK_UNROLL
    for (int i = 0; i < side; i++) {
        ptrdiff_t at = row * w->y_line + i * w->y_pixel + (ptrdiff_t)c;
        if (i >= to->columns) {
            return;
        }
        vf y = sums[i] + bias;
        if (to->residual) {
            y += part ? v_load_part(to->residual + at, part) : v_load(to->residual + at);
        }
        y = v_clamp(y, min, max);
        if (part) {
            v_store_part(to->y + at, y, part);
        } else {
            v_store(to->y + at, y);
        }
    }
}

UK_INLINE void write_tile(const struct uk_winograd_f32 *w, const struct memory *memory,
                          const float *m, const struct target *to, size_t width, const int side)
{
    const int patch = side + 2;
    for (size_t c = 0; c < width; c += UK_VL) {
        vf rows[SIDE_MAX][PATCH_MAX], in[PATCH_MAX], out[SIDE_MAX], bias = {0};
        size_t part = width - c < UK_VL ? width - c : 0;
        if (to->bias) {
            bias = part ? v_load_part(to->bias + c, part) : v_load(to->bias + c);
        }
        for (int i = 0; i < patch; i++) {
            UK_UNROLL
            for (int j = 0; j < patch; j++) {
                in[j] = v_load(m + (size_t)(j * patch + i) * memory->m_element + c);
            }
            output_line(out, in, side);
            UK_UNROLL
            for (int j = 0; j < side; j++) {
                rows[j][i] = out[j];
            }
        }
        for (int j = 0; j < to->rows; j++) {
            output_line(out, rows[j], side);
            write_row(w, to, out, j, c, bias, part, side);
        }
    }
}

/* The activation of a tile's outputs, which are in the first-level cache. */
static void activate_tile(const struct uk_winograd_f32 *w, const struct target *to, size_t width)
{
    for (int64_t row = 0; row < to->rows; row++) {
        float *y = to->y + row * w->y_line;
        for (int64_t i = 0; i < to->columns; i++, y += w->y_pixel) {
            w->activation(y, y, width);
        }
    }
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

UK_INLINE void transform_out(const struct uk_winograd_f32 *w, const struct memory *memory,
                             size_t column, size_t width, const int side)
{
    for (uint64_t tile = w->begin; tile < w->end; tile++) {
        struct place at = place_of(w, tile);
        ptrdiff_t first =
            at.image * w->y_image + at.y * w->y_line + at.x * w->y_pixel + (ptrdiff_t)column;
        struct target to = {
            .y = w->y + first,
            .residual = w->residual ? w->residual + first : NULL,
            .bias = w->bias ? w->bias + column : NULL,
            .rows = min_i64(side, w->out_height - at.y),
            .columns = min_i64(side, w->out_width - at.x),
        };
        write_tile(w, memory, memory->m + (tile - w->begin) * UK_WINOGRAD_COLUMNS, &to, width,
                   side);
        if (w->activation) {
            activate_tile(w, &to, width);
        }
    }
}

UK_INLINE void run(const struct uk_winograd_f32 *w, const struct memory *memory, const int side)
{
    transform_in(w, memory, side);
    for (size_t column = 0; column < w->n; column += UK_WINOGRAD_COLUMNS) {
        size_t left = w->n - column;
        size_t width = left < UK_WINOGRAD_COLUMNS ? left : UK_WINOGRAD_COLUMNS;
        multiply(w, memory, column, width);
        transform_out(w, memory, column, width, side);
    }
}

void UK_NAME(winograd_f32)(const struct uk_winograd_f32 *w)
{
    size_t tiles = w->end - w->begin, row = uk_winograd_row(w->channels);
    size_t elements = uk_winograd_elements(w->side);
    struct memory memory = {
        .v = w->scratch,
        .v_row = row,
        .v_element = uk_winograd_element(tiles, row),
        .m_element = uk_winograd_element(tiles, UK_WINOGRAD_COLUMNS),
    };
    memory.m = memory.v + elements * memory.v_element;
    memory.patch = memory.m + elements * memory.m_element;
    must(w->begin <= w->end && uk_is_aligned(w->u) && uk_is_aligned(w->scratch));
    must(w->side == 2 || w->side == SIDE_MAX);
    _Static_assert(UK_WINOGRAD_COLUMNS % UK_NR == 0, "columns are whole panels");
    if (w->side == 2) {
        run(w, &memory, 2);
    } else {
        run(w, &memory, SIDE_MAX);
    }
}
