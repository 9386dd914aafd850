/* SPDX-License-Identifier: MIT */
/* What the files that fill the table of models share. */
#ifndef PTED_SERVER_MODEL_PRIV_H
#define PTED_SERVER_MODEL_PRIV_H

#include "server/model.h"

bool model_name_is_valid(struct span name);

/*
 * A new row for something in |file|, good until the next one is added. ST_INVALID: no model can
 * have that name; ST_EXHAUSTED.
 */
MUST_CHECK enum status models_add(struct models *models, struct span file, struct span name,
                                  uint32_t version, struct model **out_model, struct error *err);

/* Into the order that models_find() needs; ST_INVALID: two have the same name and version. */
MUST_CHECK enum status models_sort(struct models *models, struct error *err);

#endif
