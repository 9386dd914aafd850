/* SPDX-License-Identifier: MIT */
/*
 * Things that a method needs beside its program: the card names them, or they lie in files beside
 * the program. The daemon opens them when it loads a model; `pte card --check` opens them to see
 * whether they fit. |path| is the program's, |tokenizer| a file or folder that somebody named, or
 * NULL. Blocks; any thread.
 */
#ifndef PTED_SERVER_MODEL_INTAKE_INTAKE_H
#define PTED_SERVER_MODEL_INTAKE_INTAKE_H

#include <stdbool.h>

#include "base/status.h"
#include "runtime/call/gains.h"

struct card;
struct embedder;
struct exported;
struct generator;
struct rt_carries;
struct rt_composition;
struct rt_method;
struct transcriber;

/* Returns the method that a program may get when it is loaded, beside those of its file: see
 * server/language/form.h. */
const struct rt_composition *intake_composition(void);

/*
 * Reads what the export.json beside the program at |path| says of its caches
 * (server/language/exported.h). NULL: nothing. The errors are those of a file that is left out, and
 * ST_EXHAUSTED.
 */
MUST_CHECK enum status intake_read_exported(const char *path, struct exported **out,
                                            struct error *err);
const struct rt_carries *intake_carries(const struct exported *exported); /* NULL of NULL */
void intake_free_exported(struct exported *exported);                     /* NULL is fine */

/* Returns "a language model", "a speech model" or "an encoder of texts", if the method has the
 * inputs and results of one, with or without a tokenizer; else NULL. */
const char *intake_kind(const struct rt_method *method);

/* rt_gains_find() for what the method is. */
void intake_find_gains(struct rt_method *method, struct rt_gains *out);

/* Is there a tokenizer beside the program at |path|? */
bool intake_has_tokenizer(const char *path);

/* The ways in which a method reads or writes texts. A language model is no encoder of texts. */
struct intake_language {
    struct transcriber *transcriber; /* owned; of a speech model; else NULL, as the others */
    struct generator *generator;
    struct embedder *embedder;
};

/* |card| may be NULL; after card_apply(). A tokenizer that does not fit is an error, because
 * answers would be nonsense. After an error nothing is open. */
MUST_CHECK enum status intake_open_language(struct rt_method *method, const struct card *card,
                                            const char *path, const char *tokenizer,
                                            struct intake_language *out, struct error *err);
void intake_close_language(struct intake_language *language);

/* Does everything open with which the daemon would serve the method? Nothing stays open. A method
 * that cannot be called needs nothing. */
MUST_CHECK enum status intake_verify(struct rt_method *method, const struct card *card,
                                     const char *path, const char *tokenizer, struct error *err);

#endif
