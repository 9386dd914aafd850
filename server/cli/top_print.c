/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "protocol/json.h"
#include "server/cli/top.h"
#include "server/process/amount.h"

#define NAME_BYTES_MIN 12
#define NAME_BYTES_MAX 40
#define CELL_BYTES 24
#define LINE_BYTES_MAX 512

/* ---- cells ----------------------------------------------------------------------------------- */

static void print_rate(char text[CELL_BYTES], double value)
{
    snprintf(text, CELL_BYTES, value < 100 && value > 0 ? "%.1f" : "%.0f", value);
}

/* "-": there was none. */
static void print_time(char text[CELL_BYTES], double us)
{
    if (us <= 0) {
        snprintf(text, CELL_BYTES, "-");
    } else if (us < 1000) {
        snprintf(text, CELL_BYTES, us < 10 ? "%.1f us" : "%.0f us", us);
    } else if (us < 1e6) {
        snprintf(text, CELL_BYTES, us < 1e4 ? "%.2f ms" : "%.0f ms", us * 1e-3);
    } else {
        snprintf(text, CELL_BYTES, "%.1f s", us * 1e-6);
    }
}

static void print_batch(char text[CELL_BYTES], double batch)
{
    snprintf(text, CELL_BYTES, batch > 0 ? "%.1f" : "-", batch);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* One line, cut at the window's edge, between characters. */
static void add_line(struct buf *out, const char *line, uint32_t columns)
{
    size_t len = strlen(line);
    if (columns && len > columns) {
        len = utf8_floor((const uint8_t *)line, columns);
    }
    buf_add(out, line, len);
    buf_add_char(out, '\n');
}

static void print_uptime(uint64_t start_s, char text[CELL_BYTES])
{
    uint64_t now_s = (uint64_t)time(NULL);
    uint64_t seconds = now_s > start_s ? now_s - start_s : 0;
    if (seconds < 120) {
        snprintf(text, CELL_BYTES, "%us", (unsigned)seconds);
    } else if (seconds < 7200) {
        snprintf(text, CELL_BYTES, "%um", (unsigned)(seconds / 60));
    } else if (seconds < 2 * 86400) {
        snprintf(text, CELL_BYTES, "%uh", (unsigned)(seconds / 3600));
    } else {
        snprintf(text, CELL_BYTES, "%" PRIu64 "d", seconds / 86400);
    }
}

struct totals {
    double requests_s, rows_s, errors_s;
    uint64_t waiting, running;
};

static struct totals add_up(const struct top_sample *now, const struct top_rate *rates)
{
    struct totals totals = {.waiting = 0};
    for (uint32_t i = 0; i < now->count; i++) {
        totals.requests_s += rates[i].requests_s;
        totals.rows_s += rates[i].rows_s;
        totals.errors_s += rates[i].errors_s;
        totals.waiting += rates[i].row->waiting;
        totals.running += rates[i].row->running;
    }
    return totals;
}

/* "http://127.0.0.1:8000  74 models  up 3h  resident 121.4 MiB  requests 1.2 MiB of 256.0 MiB" */
static void print_head(const char *server, const struct top_sample *now, uint32_t columns,
                       struct buf *out)
{
    char line[LINE_BYTES_MAX], text[CELL_BYTES], some[AMOUNT_TEXT_MAX], all[AMOUNT_TEXT_MAX];
    size_t len = (size_t)snprintf(line, sizeof(line), "%.160s  %u model%s", server, now->count,
                                  now->count == 1 ? "" : "s");
    if (now->start_s) {
        print_uptime(now->start_s, text);
        len += (size_t)snprintf(line + len, sizeof(line) - len, "  up %s", text);
    }
    if (now->resident_bytes) {
        len += (size_t)snprintf(line + len, sizeof(line) - len, "  resident %s",
                                amount_bytes(now->resident_bytes, some));
    }
    if (now->ring_bytes) {
        snprintf(line + len, sizeof(line) - len, "  requests %s of %s",
                 amount_bytes(now->ring_used, some), amount_bytes(now->ring_bytes, all));
    }
    add_line(out, line, columns);
}

static void print_totals(const struct top_sample *now, const struct top_rate *rates,
                         uint32_t columns, struct buf *out)
{
    struct totals totals = add_up(now, rates);
    char line[LINE_BYTES_MAX], cells[3][CELL_BYTES];
    print_rate(cells[0], totals.requests_s);
    print_rate(cells[1], totals.rows_s);
    print_rate(cells[2], totals.errors_s);
    snprintf(line, sizeof(line),
             "%s requests/s  %s rows/s  %s errors/s  %" PRIu64 " waiting  %" PRIu64 " running",
             cells[0], cells[1], cells[2], totals.waiting, totals.running);
    add_line(out, line, columns);
}

/* The columns, of a head and of the rows alike. */
static void print_cells(struct buf *out, int name_width, const char *name, const char *version,
                        const char *const cells[10], uint32_t columns)
{
    char line[LINE_BYTES_MAX];
    snprintf(line, sizeof(line), "%-*.*s %4.12s %9s %9s %6s %6s %6s %9s %9s %9s %8s %10s",
             name_width, name_width, name, version, cells[0], cells[1], cells[2], cells[3],
             cells[4], cells[5], cells[6], cells[7], cells[8], cells[9]);
    add_line(out, line, columns);
}

static void print_row(const struct top_rate *rate, int name_width, uint32_t columns,
                      struct buf *out)
{
    char texts[9][CELL_BYTES], bytes[AMOUNT_TEXT_MAX];
    print_rate(texts[0], rate->requests_s);
    print_rate(texts[1], rate->rows_s);
    print_batch(texts[2], rate->batch);
    snprintf(texts[3], CELL_BYTES, "%" PRIu64, rate->row->waiting);
    snprintf(texts[4], CELL_BYTES, "%" PRIu64, rate->row->running);
    print_time(texts[5], rate->queue_us);
    print_time(texts[6], rate->compute_us);
    print_time(texts[7], rate->total_us);
    print_rate(texts[8], rate->errors_s);
    const char *const cells[10] = {
        texts[0], texts[1], texts[2], texts[3], texts[4],
        texts[5], texts[6], texts[7], texts[8], amount_bytes(rate->row->held_bytes, bytes)};
    print_cells(out, name_width, rate->row->name, rate->row->version, cells, columns);
}

void top_print(const char *server, const struct top_sample *now, const struct top_rate *rates,
               uint32_t columns, uint32_t row_max, struct buf *out)
{
    static const char *const head[10] = {"REQ/S", "ROWS/S",  "BATCH", "WAIT",  "RUN",
                                         "QUEUE", "COMPUTE", "TOTAL", "ERR/S", "HELD"};
    size_t width = NAME_BYTES_MIN;
    for (uint32_t i = 0; i < now->count; i++) {
        size_t len = strlen(now->rows[i].name);
        width = len > width ? len : width;
    }
    int name_width = (int)(width > NAME_BYTES_MAX ? NAME_BYTES_MAX : width);
    print_head(server, now, columns, out);
    print_totals(now, rates, columns, out);
    print_cells(out, name_width, "MODEL", "VER", head, columns);
    for (uint32_t i = 0; i < now->count && (row_max == 0 || i < row_max); i++) {
        print_row(&rates[i], name_width, columns, out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_model_json(const struct top_rate *rate, struct buf *out)
{
    const struct top_row *row = rate->row;
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(row->name));
    buf_add_str(out, ",\"version\":");
    json_print_string(out, span_str(row->version));
    buf_printf(out,
               ",\"requests_s\":%.3f,\"rows_s\":%.3f,\"errors_s\":%.3f,\"batch\":%.3f,"
               "\"queue_us\":%.3f,\"compute_us\":%.3f,\"total_us\":%.3f",
               rate->requests_s, rate->rows_s, rate->errors_s, rate->batch, rate->queue_us,
               rate->compute_us, rate->total_us);
    buf_printf(out,
               ",\"waiting\":%" PRIu64 ",\"running\":%" PRIu64 ",\"held_bytes\":%" PRIu64
               ",\"requests\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"rows\":%" PRIu64 "}",
               row->waiting, row->running, row->held_bytes, row->ok, row->failed, row->rows);
}

void top_print_json(const char *server, const struct top_sample *now, const struct top_rate *rates,
                    struct buf *out)
{
    buf_add_str(out, "{\"server\":");
    json_print_string(out, span_str(server));
    buf_printf(out,
               ",\"resident_bytes\":%" PRIu64 ",\"start_s\":%" PRIu64 ",\"ring_used\":%" PRIu64
               ",\"ring_bytes\":%" PRIu64 ",\"models\":[",
               now->resident_bytes, now->start_s, now->ring_used, now->ring_bytes);
    for (uint32_t i = 0; i < now->count; i++) {
        buf_add_str(out, i ? "," : "");
        print_model_json(&rates[i], out);
    }
    buf_add_str(out, "]}\n");
}
