/* SPDX-License-Identifier: MIT */
/*
 * What is served, by name and version. A file gives its default method under its own name and each
 * of several methods as NAME.METHOD. What did not load is kept with the reason. Filled at start and
 * constant afterwards: any thread may look.
 */
#ifndef PTED_SERVER_MODEL_H
#define PTED_SERVER_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "protocol/call.h"
#include "protocol/oip.h"
#include "runtime/program.h"
#include "server/options.h"
#include "server/route.h"

struct hal_device;

/* An input or output as clients see it. */
struct model_io {
    uint32_t index; /* the method's raw one, which counts None too */
    enum rt_io_kind kind;
    struct oip_tensor_meta meta;
};

struct model {
    char name[ROUTE_MODEL_MAX + 1];
    char version_text[12];
    uint32_t version;
    struct error failure;              /* code ST_OK: the model can be called */
    struct rt_program *program;        /* shared: ref held; NULL when the file did not load */
    struct rt_method *method;          /* borrowed from |program| */
    struct model_io *inputs, *outputs; /* in the arena of struct models */
    uint32_t input_count, output_count;
    struct call_method call; /* the same by raw index and structure; meaningful with |method| */
};

struct models {
    struct arena arena;        /* of the inputs and outputs */
    struct hal_device *device; /* borrowed from the server */
    struct model *items;       /* owned; sorted by name, then by version, highest first */
    uint32_t item_count, item_capacity;
};

void models_init(struct models *models, struct hal_device *device);
void models_fini(struct models *models);

/*
 * Loads what |options| names. A bad file that was named itself is an error (ST_CORRUPT,
 * ST_NOT_FOUND); a bad file found in the folder is kept with its reason.
 */
MUST_CHECK enum status models_load(struct models *models, const struct options *options,
                                   struct error *err);

/* The highest version when |version| is 0. NULL with ST_NOT_FOUND in |err|. */
const struct model *models_find(const struct models *models, const char *name, uint32_t version,
                                struct error *err);

static inline bool model_is_ready(const struct model *model)
{
    return model->failure.code == ST_OK;
}

#endif
