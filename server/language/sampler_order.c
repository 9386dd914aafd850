/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/sampler_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static bool is_above(const struct sampler_entry *a, const struct sampler_entry *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static void sift_down(struct sampler_entry *entries, uint32_t count, uint32_t at)
{
    struct sampler_entry moved = entries[at];
    while (true) {
        uint32_t child = 2 * at + 1;
        if (child >= count) {
            break;
        }
        child += child + 1 < count && is_above(&entries[child + 1], &entries[child]);
        if (!is_above(&entries[child], &moved)) {
            break;
        }
        entries[at] = entries[child];
        at = child;
    }
    entries[at] = moved;
}

static void make_heap(struct sampler_entry *entries, uint32_t count)
{
    for (uint32_t at = count / 2; at-- > 0;) {
        sift_down(entries, count, at);
    }
}

void sampler_order(struct sampler *sampler, uint32_t count)
{
    make_heap(sampler->entries, count);
    sampler->popped = 0;
}

bool sampler_has_entries(struct sampler *sampler)
{
    if (!sampler->entries) {
        sampler->entries = malloc(sampler->vocab * sizeof(sampler->entries[0]));
    }
    return sampler->entries != NULL;
}

uint32_t sampler_collect(struct sampler *sampler, const float *logits, float least)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < sampler->vocab; id++) {
        sampler->entries[count] = (struct sampler_entry){logits[id], id};
        count += logits[id] >= least && logits[id] > -INFINITY; /* no branch: none is foreseen */
    }
    return count;
}

uint32_t sampler_gather(struct sampler *sampler, const float *logits, float least)
{
    uint32_t count = sampler_collect(sampler, logits, least);
    sampler_order(sampler, count);
    return count;
}

/* The least one goes to the root: |entries| are a heap of that kind, except the root. */
static void sink_least(struct sampler_entry *entries, uint32_t count)
{
    struct sampler_entry moved = entries[0];
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && is_above(&entries[child], &entries[child + 1]);
        if (!is_above(&moved, &entries[child])) {
            break;
        }
        entries[at] = entries[child];
        at = child;
    }
    entries[at] = moved;
}

uint32_t sampler_gather_most(struct sampler *sampler, const float *logits, uint32_t most)
{
    struct sampler_entry *entries = sampler->entries;
    must(most > 0 && most <= sampler->vocab);
    for (uint32_t i = 0; i < most; i++) {
        entries[i] = (struct sampler_entry){-INFINITY, UINT32_MAX};
    }
    for (uint32_t id = 0; id < sampler->vocab; id++) {
        if (logits[id] > entries[0].logit) {
            entries[0] = (struct sampler_entry){logits[id], id};
            sink_least(entries, most);
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < most; i++) {
        if (entries[i].id != UINT32_MAX) {
            entries[count++] = entries[i];
        }
    }
    sampler_order(sampler, count);
    return count;
}

/* ---- all of them in order -------------------------------------------------------------------- */

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

/* Grows as is_above() has it. */
static uint64_t key_of(const struct sampler_entry *entry)
{
    float logit = entry->logit + 0.0F; /* there is one zero */
    uint32_t bits;
    memcpy(&bits, &logit, sizeof(bits));
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~entry->id;
}

/* From |in| to |out|, by one digit of the keys; equal ones stay in their order. */
static void sort_digit(const struct sampler_entry *in, struct sampler_entry *out, uint32_t count,
                       int shift)
{
    uint32_t places[DIGITS] = {0}, place = 0;
    for (uint32_t i = 0; i < count; i++) {
        places[key_of(&in[i]) >> shift & (DIGITS - 1)]++;
    }
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        uint32_t here = places[digit];
        places[digit] = place;
        place += here;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[places[key_of(&in[i]) >> shift & (DIGITS - 1)]++] = in[i];
    }
}

/* The smallest comes first. False: there is no memory. */
static bool sort(struct sampler_entry *entries, uint32_t count)
{
    static const int shifts[] = {0, DIGIT_BITS, 32, 32 + DIGIT_BITS, 32 + 2 * DIGIT_BITS};
    struct sampler_entry *spare = malloc(count * sizeof(*spare)), *from = entries, *to = spare;
    if (!spare) {
        return false;
    }
    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        sort_digit(from, to, count, shifts[i]);
        struct sampler_entry *next = from;
        from = to;
        to = next;
    }
    memcpy(entries, spare, count * sizeof(*entries)); /* the number of digits is odd */
    free(spare);
    return true;
}

/* Moves the largest of |count| entries to the place behind the others. */
static struct sampler_entry pop(struct sampler_entry *entries, uint32_t count)
{
    struct sampler_entry top = entries[0];
    entries[0] = entries[count - 1];
    entries[count - 1] = top;
    sift_down(entries, count - 1, 0);
    return top;
}

/* A choice that needs more entries than this needs thousands: then it is faster to sort all. */
#define POPS_MAX 1024

struct sampler_entry sampler_take(struct sampler *sampler, uint32_t count, uint32_t index)
{
    must(index < count && index <= sampler->popped);
    if (index == POPS_MAX && index == sampler->popped && sort(sampler->entries, count)) {
        sampler->popped = count;
    }
    if (index == sampler->popped) {
        sampler->popped++;
        return pop(sampler->entries, count - index);
    }
    return sampler->entries[count - 1 - index];
}
