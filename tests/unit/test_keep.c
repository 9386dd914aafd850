/* SPDX-License-Identifier: MIT */
/* How long a model is kept: --idle-unload, and what requests say. The tests own the time. */
#include "config.h"

#include "tests/unit/unit.h"

#include "protocol/json.h"
#include "server/language/ask_values.h"
#include "server/model/keep.h"

#define S 1000000000u

/* Loaded at 100 s in 0 s, and kept for 10 s. */
static struct keep make(uint64_t idle_ns)
{
    struct keep keep = {.idle_ns = idle_ns};
    keep_begin(&keep, 100 * (uint64_t)S, 0);
    return keep;
}

static void use(struct keep *keep, uint64_t at_s, const struct keep_wish *wish)
{
    keep_use(keep, wish, at_s * S);
}

static const struct keep_wish unsaid = {0};
static const struct keep_wish zero = {.is_given = true};

static struct keep_wish said(uint64_t s)
{
    return (struct keep_wish){.is_given = true, .ns = s * S};
}

static void assert_due(const struct keep *keep, uint64_t s)
{
    assert_true(keep->due_ns == s * S);
}

static void requests_without_a_word(void **state)
{
    (void)state;
    struct keep keep = make(10 * (uint64_t)S);
    assert_due(&keep, 110);
    use(&keep, 105, &unsaid);
    assert_due(&keep, 115);
    use(&keep, 130, &unsaid);
    assert_due(&keep, 140);
    assert_false(keep.is_asked);
    keep_begin(&keep, 200 * (uint64_t)S, 0);
    assert_due(&keep, 210);
}

static void the_latest_word_counts(void **state)
{
    (void)state;
    struct keep keep = make(10 * (uint64_t)S);
    use(&keep, 101, &zero); /* the first one: nobody else has called it since the load */
    assert_due(&keep, 101);
    assert_true(keep.is_asked);
    use(&keep, 101, &unsaid);
    assert_due(&keep, 111);
    assert_false(keep.is_asked);
    use(&keep, 102, &zero); /* it is not taken from others */
    assert_due(&keep, 111);
    struct keep_wish three = said(3);
    use(&keep, 107, &three);
    assert_due(&keep, 111);
    use(&keep, 109, &three);
    assert_due(&keep, 112);
}

static void a_client_is_bounded(void **state)
{
    (void)state;
    struct keep keep = make(10 * (uint64_t)S);
    struct keep_wish hour = said(3600), ever = {.is_given = true, .ns = KEEP_FOR_EVER};
    use(&keep, 101, &hour);
    assert_due(&keep, 111);
    use(&keep, 102, &ever);
    assert_due(&keep, 112);
    hour.ns_max = ever.ns_max = 60 * (uint64_t)S;
    use(&keep, 102, &hour);
    assert_due(&keep, 162);
    use(&keep, 103, &ever);
    assert_due(&keep, 163);
    struct keep pinned = make(KEEP_FOR_EVER);
    use(&pinned, 101, &zero);
    assert_true(pinned.due_ns == KEEP_FOR_EVER);
    use(&pinned, 102, &hour);
    assert_true(pinned.due_ns == KEEP_FOR_EVER);
}

static void an_operator_is_not(void **state)
{
    (void)state;
    struct keep keep = make(10 * (uint64_t)S);
    struct keep_wish ever = {.is_given = true, .is_order = true, .ns = KEEP_FOR_EVER};
    struct keep_wish now = {.is_given = true, .is_order = true};
    use(&keep, 101, &ever);
    assert_true(keep.due_ns == KEEP_FOR_EVER);
    use(&keep, 102, &zero);
    assert_true(keep.due_ns == KEEP_FOR_EVER);
    use(&keep, 103, &now);
    assert_due(&keep, 103);
    struct keep pinned = make(KEEP_FOR_EVER);
    use(&pinned, 104, &now);
    assert_due(&pinned, 104);
}

/* A client that unloads a model with each request has it loaded a tenth of the time at most. */
static void loads_take_little_of_the_time(void **state)
{
    (void)state;
    struct keep keep = {.idle_ns = 100 * (uint64_t)S};
    keep_begin(&keep, 100 * (uint64_t)S, 2 * (uint64_t)S);
    use(&keep, 101, &zero);
    assert_due(&keep, 120);
    use(&keep, 130, &zero);
    assert_due(&keep, 130);
    const struct keep_wish now = {.is_given = true, .is_order = true};
    keep_begin(&keep, 200 * (uint64_t)S, 2 * (uint64_t)S);
    use(&keep, 201, &now);
    assert_due(&keep, 201);
    keep_begin(&keep, 300 * (uint64_t)S, UINT64_MAX / 2);
    use(&keep, 301, &zero);
    assert_true(keep.due_ns == KEEP_FOR_EVER);
}

/* What Go's time.ParseDuration() takes, and seconds without a unit. */
static void times_as_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double s;
    } good[] = {{"5m", 300},          {"1h30m", 5400}, {"1.5h", 5400},   {"300ms", 0.3},
                {"-1m", -60},         {"0", 0},        {"30", 30},       {"+2s", 2},
                {"1h1m1s", 3661},     {".5s", 0.5},    {"1s500ms", 1.5}, {"10us", 1e-5},
                {"1\xc2\xb5s", 1e-6}, {"7ns", 7e-9},   {"-0.5", -0.5},   {"1\xce\xbcs", 1e-6}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        double s = -7;
        assert_true(ask_parse_duration(span_str(good[i].text), &s));
        assert_true(s > good[i].s - 1e-12 && s < good[i].s + 1e-12);
    }
    static const char *const bad[] = {"",      "m",  "5 m", "5x",   "5m5", "-",   "1e3s",
                                      "1..2s", ".s", "5d",  "--5m", "5mm", "5m ", "nan"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        double s;
        if (ask_parse_duration(span_str(bad[i]), &s)) {
            fail_msg("'%s' is taken", bad[i]);
        }
    }
}

static void values_of_keep_alive(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        uint64_t ns;
    } rows[] = {{"0", 0},
                {"300", 300 * (uint64_t)S},
                {"1.5", 1500000000},
                {"-1", UINT64_MAX},
                {"1e300", UINT64_MAX},
                {"\"5m\"", 300 * (uint64_t)S},
                {"\"-1s\"", UINT64_MAX},
                {"\"99999999999999999999h\"", UINT64_MAX}};
    struct error err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json in;
        uint64_t ns = 7;
        json_init(&in, span_str(rows[i].json));
        assert_ok(err, ask_read_keep(&in, &ns, &err));
        assert_true(ns == rows[i].ns);
    }
    static const char *const bad[] = {"true", "[]", "{}", "\"soon\"", "\"5\\u006d\"", "NaN", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct json in;
        uint64_t ns;
        json_init(&in, span_str(bad[i]));
        assert_int_equal(ask_read_keep(&in, &ns, &err), ST_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_without_a_word),       cmocka_unit_test(the_latest_word_counts),
        cmocka_unit_test(a_client_is_bounded),           cmocka_unit_test(an_operator_is_not),
        cmocka_unit_test(loads_take_little_of_the_time), cmocka_unit_test(times_as_texts),
        cmocka_unit_test(values_of_keep_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
