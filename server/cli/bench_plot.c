/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/cli/bench_fields.h"

#define NS_PER_MS 1e6
#define CELL_MAX 24

static uint32_t limit_width(uint32_t width)
{
    width = width < BENCH_PLOT_WIDTH_MIN ? BENCH_PLOT_WIDTH_MIN : width;
    return width > BENCH_PLOT_WIDTH_MAX ? BENCH_PLOT_WIDTH_MAX : width;
}

/* Three digits, in ms. */
static const char *print_ms(double ns, char text[CELL_MAX])
{
    double ms = ns / NS_PER_MS;
    int decimals = ms < 0.9995 ? 3 : ms < 9.995 ? 2 : ms < 99.95 ? 1 : 0;
    snprintf(text, CELL_MAX, "%.*f", decimals, ms);
    return text;
}

/* ---- how often ------------------------------------------------------------------------------- */

#define BARS 16
#define BAR_LABEL 30   /* columns in front of a bar */
#define NARROWEST 1.02 /* a bar's end over its beginning */

struct bars {
    uint32_t count;
    double ends[BARS + 1]; /* ns; bar i is from ends[i] up to ends[i + 1] */
    uint64_t values[BARS], most;
};

static void count_bars(const struct bench_histogram *latency, struct bars *bars)
{
    double low = latency->min_ns ? (double)latency->min_ns : 1;
    double high = (double)latency->max_ns + 1, all = log(high / low) / log(NARROWEST);
    bars->count = all < 1 ? 1 : all < BARS ? (uint32_t)all : BARS;
    bars->most = 0;
    for (uint32_t i = 0; i <= bars->count; i++) {
        bars->ends[i] = low * pow(high / low, (double)i / bars->count);
    }
    bars->ends[0] = 0;
    bars->ends[bars->count] = 1e19; /* the first and the last bar have all that rounding leaves */
    for (uint32_t i = 0; i < bars->count; i++) {
        uint64_t end = bars->ends[i + 1] < 1.8e19 && i + 1 < bars->count
                           ? (uint64_t)bars->ends[i + 1]
                           : UINT64_MAX;
        bars->values[i] = bench_histogram_between(latency, (uint64_t)bars->ends[i], end);
        bars->most = bars->values[i] > bars->most ? bars->values[i] : bars->most;
    }
    bars->ends[0] = low;
    bars->ends[bars->count] = high;
}

static void print_bars(const struct bench_histogram *latency, uint32_t width, struct buf *out)
{
    struct bars bars;
    char low[CELL_MAX], high[CELL_MAX];
    count_bars(latency, &bars);
    for (uint32_t i = 0; i < bars.count; i++) {
        double share = (double)bars.values[i] / (double)bars.most;
        size_t length = (size_t)(share * (double)(width - BAR_LABEL) + 0.5);
        buf_printf(out, "%7s - %7s ms %6.2f %% ", print_ms(bars.ends[i], low),
                   print_ms(bars.ends[i + 1], high),
                   100 * (double)bars.values[i] / (double)latency->count);
        buf_add_fill(out, '#', length || !bars.values[i] ? length : 1);
        buf_add_char(out, '\n');
    }
}

/* ---- a sweep --------------------------------------------------------------------------------- */

#define LINES 16
#define MARGIN 10 /* columns in front of the field, with its edge */

static const struct series {
    char mark;
    uint32_t share;                              /* its index in bench_shares */
} all_series[] = {{'*', 4}, {'+', 3}, {'o', 0}}; /* the later one is on top */

#define SERIES (sizeof(all_series) / sizeof(all_series[0]))

struct field {
    const struct bench_report *report;
    uint32_t width;   /* of the field alone */
    double low, high; /* ns at the bottom and at the top */
    char cells[LINES][BENCH_PLOT_WIDTH_MAX];
};

static double value_of(const struct field *field, uint32_t step, const struct series *series)
{
    const struct bench_histogram *latency = &field->report->steps[step].result.latency;
    uint64_t ns = bench_histogram_at(latency, bench_shares[series->share].share);
    return ns ? (double)ns : 1;
}

static bool is_empty(const struct field *field, uint32_t step)
{
    return field->report->steps[step].result.latency.count == 0;
}

/* False: no step has latencies. */
static bool find_range(struct field *field)
{
    field->low = HUGE_VAL;
    field->high = 0;
    for (uint32_t i = 0; i < field->report->count; i++) {
        for (size_t s = 0; s < SERIES && !is_empty(field, i); s++) {
            double value = value_of(field, i, &all_series[s]);
            field->low = value < field->low ? value : field->low;
            field->high = value > field->high ? value : field->high;
        }
    }
    field->high = field->high < 1.1 * field->low ? 1.1 * field->low : field->high;
    return field->low < HUGE_VAL;
}

static uint32_t column_of(const struct field *field, uint32_t step)
{
    uint32_t count = field->report->count;
    return count < 2 ? 0 : step * (field->width - 1) / (count - 1);
}

static uint32_t line_of(const struct field *field, double value)
{
    double at = log(field->high / value) / log(field->high / field->low) * (LINES - 1);
    return at < 0 ? 0 : at > LINES - 1 ? LINES - 1 : (uint32_t)(at + 0.5);
}

/* Points lead from step to step where both have latencies. */
static void draw_series(struct field *field, const struct series *series)
{
    for (uint32_t i = 0; i + 1 < field->report->count; i++) {
        uint32_t from = column_of(field, i), to = column_of(field, i + 1);
        for (uint32_t x = from + 1; x < to && !is_empty(field, i) && !is_empty(field, i + 1); x++) {
            double part = (double)(x - from) / (double)(to - from);
            double first = value_of(field, i, series), second = value_of(field, i + 1, series);
            char *cell = &field->cells[line_of(field, first * pow(second / first, part))][x];
            *cell = *cell == ' ' ? '.' : *cell;
        }
    }
    for (uint32_t i = 0; i < field->report->count; i++) {
        if (!is_empty(field, i)) {
            uint32_t line = line_of(field, value_of(field, i, series));
            field->cells[line][column_of(field, i)] = series->mark;
        }
    }
}

/* The rates or numbers of clients of the steps, as far as there is room. */
static void print_steps(const struct field *field, struct buf *out)
{
    uint32_t at = 0;
    buf_add_fill(out, ' ', MARGIN);
    for (uint32_t i = 0; i < field->report->count; i++) {
        const struct bench_run *run = &field->report->steps[i].run;
        char text[CELL_MAX];
        uint32_t len = (uint32_t)snprintf(text, sizeof(text), "%.6g",
                                          run->is_open ? run->rate : (double)run->connections);
        uint32_t column = column_of(field, i);
        column = column + len > field->width ? field->width - len : column;
        if (column < at + (at > 0)) {
            continue;
        }
        buf_add_fill(out, ' ', column - at);
        buf_add_str(out, text);
        at = column + len;
    }
    buf_add_char(out, '\n');
}

static void print_field(const struct field *field, struct buf *out)
{
    char text[CELL_MAX];
    for (uint32_t line = 0; line < LINES; line++) {
        double value = field->high * pow(field->low / field->high, (double)line / (LINES - 1));
        bool has_label = line % 5 == 0;
        uint32_t len = field->width;
        while (len > 0 && field->cells[line][len - 1] == ' ') {
            len--;
        }
        buf_printf(out, "%*s%c", MARGIN - 1, has_label ? print_ms(value, text) : "",
                   has_label ? '+' : '|');
        buf_add(out, field->cells[line], len);
        buf_add_char(out, '\n');
    }
    buf_printf(out, "%*s", MARGIN, "+");
    buf_add_fill(out, '-', field->width);
    buf_add_char(out, '\n');
}

static void print_sweep(const struct bench_report *report, uint32_t width, struct buf *out)
{
    struct field field = {.report = report, .width = width - MARGIN};
    if (!find_range(&field)) {
        return;
    }
    memset(field.cells, ' ', sizeof(field.cells));
    for (size_t i = 0; i < SERIES; i++) {
        draw_series(&field, &all_series[i]);
    }
    buf_printf(out, "\n%*s  ms: o p50, + p99, * p99.9\n", MARGIN - 2, "latency");
    print_field(&field, out);
    print_steps(&field, out);
    buf_printf(out, "%*s%s\n", MARGIN, "",
               report->steps[0].run.is_open ? "requests/s asked for" : "clients");
}

void bench_plot_print(const struct bench_report *report, uint32_t width, struct buf *out)
{
    width = limit_width(width);
    if (report->count > 1) {
        print_sweep(report, width, out);
    } else if (report->count == 1 && report->steps[0].result.latency.count > 0) {
        buf_add_char(out, '\n');
        print_bars(&report->steps[0].result.latency, width, out);
    }
}
