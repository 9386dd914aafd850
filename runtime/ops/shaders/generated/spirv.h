/* SPDX-License-Identifier: MIT */
/* Words of the shaders in runtime/ops/shaders/, by contrib/shaders.sh. */
#ifndef PTED_RUNTIME_OPS_SHADERS_GENERATED_SPIRV_H
#define PTED_RUNTIME_OPS_SHADERS_GENERATED_SPIRV_H

#include <stdint.h>

/* clang-format off */
extern const uint32_t affine_spirv[3023];
extern const uint32_t antialias_spirv[4666];
extern const uint32_t attention_subgroups_spirv[6657]; /* of source 323225237 */
extern const uint32_t attention_spirv[6620];
extern const uint32_t chain_spirv[15263];
extern const uint32_t conv_direct_spirv[5544];
extern const uint32_t cumsum_spirv[5620];
extern const uint32_t depthwise_spirv[2894];
extern const uint32_t distance_spirv[7106];
extern const uint32_t embed_spirv[4157];
extern const uint32_t extent_spirv[3319];
extern const uint32_t fill_pattern_spirv[1168];
extern const uint32_t gather_spirv[3072];
extern const uint32_t hadamard_spirv[2999];
extern const uint32_t index_put_spirv[8350];
extern const uint32_t index_take_spirv[4117];
extern const uint32_t interleave_spirv[2810];
extern const uint32_t masked_scatter_spirv[2780];
extern const uint32_t matmul_spirv[2400];
extern const uint32_t norm_subgroups_spirv[5815]; /* of source 2901829175 */
extern const uint32_t norm_spirv[5656];
extern const uint32_t pad_spirv[2601];
extern const uint32_t pixels_spirv[1808];
extern const uint32_t pointwise_spirv[22111];
extern const uint32_t pointwise_f64_spirv[25198];
extern const uint32_t pool_spirv[6413];
extern const uint32_t qbytes_spirv[2485];
extern const uint32_t qdepthwise_spirv[3734];
extern const uint32_t qmean_spirv[1628];
extern const uint32_t quantize_spirv[5499];
extern const uint32_t quantize_rows_subgroups_spirv[7187]; /* of source 1170699934 */
extern const uint32_t quantize_rows_spirv[7033];
extern const uint32_t range_spirv[3630];
extern const uint32_t reduce_subgroups_spirv[10896]; /* of source 1058103129 */
extern const uint32_t reduce_spirv[9566];
extern const uint32_t resample_spirv[3823];
extern const uint32_t sample_spirv[6358];
extern const uint32_t scatter_spirv[5499];
extern const uint32_t scatter_reduce_spirv[6320];
extern const uint32_t softmax_subgroups_spirv[6310]; /* of source 3326363593 */
extern const uint32_t softmax_spirv[6177];
extern const uint32_t topk_spirv[9166];
extern const uint32_t tril_spirv[1630];
extern const uint32_t upsample_spirv[4758];
extern const uint32_t write_rows_spirv[2623];
/* clang-format on */

#endif
