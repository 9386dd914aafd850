/* SPDX-License-Identifier: MIT */
/*
 * A model: one method of a file, or a pipeline, under the name by which clients call it. The
 * default method of a file has the file's name and NAME.METHOD as an alias; the other methods are
 * called NAME.METHOD. A file that did not load is one model, which keeps the reason.
 *
 * A model is counted. Its repository (server/model/repository.h) holds a reference while the model
 * has a place in the index, and each call holds one from the time when it finds the model to its
 * end. The thread that drops the last reference frees the model; a model whose queue or pool still
 * has a user cannot be freed, so calls give back both before they let the model go.
 *
 * A published model does not change, so that any thread may read it; only its state does. One
 * thread at a time changes the state: the thread that loads the model, and after that the loop.
 * Members that are called the loop's belong to the loop.
 */
#ifndef PTED_SERVER_MODEL_MODEL_H
#define PTED_SERVER_MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/refs.h"
#include "base/status.h"
#include "protocol/call.h"
#include "protocol/oip.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/names.h"
#include "runtime/program/program.h"
#include "server/model/model_stats.h"
#include "server/model/model_trial.h"
#include "server/model/origin.h"
#include "server/process/model_name.h"
#include "server/process/options.h"

struct answer_form;
struct embedder;
struct generator;
struct hal_device;
struct hal_pool;
struct medium;
struct model_stats;
struct rt_sched_queue;
struct transcriber;

#define MODEL_MAGIC 0x6d6f646cu

enum model_state {
#define STATE(name, ...) MODEL_##name,
#include "server/model/model_state.def"
#undef STATE
    MODEL_STATES
};

/* An input or output as clients see it. */
struct model_io {
    uint32_t index; /* the method's raw index, which counts None too */
    enum rt_io_kind kind;
    const struct rt_io *io; /* borrowed from the method */
    struct oip_tensor_meta meta;
    struct span head; /* of an output: oip_print_result_head() */
    const struct shape
        *example; /* for an input whose dims vary, the shape of the example; otherwise NULL */
    const struct span *labels; /* of an output: names of its classes, borrowed from the origin */
    uint32_t label_count;
    const struct answer_form *answer; /* likewise: how it is written for people; NULL: as numbers */
    struct medium *medium; /* of an input that may come as a file or a text: ref held; or NULL */
    bool is_filled;        /* an input that is made together with the text of another one */
};

/* What requests that name no model may mean a model for. A file that is only listed again is for
 * the same. */
struct model_uses {
    bool generates;        /* it has a generator */
    bool transcribes;      /* it has a transcriber */
    bool embeds, ranks;    /* it has an embedder, which ranks or does not */
    unsigned embeds_claim; /* how sure that is: enum embedder_claim */
};

struct model {
    uint32_t magic;
    struct refs refs;
    struct arena arena; /* memory of the description */
    /* ---- what it is ---- */
    struct origin *origin;   /* shared: ref held; the model was made from this ... */
    const char *method_name; /* ... and this method of it; NULL if the file did not load */
    char name[MODEL_NAME_MAX + 1];
    const char *alias; /* a second name that finds the model, or NULL */
    uint64_t serial;   /* no other model of this process has it, nor a later generation; not 0 */
    char version_text[12];
    uint32_t version;
    /* ---- its state ---- */
    _Atomic(enum model_state) state;
    struct error failure; /* why it is FAILED; constant from then on */
    struct model *older;  /* shared: ref held; the generation before it, where sequences are open.
                             Under the lock of its repository */
    /* ---- what it runs ---- */
    struct rt_program *program;      /* shared: ref held; NULL: did not load, or model_close() */
    struct rt_method *method;        /* borrowed from |program| */
    struct params params;            /* the daemon's parameters with the settings of this model */
    struct generator *generator;     /* owned: of a language model with a tokenizer; else NULL */
    struct embedder *embedder;       /* owned: of an encoder of texts; else NULL */
    struct transcriber *transcriber; /* owned: of a speech model with a tokenizer; else NULL */
    struct model_uses uses;
    struct rt_sched_queue *queue; /* ref held; NULL if the model cannot be called */
    struct hal_pool *pool;        /* owned: holds the inputs of waiting calls */
    struct hal_pool *run_pool;    /* owned: holds what calls need to run */
    int64_t rows_form; /* rows that may be tried as one, see server/daemon/serving/proving.h */
    _Atomic(int64_t) rows_max; /* rows that may run as one; 1: each request runs alone. Set by the
                                  loop */
    struct error why_alone;    /* the loop's: the reason why that is 1 */
    struct model_trial trial;  /* the loop's: how they are found; two of its members for any thread:
                                */
    _Atomic(bool) trial_is_open;
    _Atomic(uint64_t) trials_late;
    int64_t batch_size_max;    /* rows of a request; 0: dim 0 does not count samples */
    struct model_stats *stats; /* owned; the loop's */
    struct rt_step_counts
        *steps_before; /* counts of a pipeline's steps on earlier devices: in the arena */
    uint32_t step_count;
    /* ---- what clients see, in the arena ---- */
    struct model_io *inputs, *outputs;
    struct span reply_head; /* oip_print_reply_head() */
    uint32_t input_count, output_count;
    const struct medium *picture; /* of an input: the pictures that answers are about, or NULL */
    const char *description;      /* from the card, or NULL */
    const char *placement;        /* JSON of where it runs, or NULL: on the CPU */
    struct call_method
        call; /* inputs and outputs by raw index and structure; meaningful with |method| */
    const struct shape *example; /* by raw input: rt_example_shapes(); NULL: no example exists */
};

/* Makes a model in state UNKNOWN; the caller owns a reference. ST_INVALID: no model can have that
 * name. */
MUST_CHECK enum status model_new(struct origin *origin, struct span name, struct model **out_model,
                                 struct error *err);

/* Adds a reference. Any thread. model_unref() of the last reference frees the model, whose state is
 * UNLOADING. */
struct model *model_ref(struct model *model);
void model_unref(struct model *model); /* NULL is fine */

/* Describes the model of |method| to clients. State LOADING; the program gets a reference. */
MUST_CHECK enum status model_describe(struct model *model, struct rt_method *method,
                                      const struct hal_device *device, struct error *err);

/* Opens inputs that the card says come as files or texts. ST_UNSUPPORTED: a library is missing.
 * Blocks. */
MUST_CHECK enum status model_open_media(struct model *model, struct error *err);

/* Lets the input |io| of |model| come as |medium| from now on. Nobody calls the model yet. It takes
 * over the reference to |medium|, even if there is no memory. */
MUST_CHECK enum status model_give_medium(struct model *model, struct model_io *io,
                                         struct medium *medium, struct error *err);

/* Releases what belongs to the device: the program, the queue, the pool. No call holds the model,
 * and its state is FAILED or UNLOADING. Its name, its reason and its counts stay. */
void model_close(struct model *model);

/* model_state.def: may |to| follow |from|? The protocol's word for a state. */
bool model_state_may_follow(enum model_state from, enum model_state to);
const char *model_state_word(enum model_state state);

/* Call on the thread that may change the state. */
void model_set_state(struct model *model, enum model_state state);

/* Call when the model cannot be called any more, for the reason |why|; only the first reason
 * counts, and an unloaded model has none. Likewise. */
void model_fail(struct model *model, const struct error *why);

/* Returns why the model cannot be called; NULL: it can. Any thread. */
const char *model_refusal(const struct model *model);

/* Fails with ST_UNAVAILABLE with that reason. */
MUST_CHECK enum status model_verify_ready(const struct model *model, struct error *err);

/* Returns the input or output with this name or alias, or NULL. */
const struct model_io *model_find_io(const struct model_io *ios, uint32_t count, struct span name);

/* Returns the input that takes such files or texts, if it is the only one; NULL: |*out_count|
 * do. */
const struct model_io *model_find_medium(const struct model *model, bool is_text,
                                         uint32_t *out_count);

/* Fails with ST_INVALID: "model 'm' has no input 'x', expected one of image and mask". */
enum status model_refuse_name(const struct model *model, enum rt_side side, struct span name,
                              struct error *err);

/* Would it take texts, or give them, if there was a tokenizer beside its program? */
bool model_lacks_tokenizer(const struct model *model);

/* Does its tokenizer matter to it, or would one? */
bool model_reads_words(const struct model *model);

/* Fails with ST_INVALID: the model is no |what|, such as "language model". */
enum status model_refuse_texts(const struct model *model, const char *what, struct error *err);

/* Returns the cost of step |step| of a pipeline, summed over all devices that it ran on; the names
 * come from the last device. The loop. */
struct rt_step_counts model_step_counts(const struct model *model, uint32_t step);

/* |model| takes the place of |old|, the same model on an earlier device: it goes on with its
 * counts. The loop. */
void model_keep_stats(struct model *model, const struct model *old);

static inline enum model_state model_state(const struct model *model)
{
    return atomic_load_explicit(&model->state, memory_order_acquire);
}

static inline bool model_is_ready(const struct model *model)
{
    return model_state(model) == MODEL_READY;
}

/* Is it a constant method, such as get_max_seq_len? Only a model that is ready tells. */
static inline bool model_is_constant(const struct model *model)
{
    return model_is_ready(model) && rt_method_is_constant(model->method);
}

/* Can it be called, at least when its file has been loaded? */
static inline bool model_can_serve(const struct model *model)
{
    return model_is_ready(model) || model_state(model) == MODEL_UNKNOWN;
}

/* Can its name be called? So it is of a model that has just left the index that is looked at: the
 * index of now may have another in its place, which is found by the name. */
static inline bool model_is_to_be_had(const struct model *model)
{
    return model_can_serve(model) || model_state(model) == MODEL_UNLOADING;
}

/* {"guesses":"its mutable buffers ..."}: what a model that is ready does not get of
 * runtime/call/gain.def, and why; in |arena|. "": it gets everything; NULL: there is no memory.
 * What is still being tried is left out. The loop. */
const char *model_print_lacks(const struct model *model, struct arena *arena);

#endif
