/* SPDX-License-Identifier: MIT */
/* Who gets an answer: tokens and their scopes, addresses for administrators and for probes, and
 * pages of browsers. Requests are made up: a head, a route, an address. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "server/daemon/request/access.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/request/routes.h"
#include "server/http/head.h"
#include "server/http/http.h"

/* SHA-256 of "abc" (FIPS 180-4, example), and of "". */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static struct options options;
static struct requests requests;
static struct request request;
static struct exchange exchange;
static struct route routes[ROUTE_ROW_COUNT]; /* all like the one that is asked for */

static int set_up(void **state)
{
    (void)state;
    options_init(&options);
    memset(&requests, 0, sizeof(requests));
    memset(&request, 0, sizeof(request));
    memset(&exchange, 0, sizeof(exchange));
    memset(routes, 0, sizeof(routes));
    requests.magic = REQUESTS_MAGIC;
    requests.uses.options = &options;
    requests.uses.params = &options.params;
    requests.uses.routes = routes;
    request.magic = REQUEST_MAGIC;
    request.requests = &requests;
    request.exchange = &exchange;
    head_init(&request.head, &options.params);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    head_fini(&request.head);
    access_fini(&requests.access);
    return 0;
}

static void add_field(const char *name, const char *value)
{
    struct error err;
    head_add_name(&request.head, span_str(name));
    assert_int_equal(head_add_value(&request.head, span_str(value), &err), 0);
    head_end_field(&request.head);
}

static void need_tokens(const char *lines)
{
    struct error err;
    assert_ok(err, tokens_parse(&requests.access.tokens, "tokens", span_str(lines), &err));
    assert_true(requests.access.tokens.are_needed);
}

static int begin(enum listener_role role, enum token_scope scope, bool changes)
{
    routes[0] = (struct route){.scope = scope, .changes = changes};
    exchange.role = role;
    request.match.id = 0;
    request.err.text[0] = '\0';
    return access_begin(&request);
}

static void expect_refusal(enum listener_role role, enum token_scope scope, bool changes,
                           int status, const char *text)
{
    assert_int_equal(begin(role, scope, changes), status);
    assert_string_equal(request.err.text, text);
}

static uint64_t denied(enum access_denial denial)
{
    return counter_get(&requests.access.denied[denial]);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void an_address_for_probes_answers_probes_alone(void **state)
{
    (void)state;
    expect_refusal(LISTENER_HEALTH, TOKEN_SCOPE_READ, false, 403,
                   "this address is for probes: it answers /v2/health/live, /v2/health/ready, "
                   "/health, /ping and /metrics alone");
    routes[0].is_for_probes = true;
    assert_int_equal(access_begin(&request), 200);
}

static void models_are_changed_by_administrators(void **state)
{
    (void)state;
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false), 200);
    assert_int_equal(begin(LISTENER_ADMIN, TOKEN_SCOPE_ADMIN, true), 200);
    expect_refusal(LISTENER_PUBLIC, TOKEN_SCOPE_ADMIN, true, 403,
                   "this is for administrators: use an address of --admin-listen, or, with "
                   "--token-file, a token of scope admin");
    assert_null(request.sender.challenge); /* no token would help */
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void a_token_opens_the_routes_of_its_scopes(void **state)
{
    (void)state;
    need_tokens("one infer sha256:" ABC);
    add_field("Authorization", "bearer   abc"); /* the scheme in any case, and spaces */
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false), 200);
    assert_string_equal(request.client.token_name, "one");
    assert_false(request.client.is_operator);
    assert_true(request.client.id == client_of_token(request.sender.token_use->number));
    assert_int_equal(request.sender.token_use->running, 1);
    access_end(&request);
    access_end(&request); /* which holds none any more */
    expect_refusal(LISTENER_PUBLIC, TOKEN_SCOPE_ADMIN, true, 403,
                   "the token of one lacks the scope admin");
    assert_string_equal(request.sender.challenge, "Bearer error=\"insufficient_scope\"");
    assert_int_equal(denied(ACCESS_NO_SCOPE), 1);
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_NONE, false), 200);
    assert_int_equal(begin(LISTENER_ADMIN, TOKEN_SCOPE_ADMIN, false), 200); /* needs none */
}

static void an_administrator_s_token_makes_an_operator(void **state)
{
    (void)state;
    need_tokens("one admin sha256:" ABC);
    add_field("Authorization", "Bearer abc");
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_ADMIN, true), 200);
    assert_true(request.client.is_operator);
    access_end(&request);
}

static void tokens_that_are_missing_or_unknown(void **state)
{
    (void)state;
    need_tokens("one infer sha256:" ABC);
    expect_refusal(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false, 401,
                   "Authorization: expected 'Bearer TOKEN', with a token of scope infer");
    assert_string_equal(request.sender.challenge, "Bearer");
    add_field("Authorization", "Bearer abd");
    expect_refusal(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false, 401,
                   "Authorization: this token is not known");
    assert_string_equal(request.sender.challenge, "Bearer error=\"invalid_token\"");
    add_field("Authorization", "Bearer abc"); /* two of them may be of two people */
    expect_refusal(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false, 401,
                   "Authorization: expected 'Bearer TOKEN', with a token of scope infer");
    assert_int_equal(denied(ACCESS_NO_TOKEN), 2);
    assert_int_equal(denied(ACCESS_UNKNOWN_TOKEN), 1);
    assert_string_equal(access_denial_name(ACCESS_UNKNOWN_TOKEN), "unknown token");
    assert_null(request.sender.token_use);
}

static void other_schemes_are_no_tokens(void **state)
{
    (void)state;
    need_tokens("one infer sha256:" ABC "\nnone infer sha256:" EMPTY);
    add_field("Authorization", "Basic abc");
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false), 401);
    head_reset(&request.head);
    add_field("Authorization", "Bearer");
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false), 401);
    assert_int_equal(denied(ACCESS_NO_TOKEN), 2);
}

static void a_token_has_its_limits(void **state)
{
    static struct request second;
    (void)state;
    need_tokens("one infer sha256:" ABC " running=1");
    add_field("Authorization", "Bearer abc");
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false), 200);
    second = request; /* the same client again */
    second.sender.token_use = NULL;
    assert_int_equal(access_begin(&second), 429);
    assert_true(second.retry_after_s >= 1);
    access_end(&second); /* it was not admitted */
    assert_int_equal(request.sender.token_use->running, 1);
    access_end(&request);
    assert_int_equal(access_begin(&second), 200);
    access_end(&second);
}

static void the_file_of_tokens_is_looked_at(void **state)
{
    struct error err;
    (void)state;
    need_tokens("one infer sha256:" ABC);
    options.token_file = "/no/such/tokens";
    assert_int_not_equal(access_verify(&options, &err), ST_OK);
    assert_int_not_equal(access_read(&requests.access, &options, &err), ST_OK);
    assert_int_equal(requests.access.tokens.count, 1); /* the old ones stay */
    options.token_file = NULL;
    assert_ok(err, access_verify(&options, &err));
    assert_ok(err, access_read(&requests.access, &options, &err));
    assert_false(requests.access.tokens.are_needed);
    assert_int_equal(begin(LISTENER_PUBLIC, TOKEN_SCOPE_INFER, false), 200);
}

/* ---- pages of browsers ----------------------------------------------------------------------- */

static int of_page(const char *host, const char *origin, bool has_tls)
{
    head_reset(&request.head);
    add_field("Host", host);
    add_field("Origin", origin);
    exchange.tls_version = has_tls ? "TLSv1.3" : NULL;
    return begin(LISTENER_ADMIN, TOKEN_SCOPE_ADMIN, true);
}

static void pages_of_others_change_nothing(void **state)
{
    static const struct {
        const char *host, *origin;
        bool has_tls;
        int status;
    } rows[] = {
        {"localhost:8000", "http://localhost:8000", 0, 200},
        {"LOCALHOST:8000", "http://localhost:8000", 0, 200},
        {"127.0.0.1:8000", "http://127.0.0.1:8000", 0, 200},
        {"[::1]:8000", "http://[::1]:8000", 0, 200},
        {"localhost:8000", "http://localhost:8001", 0, 403},
        {"localhost:8000", "http://localhost", 0, 403},
        {"localhost:8000", "localhost:8000", 0, 403},
        {"localhost:8000", "null", 0, 403},
        {"localhost:8000", "", 0, 403},
        {"127.0.0.1.example:8000", "http://127.0.0.1.example:8000", 0, 403},
        /* a name may have been made to mean this address, unless a certificate says it */
        {"models.example", "http://models.example", 0, 403},
        {"models.example", "https://models.example", 1, 200},
        {"models.example", "https://other.example", 1, 403},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status = of_page(rows[i].host, rows[i].origin, rows[i].has_tls);
        if (status != rows[i].status) {
            fail_msg("Host %s, Origin %s: got %d, expected %d", rows[i].host, rows[i].origin,
                     status, rows[i].status);
        }
    }
    assert_int_equal(of_page("localhost", "http://evil.example", 0), 403);
    assert_string_equal(request.err.text,
                        "Origin: expected a page of a --cors-origin, or of this address by its "
                        "number or as localhost (with TLS, by any name), got one of "
                        "'http://evil.example'");
    head_reset(&request.head); /* a program says no origin */
    assert_int_equal(begin(LISTENER_ADMIN, TOKEN_SCOPE_ADMIN, true), 200);
}

static void describe(struct http_answer *answer)
{
    *answer = (struct http_answer){.allow_origin = span_str("")};
    access_describe(&request, answer);
}

static void pages_of_allowed_origins_may_read(void **state)
{
    const struct exchange_head options_head = {.method_name = "OPTIONS"},
                               get_head = {.method_name = "GET"};
    struct http_answer answer;
    (void)state;
    add_field("Origin", "https://page.example");
    add_field("Access-Control-Request-Method", "POST");
    describe(&answer);
    assert_false(answer.varies_by_origin);
    assert_false(access_is_preflight(&request, &options_head));
    char *argv[] = {(char[]){"pted"}, (char[]){"--cors-origin=https://page.example"}};
    struct error err;
    assert_ok(err, options_add_arguments(&options, 2, argv, &err));
    assert_true(access_is_preflight(&request, &options_head));
    assert_false(access_is_preflight(&request, &get_head));
    request.match.id = ROUTE_PREFLIGHT;
    describe(&answer);
    assert_true(answer.varies_by_origin && answer.is_preflight);
    assert_true(span_is(answer.allow_origin, "https://page.example"));
    assert_int_equal(of_page("localhost", "https://page.example", 0), 200);
    assert_int_equal(of_page("localhost", "https://page.example.org", 0), 403);
    describe(&answer);
    assert_true(answer.varies_by_origin); /* for caches */
    assert_int_equal(answer.allow_origin.len, 0);
}

static void any_origin_may_be_allowed(void **state)
{
    char *argv[] = {(char[]){"pted"}, (char[]){"--cors-origin=*"}};
    struct http_answer answer;
    struct error err;
    (void)state;
    assert_ok(err, options_add_arguments(&options, 2, argv, &err));
    assert_int_equal(of_page("localhost", "https://any.example", 0), 200);
    describe(&answer);
    assert_true(span_is(answer.allow_origin, "*"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_address_for_probes_answers_probes_alone),
        TEST(models_are_changed_by_administrators),
        TEST(a_token_opens_the_routes_of_its_scopes),
        TEST(an_administrator_s_token_makes_an_operator),
        TEST(tokens_that_are_missing_or_unknown),
        TEST(other_schemes_are_no_tokens),
        TEST(a_token_has_its_limits),
        TEST(the_file_of_tokens_is_looked_at),
        TEST(pages_of_others_change_nothing),
        TEST(pages_of_allowed_origins_may_read),
        TEST(any_origin_may_be_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
