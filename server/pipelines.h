/* SPDX-License-Identifier: MIT */
/*
 * Files that chain models:
 *
 *     {"classify": {"steps": [{"model": "backbone", "inputs": [{"input": 0}]},
 *                             {"model": "topk", "inputs": [{"from": 0, "output": 0}]}],
 *                   "outputs": [{"from": 1, "output": 0}]}}
 *
 * A step names a model that is served, or a pipeline that stands before it, and may name its
 * "version" and "method". Each of its inputs is an input of the pipeline, a result of an earlier
 * step, or null where the exporter fixed the value. Without "outputs" the results are those of the
 * last step. Other members of a pipeline are for people and other programs, and are passed over.
 */
#ifndef PTED_SERVER_PIPELINES_H
#define PTED_SERVER_PIPELINES_H

#include "base/status.h"

struct models;

/* Adds the pipelines of the file at |path| to |models|, whose other models are all there. */
MUST_CHECK enum status pipelines_load(struct models *models, const char *path, struct error *err);

#endif
