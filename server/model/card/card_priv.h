/* SPDX-License-Identifier: MIT */
/* Shared by the files that read and apply a card. */
#ifndef PTED_SERVER_MODEL_CARD_CARD_PRIV_H
#define PTED_SERVER_MODEL_CARD_CARD_PRIV_H

#include "server/model/card/card.h"

/* Reads |value|, the member of an input that says it is |kind|: a document |in| at |path|. */
MUST_CHECK enum status card_read_media(struct card *card, const struct document *in,
                                       const char *path, const struct cJSON *value,
                                       const struct card_medium *kind, struct card_media *out,
                                       struct error *err);

/* Where a member of a medium is read from. */
struct card_source {
    struct card *card;
    const struct document *in;
    const char *path;
};

/* The kinds of media: a file has each (card_media.c lists them). */
extern const struct card_medium card_medium_image, card_medium_sound, card_medium_text;

/* Reads the index of the word |value| among |names|, which |expected| lists; a name may be NULL. */
MUST_CHECK enum status card_read_word(const struct card_source *s, const struct cJSON *value,
                                      const char *const *names, unsigned count,
                                      const char *expected, unsigned *out, struct error *err);

/* For a medium |io| of an input |is| that takes none: ST_INVALID. */
MUST_CHECK enum status card_refuse_input(const struct card_io *io, const struct rt_io *is,
                                         const char *expected, struct error *err);

/* Reads |value|, the member "generation" of a method, of the document |in|. What |out| says already
 * stays. */
MUST_CHECK enum status card_read_generation(struct card *card, const struct document *in,
                                            const struct cJSON *value, struct card_generation *out,
                                            struct error *err);

/* |path| as a path beside the document at |document_path|; in the arena. NULL: no memory. */
const char *card_path_beside(struct card *card, const char *document_path, const char *path);

/* While the program is loaded: input |index|, which |io| is about, takes from now on what its
 * medium is made into; pixels, of pictures. */
MUST_CHECK enum status card_adapt_media(struct rt_method *method, const struct card_io *io,
                                        uint32_t index, struct error *err);

/* Does the same for pictures. */
MUST_CHECK enum status card_adapt_pixels(struct rt_method *method, const struct card_io *io,
                                         uint32_t index, struct error *err);

/* Compares what |io| says of media with input |io->index|, and settles what it leaves open. */
MUST_CHECK enum status card_apply_media(const struct rt_method *method, struct card_io *io,
                                        struct error *err);

/* Takes the members of |card->derived| that the card does not have. */
MUST_CHECK enum status card_read_derived(struct card *card, struct error *err);

/* Makes |card->derived| of what lies beside the program, for |method|, its default method. */
MUST_CHECK enum status card_derive(struct card *card, const struct rt_method *method,
                                   struct error *err);

/* Finds the index of the input or output that |io| is about. */
MUST_CHECK enum status card_find_index(const struct rt_method *method, enum rt_side side,
                                       struct card_io *io, struct error *err);

#endif
