/* SPDX-License-Identifier: MIT */
/* The bytes of the files of files.def, from console_NAME to console_NAME_end. */
	.section .rodata
#define CONSOLE_FILE(symbol, name, type)                                                           \
	.global console_##symbol;                                                                  \
	.global console_##symbol##_end;                                                            \
	console_##symbol:;                                                                         \
	.incbin name;                                                                              \
	console_##symbol##_end:;
#include "server/daemon/console/files.def"
#undef CONSOLE_FILE
	.section .note.GNU-stack, "", %progbits
