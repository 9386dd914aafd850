/* SPDX-License-Identifier: MIT */
/* A pipeline as its document says it, before anybody has looked for what it names. All of it lies
 * in the reader's arena. */
#ifndef PTED_SERVER_PIPELINES_PRIV_H
#define PTED_SERVER_PIPELINES_PRIV_H

#include <stdbool.h>

#include "base/arena.h"
#include "protocol/json.h"
#include "protocol/pick.h"
#include "runtime/pipeline/pipeline.h"

/* An input of the pipeline, or a step: by name, or by number. */
struct pipelines_ref {
    const char *name; /* NULL: |number| */
    uint32_t number;
};

/* Where a value comes from. */
struct pipelines_source {
    enum rt_source_kind kind;
    const char *slot; /* the step's input that takes it, where inputs have names; else NULL */
    struct pipelines_ref from;
    struct pick output; /* of a step's results */
    const char *name;   /* of a result of the pipeline, or NULL */
};

struct pipelines_step {
    const char *name, *model, *method; /* but for |model| NULL where they are not said */
    uint32_t version;                  /* 0: any */
    struct pipelines_source *sources;
    uint32_t source_count;
    bool has_slots; /* the inputs are an object */
};

struct pipelines_document {
    const char **inputs; /* their names, if they are listed; else NULL */
    uint32_t input_count;
    struct pipelines_step *steps;
    uint32_t step_count;
    struct pipelines_source *outputs;
    uint32_t output_count; /* 0: not said, those of the last step */
};

/* The value that comes next in |in|. Errors have their place in the text. */
MUST_CHECK enum status pipelines_read(struct json *in, struct arena *arena,
                                      struct pipelines_document *out, struct error *err);

/* |string| as text in |arena|, which must not have a NUL. */
MUST_CHECK enum status pipelines_keep(const struct json *in, struct arena *arena,
                                      const struct json_string *string, const char **out,
                                      struct error *err);

#endif
