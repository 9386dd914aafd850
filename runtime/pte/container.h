/* SPDX-License-Identifier: MIT */
/*
 * The outside of a `.pte` file: identifier, extended header, and where the flatbuffer ends and the
 * segments begin. Recognises the related containers in order to name them.
 */
#ifndef PTED_RUNTIME_PTE_CONTAINER_H
#define PTED_RUNTIME_PTE_CONTAINER_H

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

#endif
