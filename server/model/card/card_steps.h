/* SPDX-License-Identifier: MIT */
/* The members of a card that say what happens behind an output: "steps" and "answer". */
#ifndef PTED_SERVER_MODEL_CARD_CARD_STEPS_H
#define PTED_SERVER_MODEL_CARD_CARD_STEPS_H

#include "server/model/card/card.h"

/* Reads |value|, a list of steps, which stands in the document |in| at |path|. */
MUST_CHECK enum status card_read_steps(struct card *card, const struct document *in,
                                       const char *path, const struct cJSON *value,
                                       struct card_io *io, struct error *err);

/* Does the same for "answer". */
MUST_CHECK enum status card_read_answer(struct card *card, const struct document *in,
                                        const char *path, const struct cJSON *value,
                                        struct card_io *io, struct error *err);

/* While |method| is loaded, and |io->index| is known: the steps that the answer needs. */
MUST_CHECK enum status card_adapt_answer(struct rt_method *method, struct card_io *io,
                                         struct error *err);

/* Returns the number of labels that result |index| needs by its entry |io|, which may be NULL; 0:
 * it varies. */
uint64_t card_label_count(const struct rt_method *method, uint32_t index, const struct card_io *io);

/* Compares the answer with the results of |method|, whose names and labels are known. */
MUST_CHECK enum status card_apply_answer(struct card *card, const struct rt_method *method,
                                         struct card_io *io, struct error *err);

#endif
