/* SPDX-License-Identifier: MIT */
/*
 * A thread that reads a whole file beside everything else and compares its digest with the one that
 * was believed (runtime/pte/seen.h). It reads into memory of its own, as the least urgent thread of
 * the process, so neither the device's workers nor the mapping of the file notice it.
 *
 * If the file has other bytes, the record is removed, and all that follows from the digest is
 * wrong: rt_recheck_verify() fails from then on. If it cannot be read, or its size or the time of
 * its last write is not what it was, nothing is said.
 *
 * Any thread, also several at a time.
 */
#ifndef PTED_RUNTIME_PTE_RECHECK_H
#define PTED_RUNTIME_PTE_RECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct pte_file;
struct rt_recheck;

/* The digest of a file's bytes. */
struct rt_file_digest {
    bool is_known;
    uint64_t words[2];
    struct rt_recheck *recheck; /* an owner's; NULL: the digest was computed, not believed */
};

/* Starts to read |file|, which is mapped and need not stay so, and expects |digest|. |record| is
 * the path of its record, copied. NULL: there is no thread, or no memory. */
struct rt_recheck *rt_recheck_start(const struct pte_file *file, const uint64_t digest[2],
                                    const char *record);

/* Adds an owner. NULL is fine. */
struct rt_recheck *rt_recheck_ref(struct rt_recheck *recheck);

/* Drops an owner. The last one lets the thread end, wherever it is, and does not wait for it. NULL
 * is fine. */
void rt_recheck_free(struct rt_recheck *recheck);

/* Waits until the file has been read; was the digest right? False also if the file could not be
 * read, or was written to meanwhile. */
bool rt_recheck_wait(struct rt_recheck *recheck);

/* Fails with ST_UNAVAILABLE if the digest was wrong; does not wait. */
MUST_CHECK enum status rt_recheck_verify(const struct rt_recheck *recheck, struct error *err);

#endif
