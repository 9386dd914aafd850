/* SPDX-License-Identifier: MIT */
/* Words of the shaders in hal/vulkan/shaders/, by contrib/shaders.sh. */
	.section .rodata
	.balign 4
	.global copy_spirv
copy_spirv:
	.incbin "copy.spv"
	.section .note.GNU-stack, "", %progbits
