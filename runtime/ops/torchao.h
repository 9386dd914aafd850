/* SPDX-License-Identifier: MIT */
/*
 * Matrices that torchao has packed for products with 8-bit activations, in the format that it calls
 * universal (torchao/csrc/cpu: shared_kernels/internal/packed_weights_header.h and
 * torch_free_kernels/weight_packing/weight_packing.h). All numbers are little-endian.
 *
 *     header   16 words: magic, format, bits, has zero points, has a bias, 8, 16, 2, zeros
 *     blocks   of 8 rows each; a block has its groups of columns one after the other:
 *         numbers   16 columns at a time: of each row columns 0 to 7, then of each row 8 to 15.
 *                   Of 8 bits; or of 4 bits, which are 8 too large: of 32 numbers in a row, i is
 *                   the low half and i + 16 the high half of byte i
 *         scales    8 floats
 *         sums      8 words, the sums of the numbers of a row
 *
 * Numbers have the zero point 0. Zero points and a bias would follow; pted does not read those.
 */
#ifndef PTED_RUNTIME_OPS_TORCHAO_H
#define PTED_RUNTIME_OPS_TORCHAO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

#define RT_TORCHAO_HEADER_BYTES 64
#define RT_TORCHAO_ROWS 8     /* of a block */
#define RT_TORCHAO_COLUMNS 16 /* a group is a multiple of this */

struct rt_torchao {
    int64_t rows, columns; /* both at least 1 and at most 2^20 */
    int64_t group;         /* columns that share a scale; divides |columns| */
    bool is_4bit;          /* else 8 bits */
};

/* Returns the bytes of a matrix with its header. */
int64_t rt_torchao_bytes(const struct rt_torchao *m);

/* Does |packed| begin with the header of such a matrix? ST_INVALID if it has none, ST_UNSUPPORTED
 * if it says that the matrix has another format. The text has no subject. */
MUST_CHECK enum status rt_torchao_check(struct span packed, const struct rt_torchao *m,
                                        struct error *err);

/*
 * Unpacks block |block| of a matrix behind its header. Row i of the block goes to numbers[places[i]
 * * columns] and its scales to scales[places[i] * groups]; a row with place -1 is left out.
 */
void rt_torchao_unpack(const struct rt_torchao *m, const uint8_t *packed, int64_t block,
                       const int64_t places[RT_TORCHAO_ROWS], int8_t *numbers, float *scales);

#endif
