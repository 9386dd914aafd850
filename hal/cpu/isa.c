/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/isa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PTED_CPU_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#include "base/check.h"

/* Numbers of Linux; its headers of 2022 lack the first one. */
#ifndef ARCH_REQ_XCOMP_PERM
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif
#define XFEATURE_XTILEDATA 18

#define LIST_BYTES 256 /* for the names of all levels, with commas */

#ifdef PTED_CPU_X86
/* CPUID is asked here: the compiler's own question finds nothing with Zig 0.17, which builds the
 * portable programs, and compilers of 2022 do not know all of these. Source: Intel's manual, CPUID
 * leaves 1 and 7, and XCR0. */
#define SAVES_YMM 0x06u /* the states of SSE and AVX */
#define SAVES_ZMM 0xe6u /* those, mask registers and both halves of AVX-512 */

enum cpuid_register { EAX, EBX, ECX, EDX };

/* Has the register all of these bits? Not if the processor has no such leaf. */
static bool cpuid_has(unsigned leaf, unsigned subleaf, enum cpuid_register in, unsigned bits)
{
    unsigned r[4] = {0};
    return __get_cpuid_count(leaf, subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) &&
           (r[in] & bits) == bits;
}

/* Does the operating system save the registers? */
static bool saves(unsigned states)
{
    unsigned low, high;
    if (!cpuid_has(1, 0, ECX, 1u << 27)) { /* XGETBV */
        return false;
    }
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & states) == states;
}

static bool has_avx2(void)
{
    return saves(SAVES_YMM) && cpuid_has(1, 0, ECX, 1u << 12) && /* FMA */
           cpuid_has(7, 0, EBX, 1u << 5);
}

/* F, DQ, BW and VL. */
static bool has_avx512(void)
{
    return saves(SAVES_ZMM) && cpuid_has(7, 0, EBX, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31);
}

static bool has_avx512_vnni(void)
{
    return cpuid_has(7, 0, ECX, 1u << 11);
}

/* The registers are those of AVX2, which the base has. */
static bool has_avx_vnni(void)
{
    return cpuid_has(7, 1, EAX, 1u << 4);
}

/* The registers are those of AVX-512, which the base has. */
static bool has_bf16(void)
{
    return cpuid_has(7, 1, EAX, 1u << 5);
}

/*
 * Does the processor have AMX for 8-bit integers, and does the system let this process use it? The
 * system gives the registers to a process only once it has asked, and all its threads have them
 * then. Sources: Intel's manual, CPUID leaf 7; Linux, Documentation/arch/x86/xstate.rst.
 */
static bool may_use_tiles(void)
{
    static atomic_int answer = -1;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known < 0) {
        known = cpuid_has(7, 0, EDX, 1u << 24 | 1u << 25) && /* AMX-TILE, AMX-INT8 */
                syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known;
}

/* May these tiles also have bfloat16 numbers? The registers are the same as the base's. */
static bool has_bf16_tiles(void)
{
    return cpuid_has(7, 0, EDX, 1u << 22); /* AMX-BF16 */
}
#endif

#ifdef __aarch64__
static struct hal_cpu_hwcap auxiliary_words(void)
{
    return (struct hal_cpu_hwcap){getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
}
#endif

#define ISA(NAME, name, arch, base, is_here)                                                       \
    static bool is_here_##name(void)                                                               \
    {                                                                                              \
        return arch(is_here, false);                                                               \
    }                                                                                              \
    extern const struct hal_cpu_uk hal_cpu_uk_##name;                                              \
    _Static_assert(HAL_CPU_##base <= HAL_CPU_##NAME, "a base comes before its levels");
#include "hal/cpu/isa.def"
#undef ISA

static const struct level {
    const char *name;
    const char *architecture;
    enum hal_cpu_isa base;
    bool (*is_here)(void);
    const struct hal_cpu_uk *kernels; /* NULL: another architecture */
} levels[HAL_CPU_ISA_COUNT] = {
/* clang-format off */
#define ISA(NAME, name, arch, base, is_here)                                                       \
    [HAL_CPU_##NAME] = {#name, #arch, HAL_CPU_##base, is_here_##name,                              \
                        arch(&hal_cpu_uk_##name, NULL)},
/* clang-format on */
#include "hal/cpu/isa.def"
#undef ISA
};

/* Of each level for aarch64: the bits that it adds to those of its base. */
static const struct features {
    bool is_arm64;
    uint64_t hwcap, hwcap2;
} features[HAL_CPU_ISA_COUNT] = {
#define ISA(NAME, name, arch, base, is_here)
#define ISA_ARM64(NAME, name, BASE, hwcap, hwcap2) [HAL_CPU_##NAME] = {true, hwcap, hwcap2},
#include "hal/cpu/isa.def"
#undef ISA
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned devices;              /* guarded by the lock */
static atomic_int settled_level = -1; /* -1: no device is open */

static const struct level *level_of(enum hal_cpu_isa isa)
{
    must(isa < HAL_CPU_ISA_COUNT);
    return &levels[isa];
}

const char *hal_cpu_isa_name(enum hal_cpu_isa isa)
{
    return level_of(isa)->name;
}

const struct hal_cpu_uk *hal_cpu_isa_kernels(enum hal_cpu_isa isa)
{
    return level_of(isa)->kernels;
}

bool hal_cpu_isa_parse(const char *name, enum hal_cpu_isa *out_isa)
{
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        if (strcmp(name, levels[i].name) == 0) {
            *out_isa = (enum hal_cpu_isa)i;
            return true;
        }
    }
    return false;
}

bool hal_cpu_isa_supported(enum hal_cpu_isa isa)
{
    const struct level *level = level_of(isa);
    return level->kernels && level->is_here() &&
           (level->base == isa || hal_cpu_isa_supported(level->base));
}

bool hal_cpu_hwcap_supports(struct hal_cpu_hwcap words, enum hal_cpu_isa isa)
{
    const struct features *adds = &features[isa];
    enum hal_cpu_isa base = level_of(isa)->base;
    return isa == HAL_CPU_GENERIC ||
           (adds->is_arm64 && hal_cpu_hwcap_has(words, adds->hwcap, adds->hwcap2) &&
            hal_cpu_hwcap_supports(words, base));
}

enum hal_cpu_isa hal_cpu_isa_best(void)
{
    unsigned isa = HAL_CPU_ISA_COUNT - 1;
    while (!hal_cpu_isa_supported((enum hal_cpu_isa)isa)) {
        must(isa > HAL_CPU_GENERIC);
        isa--;
    }
    return (enum hal_cpu_isa)isa;
}

/* For example "generic, avx2": all levels, or the levels of this machine. */
static const char *list(bool is_all, char text[LIST_BYTES])
{
    size_t len = 0;
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        if (is_all || hal_cpu_isa_supported((enum hal_cpu_isa)i)) {
            len += (size_t)snprintf(text + len, LIST_BYTES - len, "%s%s", len > 0 ? ", " : "",
                                    levels[i].name);
            must(len < LIST_BYTES);
        }
    }
    return text;
}

/* Says why |isa|, which |from| asks for, cannot be used here. */
static enum status fail_unsupported(const char *from, enum hal_cpu_isa isa, struct error *err)
{
    char text[LIST_BYTES];
    if (!levels[isa].kernels) {
        return error_set(err, ST_UNSUPPORTED, "%s '%s' is for %s processors: this build has %s",
                         from, levels[isa].name, levels[isa].architecture, list(false, text));
    }
    return error_set(err, ST_UNSUPPORTED, "%s '%s': this machine does not have it, it has %s", from,
                     levels[isa].name, list(false, text));
}

static enum status choose(const char *name, enum hal_cpu_isa *out_isa, struct error *err)
{
    const char *from = name ? "cpu level" : "PTED_CPU";
    char text[LIST_BYTES];

    name = name ? name : getenv("PTED_CPU");
    if (!name || !*name) {
        *out_isa = hal_cpu_isa_best();
        return ST_OK;
    }
    if (!hal_cpu_isa_parse(name, out_isa)) {
        return error_set(err, ST_INVALID, "%s '%.32s' is not a level: expected one of %s", from,
                         name, list(true, text));
    }
    return hal_cpu_isa_supported(*out_isa) ? ST_OK : fail_unsupported(from, *out_isa, err);
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

/* Call with the lock held. */
static enum status acquire_locked(const char *name, enum hal_cpu_isa *out_isa, struct error *err)
{
    int level = atomic_load(&settled_level);
    if (level >= 0 && !name) {
        *out_isa = (enum hal_cpu_isa)level;
    } else {
        TRY(choose(name, out_isa, err));
    }
    if (level >= 0 && (enum hal_cpu_isa)level != *out_isa) {
        return error_set(err, ST_INVALID, "cpu level '%s': an open device already uses '%s'",
                         levels[*out_isa].name, levels[level].name);
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
