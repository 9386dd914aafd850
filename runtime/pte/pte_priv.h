/* SPDX-License-Identifier: MIT */
/* The inside of a program, shared by the files of runtime/pte. */
#ifndef PTED_RUNTIME_PTE_PTE_PRIV_H
#define PTED_RUNTIME_PTE_PTE_PRIV_H

#include "base/arena.h"
#include "runtime/pte/container.h"
#include "runtime/pte/file.h"
#include "runtime/pte/pte.h"

struct pte_segment {
    uint64_t offset; /* offset of the segment from the start of the segments */
    struct span bytes;
};

/* A tensor whose bytes are in a `.ptd`. */
struct pte_external {
    struct pte_external *next;
    struct pte_tensor *tensor;
    struct pte_plan *plan;
};

#define PTE_PROGRAM_MAGIC 0x97e9706au

struct pte_program {
    uint32_t magic;
    struct pte_file file;
    struct arena arena; /* the storage of the members below */
    struct pte_container container;
    const struct pte_segment *segments;
    struct pte_plan *plans;
    struct pte_names named;
    struct pte_external *externals; /* last first */
    uint32_t segment_count, plan_count;
    uint32_t inline_constant_count, segment_constant_count, mutable_constant_count;
};

#endif
