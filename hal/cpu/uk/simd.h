/* SPDX-License-Identifier: MIT */
/*
 * The basis of the micro-kernels: GCC vector extensions with the width of the level. Each file of
 * this folder is compiled once for each level, with the level's own -m flags and -DUK_LEVEL=NAME.
 * So everything in this header is static, and everything else that a file defines is named with
 * UK_NAME().
 *
 * The header of a level, simd_NAME.h, includes that of the level that it builds on, or it defines
 * these itself:
 *
 *     UK_VECTOR_BYTES          bytes of a vector; then it includes simd_types.h
 *     UK_MR                    rows of the register tile of the matrix product, each UK_NV vectors:
 *                              as many as leave room for two vectors of B and one broadcast
 *     v_widen_upper(x)         UK_VL bfloat16 numbers as floats, whose upper halves they are. The
 *                              form of generic would do for every level, here and where simd_u8.h
 *                              widens bytes, but gcc 12 makes five instructions of it
 *     v_load_part(p, n)        loads the first n < UK_VL floats, with zeros in the other lanes
 *     v_store_part(p, v, n)    stores them
 *     v_multiply_add(a, b, c)  a * b + c, rounded once where the processor has such an instruction.
 *                              A compiler joins a product and a sum by itself only if no branch is
 *                              between them. Functions for different numbers of rows differ in
 *                              that, and a row must have the same bits in all of them
 *     v_lesser(a, b)           a < b ? a : b, which is b if one of them is a NaN. On x86 this is
 *                              one instruction, which compilers do not find through v_select()
 *     v_greater(a, b)          a > b ? a : b, likewise
 *
 * It may define these, too:
 *
 *     UK_LEVEL_...             this level, or one above it, is compiled: GENERIC, AVX2, AVX_VNNI,
 *                              AVX512, AVX512_VNNI, NEON, DOTPROD, I8MM
 *     UK_NV                    vectors in a row of the register tile, and of a panel; 2
 *     UK_BOUNDS                v_clamp(), v_max() and v_min() below, by its own instructions
 *     UK_PICKS, v_pick(x, l)   lane i is lane l[i] of x
 *     vf_half, v_low(), ...    the lower half of a vector, with AVX512
 *     UK_BASE_LEVEL            the level whose functions it takes; without it, its own
 *     UK_DOT_LEVEL             the same, of functions on integers
 *     UK_BYTES_LEVEL           the same, of functions that multiply bytes and that levels seldom
 *                              inherit
 *     UK_BF16_LEVEL            the level whose functions on bfloat16 it takes; without it, none
 *     UK_PAIRS_LEVEL           the same, of those that make or pack such numbers
 *     UK_U8_MR, UK_BF16_MR     rows of a tile of the product of integers, and of bfloat16 numbers;
 *                              UK_MR
 *     UK_U8_SPEED              products of bytes in the time of one with dot products, about: tiles
 *                              reach 16 at most; 1
 *     UK_BF16_SPEED            products of bfloat16 numbers in the time of one of floats, about:
 *                              tiles reach 16 at most; 2
 *     UK_BF16_SKIPS            do products of bfloat16 numbers leave out runs of single rows? true
 *     UK_F32_PER_READ          multiply-adds that take as long as one float from memory, about; 12
 *     UK_F32_ASKS_AHEAD        do products of floats ask for weights ahead? false
 */
#ifndef PTED_HAL_CPU_UK_SIMD_H
#define PTED_HAL_CPU_UK_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UK_CAT_(a, b) a##_##b
#define UK_CAT(a, b) UK_CAT_(a, b)
#define UK_STRING_(a) #a
#define UK_STRING(a) UK_STRING_(a)
#define UK_NAME(name) UK_CAT(name, UK_LEVEL)

#ifndef UK_LEVEL
#error "compile with -DUK_LEVEL=generic or another level"
#endif
/* clang-format off */
#include UK_STRING(hal/cpu/uk/UK_NAME(simd).h)
/* clang-format on */

#ifndef UK_BASE_LEVEL
#define UK_BASE_LEVEL UK_LEVEL
#endif
#ifndef UK_DOT_LEVEL
#define UK_DOT_LEVEL UK_LEVEL
#endif
#ifndef UK_BYTES_LEVEL
#define UK_BYTES_LEVEL UK_LEVEL
#endif
#ifndef UK_PAIRS_LEVEL
#define UK_PAIRS_LEVEL UK_BF16_LEVEL
#endif
#ifndef UK_U8_MR
#define UK_U8_MR UK_MR
#endif
#ifndef UK_U8_SPEED
#define UK_U8_SPEED 1
#endif
#ifndef UK_BF16_MR
#define UK_BF16_MR UK_MR
#endif
#ifndef UK_BF16_SPEED
#define UK_BF16_SPEED 2
#endif
#ifndef UK_BF16_SKIPS
#define UK_BF16_SKIPS true
#endif
#ifndef UK_F32_PER_READ
#define UK_F32_PER_READ 12
#define UK_F32_ASKS_AHEAD false
#endif

/* Names of functions that the level may inherit. */
#define UK_BASE(name) UK_CAT(name, UK_BASE_LEVEL)
#define UK_DOT(name) UK_CAT(name, UK_DOT_LEVEL)
#define UK_BYTES(name) UK_CAT(name, UK_BYTES_LEVEL)
#define UK_BF16(name) UK_CAT(name, UK_BF16_LEVEL)
#define UK_PAIRS(name) UK_CAT(name, UK_PAIRS_LEVEL)

#ifndef UK_BOUNDS
/* Keeps a NaN in x; the bounds are not NaN. */
UK_INLINE vf v_clamp(vf x, vf min, vf max)
{
    return v_lesser(max, v_greater(min, x));
}

/* Returns the larger one, or the NaN if one is. */
UK_INLINE vf v_max(vf a, vf b)
{
    return v_select(a == a, v_greater(a, b), a);
}

UK_INLINE vf v_min(vf a, vf b)
{
    return v_select(a == a, v_lesser(a, b), a);
}
#endif

/* Keeps x in a register: gcc would load it again for each use. */
UK_INLINE vf v_hold(vf x)
{
#if defined __x86_64__
    __asm__("" : "+v"(x));
#elif defined __aarch64__
    __asm__("" : "+w"(x));
#endif
    return x;
}

#endif
