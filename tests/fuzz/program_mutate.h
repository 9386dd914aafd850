/* SPDX-License-Identifier: MIT */
/* Copies of a valid program with a few of its sites exchanged, according to their meaning. */
#ifndef PTED_TESTS_PROGRAM_MUTATE_H
#define PTED_TESTS_PROGRAM_MUTATE_H

#include "tests/fuzz/program_sites.h"

struct program_copy {
    uint8_t *bytes;
    size_t len, capacity;
    uint32_t room, room_end; /* the remaining room for new strings */
    uint64_t random;
};

/* Fills |copy|, whose memory is reused. The same |seed| gives the same bytes. */
void program_mutate(struct program_copy *copy, const struct program_file *file, uint64_t seed);
void program_copy_fini(struct program_copy *copy);

uint64_t fuzz_random(uint64_t *state);
uint32_t fuzz_below(uint64_t *state, uint64_t limit);

#endif
