/* SPDX-License-Identifier: MIT */
/*
 * Files that lie beside a program, or beside the tokenizer that was said for it: FILE in the same
 * folder, or NAME.FILE for a program NAME.pte, which counts before it. Blocks; any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_SIDECAR_H
#define PTED_SERVER_LANGUAGE_SIDECAR_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

struct document;
struct cJSON;
struct words;

struct sidecars {
    char folder[PATH_MAX];    /* with a slash at its end; "": the present one */
    char stem[PATH_MAX];      /* the name of the program without its ending; "": none */
    char tokenizer[PATH_MAX]; /* the path of the tokenizer; "": there is none */
};

/*
 * |program| is the path of the program, or NULL; |tokenizer| the file or folder of the tokenizer
 * that was said for it, or NULL: then it is looked for. ST_TOO_LARGE: a path is too long.
 */
MUST_CHECK enum status sidecar_init(struct sidecars *sidecars, const char *program,
                                    const char *tokenizer, struct error *err);

static inline bool sidecar_has_tokenizer(const struct sidecars *sidecars)
{
    return sidecars->tokenizer[0] != '\0';
}

/* Returns the name of the tokenizer's file. Texts of errors leave out its folder: clients see them,
 * and do not need to know where our files are. */
const char *sidecar_tokenizer_name(const struct sidecars *sidecars);

/* Loads the words of the tokenizer, which is there. */
MUST_CHECK enum status sidecar_load_words(const struct sidecars *sidecars, struct words **out,
                                          struct error *err);

/* Finds the path of |name|, which need not exist, at |out|. */
void sidecar_find(const struct sidecars *sidecars, const char *name, char out[PATH_MAX]);

/* Takes a member of the object that a JSON file has. */
typedef enum status sidecar_member_f(void *user, const struct document *document,
                                     const struct cJSON *member, struct error *err);

/* Calls |fn| for each member of generation_config.json, which need not exist. The text of an error
 * begins with the name of the file. */
MUST_CHECK enum status sidecar_read_generation_config(const struct sidecars *sidecars,
                                                      sidecar_member_f *fn, void *user,
                                                      struct error *err);

#endif
