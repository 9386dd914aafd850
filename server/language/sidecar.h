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

struct sidecars {
    char folder[PATH_MAX]; /* with a slash at its end; "": the present one */
    char stem[PATH_MAX];   /* the name of the program without its ending; "": none */
};

/* |program| is the path of the program, or NULL; |tokenizer| a file or a folder, or NULL. False: a
 * path is too long. */
bool sidecar_init(struct sidecars *sidecars, const char *program, const char *tokenizer);

/* The path of |name|, which need not exist, at |out|. */
void sidecar_find(const struct sidecars *sidecars, const char *name, char out[PATH_MAX]);

/* Where the tokenizer is: |said|, unless that is NULL. False: there is none. */
bool sidecar_find_tokenizer(const struct sidecars *sidecars, const char *said, char out[PATH_MAX]);

/* Takes the folder of |path| off the beginning of the text in |err|: clients, who see the text,
 * need not know where our files are. A missing file is called the tokenizer. */
enum status sidecar_forget_folder(const char *path, struct error *err);

#endif
