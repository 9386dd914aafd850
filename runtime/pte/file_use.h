/* SPDX-License-Identifier: MIT */
/* How the bytes of a file come into memory: see runtime/pte/file.h. */
#ifndef PTED_RUNTIME_PTE_FILE_USE_H
#define PTED_RUNTIME_PTE_FILE_USE_H

enum pte_file_use {
    PTE_FILE_GUARDED, /* mapped; the handler is installed */
    PTE_FILE_MAPPED,  /* mapped, without the handler */
    PTE_FILE_COPIED,  /* read into memory: from then on, nobody can change it */
};

#endif
