/* SPDX-License-Identifier: MIT */
/*
 * Allocations that fail, for tests of lack of memory. The linker sends malloc(), calloc() and
 * realloc() of the whole program here (-Wl,--wrap). One thread.
 */
#ifndef PTED_TESTS_OOM_FAILING_H
#define PTED_TESTS_OOM_FAILING_H

/* Allocations that still succeed, before all fail; negative: all succeed. */
extern long allocations_left;

#endif
