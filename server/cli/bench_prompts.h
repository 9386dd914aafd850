/* SPDX-License-Identifier: MIT */
/*
 * The requests of a bench of a language model: completions with prompts of random ids, or of a
 * file, and answers of given lengths.
 */
#ifndef PTED_SERVER_CLI_BENCH_PROMPTS_H
#define PTED_SERVER_CLI_BENCH_PROMPTS_H

#include <stdint.h>

#include "base/status.h"
#include "server/cli/bench_body.h"

#define BENCH_LENGTHS_MAX 16
#define BENCH_TOKENS_MAX 131072

/* Each length is drawn from one of the ranges, which have equal shares. */
struct bench_lengths {
    uint32_t count; /* 0: not given */
    struct bench_range {
        uint32_t least, most;
    } ranges[BENCH_LENGTHS_MAX];
};

struct bench_prompts_options {
    const char *file; /* a line of JSON for each prompt; NULL: prompts are random */
    struct bench_lengths prompts, answers;
    uint64_t seed;
};

/* Reads "128", "100..500", or several of them, as in "128,2048". ST_INVALID says what is wrong. */
MUST_CHECK enum status bench_lengths_parse(const char *text, struct bench_lengths *out,
                                           struct error *err);

/* Makes requests to |model|. bench_bodies_fini() is due, also after a failure. */
MUST_CHECK enum status bench_prompts_make(const char *model,
                                          const struct bench_prompts_options *options,
                                          struct bench_bodies *out, struct error *err);

/* Appends "100..500 tokens". */
void bench_lengths_print(const struct bench_lengths *lengths, struct buf *out);

#endif
