/* SPDX-License-Identifier: MIT */
/*
 * For forms that need HAL_MATRICES_F16 or HAL_MATRICES_S8: the shape that the device multiplies at
 * once, M x K by K x N. Behind kernel.glsl.
 */
layout(constant_id = 2) const uint matrix_m = 16u;
layout(constant_id = 3) const uint matrix_n = 16u;
layout(constant_id = 4) const uint matrix_k = 16u;
/* Of the workgroup, on devices where all are of one size. */
layout(constant_id = 5) const uint subgroups = 2u;
