/* SPDX-License-Identifier: MIT */
/*
 * The structure of a method as an exporter stored it beside the plan, in either encoding:
 *
 *     [1, {"type": "builtins.tuple", "context": "null", "children_spec": [...]}]
 *     T2#1#1($,$)
 *
 * Leaves are numbered depth-first in stored order: leaf i is input or result i of the plan. Tuples,
 * lists, named tuples and registered types become sequences; dicts of every make, and registered
 * types that name their fields, become dicts. Keys that are integers become decimal names.
 *
 * Inputs are stored as a tuple of the positional arguments' tuple and the keyword arguments' dict.
 * They become the sequence of the arguments, the dict of the keyword arguments, the sequence with
 * the dict as one more element, or nothing. The empty string is a method without leaves.
 *
 * The strings are hostile. ST_INVALID: a text in neither encoding, a dict with more or fewer keys
 * than members, a repeated key, or nesting deeper than SIP_DEPTH_MAX. After an error callers use
 * pytree_positional(). Any thread.
 */
#ifndef PTED_PROTOCOL_PYTREE_H
#define PTED_PROTOCOL_PYTREE_H

#include "protocol/sip.h"

struct pytree_source {
    struct span inputs, results; /* the stored strings */
};

/* Parses a structure. Everything in |out| lives in |arena|; ST_TOO_LARGE when that is full. */
MUST_CHECK enum status pytree_parse(const struct pytree_source *source, struct arena *arena,
                                    struct sip *out, struct error *err);

/* Does as pytree_parse(), and checks the number of leaves. */
MUST_CHECK enum status pytree_parse_method(const struct pytree_source *source, uint32_t input_count,
                                           uint32_t result_count, struct arena *arena,
                                           struct sip *out, struct error *err);

/* Describes inputs as a sequence; a single result as itself, several as a sequence. */
MUST_CHECK enum status pytree_positional(uint32_t input_count, uint32_t result_count,
                                         struct arena *arena, struct sip *out, struct error *err);

#endif
