/* SPDX-License-Identifier: MIT */
/*
 * A regular file mapped read-only. Pages come from the page cache, and all processes that map the
 * file share them. To replace a model, rename a new file over the old one: mappings of the old file
 * do not change.
 *
 * A file may also be written to or cut short in place. Reads behind its new end give zeros instead
 * of SIGBUS, which would end the process: the first guarded mapping installs a handler for
 * addresses in mappings of this module; for any other address the signal has its former effect.
 * Code that has used the bytes calls pte_file_verify() before it gives out anything computed from
 * them.
 *
 * Signals belong to a program, not to a library in it. So there are files without the handler, too:
 * mapped ones, of which such a read ends the process, and ones that are read into memory.
 */
#ifndef PTED_RUNTIME_PTE_FILE_H
#define PTED_RUNTIME_PTE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/pte/file_use.h"

#define PTE_FILES_MAX 4096 /* files that may be mapped at a time */
#define PTE_FILE_NAME_MAX 128

struct pte_file {
    struct span bytes; /* aligned to a page */
    int fd;            /* the mapped file itself, whatever its path leads to now; -1: none */
    struct timespec modified, changed; /* its content; its status, when it was mapped */
    dev_t device;
    ino_t inode;
    uint64_t number; /* of the mapping: no other one of the process ever has it; 0: none */
    uint32_t entry;  /* among the mappings that the handler knows */
    bool is_mapped, is_copy;
    char name[PTE_FILE_NAME_MAX]; /* the end of its path, shortened */
};

/* Refuses an empty file and anything but a regular file; texts name the path. Release the file with
 * pte_file_unmap(). Any thread. */
MUST_CHECK enum status pte_file_open(const char *path, enum pte_file_use use,
                                     struct pte_file *out_file, struct error *err);
void pte_file_unmap(struct pte_file *file); /* NULL and a file without a mapping are fine */

/* Borrows bytes in memory instead of a file; they never change. */
void pte_file_borrow(struct pte_file *file, struct span bytes);

/* Makes a copy of such bytes, which are not 0. Release it with pte_file_unmap(). */
MUST_CHECK enum status pte_file_copy(struct span bytes, struct pte_file *out_file,
                                     struct error *err);

/* Fails with ST_UNAVAILABLE if the file's size or time of modification has changed since it was
 * mapped, or if reading it failed; |err| says which. Takes about 200 ns. Any thread. */
MUST_CHECK enum status pte_file_verify(const struct pte_file *file, struct error *err);

/* Gives its pages back to the system; they come back from the page cache when they are read. */
void pte_file_release(const struct pte_file *file);

/* From now on its bytes are only printed: pte_file_verify() always succeeds. */
void pte_file_forget(struct pte_file *file);

/* Are they mappings of one file in one state? */
bool pte_file_is_same(const struct pte_file *a, const struct pte_file *b);

/* |file| takes the descriptor of |from|, which is the same file: pte_file_verify() looks at it
 * again after pte_file_forget(). */
void pte_file_recall(struct pte_file *file, struct pte_file *from);

/* Returns the number of descriptors that mapped files hold now. Any thread. */
uint32_t pte_file_descriptors(void);

#endif
