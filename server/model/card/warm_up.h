/* SPDX-License-Identifier: MIT */
/*
 * The calls that a card wants to be made before a model is called by others: they plan the shapes
 * that clients are going to use, and show that the model computes. Blocks; any thread.
 */
#ifndef PTED_SERVER_MODEL_CARD_WARM_UP_H
#define PTED_SERVER_MODEL_CARD_WARM_UP_H

#include "base/status.h"
#include "server/model/card/card.h"

struct hal_device;

/* Makes the calls of |program|'s methods, in the order of the card, each in memory of its own.
 * Methods that cannot be called are left out. The error says which call it was. Before
 * card_settle(). */
MUST_CHECK enum status card_warm_up(const struct card *card, struct rt_program *program,
                                    struct hal_device *device, struct error *err);

#endif
