/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/request/tokens.h"

#define NS_PER_S UINT64_C(1000000000)
/* SHA-256 of "abc" (FIPS 180-4, example), and of "". */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void parse(struct tokens *tokens, const char *text)
{
    struct error err;
    assert_ok(err, tokens_parse(tokens, "file", span_str(text), &err));
}

static void finds_a_token_by_its_hash(void **state)
{
    struct tokens tokens = {0};
    (void)state;
    parse(&tokens, "# a comment\n\n \t\r\none infer,admin sha256:" ABC "\r\n"
                   "\ttwo read sha256:" EMPTY " running=2");
    const struct token *token = tokens_find(&tokens, span_str("abc"));
    assert_non_null(token);
    assert_string_equal(token->use->name, "one");
    assert_int_equal(token->scopes, TOKEN_SCOPE_INFER | TOKEN_SCOPE_ADMIN);
    assert_int_not_equal(token->use->number, tokens_find(&tokens, span_str(""))->use->number);
    assert_string_equal(tokens_find(&tokens, span_str(""))->use->name, "two");
    assert_null(tokens_find(&tokens, span_str("abd")));
    assert_null(tokens_find(&tokens, span_str("abc ")));
    tokens_fini(&tokens);
}

static void refuses_lines_that_are_wrong(void **state)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"one infer sha256:" ABC "\nb", "file:2: expected scopes"},
        {"one infer", "file:1: expected sha256:"},
        {"one infer sha256:" ABC "0", "file:1: expected sha256:"},
        {"one infer, sha256:" ABC, "file:1: expected scopes"},
        {"one infer,,read sha256:" ABC, "file:1: expected scopes"},
        {"a/b infer sha256:" ABC, "file:1: expected a name"},
        {"one infer sha256:" ABC " rate=", "file:1: expected rate=N"},
        {"one infer sha256:" ABC " rate=1x", "file:1: rate: expected a number"},
        {"one infer sha256:" ABC " rate=99999999999999999999999999999999", "file:1: "},
        {"one infer sha256:" ABC " running=0", "file:1: running: expected 1"},
        {"one infer sha256:" ABC "\n2 read sha256:" ABC,
         "file:2: an earlier line has the same token"},
    };
    struct tokens tokens = {0};
    struct error err;
    (void)state;
    parse(&tokens, "old read sha256:" EMPTY);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_fails(err, tokens_parse(&tokens, "file", span_str(rows[i].text), &err), ST_INVALID,
                     rows[i].reason);
        assert_non_null(tokens_find(&tokens, span_str(""))); /* the old tokens stay */
    }
    tokens_fini(&tokens);
}

static bool admit(const struct token *token, uint64_t now_ns, uint32_t *retry_s)
{
    struct error err;
    bool is_admitted = token_admit(token, now_ns, retry_s, &err);
    if (is_admitted) {
        token_release(token->use);
    }
    return is_admitted;
}

/* With 2 a second and a burst of 3: three at once, then one each half second. */
static void keeps_to_a_rate(void **state)
{
    struct tokens tokens = {0};
    uint64_t now = 100 * NS_PER_S;
    uint32_t retry_s;
    (void)state;
    parse(&tokens, "one infer sha256:" ABC " rate=2 burst=3");
    const struct token *token = tokens_find(&tokens, span_str("abc"));
    for (int i = 0; i < 3; i++) {
        assert_true(admit(token, now, &retry_s));
        assert_int_equal(retry_s, 0);
    }
    assert_false(admit(token, now, &retry_s));
    assert_int_equal(retry_s, 1);
    assert_false(admit(token, now + NS_PER_S / 2 - 1, &retry_s));
    assert_true(admit(token, now + NS_PER_S / 2, &retry_s));
    assert_false(admit(token, now + NS_PER_S / 2, &retry_s));
    for (int i = 0; i < 3; i++) { /* a pause gives the burst back, and no more */
        assert_true(admit(token, now + 60 * NS_PER_S, &retry_s));
    }
    assert_false(admit(token, now + 60 * NS_PER_S, &retry_s));
    assert_int_equal(counter_get(&token->use->admitted), 7);
    assert_int_equal(counter_get(&token->use->refused), 4);
    tokens_fini(&tokens);
}

/* A token that a connection remembers is forgotten when its file changes. */
static void a_connection_remembers_its_token(void **state)
{
    struct tokens tokens = {0};
    struct token_memory memory = {0};
    (void)state;
    parse(&tokens, "one infer sha256:" ABC "\ntwo read sha256:" EMPTY);
    assert_null(tokens_find_again(&tokens, &memory, span_str("abd")));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(tokens_find_again(&tokens, &memory, span_str("abc"))->use->name, "one");
    }
    assert_null(tokens_find_again(&tokens, &memory, span_str("abd")));
    assert_null(tokens_find_again(&tokens, &memory, span_str("ab")));
    assert_string_equal(tokens_find_again(&tokens, &memory, span_str(""))->use->name, "two");
    assert_string_equal(tokens_find_again(&tokens, &memory, span_str("abc"))->use->name, "one");
    parse(&tokens, "two read sha256:" EMPTY);
    assert_null(tokens_find_again(&tokens, &memory, span_str("abc")));
    tokens_fini(&tokens);
}

/* Another file changes what a token may do; its counts go on under its name. */
static void counts_outlive_the_file(void **state)
{
    struct tokens tokens = {0};
    struct error err;
    uint32_t retry_s;
    (void)state;
    parse(&tokens, "one infer sha256:" ABC " running=1");
    const struct token *token = tokens_find(&tokens, span_str("abc"));
    struct token_use *use = token->use;
    assert_true(token_admit(token, 0, &retry_s, &err));
    parse(&tokens, "one infer sha256:" EMPTY " running=1");
    assert_null(tokens_find(&tokens, span_str("abc")));
    assert_fails(
        err, token_admit(tokens_find(&tokens, span_str("")), 0, &retry_s, &err) ? ST_OK : err.code,
        ST_EXHAUSTED, "token one: expected at most 1 requests at a time");
    token_release(use);
    assert_true(token_admit(tokens_find(&tokens, span_str("")), 0, &retry_s, &err));
    token_release(use);
    tokens_fini(&tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_token_by_its_hash),
        cmocka_unit_test(refuses_lines_that_are_wrong),
        cmocka_unit_test(keeps_to_a_rate),
        cmocka_unit_test(counts_outlive_the_file),
        cmocka_unit_test(a_connection_remembers_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
