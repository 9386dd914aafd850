/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/map.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/check.h"

/* MADV_COLLAPSE of linux/mman.h, which older libraries do not have. */
#define ADVICE_COLLAPSE 25

void *hal_cpu_map(size_t bytes)
{
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return host == MAP_FAILED ? NULL : host;
}

void *hal_cpu_map_aligned(size_t bytes)
{
    char *host = hal_cpu_map(bytes + HAL_CPU_HUGE_PAGE);
    if (host) {
        size_t before = align_up((uintptr_t)host, HAL_CPU_HUGE_PAGE) - (uintptr_t)host;
        must(before == 0 || munmap(host, before) == 0);
        host += before;
        must(munmap(host + bytes, HAL_CPU_HUGE_PAGE - before) == 0);
    }
    return host;
}

void hal_cpu_map_huge(void *host, size_t bytes)
{
    (void)madvise(host, bytes, MADV_HUGEPAGE);
}

void hal_cpu_map_small(void *host, size_t bytes)
{
    (void)madvise(host, bytes, MADV_NOHUGEPAGE);
}

/* Linux 6.1 and later can; others refuse the advice, and pages stay as they are. */
void hal_cpu_map_collapse(void *host, size_t bytes)
{
    (void)madvise(host, bytes, MADV_HUGEPAGE);
    (void)madvise(host, bytes, ADVICE_COLLAPSE);
    (void)madvise(host, bytes, MADV_NOHUGEPAGE);
}
