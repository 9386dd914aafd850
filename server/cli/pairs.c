/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/print.h"

/* Elements of which a tensor that is far away is known. */
#define SAMPLE 512
#define PICTURE_RANK 4
#define GUESS_ROWS 16 /* behind the first one without a pair */

/* ---- elements -------------------------------------------------------------------------------- */

/* How the elements of a tensor lie for those of another one. */
enum order {
    ORDER_SAME,
    ORDER_NHWC, /* the wanted picture has its channels in dim 1, the other one has them last */
    ORDER_NONE, /* the dims differ */
};

static enum order order_of(const struct shape *got, const struct shape *want)
{
    const int64_t *g = got->dims, *w = want->dims;
    if (shape_equal(got, want)) {
        return ORDER_SAME;
    }
    bool is_nhwc = got->rank == PICTURE_RANK && want->rank == PICTURE_RANK && g[0] == w[0] &&
                   g[1] == w[2] && g[2] == w[3] && g[3] == w[1];
    return is_nhwc ? ORDER_NHWC : ORDER_NONE;
}

/* The place in |got| of element |i| of |want|. */
static size_t place(enum order order, const struct shape *want, size_t i)
{
    if (order == ORDER_SAME) {
        return i;
    }
    size_t channels = (size_t)want->dims[1], pixels = (size_t)(want->dims[2] * want->dims[3]);
    size_t n = i / (channels * pixels), c = i / pixels % channels, at = i % pixels;
    return (n * pixels + at) * channels + c;
}

/* ---- two tensors ----------------------------------------------------------------------------- */

struct sums {
    double difference, want, largest;
};

static void add_element(struct pairs_difference *d, struct sums *sums, size_t i, double got,
                        double want)
{
    if (!isfinite(got) || !isfinite(want)) {
        bool is_same = (isnan(got) && isnan(want)) || got == want;
        if (!is_same && d->strange++ == 0) {
            d->at = i;
            d->got = got;
            d->want = want;
        }
        return;
    }
    double off = fabs(got - want);
    sums->difference += off * off;
    sums->want += want * want;
    sums->largest = fmax(sums->largest, fabs(want));
    if (off > d->max_abs) {
        d->max_abs = off;
        d->at = d->strange ? d->at : i;
        d->got = d->strange ? d->got : got;
        d->want = d->strange ? d->want : want;
    }
}

static double quotient(double a, double b)
{
    return b > 0 ? a / b : a > 0 ? INFINITY : 0;
}

/* Looks at each |step|th element. */
static struct pairs_difference measure(const struct pairs_tensor *got,
                                       const struct pairs_tensor *want, size_t step)
{
    struct pairs_difference d = {0};
    struct sums sums = {0};
    enum order order = order_of(&got->shape, &want->shape);
    size_t count = (size_t)shape_numel(&want->shape);
    for (size_t i = 0; i < count; i += step) {
        add_element(&d, &sums, i,
                    cli_print_element(got->dtype, got->bytes, place(order, &want->shape, i)),
                    cli_print_element(want->dtype, want->bytes, i));
    }
    d.relative = quotient(d.max_abs, sums.largest);
    d.distance = d.strange ? INFINITY : sqrt(quotient(sums.difference, sums.want));
    return d;
}

double pairs_tolerance(enum dtype got, enum dtype want, uint32_t bits)
{
    uint32_t a = dtype_precision(got), b = dtype_precision(want), least = a < b ? a : b;
    least = bits && bits < least ? bits : least;
    return dtype_is_float(got) && dtype_is_float(want) ? exp2(-(double)least / 2) : 0;
}

static bool is_equal(const struct pairs *pairs, const struct pairs_tensor *got,
                     const struct pairs_tensor *want, const struct pairs_difference *d)
{
    double most = pairs_tolerance(got->dtype, want->dtype, pairs->bits);
    most = most > 0 && pairs->tolerance > 0 ? pairs->tolerance : most;
    return d->strange == 0 && (d->max_abs == 0 || d->relative <= most);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static bool could_be(const struct pairs_tensor *got, const struct pairs_tensor *want)
{
    return got->bytes && want->bytes && dtype_is_float(got->dtype) == dtype_is_float(want->dtype) &&
           order_of(&got->shape, &want->shape) != ORDER_NONE;
}

static uint32_t find_name(const struct pairs *pairs, const char *name)
{
    static const char result[] = "output_";
    size_t len = sizeof(result) - 1;
    if (strncmp(name, result, len) == 0 && name[len] &&
        strspn(name + len, "0123456789") == strlen(name + len)) {
        unsigned long index = strtoul(name + len, NULL, 10);
        return index < pairs->result_count ? (uint32_t)index : PAIRS_NONE;
    }
    for (uint32_t i = 0; i < pairs->got_count; i++) {
        if (strcmp(pairs->got[i].name, name) == 0) {
            return i;
        }
    }
    return PAIRS_NONE;
}

static struct pairs_row compare_named(const struct pairs *pairs, uint32_t got,
                                      const struct pairs_tensor *want)
{
    const struct pairs_tensor *tensor = &pairs->got[got];
    struct pairs_row row = {.kind = PAIRS_SHAPE, .got = got};
    if (tensor->bytes && want->bytes && shape_equal(&tensor->shape, &want->shape) &&
        dtype_is_float(tensor->dtype) == dtype_is_float(want->dtype)) {
        row.difference = measure(tensor, want, 1);
        row.kind = is_equal(pairs, tensor, want, &row.difference) ? PAIRS_EQUAL : PAIRS_DIFFERS;
    }
    return row;
}

/* Is the value certainly further away than |most|? Looks at a part of it. */
static bool is_far(const struct pairs_tensor *got, const struct pairs_tensor *want, double most)
{
    size_t count = (size_t)shape_numel(&want->shape);
    return count > 4 * SAMPLE && measure(got, want, count / SAMPLE).distance > 2 * most;
}

static struct pairs_row find_nearest(const struct pairs *pairs, const struct pairs_tensor *want)
{
    struct pairs_row row = {.kind = PAIRS_ABSENT, .got = PAIRS_NONE};
    double least = PAIRS_NEAR;
    for (uint32_t i = 0; i < pairs->got_count; i++) {
        const struct pairs_tensor *got = &pairs->got[i];
        if (!could_be(got, want) || is_far(got, want, least)) {
            continue;
        }
        struct pairs_difference d = measure(got, want, 1);
        if (d.distance < least || (row.got == PAIRS_NONE && d.distance <= least)) {
            bool same = is_equal(pairs, got, want, &d);
            row = (struct pairs_row){same ? PAIRS_EQUAL : PAIRS_DIFFERS, i, d};
            least = d.distance;
        }
    }
    return row;
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* Edges lead forward, so that one walk backward over all of them suffices if they are in order. */
static int compare_edges(const void *a, const void *b)
{
    const struct pairs_edge *x = a, *y = b;
    return x->from == y->from ? (x->to > y->to) - (x->to < y->to)
                              : (x->from > y->from) - (x->from < y->from);
}

/* A value that differs, or that is absent, is folded if something that follows is well. */
static bool mark_folded(const struct pairs *pairs, struct pairs_row *rows)
{
    struct pairs_edge *edges = malloc((size_t)(pairs->edge_count + 1) * sizeof(*edges));
    if (!edges) {
        return false;
    }
    if (pairs->edge_count) {
        memcpy(edges, pairs->edges, pairs->edge_count * sizeof(*edges));
    }
    qsort(edges, pairs->edge_count, sizeof(*edges), compare_edges);
    bool is_well = false;
    for (uint32_t i = pairs->want_count, e = pairs->edge_count; i-- > 0;) {
        bool follows = pairs->edge_count == 0 && is_well;
        for (; e > 0 && edges[e - 1].from == i; e--) {
            enum pairs_kind kind = rows[edges[e - 1].to].kind;
            follows |= kind == PAIRS_EQUAL || kind == PAIRS_FOLDED;
        }
        bool has_name =
            rows[i].got != PAIRS_NONE && find_name(pairs, pairs->want[i].name) != PAIRS_NONE;
        if (rows[i].kind != PAIRS_EQUAL && follows && !has_name) {
            rows[i].kind = PAIRS_FOLDED;
        }
        is_well |= rows[i].kind == PAIRS_EQUAL;
    }
    free(edges);
    return true;
}

bool pairs_find(const struct pairs *pairs, struct pairs_row *rows)
{
    for (uint32_t i = 0; i < pairs->want_count; i++) {
        const struct pairs_tensor *want = &pairs->want[i];
        uint32_t named = find_name(pairs, want->name);
        rows[i] =
            named != PAIRS_NONE ? compare_named(pairs, named, want) : find_nearest(pairs, want);
    }
    return mark_folded(pairs, rows);
}

uint32_t pairs_first(const struct pairs *pairs, const struct pairs_row *rows)
{
    for (uint32_t i = 0; i < pairs->want_count; i++) {
        if (rows[i].kind != PAIRS_EQUAL && rows[i].kind != PAIRS_FOLDED) {
            return i;
        }
    }
    return PAIRS_NONE;
}

/* ---- a guess --------------------------------------------------------------------------------- */

static bool is_taken(const struct pairs *pairs, const struct pairs_row *rows, uint32_t got)
{
    for (uint32_t i = 0; i < pairs->want_count; i++) {
        if (rows[i].got == got && rows[i].kind == PAIRS_EQUAL) {
            return true;
        }
    }
    return false;
}

/* The last value of the program that is equal to one before |row|. */
static uint32_t last_equal(const struct pairs_row *rows, uint32_t row)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < row; i++) {
        last = rows[i].kind == PAIRS_EQUAL && rows[i].got > last ? rows[i].got : last;
    }
    return last;
}

bool pairs_guess(const struct pairs *pairs, const struct pairs_row *rows, uint32_t row,
                 uint32_t *out_want, struct pairs_row *out_guess)
{
    const struct pairs_tensor *want = &pairs->want[row];
    uint32_t last = last_equal(rows, row),
             got = last > pairs->result_count ? last : pairs->result_count;
    while (got < pairs->got_count &&
           (is_taken(pairs, rows, got) || !could_be(&pairs->got[got], want))) {
        got++;
    }
    if (got == pairs->got_count) {
        return false;
    }
    *out_guess = (struct pairs_row){.got = PAIRS_NONE};
    for (uint32_t i = row; i < pairs->want_count && i < row + GUESS_ROWS; i++) {
        bool fits = rows[i].kind != PAIRS_EQUAL && could_be(&pairs->got[got], &pairs->want[i]);
        struct pairs_difference d =
            fits ? measure(&pairs->got[got], &pairs->want[i], 1) : (struct pairs_difference){0};
        bool is_near = d.distance < PAIRS_NEAR && d.distance < out_guess->difference.distance;
        if (fits && (out_guess->got == PAIRS_NONE || is_near)) {
            *out_guess = (struct pairs_row){PAIRS_DIFFERS, got, d};
            *out_want = i;
        }
    }
    return true;
}
