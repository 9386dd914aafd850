/* SPDX-License-Identifier: MIT */
/*
 * How the index of a repository changes: a draft begins as a copy of it, models are added and
 * removed, and repository_draft_publish() puts the new index in place of the old one. One draft of
 * a repository at a time, on the thread that may change the index.
 */
#ifndef PTED_SERVER_MODEL_REPOSITORY_PRIV_H
#define PTED_SERVER_MODEL_REPOSITORY_PRIV_H

#include "server/model/repository.h"

#define REPOSITORY_DRAFT_MAGIC 0x64726674u

struct repository_draft {
    uint32_t magic;
    struct repository *repository; /* borrowed */
    const struct options *options; /* borrowed: the settings of models that are added */
    struct model **models;         /* owned; refs held */
    uint32_t count;
    size_t capacity;
};

MUST_CHECK enum status repository_draft_init(struct repository_draft *draft,
                                             struct repository *repository,
                                             const struct options *options, struct error *err);

/* Models that are not in the index are unloaded. */
void repository_draft_fini(struct repository_draft *draft);

/* Adds a new model, LOADING; the draft has its reference. ST_INVALID: no model can have that
 * name. */
MUST_CHECK enum status repository_draft_add(struct repository_draft *draft, struct origin *origin,
                                            struct span name, struct model **out_model,
                                            struct error *err);

/* Adds a new model of |origin|'s name, UNKNOWN; the draft has its reference. */
MUST_CHECK enum status repository_draft_list(struct repository_draft *draft, struct origin *origin,
                                             struct error *err);

/* Adds |program|'s methods as models, which take references and can be called if their method can.
 */
MUST_CHECK enum status repository_draft_add_program(struct repository_draft *draft,
                                                    struct origin *origin,
                                                    struct rt_program *program, struct error *err);

/* Drops |model|, which is in the draft. */
void repository_draft_remove(struct repository_draft *draft, const struct model *model);

/* Drops the models from the |count|th on. */
void repository_draft_cut(struct repository_draft *draft, uint32_t count);

/* Returns the |version| of |name|, or else the highest callable one, or else any; borrowed. NULL:
 * there is none. */
const struct model *repository_draft_find(const struct repository_draft *draft, const char *name,
                                          uint32_t version);

/* Returns a file that is only listed and may have the method |name|: "a.b" of the file "a";
 * borrowed. NULL: there is none. */
const struct model *repository_draft_find_listed(const struct repository_draft *draft,
                                                 const char *name, uint32_t version);

/* Takes |model|, which the index has, over. */
MUST_CHECK enum status repository_draft_keep(struct repository_draft *draft, struct model *model,
                                             struct error *err);

/* Brings the models into the order of an index. ST_INVALID: two have the same name and version. */
MUST_CHECK enum status repository_draft_sort(struct repository_draft *draft, struct error *err);

/* Returns the model of the draft, which has been sorted, with the name and version of |model|;
 * borrowed, or NULL. */
struct model *repository_draft_twin(const struct repository_draft *draft,
                                    const struct model *model);

/* Makes the draft the index, and empties it. Models that are in the index no more are UNLOADING.
 * ST_INVALID: two have the same name and version; ST_EXHAUSTED. */
MUST_CHECK enum status repository_draft_publish(struct repository_draft *draft, struct error *err);

/* Were the settings of the model the same with |options|? */
bool repository_has_same_params(const struct model *model, const struct options *options);

/* Returns what the file of |model| takes, as --model-bytes-max counts it: its weights as calls read
 * them, and the rest of its file. Weights that several files have count for each in part, and once
 * in the sum. 0: it is not loaded, or a pipeline. */
uint64_t repository_model_bytes(const struct model *model);

/* Does the same if no other file had these weights. */
uint64_t repository_model_bytes_alone(const struct model *model);

/* Is |name| the name of the model or of its origin? */
bool repository_is_meant(const struct model *model, struct span name);

/* ---- repository_load.c ----------------------------------------------------------------------- */

struct catalog_file;

/* Adds the models of the file. On error some of them may be in the draft. */
MUST_CHECK enum status repository_load_file(struct repository_draft *draft,
                                            const struct catalog_file *file, struct error *err);

/* Adds a model that stands for a file, or a pipeline, which cannot be served for the reason |why|.
 */
MUST_CHECK enum status repository_add_failed(struct repository_draft *draft,
                                             const struct catalog_file *file,
                                             const struct error *why, struct error *err);
MUST_CHECK enum status repository_add_failed_pipeline(struct repository_draft *draft,
                                                      const char *name, const struct error *why,
                                                      struct error *err);

/* Adds a model that stands for a file which is loaded when it is called: UNKNOWN. */
MUST_CHECK enum status repository_add_listed(struct repository_draft *draft,
                                             const struct catalog_file *file, struct error *err);

/* Adds a model that stands for a file or pipeline that was taken out of service; |path| is NULL for
 * a pipeline. */
MUST_CHECK enum status repository_add_unloaded(struct repository_draft *draft, const char *name,
                                               uint32_t version, const char *path,
                                               const struct origin_id *id, struct error *err);

/* Fails with ST_INVALID: an option names a model that is not in the draft. */
MUST_CHECK enum status repository_check_names(const struct repository_draft *draft,
                                              struct error *err);

/* ---- repository_list.c ----------------------------------------------------------------------- */

/* Reasons why a file is listed. */
#define REPOSITORY_LISTED_DISPLACED "it gave way to others, its next call loads it"
#define REPOSITORY_LISTED_IDLE "it was idle, its next call loads it"

/* Does no call hold the model, and is no sequence open in it? The loop. */
bool repository_is_unused(struct model *model, struct rt_sequences *sequences);

/* States that |model| has computed are of no use to the next generation. */
void repository_close_prefixes(const struct model *model, struct rt_sequences *sequences);

/*
 * Unloads the files whose origins are marked as leaving, takes the marks away, and lists the files
 * for the reason |why|, a constant. ST_EXHAUSTED with no change.
 */
MUST_CHECK enum status repository_list_again(struct repository *repository,
                                             struct rt_sequences *sequences, const char *why,
                                             struct repository_removed *out_removed,
                                             struct error *err);

/* ---- repository.c ---------------------------------------------------------------------------- */

/* Orders by name, then by version, highest first. */
int repository_compare(const struct model *a, const struct model *b);

/* Returns the model of |index| with the name and the version of |model|, borrowed, or NULL. */
struct model *repository_index_twin(const struct repository_index *index,
                                    const struct model *model);

/* Takes over |models|, sorted, and their references. */
MUST_CHECK enum status repository_index_new(struct model **models, uint32_t count,
                                            struct repository_index **out_index, struct error *err);

/* Puts |index| in place and takes over its reference. */
void repository_replace_index(struct repository *repository, struct repository_index *index);

#endif
