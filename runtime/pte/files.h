/* SPDX-License-Identifier: MIT */
/*
 * The files from which a loaded program borrows bytes: its own file and its data files (`.ptd`),
 * each as read-only memory of the device.
 *
 * A program does not say which file has a key. The caller may name data files; then only those are
 * searched. Otherwise they are searched in the program's folder, in this order, and the first file
 * with the key counts:
 *
 *     1. STEM.ptd and STEM.*.ptd by name, for the program STEM.pte
 *     2. _default_external_constant.ptd, the name that exporters use by default
 *     3. if there is no other .pte in the folder: all other .ptd files by name
 *
 * A file is opened if a key is missing in the files before it; a program without external weights
 * opens none.
 *
 * One thread fills it while the program is loaded; afterwards it is constant.
 */
#ifndef PTED_RUNTIME_PTE_FILES_H
#define PTED_RUNTIME_PTE_FILES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"
#include "runtime/pte/ptd.h"
#include "runtime/pte/pte.h"
#include "runtime/pte/recheck.h"

struct hal_binding;
struct hal_buffer;
struct hal_device;
struct rt_packed;

#define RT_DATA_FILES_MAX 64
#define RT_FOLDER_ENTRIES_MAX 65536 /* entries of a folder that are looked at */

struct rt_data_file {
    const char *path;
    struct ptd_file *ptd; /* a use of it; NULL: not opened yet */
    struct hal_buffer *buffer;
    struct rt_file_digest digest; /* while packed weights are kept */
    bool is_used;
};

struct rt_files {
    struct hal_device *device; /* borrowed */
    struct pte_program *pte;   /* owned */
    struct hal_buffer *buffer; /* memory of the program's own file */
    bool is_used;              /* the loaded program still borrows from its own file */
    struct arena arena;        /* paths */
    const char *path;          /* of the program; NULL when its folder has been searched */
    struct rt_data_file data[RT_DATA_FILES_MAX];
    uint32_t data_count;
    enum pte_file_use use;
    bool is_settled;           /* rt_files_settle(): from now on only files in use are verified */
    struct rt_packed *packed;  /* owned; NULL: packed weights are not kept (runtime/pte/packed.h) */
    const char *packed_folder; /* of |packed| */
    struct rt_file_digest digest; /* of the program's own file, while they are */
};

/* What a program is loaded from. */
struct rt_files_source {
    const char *path;              /* of the program; NULL: it is in memory */
    struct span bytes;             /* of the program then; PTE_FILE_COPIED: a copy of them is used,
                                      else they stay until rt_files_fini() */
    const char *const *data_paths; /* data files; none: the folder of |path| is searched */
    uint32_t data_count;
    enum pte_file_use use; /* of all files */
};

/* Opens the program and links its external tensors. Copies the paths. After a failure call
 * rt_files_fini() as well. */
MUST_CHECK enum status rt_files_open(struct rt_files *files, struct hal_device *device,
                                     const struct rt_files_source *source, struct error *err);
void rt_files_fini(struct rt_files *files);

/* Call after rt_files_open(): packed weights are kept in |folder|, see rt_packed_open(). From now
 * on the digests of all open files are known. If the folder has the program's packed weights, and
 * says that a file has been read before, the file is read in the background
 * (runtime/pte/recheck.h). */
MUST_CHECK enum status rt_files_keep_packed(struct rt_files *files, const char *folder,
                                            const char *machine, struct error *err);

/* Do |bytes| lie in the program's own file? */
bool rt_files_are_own(const struct rt_files *files, struct span bytes);

/* Where bytes of a file lie: the number of the mapping (runtime/pte/file.h), an offset. */
struct rt_file_place {
    uint64_t file, offset;
};

/* Finds where |bytes| lie. False: in none of the files. |files| may be NULL. */
bool rt_files_place(const struct rt_files *files, struct span bytes,
                    struct rt_file_place *out_place);

/* Where bytes of a data file lie: the digest of the whole file, an offset. */
struct rt_data_place {
    uint64_t file[2], offset;
};

/* Finds where |bytes| lie. False: in no data file whose digest is known. |files| may be NULL. */
bool rt_files_data_place(const struct rt_files *files, struct span bytes,
                         struct rt_data_place *out_place);

/* Finds the data stored under |key|; ST_NOT_FOUND says where it was searched. */
MUST_CHECK enum status rt_files_find(struct rt_files *files, struct span key,
                                     const struct pte_named_data **out_data, struct error *err);

/*
 * While the program is loaded, code that will still borrow bytes afterwards notes them; an empty
 * range, or one outside all files, is fine. rt_files_settle() fails if a file has changed
 * meanwhile; after it, files without a note are not verified.
 */
void rt_files_note_use(struct rt_files *files, struct span bytes);
MUST_CHECK enum status rt_files_settle(struct rt_files *files, struct error *err);

/* For a while few of the files' bytes will be read: their memory goes back to the system. */
void rt_files_release(const struct rt_files *files);

/* Fails with ST_UNAVAILABLE if a file that calls read from has changed, pte_file_verify(), or is
 * not the one that it was taken for, rt_recheck_verify(). Any thread. */
MUST_CHECK enum status rt_files_verify(const struct rt_files *files, struct error *err);

/* Finds the binding of borrowed bytes, which are in one of the files, in memory of the device. */
void rt_files_locate(const struct rt_files *files, const uint8_t *bytes,
                     struct hal_binding *out_binding);

#endif
