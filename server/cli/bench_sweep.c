/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_sweep.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "protocol/number.h"

#define SHOWN 64 /* bytes of the text in an error */

struct reader {
    const uint8_t *at, *end;
    const struct bench_sweep_limits *limits;
    struct bench_sweep *sweep;
};

static enum status refuse(const struct reader *in, const char *text, struct error *err)
{
    return error_set(err, ST_INVALID,
                     "expected %s from %.10g to %.10g, as 8, 1,2,4 or 100..2000x8, got '%.*s'",
                     in->limits->is_whole ? "whole numbers" : "numbers", in->limits->min,
                     in->limits->max, SHOWN, text);
}

static bool take(struct reader *in, const char *mark)
{
    size_t len = strlen(mark);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, mark, len) != 0) {
        return false;
    }
    in->at += len;
    return true;
}

/* Digits, and of numbers that need not be whole a fraction. "1..2" is no number with a fraction, so
 * the number ends before two points. */
static bool read_number(struct reader *in, double *out)
{
    const uint8_t *at = in->at, *end = at;
    while (end < in->end && strchr("0123456789.", *end) && *end &&
           !(*end == '.' && end + 1 < in->end && end[1] == '.')) {
        end++;
    }
    if (number_parse_f64(&at, end, out) != NUMBER_OK || at != end) {
        return false;
    }
    in->at = end;
    return *out >= in->limits->min && *out <= in->limits->max &&
           !(in->limits->is_whole && *out != floor(*out));
}

static bool read_count(struct reader *in, uint64_t *out)
{
    *out = BENCH_SWEEP_DEFAULT;
    return !take(in, "x") || (number_parse_u64(&in->at, in->end, out) == NUMBER_OK && *out >= 2 &&
                              *out <= BENCH_SWEEP_MAX);
}

static enum status add(struct reader *in, double value, struct error *err)
{
    struct bench_sweep *sweep = in->sweep;
    if (sweep->count == BENCH_SWEEP_MAX) {
        return error_set(err, ST_INVALID, "expected at most %d steps", BENCH_SWEEP_MAX);
    }
    sweep->values[sweep->count++] = value;
    return ST_OK;
}

/* A range of whole numbers may be too narrow for its count; each of them comes once. */
static enum status add_range(struct reader *in, double first, double last, uint64_t count,
                             struct error *err)
{
    double before = -1;
    for (uint64_t i = 0; i < count; i++) {
        double value = first + (last - first) * (double)i / (double)(count - 1);
        value = in->limits->is_whole ? floor(value + 0.5) : value;
        if (value != before) {
            TRY(add(in, value, err));
        }
        before = value;
    }
    return ST_OK;
}

static enum status read_item(struct reader *in, const char *text, struct error *err)
{
    double first, last;
    uint64_t count;
    if (!read_number(in, &first)) {
        return refuse(in, text, err);
    }
    if (!take(in, "..")) {
        return add(in, first, err);
    }
    if (!read_number(in, &last) || !read_count(in, &count)) {
        return refuse(in, text, err);
    }
    if (last <= first) {
        return error_set(err, ST_INVALID, "expected a range that ascends, got '%.*s'", SHOWN, text);
    }
    return add_range(in, first, last, count, err);
}

enum status bench_sweep_parse(const char *text, const struct bench_sweep_limits *limits,
                              struct bench_sweep *sweep, struct error *err)
{
    struct span all = span_str(text);
    struct reader in = {all.ptr, all.ptr + all.len, limits, sweep};
    do {
        TRY(read_item(&in, text, err));
    } while (take(&in, ","));
    return in.at == in.end ? ST_OK : refuse(&in, text, err);
}
