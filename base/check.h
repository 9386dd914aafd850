/* SPDX-License-Identifier: MIT */
/*
 * Invariants. must() is active in every build. It states what this program itself guarantees, and
 * never depends on the contents of a file or a socket. base/magic.h has the check of an object's
 * type.
 */
#ifndef PTED_BASE_CHECK_H
#define PTED_BASE_CHECK_H

_Noreturn void check_failed(const char *expr, const char *file, int line);

#define must(expr)                                                                                 \
    (__builtin_expect(!!(expr), 1) ? (void)0 : check_failed(#expr, __FILE__, __LINE__))
#define unreachable() check_failed("unreachable", __FILE__, __LINE__)

#endif
