/* SPDX-License-Identifier: MIT */
/*
 * Prints metrics for Prometheus: in its text format 0.0.4, or in OpenMetrics 1.0.
 *
 *     prom_init(&prom, format, &out);
 *     prom_family(&prom, &family);
 *     for each series of the family:
 *         prom_unlabel(&prom);
 *         prom_label(&prom, "model", name);
 *         prom_number(&prom, value, 0);
 *     prom_end(&prom);
 *
 * All series of a family stand together. Numbers are integers with a decimal point put in, so that
 * a counter of nanoseconds is printed in seconds and loses nothing. Any thread; a struct prom has
 * one user.
 */
#ifndef PTED_PROTOCOL_PROM_H
#define PTED_PROTOCOL_PROM_H

#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/histogram.h"

enum prom_format { PROM_TEXT, PROM_OPENMETRICS };

enum prom_type { PROM_COUNTER, PROM_GAUGE, PROM_HISTOGRAM, PROM_SUMMARY, PROM_INFO };

/* The name ends in _total for a counter and in _info for an info. Texts are ours: no quotes, no
 * backslashes, no line ends. */
struct prom_family {
    const char *name;
    enum prom_type type;
    const char *unit; /* "seconds", "bytes", or "": none. The name has it, before _total. */
    const char *help;
};

/* A label's value is cut behind so many bytes; all labels of a series have so much room. */
#define PROM_VALUE_BYTES_MAX 256
#define PROM_LABELS_BYTES_MAX 2048

struct prom {
    struct buf *out;
    enum prom_format format;
    const struct prom_family *family;
    size_t label_bytes;
    char labels[PROM_LABELS_BYTES_MAX]; /* as printed, without braces */
};

/* Returns the format that a client prefers by its Accept field, which may be empty, and its media
 * type. */
enum prom_format prom_accept(struct span accept);
const char *prom_media_type(enum prom_format format);

/* |out| is borrowed until prom_end(). */
void prom_init(struct prom *prom, enum prom_format format, struct buf *out);

/* Begins |family|, which is borrowed; the series begin without labels. */
void prom_family(struct prom *prom, const struct prom_family *family);

/* Changes the labels of the following series: removes all; adds one. A value may have any bytes:
 * bytes that are not UTF-8 are shown as U+FFFD. prom_label_mark() and prom_unlabel_to() keep the
 * first few labels. */
void prom_unlabel(struct prom *prom);
void prom_label(struct prom *prom, const char *name, struct span value);
size_t prom_label_mark(const struct prom *prom);
void prom_unlabel_to(struct prom *prom, size_t mark);

/* Appends a series of a counter, a gauge or an info: |value| / 10^|decimals|. */
void prom_number(struct prom *prom, uint64_t value, unsigned decimals);

/* Appends the series of a histogram, consistent in themselves while another thread adds to it; and
 * of a summary without quantiles. */
void prom_histogram(struct prom *prom, const struct histogram *histogram,
                    const struct histogram_scale *scale);
void prom_summary(struct prom *prom, uint64_t count, uint64_t sum, unsigned decimals);

void prom_end(struct prom *prom);

#endif
