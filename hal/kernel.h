/* SPDX-License-Identifier: MIT */
/*
 * Kernels: what a dispatch runs. A kernel is a constant value that an operator hands down to the
 * HAL; it has one form a device kind and the device picks the one it can run. Both forms see the
 * same things: an array of bindings (memory), a block of constants and a grid of tiles.
 *
 * The CPU form is called once a tile, by any worker, in any order, several tiles at once. It must
 * write only what belongs to its tile, must not allocate, lock or fail, and must give the same
 * bytes whoever runs it. What can go wrong with a dispatch is found before it is recorded.
 */
#ifndef PTED_HAL_KERNEL_H
#define PTED_HAL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define HAL_BINDINGS_MAX 32
#define HAL_CONSTANTS_MAX 1024 /* bytes */

struct hal_tile {
    uint32_t x, y, z; /* x runs fastest */
};

struct hal_args {
    void *const *bindings; /* |binding_count| addresses; NULL for a binding of no bytes */
    const size_t *lengths; /* bytes behind each */
    uint32_t binding_count;
    const void *constants; /* as recorded, 16-byte aligned; NULL: there are none */
    uint32_t grid[3];      /* number of tiles in x, y, z */
    void *scratch;         /* the kernel's scratch_bytes, 64-byte aligned, this worker's alone */
};

typedef void hal_cpu_kernel_f(const struct hal_args *args, struct hal_tile tile);

struct hal_kernel {
    const char *name;      /* printed by `pte inspect --plan` */
    hal_cpu_kernel_f *cpu; /* NULL: not on this device kind */
    struct span spirv;     /* empty: not on this device kind */
};

#endif
