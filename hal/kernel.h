/* SPDX-License-Identifier: MIT */
/*
 * Kernels: what a dispatch runs. A kernel is a constant value that an operator hands down to the
 * HAL; it has one form a device kind and the device picks the one it can run. Both forms see the
 * same things: an array of bindings (memory), a block of constants and a grid of tiles.
 *
 * The CPU form is called once a tile, by any worker, in any order, several tiles at once. It must
 * write only what belongs to its tile, must not allocate or lock, and must give the same bytes
 * whoever runs it. What can go wrong with a dispatch is found before it is recorded, except what is
 * wrong with the data: a kernel that reads an index checks it, says hal_fault() and goes on without
 * touching memory that is not its own. What it writes then is nobody's concern, since the
 * submission fails; tiles that have not begun may be left out.
 *
 * A device whose kernels cannot report ignores faults: its forms clamp indices into the tensor and
 * divide by zero to zero, so that they are as safe and only less strict.
 */
#ifndef PTED_HAL_KERNEL_H
#define PTED_HAL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hal/fault.h"

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
    const char *label;     /* the dispatch's */
    struct hal_fault_record *fault; /* for hal_fault(); never NULL */
};

typedef void hal_cpu_kernel_f(const struct hal_args *args, struct hal_tile tile);

/* A committed shader's words (contrib/shaders.sh) as a kernel's form. */
#define HAL_SPIRV(words)                                                                           \
    {                                                                                              \
        (const uint8_t *)(words), sizeof(words)                                                    \
    }

/*
 * A bit of a kernel's variant, for tests: the SPIR-V form for GPUs, whatever the device is. Where
 * it is not set, shaders that have two forms take the one for the device's kind.
 */
#define HAL_VARIANT_GPU 0x80000000u

struct hal_kernel {
    const char *name;      /* printed by `pte inspect --plan` */
    hal_cpu_kernel_f *cpu; /* NULL: not on this device kind */
    struct span spirv;     /* empty: a Vulkan device lets the host run the other form */
    uint32_t variant;      /* specialisation constant 1 of the SPIR-V form */
    bool needs_f64;        /* which only devices can run that have doubles */
};

#endif
