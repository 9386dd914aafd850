/* SPDX-License-Identifier: MIT */
/*
 * The models that are served, by name and version. Each method of a file is one model: the default
 * method has the file's name and NAME.METHOD as an alias; the other methods are called NAME.METHOD.
 * Lists and answers use a model's name; requests may use either, and a name wins over an equal
 * alias. A pipeline is a model like any other. A file that did not load is kept with the reason.
 * The table is filled at the start; afterwards any thread may read what does not belong to the
 * loop, and only model_fail() changes it.
 */
#ifndef PTED_SERVER_MODEL_H
#define PTED_SERVER_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "protocol/call.h"
#include "protocol/oip.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/names.h"
#include "runtime/program/program.h"
#include "server/options.h"
#include "server/route.h"

struct hal_device;
struct hal_pool;
struct model_stats;
struct rt_sched;
struct rt_sched_queue;

/* An input or output as clients see it. */
struct model_io {
    uint32_t index; /* the method's raw index, which counts None too */
    enum rt_io_kind kind;
    const struct rt_io *io; /* borrowed from the method */
    struct oip_tensor_meta meta;
    const struct shape
        *example; /* for an input whose dims vary, the shape of the example; otherwise NULL */
};

struct model {
    char name[ROUTE_MODEL_MAX + 1];
    const char *alias; /* another address of the model, or NULL; like |file| in the arena */
    const char *file;  /* the name that its file or pipeline was given */
    char version_text[12];
    uint32_t version;
    atomic_bool has_failed;       /* the model cannot be called */
    struct error failure;         /* the reason; constant once |has_failed| */
    struct rt_program *program;   /* shared: ref held; NULL if the file did not load */
    struct rt_method *method;     /* borrowed from |program| */
    const char *path;             /* path of its file, in the arena; NULL: a pipeline */
    uint64_t load_ns;             /* time that the file took to load */
    struct params params;         /* the daemon's parameters with the settings of this model */
    struct rt_sched_queue *queue; /* owned, like |stats|; NULL if the model cannot be called */
    struct hal_pool *pool;        /* owned: holds the inputs of waiting calls */
    int64_t rows_form;            /* rows that may be tried as one, see server/proving.h */
    int64_t rows_max;       /* the loop's: rows that may run as one; 1: each request runs alone */
    struct error why_alone; /* the loop's: the reason why that is 1 */
    int64_t batch_size_max; /* rows of a request; 0: dim 0 does not count samples */
    struct model_stats *stats; /* the loop's */
    struct rt_step_counts
        *steps_before; /* counts of a pipeline's steps on earlier devices: in the arena */
    uint32_t step_count;
    struct model_io *inputs, *outputs; /* in the arena of struct models */
    uint32_t input_count, output_count;
    const char *constants; /* JSON of the values of the program's constant methods, or NULL */
    const char *placement; /* JSON of where it runs, or NULL: on the CPU */
    struct call_method
        call; /* inputs and outputs by raw index and structure; meaningful with |method| */
    const struct shape *example; /* by raw input: rt_example_shapes(); NULL: no example exists */
};

/* A name or an alias. */
struct model_address {
    const char *name;
    const struct model *model;
    bool is_alias;
};

struct models {
    const struct options
        *options;              /* borrowed while loading: which data files belong to which model */
    struct arena arena;        /* memory of the inputs and outputs */
    struct hal_device *device; /* borrowed from struct serving, like the next two */
    struct hal_pool *pool;     /* the range that the pools of models share */
    struct rt_sched *sched;
    struct model *items; /* owned; sorted by name, then by version, highest first */
    uint32_t item_count, item_capacity;
    uint32_t found_count;            /* while loading: .pte files found in folders */
    struct model_address *addresses; /* owned; sorted likewise, aliases behind equal names */
    uint32_t address_count;
};

void models_init(struct models *models, struct hal_device *device, struct hal_pool *pool,
                 struct rt_sched *sched);
/* No model can be called any more; names and descriptions stay. */
void models_close(struct models *models);
void models_fini(struct models *models);

/* Models of |from| that are here, too, keep their counts here. */
void models_keep_stats(struct models *models, const struct models *from);

/* Loads the models that |options| names. A bad file that was named itself is an error (ST_CORRUPT,
 * ST_NOT_FOUND); a bad file found in a folder is kept with its reason. */
MUST_CHECK enum status models_load(struct models *models, const struct options *options,
                                   struct error *err);

/* By name or alias; the highest version when |version| is 0. NULL with ST_NOT_FOUND in |err|. */
const struct model *models_find(const struct models *models, const char *name, uint32_t version,
                                struct error *err);

/* While loading: adds |program|'s methods as models, which take references; and finds the version
 * of |name|, or else the highest callable one, or else any. NULL: there is none. */
MUST_CHECK enum status models_add_program(struct models *models, struct span file, uint32_t version,
                                          struct rt_program *program, struct error *err);
const struct model *models_find_any(const struct models *models, const char *name,
                                    uint32_t version);

/* The model cannot be called any more, for the reason |why|; only the first reason counts. While
 * loading, or on the loop. */
void model_fail(struct model *model, const struct error *why);

/* Calls model_fail() for all models whose program's files changed on disk
 * (rt_program_verify_files()). */
void models_verify_files(struct models *models);

/* ST_UNAVAILABLE with the reason when the model cannot be called. */
MUST_CHECK enum status model_verify_ready(const struct model *model, struct error *err);

/* The input or output with this name or alias, or NULL. */
const struct model_io *model_find_io(const struct model_io *ios, uint32_t count, struct span name);

/* ST_INVALID: "model 'm' has no input 'x', expected one of image and mask". */
enum status model_refuse_name(const struct model *model, enum rt_side side, struct span name,
                              struct error *err);

/* The cost of step |step| of a pipeline, summed over all devices that it ran on; its names are
 * those of the last device. */
struct rt_step_counts model_step_counts(const struct model *model, uint32_t step);

static inline bool model_is_ready(const struct model *model)
{
    return !atomic_load_explicit(&model->has_failed, memory_order_acquire);
}

#endif
