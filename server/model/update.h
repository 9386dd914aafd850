/* SPDX-License-Identifier: MIT */
/*
 * A change of a repository: its first models, files that have come, changed or gone, one name that
 * is loaded again or unloaded. A change has two halves. update_prepare() takes time: it lists the
 * files, loads new ones beside the models that are served, and makes pipelines with changed steps
 * anew. update_publish() puts the result in place at once. If the first half fails, nothing has
 * changed.
 *
 * A file that loads takes the place of the file that was served under its name and version: a new
 * generation. Calls that hold a model of the old generation go on with it, and so do sequences that
 * are open there (repository_find_generation()).
 *
 * One update of a repository at a time.
 */
#ifndef PTED_SERVER_MODEL_UPDATE_H
#define PTED_SERVER_MODEL_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/model/catalog.h"
#include "server/model/repository_priv.h"

struct rt_sequences;

#define UPDATE_MAGIC 0x75706474u

enum update_kind {
    UPDATE_START, /* everything, into an empty repository; a named file that is bad is an error */
    /* files that differ from the last time; if one is bad, the old one stays in its place */
    UPDATE_SCAN,
    UPDATE_LOAD,   /* |name|, whether its file has changed or not; a bad file is an error */
    UPDATE_NEED,   /* |name|, if it is only listed, because it is called */
    UPDATE_UNLOAD, /* |name|, which stays out of service until it is loaded by its name */
};

/* A file that did not load while the models of |origin|, the one before it, go on. */
struct update_refusal {
    struct origin *origin; /* shared: ref held */
    struct origin_id id;   /* all zero: there is no such file any more */
    struct error why;
};

struct update {
    uint32_t magic;
    /* ---- what is wanted; set by the caller ---- */
    enum update_kind kind;
    char name[MODEL_NAME_MAX + 1]; /* of a file, a pipeline or a model */
    bool with_dependents;          /* pipelines may lose a step by it; otherwise that is an error */
    bool retries_failed;           /* UPDATE_SCAN: files that did not load are tried again */
    struct repository *repository; /* borrowed */
    const struct options *options; /* borrowed */
    struct repository *before;     /* UPDATE_START: where names stay unloaded; NULL: nowhere */
    /* ---- the result ---- */
    struct repository_draft draft;
    struct repository_index *old; /* ref held */
    struct update_refusal *refusals;
    uint32_t refusal_count;
    uint64_t short_bytes; /* with ST_EXHAUSTED: so much --model-bytes-max lacks; repository_evict()
                             can make room. 0: it lacks nothing */
    uint32_t loaded_count, kept_count, gone_count; /* files */
    uint32_t failed_count;  /* files that did not load: the models of before go on, or the file is
                               listed with the reason */
    struct model **retired; /* owned; refs held: models of |old| that are not in the draft */
    uint32_t retired_count;
};

/*
 * Makes the next index. Any thread. ST_NOT_FOUND: nothing has |name|; ST_INVALID: a pipeline would
 * lose a step; ST_EXHAUSTED: see |short_bytes|; other errors come from a file. update_fini() in
 * each case.
 */
MUST_CHECK enum status update_prepare(struct update *update, struct error *err);

/*
 * Runs on the loop, or a thread whose repository nobody else has yet. Models of the new generation
 * go on with the counts of the old one. ST_INVALID: two models have one name and version;
 * ST_EXHAUSTED.
 */
MUST_CHECK enum status update_publish(struct update *update, struct rt_sequences *sequences,
                                      struct error *err);

/* Part of update_prepare(): gets the files of URLs, as far as this update asks for them; it may
 * take long. The log tells of it. Fails if a start or a load by name cannot do without. */
MUST_CHECK enum status update_fetch(const struct update *update, struct error *err);

void update_fini(struct update *update);

#endif
