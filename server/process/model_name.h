/* SPDX-License-Identifier: MIT */
/*
 * Names and versions of models, as paths, folders and command lines write them. Any thread.
 */
#ifndef PTED_SERVER_PROCESS_MODEL_NAME_H
#define PTED_SERVER_PROCESS_MODEL_NAME_H

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

/* Writes the name of the model that lies in a file, at a URL or in a folder, and returns it: "name"
 * of "dir/name.pte", "dir/name/" and "dir/name_executorch_model/". Characters that a name cannot
 * have become one '_' between those that it can have, and are left out at both ends: "net (1).pte"
 * is called "net_1". What is too long is cut, and "model" is the name if nothing is left. */
struct span model_name_of_file(const char *path, char out[MODEL_NAME_MAX + 1]);

/* Parses a version: 1 to 9 digits, not 0. */
bool model_name_parse_version(struct span text, uint32_t *out_version);

#endif
