/* SPDX-License-Identifier: MIT */
/*
 * The digest of a whole file, computed by all workers: it is the digest of the digests of the
 * file's pieces, so it does not depend on the number of workers. A mapped file is read at the speed
 * of memory only if several threads meet the faults of its pages.
 */
#ifndef PTED_RUNTIME_PTE_FILE_DIGEST_H
#define PTED_RUNTIME_PTE_FILE_DIGEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct hal_buffer;
struct hal_device;

/* Of |file|, which is memory of |device|; the device is the host. */
MUST_CHECK enum status rt_file_digest(struct hal_device *device, struct hal_buffer *file,
                                      uint64_t out[2], struct error *err);

/* Does the same for the first |bytes| of descriptor |fd|, on the caller's thread and through memory
 * of its own. False: they cannot be read, there is no memory, or |stops| has become true. */
bool rt_file_digest_read(int fd, size_t bytes, const atomic_bool *stops, uint64_t out[2]);

#endif
