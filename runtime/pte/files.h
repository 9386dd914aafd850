/* SPDX-License-Identifier: MIT */
/*
 * The files that a loaded program borrows bytes from: its own and its data files (`.ptd`), each as
 * read-only memory of the device.
 *
 * A program does not say in which file a key is. Either the caller names data files, and only those
 * are looked into; or they are found in the program's folder, the first that has the key being the
 * one, in this order:
 *
 *   1. STEM.ptd and STEM.*.ptd by name, where the program is STEM.pte
 *   2. _default_external_constant.ptd, as exporters call what has no name
 *   3. if there is no other .pte in the folder: all other .ptd files by name
 *
 * A file is opened when a key is missing in those before it: a program that needs none opens none.
 *
 * Filled by one thread while the program is loaded, constant afterwards.
 */
#ifndef PTED_RUNTIME_PTE_FILES_H
#define PTED_RUNTIME_PTE_FILES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"
#include "runtime/pte/ptd.h"
#include "runtime/pte/pte.h"

struct hal_binding;
struct hal_buffer;
struct hal_device;

#define RT_DATA_FILES_MAX 64
#define RT_FOLDER_ENTRIES_MAX 65536 /* that are looked at in search of data files */

struct rt_data_file {
    const char *path;
    struct ptd_file *ptd; /* owned; NULL: not opened yet */
    struct hal_buffer *buffer;
    bool is_used;
};

struct rt_files {
    struct hal_device *device; /* borrowed */
    struct pte_program *pte;   /* owned */
    struct hal_buffer *buffer; /* of the program's own file */
    bool is_used;              /* by what is left of the program's own file when it is loaded */
    struct arena arena;        /* paths */
    const char *path;          /* of the program; NULL once its folder has been looked through */
    struct rt_data_file data[RT_DATA_FILES_MAX];
    uint32_t data_count;
};

/*
 * Opens the program at |path| and links its external tensors. |data_paths| may be empty: search.
 * Copies the paths. After a failure rt_files_fini() as well.
 */
MUST_CHECK enum status rt_files_open(struct rt_files *files, struct hal_device *device,
                                     const char *path, const char *const *data_paths,
                                     uint32_t data_count, struct error *err);
void rt_files_fini(struct rt_files *files);

/* What is stored under |key|; ST_NOT_FOUND says where it was looked for. */
MUST_CHECK enum status rt_files_find(struct rt_files *files, struct span key,
                                     const struct pte_named_data **out_data, struct error *err);

/*
 * While the program is loaded, whatever still borrows bytes when that is done says which, an empty
 * range or one that lies in no file is fine. Files of which nothing was noted are not verified
 * after rt_files_settle(), which fails when a file changed meanwhile.
 */
void rt_files_note_use(struct rt_files *files, struct span bytes);
MUST_CHECK enum status rt_files_settle(struct rt_files *files, struct error *err);

/* ST_UNAVAILABLE when a file that calls read from has changed: pte_file_verify(). Any thread. */
MUST_CHECK enum status rt_files_verify(const struct rt_files *files, struct error *err);

/* Where borrowed bytes, which lie in one of the files, are in memory of the device. */
void rt_files_locate(const struct rt_files *files, const uint8_t *bytes,
                     struct hal_binding *out_binding);

#endif
