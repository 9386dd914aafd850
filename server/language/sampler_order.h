/* SPDX-License-Identifier: MIT */
/* The largest logits of a sampler, one by one: inside of sampler.c. */
#ifndef PTED_SERVER_LANGUAGE_SAMPLER_ORDER_H
#define PTED_SERVER_LANGUAGE_SAMPLER_ORDER_H

#include "server/language/sampler.h"

struct sampler_entry {
    float logit;
    uint32_t id;
};

/* Gives the sampler room for all entries. False: there is no memory. */
bool sampler_has_entries(struct sampler *sampler);

/* Makes entries of the tokens whose logits are at least |least|, in no order; their number. */
uint32_t sampler_collect(struct sampler *sampler, const float *logits, float least);

/* Orders the entries so that the first |count| may be taken. */
void sampler_order(struct sampler *sampler, uint32_t count);

/* Both: such tokens, or the |most| with the largest logits. Each token is compared with the least
 * one kept so far. */
uint32_t sampler_gather(struct sampler *sampler, const float *logits, float least);
uint32_t sampler_gather_most(struct sampler *sampler, const float *logits, uint32_t most);

/* Returns the entry that has |index| larger ones, of |count|; asked for one after the other. */
struct sampler_entry sampler_take(struct sampler *sampler, uint32_t count, uint32_t index);

#endif
