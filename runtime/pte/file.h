/* SPDX-License-Identifier: MIT */
/*
 * A regular file mapped read-only. Pages come from the page cache and are shared by every process
 * that maps the same file. Whoever replaces a model renames a new file over the old one, which
 * stays as it was for those that have it mapped.
 *
 * A file that is written to or cut short in place is another matter. Reads of what is no longer
 * there give zeros instead of SIGBUS, which would end the process: the first mapping installs a
 * handler for addresses in mappings of this module; for all others the signal does what it did
 * before. Whoever has used the bytes asks pte_file_verify() before anything that follows from them
 * goes out.
 */
#ifndef PTED_RUNTIME_PTE_FILE_H
#define PTED_RUNTIME_PTE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/bytes.h"
#include "base/status.h"

#define PTE_FILES_MAX 4096 /* mapped at a time */
#define PTE_FILE_NAME_MAX 128

struct pte_file {
    struct span bytes; /* aligned to a page */
    int fd;            /* of the file that is mapped, whatever its path leads to today; -1: none */
    struct timespec modified;
    uint32_t slot; /* among the mappings that the handler knows */
    bool is_mapped;
    char name[PTE_FILE_NAME_MAX]; /* the end of its path, cut */
};

/*
 * Refuses what is not a regular file, and an empty one; texts name the path. The file goes back
 * through pte_file_unmap(). Any thread.
 */
MUST_CHECK enum status pte_file_map(const char *path, struct pte_file *out_file, struct error *err);
void pte_file_unmap(struct pte_file *file); /* NULL and what holds no mapping are fine */

/* Bytes in memory in the place of a file; they never change. */
void pte_file_borrow(struct pte_file *file, struct span bytes);

/*
 * ST_UNAVAILABLE when the file has another size or time of modification than when it was mapped, or
 * a read of it failed; |err| says which. Some 200 ns. Any thread.
 */
MUST_CHECK enum status pte_file_verify(const struct pte_file *file, struct error *err);

/* Nothing reads its bytes any more but to print them: pte_file_verify() is content from now on. */
void pte_file_forget(struct pte_file *file);

/* Descriptors that mapped files hold now. Any thread. */
uint32_t pte_file_descriptors(void);

#endif
