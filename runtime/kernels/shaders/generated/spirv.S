/* SPDX-License-Identifier: MIT */
/* Words of the shaders in runtime/kernels/shaders/, by contrib/shaders.sh. */
	.section .rodata
	.balign 4
	.global gemm_big_spirv
gemm_big_spirv:
	.incbin "gemm_big.spv"
	.balign 4
	.global gemm_gpu_spirv
gemm_gpu_spirv:
	.incbin "gemm_gpu.spv"
	.balign 4
	.global gemm_spirv
gemm_spirv:
	.incbin "gemm.spv"
	.balign 4
	.global gemm_f16_spirv
gemm_f16_spirv:
	.incbin "gemm_f16.spv"
	.balign 4
	.global gemm_matrices_spirv
gemm_matrices_spirv:
	.incbin "gemm_matrices.spv"
	.balign 4
	.global keep_spirv
keep_spirv:
	.incbin "keep.spv"
	.balign 4
	.global pack_spirv
pack_spirv:
	.incbin "pack.spv"
	.balign 4
	.global qgemm_dots_spirv
qgemm_dots_spirv:
	.incbin "qgemm_dots.spv"
	.balign 4
	.global qgemm_gpu_spirv
qgemm_gpu_spirv:
	.incbin "qgemm_gpu.spv"
	.balign 4
	.global qgemm_spirv
qgemm_spirv:
	.incbin "qgemm.spv"
	.balign 4
	.global qgemm_matrices_spirv
qgemm_matrices_spirv:
	.incbin "qgemm_matrices.spv"
	.balign 4
	.global strided_copy_spirv
strided_copy_spirv:
	.incbin "strided_copy.spv"
	.section .note.GNU-stack, "", %progbits
