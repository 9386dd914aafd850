/* SPDX-License-Identifier: MIT */
/* For forms that need HAL_MATRICES_F16 or HAL_MATRICES_S8: the shape that the device multiplies in
 * one instruction, M x K by K x N. Include this after kernel.glsl. */
layout(constant_id = 2) const uint matrix_m = 16u;
layout(constant_id = 3) const uint matrix_n = 16u;
layout(constant_id = 4) const uint matrix_k = 16u;
/* Subgroups in the workgroup, on devices where all subgroups have the same size. */
layout(constant_id = 5) const uint subgroups = 2u;
