/* SPDX-License-Identifier: MIT */
/*
 * The models of one device, by name and version. The repository owns the models through an index: a
 * constant table, counted, which holds a reference to each of its models and is replaced as a whole
 * (server/model/repository_priv.h). A request that has found a model keeps it, even if the index
 * changes.
 *
 * Any thread may look at the index and find models. One thread at a time changes it: the thread
 * that loads the models, and after that the loop.
 *
 * Lists and answers use a model's name; requests may use its name or its alias, and a name wins
 * over an equal alias.
 */
#ifndef PTED_SERVER_MODEL_REPOSITORY_H
#define PTED_SERVER_MODEL_REPOSITORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/refs.h"
#include "base/status.h"
#include "server/model/model.h"
#include "server/process/options.h"

struct hal_device;
struct hal_pool;
struct rt_sched;
struct rt_sequence_key;
struct rt_sequences;

#define REPOSITORY_MAGIC 0x7265706fu
#define REPOSITORY_INDEX_MAGIC 0x69647820u

/* A name or an alias. */
struct repository_name {
    const char *text;
    struct model *model;
    bool is_alias;
};

struct repository_index {
    uint32_t magic;
    struct refs refs;
    struct model **models; /* refs held; sorted by name, then by version, highest first */
    uint32_t count;
    struct repository_name *names; /* sorted likewise, aliases behind equal names */
    uint32_t name_count;
};

struct repository {
    uint32_t magic;            /* 0: repository_init() did not come so far */
    struct hal_device *device; /* borrowed from struct serving, like the next three */
    struct hal_pool *pool;     /* the range that the pools of models share */
    struct hal_pool *running;  /* the pool whose parts hold what calls of models need to run */
    struct rt_sched *sched;
    pthread_mutex_t lock;           /* of |index|, the pointer, and of |older| of its models */
    struct repository_index *index; /* shared: ref held */
};

/* Makes an empty repository. */
MUST_CHECK enum status repository_init(struct repository *repository, struct hal_device *device,
                                       struct hal_pool *pool, struct hal_pool *running,
                                       struct rt_sched *sched, struct error *err);

/* Call when no call holds a model any more. Also after a failed repository_init(). */
void repository_fini(struct repository *repository);

/* Call when the device was lost, all models have failed, and no call holds one: calls model_close()
 * for all. */
void repository_close(struct repository *repository);

/*
 * Loads the models that |options| names, into an empty repository. A bad file that was named itself
 * is an error (ST_CORRUPT, ST_NOT_FOUND); a bad file found in a folder is kept with its reason.
 * Files that are unloaded in |before|, which may be NULL, stay unloaded here.
 */
MUST_CHECK enum status repository_load(struct repository *repository, const struct options *options,
                                       struct repository *before, struct error *err);

/* Finds a model by name or alias; the highest version that can be called when |version| is 0, or
 * else the highest. Also a file that is only listed (MODEL_UNKNOWN), if it may have a method of
 * that name. The caller owns a reference to the model. ST_NOT_FOUND. Any thread. */
MUST_CHECK enum status repository_find(struct repository *repository, const char *name,
                                       uint32_t version, struct model **out_model,
                                       struct error *err);

/*
 * Returns the generation of |model| in which the sequence |key| is open, apart from |key|'s
 * program: |model| itself if it is open there or nowhere, else an older one. The caller owns a
 * reference. Any thread.
 */
struct model *repository_find_generation(struct repository *repository, struct model *model,
                                         struct rt_sequences *sequences,
                                         const struct rt_sequence_key *key);

/* Drops generations of models in which no sequence is open any more, or all if |sequences| is NULL.
 * The loop. */
void repository_forget_generations(struct repository *repository, struct rt_sequences *sequences);

/* Returns the index as it is now; the caller owns a reference, which keeps its models. Any
 * thread. */
struct repository_index *repository_ref_index(struct repository *repository);
void repository_unref_index(struct repository_index *index);

/* Models that have left the index: references that the caller has. */
struct repository_removed {
    struct model **models; /* owned */
    uint32_t count;
};

/*
 * Unloads files and only lists them, the file that was called longest ago first, until |bytes| of
 * --model-bytes-max are free. It chooses only files that may be listed and that nobody uses.
 * ST_EXHAUSTED with no change: so many bytes are not unused. The loop, while no update is under
 * way.
 */
MUST_CHECK enum status repository_evict(struct repository *repository,
                                        struct rt_sequences *sequences, uint64_t bytes,
                                        struct repository_removed *out_removed, struct error *err);

/*
 * Unloads files that nobody has needed since before |now_ns| and only lists them; they stay while
 * a call, an open sequence or a pipeline uses one of their models. |*out_next_ns|: when to look
 * again; RT_SCHED_NEVER: when models have come. ST_EXHAUSTED with no change. Likewise.
 */
MUST_CHECK enum status repository_unload_idle(struct repository *repository,
                                              struct rt_sequences *sequences, uint64_t now_ns,
                                              struct repository_removed *out_removed,
                                              uint64_t *out_next_ns, struct error *err);

/* Call before keep_begin(): adds the time of |model|, which is new, to that of its file. */
void repository_count_idle(struct model *model);

/* Drops the references. */
void repository_drop_removed(struct repository_removed *removed);

/* Calls model_fail() for each model, or for each model whose files changed on disk
 * (rt_program_verify_files()). The loop. */
void repository_fail(struct repository *repository, const struct error *why);
void repository_verify_files(struct repository *repository);

/* Models of |old| that are here, too, keep their counts here. The loop. */
void repository_keep_stats(struct repository *repository, struct repository *old);

/* Returns how many models the index has, and how many of them can be called. Constant methods, such
 * as get_max_seq_len, do not count: people take them for values of their program. */
uint32_t repository_count(struct repository *repository);
uint32_t repository_ready_count(struct repository *repository);

#endif
