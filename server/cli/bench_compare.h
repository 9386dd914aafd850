/* SPDX-License-Identifier: MIT */
/*
 * Two runs of a bench beside each other: one that has just ended, and the document of an earlier
 * one, as --json writes it. One thread.
 */
#ifndef PTED_SERVER_CLI_BENCH_COMPARE_H
#define PTED_SERVER_CLI_BENCH_COMPARE_H

#include "server/cli/bench_report.h"
#include "server/process/document.h"

/* Opens the document at |path|; document_close() is due. ST_INVALID: it is none of a bench, and
 * what document_open() has. */
MUST_CHECK enum status bench_compare_open(const char *path, struct document *out,
                                          struct error *err);

/* Prints a line for each figure of each step that |before|, too, has of as many clients or of the
 * same rate. */
void bench_compare_print(const struct document *before, const struct bench_report *report,
                         struct buf *out);

#endif
