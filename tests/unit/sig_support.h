/* SPDX-License-Identifier: MIT */
/* Functions for tests of signatures: a fixture, the vectors, numbers from a seed, and damage. */
#ifndef PTED_TESTS_UNIT_SIG_SUPPORT_H
#define PTED_TESTS_UNIT_SIG_SUPPORT_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/rawsig.h"
#include "protocol/sip.h"

/* The number of random structures and of damaged texts in make check. */
#define RANDOM_ROUNDS 20000

#define VECTOR_BYTES_MAX 65536

#define SIG_TEXT_BYTES_MAX ((size_t)4 << 20)

struct sig_fixture {
    struct arena arena;
    struct buf out;
    struct rawsig raw; /* the result of parsing, in the type of the test */
    struct sip sip;
    struct error err;
};

int sig_set_up(void **state);
int sig_tear_down(void **state);

struct vector {
    const char *id;
    const cJSON *json; /* all of it */
    bool is_valid;
    struct span text;      /* in a block of exactly its size; not for kind pytree */
    struct span canonical; /* length 0 if the vector has none */
};

typedef void vector_check_f(const struct vector *vector, void *user);

/* Calls |check| for every vector of |kind|. Fails if there is none. */
void vectors_check(const char *kind, vector_check_f *check, void *user);

/* Checks that the vector is accepted or refused as it demands. */
void vector_check_status(const struct vector *vector, enum status status, const struct error *err);

const char *vector_text(const struct vector *vector, const char *name);

/* The same numbers in every run. */
uint32_t random_below(uint32_t limit);

/* A copy in a block of exactly its size, so that AddressSanitizer finds a read beyond it. */
struct span exact_copy(struct span text);
void exact_free(struct span text);

/* A structure of |levels| sequences inside each other around r0, and no results. */
void add_nested_sip(struct buf *out, int levels);

/* Changes, cuts, repeats or inserts a few bytes of |text|. */
void damage(struct buf *text);

#endif
