/* SPDX-License-Identifier: MIT */
/*
 * Pages: memory that several sparse buffers (hal_buffer_new_sparse()) have in common. A buffer that
 * writes one of them gets a page of its own then (copy on write), so none sees what another writes.
 *
 *     hal_pages_new      room for content
 *     hal_pages_take     content moves there from the buffer that had it
 *     hal_pages_map      other buffers have it, too
 *
 * Offsets and sizes are multiples of hal_buffer_page_bytes(). A buffer keeps the pages that it has.
 * Two threads do not call these functions for one buffer at a time; otherwise any thread.
 */
#ifndef PTED_HAL_PAGES_H
#define PTED_HAL_PAGES_H

#include <stddef.h>

#include "base/status.h"

struct hal_buffer;
struct hal_device;
struct hal_pages;

/* |size| bytes without content, which take memory when they get some. ST_UNSUPPORTED: buffers of
 * |device| cannot share pages. */
MUST_CHECK enum status hal_pages_new(struct hal_device *device, size_t size,
                                     struct hal_pages **out_pages, struct error *err);
struct hal_pages *hal_pages_ref(struct hal_pages *pages);
void hal_pages_unref(struct hal_pages *pages); /* NULL is fine */

/*
 * Moves |size| bytes from |offset| of |buffer| to |at| of |pages|, once for each |at|. The buffer
 * has the same bytes as before, at any time. Nobody writes these bytes of it any more: the host
 * would get a signal. If it fails, buffer and pages are as before.
 */
MUST_CHECK enum status hal_pages_take(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                                      size_t offset, size_t size, struct error *err);

/* |size| bytes from |offset| of |buffer| become those that were moved to |at| of |pages|. If it
 * fails, they may not be read any more, and |buffer| is good only for hal_buffer_unref(). */
MUST_CHECK enum status hal_pages_map(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                                     size_t offset, size_t size, struct error *err);

#endif
