/* SPDX-License-Identifier: MIT */
/* Rows of caches in 8 bits: as many signed bytes as the row has numbers, and behind them the float
 * by which they are multiplied. */
#ifndef PTED_RUNTIME_OPS_CACHE_INT8_H
#define PTED_RUNTIME_OPS_CACHE_INT8_H

#include <stdint.h>

#define RT_CACHE_INT8_SCALE ((int64_t)sizeof(float)) /* bytes of a scale */

/* Reads the |depth| numbers of the row at |from|. */
void rt_cache_int8_read(float *out, const char *from, int64_t depth);

/* Writes a row of |depth| numbers at |to|. The greatest magnitude becomes 127, and the others are
 * rounded to the nearest even integer. If a number is NaN or infinite the scale is NaN, and so is
 * everything that is read from the row. */
void rt_cache_int8_write(char *to, const float *x, int64_t depth);

#endif
