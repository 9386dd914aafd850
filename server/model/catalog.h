/* SPDX-License-Identifier: MIT */
/*
 * The model files that the options name, one by one or in the folders of --models. Listing reads
 * folders and asks the system about files, but opens no file. Any thread.
 */
#ifndef PTED_SERVER_MODEL_CATALOG_H
#define PTED_SERVER_MODEL_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "server/model/origin.h"
#include "server/process/options.h"

#define CATALOG_MAGIC 0x63617461u

struct catalog_file {
    const char *name; /* a valid name of a model */
    const char *path;
    const char *card_path; /* NULL: the model has none */
    uint32_t version;
    bool is_named;       /* given by itself, not found in a folder */
    bool is_renamed;     /* found in a folder, where its name cannot be a model's */
    int error_number;    /* why the system knows nothing of the file; 0: it is there */
    struct origin_id id; /* all zero with |error_number| */
    uint64_t bytes; /* of the file, of the data files given for it, and of NAME.ptd beside it */
};

struct catalog {
    uint32_t magic;
    struct arena arena;         /* memory of the texts */
    struct catalog_file *files; /* owned; by name, and of a name the highest version first */
    uint32_t count;
    size_t capacity;
};

/* What to do about folders without models. */
struct catalog_folders {
    /* May |folder|, which is not there, be away, as if it were empty? */
    bool (*may_be_away)(void *owner, const char *folder);
    void *owner;
    bool are_told; /* in the log; not if a call of a client is the cause, for that may be often */
};

/*
 * Lists the files. A file in a folder whose name cannot be a model's gets one like it, and a line
 * in the log. It is left out, with a warning, if another file has that name. ST_INVALID: a name
 * given with a file is none; ST_NOT_FOUND and others: a folder cannot be read. catalog_fini() in
 * each case.
 */
MUST_CHECK enum status catalog_list(struct catalog *catalog, const struct options *options,
                                    const struct catalog_folders *folders, struct error *err);
void catalog_fini(struct catalog *catalog);

/* Finds the file that |path|, which may be a URL, stands for: |size| bytes at |out|. ST_INVALID:
 * the URL is not good, or the path is too long. */
MUST_CHECK enum status catalog_place(const struct options *options, const char *path, char *out,
                                     size_t size, struct error *err);

struct card;

/* Returns the parameters for the file that is served as |name|, with its card, which may be
 * NULL. */
struct params catalog_params(const struct options *options, const struct card *card,
                             struct span name);

#endif
