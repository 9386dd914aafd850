/* SPDX-License-Identifier: MIT */
/*
 * One copy of every constant. Loading gives each buffer with a constant that it has computed or
 * copied to this table, and gets the buffer that already has these bytes, if a loaded method of any
 * program has one. Only equal bytes are shared: they are compared as a whole, so no file can make
 * another one's weights its own.
 *
 * A constant also has recipes: a recipe says how its bytes follow from bytes of files. If the
 * recipe is known, nothing is computed.
 *
 * The table holds no references. A buffer leaves it when the last method that reads it is freed.
 * Any thread.
 */
#ifndef PTED_RUNTIME_CODE_SHARED_H
#define PTED_RUNTIME_CODE_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct hal_buffer;
struct rt_packed;

/* The hash (base/blake2b.h) of operators, their arguments, and places in files. Equal recipes make
 * equal bytes. */
struct rt_recipe {
    uint64_t words[4];
};

/* Returns the buffer with what |recipe| makes, as a reference of the caller's; NULL: there is none.
 * |packed| is the caller's; it may be NULL. From then on it verifies the file that the bytes lie
 * in. */
struct hal_buffer *rt_shared_find(const struct rt_recipe *recipe, struct rt_packed *packed);

/*
 * |*buffer| is a reference of the caller's to a buffer whose bytes never change any more. If
 * another one has the same bytes, the reference becomes one to that. |recipe| makes them, or is
 * NULL. |packed| as above. ST_EXHAUSTED with no change.
 */
MUST_CHECK enum status rt_shared_put(const struct rt_recipe *recipe, struct hal_buffer **buffer,
                                     struct rt_packed *packed, struct error *err);

/* Finds the first recipe of |buffer|, by which other recipes name it. False: it is not in the
 * table. */
bool rt_shared_recipe(const struct hal_buffer *buffer, struct rt_recipe *out);

#endif
