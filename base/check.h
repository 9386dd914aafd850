/* SPDX-License-Identifier: MIT */
/*
 * Invariants. must() is active in every build. It states what this program itself guarantees, and
 * never depends on the contents of a file or a socket. An object that passes through a void pointer
 * carries a magic number, and OBJ_CAST checks it: a wrong pointer aborts at once, with file and
 * line.
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

/* |object| is alive and of its type: init sets the magic number, and fini clears it. */
#define OBJ_CHECK(object, magic_value) must((object) != NULL && (object)->magic == (magic_value))

#endif
