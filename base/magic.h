/* SPDX-License-Identifier: MIT */
/*
 * Magic numbers: a long-lived object says what it is. Its struct has a member |uint32_t magic|,
 * which the maker sets to the number of its type and the end sets to 0. Doors (public functions)
 * and callbacks check it with must_be(): a pointer to another type, to an object that has been
 * freed, or to one that was never made aborts at once, with file and line. A number belongs to one
 * type: it is a #define whose name ends in _MAGIC beside the struct, and tests/lint.sh refuses one
 * that is taken. The checks stay on in every build; they cost one load of a line that the function
 * is about to read anyway.
 */
#ifndef PTED_BASE_MAGIC_H
#define PTED_BASE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* |object| is alive and of the type that |number| stands for. */
#define must_be(object, number) must((object) != NULL && (object)->magic == (number))

/* |to| becomes |from|, which came through a void pointer or a list node. */
#define OBJ_CAST(to, from, number)                                                                 \
    do {                                                                                           \
        (to) = (from);                                                                             \
        must_be(to, number);                                                                       \
    } while (0)

#endif
