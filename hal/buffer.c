/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/buffer.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/device_priv.h"

void hal_buffer_init(struct hal_buffer *buffer, struct hal_device *device, size_t size, void *host)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    *buffer = (struct hal_buffer){
        .magic = HAL_BUFFER_MAGIC, .device = device, .size = size, .host = host, .root = buffer};
    refs_init(&buffer->refs);
    atomic_fetch_add_explicit(&device->objects, 1, memory_order_relaxed);
}

void hal_buffer_fini(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    must(refs_are_gone(&buffer->refs));
    buffer->magic = 0;
}

static enum status check_size(struct hal_device *device, size_t size, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    size_t max = device->props.memory_bytes_max;
    if (size > max) {
        return error_set(err, ST_TOO_LARGE, "%s: a buffer of %zu bytes, at most %zu are possible",
                         device->props.name, size, max);
    }
    return ST_OK;
}

enum status hal_buffer_new(struct hal_device *device, size_t size, struct hal_buffer **out_buffer,
                           struct error *err)
{
    TRY(check_size(device, size, err));
    return device->ops->buffer_new(device, size, HAL_MEMORY_ZEROED, out_buffer, err);
}

enum status hal_buffer_new_sparse(struct hal_device *device, size_t size,
                                  struct hal_buffer **out_buffer, struct error *err)
{
    return hal_buffer_new_in(device, size, HAL_MEMORY_SPARSE, out_buffer, err);
}

size_t hal_buffer_page_bytes(const struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    const struct hal_device_ops *ops = buffer->device->ops;
    return ops->buffer_page_bytes ? ops->buffer_page_bytes(buffer) : 0;
}

void hal_buffer_compact(struct hal_buffer *buffer, size_t offset, size_t size, size_t old)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    must(in_range(offset, size, buffer->size) && old <= size);
    const struct hal_device_ops *ops = buffer->device->ops;
    if (ops->buffer_compact) {
        ops->buffer_compact(buffer, offset, size, old);
    }
}

enum status hal_buffer_new_constant(struct hal_device *device, size_t size,
                                    struct hal_buffer **out_buffer, struct error *err)
{
    return hal_buffer_new_in(device, size, HAL_MEMORY_CONSTANT, out_buffer, err);
}

static enum status new_one_by_one(struct hal_device *device, const size_t *sizes, size_t count,
                                  struct hal_buffer **out_buffers, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        TRY(hal_buffer_new_constant(device, sizes[i], &out_buffers[i], err));
    }
    return ST_OK;
}

enum status hal_buffer_new_constants(struct hal_device *device, const size_t *sizes, size_t count,
                                     struct hal_buffer **out_buffers, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    for (size_t i = 0; i < count; i++) {
        out_buffers[i] = NULL;
        TRY(check_size(device, sizes[i], err));
    }
    enum status status = device->ops->buffers_new
                             ? device->ops->buffers_new(device, sizes, count, out_buffers, err)
                             : new_one_by_one(device, sizes, count, out_buffers, err);
    for (size_t i = 0; i < count && status != ST_OK; i++) {
        hal_buffer_unref(out_buffers[i]);
    }
    return status;
}

enum status hal_buffer_new_in(struct hal_device *device, size_t size, enum hal_memory memory,
                              struct hal_buffer **out_buffer, struct error *err)
{
    TRY(check_size(device, size, err));
    return device->ops->buffer_new(device, size, memory, out_buffer, err);
}

static enum status import(struct hal_device *device, void *ptr, size_t size, bool is_final,
                          struct hal_buffer **out_buffer, struct error *err)
{
    must(ptr || size == 0);
    if (!device->ops->buffer_import) {
        return error_set(err, ST_UNSUPPORTED, "%s: host memory cannot be used in place",
                         device->props.name);
    }
    TRY(check_size(device, size, err));
    return device->ops->buffer_import(device, ptr, size, is_final, out_buffer, err);
}

enum status hal_buffer_import(struct hal_device *device, void *ptr, size_t size, bool read_only,
                              hal_buffer_release_f *release, void *arg,
                              struct hal_buffer **out_buffer, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    TRY(import(device, ptr, size, false, out_buffer, err));
    (*out_buffer)->read_only = read_only;
    (*out_buffer)->release = release;
    (*out_buffer)->release_arg = arg;
    return ST_OK;
}

enum status hal_buffer_import_final(struct hal_device *device, void *ptr, size_t size,
                                    struct hal_buffer **out_buffer, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    TRY(import(device, ptr, size, true, out_buffer, err));
    (*out_buffer)->read_only = true;
    (*out_buffer)->is_final = true;
    return ST_OK;
}

void hal_buffer_freeze(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    must(buffer->root == buffer); /* not a range of a pool, which is used again */
    if (!buffer->is_final) {      /* others may read a buffer that is frozen already */
        buffer->read_only = true;
        buffer->is_final = true;
    }
}

void hal_buffer_clear(struct hal_buffer *buffer, size_t offset, size_t size)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    must(in_range(offset, size, buffer->size) && !buffer->read_only);
    if (buffer->root == buffer && buffer->device->ops->buffer_clear) {
        buffer->device->ops->buffer_clear(buffer, offset, size);
    } else if (size > 0) {
        must(buffer->host);
        memset((char *)buffer->host + offset, 0, size);
    }
}

struct hal_buffer *hal_buffer_ref(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    refs_take(&buffer->refs);
    return buffer;
}

void hal_buffer_watch(struct hal_buffer *buffer, hal_buffer_release_f *leave, void *arg)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    must(buffer->root == buffer && !buffer->leave);
    buffer->leave = leave;
    buffer->leave_arg = arg;
}

bool hal_buffer_refs_are(struct hal_buffer *buffer, unsigned count)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    return refs_are_all(&buffer->refs, count);
}

bool hal_buffer_try_ref(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    return refs_try_take(&buffer->refs);
}

static void free_buffer(struct hal_buffer *buffer)
{
    if (buffer->leave) {
        buffer->leave(buffer->leave_arg);
    }
    struct hal_device *device = buffer->device;
    hal_buffer_release_f *release = buffer->release;
    void *arg = buffer->release_arg;

    device->ops->buffer_free(buffer);
    if (release) {
        release(arg);
    }
    atomic_fetch_sub_explicit(&device->objects, 1, memory_order_release);
}

void hal_buffer_unref(struct hal_buffer *buffer)
{
    if (!buffer) {
        return;
    }
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    if (!refs_drop(&buffer->refs)) {
        return;
    }
    if (buffer->recycle) {
        buffer->recycle(buffer);
    } else {
        free_buffer(buffer);
    }
}

size_t hal_buffer_size(const struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    return buffer->size;
}

struct hal_device *hal_buffer_device(const struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    return buffer->device;
}

void *hal_buffer_map(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    return buffer->host;
}
