/* SPDX-License-Identifier: MIT */
/* Queries of targets: what routes take, and what they refuse. */
#include "config.h"

#include "tests/unit/unit.h"

#include "server/daemon/infer/query.h"
#include "server/daemon/route_table.h"

#define CALLS (QUERY_BIT(BINARY) | QUERY_BIT(ORDER) | QUERY_BIT(PROFILE) | QUERY_BIT(TOP_K))

static void parameters_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        struct query query;
    } cases[] = {
        {"", {0}},
        {"/call", {0}},
        {"/binary=1", {0}},
        {"/call?", {0}},
        {"/call?&&", {0}},
        {"/call?binary=1", {.given = QUERY_BIT(BINARY), .is_binary = 1}},
        {"/call?binary=0&", {.given = QUERY_BIT(BINARY)}},
        {"/call?&binary=true", {.given = QUERY_BIT(BINARY), .is_binary = 1}},
        {"/call?binary=false", {.given = QUERY_BIT(BINARY)}},
        {"/call?top_k=0", {.given = QUERY_BIT(TOP_K)}},
        {"/call?top%5Fk=%33&profile=1",
         {.given = QUERY_BIT(TOP_K) | QUERY_BIT(PROFILE), .wants_profile = 1, .top_k = 3}},
        {"/call?top_k=4294967295", {.given = QUERY_BIT(TOP_K), .top_k = UINT32_MAX}},
        {"/call?order=channels_last", {.given = QUERY_BIT(ORDER), .is_channels_last = 1}},
        {"/call?order=row_major", {.given = QUERY_BIT(ORDER)}},
        {"/signature?fv=2", {.given = QUERY_BIT(FV), .fv = 2}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct query query;
        struct error err;
        assert_ok(err, query_parse(span_str(cases[i].target), CALLS | QUERY_BIT(FV), &query, &err));
        assert_memory_equal(&query, &cases[i].query, sizeof(query));
        assert_int_equal(query_has(&query, QUERY_TOP_K),
                         (cases[i].query.given & QUERY_BIT(TOP_K)) != 0);
    }
}

static void typos_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        uint32_t known;
        const char *text;
    } cases[] = {
        {"/call?topk=2", CALLS,
         "query: expected binary, profile, order or top_k, got 'topk'; did you mean 'top_k'?"},
        {"/call?top-k=2", CALLS, "got 'top-k'; did you mean 'top_k'?"},
        {"/call?a?binary=1", CALLS, "got 'a?binary'"},
        {"/call?BINARY=1", CALLS, "got 'BINARY'; did you mean 'binary'?"},
        {"/call?a=b&Top%2Dk=1", CALLS, "got 'Top-k'; did you mean 'top_k'?"},
        {"/call?topk=2", 0, "query: this path takes no parameters, got 'topk'"},
        {"/call?top_k=2", QUERY_BIT(PROFILE), "query: expected profile, got 'top_k'"},
        {"/call?top_k=2", 0, "query: this path takes no parameters, got 'top_k'"},
        {"/call?top_k=2&top_k=2", CALLS, "query: 'top_k' is given twice"},
        {"/call?binary", CALLS, "binary: expected 0 or 1, got ''"},
        {"/call?binary=10", CALLS, "binary: expected 0 or 1, got '10'"},
        {"/call?top_k=", CALLS, "top_k: expected a number up to 4294967295, got ''"},
        {"/call?top_k=-1", CALLS, "top_k: expected a number up to 4294967295, got '-1'"},
        {"/call?top_k=4294967296", CALLS, "top_k: expected a number"},
        {"/call?top_k=1.0", CALLS, "top_k: expected a number"},
        {"/call?top_k=%3", CALLS, "query: top_k: expected at most 64 characters, with valid %XX"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct query query;
        struct error err;
        assert_fails(err, query_parse(span_str(cases[i].target), cases[i].known, &query, &err),
                     ST_INVALID, cases[i].text);
    }
}

/* Parameters of proxies and of clients' users, whatever their names and values are. */
static void others_are_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a=1",
        "q=a%20b",

        "=1",
        "%00=1",
        "%zz=1",
        "x=%zz",
        "token=x",
        "api-version=2",
        "X-Amz-Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "a=1&a=2",
    };
    static const uint32_t known[] = {CALLS, QUERY_BIT(PROFILE), 0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
            char target[128];
            struct query query;
            struct error err;
            snprintf(target, sizeof(target), "/call?%s%s", texts[i], k == 0 ? "&top_k=3" : "");
            assert_ok(err, query_parse(span_str(target), known[k], &query, &err));
            assert_int_equal(query.given, k == 0 ? QUERY_BIT(TOP_K) : 0);
            assert_int_equal(query.top_k, k == 0 ? 3 : 0);
        }
    }
}

/* Calls notice typos; probes, browsers and clients of OpenAI's API send what they like. */
static void routes_say_what_they_take(void **state)
{
    (void)state;
    static const enum route_id loose[] = {ROUTE_LIVE,        ROUTE_READY,   ROUTE_METRICS,
                                          ROUTE_CHAT,        ROUTE_EMBED,   ROUTE_EMBEDDINGS,
                                          ROUTE_COMPLETIONS, ROUTE_RERANK,  ROUTE_TRANSCRIPTIONS,
                                          ROUTE_V1_MODELS,   ROUTE_CONSOLE, ROUTE_CONSOLE_FILE};
    static const enum route_id strict[] = {ROUTE_SERVER, ROUTE_MODEL, ROUTE_GENERATE, ROUTE_BATCH,
                                           ROUTE_LOAD,   ROUTE_SHAPE, ROUTE_STATS};
    assert_int_equal(route_table[ROUTE_CALL].queries, CALLS);
    assert_int_equal(route_table[ROUTE_INFER].queries, CALLS);
    assert_int_equal(route_table[ROUTE_PREDICT].queries, QUERY_BIT(PROFILE));
    for (size_t i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
        assert_true(route_table[loose[i]].ignores_queries);
    }
    for (size_t i = 0; i < sizeof(strict) / sizeof(strict[0]); i++) {
        assert_false(route_table[strict[i]].ignores_queries);
        assert_int_equal(route_table[strict[i]].queries, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_read),
        cmocka_unit_test(typos_are_refused),
        cmocka_unit_test(others_are_passed_over),
        cmocka_unit_test(routes_say_what_they_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
