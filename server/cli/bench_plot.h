/* SPDX-License-Identifier: MIT */
/* Plots of plain characters that fit a window. Both axes of latencies are logarithmic. Any
 * thread. */
#ifndef PTED_SERVER_CLI_BENCH_PLOT_H
#define PTED_SERVER_CLI_BENCH_PLOT_H

#include "server/cli/bench_report.h"

#define BENCH_PLOT_WIDTH_MIN 40
#define BENCH_PLOT_WIDTH_MAX 160

/* Percentiles over the steps of a sweep, or how often latencies were how long in a single step.
 * No line is longer than |width|. Without latencies there is no plot. */
void bench_plot_print(const struct bench_report *report, uint32_t width, struct buf *out);

#endif
