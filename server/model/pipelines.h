/* SPDX-License-Identifier: MIT */
/*
 * Files that chain models, documents in the sense of server/process/document.h:
 *
 *     {"classify": {
 *         "inputs": ["image"],
 *         "steps": [{"name": "features", "model": "backbone", "inputs": [{"input": "image"}]},
 *                   {"model": "topk", "inputs": {"logits": {"from": "features", "output": 0}}}],
 *         "outputs": [{"name": "label", "from": 1, "output": 1}]}}
 *
 * A step names a model that is served, or a pipeline that stands before it, and may name its
 * "version" and "method". Its inputs are a list in their order, or an object by their names; each
 * is an input of the pipeline, a result of an earlier step, or null where the exporter fixed the
 * value. Inputs of the pipeline and steps are given by number or by name, results as
 * protocol/pick.h has it. Inputs with names are keyword arguments of the pipeline; in the order in
 * which they first come, unless "inputs" lists them. Without "outputs" the pipeline has the results
 * of the last step. Unknown members are refused, except the members of a pipeline for people
 * ("description") and for tests ("cases", "tolerance", "et_check").
 */
#ifndef PTED_SERVER_MODEL_PIPELINES_H
#define PTED_SERVER_MODEL_PIPELINES_H

#include <stdbool.h>

#include "base/status.h"

struct cJSON;
struct document;
struct model;
struct repository_draft;

struct pipelines_policy {
    bool (*is_unloaded)(void *arg, const char *name); /* a pipeline that is out of service */
    /* A step calls a model that is only listed: loads it in the draft. */
    enum status (*load)(void *arg, const struct model *model, struct error *err);
    void *arg;
    bool keeps_failed; /* a pipeline that cannot be made is kept with its reason, instead of an
                          error */
};

/* Adds the pipelines of the file at |path| to |draft|, which holds all other models already. */
MUST_CHECK enum status pipelines_load(struct repository_draft *draft, const char *path,
                                      const struct pipelines_policy *policy, struct error *err);

/* Does the same for the pipelines that are the members of |value|, a value of |in|. */
MUST_CHECK enum status pipelines_load_value(struct repository_draft *draft,
                                            const struct document *in, const struct cJSON *value,
                                            const struct pipelines_policy *policy,
                                            struct error *err);

/* Has the pipeline |value| of |in| the form of one? Its models are not looked for. Any thread. */
MUST_CHECK enum status pipelines_verify(const struct document *in, const struct cJSON *value,
                                        struct error *err);

#endif
