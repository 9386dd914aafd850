/* SPDX-License-Identifier: MIT */
/*
 * The steps of a sweep, as --clients and --rate take them: numbers and ranges with commas between
 * them. "100..2000x8" is eight numbers from 100 to 2000 with equal gaps; without "x8" there are
 * BENCH_SWEEP_DEFAULT of them. Any thread.
 */
#ifndef PTED_SERVER_CLI_BENCH_SWEEP_H
#define PTED_SERVER_CLI_BENCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define BENCH_SWEEP_MAX 64
#define BENCH_SWEEP_DEFAULT 8

struct bench_sweep {
    uint32_t count;
    double values[BENCH_SWEEP_MAX];
};

struct bench_sweep_limits {
    double min, max;
    bool is_whole; /* only whole numbers; numbers between the ends of a range are rounded */
};

/* Appends to |sweep|. ST_INVALID says what is wrong. */
MUST_CHECK enum status bench_sweep_parse(const char *text, const struct bench_sweep_limits *limits,
                                         struct bench_sweep *sweep, struct error *err);

#endif
