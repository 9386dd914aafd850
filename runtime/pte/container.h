/* SPDX-License-Identifier: MIT */
/*
 * The outside of a `.pte` file: identifier, extended header, and where the flatbuffer ends and the
 * segments begin. Recognises the related containers in order to name them.
 */
#ifndef PTED_RUNTIME_PTE_CONTAINER_H
#define PTED_RUNTIME_PTE_CONTAINER_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

struct pte_container {
    struct span flatbuffer;   /* with the header, from byte 0 */
    struct span segment_area; /* empty when there is none */
    uint64_t segment_base;    /* 0: no segments */
    uint32_t header_bytes;    /* of the extended header; 0: there is none */
};

MUST_CHECK enum status pte_container_parse(struct span file, struct pte_container *out_container,
                                           struct error *err);

/* ---- also for data files --------------------------------------------------------------------- */

/* A header says that the file has |end| bytes, or at least so many: ST_CORRUPT when it ends before
 * that. */
MUST_CHECK enum status pte_check_end(struct span file, uint64_t end, bool is_exact,
                                     struct error *err);

/* Are the four bytes at |header| a version of the header that |letters| stand for? */
bool pte_is_other_version(const uint8_t *header, const char *letters);

#endif
