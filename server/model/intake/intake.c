/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/intake/intake.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/program/program.h"
#include "server/language/embedder.h"
#include "server/language/exported.h"
#include "server/language/form.h"
#include "server/language/generator.h"
#include "server/language/sidecar.h"
#include "server/language/transcriber.h"
#include "server/model/card/card.h"
#include "server/model/intake/medium.h"

_Static_assert((int)CARD_MEAN == (int)EMBEDDER_MEAN && (int)CARD_NONE == (int)EMBEDDER_NONE,
               "cards have the same kinds of pooling, in the same order");

static const struct card_method *find_said(const struct card *card, const struct rt_method *method)
{
    return card ? card_find_method(card, method) : NULL;
}

/* Does the card say that a result has classes? */
static bool has_classes(const struct card *card, const struct rt_method *method)
{
    bool has = false;
    for (uint32_t i = 0; card && i < rt_method_result_count(method); i++) {
        has |= card_find_labels(card, method, i) || card_find_answer(card, method, i);
    }
    return has;
}

/* Does the card say that something is computed behind a result? */
static bool has_steps(const struct card_method *about, const struct rt_method *method)
{
    bool has = false;
    for (uint32_t i = 0; about && i < rt_method_result_count(method); i++) {
        const struct card_io *io = card_find_io(about, RT_RESULT, i);
        has |= io && io->step_count > 0;
    }
    return has;
}

/* The card's settings of an encoder must fit. */
static enum status open_embedder(struct rt_method *method, const struct card *card,
                                 const char *path, const char *tokenizer, struct embedder **out,
                                 struct error *err)
{
    const struct card_method *about = find_said(card, method);
    const struct card_embedding nothing = {.is_said = false};
    const struct card_embedding *said = about ? &about->embedding : &nothing;
    const struct embedder_options options = {
        .is_said = said->is_said,
        .has_classes = has_classes(card, method),
        .has_steps = has_steps(about, method),
        .pooling = (enum embedder_pooling)said->pooling,
        .is_not_normalized = said->is_not_normalized,
        .max_tokens = said->max_tokens,
        .prefix = said->prefix,
    };
    return embedder_new(method, path, tokenizer, &options, out, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "method '%s': ", rt_method_name(method));
}

enum status intake_read_exported(const char *path, struct exported **out, struct error *err)
{
    struct exported *exported = malloc(sizeof(*exported));
    *out = NULL;
    if (!exported) {
        return error_no_memory(err, "export.json");
    }
    enum status status = exported_read(path, exported, err);
    if (status != ST_OK || !exported->is_found) {
        free(exported);
        return status;
    }
    *out = exported;
    return ST_OK;
}

const struct rt_carries *intake_carries(const struct exported *exported)
{
    return exported ? &exported->carries : NULL;
}

void intake_free_exported(struct exported *exported)
{
    free(exported);
}

_Static_assert(CARD_ENDS_MAX <= GENERATOR_ENDS_MAX, "a generator has room for a card's ends");

static uint32_t count_of(double number)
{
    return isnan(number) ? UINT32_MAX : (uint32_t)number;
}

/* With the card's settings of answers. */
static enum status open_generator(struct rt_method *method, const struct card *card,
                                  const char *path, const char *tokenizer, struct generator **out,
                                  struct error *err)
{
    const struct card_method *about = find_said(card, method);
    if (!about || !about->generation.is_said) {
        return generator_new(method, path, tokenizer, NULL, out, err);
    }
    const struct card_generation *from = &about->generation;
    const struct generator_said said = {
        .defaults = {.temperature = from->temperature,
                     .top_p = from->top_p,
                     .min_p = from->min_p,
                     .repetition = from->repetition_penalty,
                     .top_k = count_of(from->top_k),
                     .max_tokens = count_of(from->max_tokens)},
        .ends = from->ends,
        .end_count = from->end_count,
        .tools = from->tools,
        .thinking = {from->thinking, from->thinking_open, from->thinking_close},
        .infill = {from->infill, from->infill_prefix, from->infill_suffix, from->infill_middle},
    };
    return generator_new(method, path, tokenizer, &said, out, err);
}

const struct rt_composition *intake_composition(void)
{
    return form_composition();
}

const char *intake_kind(const struct rt_method *method)
{
    return generator_fits(method)     ? "a language model"
           : transcriber_fits(method) ? "a speech model"
           : embedder_fits(method)    ? "an encoder of texts"
                                      : NULL;
}

void intake_find_gains(struct rt_method *method, struct rt_gains *out)
{
    bool is_language = generator_fits(method);
    rt_gains_find(method, is_language,
                  is_language ? generator_why_not_positional(method) : REASON_NONE, out);
}

bool intake_has_tokenizer(const char *path)
{
    struct sidecars sidecars;
    struct error err;
    return sidecar_init(&sidecars, path, NULL, &err) == ST_OK && sidecar_has_tokenizer(&sidecars);
}

enum status intake_open_language(struct rt_method *method, const struct card *card,
                                 const char *path, const char *tokenizer,
                                 struct intake_language *out, struct error *err)
{
    *out = (struct intake_language){.generator = NULL};
    enum status status = transcriber_new(method, path, tokenizer, &out->transcriber, err);
    if (status == ST_OK) {
        status = open_generator(method, card, path, tokenizer, &out->generator, err);
    }
    if (status == ST_OK && !out->generator) {
        status = open_embedder(method, card, path, tokenizer, &out->embedder, err);
    }
    if (status != ST_OK) {
        intake_close_language(out);
    }
    return status;
}

void intake_close_language(struct intake_language *language)
{
    embedder_free(language->embedder);
    generator_free(language->generator);
    transcriber_free(language->transcriber);
    *language = (struct intake_language){.generator = NULL};
}

enum status intake_verify(struct rt_method *method, const struct card *card, const char *path,
                          const char *tokenizer, struct error *err)
{
    const struct card_method *said = find_said(card, method);
    if (rt_method_failure(method)) {
        return ST_OK;
    }
    struct intake_language language;
    TRY(intake_open_language(method, card, path, tokenizer, &language, err));
    intake_close_language(&language);
    for (uint32_t i = 0; said && i < rt_method_input_count(method); i++) {
        const struct card_io *io = card_find_io(said, RT_INPUT, i);
        struct medium *medium;
        TRY(medium_new(method, io, path, tokenizer, &medium, err));
        medium_unref(medium);
    }
    return ST_OK;
}
