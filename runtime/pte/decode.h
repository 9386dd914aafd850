/* SPDX-License-Identifier: MIT */
/*
 * From the flatbuffer to struct pte_program. decode.c reads the tables of the program, plan.c the
 * tables of a method, value.c and tensor.c its values, interface.c its inputs and outputs, instr.c
 * its instructions; verify.c checks their relations. Each file checks every number before storing
 * it, and stores the number that it checked.
 *
 * |err| is never NULL here: several levels put their place in front of the text.
 */
#ifndef PTED_RUNTIME_PTE_DECODE_H
#define PTED_RUNTIME_PTE_DECODE_H

#include "base/arena.h"
#include "runtime/pte/flatbuf.h"
#include "runtime/pte/pte.h"

struct pte_segment;

/* Where tensors find their bytes: offsets into a segment, or inline buffers. */
struct pte_constants {
    struct span segment;
    struct flatbuf_vector offsets; /* of u64; entry 0 is a placeholder */
    struct flatbuf_vector buffers; /* of tables; used when there are no offsets */
};

struct pte_decoder {
    struct flatbuf fb;
    struct arena *arena; /* borrowed from the program */
    const struct pte_segment *segments;
    uint32_t segment_count;
    struct pte_external *externals;
    struct pte_constants constants, mutables;
    struct flatbuf_vector inline_delegates; /* of tables */
    struct pte_plan *plan;                  /* the one being decoded */
};

/* Decodes everything of |program| except its container. */
MUST_CHECK enum status pte_decode_program(struct pte_program *program, struct error *err);

/* Fills its part of decoder->plan from the plan's table. */
MUST_CHECK enum status pte_decode_plan(struct pte_decoder *decoder,
                                       const struct flatbuf_table *table, struct error *err);
MUST_CHECK enum status pte_decode_values(struct pte_decoder *decoder,
                                         const struct flatbuf_table *table, struct error *err);
MUST_CHECK enum status pte_decode_instrs(struct pte_decoder *decoder,
                                         const struct flatbuf_table *table, struct error *err);
MUST_CHECK enum status pte_decode_tensor(struct pte_decoder *decoder,
                                         const struct flatbuf_table *table,
                                         const struct pte_tensor **out_tensor, struct error *err);

/* Replaces lists among the plan's inputs and outputs by their items: interface.c. */
MUST_CHECK enum status pte_expand_lists(struct pte_decoder *decoder, struct error *err);

/* Checks that no single table shows: inputs, moves, jumps. May find the plan unsupported. */
MUST_CHECK enum status pte_verify_plan(struct pte_decoder *decoder, struct error *err);

/* ---- for the above ---- */

/* Zeroed storage of the program, or NULL with the reason in |err|. */
void *pte_decode_array(struct pte_decoder *decoder, size_t count, size_t size, struct error *err);

/* Copies text that may be logged; "" if absent. */
MUST_CHECK enum status pte_decode_text(struct pte_decoder *decoder,
                                       const struct flatbuf_table *table,
                                       struct flatbuf_field field, uint32_t bytes_max,
                                       const char **out_text, struct error *err);

/* Decodes a vector of at most |max| elements; the second function requires it to be present. */
MUST_CHECK enum status pte_decode_vector(struct pte_decoder *decoder,
                                         const struct flatbuf_table *table,
                                         struct flatbuf_field field, uint32_t element_bytes,
                                         uint32_t max, struct flatbuf_vector *out_vector,
                                         struct error *err);
MUST_CHECK enum status pte_decode_required(struct pte_decoder *decoder,
                                           const struct flatbuf_table *table,
                                           struct flatbuf_field field, uint32_t element_bytes,
                                           uint32_t max, struct flatbuf_vector *out_vector,
                                           struct error *err);

/* Decodes an index into the plan's values; |what| and |i| say for errors where it stands. */
MUST_CHECK enum status pte_decode_index(const struct pte_decoder *decoder, int64_t index,
                                        const char *what, uint32_t i, uint32_t *out_index,
                                        struct error *err);

/* Does the same for a whole vector of i32. */
MUST_CHECK enum status pte_decode_indices(struct pte_decoder *decoder, struct flatbuf_vector vector,
                                          const char *what, const uint32_t **out_indices,
                                          struct error *err);

/* Reads the segments listed in |field|, which lie in |area|, into the decoder. */
MUST_CHECK enum status pte_decode_segments(struct pte_decoder *decoder,
                                           const struct flatbuf_table *root,
                                           struct flatbuf_field field, struct span area,
                                           struct error *err);

/* Reads the keys and the whole segments stored under them. */
MUST_CHECK enum status pte_decode_names(struct pte_decoder *decoder,
                                        const struct flatbuf_table *root,
                                        struct flatbuf_field field, struct pte_names *out_names,
                                        struct error *err);

/* sizes and dim_order of a tensor or layout with these ids. */
MUST_CHECK enum status pte_decode_dims(struct pte_decoder *decoder,
                                       const struct flatbuf_table *table,
                                       struct flatbuf_field sizes, struct flatbuf_field dim_order,
                                       struct shape *out_shape, uint8_t out_order[SHAPE_RANK_MAX],
                                       struct error *err);

/* Notes that the plan cannot run in this build; only the first reason is kept. */
MUST_CHECK enum status pte_decode_unsupported(struct pte_decoder *decoder, struct error *err,
                                              const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
