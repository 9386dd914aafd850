/* SPDX-License-Identifier: MIT */
/* Queries of targets: what routes take, and what they refuse. */
#include "config.h"

#include "tests/unit/unit.h"

#include "server/request/query.h"
#include "server/request/routes.h"

#define ALL (QUERY_BIT(BINARY) | QUERY_BIT(PROFILE) | QUERY_BIT(TOP_K))

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
        {"/call?binary=1", {QUERY_BIT(BINARY), 1, 0, 0}},
        {"/call?binary=0&", {QUERY_BIT(BINARY), 0, 0, 0}},
        {"/call?&binary=true", {QUERY_BIT(BINARY), 1, 0, 0}},
        {"/call?binary=false", {QUERY_BIT(BINARY), 0, 0, 0}},
        {"/call?top_k=0", {QUERY_BIT(TOP_K), 0, 0, 0}},
        {"/call?top%5Fk=%33&profile=1", {QUERY_BIT(TOP_K) | QUERY_BIT(PROFILE), 0, 1, 3}},
        {"/call?top_k=4294967295", {QUERY_BIT(TOP_K), 0, 0, UINT32_MAX}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct query query;
        struct error err;
        assert_ok(err, query_parse(span_str(cases[i].target), ALL, &query, &err));
        assert_memory_equal(&query, &cases[i].query, sizeof(query));
        assert_int_equal(query_has(&query, QUERY_TOP_K),
                         (cases[i].query.given & QUERY_BIT(TOP_K)) != 0);
    }
}

static void others_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        uint32_t known;
        const char *text;
    } cases[] = {
        {"/call?topk=2", ALL,
         "query: expected binary, profile or top_k, got 'topk'; did you mean 'top_k'?"},
        {"/call?a=1", ALL, "query: expected binary, profile or top_k, got 'a'"},
        {"/call?BINARY=1", ALL, "got 'BINARY'"},
        {"/call?a?binary=1", ALL, "got 'a?binary'"},
        {"/call?=1", ALL, "got ''"},
        {"/call?top_k=2", QUERY_BIT(PROFILE), "query: expected profile, got 'top_k'"},
        {"/call?top_k=2", 0, "query: this path takes no parameters, got 'top_k'"},
        {"/call?top_k=2&top_k=2", ALL, "query: 'top_k' is given twice"},
        {"/call?binary", ALL, "binary: expected 0 or 1, got ''"},
        {"/call?binary=10", ALL, "binary: expected 0 or 1, got '10'"},
        {"/call?top_k=", ALL, "top_k: expected a number up to 4294967295, got ''"},
        {"/call?top_k=-1", ALL, "top_k: expected a number up to 4294967295, got '-1'"},
        {"/call?top_k=4294967296", ALL, "top_k: expected a number"},
        {"/call?top_k=1.0", ALL, "top_k: expected a number"},
        {"/call?top_k=%3", ALL, "with valid %XX"},
        {"/call?%00=1", ALL, "with valid %XX"},
        {"/call?aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ALL,
         "at most 64 characters"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct query query;
        struct error err;
        assert_fails(err, query_parse(span_str(cases[i].target), cases[i].known, &query, &err),
                     ST_INVALID, cases[i].text);
    }
}

/* Calls are strict; probes, browsers and clients of OpenAI's API send what they like. */
static void routes_say_what_they_take(void **state)
{
    (void)state;
    static const enum route_id loose[] = {ROUTE_LIVE,        ROUTE_READY,   ROUTE_METRICS,
                                          ROUTE_CHAT,        ROUTE_EMBED,   ROUTE_EMBEDDINGS,
                                          ROUTE_COMPLETIONS, ROUTE_RERANK,  ROUTE_TRANSCRIPTIONS,
                                          ROUTE_V1_MODELS,   ROUTE_CONSOLE, ROUTE_CONSOLE_FILE};
    static const enum route_id strict[] = {ROUTE_SERVER, ROUTE_MODEL, ROUTE_GENERATE, ROUTE_BATCH,
                                           ROUTE_LOAD,   ROUTE_SHAPE, ROUTE_STATS};
    assert_int_equal(routes_get(ROUTE_CALL)->queries, ALL);
    assert_int_equal(routes_get(ROUTE_INFER)->queries, ALL);
    assert_int_equal(routes_get(ROUTE_PREDICT)->queries, QUERY_BIT(PROFILE));
    for (size_t i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
        assert_true(routes_get(loose[i])->ignores_queries);
    }
    for (size_t i = 0; i < sizeof(strict) / sizeof(strict[0]); i++) {
        assert_false(routes_get(strict[i])->ignores_queries);
        assert_int_equal(routes_get(strict[i])->queries, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_read),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(routes_say_what_they_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
