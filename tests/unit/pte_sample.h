/* SPDX-License-Identifier: MIT */
/* A small program with one value of every kind and one instruction of every kind, and the positions
 * of its parts. */
#ifndef PTED_TESTS_PTE_SAMPLE_H
#define PTED_TESTS_PTE_SAMPLE_H

#include "tests/unit/flatbuf_writer.h"

enum sample_kind {
    SAMPLE_SEGMENTS, /* constants in a segment, extended header of 32 bytes */
    SAMPLE_OLD,      /* the same with a header of 24 bytes */
    SAMPLE_INLINE,   /* constants and payload inline, no header */
};

/* The values of its first method, "forward". */
enum sample_value {
    SV_INPUT,
    SV_INT,
    SV_CONSTANT,
    SV_OUTPUT,
    SV_BOOL,
    SV_INT_LIST,
    SV_TENSOR_LIST,
    SV_OPTIONAL_LIST,
    SV_NULL,
    SV_DOUBLE,
    SV_STRING,
    SV_DOUBLE_LIST,
    SV_BOOL_LIST,
    SV_STATE,
    SV_UNBOUND,
    SV_COUNT
};

enum sample_instr { SI_KERNEL, SI_DELEGATE, SI_JUMP, SI_MOVE, SI_FREE, SI_COUNT };

/* Byte positions; tables are named as in the schema. */
struct sample {
    struct writer writer;
    size_t program;
    size_t plan, other_plan;
    size_t plans, plan_name, other_name; /* the offsets of both plans; the names' first bytes */
    size_t entries[SV_COUNT], values[SV_COUNT], items[SV_COUNT];
    size_t sizes[SV_COUNT], dim_orders[SV_COUNT], allocations[SV_COUNT];
    size_t state_extra;
    size_t instrs[SI_COUNT], calls[SI_COUNT], args[SI_COUNT];
    size_t inputs, outputs, buffer_sizes, buffer_device;
    size_t operator_table, delegate, processed;
    size_t segments[2], constant_offsets, constant_segment, mutable_segment, mutable_offsets;
    size_t named[2], named_keys[2];
    size_t segment_base;
};

void sample_make(struct sample *sample, enum sample_kind kind);

/* Sets field |id| of the table at |table| to |value|. */
void sample_set(struct sample *sample, size_t table, size_t id, uint64_t value, size_t width);

/* Removes the field of that table. Tables here do not share vtables. */
void sample_remove(struct sample *sample, size_t table, size_t id);

#endif
