/* SPDX-License-Identifier: MIT */
/* A `.ptd` file: weights that a program names but does not contain. Checked and copied like a
 * program (pte.h); only the entries' bytes are borrowed from the mapping. Immutable; any thread. */
#ifndef PTED_RUNTIME_PTE_PTD_H
#define PTED_RUNTIME_PTE_PTD_H

#include "runtime/pte/pte.h"

struct ptd_file;
struct rt_file_digest;

/* Maps or reads the regular file at |path|. Programs share a mapping: the same file in the same
 * state is mapped once. ST_CORRUPT, ST_UNSUPPORTED or ST_TOO_LARGE say what is wrong and where. */
MUST_CHECK enum status ptd_open(const char *path, enum pte_file_use use, struct ptd_file **out_file,
                                struct error *err);

/* Does the same for bytes in memory, which the caller keeps until ptd_free(). */
MUST_CHECK enum status ptd_parse(struct span bytes, struct ptd_file **out_file, struct error *err);

/* Call when one use of it is over. NULL is fine. */
void ptd_free(struct ptd_file *file);

/* Call when the caller's program does not read it any more: if no other one may,
 * pte_file_forget(). */
void ptd_forget(struct ptd_file *file);

const struct pte_names *ptd_names(const struct ptd_file *file);

/* Returns the whole file, which contains the entries' bytes (runtime/pte/file.h). */
struct pte_file *ptd_file_of(struct ptd_file *file);

/* Locks the digest of its bytes, which its users share: whoever finds that it is not known finds it
 * out, and others wait. The file owns what the digest has. */
struct rt_file_digest *ptd_lock_digest(struct ptd_file *file);
void ptd_unlock_digest(struct ptd_file *file);

#endif
