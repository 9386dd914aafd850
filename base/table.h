/* SPDX-License-Identifier: MIT */
/* Tables that an enum indexes. */
#ifndef PTED_BASE_TABLE_H
#define PTED_BASE_TABLE_H

#include <stddef.h>

/* |table| has an entry for each value of an enum, of which |last| is the greatest. */
#define TABLE_ENDS_WITH(table, last)                                                               \
    _Static_assert(sizeof(table) / sizeof((table)[0]) == (size_t)(last) + 1,                       \
                   #table " ends with " #last)

#endif
