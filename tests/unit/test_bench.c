/* SPDX-License-Identifier: MIT */
/* The computations of `pte bench`: percentiles, arrivals, the steps of a sweep. */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/bench_arrivals.h"
#include "server/cli/bench_fields.h"
#include "server/cli/bench_histogram.h"
#include "server/cli/bench_sweep.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* ---- the histogram --------------------------------------------------------------------------- */

#define VALUES 20000

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The smallest value that at least |share| of the sorted values do not exceed. */
static uint64_t exact(const uint64_t *sorted, size_t count, uint32_t share)
{
    size_t rank = (count * share + BENCH_SHARE_ALL - 1) / BENCH_SHARE_ALL;
    return sorted[rank > 0 ? rank - 1 : 0];
}

static void expect_percentiles(struct bench_histogram *histogram, uint64_t *values, size_t count)
{
    static const uint32_t shares[] = {0, 1, 1000, 50000, 90000, 95000, 99000, 99900, 99990, 100000};
    memset(histogram, 0, sizeof(*histogram));
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        bench_histogram_add(histogram, values[i]);
        sum += values[i];
    }
    qsort(values, count, sizeof(values[0]), compare);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        uint64_t want = exact(values, count, shares[i]);
        assert_between(bench_histogram_at(histogram, shares[i]), want, want + want / 256);
    }
    assert_int_equal(histogram->count, count);
    assert_int_equal(histogram->min_ns, values[0]);
    assert_int_equal(histogram->max_ns, values[count - 1]);
    assert_int_equal(bench_histogram_at(histogram, BENCH_SHARE_ALL), values[count - 1]);
    double mean = (double)sum / (double)count;
    assert_true(fabs(bench_histogram_mean(histogram) - mean) <= mean * 1e-9);
    assert_int_equal(bench_histogram_between(histogram, 0, UINT64_MAX), count);
}

static void percentiles_are_those_of_sorting(void **state)
{
    (void)state;
    struct bench_histogram *histogram = malloc(sizeof(*histogram));
    uint64_t *values = malloc(VALUES * sizeof(values[0]));
    struct bench_random random = bench_random_of(7);
    assert_non_null(histogram);
    assert_non_null(values);
    for (unsigned bits = 1; bits <= 43; bits++) { /* evenly below 2^bits */
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = bench_random_bits(&random) >> (64 - bits);
        }
        expect_percentiles(histogram, values, VALUES);
    }
    for (size_t i = 0; i < VALUES; i++) { /* of every magnitude at once */
        values[i] = bench_random_bits(&random) >> (21 + bench_random_bits(&random) % 43);
    }
    expect_percentiles(histogram, values, VALUES);
    for (size_t count = 1; count < 300; count++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = bench_random_bits(&random) >> 34;
        }
        expect_percentiles(histogram, values, count);
    }
    free(values);
    free(histogram);
}

static void bounds_of_buckets(void **state)
{
    (void)state;
    static struct bench_histogram histogram;
    assert_int_equal(bench_histogram_at(&histogram, 50000), 0);
    assert_true(bench_histogram_mean(&histogram) == 0);
    for (unsigned bits = 0; bits < 64; bits++) {
        uint64_t power = UINT64_C(1) << bits;
        const uint64_t values[] = {power - 1, power, power + 1, UINT64_MAX};
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
            histogram = (struct bench_histogram){.count = 0};
            bench_histogram_add(&histogram, values[i]);
            assert_int_equal(bench_histogram_at(&histogram, 50000), values[i]);
            assert_int_equal(bench_histogram_at(&histogram, 99990), values[i]);
        }
    }
}

/* A billion values and few take the same memory, and a rank is exact where a float would not be. */
static void ranks_are_exact(void **state)
{
    (void)state;
    static struct bench_histogram histogram;
    histogram.buckets[10] = UINT64_C(999000000000);
    histogram.buckets[20] = UINT64_C(1000000000);
    histogram.count = UINT64_C(1000000000000);
    histogram.min_ns = 10;
    histogram.max_ns = 20;
    assert_int_equal(bench_histogram_at(&histogram, 99900), 10);
    assert_int_equal(bench_histogram_at(&histogram, 99901), 20);
}

/* ---- arrivals -------------------------------------------------------------------------------- */

static void fixed_arrivals(void **state)
{
    (void)state;
    struct bench_arrivals a;
    uint64_t due;
    bench_arrivals_init(&a, 1000, false, 1, S, UINT64_MAX);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(a.due_ns, i * MS);
        assert_false(i > 0 && bench_arrivals_take(&a, i * MS - 1, &due));
        assert_true(bench_arrivals_take(&a, i * MS + 5, &due));
        assert_int_equal(due, i * MS);
    }
    assert_true(bench_arrivals_are_over(&a));
    assert_false(bench_arrivals_take(&a, 10 * S, &due));
    assert_int_equal(a.waited + a.delayed, 0);
    assert_int_equal(a.late_ns_max, 5);
}

/* No error adds up: the millionth request at 3 a second is where it should be. */
static void fixed_arrivals_do_not_drift(void **state)
{
    (void)state;
    struct bench_arrivals a;
    uint64_t due = 0;
    bench_arrivals_init(&a, 3, false, 1, UINT64_MAX, 1000001);
    for (uint64_t i = 0; i <= 1000000; i++) {
        assert_true(bench_arrivals_take(&a, UINT64_MAX, &due));
    }
    assert_between(due, UINT64_C(333333333333330), UINT64_C(333333333333336));
    assert_true(bench_arrivals_are_over(&a));
}

static void poisson_arrivals(void **state)
{
    (void)state;
    struct bench_arrivals a, again, other;
    uint64_t due, same, last = 0, differ = 0, short_gaps = 0;
    const uint64_t count = 100000;
    bench_arrivals_init(&a, 1000, true, 5, UINT64_MAX, count);
    bench_arrivals_init(&again, 1000, true, 5, UINT64_MAX, count);
    bench_arrivals_init(&other, 1000, true, 6, UINT64_MAX, count);
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        assert_true(bench_arrivals_take(&a, UINT64_MAX, &due));
        assert_true(bench_arrivals_take(&again, UINT64_MAX, &same));
        assert_int_equal(due, same);
        assert_true(bench_arrivals_take(&other, UINT64_MAX, &same));
        differ += due != same;
        assert_true(due >= last);
        double gap = (double)(due - last) / (double)MS;
        squares += gap * gap;
        short_gaps += gap < 0.6931471805599453; /* the median of an exponential distribution */
        last = due;
    }
    assert_true(differ > count * 99 / 100);
    assert_between(last / MS, 98500, 101500); /* the mean gap is 1 ms */
    assert_between((uint64_t)(squares * 1000 / (double)count), 1900, 2100); /* and its square 2 */
    assert_between(short_gaps, count * 49 / 100, count * 51 / 100);
}

/* A server that stalls for half a second: requests that were due meanwhile begin late, and none is
 * lost. */
static void a_stall_makes_requests_late(void **state)
{
    (void)state;
    struct bench_arrivals a;
    uint64_t due, taken = 0, sum = 0;
    bench_arrivals_init(&a, 1000, false, 1, S, UINT64_MAX);
    for (uint64_t now = 0; now < 2 * S; now += MS / 10) {
        bool is_stalled = now >= 200 * MS && now < 700 * MS;
        if (is_stalled) {
            bench_arrivals_block(&a, now);
        }
        while (!is_stalled && bench_arrivals_take(&a, now, &due)) {
            taken++;
            sum += now - due;
        }
    }
    assert_int_equal(taken, 1000);
    assert_int_equal(a.waited, 499); /* due from 200 to 698 ms, and begun at 700 */
    assert_int_equal(a.delayed, 0);
    assert_int_equal(a.late_ns_max, 500 * MS);
    assert_int_equal(sum, MS * (500 * 501 / 2));
}

static void the_bench_itself_may_be_late(void **state)
{
    (void)state;
    struct bench_arrivals a;
    uint64_t due;
    bench_arrivals_init(&a, 100, false, 1, S, UINT64_MAX);
    assert_true(bench_arrivals_take(&a, BENCH_LATE_NS, &due));
    assert_int_equal(a.delayed, 0);
    assert_true(bench_arrivals_take(&a, 10 * MS + BENCH_LATE_NS + 1, &due));
    assert_int_equal(a.delayed, 1);
    bench_arrivals_block(&a, 15 * MS); /* nothing was due then */
    assert_true(bench_arrivals_take(&a, 25 * MS, &due));
    assert_int_equal(a.delayed, 2);
    assert_int_equal(a.waited, 0);
}

static void what_never_begins_is_counted(void **state)
{
    (void)state;
    struct bench_arrivals a;
    uint64_t due;
    bench_arrivals_init(&a, 1000, false, 1, S, UINT64_MAX);
    assert_true(bench_arrivals_take(&a, 0, &due));
    assert_int_equal(bench_arrivals_give_up(&a, 20 * S), 999);
    assert_true(bench_arrivals_are_over(&a));
    bench_arrivals_init(&a, 1000, false, 1, S, 50);
    assert_int_equal(bench_arrivals_give_up(&a, 20 * S), 50);
    bench_arrivals_init(&a, 1000, false, 1, S, UINT64_MAX);
    assert_int_equal(bench_arrivals_give_up(&a, 10 * MS), 11);
    assert_true(bench_arrivals_are_over(&a));
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static const struct bench_sweep_limits clients = {1, 4096, true}, rates = {0.001, 1000000, false};

static void steps_of_sweeps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const struct bench_sweep_limits *limits;
        uint32_t count;
        double values[8];
    } rows[] = {
        {"8", &clients, 1, {8}},
        {"1,2,4096", &clients, 3, {1, 2, 4096}},
        {"8,1,8", &clients, 3, {8, 1, 8}},
        {"1..4x4", &clients, 4, {1, 2, 3, 4}},
        {"1..4x64", &clients, 4, {1, 2, 3, 4}},
        {"1..8", &clients, 8, {1, 2, 3, 4, 5, 6, 7, 8}},
        {"100..2000x2", &rates, 2, {100, 2000}},
        {"0.5", &rates, 1, {0.5}},
        {"0.5..1.5x3,7", &rates, 4, {0.5, 1, 1.5, 7}},
        {"1000000", &rates, 1, {1000000}},
        {"10..80", &rates, 8, {10, 20, 30, 40, 50, 60, 70, 80}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench_sweep sweep = {0};
        struct error err;
        assert_ok(err, bench_sweep_parse(rows[i].text, rows[i].limits, &sweep, &err));
        assert_int_equal(sweep.count, rows[i].count);
        for (uint32_t n = 0; n < sweep.count; n++) {
            assert_true(sweep.values[n] == rows[i].values[n]);
        }
    }
}

static void hostile_sweeps(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        ",",
        "1,",
        ",1",
        "1,,2",
        " 1",
        "1 ",
        "-1",
        "+1",
        "0",
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "1e3",
        "1e309",
        "0x10",
        "1..",
        "..2",
        "1...2",
        "1..2x",
        "1..2x0",
        "1..2x1",
        "1..2x65",
        "1..2x-3",
        "1..2x2.5",
        "1..2x99999999999999999999",
        "1x4",
        "1..2x4x4",
        "1..2..3",
        "5..2",
        "2..2",
        "4097",
        "1..4097",
        "1.5",
        "1.",
        ".5",
        "01",
        "1;2",
        "99999999999999999999999999999",
        "\xff",
        "1\n",
        "1,2,x",
        "one",
        "1..2x3y",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct bench_sweep sweep = {0};
        struct error err;
        if (bench_sweep_parse(texts[i], &clients, &sweep, &err) != ST_INVALID) {
            fail_msg("'%s' was taken for %u steps", texts[i], sweep.count);
        }
        assert_true(strlen(err.text) > 0);
    }
    struct bench_sweep sweep = {0};
    struct error err;
    assert_fails(err, bench_sweep_parse("0.0001", &rates, &sweep, &err), ST_INVALID, "from 0.001");
    assert_fails(err, bench_sweep_parse("1000001", &rates, &sweep, &err), ST_INVALID, "1000000");
    assert_fails(err, bench_sweep_parse("2..1", &rates, &sweep, &err), ST_INVALID, "ascends");
}

static void too_many_steps(void **state)
{
    (void)state;
    struct bench_sweep sweep = {0};
    struct error err;
    assert_ok(err, bench_sweep_parse("1..64x64", &rates, &sweep, &err));
    assert_int_equal(sweep.count, BENCH_SWEEP_MAX);
    assert_fails(err, bench_sweep_parse("1", &rates, &sweep, &err), ST_INVALID, "at most 64");
    sweep.count = 0;
    assert_fails(err, bench_sweep_parse("1..10x40,1..10x40", &rates, &sweep, &err), ST_INVALID,
                 "at most 64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_those_of_sorting),
        cmocka_unit_test(bounds_of_buckets),
        cmocka_unit_test(ranks_are_exact),
        cmocka_unit_test(fixed_arrivals),
        cmocka_unit_test(fixed_arrivals_do_not_drift),
        cmocka_unit_test(poisson_arrivals),
        cmocka_unit_test(a_stall_makes_requests_late),
        cmocka_unit_test(the_bench_itself_may_be_late),
        cmocka_unit_test(what_never_begins_is_counted),
        cmocka_unit_test(steps_of_sweeps),
        cmocka_unit_test(hostile_sweeps),
        cmocka_unit_test(too_many_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
