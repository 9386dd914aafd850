/* SPDX-License-Identifier: MIT */
/* What the tests of signatures share: the vectors, numbers from a fixed seed, and damage. */
#ifndef PTED_TESTS_UNIT_SIG_SUPPORT_H
#define PTED_TESTS_UNIT_SIG_SUPPORT_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/bytes.h"

/* Random structures and damaged texts in a run of make check; a million of each is a good night. */
#define RANDOM_ROUNDS 20000

#define VECTOR_BYTES_MAX 65536

struct vector {
    const char *id;
    const cJSON *json; /* all of it */
    bool is_valid;
    struct span text;      /* in a block of exactly its size; not for kind pytree */
    struct span canonical; /* as long as 0 where the vector does not say */
};

typedef void vector_check_f(const struct vector *vector);

/* Shows every vector of |kind| to |check|; there are some. */
void vectors_check(const char *kind, vector_check_f *check);

const char *vector_text(const struct vector *vector, const char *name);

/* The same numbers in every run. */
uint32_t random_below(uint32_t limit);

/* A copy in a block of exactly its size, so that AddressSanitizer sees a read beyond it. */
struct span exact_copy(struct span text);
void exact_free(struct span text);

/* A structure of |levels| sequences inside each other around r0, and no results. */
void add_nested_sip(struct buf *out, int levels);

/* Changes, cuts, repeats or inserts a few bytes of |text|. */
void damage(struct buf *text);

#endif
