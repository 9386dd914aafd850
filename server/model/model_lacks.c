/* SPDX-License-Identifier: MIT */
/* What a model does not get of runtime/call/gain.def, with the reasons. */
#include "config.h"

#include "server/model/model.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/reason.h"
#include "protocol/json.h"
#include "runtime/call/gains.h"
#include "runtime/program/program.h"
#include "runtime/program/summary.h"
#include "server/language/generator.h"

#define TEXT_BYTES_MAX 4096

static void add(struct buf *out, enum rt_gain gain, const char *why)
{
    buf_printf(out, "%s\"%s\":", out->len ? "," : "{", rt_gain_name(gain));
    json_print_string(out, span_str(why));
}

static void add_rows(const struct model *model, struct buf *out)
{
    if (model->rows_max == 1 && !model->trial.is_open) {
        add(out, rt_method_has_state(model->method) ? RT_GAIN_STEPS : RT_GAIN_BATCHES,
            model->why_alone.text);
    }
}

static void add_guesses(const struct model *model, struct buf *out)
{
    const struct generator *generator = model->generator;
    enum reason why = form_why_not_positional(&generator->forms.step);
    if (why != REASON_NONE) {
        add(out, RT_GAIN_GUESSES, reason_text(why));
    } else if (model->rows_form == 1) {
        add(out, RT_GAIN_GUESSES, reason_text(REASON_STEPS_ALONE)); /* nothing is tried */
    } else if (!model->trial.is_open && atomic_load(&generator->speculation_tokens) == 1) {
        add(out, RT_GAIN_GUESSES, generator->why_one.text);
    }
    if (generator->why_whole != REASON_NONE) {
        add(out, RT_GAIN_PREFIXES, reason_text(generator->why_whole));
    }
}

const char *model_print_lacks(const struct model *model, struct arena *arena)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    struct buf text;
    const char *kept = "";
    if (rt_method_is_constant(model->method)) {
        return kept;
    }
    buf_init(&text, TEXT_BYTES_MAX);
    add_rows(model, &text);
    if (model->generator) {
        add_guesses(model, &text);
    }
    if (text.len > 0) {
        buf_add_char(&text, '}');
        kept = arena_strdup(arena, text.ptr, text.len);
    }
    if (buf_failed(&text)) {
        kept = NULL;
    }
    buf_fini(&text);
    return kept;
}
