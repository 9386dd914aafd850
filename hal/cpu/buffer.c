/* SPDX-License-Identifier: MIT */
/* Small buffers come from the heap. Large ones are separate mappings: the system gives zeroed
 * pages, and gets them back when the buffer is freed. Constants ask for huge pages: one token of a
 * language model reads all weights, and looking up small pages takes a fifth of the time. Other
 * buffers do not ask, because a page that is written in part takes memory as a whole. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/cpu/device.h"

#define MAPPED_MIN 65536 /* bytes */
#define IMPORT_ALIGN 16  /* no element needs more */

enum origin { HEAP, MAPPED, IMPORTED };

struct cpu_buffer {
    struct hal_buffer base;
    enum origin origin;
};

static void *allocate(size_t size, enum hal_memory memory, enum origin *out_origin)
{
    void *host = NULL;
    if (size >= MAPPED_MIN) {
        *out_origin = MAPPED;
        host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
        if (host == MAP_FAILED) {
            return NULL;
        }
        if (memory == HAL_MEMORY_CONSTANT) {
            (void)madvise(host, size, MADV_HUGEPAGE); /* a hint: not every system has them */
        }
        return host;
    }
    *out_origin = HEAP;
    if (posix_memalign(&host, HAL_CPU_BUFFER_ALIGN, size) != 0) {
        return NULL;
    }
    return hal_memory_is_zeroed(memory) ? memset(host, 0, size) : host;
}

enum status hal_cpu_buffer_new(struct hal_device *device, size_t size, enum hal_memory memory,
                               struct hal_buffer **out_buffer, struct error *err)
{
    enum origin origin = HEAP;
    void *host = size ? allocate(size, memory, &origin) : NULL;
    struct cpu_buffer *buffer = malloc(sizeof(*buffer));
    if (!buffer || (size && !host)) {
        if (host && origin == MAPPED) {
            munmap(host, size);
        } else {
            free(host);
        }
        free(buffer);
        return error_set(err, ST_EXHAUSTED, "no memory for a buffer of %zu bytes", size);
    }
    hal_buffer_init(&buffer->base, device, size, host);
    buffer->origin = origin;
    *out_buffer = &buffer->base;
    return ST_OK;
}

enum status hal_cpu_buffer_import(struct hal_device *device, void *ptr, size_t size, bool is_final,
                                  struct hal_buffer **out_buffer, struct error *err)
{
    (void)is_final;
    if ((uintptr_t)ptr % IMPORT_ALIGN != 0) {
        return error_set(err, ST_UNSUPPORTED, "memory at %p is not aligned to %d bytes", ptr,
                         IMPORT_ALIGN);
    }
    struct cpu_buffer *buffer = malloc(sizeof(*buffer));
    if (!buffer) {
        return error_set(err, ST_EXHAUSTED, "no memory for a buffer");
    }
    hal_buffer_init(&buffer->base, device, size, size ? ptr : NULL);
    buffer->origin = IMPORTED;
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
    struct cpu_buffer *buffer = cpu_buffer_of(base);
    switch (buffer->origin) {
    case HEAP:
        free(base->host);
        break;
    case MAPPED:
        must(munmap(base->host, base->size) == 0);
        break;
    case IMPORTED:
        break;
    }
    hal_buffer_fini(base);
    free(buffer);
}

/* Discards only whole pages, and only of a mapping that this file made. */
void hal_cpu_buffer_discard(struct hal_buffer *base, size_t offset, size_t size)
{
    const struct cpu_buffer *buffer = cpu_buffer_of(base);
    must(in_range(offset, size, base->size));
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t begin = align_up(offset, page), end = (offset + size) & ~(page - 1);
    if (buffer->origin == MAPPED && begin < end) {
        must(madvise((char *)base->host + begin, end - begin, MADV_DONTNEED) == 0);
    }
}
