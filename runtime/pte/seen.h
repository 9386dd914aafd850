/* SPDX-License-Identifier: MIT */
/*
 * Digests of files that an earlier load has read as a whole, kept in the folder of packed weights
 * (FOLDER/NUMBER.seen), so that a file of hundreds of megabytes need not be read again before it is
 * served.
 *
 * A file is taken for the same if its device, number, size, times of modification and of change,
 * and a digest of samples of its bytes are the same. The time of change cannot be set, so a copy
 * that keeps its times is another file. What has changed in the last seconds is not kept, because
 * times may be coarse; nor is what lies on a read-only file system, whose numbers and times are
 * those that a builder has chosen. All of it can still be wrong: a disk restored block by block, a
 * clock that was set back. So whoever believes a digest also checks it in the background:
 * runtime/pte/recheck.h.
 *
 * The folder's rules are those of packed weights. Any thread.
 */
#ifndef PTED_RUNTIME_PTE_SEEN_H
#define PTED_RUNTIME_PTE_SEEN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct pte_file;

/* Smaller files are read in less time than a sample of them is worth. */
#define RT_SEEN_BYTES_MIN (4u << 20)

/* Finds the digest of |file|, which is mapped. |out_path| is that of the record, for
 * rt_seen_forget(). False: nobody has seen it like this. */
bool rt_seen_find(const struct pte_file *file, const char *folder, uint64_t out_digest[2],
                  char out_path[PATH_MAX]);

/* Keeps |digest| of |file|, if a later find may rely on it. A failure means that the next load
 * reads the file again. */
void rt_seen_keep(const struct pte_file *file, const char *folder, const uint64_t digest[2]);

/* Call if a record was wrong. */
void rt_seen_forget(const char *path);

#endif
