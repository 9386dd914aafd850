/* SPDX-License-Identifier: MIT */
/* A pipeline as its document describes it, before its names are resolved. Lists are in the
 * reader's arena, texts in the document. */
#ifndef PTED_SERVER_MODEL_PIPELINES_PRIV_H
#define PTED_SERVER_MODEL_PIPELINES_PRIV_H

#include <stdbool.h>

#include "base/arena.h"
#include "protocol/pick.h"
#include "runtime/pipeline/pipeline.h"
#include "server/process/document.h"

/* An input of the pipeline, or a step: by name or by number. */
struct pipelines_ref {
    const char *name; /* NULL: |number| */
    uint32_t number;
};

/* Where a value comes from. */
struct pipelines_source {
    enum rt_source_kind kind;
    const char
        *input; /* name of the step's input that takes it, if inputs have names; otherwise NULL */
    struct pipelines_ref from;
    struct pick output; /* picks one of a step's results */
    const char *name;   /* name of a result of the pipeline, or NULL */
};

struct pipelines_step {
    const char *name, *model,
        *method;      /* except for |model|, NULL if the document does not give it */
    uint32_t version; /* 0: any version */
    struct pipelines_source *sources;
    uint32_t source_count;
    bool has_input_names; /* the inputs are an object, not a list */
};

struct pipelines_document {
    const char **inputs; /* names of the inputs, if they are listed; otherwise NULL */
    uint32_t input_count;
    struct pipelines_step *steps;
    uint32_t step_count;
    struct pipelines_source *outputs;
    uint32_t output_count; /* 0: not given; then the pipeline has the results of the last step */
};

/* Reads the pipeline that |value| of |in| describes. Errors name their place in the document. */
MUST_CHECK enum status pipelines_read(const struct document *in, const struct cJSON *value,
                                      struct arena *arena, struct pipelines_document *out,
                                      struct error *err);

struct model;

/*
 * Inputs of the pipeline |model| that become an input with a medium come as it. |served|: the model
 * of each step. ST_INVALID: two steps make different tensors of one input.
 */
MUST_CHECK enum status pipelines_take_media(const struct rt_pipeline_desc *desc,
                                            const struct model *const *served, struct model *model,
                                            struct error *err);

#endif
