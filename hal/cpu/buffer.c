/* SPDX-License-Identifier: MIT */
/*
 * Small buffers come from the heap. Large ones are mappings: the system gives zeroed pages, and
 * gets them back when the buffer is freed. Constants ask for huge pages: one token of a language
 * model reads all weights, and looking up small pages takes a fifth of the time. Constants that are
 * made together share one mapping, because a huge page needs 2 MB in a row, which one constant may
 * not have; each buffer frees its own part. Other buffers do not ask, because a page that is
 * written in part takes memory as a whole. Sparse ones ask for small pages, whatever the system
 * prefers.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/asan.h"
#include "base/bytes.h"
#include "base/check.h"
#include "hal/cpu/device.h"
#include "hal/cpu/map.h"

#define MAPPED_MIN 65536 /* bytes */
#define IMPORT_ALIGN 16  /* no element needs more */

enum origin { HEAP, MAPPED, IMPORTED };

struct cpu_buffer {
    struct hal_buffer base;
    enum origin origin;
    struct hal_cpu_pages_use *pages; /* owned: that parts of it are; or NULL */
};

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of the mapping. AddressSanitizer gets a page behind the buffer that nothing may touch. */
static size_t mapped_bytes(size_t size)
{
    size_t page = page_size();
    return align_up(size, page) + (HAS_ASAN ? page : 0);
}

/* What nothing may touch; AddressSanitizer takes long to mark a whole buffer of many GiB. */
static void forbid_rest(char *host, size_t size)
{
    asan_poison(host + size, mapped_bytes(size) - size);
}

static void allow_rest(char *host, size_t size)
{
    asan_unpoison(host + size, mapped_bytes(size) - size);
}

static void *allocate(size_t size, enum hal_memory memory, enum origin *out_origin)
{
    void *host = NULL;
    if (size >= MAPPED_MIN) {
        *out_origin = MAPPED;
        host = hal_cpu_map(mapped_bytes(size));
        if (host && memory == HAL_MEMORY_CONSTANT) {
            hal_cpu_map_huge(host, size);
        }
        if (host && memory == HAL_MEMORY_SPARSE) {
            hal_cpu_map_small(host, mapped_bytes(size));
        }
        return host;
    }
    *out_origin = HEAP;
    if (posix_memalign(&host, HAL_CPU_BUFFER_ALIGN, size) != 0) {
        return NULL;
    }
    return hal_memory_is_zeroed(memory) ? memset(host, 0, size) : host;
}

static void release(void *host, size_t size, enum origin origin)
{
    if (origin == HEAP) {
        free(host);
    } else if (origin == MAPPED) {
        allow_rest(host, size);
        must(munmap(host, mapped_bytes(size)) == 0);
    }
}

/* Makes a buffer of |host|, which is freed if that fails; NULL, if |size| is not 0: there was no
 * memory. */
static enum status wrap(struct hal_device *device, void *host, size_t size, enum origin origin,
                        struct hal_buffer **out_buffer, struct error *err)
{
    struct cpu_buffer *buffer = malloc(sizeof(*buffer));
    if (!buffer || (size && !host)) {
        if (host) {
            release(host, size, origin);
        }
        free(buffer);
        return error_no_memory(err, "a buffer of %zu bytes", size);
    }
    if (origin == MAPPED) {
        forbid_rest(host, size);
    }
    hal_buffer_init(&buffer->base, device, size, host);
    buffer->origin = origin;
    buffer->pages = NULL;
    *out_buffer = &buffer->base;
    return ST_OK;
}

enum status hal_cpu_buffer_new(struct hal_device *device, size_t size, enum hal_memory memory,
                               struct hal_buffer **out_buffer, struct error *err)
{
    enum origin origin = HEAP;
    void *host = size ? allocate(size, memory, &origin) : NULL;
    return wrap(device, host, size, origin, out_buffer, err);
}

/* Makes buffers of the parts of |shared|; small ones come from the heap. A buffer owns its part;
 * |out_used| is where the parts begin that no buffer owns. */
static enum status share(struct hal_device *device, char *shared, const size_t *sizes, size_t count,
                         struct hal_buffer **out_buffers, size_t *out_used, struct error *err)
{
    *out_used = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] >= MAPPED_MIN) {
            char *host = shared + *out_used;
            *out_used += mapped_bytes(sizes[i]);
            TRY(wrap(device, host, sizes[i], MAPPED, &out_buffers[i], err));
        } else {
            TRY(hal_cpu_buffer_new(device, sizes[i], HAL_MEMORY_CONSTANT, &out_buffers[i], err));
        }
    }
    return ST_OK;
}

enum status hal_cpu_buffers_new(struct hal_device *device, const size_t *sizes, size_t count,
                                struct hal_buffer **out_buffers, struct error *err)
{
    size_t bytes = 0, used;
    char *shared = NULL;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] >= MAPPED_MIN && !add_size(bytes, mapped_bytes(sizes[i]), &bytes)) {
            bytes = SIZE_MAX;
            break;
        }
    }
    if (bytes > 0 && bytes < SIZE_MAX - HAL_CPU_HUGE_PAGE) {
        shared = hal_cpu_map_aligned(bytes);
    }
    if (bytes > 0 && !shared) {
        return error_no_memory(err, "buffers of %zu bytes", bytes);
    }
    if (shared) {
        hal_cpu_map_huge(shared, bytes);
    }
    enum status status = share(device, shared, sizes, count, out_buffers, &used, err);
    if (status != ST_OK && used < bytes) {
        must(munmap(shared + used, bytes - used) == 0);
    }
    return status;
}

enum status hal_cpu_buffer_import(struct hal_device *device, void *ptr, size_t size, bool is_final,
                                  struct hal_buffer **out_buffer, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    (void)is_final;
    if ((uintptr_t)ptr % IMPORT_ALIGN != 0) {
        return error_set(err, ST_UNSUPPORTED, "memory at %p is not aligned to %d bytes", ptr,
                         IMPORT_ALIGN);
    }
    struct cpu_buffer *buffer = malloc(sizeof(*buffer));
    if (!buffer) {
        return error_no_memory(err, "a buffer");
    }
    hal_buffer_init(&buffer->base, device, size, size ? ptr : NULL);
    buffer->origin = IMPORTED;
    buffer->pages = NULL;
    *out_buffer = &buffer->base;
    return ST_OK;
}

/* |base| as a buffer of this driver; it must not be a range of a pool. */
static struct cpu_buffer *cpu_buffer_of(struct hal_buffer *base)
{
    OBJ_CHECK(base, HAL_BUFFER_MAGIC);
    must(base->root == base && base->device->ops == &hal_cpu_ops);
    return (struct cpu_buffer *)base;
}

void hal_cpu_buffer_free(struct hal_buffer *base)
{
    OBJ_CHECK(base, HAL_BUFFER_MAGIC);
    struct cpu_buffer *buffer = cpu_buffer_of(base);
    release(base->host, base->size, buffer->origin);
    hal_cpu_pages_end_use(&hal_cpu_device_of(base->device)->pages, buffer->pages);
    hal_buffer_fini(base);
    free(buffer);
}

struct hal_cpu_pages_use **hal_cpu_buffer_pages(struct hal_buffer *base)
{
    return &cpu_buffer_of(base)->pages;
}

/* Discards only whole pages, and only of a mapping that this file made. */
void hal_cpu_buffer_discard(struct hal_buffer *base, size_t offset, size_t size)
{
    const struct cpu_buffer *buffer = cpu_buffer_of(base);
    must(in_range(offset, size, base->size));
    size_t page = page_size();
    size_t begin = align_up(offset, page), end = (offset + size) & ~(page - 1);
    if (buffer->origin == MAPPED && begin < end) {
        must(madvise((char *)base->host + begin, end - begin, MADV_DONTNEED) == 0);
    }
}

/* A discarded page of a mapping is zeros when it is next touched. */
void hal_cpu_buffer_clear(struct hal_buffer *base, size_t offset, size_t size)
{
    const struct cpu_buffer *buffer = cpu_buffer_of(base);
    size_t page = page_size(), all = offset + size;
    size_t begin = align_up(offset, page), end = all & ~(page - 1);
    char *host = base->host;
    if (buffer->origin != MAPPED || begin >= end) {
        begin = end = all;
    }
    if (offset < begin) {
        memset(host + offset, 0, begin - offset);
    }
    if (begin < end) {
        must(madvise(host + begin, end - begin, MADV_DONTNEED) == 0);
    }
    if (end < all) {
        memset(host + end, 0, all - end);
    }
}

size_t hal_cpu_buffer_page_bytes(const struct hal_buffer *base)
{
    const struct cpu_buffer *buffer = (const struct cpu_buffer *)base;
    OBJ_CHECK(base, HAL_BUFFER_MAGIC);
    return base->root == base && buffer->origin == MAPPED ? page_size() : 0;
}

/* The huge pages that have become full since |old|. They need not begin where the buffer does. */
void hal_cpu_buffer_compact(struct hal_buffer *base, size_t offset, size_t size, size_t old)
{
    if (hal_cpu_buffer_page_bytes(base) == 0) {
        return;
    }
    uintptr_t host = (uintptr_t)base->host, begin = host + offset;
    uintptr_t first = align_up(begin, HAL_CPU_HUGE_PAGE);
    uintptr_t known = (begin + old) & ~(HAL_CPU_HUGE_PAGE - 1);
    uintptr_t end = (begin + size) & ~(HAL_CPU_HUGE_PAGE - 1);
    first = known > first ? known : first;
    if (first < end) {
        hal_cpu_map_collapse((char *)base->host + (first - host), end - first);
    }
}
