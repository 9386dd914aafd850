/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of gemm.c for two operands of halves, on GPUs that multiply pairs of halves as fast
 * as one float: CHAIN products are added as halves, and the sums of these chains as floats.
 *
 * A chain rounds each of its products at most CHAIN times, by 2^-11 of the sum so far. So the error
 * is at most CHAIN * 2^-11 times the sum of the products' magnitudes. As roundings go both ways, it
 * usually is about that of rounding such a sum once to a half. This holds only while halves neither
 * overflow nor lose low bits. Therefore, in each round, the summands of a pixel and the weights of
 * a column are multiplied by a power of two that brings the largest into [2^5, 2^6): then CHAIN
 * products are less than 2^15, and numbers below the smallest normal half are less than 2^-24 of
 * the largest product. Infinities and NaN do not count for the largest, and reach the result.
 *
 * form gemm_f16: GL_EXT_shader_explicit_arithmetic_types_float16 GL_KHR_memory_scope_semantics
 */
#include "runtime/kernels/shaders/gemm.glsl"

#define ROWS 4u   /* outputs in a lane's registers */
#define HIGH 32u  /* pixels that are multiplied at a time */
#define WIDE 64u  /* columns */
#define DEPTH 32u /* summands of a round */
#define CHAIN 8u

#include "runtime/kernels/shaders/gemm_shared.glsl"

shared f16vec4 shared_a[HIGH][DEPTH / 4u + 1u];
shared f16vec4 shared_b[DEPTH][WIDE / 4u];
/* The bits of the largest magnitude in each row and column. */
shared uint largest_a[HIGH], largest_b[WIDE];

uint finite_bits(float v)
{
    uint bits = floatBitsToUint(v) & 0x7fffffffu;
    return bits < 0x7f800000u ? bits : 0u;
}

uint bits_of(vec4 v)
{
    return max(max(finite_bits(v.x), finite_bits(v.y)), max(finite_bits(v.z), finite_bits(v.w)));
}

/* 2^(5 - exponent of the largest), or the inverse of that. */
float scale_of(uint largest)
{
    return uintBitsToFloat(largest == 0u ? 127u << 23 : 259u - (largest >> 23) << 23);
}

float scale_back(uint largest)
{
    return uintBitsToFloat(largest == 0u ? 127u << 23 : (largest >> 23) - 5u << 23);
}

/* Copies summands [begin, begin + DEPTH) unscaled, and finds the largest magnitudes. */
void share(Block b, uint column, uint begin)
{
    for (uint i = lane(); i < HIGH * DEPTH / 4u; i += lanes()) {
        uint c = i % (DEPTH / 4u), m = i / (DEPTH / 4u);
        vec4 a = read_pixel(shared_pixels[m], begin + 4u * c);
        shared_a[m][c] = f16vec4(a);
        atomicMax(largest_a[m], bits_of(a), gl_ScopeWorkgroup, gl_StorageSemanticsNone,
                  gl_SemanticsRelaxed);
    }
    uint j = lane() % (WIDE / 4u); /* the number of lanes is a multiple of these */
    uint64_t weights = weights_of(b, column + 4u * j);
    for (uint c = lane() / (WIDE / 4u); c < DEPTH; c += lanes() / (WIDE / 4u)) {
        vec4 w = read_weights(weights, begin + c);
        shared_b[c][j] = f16vec4(w);
        for (uint n = 0u; n < 4u; n++) {
            atomicMax(largest_b[4u * j + n], finite_bits(w[n]), gl_ScopeWorkgroup,
                      gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        }
    }
}

/* Scales the numbers that the same lane has copied. */
void scale_shared()
{
    for (uint i = lane(); i < HIGH * DEPTH / 4u; i += lanes()) {
        uint c = i % (DEPTH / 4u), m = i / (DEPTH / 4u);
        shared_a[m][c] = f16vec4(vec4(shared_a[m][c]) * scale_of(largest_a[m]));
    }
    uint j = lane() % (WIDE / 4u);
    for (uint c = lane() / (WIDE / 4u); c < DEPTH; c += lanes() / (WIDE / 4u)) {
        vec4 scale = vec4(scale_of(largest_b[4u * j]), scale_of(largest_b[4u * j + 1u]),
                          scale_of(largest_b[4u * j + 2u]), scale_of(largest_b[4u * j + 3u]));
        shared_b[c][j] = f16vec4(vec4(shared_b[c][j]) * scale);
    }
}

void forget_largest()
{
    for (uint i = lane(); i < WIDE; i += lanes()) {
        largest_b[i] = 0u;
        largest_a[min(i, HIGH - 1u)] = 0u;
    }
}

/* Adds the round's products to the sums of a tile of ROWS x 8 outputs: see multiply_shared(). */
void add_round(uint x, uint y, inout vec4 sums[2u * ROWS])
{
    vec4 round_sums[2u * ROWS];
    for (uint m = 0u; m < 2u * ROWS; m++) {
        round_sums[m] = vec4(0.0);
    }
    for (uint first = 0u; first < DEPTH; first += CHAIN) {
        f16vec4 chains[2u * ROWS];
        [[unroll]] for (uint m = 0u; m < 2u * ROWS; m++) {
            chains[m] = f16vec4(0.0);
        }
        [[unroll]] for (uint d = 0u; d < CHAIN; d++) {
            f16vec4 w0 = shared_b[first + d][x], w1 = shared_b[first + d][x + ACROSS];
            [[unroll]] for (uint m = 0u; m < ROWS; m++) {
                float16_t a = shared_a[y + m * DOWN][(first + d) / 4u][d % 4u];
                chains[2u * m] = fma(f16vec4(a), w0, chains[2u * m]);
                chains[2u * m + 1u] = fma(f16vec4(a), w1, chains[2u * m + 1u]);
            }
        }
        [[unroll]] for (uint m = 0u; m < 2u * ROWS; m++) {
            round_sums[m] += vec4(chains[m]);
        }
    }
    for (uint m = 0u; m < ROWS; m++) {
        float back = scale_back(largest_a[y + m * DOWN]);
        for (uint n = 0u; n < 4u; n++) {
            sums[2u * m][n] += round_sums[2u * m][n] * back * scale_back(largest_b[4u * x + n]);
            sums[2u * m + 1u][n] += round_sums[2u * m + 1u][n] * back *
                                    scale_back(largest_b[4u * (x + ACROSS) + n]);
        }
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
        forget_largest();
        barrier();
        share(b, column, begin);
        barrier();
        scale_shared();
        barrier();
        add_round(x, y, sums);
        barrier();
    }
    write_sums(b, column, x, y, works, sums);
}
