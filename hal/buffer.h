/* SPDX-License-Identifier: MIT */
/*
 * Buffers: contiguous device memory, shared by reference count.
 *
 * A buffer owns its memory, or imports host memory of another owner (a mapped file, a request body)
 * and tells the owner when the last reference is dropped, or is a range of a pool (hal/pool.h).
 */
#ifndef PTED_HAL_BUFFER_H
#define PTED_HAL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct hal_buffer;
struct hal_device;

typedef void hal_buffer_release_f(void *arg);

/* |size| zeroed bytes aligned to the device's buffer_align. 0 bytes are allowed and map to NULL. */
MUST_CHECK enum status hal_buffer_new(struct hal_device *device, size_t size,
                                      struct hal_buffer **out_buffer, struct error *err);

/* Does the same for contents of which only parts are ever used: a large buffer takes memory only
 * for the pages that have been written, where the device can do so. */
MUST_CHECK enum status hal_buffer_new_sparse(struct hal_device *device, size_t size,
                                             struct hal_buffer **out_buffer, struct error *err);

/* Returns the size of the pages by which |buffer|, which hal_buffer_new_sparse() has made, takes
 * memory; 0: it has taken all of it. */
size_t hal_buffer_page_bytes(const struct hal_buffer *buffer);

/* hal_buffer_new() for contents that the caller soon writes as a whole, and that many calls read:
 * weights. They may lie in larger pages. */
MUST_CHECK enum status hal_buffer_new_constant(struct hal_device *device, size_t size,
                                               struct hal_buffer **out_buffer, struct error *err);

/* |count| such buffers that lie close together, so that more of their bytes lie in larger pages.
 * Each is freed by itself. If one cannot be made, none is. */
MUST_CHECK enum status hal_buffer_new_constants(struct hal_device *device, const size_t *sizes,
                                                size_t count, struct hal_buffer **out_buffers,
                                                struct error *err);

/*
 * Imports host memory as a buffer. |release| (may be NULL) runs once, on the thread that drops the
 * last reference. ST_UNSUPPORTED: the device cannot use this memory in place (alignment, device),
 * and the caller has to copy it. No command buffer may write |read_only| memory (asserted).
 */
MUST_CHECK enum status hal_buffer_import(struct hal_device *device, void *ptr, size_t size,
                                         bool read_only, hal_buffer_release_f *release, void *arg,
                                         struct hal_buffer **out_buffer, struct error *err);

/*
 * Does as hal_buffer_import(), for host memory whose bytes never change. Such a buffer may be bound
 * directly but never put into a slot. A device with memory of its own copies the ranges that its
 * kernels read.
 */
MUST_CHECK enum status hal_buffer_import_final(struct hal_device *device, void *ptr, size_t size,
                                               struct hal_buffer **out_buffer, struct error *err);

/* From now on the bytes of |buffer| never change, as if it came from hal_buffer_import_final(). */
void hal_buffer_freeze(struct hal_buffer *buffer);

/* Fills |size| bytes of host-visible memory with zeros. Whole pages go back to the system, where
 * the device can do so, until they are written again. */
void hal_buffer_clear(struct hal_buffer *buffer, size_t offset, size_t size);

/*
 * Of a buffer that hal_buffer_new_sparse() has made: |size| bytes from |offset| have content by
 * now, of which the first |old| had it at the last call. The device may move them to larger pages,
 * which are read faster, where that takes no more memory. Nobody else uses them meanwhile.
 */
void hal_buffer_compact(struct hal_buffer *buffer, size_t offset, size_t size, size_t old);

struct hal_buffer *hal_buffer_ref(struct hal_buffer *buffer);
void hal_buffer_unref(struct hal_buffer *buffer); /* NULL is fine */

/*
 * Serves a table that lists |buffer| and holds no reference to it: |leave| runs once, on the thread
 * that drops the last reference, before the memory is freed. Until it has returned,
 * hal_buffer_try_ref() may be called. One table for a buffer, which is no range of a pool.
 */
void hal_buffer_watch(struct hal_buffer *buffer, hal_buffer_release_f *leave, void *arg);

/* Are the caller's |count| references all that there are? */
bool hal_buffer_refs_are(struct hal_buffer *buffer, unsigned count);

/* Takes a reference; false: the last one has been dropped. */
MUST_CHECK bool hal_buffer_try_ref(struct hal_buffer *buffer);

size_t hal_buffer_size(const struct hal_buffer *buffer);
struct hal_device *hal_buffer_device(const struct hal_buffer *buffer);

/*
 * Returns the host address of a host-visible buffer, valid while a reference is held; NULL if the
 * memory is not host-visible or the buffer has no bytes. A submission sees all writes that were
 * made before it. A thread that has waited for the submission's semaphore sees the submission's
 * writes.
 */
void *hal_buffer_map(struct hal_buffer *buffer);

#endif
