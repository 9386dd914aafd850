/* SPDX-License-Identifier: MIT */
/*
 * export.json, which transformers' exporter writes beside the programs of a model (transformers
 * 5.24, exporters/base.py): for each component, such as `decode`, its file and the structure of its
 * inputs and results. The programs have no mutable buffers: their cache is an input and a result,
 * and only this file says which ones, because the structure within a program leaves the tensors of
 * a cache out. Blocks; any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_EXPORTED_H
#define PTED_SERVER_LANGUAGE_EXPORTED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/program/carries.h"

/* Two tensors of each layer, or three. */
#define EXPORTED_CARRIES_MAX 512

#define EXPORTED_JSON "export.json"

struct exported {
    bool is_found; /* the program is a component whose cache goes from call to call */
    struct rt_carry items[EXPORTED_CARRIES_MAX];
    struct rt_carries carries;
};

/* Looks for the program at |path| in the export.json of its folder, which may be missing, or be
 * another exporter's. ST_INVALID and others: that file cannot be read; the text says that it is
 * left out. */
MUST_CHECK enum status exported_read(const char *path, struct exported *out, struct error *err);

#endif
