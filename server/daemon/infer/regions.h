/* SPDX-License-Identifier: MIT */
/*
 * Regions of shared memory that clients of this machine have registered, for tensors that do not go
 * through the socket (the system shared memory extension, --shared-memory).
 *
 * A region is a part of an object of shm_open(3), whose owner may change or shorten it at any time.
 * So it is never mapped: tensors are copied out and in by pread(2) and pwrite(2), once. Whatever
 * the owner does meanwhile, a call sees one state of its inputs, and no access raises a signal.
 *
 * A region is shared: the table holds a reference until it is unregistered, and a request holds one
 * until its end. Any thread.
 */
#ifndef PTED_SERVER_DAEMON_INFER_REGIONS_H
#define PTED_SERVER_DAEMON_INFER_REGIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/refs.h"
#include "base/status.h"
#include "protocol/oip.h"
#include "server/process/model_name.h"
#include "server/process/options.h"

#define REGIONS_MAGIC 0x72676e73u
#define REGION_MAGIC 0x7265676eu

/* Of a name in shm_open(3), NAME_MAX; a slash in front is not counted. */
#define REGION_KEY_MAX 255

struct regions {
    uint32_t magic;
    const struct params *params; /* borrowed: limits */
    pthread_mutex_t lock;        /* guards the members below */
    struct list named;           /* registered regions, oldest first */
    uint32_t count;              /* all regions, including regions that only requests hold */
    uint64_t bytes;
};

struct region {
    uint32_t magic;
    struct refs refs;
    struct list link;        /* in regions->named */
    struct regions *regions; /* borrowed; outlives it */
    int fd;                  /* owned */
    uint64_t offset, bytes;  /* of the object */
    char name[MODEL_NAME_MAX + 1];
    char key[REGION_KEY_MAX + 2]; /* as the client wrote it */
};

void regions_init(struct regions *regions, const struct params *params);

/* Regions that exist now, and their bytes. */
struct regions_load {
    uint32_t count;
    uint64_t bytes;
};

struct regions_load regions_load(struct regions *regions);

/* Call when no request is left. Also if regions_init() was not called: zeroed. */
void regions_fini(struct regions *regions);

/* Fails with ST_INVALID: the key, the range or the object is wrong, or the name is taken;
 * ST_EXHAUSTED: there are too many regions, or they are too large. */
MUST_CHECK enum status regions_register(struct regions *regions, const char *name,
                                        const struct oip_region *order, struct error *err);

/* Takes |name| out of the table, or all names if it is "". A name that is not there is no error:
 * clients unregister whatever an earlier run may have left behind. */
void regions_unregister(struct regions *regions, const char *name);

/* Finds a region; the caller owns a reference. ST_NOT_FOUND. */
MUST_CHECK enum status regions_find(struct regions *regions, struct span name,
                                    struct region **out_region, struct error *err);
void region_unref(struct region *region);

/* Prints the answer to a request for the status of |name|, or of all regions if it is "".
 * ST_NOT_FOUND. */
MUST_CHECK enum status regions_print(struct regions *regions, const char *name, struct buf *out,
                                     struct error *err);

/* Does [offset, offset + bytes) lie in the region? ST_INVALID. */
MUST_CHECK enum status region_verify(const struct region *region, uint64_t offset, uint64_t bytes,
                                     struct error *err);

/* Copies |bytes| bytes; the range has been verified. They fail (ST_INVALID) if the object has been
 * shortened, or if it has no room. */
MUST_CHECK enum status region_read(const struct region *region, uint64_t offset, void *dst,
                                   size_t bytes, struct error *err);
MUST_CHECK enum status region_write(const struct region *region, uint64_t offset, const void *src,
                                    size_t bytes, struct error *err);

#endif
