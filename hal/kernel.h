/* SPDX-License-Identifier: MIT */
/*
 * Kernels: the functions that dispatches run. A kernel is a constant value. It has forms for each
 * kind of device, and the device takes the best form that it can run. All forms get the same
 * arguments: an array of bindings (memory), a block of constants and a grid of tiles.
 *
 * Workers call the CPU form once for each tile, in any order, several tiles at once. The form
 * writes only its tile's part of the output, does not allocate or lock, and writes the same bytes
 * on every thread. Most errors are found before a dispatch is recorded, but only the kernel sees
 * its data: a kernel that reads an index checks it, reports a bad index with hal_fault(), and goes
 * on without touching memory outside its bindings. The submission then fails, so it does not matter
 * what the kernel writes after that, and tiles that have not begun may be left out.
 *
 * Some devices have kernels that cannot report faults. These clamp indices into the tensor, and a
 * division by zero gives zero: they are as safe, but less strict.
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

/* Capabilities that only some devices have (hal/capability.def), as bits. */
enum {
#define CAPABILITY(name, word) HAL_INDEX_##name,
#include "hal/capability.def"
#undef CAPABILITY
    HAL_CAPABILITIES
};
enum hal_capability {
#define CAPABILITY(name, word) HAL_##name = 1 << HAL_INDEX_##name,
#include "hal/capability.def"
#undef CAPABILITY
};

/* A kernel as SPIR-V. */
struct hal_spirv {
    struct span words; /* empty: no form */
    uint32_t needs;    /* capabilities: a device that lacks one does not run it */
    uint32_t lanes;    /* of a workgroup on GPUs, if they can have so many; 0: the usual number */
};

/* A committed shader's words (contrib/shaders.sh) as a form that needs |needs|. */
#define HAL_SPIRV_FORM(words, needs) HAL_SPIRV_LANES(words, needs, 0)
#define HAL_SPIRV_LANES(words, needs, lanes)                                                       \
    {                                                                                              \
        {(const uint8_t *)(words), sizeof(words)}, (needs), (lanes)                                \
    }
/* The same words as the only form, for every device. */
#define HAL_SPIRV(words)                                                                           \
    {                                                                                              \
        HAL_SPIRV_FORM(words, 0)                                                                   \
    }
/* The forms NAME_subgroups and NAME of a shader. With subgroups, |lanes| are faster than the usual
 * number. */
#define HAL_SPIRV_SUBGROUPS(name, lanes)                                                           \
    {                                                                                              \
        HAL_SPIRV_LANES(name##_subgroups_spirv, HAL_SUBGROUPS, lanes),                             \
            HAL_SPIRV_FORM(name##_spirv, 0)                                                        \
    }

#define HAL_SPIRV_FORMS_MAX 6

struct hal_kernel {
    const char *name;                            /* printed by `pte inspect --plan` */
    hal_cpu_kernel_f *cpu;                       /* NULL: not on this device kind */
    struct hal_spirv spirv[HAL_SPIRV_FORMS_MAX]; /* best first */
    uint32_t variant;                            /* specialisation constant 1 of the SPIR-V forms */
    /* Tiles with one x and y follow each other, where several workers of a CPU take tiles: for
     * products, whose x are rows. So a worker writes whole rows, and the next command finds most of
     * its rows in the cache of the worker that reads them. */
    bool keeps_rows;
};

static inline bool hal_kernel_has_spirv(const struct hal_kernel *kernel)
{
    return kernel->spirv[0].words.len > 0;
}

/* Returns the first form that a device with |capabilities| can run; NULL: none, the host has to run
 * the CPU form. */
static inline const struct hal_spirv *hal_kernel_spirv(const struct hal_kernel *kernel,
                                                       uint32_t capabilities)
{
    for (unsigned i = 0; i < HAL_SPIRV_FORMS_MAX && kernel->spirv[i].words.len > 0; i++) {
        if ((kernel->spirv[i].needs & ~capabilities) == 0) {
            return &kernel->spirv[i];
        }
    }
    return NULL;
}

#endif
