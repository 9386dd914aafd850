/* SPDX-License-Identifier: MIT */
/* Shared by the two files that decode a payload: xnnpack_read.c and xnnpack_values.c. */
#ifndef PTED_RUNTIME_IMPORT_XNNPACK_READ_H
#define PTED_RUNTIME_IMPORT_XNNPACK_READ_H

#include "runtime/import/xnnpack.h"
#include "runtime/pte/flatbuf.h"

#define XNN_FIELD(name_, slot_, text_)                                                             \
    static const struct flatbuf_field name_ = {.slot = (slot_), .name = (text_)}

/* Values may share scales, so without a limit a small file could demand endless checks. */
#define XNN_SCALES_MAX (UINT64_C(1) << 28)

struct rt_xnnpack_reader {
    struct rt_delegate_call *call;
    struct arena *arena;
    struct rt_xnnpack_graph *graph;
    struct flatbuf fb;
    struct span behind;                       /* constants outside of the flatbuffer */
    struct flatbuf_vector buffers, constants; /* of tables; entry 0 of both means none */
    uint32_t external_count;
    bool *is_taken;       /* by external id */
    uint64_t scales_left; /* that may still be checked */
    struct error *err;
};

/* Zeroed arena memory, or NULL with the reason in reader->err. */
void *rt_xnnpack_take(struct rt_xnnpack_reader *r, size_t count, size_t size);

/* Decodes |vector| of XValue tables into the reader's graph. */
MUST_CHECK enum status rt_xnnpack_read_values(struct rt_xnnpack_reader *r,
                                              struct flatbuf_vector vector);

#endif
