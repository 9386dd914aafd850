/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/gains.h"

#include "base/check.h"
#include "base/reason.h"
#include "runtime/call/batch.h"
#include "runtime/call/speculation_priv.h"
#include "runtime/call/steps.h"
#include "runtime/program/summary.h"

static const char *const gain_names[RT_GAIN_COUNT] = {
#define GAIN(ID, name) [RT_GAIN_##ID] = #name,
#include "runtime/call/gain.def"
#undef GAIN
};

const char *rt_gain_name(enum rt_gain gain)
{
    must(gain < RT_GAIN_COUNT);
    return gain_names[gain];
}

/* Batches of a method without buffers, joined steps of one with them. */
static void find_rows(struct rt_method *method, struct rt_gains *out)
{
    bool has_state = rt_method_has_state(method);
    struct error *why = &out->whys[has_state ? RT_GAIN_STEPS : RT_GAIN_BATCHES];
    int64_t rows;
    why->code = rt_batch_open(method, &rows, why);
    if (why->code == ST_OK && method->steps) {
        why->code = rt_steps_make_form(method, 2, why);
    }
}

static void find_guesses(struct rt_method *method, enum reason why_no_position,
                         struct rt_gains *out)
{
    struct error *why = &out->whys[RT_GAIN_GUESSES];
    if (why_no_position != REASON_NONE) {
        (void)reason_set(why, why_no_position);
    } else if (out->whys[RT_GAIN_STEPS].code != ST_OK) {
        (void)reason_set(why, REASON_STEPS_ALONE);
    } else {
        why->code = rt_speculation_make_form(method, 2, why);
    }
}

void rt_gains_find(struct rt_method *method, bool is_language, enum reason why_no_position,
                   struct rt_gains *out)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    for (int i = 0; i < RT_GAIN_COUNT; i++) {
        out->whys[i].code = ST_NOT_FOUND;
    }
    if (rt_method_failure(method) || rt_method_is_constant(method)) {
        return;
    }
    find_rows(method, out);
    if (!is_language) {
        return;
    }
    find_guesses(method, why_no_position, out);
    enum reason why_whole =
        why_no_position != REASON_NONE ? why_no_position : rt_method_why_not_positional(method);
    out->whys[RT_GAIN_PREFIXES].code = ST_OK;
    if (why_whole != REASON_NONE) {
        (void)reason_set(&out->whys[RT_GAIN_PREFIXES], why_whole);
    }
}
