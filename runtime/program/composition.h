/* SPDX-License-Identifier: MIT */
/* Two methods of a program that follow each other, as one more method: runtime/load/compose.h. */
#ifndef PTED_RUNTIME_PROGRAM_COMPOSITION_H
#define PTED_RUNTIME_PROGRAM_COMPOSITION_H

/* Names of methods: |name| is |second| of what |first| gives. */
struct rt_composition {
    const char *first, *second, *name;
};

#endif
