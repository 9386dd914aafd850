/* SPDX-License-Identifier: MIT */
/*
 * Names and versions of models, as paths, folders and command lines write them. Any thread.
 */
#ifndef PTED_SERVER_MODEL_MODEL_NAME_H
#define PTED_SERVER_MODEL_MODEL_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

#define MODEL_NAME_MAX 128

/* 1 to MODEL_NAME_MAX of A-Z a-z 0-9 . _ -, no dot first. */
bool model_name_is_valid(struct span name);
MUST_CHECK enum status model_name_verify(struct span name, struct error *err); /* ST_INVALID */

/* Copies |name|, of at most MODEL_NAME_MAX bytes, and terminates it. */
void model_name_copy(struct span name, char out[MODEL_NAME_MAX + 1]);

/* Parses a version: 1 to 9 digits, not 0. */
bool model_name_parse_version(struct span text, uint32_t *out_version);

#endif
