/* SPDX-License-Identifier: MIT */
/* The two encodings of stored structures, read into values that have no places in a tree yet. */
#ifndef PTED_PROTOCOL_PYTREE_PRIV_H
#define PTED_PROTOCOL_PYTREE_PRIV_H

#include "protocol/sip_build.h"

/* Sequences and dicts inside each other: one more than in a tree, for the tuple of the positional
 * and the keyword arguments, which does not become part of one. */
#define PYTREE_DEPTH_MAX (SIP_DEPTH_MAX + 1)

/* Leaves are numbered from 0 in the order in which they are stored. */
MUST_CHECK enum status pytree_read_json(struct span text, struct sip_builder *builder,
                                        struct sip_value **out_root, struct error *err);
MUST_CHECK enum status pytree_read_compact(struct span text, struct sip_builder *builder,
                                           struct sip_value **out_root, struct error *err);

/* Gives the members of a sequence the positions 0, 1, 2... */
void pytree_number_members(struct sip_value *sequence);

#endif
