/* SPDX-License-Identifier: MIT */
/*
 * Files and texts as inputs of a method of a file, and its results as its card has them for people:
 * the same steps as in the daemon (server/model/intake/medium.h, server/model/answer/answer.h). One
 * thread.
 */
#ifndef PTED_SERVER_CLI_MEDIA_H
#define PTED_SERVER_CLI_MEDIA_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/shape.h"
#include "base/status.h"
#include "server/model/card/card.h"
#include "server/model/intake/medium.h"

struct card_labels;
struct cli_call;

/* The command line is a program of the library, which has no cards: they put steps in front of a
 * program while it is loaded, and make inputs of files. So this is where the commands reach the
 * runtime, by lib/cards.h. */
struct cli_media {
    const struct card_medium **kinds; /* owned; by input; NULL: it takes tensors alone */
    struct medium **items;            /* owned: refs held; likewise; NULL: not opened yet */
    const struct card_io *picture;    /* the input whose pictures answers are about, or NULL */
    struct arena arena;               /* has the places */
    struct image_place *places;
    uint32_t place_count; /* of the files that were read last */
};

/* Opens the media that the card declares for the inputs of call->method. Needs no library. Can be
 * closed in any case. */
MUST_CHECK enum status cli_media_open(struct cli_call *call, struct error *err);
void cli_media_close(struct cli_call *call);

/* For struct cli_input_ops, of a call that is being filled. */
MUST_CHECK enum status cli_media_set(struct cli_call *call, uint32_t index,
                                     const char *const *items, uint32_t count,
                                     struct shape *out_shape, struct error *err);

/* Returns how the card says that people want to read result |index|; NULL: it does not say. */
const struct answer_form *cli_media_answer(const struct cli_call *call, uint32_t index);

/* Returns the names of the classes of result |index|; NULL: the card has none. */
const struct card_labels *cli_media_labels(const struct cli_call *call, uint32_t index);

/* Prints result |index| to standard output, a line for each row, of a map without its PNG. */
MUST_CHECK enum status cli_media_print(struct cli_call *call, uint32_t index, struct error *err);

/* Writes it to FOLDER, a file for each row: NAME.0.json, .png or .txt. */
MUST_CHECK enum status cli_media_write(struct cli_call *call, uint32_t index, const char *folder,
                                       struct error *err);

#endif
