/* SPDX-License-Identifier: MIT */
/*
 * The memory of constants, by program: methods and programs share it (runtime/code/shared.h,
 * runtime/pte/ptd.h), and each byte counts once. A constant is known by its address; it lies in a
 * buffer, or in the mapping of a file. Any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_HELD_H
#define PTED_RUNTIME_PROGRAM_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct rt_held_item;
struct rt_program;

/* The constants of one program, each once. */
struct rt_held {
    struct rt_held_item **items; /* owned; by address */
    uint32_t count;
    uint64_t rest; /* bytes of the program's own file that are no weights */
};

/* Bytes of constants that calls of a program read. */
struct rt_held_bytes {
    uint64_t own;    /* by no other program that is loaded now */
    uint64_t shared; /* by others, too */
    uint64_t part; /* of |shared|, each divided by its programs: the sum over all programs has each
                      byte once */
    uint64_t rest; /* of the program's file, what is no weight */
};

/* Counts the constants of |program|, whose methods are compiled. Call rt_held_fini() before they
 * are freed, also after a failure. */
MUST_CHECK enum status rt_held_init(struct rt_held *held, const struct rt_program *program,
                                    struct error *err);
void rt_held_fini(struct rt_held *held);

/* Describes programs as they are loaded now; all zero for a pipeline. */
struct rt_held_bytes rt_program_held(const struct rt_program *program);

/*
 * Is |program| an adapter over |base|? It reads everything that |base| reads, and more of its own,
 * but not more than that. The bytes of the base, or 0.
 */
uint64_t rt_program_extends(const struct rt_program *program, const struct rt_program *base);

/* Of all programs that are loaded, each byte once. */
uint64_t rt_held_total(void);

#endif
