/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/infer/regions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "protocol/json.h"

/* The most bytes that the kernel copies with one call (read(2)). */
#define COPY_BYTES_MAX 0x7ffff000u

void regions_init(struct regions *regions, const struct params *params)
{
    regions->magic = REGIONS_MAGIC;
    regions->params = params;
    list_init(&regions->named);
    int rc = pthread_mutex_init(&regions->lock, NULL);
    must(rc == 0);
}

void regions_fini(struct regions *regions)
{
    if (regions->magic == 0) {
        return;
    }
    OBJ_CHECK(regions, REGIONS_MAGIC);
    regions_unregister(regions, "");
    must(regions->count == 0 && regions->bytes == 0);
    pthread_mutex_destroy(&regions->lock);
    regions->magic = 0;
}

static void lock(struct regions *regions)
{
    OBJ_CHECK(regions, REGIONS_MAGIC);
    int rc = pthread_mutex_lock(&regions->lock);
    must(rc == 0);
}

static void unlock(struct regions *regions)
{
    int rc = pthread_mutex_unlock(&regions->lock);
    must(rc == 0);
}

struct regions_load regions_load(struct regions *regions)
{
    OBJ_CHECK(regions, REGIONS_MAGIC);
    lock(regions);
    const struct regions_load load = {regions->count, regions->bytes};
    unlock(regions);
    return load;
}

/* ---- one region ------------------------------------------------------------------------------ */

static void free_region(struct region *region)
{
    close(region->fd);
    region->magic = 0;
    free(region);
}

void region_unref(struct region *region)
{
    if (!region) {
        return;
    }
    OBJ_CHECK(region, REGION_MAGIC);
    if (refs_drop(&region->refs)) {
        struct regions *regions = region->regions;
        lock(regions);
        must(regions->count > 0 && regions->bytes >= region->bytes && list_is_empty(&region->link));
        regions->count--;
        regions->bytes -= region->bytes;
        unlock(regions);
        free_region(region);
    }
}

/* A file's name for shm_open(3), which may begin with one slash. */
static enum status check_key(struct span key, struct error *err)
{
    size_t skipped = key.len && key.ptr[0] == '/';
    struct span name = span_of(key.ptr + skipped, key.len - skipped);
    bool is_name = name.len > 0 && name.len <= REGION_KEY_MAX && !memchr(name.ptr, '/', name.len) &&
                   !span_is(name, ".") && !span_is(name, "..");
    for (size_t i = 0; is_name && i < name.len; i++) {
        is_name = name.ptr[i] >= 0x20 && name.ptr[i] != 0x7f;
    }
    return is_name ? ST_OK
                   : error_set(err, ST_INVALID,
                               "key: expected a name for shm_open(3) of at most %d bytes, such as "
                               "\"/tensors\", got '%.*s'",
                               REGION_KEY_MAX, SPAN_SHORT(key));
}

static enum status open_object(struct region *region, struct error *err)
{
    /* O_NONBLOCK: its owner may have a lease (fcntl(2)), and opening would wait for it. */
    region->fd = shm_open(region->key, O_RDWR | O_NONBLOCK, 0);
    if (region->fd < 0) {
        bool is_ours = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return error_set(err, is_ours ? ST_EXHAUSTED : ST_INVALID, "key: '%.64s': %s", region->key,
                         strerror(errno));
    }
    return ST_OK;
}

static enum status check_object(const struct region *region, struct error *err)
{
    struct stat st;
    if (fstat(region->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return error_set(err, ST_INVALID, "key: '%.64s' is no shared memory", region->key);
    }
    if (region->bytes == 0 || !in_range(region->offset, region->bytes, (uint64_t)st.st_size)) {
        return error_set(
            err, ST_INVALID,
            "byte_size: expected at least 1 byte within the %lld bytes of '%.64s', got "
            "%" PRIu64 " from %" PRIu64 " on",
            (long long)st.st_size, region->key, region->bytes, region->offset);
    }
    return ST_OK;
}

static enum status new_region(struct regions *regions, const char *name,
                              const struct oip_region *order, struct region **out_region,
                              struct error *err)
{
    TRY(check_key(order->key, err));
    struct region *region = calloc(1, sizeof(*region));
    if (!region) {
        return error_no_memory(err, "a region");
    }
    region->magic = REGION_MAGIC;
    refs_init(&region->refs);
    list_init(&region->link);
    region->regions = regions;
    region->offset = order->offset;
    region->bytes = order->bytes;
    snprintf(region->name, sizeof(region->name), "%s", name);
    snprintf(region->key, sizeof(region->key), "%.*s", SPAN_FMT(order->key));
    enum status status = open_object(region, err);
    if (status != ST_OK) {
        free(region);
        return status;
    }
    status = check_object(region, err);
    if (status != ST_OK) {
        free_region(region);
        return status;
    }
    *out_region = region;
    return ST_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct region *of_link(struct list *link)
{
    struct region *region;
    OBJ_CAST(region, LIST_ENTRY(link, struct region, link), REGION_MAGIC);
    return region;
}

/* Under the lock. */
static struct region *find(struct regions *regions, struct span name)
{
    for (struct list *l = regions->named.next; l != &regions->named; l = l->next) {
        if (span_is(name, of_link(l)->name)) {
            return of_link(l);
        }
    }
    return NULL;
}

/* Under the lock. */
static enum status check_room(struct regions *regions, const struct region *fresh,
                              struct error *err)
{
    const struct params *params = regions->params;
    if (find(regions, span_str(fresh->name))) {
        return error_set(err, ST_INVALID, "region '%s': it is registered already", fresh->name);
    }
    if (regions->count >= params->region_count_max) {
        return error_set(err, ST_EXHAUSTED,
                         "region '%s': %u regions are in use, as many as --region-count-max says",
                         fresh->name, regions->count);
    }
    must(regions->bytes <= params->region_bytes_max);
    if (fresh->bytes > params->region_bytes_max - regions->bytes) {
        return error_set(err, ST_EXHAUSTED,
                         "region '%s': expected at most %" PRIu64 " bytes, got %" PRIu64
                         ": %" PRIu64 " of --region-bytes-max are in use",
                         fresh->name, params->region_bytes_max - regions->bytes, fresh->bytes,
                         regions->bytes);
    }
    return ST_OK;
}

enum status regions_register(struct regions *regions, const char *name,
                             const struct oip_region *order, struct error *err)
{
    OBJ_CHECK(regions, REGIONS_MAGIC);
    struct region *region = NULL;
    TRY(new_region(regions, name, order, &region, err));
    lock(regions);
    enum status status = check_room(regions, region, err);
    if (status == ST_OK) {
        regions->count++;
        regions->bytes += region->bytes;
        list_push_back(&regions->named, &region->link);
    }
    unlock(regions);
    if (status != ST_OK) {
        free_region(region);
    }
    return status;
}

/* Takes the table's reference. */
static struct region *take(struct regions *regions, const char *name)
{
    lock(regions);
    struct region *region = *name                            ? find(regions, span_str(name))
                            : list_is_empty(&regions->named) ? NULL
                                                             : of_link(regions->named.next);
    if (region) {
        list_remove(&region->link);
    }
    unlock(regions);
    return region;
}

void regions_unregister(struct regions *regions, const char *name)
{
    OBJ_CHECK(regions, REGIONS_MAGIC);
    struct region *region;
    do {
        region = take(regions, name);
        region_unref(region);
    } while (region);
}

static enum status refuse_name(struct span name, struct error *err)
{
    return error_set(err, ST_NOT_FOUND, "no region '%.*s' of shared memory is registered",
                     SPAN_SHORT(name));
}

enum status regions_find(struct regions *regions, struct span name, struct region **out_region,
                         struct error *err)
{
    OBJ_CHECK(regions, REGIONS_MAGIC);
    lock(regions);
    struct region *region = find(regions, name);
    if (region) {
        refs_take(&region->refs);
    }
    unlock(regions);
    *out_region = region;
    return region ? ST_OK : refuse_name(name, err);
}

static void print_region(const struct region *region, struct buf *out)
{
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(region->name));
    buf_add_str(out, ",\"key\":");
    json_print_string(out, span_str(region->key));
    buf_printf(out, ",\"offset\":%" PRIu64 ",\"byte_size\":%" PRIu64 "}", region->offset,
               region->bytes);
}

enum status regions_print(struct regions *regions, const char *name, struct buf *out,
                          struct error *err)
{
    OBJ_CHECK(regions, REGIONS_MAGIC);
    uint32_t count = 0;
    buf_add_char(out, '[');
    lock(regions);
    for (struct list *l = regions->named.next; l != &regions->named; l = l->next) {
        if (!*name || strcmp(of_link(l)->name, name) == 0) {
            buf_add_str(out, count++ ? "," : "");
            print_region(of_link(l), out);
        }
    }
    unlock(regions);
    buf_add_char(out, ']');
    return !*name || count ? ST_OK : refuse_name(span_str(name), err);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

enum status region_verify(const struct region *region, uint64_t offset, uint64_t bytes,
                          struct error *err)
{
    OBJ_CHECK(region, REGION_MAGIC);
    return in_range(offset, bytes, region->bytes)
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected a range within the %" PRIu64 " bytes of region '%s', got "
                           "%" PRIu64 " bytes from %" PRIu64 " on",
                           region->bytes, region->name, bytes, offset);
}

static enum status refuse_access(const struct region *region, int number, struct error *err)
{
    return error_set(err, ST_INVALID, "region '%s': %s", region->name,
                     number ? strerror(number) : "its shared memory has been cut short");
}

enum status region_read(const struct region *region, uint64_t offset, void *dst, size_t bytes,
                        struct error *err)
{
    OBJ_CHECK(region, REGION_MAGIC);
    TRY(region_verify(region, offset, bytes, err));
    off_t at = (off_t)(region->offset + offset);
    for (size_t done = 0; done < bytes;) {
        size_t step = bytes - done < COPY_BYTES_MAX ? bytes - done : COPY_BYTES_MAX;
        ssize_t got = pread(region->fd, (uint8_t *)dst + done, step, at + (off_t)done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return refuse_access(region, got == 0 ? 0 : errno, err);
        }
    }
    return ST_OK;
}

/* Writing beyond the end would make the object longer, with memory that is charged to us. */
static enum status check_end(const struct region *region, uint64_t end, struct error *err)
{
    struct stat st;
    if (fstat(region->fd, &st) < 0) {
        return refuse_access(region, errno, err);
    }
    return (uint64_t)st.st_size < end ? refuse_access(region, 0, err) : ST_OK;
}

enum status region_write(const struct region *region, uint64_t offset, const void *src,
                         size_t bytes, struct error *err)
{
    OBJ_CHECK(region, REGION_MAGIC);
    TRY(region_verify(region, offset, bytes, err));
    off_t at = (off_t)(region->offset + offset);
    TRY(check_end(region, region->offset + offset + bytes, err));
    for (size_t done = 0; done < bytes;) {
        size_t step = bytes - done < COPY_BYTES_MAX ? bytes - done : COPY_BYTES_MAX;
        ssize_t put = pwrite(region->fd, (const uint8_t *)src + done, step, at + (off_t)done);
        if (put > 0) {
            done += (size_t)put;
        } else if (put == 0 || errno != EINTR) {
            return refuse_access(region, put == 0 ? ENOSPC : errno, err);
        }
    }
    return ST_OK;
}
