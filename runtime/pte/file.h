/* SPDX-License-Identifier: MIT */
/*
 * A regular file mapped read-only. Pages come from the page cache and are shared by every process
 * that maps the same file. Whoever replaces a model renames a new file over the old one: cutting a
 * mapped file short ends the process with SIGBUS, as for every program that maps files.
 *
 * Any thread.
 */
#ifndef PTED_RUNTIME_PTE_FILE_H
#define PTED_RUNTIME_PTE_FILE_H

#include "base/bytes.h"
#include "base/status.h"

/*
 * Refuses what is not a regular file, and an empty one; texts name the path. The bytes are aligned
 * to a page and go back through pte_file_unmap().
 */
MUST_CHECK enum status pte_file_map(const char *path, struct span *out_bytes, struct error *err);
void pte_file_unmap(struct span bytes);

#endif
