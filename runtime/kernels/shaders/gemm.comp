/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of gemm.c: images of pixels times packed weights. On vector units, each lane keeps a
 * tile of ROWS x 8 outputs in registers and reads both operands itself. On a GPU, the workgroup
 * copies DEPTH channels of both operands to shared memory, from where each lane multiplies the rows
 * and columns of its own outputs. The form for big tiles copies more of both, and each lane has
 * twice as many outputs, so each copied number is used more often.
 *
 * form gemm_big: -DGPU -DBIG
 * form gemm_gpu: -DGPU
 * form gemm:
 */
#include "runtime/kernels/shaders/gemm.glsl"

#ifdef BIG
#define ROWS 8u /* outputs in a lane's registers */
#else
#define ROWS 4u
#endif

#ifndef GPU

/* ---- registers ----------------------------------------------------------------------------- */

void multiply_taps(Block b, Pixel pixels[ROWS], uint column, inout vec4 sums[2u * ROWS])
{
    for (int64_t ty = 0l; ty < K.y.taps; ty++) {
        for (int64_t tx = 0l; tx < K.x.taps; tx++) {
            uint64_t at[ROWS], any = 0ul;
            vec4 exists;
            for (uint m = 0u; m < ROWS; m++) {
                at[m] = tap_address(pixels[m], ty, tx);
                exists[m] = at[m] != 0ul ? 1.0 : 0.0;
                any = at[m] != 0ul ? at[m] : any;
            }
            if (any == 0ul) {
                continue;
            }
            for (uint m = 0u; m < ROWS; m++) {
                at[m] = at[m] != 0ul ? at[m] : any; /* a valid address; the value is not used */
            }
            uint64_t row = column_address(b, column) + uint64_t(4l * tap_row(ty, tx) * K.width);
            for (uint c = 0u; c < walk.channels; c++) {
                vec4 w0 = F32x4(row).at[0], w1 = F32x4(row).at[1];
                row += uint64_t(4l * K.width);
                for (uint m = 0u; m < ROWS; m++) {
                    float a = exists[m] != 0 ? F32(at[m]).at[c] : 0.0;
                    sums[2u * m] += a * w0;
                    sums[2u * m + 1u] += a * w1;
                }
            }
        }
    }
}

void multiply_in_registers(Block b)
{
    uint wide = (b.columns + 7u) / 8u, high = (b.pixels + ROWS - 1u) / ROWS;
    for (uint item = lane(); item < wide * high; item += lanes()) {
        uint column = item % wide * 8u, first = item / wide * ROWS;
        Pixel pixels[ROWS];
        vec4 sums[2u * ROWS];
        for (uint m = 0u; m < ROWS; m++) {
            pixels[m] = find_pixel(b, first + m);
            sums[2u * m] = sums[2u * m + 1u] = vec4(0.0);
        }
        multiply_taps(b, pixels, column, sums);
        for (uint m = 0u; m < ROWS; m++) {
            for (uint j = 0u; j < 8u; j++) {
                write_out(b, pixels[m], column + j, sums[2u * m + j / 4u][j % 4u]);
            }
        }
    }
}

void main()
{
    find_walk();
    multiply_in_registers(find_block());
}

#else

/* ---- shared memory ------------------------------------------------------------------------- */

#ifdef BIG
const uint HIGH = RT_GEMM_BIG_ROWS, WIDE = RT_GEMM_BIG_COLUMNS;
#else
const uint HIGH = 32u; /* pixels that are multiplied at a time */
const uint WIDE = 64u; /* columns */
#endif
#define DEPTH 16u /* channels */

#include "runtime/kernels/shaders/gemm_shared.glsl"

shared float shared_a[DEPTH][HIGH + 1u]; /* the channels of a column are in different banks */
shared vec4 shared_b[DEPTH][WIDE / 4u];

/* Copies summands [begin, begin + DEPTH), with zeros after the last. */
void share(Block b, uint column, uint begin)
{
    for (uint i = lane(); i < HIGH * (DEPTH / 4u); i += lanes()) {
        uint c = i % (DEPTH / 4u), m = i / (DEPTH / 4u);
        vec4 a = read_pixel(shared_pixels[m], begin + 4u * c);
        for (uint j = 0u; j < 4u; j++) {
            shared_a[4u * c + j][m] = a[j];
        }
    }
    uint j = lane() % (WIDE / 4u); /* the number of lanes is a multiple of these */
    uint64_t weights = weights_of(b, column + 4u * j);
    for (uint c = lane() / (WIDE / 4u); c < DEPTH; c += lanes() / (WIDE / 4u)) {
        shared_b[c][j] = read_weights(weights, begin + c);
    }
}

void multiply_shared(Block b, uint column, uint part)
{
    uint x = part % ACROSS, y = part / ACROSS;
    bool works = y < DOWN;
    vec4 sums[2u * ROWS];
    for (uint m = 0u; m < 2u * ROWS; m++) {
        sums[m] = vec4(0.0);
    }
    y = works ? y : 0u;
    for (uint begin = 0u; begin < depth(); begin += DEPTH) {
        share(b, column, begin);
        barrier();
        for (uint d = 0u; d < DEPTH; d++) {
            vec4 w0 = shared_b[d][x], w1 = shared_b[d][x + ACROSS];
            [[unroll]] for (uint m = 0u; m < ROWS; m++) {
                float a = shared_a[d][y + m * DOWN];
                sums[2u * m] += a * w0;
                sums[2u * m + 1u] += a * w1;
            }
        }
        barrier();
    }
    write_sums(b, column, x, y, works, sums);
}

#endif
