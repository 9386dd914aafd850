/* SPDX-License-Identifier: MIT */
/*
 * NumPy's .npz files: ZIP archives whose members are .npy files, stored or deflated. The sizes of
 * members are those of the central directory. Archives of 4 GiB or more (ZIP64) are neither read
 * nor written. Nothing is allocated before its size is known to be possible. One thread.
 *
 * Source: PKWARE's APPNOTE 6.3.10; numpy.lib.npyio.
 */
#ifndef PTED_SERVER_CLI_NPZ_H
#define PTED_SERVER_CLI_NPZ_H

#include "base/buf.h"
#include "server/cli/npy.h"

#define NPZ_BYTES_MAX ((size_t)4 << 30) /* of an archive, and of all its arrays */
#define NPZ_ARRAYS_MAX 16384            /* each name is compared with all others */
#define NPZ_NAME_MAX 256

struct npz_array {
    char *name; /* owned; without ".npy", printable ASCII */
    struct npy array;
    void *inflated; /* owned: memory of |array|, if it was deflated */
};

struct npz {
    struct buf file; /* of npz_read() */
    struct npz_array *items; /* owned; in the order of the archive */
    uint32_t count;
};

/* Reads an archive. The text of an error does not have |path|. |npz| is to be finished in any
 * case. */
MUST_CHECK enum status npz_read(struct npz *npz, const char *path, struct error *err);

/* Does the same for the bytes of a file, which are borrowed. */
MUST_CHECK enum status npz_parse(struct npz *npz, struct span file, struct error *err);
void npz_fini(struct npz *npz);

/* Returns the array |name|, or NULL. */
const struct npz_array *npz_find(const struct npz *npz, const char *name);

/* An array that is to be written; row-major. Borrows everything. */
struct npz_entry {
    const char *name;
    enum dtype dtype;
    struct shape shape;
    struct span bytes;
};

/* Fails with ST_UNWRITTEN; |option| named the file. */
MUST_CHECK enum status npz_write(const char *option, const char *path,
                                 const struct npz_entry *entries, uint32_t count,
                                 struct error *err);

#endif
