/* SPDX-License-Identifier: MIT */
/*
 * Invariants. must() stays on in every build: it states what this program guarantees itself, never
 * what a file or a socket contains. Objects that travel through a void pointer carry a magic word
 * and come back through OBJ_CAST, so that a wrong pointer stops at once and by name.
 */
#ifndef PTED_BASE_CHECK_H
#define PTED_BASE_CHECK_H

#include <stdint.h>

_Noreturn void check_failed(const char *expr, const char *file, int line);

#define must(expr)                                                                                 \
    (__builtin_expect(!!(expr), 1) ? (void)0 : check_failed(#expr, __FILE__, __LINE__))
#define unreachable() check_failed("unreachable", __FILE__, __LINE__)

#define OBJ_CAST(to, from, magic_value)                                                            \
    do {                                                                                           \
        (to) = (from);                                                                             \
        must((to) != NULL && (to)->magic == (magic_value));                                        \
    } while (0)

#endif
