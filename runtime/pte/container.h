/* SPDX-License-Identifier: MIT */
/* The outer form of a `.pte` file: identifier, extended header, the end of the flatbuffer and the
 * beginning of the segments. Recognises related containers in order to name them in errors. */
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

/* Checks a header that says that the file has |end| bytes, or at least that many: ST_CORRUPT if the
 * file ends before. */
MUST_CHECK enum status pte_check_end(struct span file, uint64_t end, bool is_exact,
                                     struct error *err);

/* Are the four bytes at |header| a version of the header that begins with |letters|? */
bool pte_is_other_version(const uint8_t *header, const char *letters);

#endif
