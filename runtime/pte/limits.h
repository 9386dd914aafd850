/* SPDX-License-Identifier: MIT */
/*
 * Limits of a program. Real programs stay far below them (the largest seen have some ten thousand
 * values). A file beyond a limit is refused before anything is allocated for it. The size of the
 * flatbuffer bounds the memory for the decoded form as well.
 */
#ifndef PTED_RUNTIME_PTE_LIMITS_H
#define PTED_RUNTIME_PTE_LIMITS_H

#define PTE_FILE_BYTES_MIN 64 /* a smaller file cannot hold a program */
#define PTE_PLANS_MAX 256
#define PTE_SEGMENTS_MAX (1u << 16)
#define PTE_NAMED_DATA_MAX (1u << 16)
#define PTE_CHAINS_MAX 1024
#define PTE_VALUES_MAX (1u << 20) /* per method, like all that follow */
#define PTE_INSTRS_MAX (1u << 20)
#define PTE_ARGS_MAX (1u << 16) /* of one instruction */
#define PTE_OPERATORS_MAX (1u << 14)
#define PTE_DELEGATES_MAX (1u << 14)
#define PTE_COMPILE_SPECS_MAX 1024 /* of one delegate */
#define PTE_MEMORIES_MAX 64
#define PTE_MEMORY_BYTES_MAX (UINT64_C(1) << 36) /* all planned memory of one method */

#define PTE_METHOD_NAME_MAX 128 /* bytes; it appears in URLs and logs */
#define PTE_NAME_MAX 1024       /* operators, delegates, keys, qualified names */
#define PTE_STRUCTURE_MAX (1u << 20)

/* Bytes of the decoded form: for each byte of the flatbuffer, and for any file. */
#define PTE_DECODED_PER_BYTE 32
#define PTE_DECODED_MIN (UINT64_C(64) << 10)
#define PTE_DECODED_MAX (UINT64_C(512) << 20)

#endif
