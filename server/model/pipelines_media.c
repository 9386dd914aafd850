/* SPDX-License-Identifier: MIT */
/* Inputs of pipelines that come as files or texts, because inputs of their steps do. */
#include "config.h"

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/intake/medium.h"
#include "server/model/model.h"
#include "server/model/pipelines_priv.h"

/* The medium of an input of the pipeline, and the step that it comes from. */
struct found {
    struct medium *medium; /* ref held, or NULL */
    uint32_t step;
};

static struct medium *medium_of(const struct model *model, uint32_t index)
{
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (model->inputs[i].index == index) {
            return model->inputs[i].medium;
        }
    }
    return NULL;
}

/* Inputs beside the ids are filled if they are inputs of the pipeline, too, and no others. */
static void find_parts(const struct rt_pipeline_step *step, const struct medium *medium,
                       uint32_t input, uint32_t out[MEDIUM_PARTS])
{
    out[MEDIUM_IDS] = input;
    for (int part = MEDIUM_MASK; part < MEDIUM_PARTS; part++) {
        uint32_t index = medium->parts[part];
        const struct rt_source *source = index < step->source_count ? &step->sources[index] : NULL;
        bool is_input = source && source->kind == RT_SOURCE_INPUT && source->index != input;
        out[part] = is_input ? source->index : MEDIUM_ABSENT;
    }
}

static enum status refuse(const struct rt_pipeline_desc *desc, const struct found *first,
                          uint32_t step, const char *what, struct error *err)
{
    return error_set(err, ST_INVALID,
                     "step %u (%.60s) and step %u (%.60s) make different things of it: expected "
                     "the same \"%s\" in both cards, or two inputs",
                     first->step, desc->steps[first->step].name, step, desc->steps[step].name,
                     what);
}

/* One more step takes the input. A text fills what any of them needs. */
static enum status join(const struct rt_pipeline_desc *desc, struct found *first, uint32_t step,
                        const struct medium *medium, struct error *err)
{
    char what[CARD_MEDIA_TEXT_MAX];
    if (!medium_is_alike(first->medium, medium, what)) {
        return refuse(desc, first, step, what, err);
    }
    for (int part = MEDIUM_MASK; part < MEDIUM_PARTS; part++) {
        if (first->medium->parts[part] == MEDIUM_ABSENT) {
            first->medium->parts[part] = medium->parts[part];
            first->medium->dtypes[part] = medium->dtypes[part];
        }
    }
    return ST_OK;
}

/* |source| of a step is the pipeline's input |input|; it may have a medium there. */
static enum status take_source(const struct rt_pipeline_desc *desc,
                               const struct model *const *served, const struct model *model,
                               uint32_t step, uint32_t source, struct found *found,
                               struct error *err)
{
    uint32_t input = desc->steps[step].sources[source].index, parts[MEDIUM_PARTS];
    struct medium *own = medium_of(served[step], source), *medium;
    if (!own) {
        return ST_OK;
    }
    find_parts(&desc->steps[step], own, input, parts);
    TRY(medium_relay(own, model->method, input, parts, &medium, err));
    if (!found->medium) {
        *found = (struct found){medium, step};
        return ST_OK;
    }
    enum status status = join(desc, found, step, medium, err);
    medium_unref(medium);
    return status;
}

static enum status find_medium(const struct rt_pipeline_desc *desc,
                               const struct model *const *served, const struct model *model,
                               uint32_t input, struct found *out, struct error *err)
{
    for (uint32_t step = 0; step < desc->step_count; step++) {
        const struct rt_pipeline_step *at = &desc->steps[step];
        for (uint32_t i = 0; i < at->source_count; i++) {
            if (at->sources[i].kind == RT_SOURCE_INPUT && at->sources[i].index == input) {
                TRY(take_source(desc, served, model, step, i, out, err));
            }
        }
    }
    return ST_OK;
}

enum status pipelines_take_media(const struct rt_pipeline_desc *desc,
                                 const struct model *const *served, struct model *model,
                                 struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    for (uint32_t i = 0; i < model->input_count; i++) {
        struct model_io *io = &model->inputs[i];
        struct found found = {.medium = NULL};
        if (find_medium(desc, served, model, io->index, &found, err) != ST_OK) {
            medium_unref(found.medium);
            return error_prefix(err, "%s: ", rt_method_input(model->method, io->index)->label);
        }
        TRY(found.medium ? model_give_medium(model, io, found.medium, err) : ST_OK);
    }
    return ST_OK;
}
