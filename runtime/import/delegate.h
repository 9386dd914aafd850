/* SPDX-License-Identifier: MIT */
/*
 * Delegates: parts of a method that an exporter handed to a backend as one opaque call. Each
 * backend's payload is one more dialect of the same operators: its importer appends nodes to the
 * graph that holds the rest of the method, and after the import nothing shows where the delegate
 * was. delegate_list.c lists the importers.
 *
 * A payload is as untrusted as the file: each offset, count and id is checked before use, and an
 * error names the node of the payload.
 */
#ifndef PTED_RUNTIME_IMPORT_DELEGATE_H
#define PTED_RUNTIME_IMPORT_DELEGATE_H

#include "base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/pte/pte.h"

struct hal_device;

/* One delegate call during its import. */
struct rt_delegate_call {
    struct rt_graph *graph;
    const struct pte_delegate *delegate;
    struct hal_device *device; /* for constants that have to be copied */
    uint32_t arg_count;        /* inputs, then outputs; the payload says how many of each */
    struct error *err;
    void *importer; /* the caller's struct import */
};

typedef enum status rt_import_delegate_f(struct rt_delegate_call *call);

/* Returns the importer of payloads for backend |id|, or NULL. */
rt_import_delegate_f *rt_delegate_find(const char *id);

/* Returns the file's declaration of argument |index|: for a tensor its type, bounds and
 * dim_order. */
const struct pte_value *rt_delegate_arg(const struct rt_delegate_call *call, uint32_t index);

/* Gives the graph value of input |index|: a tensor with logical dims, or a scalar. The file's
 * dim_order is not applied: an importer whose payload has physical dims has to permute. */
MUST_CHECK enum status rt_delegate_input(struct rt_delegate_call *call, uint32_t index,
                                         uint32_t *out_value);

/* |value| becomes output |index|. It must be a tensor with logical dims, of the declared type and
 * rank, within the declared bounds. Call this once for each output. */
MUST_CHECK enum status rt_delegate_output(struct rt_delegate_call *call, uint32_t index,
                                          uint32_t value);

/* Finds the bytes stored under |key| in the program or a data file. ST_NOT_FOUND if there are
 * none. */
MUST_CHECK enum status rt_delegate_data(struct rt_delegate_call *call, struct span key,
                                        struct span *out_bytes);

/* Gives a constant of |shape| whose row-major content is the first bytes of |bytes|: used in place
 * if the alignment allows, else copied. ST_CORRUPT if there are too few bytes. */
MUST_CHECK enum status rt_delegate_constant(struct rt_delegate_call *call, enum dtype dtype,
                                            const struct shape *shape, struct span bytes,
                                            uint32_t *out_value);

/*
 * Gives the content of the delegate's own buffer |number|: a buffer that only this delegate sees
 * and whose content outlives the call, like that of a mutable buffer of the program. Its first
 * content is the first bytes of |initial|, as in rt_delegate_constant().
 */
MUST_CHECK enum status rt_delegate_state(struct rt_delegate_call *call, uint32_t number,
                                         enum dtype dtype, const struct shape *shape,
                                         struct span initial, uint32_t *out_value);

/*
 * |value|, of the same type and dims, becomes the content of the buffer; after rt_delegate_state().
 */
void rt_delegate_set_state(struct rt_delegate_call *call, uint32_t number, uint32_t value);

#endif
