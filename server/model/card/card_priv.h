/* SPDX-License-Identifier: MIT */
/* Shared by the files that read and apply a card. */
#ifndef PTED_SERVER_MODEL_CARD_CARD_PRIV_H
#define PTED_SERVER_MODEL_CARD_CARD_PRIV_H

#include "server/model/card/card.h"

/* Reads |value|, the member of an input that says it is |kind|: a document |in| at |path|. */
MUST_CHECK enum status card_read_media(struct card *card, const struct document *in,
                                       const char *path, const struct cJSON *value,
                                       enum medium_kind kind, struct card_media *out,
                                       struct error *err);

/* Reads |value|, the member "generation" of a method, of the document |in|. */
MUST_CHECK enum status card_read_generation(struct card *card, const struct document *in,
                                            const struct cJSON *value, struct card_generation *out,
                                            struct error *err);

/* |path| as a path beside the document at |document_path|; in the arena. NULL: no memory. */
const char *card_path_beside(struct card *card, const char *document_path, const char *path);

/* While the program is loaded: input |index|, which |io| is about, takes pixels from now on, if it
 * is an image. */
MUST_CHECK enum status card_adapt_media(struct rt_method *method, const struct card_io *io,
                                        uint32_t index, struct error *err);

/* Compares what |io| says of media with input |io->index|, and settles what it leaves open. */
MUST_CHECK enum status card_apply_media(const struct rt_method *method, struct card_io *io,
                                        struct error *err);

/* Takes the members of |card->derived| that the card does not have. */
MUST_CHECK enum status card_read_derived(struct card *card, struct error *err);

/* Makes |card->derived| of what lies beside the program, for |method|, its default method. */
MUST_CHECK enum status card_derive(struct card *card, const struct rt_method *method,
                                   struct error *err);

/* The index of the input or output that |io| is about. */
MUST_CHECK enum status card_find_index(const struct rt_method *method, enum rt_side side,
                                       struct card_io *io, struct error *err);

#endif
