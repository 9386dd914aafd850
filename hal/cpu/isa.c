/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/isa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static const char *const names[HAL_CPU_ISA_COUNT] = {
    [HAL_CPU_GENERIC] = "generic",         [HAL_CPU_AVX2] = "avx2",
    [HAL_CPU_AVX512] = "avx512",           [HAL_CPU_AVX512_VNNI] = "avx512_vnni",
    [HAL_CPU_AVX512_BF16] = "avx512_bf16",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned devices;              /* under the lock */
static atomic_int settled_level = -1; /* -1: no device is open */

const char *hal_cpu_isa_name(enum hal_cpu_isa isa)
{
    must(isa < HAL_CPU_ISA_COUNT);
    return names[isa];
}

bool hal_cpu_isa_parse(const char *name, enum hal_cpu_isa *out_isa)
{
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out_isa = (enum hal_cpu_isa)i;
            return true;
        }
    }
    return false;
}

#ifdef PTED_CPU_X86
/* The compiler's run-time library also asks the operating system whether it saves the registers. */
bool hal_cpu_isa_supported(enum hal_cpu_isa isa)
{
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
    switch (isa) {
    case HAL_CPU_GENERIC:
        return true;
    case HAL_CPU_AVX2:
        /* F16C came before AVX2 in every processor; the compilers of 2022 cannot ask for it. */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case HAL_CPU_AVX512:
        return avx512;
    case HAL_CPU_AVX512_VNNI:
        return vnni;
    case HAL_CPU_AVX512_BF16:
        return vnni && __builtin_cpu_supports("avx512bf16");
    case HAL_CPU_ISA_COUNT:
        break;
    }
    unreachable();
}
#else
bool hal_cpu_isa_supported(enum hal_cpu_isa isa)
{
    must(isa < HAL_CPU_ISA_COUNT);
    return isa == HAL_CPU_GENERIC;
}
#endif

enum hal_cpu_isa hal_cpu_isa_best(void)
{
    unsigned isa = HAL_CPU_ISA_COUNT - 1;
    while (!hal_cpu_isa_supported((enum hal_cpu_isa)isa)) {
        isa--;
    }
    return (enum hal_cpu_isa)isa;
}

static enum status choose(const char *name, enum hal_cpu_isa *out_isa, struct error *err)
{
    const char *from = name ? "cpu level" : "PTED_CPU";
    enum hal_cpu_isa best = hal_cpu_isa_best();

    name = name ? name : getenv("PTED_CPU");
    if (!name || !*name) {
        *out_isa = best;
        return ST_OK;
    }
    if (!hal_cpu_isa_parse(name, out_isa)) {
        return error_set(err, ST_INVALID,
                         "%s '%.32s' is not a level: expected one of generic, "
                         "avx2, avx512, avx512_vnni, avx512_bf16",
                         from, name);
    }
    if (!hal_cpu_isa_supported(*out_isa)) {
        return error_set(err, ST_UNSUPPORTED, "%s '%s': this machine has '%s' at most", from,
                         names[*out_isa], names[best]);
    }
    return ST_OK;
}

enum hal_cpu_isa hal_cpu_isa(void)
{
    int level = atomic_load_explicit(&settled_level, memory_order_acquire);
    enum hal_cpu_isa isa;
    if (level >= 0) {
        return (enum hal_cpu_isa)level;
    }
    return choose(NULL, &isa, NULL) == ST_OK ? isa : hal_cpu_isa_best();
}

/* With the lock held. */
static enum status acquire_locked(const char *name, enum hal_cpu_isa *out_isa, struct error *err)
{
    TRY(choose(name, out_isa, err));
    int level = atomic_load(&settled_level);
    if (level >= 0 && (enum hal_cpu_isa)level != *out_isa) {
        return error_set(err, ST_INVALID, "cpu level '%s': an open device already uses '%s'",
                         names[*out_isa], names[level]);
    }
    atomic_store_explicit(&settled_level, (int)*out_isa, memory_order_release);
    devices++;
    return ST_OK;
}

enum status hal_cpu_isa_acquire(const char *name, enum hal_cpu_isa *out_isa, struct error *err)
{
    pthread_mutex_lock(&lock);
    enum status status = acquire_locked(name, out_isa, err);
    pthread_mutex_unlock(&lock);
    return status;
}

void hal_cpu_isa_release(void)
{
    pthread_mutex_lock(&lock);
    must(devices > 0);
    if (--devices == 0) {
        atomic_store(&settled_level, -1);
    }
    pthread_mutex_unlock(&lock);
}
