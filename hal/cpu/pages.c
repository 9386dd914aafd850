/* SPDX-License-Identifier: MIT */
/*
 * One file in memory (memfd_create(2)) has the pages of all buffers, so they need one descriptor.
 * Pages are a range of it. Its numbers are never used again: the system has 2^63 of them, and gets
 * the memory of a range back by a hole. Where it knows no holes, there are no pages. A buffer maps
 * its part privately, so that the system copies a page which is written (MAP_PRIVATE).
 *
 * Content is written by pwrite(), which says if there is no memory, and is never truncated: reading
 * a part raises no SIGBUS. A part replaces a buffer's own memory as a read-only one: the system
 * does not count it as memory that may be needed, so all that can fail is the number of mappings,
 * which mmap() checks before it takes the old one away. Otherwise a failure could leave a hole in
 * the buffer, where another thread may map something. A part that may be written becomes so
 * afterwards.
 */
#include "config.h"

#include "hal/cpu/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/cpu/device.h"

struct cpu_pages {
    struct hal_pages base;
    uint64_t begin; /* of its range */
};

static struct cpu_pages *cpu_pages_of(struct hal_pages *base)
{
    OBJ_CHECK(base, HAL_PAGES_MAGIC);
    return (struct cpu_pages *)base;
}

static struct hal_cpu_pages_file *file_of(const struct hal_pages *pages)
{
    return &hal_cpu_device_of(pages->device)->pages;
}

void hal_cpu_pages_init_file(struct hal_cpu_pages_file *file)
{
    must(pthread_mutex_init(&file->lock, NULL) == 0);
    file->fd = -1;
    file->has_no_holes = false;
    file->end = 0;
    atomic_init(&file->parts, 0);
}

void hal_cpu_pages_fini_file(struct hal_cpu_pages_file *file)
{
    must(atomic_load(&file->parts) == 0);
    if (file->fd >= 0) {
        close(file->fd);
    }
    pthread_mutex_destroy(&file->lock);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* A file that reaches the limit of files would raise a signal. */
static bool may_grow(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

static bool punch(int fd, uint64_t begin, size_t size)
{
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)size) ==
           0;
}

/* With the lock: makes the file, if the system knows holes of files. */
static void open_file(struct hal_cpu_pages_file *file)
{
    const size_t size = 4096;
    int fd = may_grow() ? memfd_create("pted pages", MFD_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    file->has_no_holes = ftruncate(fd, (off_t)size) != 0 || !punch(fd, 0, size);
    if (file->has_no_holes) {
        close(fd);
    } else {
        file->fd = fd;
    }
}

/* With the lock: the file has a range of |size| more bytes. */
static bool enlarge(struct hal_cpu_pages_file *file, size_t size)
{
    if (file->fd < 0 && !file->has_no_holes) {
        open_file(file);
    }
    if (file->fd < 0 || size > (uint64_t)INT64_MAX - file->end) {
        return false;
    }
    return ftruncate(file->fd, (off_t)(file->end + size)) == 0;
}

static bool find_range(struct hal_cpu_pages_file *file, size_t size, uint64_t *out_begin)
{
    pthread_mutex_lock(&file->lock);
    bool has_range = enlarge(file, size);
    if (has_range) {
        *out_begin = file->end;
        file->end += size;
    }
    pthread_mutex_unlock(&file->lock);
    return has_range;
}

enum status hal_cpu_pages_new(struct hal_device *device, size_t size, struct hal_pages **out_pages,
                              struct error *err)
{
    uint64_t begin;
    if (!find_range(&hal_cpu_device_of(device)->pages, size, &begin)) {
        return error_set(err, ST_UNSUPPORTED, "the system has no file in memory for %zu bytes",
                         size);
    }
    struct cpu_pages *pages = malloc(sizeof(*pages));
    if (!pages) {
        return error_no_memory(err, "shared pages");
    }
    hal_pages_init(&pages->base, device, size);
    pages->begin = begin;
    *out_pages = &pages->base;
    return ST_OK;
}

void hal_cpu_pages_free(struct hal_pages *base)
{
    struct cpu_pages *pages = cpu_pages_of(base);
    /* It could for an empty file. If it cannot now, the memory is lost, but nothing else. */
    (void)punch(file_of(base)->fd, pages->begin, base->size);
    hal_pages_fini(base);
    free(pages);
}

/* ---- parts of buffers ------------------------------------------------------------------------ */

static bool count_part(struct hal_cpu_pages_file *file)
{
    if (atomic_fetch_add(&file->parts, 1) >= HAL_CPU_PAGES_PARTS_MAX) {
        atomic_fetch_sub(&file->parts, 1);
        return false;
    }
    return true;
}

/* |buffer| has a part of |pages|, and keeps them. */
static enum status begin_use(struct hal_buffer *buffer, struct hal_pages *pages, struct error *err)
{
    struct hal_cpu_pages_use **uses = hal_cpu_buffer_pages(buffer);
    if (!count_part(file_of(pages))) {
        return error_set(err, ST_EXHAUSTED, "%d parts of buffers are shared already",
                         HAL_CPU_PAGES_PARTS_MAX);
    }
    if (!*uses || (*uses)->pages != pages) {
        struct hal_cpu_pages_use *use = malloc(sizeof(*use));
        if (!use) {
            atomic_fetch_sub(&file_of(pages)->parts, 1);
            return error_no_memory(err, "shared pages");
        }
        *use = (struct hal_cpu_pages_use){.next = *uses, .pages = hal_pages_ref(pages)};
        *uses = use;
    }
    (*uses)->parts++;
    return ST_OK;
}

/* The part that was counted last is none. */
static void drop_part(struct hal_buffer *buffer, struct hal_cpu_pages_file *file)
{
    struct hal_cpu_pages_use **uses = hal_cpu_buffer_pages(buffer), *last = *uses;
    atomic_fetch_sub(&file->parts, 1);
    if (--last->parts == 0) {
        *uses = last->next;
        hal_pages_unref(last->pages);
        free(last);
    }
}

void hal_cpu_pages_end_use(struct hal_cpu_pages_file *file, struct hal_cpu_pages_use *uses)
{
    while (uses) {
        struct hal_cpu_pages_use *use = uses;
        uses = use->next;
        atomic_fetch_sub(&file->parts, use->parts);
        hal_pages_unref(use->pages);
        free(use);
    }
}

/* A part that was counted becomes one of |base|. */
static enum status map(struct hal_pages *base, size_t at, struct hal_buffer *buffer, size_t offset,
                       size_t size, struct error *err)
{
    void *host = (char *)buffer->host + offset;
    void *got = mmap(host, size, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                     file_of(base)->fd, (off_t)(cpu_pages_of(base)->begin + at));
    if (got != host) {
        return error_set(err, ST_EXHAUSTED, "cannot map %zu shared bytes: %s", size,
                         strerror(errno));
    }
    return ST_OK;
}

static enum status write_all(int fd, uint64_t at, const char *from, size_t size, struct error *err)
{
    while (size > 0) {
        ssize_t written = pwrite(fd, from, size, (off_t)at);
        if (written <= 0 && errno != EINTR) {
            return error_no_memory(err, "%zu shared bytes: %s", size, strerror(errno));
        }
        if (written > 0) {
            at += (uint64_t)written;
            from += written;
            size -= (size_t)written;
        }
    }
    return ST_OK;
}

enum status hal_cpu_pages_take(struct hal_pages *base, size_t at, struct hal_buffer *buffer,
                               size_t offset, size_t size, struct error *err)
{
    struct hal_cpu_pages_file *file = file_of(base);
    const char *from = (const char *)buffer->host + offset;
    uint64_t begin = cpu_pages_of(base)->begin + at;
    TRY(begin_use(buffer, base, err));
    enum status status = write_all(file->fd, begin, from, size, err);
    if (status == ST_OK) {
        status = map(base, at, buffer, offset, size, err);
    }
    if (status != ST_OK) {
        drop_part(buffer, file);
        (void)punch(file->fd, begin, size);
    }
    return status;
}

enum status hal_cpu_pages_map(struct hal_pages *base, size_t at, struct hal_buffer *buffer,
                              size_t offset, size_t size, struct error *err)
{
    TRY(begin_use(buffer, base, err));
    enum status status = map(base, at, buffer, offset, size, err);
    if (status != ST_OK) {
        drop_part(buffer, file_of(base));
    } else if (mprotect((char *)buffer->host + offset, size, PROT_READ | PROT_WRITE) != 0) {
        status = error_set(err, ST_EXHAUSTED, "no memory to write %zu shared bytes: %s", size,
                           strerror(errno));
    }
    return status;
}
