/* SPDX-License-Identifier: MIT */
/*
 * Shared by the forms of qgemm.c's dispatch: the outputs of a tile, their summands, and the
 * operations on sums. Four neighbours in k are read at a time, as a word.
 *
 * With CENTRED, a form multiplies pixels minus 128, which are s8 like the weights: its sums lack
 * 128 times the sums of the weights.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/kernels/qgemm.h"

CONSTANTS(rt_qgemm);

#define WORD 4u

/* The outputs of the tile; the same for all lanes. */
struct Block {
    int y, x, nx; /* output positions */
    uint pixels, columns;
    uint64_t in_, weights, columns_at, scales; /* addresses: image's group, panels */
    int64_t row, column;                       /* pixels and channels of the output before the tile */
};

Block find_block()
{
    Block b;
    uvec3 t = tile();
    int64_t image = int64_t(t.y) / K.groups, group = int64_t(t.y) % K.groups;
    int64_t outs = K.outs / K.groups, panels = (outs + K.width - 1l) / K.width;
    int64_t first = int64_t(t.z) * K.panels, panel = group * panels + first;
    b.y = int(int64_t(t.x) / K.bands_x * K.band_y);
    b.x = int(int64_t(t.x) % K.bands_x * K.band_x);
    b.nx = int(min(K.band_x, K.x.out - b.x));
    b.pixels = uint(min(K.band_y, K.y.out - b.y)) * uint(b.nx);
    b.columns = uint(min(K.panels * K.width, outs - first * K.width));
    b.in_ = binding(RT_QGEMM_IN) + uint64_t(image * K.y.in * K.x.in * K.channels +
                                            group * (K.channels / K.groups));
    b.weights = binding(RT_QGEMM_WEIGHTS) + uint64_t(panel * K.panel_bytes);
    b.columns_at = binding(RT_QGEMM_COLUMNS) + uint64_t(panel * 4l * UK_COLUMN_ARRAYS * K.width);
    if (variant == RT_QGEMM_GROUPED) {
        b.scales = binding(RT_QGEMM_GROUPS) + uint64_t(panel * 4l * (K.k / K.group) * K.width);
    }
    b.row = image * K.y.out * K.x.out;
    b.column = group * outs + first * K.width;
    return b;
}

/* A pixel of the block: its place in the output's image, and the input position of its tap 0. */
struct Pixel {
    uint exists;
    int row;
    int in_y, in_x;
};

Pixel find_pixel(Block b, uint index)
{
    Pixel p;
    p.exists = uint(index < b.pixels);
    index = min(index, b.pixels - 1u);
    int y = b.y + int(index / uint(b.nx)), x = b.x + int(index % uint(b.nx));
    p.row = y * int(K.x.out) + x;
    p.in_y = y * int(K.y.stride) - int(K.y.padding);
    p.in_x = x * int(K.x.stride) - int(K.x.padding);
    return p;
}

/* ---- words --------------------------------------------------------------------------------- */

/* The runs of a pixel as they are packed: see gather() in qgemm.c. */
struct Runs {
    uint count, whole, padded; /* of runs; numbers in a run, also rounded up to words */
    uint channels, width;      /* of a tap; taps of a line that are separate runs */
};

Runs find_runs()
{
    Runs r;
    uint taps = K.merges == 1u ? uint(K.x.kernel) : 1u, unit = K.is_4bit == 1u ? 8u : 4u;
    r.channels = uint(K.channels / K.groups);
    r.width = uint(K.x.kernel) / taps;
    r.count = uint(K.y.kernel) * r.width;
    r.whole = r.channels * taps;
    r.padded = (r.whole + unit - 1u) / unit * unit;
    return r;
}

/* The address of a tap's channels; 0: in the padding. */
uint64_t tap_address(Block b, Pixel p, uint ty, uint tx)
{
    int y = p.in_y + int(ty) * int(K.y.dilation), x = p.in_x + int(tx) * int(K.x.dilation);
    bool inside = y >= 0 && y < int(K.y.in) && x >= 0 && x < int(K.x.in);
    return inside ? b.in_ + uint64_t((int64_t(y) * K.x.in + x) * K.channels) : 0ul;
}

/* Numbers k to k + 3 of run |run|, in memory order. */
uint input_word(Block b, Runs r, Pixel p, uint run, uint k)
{
    uint ty = run / r.width, tx = run % r.width, c = k, word = 0u;
    if (r.whole != r.channels) {
        tx = k / r.channels;
        c = k - tx * r.channels;
    }
    uint64_t at = tap_address(b, p, ty, tx);
    if (c + WORD <= r.channels && (at == 0ul || ((uint(at) + c) & 3u) == 0u)) {
        return at == 0ul ? uint(K.x_zero) * 0x01010101u : U32(at + c).at[0];
    }
    for (uint i = 0u; i < WORD && k + i < r.whole; i++) {
        word |= (at == 0ul ? uint(K.x_zero) : uint(U8(at + c).at[0])) << 8u * i;
        if (++c == r.channels) {
            c = 0u;
            at = tap_address(b, p, ty, ++tx);
        }
    }
    return word;
}

/* The address of column |j| in its panel. */
uint64_t column_address(Block b, uint j)
{
    uint width = K.width, bytes = K.word == WORD ? 4u : 2u;
    return b.weights + uint64_t(int64_t(j / width) * K.panel_bytes + j % width * bytes);
}

/* Rows k to k + 3 of the column at |column|, in the order of pack_u8.c; 4-bit numbers are in the
 * upper bits. */
uint weight_word(uint64_t column, uint k)
{
    uint width = K.width;
    if (K.word == WORD) {
        if (K.is_4bit == 0u) {
            return U32(column).at[k / 4u * width];
        }
        uint bits = U32(column).at[k / 8u * width];
        return ((k & 4u) == 0u ? bits << 4 : bits) & 0xf0f0f0f0u;
    }
    if (K.is_4bit == 1u) {
        uint bits = uint(U16(column).at[k / 4u * width]);
        return (bits << 4 & 0xf0f0u) | (bits & 0xf0f0u) << 16;
    }
    return uint(U16(column).at[k / 2u * width]) | uint(U16(column).at[(k / 2u + 1u) * width]) << 16;
}

/* ---- results ------------------------------------------------------------------------------- */

/* RT_QGEMM_GROUPED: the scale for row |k| of column |j|. */
float group_scale(Block b, uint k, uint j)
{
    uint row = j / K.width * (uint(K.k) / K.group) + k / K.group;
    return F32(b.scales).at[row * K.width + j % K.width];
}

/* Writes the result of the sum |whole| or, for RT_QGEMM_GROUPED, |total|: see struct uk_gemm_u8. */
void write_out(Block b, Pixel p, uint column, int whole, float total)
{
    if (p.exists == 0u || column >= b.columns) {
        return;
    }
    uint64_t at = b.columns_at +
                  uint64_t(4u * (column / K.width * UK_COLUMN_ARRAYS * K.width + column % K.width));
    int64_t row = b.row + p.row, to = row * K.outs + b.column + column;
    precise float scale = F32(at).at[UK_COLUMN_SCALE * K.width], row_scale = 1.0;
    precise float bias = F32(at).at[UK_COLUMN_BIAS * K.width];
    int zero = 0;
    if (binding(RT_QGEMM_ROW_SCALES) != 0ul) {
        row_scale = F32(binding(RT_QGEMM_ROW_SCALES) + uint64_t(4l * row)).at[0];
        zero = int(U32(binding(RT_QGEMM_ROW_ZEROS) + uint64_t(4l * row)).at[0]);
    }
#ifdef CENTRED
    zero -= 128;
#endif
    precise float factor = scale * row_scale, y;
    if (variant == RT_QGEMM_GROUPED) {
        total += F32(at).at[UK_COLUMN_OFFSET * K.width];
        total -= float(zero) * F32(at).at[UK_COLUMN_SUM * K.width];
        y = total * factor + bias;
    } else {
        whole += int(U32(at).at[UK_COLUMN_OFFSET * K.width]);
        whole -= zero * int(U32(at).at[UK_COLUMN_SUM * K.width]);
        y = float(whole) * factor + bias;
    }
    y = is_nan(y) ? y : min(max(y, K.min), K.max);
    if (K.is_f32 == 1u) {
        F32(binding(RT_QGEMM_OUT) + uint64_t(4l * to)).at[0] = y;
    } else {
        U8(binding(RT_QGEMM_OUT) + uint64_t(to)).at[0] = uint8_t(int(roundEven(y)) + K.zero);
    }
}
