/* SPDX-License-Identifier: MIT */
/*
 * What models are made from: a file, whose methods are a model each, or a pipeline. Counted: its
 * models hold it. Constant once its models are published; any thread may read it then.
 */
#ifndef PTED_SERVER_MODEL_ORIGIN_H
#define PTED_SERVER_MODEL_ORIGIN_H

#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/refs.h"
#include "base/status.h"

#define ORIGIN_MAGIC 0x6f726967u

struct origin {
    uint32_t magic;
    struct refs refs;
    struct arena arena;    /* memory of the texts */
    const char *name;      /* given to the file or the pipeline */
    const char *path;      /* of the file; NULL: a pipeline */
    uint32_t version;      /* of its models */
    uint64_t load_ns;      /* time that the file took to load */
    const char *constants; /* JSON of the values of the program's constant methods, or NULL */
};

/* |path| is NULL for a pipeline. The caller owns a reference. Any thread. */
MUST_CHECK enum status origin_new(struct span name, uint32_t version, const char *path,
                                  struct origin **out_origin, struct error *err);

struct origin *origin_ref(struct origin *origin);
void origin_unref(struct origin *origin); /* NULL is fine */

#endif
