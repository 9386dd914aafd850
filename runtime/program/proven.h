/* SPDX-License-Identifier: MIT */
/*
 * What the trials of a method have proven (runtime/call/batch.h, runtime/call/speculation.h), kept
 * in a file beside the packed weights of its program (runtime/pte/packed.h). So the next start
 * needs no trial, or goes on where the last one ended.
 *
 * The name of the file consists of the name that packed weights have, which stands for the bytes of
 * the program, this build, the instruction set, the workers and the precision; and of a digest of
 * everything else that a trial depends on: the graph after all passes, so also what a card adds to
 * it; the data files; and settings of the caller.
 *
 * A file is not trusted: its size is fixed, all of its numbers but the times have bounds, and a
 * digest says that it is whole and has its own name. A damaged file is an error for the log, and
 * the next one takes its place.
 *
 * One thread at a time for each method.
 */
#ifndef PTED_RUNTIME_PROGRAM_PROVEN_H
#define PTED_RUNTIME_PROGRAM_PROVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct rt_method;

#define RT_PROVEN_ROWS_MAX 64
#define RT_PROVEN_TOKENS_MAX 8
#define RT_PROVEN_MEASURES_MAX 16

struct rt_proven {
    int64_t rows;          /* that may run as one; 1 to RT_PROVEN_ROWS_MAX */
    int64_t first_rows;    /* of these, the number to begin with */
    int64_t measured_rows; /* rows when that was measured; 1: not yet */
    int64_t measure_count; /* how often it was; up to RT_PROVEN_MEASURES_MAX */
    int64_t tokens;        /* of one answer that may run as one; 1 to RT_PROVEN_TOKENS_MAX */
    bool are_rows_final;   /* more rows were refused: */
    bool are_tokens_final; /* the same for tokens */
    struct error why_rows; /* the reason, if they are final */
    struct error why_tokens;
    uint64_t tokens_ns[RT_PROVEN_TOKENS_MAX + 1]; /* times of calls, by tokens; 0: not measured */
};

/* Nothing is proven but that a row may run alone. */
#define RT_PROVEN_INIT                                                                             \
    {                                                                                              \
        .rows = 1, .first_rows = 1, .measured_rows = 1, .tokens = 1                                \
    }

/* Finds the digest for the file's name; |settings| decide what a trial finds. ST_NOT_FOUND: nothing
 * is kept for this program. */
MUST_CHECK enum status rt_proven_find(const struct rt_method *method, const uint64_t *settings,
                                      uint32_t count, uint64_t *out_key, struct error *err);

/* Fails with ST_NOT_FOUND: there is no file. ST_CORRUPT: |err| names it and says what is wrong with
 * it. */
MUST_CHECK enum status rt_proven_read(const struct rt_method *method, uint64_t key,
                                      struct rt_proven *out_proven, struct error *err);

/* Writes a new file, or replaces one as a whole. */
MUST_CHECK enum status rt_proven_write(const struct rt_method *method, uint64_t key,
                                       const struct rt_proven *proven, struct error *err);

#endif
