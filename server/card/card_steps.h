/* SPDX-License-Identifier: MIT */
/* The members of a card that say what happens behind an output: "steps". */
#ifndef PTED_SERVER_CARD_CARD_STEPS_H
#define PTED_SERVER_CARD_CARD_STEPS_H

#include "server/card/card.h"

/* Reads |value|, a list of steps, which stands in the document |in| at |path|. */
MUST_CHECK enum status card_read_steps(struct card *card, const struct document *in,
                                       const char *path, const struct cJSON *value,
                                       struct card_io *io, struct error *err);

#endif
