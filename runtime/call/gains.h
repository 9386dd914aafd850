/* SPDX-License-Identifier: MIT */
/*
 * What a method gets beside plain calls, as far as its form says: whether that gives the same bits
 * and is worth it, a trial says later (runtime/call/batch.h, runtime/call/speculation.h).
 */
#ifndef PTED_RUNTIME_CALL_GAINS_H
#define PTED_RUNTIME_CALL_GAINS_H

#include <stdbool.h>

#include "base/reason.h"
#include "base/status.h"

struct rt_method;

enum rt_gain {
#define GAIN(ID, name) RT_GAIN_##ID,
#include "runtime/call/gain.def"
#undef GAIN
    RT_GAIN_COUNT
};

/* Returns "batches" */
const char *rt_gain_name(enum rt_gain gain);

/* By gain: ST_OK: the method gets it; ST_NOT_FOUND: that is for other methods; else the reason why
 * not. */
struct rt_gains {
    struct error whys[RT_GAIN_COUNT];
};

/* |is_language|: it is a language model; |why_no_position|: why its calls do not say where their
 * first token is, REASON_NONE: they do. No call of the method may run meanwhile. Makes the forms
 * that it looks at. */
void rt_gains_find(struct rt_method *method, bool is_language, enum reason why_no_position,
                   struct rt_gains *out);

#endif
