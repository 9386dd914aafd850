/* SPDX-License-Identifier: MIT */
/*
 * The structured index path ABI, sipv = 1: how the raw inputs and results of a function hang in
 * sequences and dicts.
 *
 *     I31!S27!k0D17!K4!bar_1K4!foo_0k1_2R3!_0    [{"bar": r1, "foo": r0}, r2] -> r0
 *
 * An empty I or R is a function without inputs or results. Parsing takes keys in any order;
 * mangling writes them in order, which is the canonical form. Gaps in sequences, empty sequences
 * and dicts, and names of any bytes are legal.
 *
 * Refused with ST_INVALID and a position: anything but I and then R with at most one value each, a
 * key without value or a value without key, a name in a sequence or a position in a dict, a
 * repeated key, a negative position or raw index, nesting deeper than SIP_DEPTH_MAX, and what sig.h
 * refuses. Any thread.
 */
#ifndef PTED_PROTOCOL_SIP_H
#define PTED_PROTOCOL_SIP_H

#include "protocol/sip_tree.h"

#define SIP_VERSION "1"

struct sip {
    struct sip_tree inputs, results;
    /* The last element of the inputs' sequence is the dict of the keyword arguments. The text of a
     * signature cannot say so; the structure that an exporter stored does. */
    bool has_kwargs;
};

/* Parses a signature. Everything in |out| lives in |arena|, names point into |text|; ST_TOO_LARGE
 * when it is full. */
MUST_CHECK enum status sip_parse(struct span text, struct arena *arena, struct sip *out,
                                 struct error *err);

/* Prints the canonical signature. */
void sip_mangle(const struct sip *sip, struct buf *out);

/*
 * Fits a function of so many raw inputs and results: each input is at exactly one leaf, each leaf
 * of the results is one of them; results may be at several leaves or none. |out_leaves|[i] is the
 * node of raw input i in the inputs' tree, and lives in |arena|.
 */
MUST_CHECK enum status sip_bind(const struct sip *sip, uint32_t input_count, uint32_t result_count,
                                struct arena *arena, const uint32_t **out_leaves,
                                struct error *err);

/* Finds the nodes of the inputs that hold the positional and the keyword arguments, or SIP_NO_NODE.
 * The dict of the keyword arguments may be an element of the positional ones' sequence. */
uint32_t sip_args(const struct sip *sip);
uint32_t sip_kwargs(const struct sip *sip);

/* Prints where a caller writes |node| of the inputs: args[0]["bar"], kwargs["bias"]. */
void sip_print_argument(const struct sip *sip, uint32_t node, struct buf *out);

/* Prints for people inputs -> results, as sip_print() writes them. */
void sip_print_signature(const struct sip *sip, struct buf *out);

#endif
