/* SPDX-License-Identifier: MIT */
/*
 * How a method describes itself, derived from its file alone: the raw function signature comes from
 * the plan and its symbolic sizes, the structure from the exporter's texts. Made when the program
 * is loaded, also for methods that cannot be called. Immutable; lives as long as the program.
 */
#ifndef PTED_RUNTIME_PROGRAM_SIGNATURE_H
#define PTED_RUNTIME_PROGRAM_SIGNATURE_H

#include "base/arena.h"
#include "protocol/sip.h"
#include "runtime/program/program.h"

struct rt_signature {
    const char *f;            /* "I11!B8!d-1d128R11!B8!d-1d10" */
    const char *sip;          /* "I6!S4!k0_0R3!_0" */
    const char *fbr;          /* name of the result allocator; NULL: no result has a dynamic dim */
    const char *readable;     /* of f: "(float32[?,128]) -> (float32[?,10])" */
    const char *f2, *readable_f2; /* the same in version 2, with the orders that are preferred */
    const char *readable_sip; /* "[r0] -> r0" */
    struct sip structure;     /* |sip|, parsed */
    const uint32_t *leaves;   /* by raw input: its node in structure.inputs */
    bool is_positional;       /* the file's structure was missing or unusable */
};

const struct rt_signature *rt_method_signature(const struct rt_method *method);

/*
 * For those who make methods, in this order: the structure, which needs the counts of inputs and
 * results alone, and the rest, once it is known which sizes vary. |given|, whose storage lives as
 * long as the method, is the structure of a method that has no file, or NULL.
 */
MUST_CHECK enum status rt_signature_make_structure(struct rt_method *method,
                                                   const struct sip *given, struct error *err);
MUST_CHECK enum status rt_signature_make(struct rt_method *method, struct error *err);

/* Replaces the structure by |given|, whose storage lives as long as the method, and which has other
 * keys in its dicts and no other difference. Nobody else uses the method yet. */
MUST_CHECK enum status rt_signature_rename(struct rt_method *method, const struct sip *given,
                                           struct error *err);

#endif
