/* SPDX-License-Identifier: MIT */
/* Words of the shaders in tests/hal/shaders/, by contrib/shaders.sh. */
	.section .rodata
	.balign 4
	.global increment_spirv
increment_spirv:
	.incbin "increment.spv"
	.balign 4
	.global mix_spirv
mix_spirv:
	.incbin "mix.spv"
	.balign 4
	.global number_spirv
number_spirv:
	.incbin "number.spv"
	.section .note.GNU-stack, "", %progbits
