/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/pages.h"

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device_priv.h"

void hal_pages_init(struct hal_pages *pages, struct hal_device *device, size_t size)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    *pages = (struct hal_pages){.magic = HAL_PAGES_MAGIC, .device = device, .size = size};
    refs_init(&pages->refs);
    atomic_fetch_add_explicit(&device->objects, 1, memory_order_relaxed);
}

void hal_pages_fini(struct hal_pages *pages)
{
    OBJ_CHECK(pages, HAL_PAGES_MAGIC);
    must(refs_are_gone(&pages->refs));
    pages->magic = 0;
    atomic_fetch_sub_explicit(&pages->device->objects, 1, memory_order_release);
}

enum status hal_pages_new(struct hal_device *device, size_t size, struct hal_pages **out_pages,
                          struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    if (!device->ops->pages_new) {
        return error_set(err, ST_UNSUPPORTED, "%s: buffers cannot share pages", device->props.name);
    }
    return device->ops->pages_new(device, size, out_pages, err);
}

struct hal_pages *hal_pages_ref(struct hal_pages *pages)
{
    OBJ_CHECK(pages, HAL_PAGES_MAGIC);
    refs_take(&pages->refs);
    return pages;
}

void hal_pages_unref(struct hal_pages *pages)
{
    if (pages) {
        OBJ_CHECK(pages, HAL_PAGES_MAGIC);
        if (refs_drop(&pages->refs)) {
            pages->device->ops->pages_free(pages);
        }
    }
}

static void check(const struct hal_pages *pages, size_t at, const struct hal_buffer *buffer,
                  size_t offset, size_t size)
{
    OBJ_CHECK(pages, HAL_PAGES_MAGIC);
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    size_t page = hal_buffer_page_bytes(buffer);
    must(pages->device == buffer->device && page > 0 && size > 0);
    must(in_range(at, size, pages->size) && in_range(offset, size, buffer->size));
    must((at | offset | size) % page == 0);
}

enum status hal_pages_take(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                           size_t offset, size_t size, struct error *err)
{
    check(pages, at, buffer, offset, size);
    return pages->device->ops->pages_take(pages, at, buffer, offset, size, err);
}

enum status hal_pages_map(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                          size_t offset, size_t size, struct error *err)
{
    check(pages, at, buffer, offset, size);
    return pages->device->ops->pages_map(pages, at, buffer, offset, size, err);
}
