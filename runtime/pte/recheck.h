/* SPDX-License-Identifier: MIT */
/*
 * A thread that reads a whole file beside everything else and compares its digest with the one that
 * was believed (runtime/pte/seen.h). It reads into memory of its own, as the least urgent thread of
 * the process, so neither the device's workers nor the mapping of the file notice it.
 *
 * If the file has other bytes, the record is removed, and all that follows from the digest is
 * wrong: rt_recheck_verify() fails from then on. If it cannot be read, nothing is said.
 */
#ifndef PTED_RUNTIME_PTE_RECHECK_H
#define PTED_RUNTIME_PTE_RECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct pte_file;
struct rt_recheck;

/* Starts to read |file|, which is mapped and need not stay so, and expects |digest|. |record| is
 * the path of its record, copied. NULL: there is no thread, or no memory. */
struct rt_recheck *rt_recheck_start(const struct pte_file *file, const uint64_t digest[2],
                                    const char *record);

/* Lets the thread end, wherever it is, and does not wait for it. NULL is fine. */
void rt_recheck_free(struct rt_recheck *recheck);

/* Waits until the file has been read; was the digest right? False also if the file could not be
 * read. One thread, which also frees it. */
bool rt_recheck_wait(struct rt_recheck *recheck);

/* Fails with ST_UNAVAILABLE if the digest was wrong; does not wait. Any thread. */
MUST_CHECK enum status rt_recheck_verify(const struct rt_recheck *recheck, struct error *err);

#endif
