/* SPDX-License-Identifier: MIT */
/*
 * Delegates: parts of a method that an exporter handed to a backend as one opaque call. Each
 * backend's payload is one more dialect of the same operators: its importer appends nodes to the
 * graph that the rest of the method is in, and nothing behind the import knows that there was a
 * border. delegates.c lists the importers.
 *
 * A payload is as hostile as the file: every offset, count and id is checked before it is used, and
 * an error names the node of the payload.
 */
#ifndef PTED_RUNTIME_IMPORT_DELEGATE_H
#define PTED_RUNTIME_IMPORT_DELEGATE_H

#include "base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/pte/pte.h"

struct hal_device;

/* One call of a delegate that is being imported. */
struct rt_delegate_call {
    struct rt_graph *graph;
    const struct pte_delegate *delegate;
    struct hal_device *device; /* for constants that cannot stay where they are */
    uint32_t arg_count;        /* inputs, then outputs; the payload says which is which */
    struct error *err;
    void *importer; /* the caller's */
};

typedef enum status rt_import_delegate_f(struct rt_delegate_call *call);

/* The importer of payloads for backend |id|, or NULL. */
rt_import_delegate_f *rt_delegate_find(const char *id);

/* What the file declares for argument |index|: for a tensor its type, bounds and dim_order. */
const struct pte_value *rt_delegate_arg(const struct rt_delegate_call *call, uint32_t index);

/*
 * The graph value of input |index|: a tensor with logical dims, or a scalar. The file's dim_order
 * is not applied: a payload that counts in physical dims permutes.
 */
MUST_CHECK enum status rt_delegate_input(struct rt_delegate_call *call, uint32_t index,
                                         uint32_t *out_value);

/*
 * Output |index| is |value| from here on. A tensor of the declared type and rank, logical dims,
 * which must fit the declared bounds. Once for each output.
 */
MUST_CHECK enum status rt_delegate_output(struct rt_delegate_call *call, uint32_t index,
                                          uint32_t value);

/* The bytes stored under |key| in the program or a data file. ST_NOT_FOUND when there are none. */
MUST_CHECK enum status rt_delegate_data(struct rt_delegate_call *call, struct span key,
                                        struct span *out_bytes);

/*
 * A constant of |shape| whose row-major content is the front of |bytes|: in place where its
 * alignment allows, else a copy. ST_CORRUPT when there are too few.
 */
MUST_CHECK enum status rt_delegate_constant(struct rt_delegate_call *call, enum dtype dtype,
                                            const struct shape *shape, struct span bytes,
                                            uint32_t *out_value);

/*
 * What buffer |number| of the delegate's own holds: one that nobody else sees and whose content
 * outlives the call, as a mutable buffer of the program. At first that is the front of |initial|,
 * as rt_delegate_constant() has it.
 */
MUST_CHECK enum status rt_delegate_state(struct rt_delegate_call *call, uint32_t number,
                                         enum dtype dtype, const struct shape *shape,
                                         struct span initial, uint32_t *out_value);

/* From here on it is |value|, of the same type and dims; after rt_delegate_state(). */
void rt_delegate_set_state(struct rt_delegate_call *call, uint32_t number, uint32_t value);

#endif
