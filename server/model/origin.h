/* SPDX-License-Identifier: MIT */
/*
 * The origin of models: a file, each method of which is a model, or a pipeline. Counted: its models
 * hold it. Constant once its models are published; any thread may read it then.
 */
#ifndef PTED_SERVER_MODEL_ORIGIN_H
#define PTED_SERVER_MODEL_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/refs.h"
#include "base/status.h"
#include "server/model/keep.h"

struct card;

#define ORIGIN_MAGIC 0x6f726967u

/* What stat() says of a file, and whether the daemon may read it. Two files, or two states of one
 * file, differ in it. All zero: no file. */
struct origin_file {
    uint64_t device, inode, bytes, modified_ns;
    bool is_readable;
};

/* The same of a program and its card. */
struct origin_id {
    struct origin_file program, card;
    uint64_t beside;   /* a hash of the same of the files that a card is derived from */
    uint64_t exported; /* likewise of the file that says what goes from call to call */
    uint64_t words;    /* likewise of its tokenizer and what is read with that */
    uint64_t data;     /* likewise of the files of weights that were named, or of all beside it */
};

struct origin {
    uint32_t magic;
    struct refs refs;
    struct arena arena;    /* memory of the texts */
    const char *name;      /* given to the file or the pipeline */
    const char *path;      /* of the file; NULL: a pipeline */
    uint32_t version;      /* of its models */
    uint64_t load_ns;      /* time that the file took to load */
    const char *constants; /* JSON of the values of the program's constant methods, or NULL */
    struct origin_id id;   /* of the files, before it was loaded */
    struct card *card;     /* owned; NULL: the program has no card */
    /* the file with the names of classes, as the options name it; or NULL */
    const char *labels_path;
    const char *tokenizer_path; /* as it was said; or NULL */
    const struct span *labels;  /* of the classes, in the arena */
    uint32_t label_count;
    bool outranks_members;  /* the labels were said by the command line or the environment */
    uint64_t bytes;         /* of the file and its data files; once it has been loaded, what it
                               takes alone, as --model-bytes-max counts it */
    bool is_on_demand;      /* it may be unloaded while nobody calls it */
    bool is_pinned;         /* a pipeline calls it; set by updates, read between them */
    bool is_unloaded;       /* taken out of service by its name: its only model has that reason */
    const char *why_listed; /* why it is not loaded any more, a constant; NULL: it never was */
    /* ---- the loop's, once it is published: see repository_unload_idle() ---- */
    struct keep keep; /* on the monotone clock */
    bool is_leaving;
    /* ---- of a newer file at |path| that did not load, while the models of this one go on; the
     *      loop's, but an update reads them (server/model/update.h) ---- */
    struct origin_id refused; /* all zero: there is none */
    struct error refusal;     /* why */
};

/* Is it a file in |folder|, or in a folder of it, as the catalog names such files? */
bool origin_is_in(const struct origin *origin, const char *folder);

/* Reads what stat() says of the file at |path|. Returns 0 or an errno; then |out_file| is all
 * zero. */
int origin_file_read(const char *path, struct origin_file *out_file);

/* Returns a hash of the path and of what stat() says of its file. 0: there is none. */
uint64_t origin_hash_at(const char *path);

/* Returns the hash of the tokenizer of |program|, and of the files that are read with it. |said|:
 * the tokenizer that was said for it, or NULL. 0: there is none. */
uint64_t origin_hash_words(const char *program, const char *said);

/* Returns the hash of the files beside the program at |path| that a card is derived from. */
uint64_t origin_hash_beside(const char *path);

/* Returns the hash of export.json beside the program at |path| (server/language/exported.h). */
uint64_t origin_hash_exported(const char *path);

/* Returns the hash of the files of weights in |folder|. */
uint64_t origin_hash_data(const char *folder);

bool origin_id_equal(const struct origin_id *a, const struct origin_id *b);

/* Does the same, but for files of tokenizers and of weights. */
bool origin_id_equal_alone(const struct origin_id *a, const struct origin_id *b);

/* |path| is NULL for a pipeline. The caller owns a reference. Any thread. */
MUST_CHECK enum status origin_new(struct span name, uint32_t version, const char *path,
                                  struct origin **out_origin, struct error *err);

struct origin *origin_ref(struct origin *origin);
void origin_unref(struct origin *origin); /* NULL is fine */

#endif
