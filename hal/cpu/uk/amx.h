/* SPDX-License-Identifier: MIT */
/*
 * The tile instructions of AMX. A tile has up to 16 rows of up to 64 bytes; the configuration says
 * how many. A thread configures the tiles, uses them and releases them within one call of a kernel,
 * so that only a context switch in between has to save them.
 *
 * These are asm statements, because the intrinsics of gcc 12 do not say which memory they read.
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
 */
#ifndef PTED_HAL_CPU_UK_AMX_H
#define PTED_HAL_CPU_UK_AMX_H

#include <stdint.h>

#include "hal/cpu/uk/simd.h"

#define AMX_ROWS 16
#define AMX_ROW_BYTES 64
#define AMX_TILES 8

struct amx_config {
    uint8_t palette; /* 1: the only one */
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16]; /* by tile */
    uint8_t rows[16];
};

_Static_assert(sizeof(struct amx_config) == 64, "the layout that ldtilecfg reads");

/* A test has the instructions as functions: tests/hal/amx_soft.h. */
#ifndef AMX_SOFT

/* Sets all tiles to zero. */
UK_INLINE void amx_configure(const struct amx_config *config)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*config));
}

UK_INLINE void amx_release(void)
{
    __asm__ volatile("tilerelease");
}

/* |tile|, |a|, |b| and |c| are literal numbers. Rows are |stride| bytes apart. */
#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define AMX_LOAD(tile, from, stride)                                                               \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"((const void *)(from)), "r"((ptrdiff_t)(stride))                         \
                     : "memory")
#define AMX_STORE(tile, to, stride)                                                                \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"((void *)(to)), "r"((ptrdiff_t)(stride))                                 \
                     : "memory")
/* c += a * b: rows of u8 by words of four s8 of neighbouring k, one for each column of c. */
#define AMX_DOT_U8(c, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
/* The same of bfloat16 numbers: rows of them by pairs of neighbouring k. */
#define AMX_DOT_BF16(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

#endif
#endif
