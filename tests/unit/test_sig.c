/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>

#include "protocol/sig.h"
#include "tests/unit/sig_support.h"

#define TEXT_BYTES_MAX 65536

/* Reads all components and writes them again. */
static enum status respell(struct span text, struct buf *out, struct error *err)
{
    struct sig_reader in;
    struct sig_item item;
    sig_init(&in, text);
    while (!sig_is_at_end(&in)) {
        TRY(sig_next(&in, &item, err));
        size_t before = out->len;
        if (item.tag >= 'A' && item.tag <= 'Z') {
            sig_add_span(out, item.tag, item.content);
            assert_int_equal(out->len - before, sig_span_bytes(item.content.len));
        } else {
            sig_add_integer(out, item.tag, item.value);
            assert_int_equal(out->len - before, sig_integer_bytes(item.value));
        }
    }
    return sig_end(&in, err);
}

static void check_component(const cJSON *want, const struct sig_item *item, const char *id)
{
    const cJSON *value = cJSON_GetArrayItem(want, 2);
    if (cJSON_GetStringValue(cJSON_GetArrayItem(want, 0))[0] != item->tag) {
        fail_msg("%s: tag '%c'", id, item->tag);
    }
    if (cJSON_IsNumber(value)) {
        assert_int_equal(item->value, (int64_t)value->valuedouble);
    } else if (cJSON_IsString(value)) {
        assert_true(span_is(item->content, value->valuestring));
    } else {
        const char *hex = cJSON_GetStringValue(cJSON_GetObjectItem(value, "hex"));
        assert_int_equal(item->content.len, strlen(hex) / 2);
    }
}

static void check_vector(const struct vector *vector, void *user)
{
    (void)user;
    struct error err = {.text = ""};
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    enum status status = respell(vector->text, &out, &err);
    vector_check_status(vector, status, &err);
    if (vector->is_valid) {
        struct sig_reader in;
        struct sig_item item;
        const cJSON *want;
        sig_init(&in, vector->text);
        cJSON_ArrayForEach(want, cJSON_GetObjectItem(vector->json, "meaning"))
        {
            assert_ok(err, sig_next(&in, &item, &err));
            check_component(want, &item, vector->id);
        }
        assert_true(sig_is_at_end(&in));
        assert_true(span_equal(buf_span(&out), vector->canonical));
    }
    buf_fini(&out);
}

static void test_vectors(void **state)
{
    (void)state;
    vectors_check("lex", check_vector, NULL);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"_5?", "byte 2: expected a tag (_, a-z, A-Z), got '?'"},
        {"_5\x80", "byte 2: expected a tag (_, a-z, A-Z), got byte 0x80"},
        {" _5", "byte 0: expected a tag (_, a-z, A-Z), got byte 0x20"},
        {"_", "byte 1: expected digits for '_', got the end"},
        {"_-", "byte 2: expected digits for '_', got the end"},
        {"_+1", "byte 1: expected digits for '_', got '+'"},
        {"_--1", "byte 2: expected digits for '_', got '-'"},
        {"_1-1", "byte 2: expected a tag"},
        {"d9223372036854775808", "byte 0: the integer of 'd' does not fit 64 bits"},
        {"d-9223372036854775809", "byte 0: the integer of 'd' does not fit 64 bits"},
        {"d18446744073709551616", "byte 0: the integer of 'd' does not fit 64 bits"},
        {"A", "byte 1: expected the length of 'A', got the end"},
        {"A!x", "byte 1: expected the length of 'A', got '!'"},
        {"A-1!", "byte 1: expected the length of 'A', got '-'"},
        {"A0!", "byte 0: length 0 for 'A': a length counts the '!'"},
        {"A00", "byte 0: length 0 for 'A': a length counts the '!'"},
        {"_1A3!x", "byte 2: 'A' is longer than the 2 bytes that are left"},
        {"A1", "byte 0: 'A' is longer than the 0 bytes that are left"},
        {"A18446744073709551615!", "byte 0: 'A' is longer than the 1 bytes that are left"},
        {"A99999999999999999999!", "byte 0: 'A' is longer than the 1 bytes that are left"},
        {"A2xy", "byte 2: expected '!' behind the length of 'A', got 'x'"},
    };
    struct error err;
    struct buf out;
    (void)state;
    buf_init(&out, TEXT_BYTES_MAX);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct span text = exact_copy(span_str(cases[i].text));
        assert_fails(err, respell(text, &out, &err), ST_INVALID, cases[i].why);
        exact_free(text);
    }
    buf_fini(&out);
}

/* Positions count from the start of the whole text, also inside spans. */
static void test_inside(void **state)
{
    struct sig_reader in, inside;
    struct sig_item span, item;
    struct error err;
    (void)state;
    sig_init(&in, span_str("_1A7!_2B3!_-_3"));
    assert_ok(err, sig_next(&in, &item, &err));
    assert_fails(err, sig_expect_span(&in, 'B', &span, &err), ST_INVALID,
                 "byte 2: expected 'B', got 'A'");
    assert_ok(err, sig_expect_span(&in, 'A', &span, &err));
    assert_true(span_is(span.text, "A7!_2B3!_"));
    assert_fails(err, sig_end(&in, &err), ST_INVALID, "byte 11: expected the end, got '-'");
    inside = sig_inside(&in, &span);
    assert_ok(err, sig_next(&inside, &item, &err));
    assert_int_equal(item.value, 2);
    assert_fails(err, sig_next(&inside, &item, &err), ST_INVALID,
                 "byte 7: 'B' is longer than the 2 bytes that are left");
}

static void test_split(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "byte 0: expected 'I', got the end"},
        {"R1!I1!", "byte 0: expected 'I', got 'R'"},
        {"I1!", "byte 3: expected 'R', got the end"},
        {"I1!I1!R1!", "byte 3: expected 'R', got 'I'"},
        {"I1!R1!_0", "byte 6: expected the end, got '_'"},
        {"I1!_0R1!", "byte 3: expected 'R', got '_'"},
        {"I1!R2!", "byte 3: 'R' is longer than the 1 bytes that are left"},
    };
    struct sig_reader inputs, results;
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_fails(err, sig_split(span_str(cases[i].text), &inputs, &results, &err), ST_INVALID,
                     cases[i].why);
    }
    assert_ok(err, sig_split(span_str("I3!_0R1!"), &inputs, &results, &err));
    assert_int_equal(inputs.end - inputs.at, 2);
    assert_true(sig_is_at_end(&results));
    assert_int_equal(sig_split(span_of("", SIG_BYTES_MAX + 1), &inputs, &results, NULL),
                     ST_TOO_LARGE);
}

static void check_spelling(const char *text, const char *canonical)
{
    struct error err;
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    assert_ok(err, respell(span_str(text), &out, &err));
    if (!span_is(buf_span(&out), canonical)) {
        fail_msg("%s became %.*s", text, SPAN_FMT(buf_span(&out)));
    }
    buf_fini(&out);
}

static void test_spelling(void **state)
{
    (void)state;
    check_spelling("_007", "_7");
    check_spelling("_-0", "_0");
    check_spelling("z-00012", "z-12");
    check_spelling("A0003!xy", "A3!xy");
    check_spelling("a9223372036854775807b-9223372036854775808",
                   "a9223372036854775807b-9223372036854775808");
    check_spelling("A10!123456789A11!1234567890", "A10!123456789A11!1234567890");
}

static void add_random_component(struct buf *out)
{
    if (random_below(2)) {
        int64_t value =
            (int64_t)((uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX)) >>
            random_below(64);
        sig_add_integer(out, random_below(9) ? (char)('a' + random_below(26)) : '_', value);
        return;
    }
    uint8_t content[120];
    size_t len = random_below(sizeof(content));
    for (size_t i = 0; i < len; i++) {
        content[i] = (uint8_t)random_below(256);
    }
    sig_add_span(out, (char)('A' + random_below(26)), span_of(content, len));
}

static void test_random(void **state)
{
    struct buf text, again;
    struct error err;
    (void)state;
    buf_init(&text, TEXT_BYTES_MAX);
    buf_init(&again, TEXT_BYTES_MAX);
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        buf_reset(&text);
        buf_reset(&again);
        for (uint32_t count = random_below(8); count > 0; count--) {
            add_random_component(&text);
        }
        struct span exact = exact_copy(buf_span(&text));
        assert_ok(err, respell(exact, &again, &err));
        assert_true(span_equal(exact, buf_span(&again)));
        exact_free(exact);

        damage(&text);
        exact = exact_copy(buf_span(&text));
        err.text[0] = '\0';
        buf_reset(&again);
        assert_true(respell(exact, &again, &err) == ST_OK || strstr(err.text, "byte ") == err.text);
        exact_free(exact);
    }
    buf_fini(&text);
    buf_fini(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_inside),   cmocka_unit_test(test_split),
        cmocka_unit_test(test_spelling), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
