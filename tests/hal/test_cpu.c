/* SPDX-License-Identifier: MIT */
/* The machine as the CPU device finds it. */
#include "config.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/buffer.h"
#include "hal/cpu/cpus.h"
#include "hal/cpu/isa.h"
#include "hal/cpu/map.h"
#include "hal/cpu/pages.h"
#include "hal/cpu/thread_memory.h"
#include "hal/cpu/uk.h"
#include "hal/device.h"
#include "hal/pages.h"
#include "hal/thread.h"

static void test_isa_names(void **state)
{
    enum hal_cpu_isa isa;
    (void)state;
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        assert_true(hal_cpu_isa_parse(hal_cpu_isa_name((enum hal_cpu_isa)i), &isa));
        assert_int_equal(isa, i);
    }
    assert_false(hal_cpu_isa_parse("", &isa));
    assert_false(hal_cpu_isa_parse("avx", &isa));
    assert_false(hal_cpu_isa_parse("avx2 ", &isa));
}

/* A level that the machine can use has kernels of its own name. */
static void test_isa_support(void **state)
{
    (void)state;
    assert_true(hal_cpu_isa_supported(HAL_CPU_GENERIC));
    assert_true(hal_cpu_isa_supported(hal_cpu_isa_best()));
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        enum hal_cpu_isa isa = (enum hal_cpu_isa)i;
        if (hal_cpu_isa_supported(isa)) {
            assert_string_equal(hal_cpu_isa_kernels(isa)->name, hal_cpu_isa_name(isa));
            assert_true(isa <= hal_cpu_isa_best());
        }
    }
}

static void test_isa_acquire(void **state)
{
    struct error err;
    enum hal_cpu_isa isa = HAL_CPU_ISA_COUNT;
    (void)state;
    unsetenv("PTED_CPU");
    assert_int_equal(hal_cpu_isa(), hal_cpu_isa_best());
    assert_fails(err, hal_cpu_isa_acquire("sse9", &isa, &err), ST_INVALID, "'sse9'");
    assert_ok(err, hal_cpu_isa_acquire("generic", &isa, &err));
    assert_int_equal(isa, HAL_CPU_GENERIC);
    assert_int_equal(hal_cpu_isa(), HAL_CPU_GENERIC);
    assert_ok(err, hal_cpu_isa_acquire("generic", &isa, &err));
    hal_cpu_isa_release();
    if (hal_cpu_isa_best() != HAL_CPU_GENERIC) {
        const char *best = hal_cpu_isa_name(hal_cpu_isa_best());
        assert_fails(err, hal_cpu_isa_acquire(best, &isa, &err), ST_INVALID, "uses 'generic'");
    }
    assert_ok(err, hal_cpu_isa_acquire(NULL, &isa, &err)); /* whatever is in use */
    assert_int_equal(isa, HAL_CPU_GENERIC);
    hal_cpu_isa_release();
    hal_cpu_isa_release();
    assert_int_equal(hal_cpu_isa(), hal_cpu_isa_best());
}

static void test_isa_environment(void **state)
{
    struct error err;
    enum hal_cpu_isa isa;
    (void)state;
    assert_int_equal(setenv("PTED_CPU", "generic", 1), 0);
    assert_int_equal(hal_cpu_isa(), HAL_CPU_GENERIC);
    assert_ok(err, hal_cpu_isa_acquire(NULL, &isa, &err));
    assert_int_equal(isa, HAL_CPU_GENERIC);
    hal_cpu_isa_release();
    assert_int_equal(setenv("PTED_CPU", "z80", 1), 0);
    assert_fails(err, hal_cpu_isa_acquire(NULL, &isa, &err), ST_INVALID, "PTED_CPU 'z80'");
    assert_int_equal(hal_cpu_isa(), hal_cpu_isa_best());
    assert_int_equal(setenv("PTED_CPU", "", 1), 0);
    assert_ok(err, hal_cpu_isa_acquire(NULL, &isa, &err));
    assert_int_equal(isa, hal_cpu_isa_best());
    hal_cpu_isa_release();
    unsetenv("PTED_CPU");
}

/* A level that the machine lacks: the error names it, and those that there are. */
static void test_isa_missing_names_both(void **state)
{
    struct error err;
    enum hal_cpu_isa isa;
    bool is_any = false;
    (void)state;
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        const char *wanted = hal_cpu_isa_name((enum hal_cpu_isa)i);
        if (!hal_cpu_isa_supported((enum hal_cpu_isa)i)) {
            is_any = true;
            assert_fails(err, hal_cpu_isa_acquire(wanted, &isa, &err), ST_UNSUPPORTED, wanted);
            assert_non_null(strstr(err.text, hal_cpu_isa_name(hal_cpu_isa_best())));
        }
    }
    if (!is_any) {
        skip(); /* this machine has them all */
    }
}

/* The bits of AT_HWCAP and AT_HWCAP2 on aarch64. */
#define ASIMD (UINT64_C(1) << 1)
#define ASIMDDP (UINT64_C(1) << 20)
#define SVE (UINT64_C(1) << 22)
#define I8MM (UINT64_C(1) << 13)
#define HAS_BF16 (UINT64_C(1) << 14)

/* The last level of a machine with these words. */
static const char *best_of(uint64_t first, uint64_t second)
{
    enum hal_cpu_isa best = HAL_CPU_GENERIC;
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        enum hal_cpu_isa isa = (enum hal_cpu_isa)i;
        best = hal_cpu_hwcap_supports((struct hal_cpu_hwcap){first, second}, isa) ? isa : best;
    }
    return hal_cpu_isa_name(best);
}

/* Made-up words of aarch64 machines: none, real ones, bits that mean nothing here, and levels
 * without what they build on. */
static void test_isa_of_hwcap(void **state)
{
    (void)state;
    assert_string_equal(best_of(0, 0), "generic");
    assert_string_equal(best_of(ASIMD, 0), "neon");
    assert_string_equal(best_of(ASIMD | ASIMDDP, 0), "dotprod");
    assert_string_equal(best_of(ASIMD | ASIMDDP | SVE, I8MM), "i8mm");
    assert_string_equal(best_of(ASIMD | ASIMDDP, I8MM | HAS_BF16), "bf16");
    assert_string_equal(best_of(~(ASIMD | ASIMDDP), ~(I8MM | HAS_BF16)), "generic");
    assert_string_equal(best_of(ASIMD | UINT64_C(1) << 63, ~(I8MM | HAS_BF16)), "neon");
    assert_string_equal(best_of(ASIMDDP, I8MM | HAS_BF16), "generic");
    assert_string_equal(best_of(ASIMD, I8MM | HAS_BF16), "neon");
    assert_string_equal(best_of(ASIMD | ASIMDDP, HAS_BF16), "dotprod");
    assert_string_equal(best_of(0, ASIMD | ASIMDDP), "generic"); /* in the other word */
}

/* Levels of other architectures are not in these words. */
static void test_isa_of_hwcap_is_arm64(void **state)
{
    const struct hal_cpu_hwcap all = {UINT64_MAX, UINT64_MAX};
    (void)state;
    assert_false(hal_cpu_hwcap_supports(all, HAL_CPU_AVX2));
    assert_false(hal_cpu_hwcap_supports(all, HAL_CPU_AMX_BF16));
    assert_true(hal_cpu_hwcap_supports(all, HAL_CPU_NEON));
    assert_true(hal_cpu_hwcap_supports(all, HAL_CPU_I8MM));
}

/* A level without kernels is not offered. The message of an unknown name lists the others. */
static void test_isa_offers_what_it_has(void **state)
{
    struct error err;
    enum hal_cpu_isa isa;
    (void)state;
    assert_fails(err, hal_cpu_isa_acquire("avx512_bf17", &isa, &err), ST_INVALID,
                 "expected one of generic, ");
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        assert_non_null(strstr(err.text, hal_cpu_isa_name((enum hal_cpu_isa)i)));
    }
}

static void test_quota(void **state)
{
    static const struct {
        const char *text;
        unsigned cpus;
    } rows[] = {
        {"100000 100000\n", 1}, {"150000 100000\n", 2}, {"1000 100000\n", 1},
        {"1600000 100000", 16}, {"max 100000\n", 0},    {"", 0},
        {"100000", 0},          {"100000 ", 0},         {"100000 0\n", 0},
        {"0 100000\n", 0},      {"-1 100000\n", 0},     {"99999999999999999999 1\n", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hal_cpu_parse_quota(span_str(rows[i].text)), rows[i].cpus);
    }
    assert_true(hal_cpu_count() >= 1);
}

static size_t cache(const char *text)
{
    return hal_cpu_parse_cache(span_str(text));
}

static void test_cache(void **state)
{
    (void)state;
    assert_int_equal(cache("32K\n"), 32 << 10);
    assert_int_equal(cache("307200K\n"), 300 << 20);
    assert_int_equal(cache("0K\n"), 0);
    assert_int_equal(cache("32\n"), 0);
    assert_int_equal(cache("K\n"), 0);
    assert_int_equal(cache("99999999999999999999K\n"), 0);
    assert_int_equal(cache(""), 0);
    assert_true((uint64_t)hal_cpu_cache_bytes() >> 40 == 0);
    if (access("/sys/devices/system/cpu/cpu0/cache/index0/size", R_OK) == 0) {
        assert_true(hal_cpu_cache_bytes() >= 1 << 10);
    }
}

static void *measure_stack(void *out_bytes)
{
    pthread_attr_t attributes;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstacksize(&attributes, out_bytes), 0);
    pthread_attr_destroy(&attributes);
    return NULL;
}

/* As where the C library gives threads as little as musl does. */
static void test_stack(void **state)
{
    pthread_attr_t before, small;
    pthread_t thread;
    size_t bytes = 0;
    (void)state;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 128 << 10), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    assert_int_equal(hal_thread_start(&thread, measure_stack, &bytes), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(bytes >= 2 << 20);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&small);
}

/* Do the flags of the mapping at |address| contain "hg", a request for huge pages? */
static bool asks_for_huge_pages(const void *address)
{
    char line[512], *flags = NULL;
    bool is_mapping = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && !flags && fgets(line, sizeof(line), file)) {
        unsigned long long begin, end;
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2) {
            is_mapping = (uintptr_t)address >= begin && (uintptr_t)address < end;
        }
        flags = is_mapping && strncmp(line, "VmFlags:", 8) == 0 ? line : NULL;
    }
    if (file) {
        (void)fclose(file);
    }
    return flags && strstr(flags, " hg");
}

/* Does the system say which mappings ask for huge pages? QEMU's emulation of programs does not. */
static bool tells_huge_pages(void)
{
    const size_t bytes = 4 << 20;
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host != MAP_FAILED);
    bool tells = madvise(host, bytes, MADV_HUGEPAGE) == 0 && asks_for_huge_pages(host);
    assert_int_equal(munmap(host, bytes), 0);
    return tells;
}

/* Constants ask for huge pages. Other buffers do not: they are not always written as a whole. */
static void test_huge_pages(void **state)
{
    struct error err;
    struct hal_device *device;
    struct hal_buffer *constant, *other;
    (void)state;
    if (!tells_huge_pages()) {
        skip();
    }
    assert_ok(err, hal_device_open("cpu", NULL, &device, &err));
    assert_ok(err, hal_buffer_new_constant(device, 8 << 20, &constant, &err));
    assert_ok(err, hal_buffer_new(device, 8 << 20, &other, &err));
    assert_true(asks_for_huge_pages(hal_buffer_map(constant)));
    assert_false(asks_for_huge_pages(hal_buffer_map(other)));

    /* Made together they lie in one mapping, so that a huge page can hold parts of several. */
    static const size_t sizes[] = {1500000, 1500000, 1500000};
    struct hal_buffer *together[3];
    assert_ok(err, hal_buffer_new_constants(device, sizes, 3, together, &err));
    const char *first = hal_buffer_map(together[0]), *last = hal_buffer_map(together[2]);
    assert_int_equal((uintptr_t)first % (2 << 20), 0);
    assert_true(last > first && last < first + (4 << 20));
    for (int i = 0; i < 3; i++) {
        assert_true(asks_for_huge_pages(hal_buffer_map(together[i])));
        hal_buffer_unref(together[i]);
    }
    hal_buffer_unref(constant);
    hal_buffer_unref(other);
    hal_device_unref(device);
}

/* Bytes of huge pages in the mapping that has |address|; 0 if the system does not say. */
static size_t huge_bytes(const void *address)
{
    char line[512];
    bool is_mapping = false;
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof(line), file)) {
        unsigned long long begin, end;
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2) {
            is_mapping = (uintptr_t)address >= begin && (uintptr_t)address < end;
        }
        if (is_mapping && sscanf(line, "AnonHugePages: %lu kB", &kb) == 1) {
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return (size_t)kb << 10;
}

/* Can the system move what a program has written to huge pages? Not every kernel can. */
static bool can_collapse(void)
{
    const size_t bytes = 4 << 20;
    char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host != MAP_FAILED);
    assert_int_equal(madvise(host, bytes, MADV_NOHUGEPAGE), 0);
    memset(host, 1, bytes);
    hal_cpu_map_collapse(host, bytes);
    bool can = huge_bytes(host) > 0;
    assert_int_equal(munmap(host, bytes), 0);
    return can;
}

/* Content moves to the huge pages that it fills, once it does, and takes no more memory. Behind it
 * pages are small, as before. */
static void test_content_moves_to_huge_pages(void **state)
{
    enum { HUGE = 2 << 20, SIZE = 8 * HUGE, WRITTEN = 3 * HUGE + 12345 };
    struct error err;
    struct hal_device *device;
    struct hal_buffer *buffer;
    (void)state;
    assert_ok(err, hal_device_open("cpu", NULL, &device, &err));
    assert_ok(err, hal_buffer_new_sparse(device, SIZE, &buffer, &err));
    uint8_t *host = hal_buffer_map(buffer);
    size_t before = (size_t)HUGE - (uintptr_t)host % HUGE, page = hal_buffer_page_bytes(buffer);
    for (size_t i = 0; i < WRITTEN; i++) {
        host[i] = (uint8_t)(i * 7 + i / 4096);
    }
    hal_buffer_compact(buffer, 0, before + HUGE - 1, 0); /* none is full but the first */
    size_t first = huge_bytes(host);
    assert_true(first <= (size_t)HUGE);
    hal_buffer_compact(buffer, 0, WRITTEN, before + HUGE - 1);
    bool can = can_collapse();
    assert_true(!can || huge_bytes(host) >= 2 * (size_t)HUGE);
    assert_true(huge_bytes(host) <= 3 * (size_t)HUGE);
    for (size_t i = 0; i < WRITTEN; i++) {
        assert_int_equal(host[i], (uint8_t)(i * 7 + i / 4096));
    }
    unsigned char has_page;
    assert_int_equal(mincore(host + align_up(WRITTEN, page), page, &has_page), 0);
    assert_false(has_page & 1);
    host[SIZE - 1] = 1;
    assert_int_equal(mincore(host + SIZE - 2 * page, page, &has_page), 0);
    assert_false(has_page & 1);
    hal_buffer_compact(buffer, 0, 0, 0);
    hal_buffer_unref(buffer);
    hal_device_unref(device);
    if (!can) {
        skip();
    }
}

static bool is_resident(void *page)
{
    unsigned char flags;
    assert_int_equal(mincore(page, 1, &flags), 0);
    return flags & 1;
}

/* A thread's workspace has one user at a time, and its memory goes back when it has had none for
 * two trims. */
static void test_workspace(void **state)
{
    struct hal_cpu_thread_memory memory;
    const size_t bytes = 8 << 20;
    (void)state;
    assert_true(hal_cpu_thread_memory_init(&memory));
    assert_null(hal_cpu_workspace_take(&memory, HAL_CPU_WORKSPACE_BYTES + 1));
    for (int turn = 0; turn < 2; turn++) {
        uint8_t *workspace = hal_cpu_workspace_take(&memory, bytes);
        assert_non_null(workspace);
        assert_int_equal((uintptr_t)workspace % (2 << 20), 0);
        assert_null(hal_cpu_workspace_take(&memory, 1));
        memset(workspace, 1, bytes);
        for (int i = 0; i < 3; i++) { /* nothing happens while it is in use */
            assert_int_equal(hal_cpu_workspace_trim(&memory, SIZE_MAX), 0);
        }
        assert_int_equal(workspace[bytes - 1], 1);
        hal_cpu_workspace_give(&memory);
        assert_int_equal(hal_cpu_workspace_trim(&memory, SIZE_MAX), 0);
        assert_true(is_resident(workspace));
        assert_int_equal(hal_cpu_workspace_trim(&memory, 5 << 20), 4 << 20); /* huge pages */
        assert_true(is_resident(workspace));
        assert_false(is_resident(workspace + (4 << 20)));
        assert_int_equal(hal_cpu_workspace_trim(&memory, 1), 2 << 20);
        assert_int_equal(hal_cpu_workspace_trim(&memory, SIZE_MAX), 2 << 20);
        assert_false(is_resident(workspace));
        assert_int_equal(hal_cpu_workspace_trim(&memory, SIZE_MAX), 0);
        if (tells_huge_pages()) {
            assert_true(asks_for_huge_pages(workspace));
        }
    }
    hal_cpu_thread_memory_fini(&memory);
}

/* ---- shared pages ---------------------------------------------------------------------------- */

/* A system that knows no holes of files, one that has no memory for what may be written, and one
 * that has too many mappings. */
static bool has_no_holes, has_no_memory, has_no_mappings;

#if SIZE_MAX == UINT32_MAX /* the C library's names of those whose offsets have 64 bits */
#define __real_fallocate __real_fallocate64
#define __real_mmap __real_mmap64
#define __wrap_fallocate __wrap_fallocate64
#define __wrap_mmap __wrap_mmap64
#endif

int __real_fallocate(int fd, int mode, off_t offset, off_t size);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_mprotect(void *at, size_t size, int protection);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_mprotect(void *at, size_t size, int protection);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    if (has_no_holes) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_fallocate(fd, mode, offset, size);
}

/* Linux has taken away what was there when it finds that there is no memory. */
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (has_no_memory && (protection & PROT_WRITE)) {
        assert_int_equal(munmap(at, size), 0);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (has_no_mappings) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_mprotect(void *at, size_t size, int protection)
{
    if (has_no_memory && (protection & PROT_WRITE)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(at, size, protection);
}

enum { SPARSE = 1 << 18 };

static struct hal_device *open_device(void)
{
    const struct hal_device_options one = {.workers = 1};
    struct hal_device *device;
    struct error err;
    assert_ok(err, hal_device_open("cpu", &one, &device, &err));
    return device;
}

/* A system that could not give memory back has no pages; one that cannot any more loses memory. */
static void test_pages_without_holes(void **state)
{
    struct hal_device *device = open_device();
    struct hal_pages *pages;
    struct error err;
    (void)state;
    has_no_holes = true;
    assert_fails(err, hal_pages_new(device, SPARSE, &pages, &err), ST_UNSUPPORTED, "in memory");
    has_no_holes = false;
    assert_fails(err, hal_pages_new(device, SPARSE, &pages, &err), ST_UNSUPPORTED, "in memory");
    hal_device_unref(device);
    device = open_device();
    assert_ok(err, hal_pages_new(device, SPARSE, &pages, &err));
    has_no_holes = true;
    hal_pages_unref(pages);
    has_no_holes = false;
    hal_device_unref(device);
}

/* A buffer that cannot get pages keeps its place in memory, where nothing else may be mapped. */
static void test_pages_without_memory(void **state)
{
    struct hal_device *device = open_device();
    struct hal_buffer *from, *to;
    struct hal_pages *pages;
    struct error err;
    unsigned char is_resident;
    (void)state;
    assert_ok(err, hal_buffer_new_sparse(device, SPARSE, &from, &err));
    assert_ok(err, hal_buffer_new_sparse(device, SPARSE, &to, &err));
    size_t page = hal_buffer_page_bytes(from);
    assert_ok(err, hal_pages_new(device, page, &pages, &err));
    assert_ok(err, hal_pages_take(pages, 0, from, 0, page, &err));
    has_no_memory = true;
    assert_fails(err, hal_pages_map(pages, 0, to, page, page, &err), ST_EXHAUSTED, "no memory");
    has_no_memory = false;
    assert_int_equal(mincore((char *)hal_buffer_map(to) + page, page, &is_resident), 0);
    hal_buffer_unref(to);
    hal_buffer_unref(from);
    hal_pages_unref(pages);
    hal_device_unref(device);
}

/* Parts that could not be mapped do not count. */
static void test_pages_without_mappings(void **state)
{
    struct hal_device *device = open_device();
    struct hal_buffer *from;
    struct hal_pages *pages;
    struct error err;
    (void)state;
    assert_ok(err, hal_buffer_new_sparse(device, SPARSE, &from, &err));
    size_t page = hal_buffer_page_bytes(from);
    memset(hal_buffer_map(from), 1, page);
    assert_ok(err, hal_pages_new(device, page, &pages, &err));
    has_no_mappings = true;
    for (int i = 0; i < HAL_CPU_PAGES_PARTS_MAX; i++) {
        assert_fails(err, hal_pages_take(pages, 0, from, 0, page, &err), ST_EXHAUSTED, "map");
    }
    has_no_mappings = false;
    memset(hal_buffer_map(from), 2, page);
    assert_ok(err, hal_pages_take(pages, 0, from, 0, page, &err));
    assert_int_equal(*(const char *)hal_buffer_map(from), 2);
    hal_buffer_unref(from);
    hal_pages_unref(pages);
    hal_device_unref(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isa_names),
        cmocka_unit_test(test_isa_support),
        cmocka_unit_test(test_isa_acquire),
        cmocka_unit_test(test_isa_environment),
        cmocka_unit_test(test_isa_missing_names_both),
        cmocka_unit_test(test_isa_of_hwcap),
        cmocka_unit_test(test_isa_of_hwcap_is_arm64),
        cmocka_unit_test(test_isa_offers_what_it_has),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_huge_pages),
        cmocka_unit_test(test_content_moves_to_huge_pages),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_pages_without_holes),
        cmocka_unit_test(test_pages_without_memory),
        cmocka_unit_test(test_pages_without_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
