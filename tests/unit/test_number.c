/* SPDX-License-Identifier: MIT */
/*
 * The oracles are strtof(), strtod() and snprintf() of the C library for values, and whole number
 * arithmetic for the table of powers.
 */
#include "config.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wide.h"
#include "protocol/number.h"
#include "protocol/number_priv.h"
#include "tests/unit/unit.h"

/* A fixed sequence (splitmix64), so that a failure can be repeated. */
static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* A copy on the heap without a terminator, so that a read beyond the end is a read beyond the
 * block. */
static enum number_result parse_f64(const char *text, double *out, size_t *consumed)
{
    size_t len = strlen(text);
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    const uint8_t *at = copy;
    enum number_result result = number_parse_f64(&at, copy + len, out);
    *consumed = (size_t)(at - copy);
    free(copy);
    return result;
}

static bool read_f32(const char *text, float *out)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    return number_read_f32(at, end, out) == end;
}

/* In an array, other bytes follow a number, and the reader looks at several of them at a time. The
 * result must be that of the number alone. */
static void check_float_in_array(const char *text)
{
    static char array[40000];
    size_t len = strlen(text);
    memcpy(array, text, len);
    memcpy(array + len, ",123456789012345678901234567890", 31);
    const uint8_t *start = (const uint8_t *)array, *end = start + len + 31;
    double wide = strtod(text, NULL), got_wide = 0;
    float narrow = strtof(text, NULL), got_narrow = 0;
    const uint8_t *behind_wide = number_read_f64(start, end, &got_wide);
    const uint8_t *behind_narrow = number_read_f32(start, end, &got_narrow);
    if (behind_wide != (isinf(wide) ? NULL : start + len) ||
        (behind_wide && bits_of_f64(got_wide) != bits_of_f64(wide))) {
        fail_msg("'%.80s,' as f64: %a, expected %a", text, got_wide, wide);
    }
    if (behind_narrow != (isinf(narrow) ? NULL : start + len) ||
        (behind_narrow && bits_of_f32(got_narrow) != bits_of_f32(narrow))) {
        fail_msg("'%.80s,' as f32: %a, expected %a", text, (double)got_narrow, (double)narrow);
    }
}

/* Both widths read all of |text| and give the values of the C library. */
static void check_float(const char *text)
{
    check_float_in_array(text);
    double wide = 0, expected_wide = strtod(text, NULL);
    float narrow = 0, expected_narrow = strtof(text, NULL);
    size_t consumed;
    enum number_result result = parse_f64(text, &wide, &consumed);
    if (isinf(expected_wide)) {
        assert_int_equal(result, NUMBER_RANGE);
        assert_int_equal(consumed, 0);
    } else if (result != NUMBER_OK || consumed != strlen(text) ||
               bits_of_f64(wide) != bits_of_f64(expected_wide)) {
        fail_msg("'%.80s' as f64: result %d, %zu bytes, %a, expected %a", text, (int)result,
                 consumed, wide, expected_wide);
    }
    bool is_read = read_f32(text, &narrow);
    if (isinf(expected_narrow) ? is_read
                               : !is_read || bits_of_f32(narrow) != bits_of_f32(expected_narrow)) {
        fail_msg("'%.80s' as f32: %s, %a, expected %a", text, is_read ? "read" : "refused",
                 (double)narrow, (double)expected_narrow);
    }
}

static void test_floats_by_hand(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0e5",
        "1",
        "-1",
        "10",
        "0.1",
        "-0.1",
        "3.14159265358979",
        "1e1",
        "1E+1",
        "1e-1",
        "1e0",
        "1.5e300",
        "1e400",
        "-1e400",
        "1e-400",
        "1e39",
        "1e38",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "179769313486231580793e289",
        "3.4028234663852886e38",
        "3.4028235677973366e38",
        "3.4028235677973365e38",
        "3.4028235677973367e38",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "1.1754943508222875e-38",
        "1.1754942807573643e-38",
        "7.0064923216240854e-46",
        "7.0064923216240853e-46",
        "7.0064923216240862e-46",
        "9007199254740993",
        "9007199254740992",
        "9007199254740993.0000000000000000000000000000000000001",
        "16777217",
        "16777219",
        "16777217.000000000000000000001",
        "0.000000000000000000000000000000000000000000000001",
        "100000000000000000000000000000000000000",
        "123456789012345678901234567890",
        "12345678.12345678",
        "1234567.1234567",
        "0.12345678",
        "0.123456789",
        "0.1234567890123456789012345",
        "8.5e-323",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "9999999999999999999",
        "922337203685477580.8",
        "18446744073709551615",
        "1e22",
        "1e23",
        "8.41e21",
        "9.5e-7",
        "1e-7",
        "2.2250738585072012e-308",
        "6.631236846766476e-316",
        "3.237883913302901289588352412501532e-28",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "0.00000000000000000000e99999999999999999999",
        "-0.00000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_float(texts[i]);
    }
}

/* All of the numerals with one digit, and one place or none, which are read apart. */
static void test_short_floats(void **state)
{
    (void)state;
    for (int tenths = 0; tenths < 100; tenths++) {
        char text[8];
        snprintf(text, sizeof(text), "%d.%d", tenths / 10, tenths % 10);
        check_float(text);
        text[1] = '\0';
        check_float(text);
    }
    static const char *const others[] = {"1.,", "1.5.,", "1.e5,", "1e,,", ".5,,", "1..5,", "1./,"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const uint8_t *at = (const uint8_t *)others[i];
        float value;
        const uint8_t *behind = number_read_f32(at, at + strlen(others[i]), &value);
        if (behind != (i == 1 ? at + 3 : NULL)) {
            fail_msg("'%s': read %td bytes", others[i], behind ? behind - at : 0);
        }
    }
}

static void test_floats_at_random(void **state)
{
    (void)state;
    char text[64];
    for (int i = 0; i < 60000; i++) {
        double wide = f64_of_bits(random_u64());
        float narrow = f32_of_bits((uint32_t)random_u64());
        if (isfinite(wide) && isfinite(narrow)) {
            snprintf(text, sizeof(text), "%.*g", (int)(random_u64() % 21) + 1, wide);
            check_float(text);
            snprintf(text, sizeof(text), "%.*g", (int)(random_u64() % 12) + 1, (double)narrow);
            check_float(text);
            snprintf(text, sizeof(text), "%.*f", (int)(random_u64() % 20) + 1,
                     (double)(int64_t)random_u64() * 0x1p-63 * (double)(random_u64() % 1000));
            check_float(text);
        }
        snprintf(text, sizeof(text), "%" PRIu64 "%" PRIu64 "e%d", random_u64() >> i % 64 | 1,
                 random_u64(), (int)(random_u64() % 700) - 360);
        check_float(text);
    }
}

/* Changes the last digit of the mantissa by one, up or down. */
static void nudge(char *text, int by)
{
    char *last = strchr(text, 'e') - 1;
    while (*last == '0' || *last == '.') {
        last--;
    }
    *last = (char)(*last + by); /* not from 0; 9 + 1 is not a digit and is not tried */
}

/* The exact decimal text of the middle between two neighbours, and texts just above and below
 * it. */
static void check_tie(long double middle)
{
    char text[1300], nudged[1300];
    snprintf(text, sizeof(text), "%.1100Le", middle);
    check_float(text);
    memcpy(nudged, text, sizeof(text));
    nudge(nudged, -1);
    check_float(nudged);
    char *e = strchr(text, 'e');
    snprintf(nudged, sizeof(nudged), "%.*s1%s", (int)(e - text), text, e);
    check_float(nudged);
}

/* Texts of at most 19 digits within a few units of a middle of two float32. */
static void test_short_floats_near_ties(void **state)
{
    (void)state;
    char text[64];
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = 0x30000000u + (uint32_t)(random_u64() % 0x1f000000u);
        double middle = ((double)f32_of_bits(bits) + (double)f32_of_bits(bits + 1)) / 2;
        snprintf(text, sizeof(text), "%.*f", 8 + i % 11, middle);
        check_float(text);
    }
}

static void test_floats_at_ties(void **state)
{
    (void)state;
    if (LDBL_MANT_DIG < 64) {
        skip(); /* here a long double cannot hold the middle of two doubles */
    }
    for (int i = 0; i < 300; i++) {
        double wide = fabs(f64_of_bits(random_u64() >> (i % 4 == 0 ? 12 + i % 40 : 0)));
        float narrow = fabsf(f32_of_bits((uint32_t)random_u64() >> (i % 4 == 0 ? 9 + i % 20 : 0)));
        if (isfinite(wide) && wide < DBL_MAX) {
            check_tie(((long double)wide + (long double)nextafter(wide, INFINITY)) / 2);
        }
        if (isfinite(narrow) && narrow < FLT_MAX) {
            check_tie(((long double)narrow + (long double)nextafterf(narrow, INFINITY)) / 2);
        }
    }
    check_tie(((long double)DBL_MAX + ldexpl(1, 1024)) / 2);
    check_tie(((long double)FLT_MAX + 0x1p128L) / 2);
}

static void test_long_texts(void **state)
{
    (void)state;
    static char text[20010];
    memset(text, '0', 20000);
    text[1] = '.';
    memcpy(text + 19990, "25e19990", 9);
    check_float(text);
    memset(text, '7', 20000);
    memcpy(text + 20000, "e-19999", 8);
    check_float(text);
    memset(text, '9', 20000);
    text[309] = '.';
    text[20000] = '\0';
    check_float(text);
    memset(text + 1, '0', 20000);
    text[0] = '1';
    memcpy(text + 20000, "e-20000", 8);
    check_float(text);
}

static void test_malformed_floats(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    "-",  "+1",  ".5",   "-.5", "1.",   "1.e5",  "1e",       "1e+",      "1e-",
        "00",  "01", "-01", "0x10", "nan", "inf",  "-NaN",  "Infinit",  "NA",       "e5",
        "--1", "a",  "- 1", "1.-5", "-e1", "1e+-", "\"1\"", "-Infinit", "infinity",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double value = 42;
        size_t consumed;
        enum number_result result = parse_f64(texts[i], &value, &consumed);
        bool is_zero_first =
            strcmp(texts[i], "0x10") == 0; /* reads "0" and leaves x to the caller */
        if (result != (is_zero_first ? NUMBER_OK : NUMBER_SYNTAX) || consumed != is_zero_first) {
            fail_msg("'%s': result %d, %zu bytes", texts[i], (int)result, consumed);
        }
    }
}

static void test_nonfinite(void **state)
{
    (void)state;
    double wide;
    float narrow;
    size_t consumed;
    assert_int_equal(parse_f64("NaN,", &wide, &consumed), NUMBER_OK);
    assert_true(isnan(wide) && consumed == 3);
    assert_int_equal(parse_f64("-Infinity", &wide, &consumed), NUMBER_OK);
    assert_true(wide == -INFINITY && consumed == 9);
    assert_int_equal(parse_f64("Infinity]", &wide, &consumed), NUMBER_OK);
    assert_true(wide == INFINITY && consumed == 8);
    assert_false(read_f32("Infinity", &narrow)); /* only the reader of arrays accepts words */
    assert_false(read_f32("NaN", &narrow));
}

static void test_words(void **state)
{
    (void)state;
    static const char *const none[] = {"", "Na", "nan", "Infinit", "-Infinit", "-NaN", "1", "-"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        double value = 7;
        const uint8_t *at = (const uint8_t *)none[i];
        assert_null(number_read_word(at, at + strlen(none[i]), &value));
        assert_true(value == 7);
    }
    double value = 0;
    const uint8_t *at = (const uint8_t *)"-Infinity,";
    assert_ptr_equal(number_read_word(at, at + 10, &value), at + 9);
    assert_true(value == -INFINITY);
}

static void check_i64(const char *text, enum number_result expected, int64_t value)
{
    const uint8_t *start = (const uint8_t *)text, *at = start;
    int64_t got = 77;
    enum number_result result = number_parse_i64(&at, start + strlen(text), &got);
    if (result != expected || got != (expected == NUMBER_OK ? value : 77) ||
        (expected != NUMBER_OK && at != start)) {
        fail_msg("'%s': result %d, %" PRId64, text, (int)result, got);
    }
}

static void check_u64(const char *text, enum number_result expected, uint64_t value)
{
    const uint8_t *start = (const uint8_t *)text, *at = start;
    uint64_t got = 77;
    enum number_result result = number_parse_u64(&at, start + strlen(text), &got);
    if (result != expected || got != (expected == NUMBER_OK ? value : 77)) {
        fail_msg("'%s': result %d, %" PRIu64, text, (int)result, got);
    }
}

static void test_integers(void **state)
{
    (void)state;
    check_i64("0", NUMBER_OK, 0);
    check_i64("-0", NUMBER_OK, 0);
    check_i64("123,", NUMBER_OK, 123);
    check_i64("9007199254740993", NUMBER_OK, 9007199254740993);
    check_i64("9223372036854775807", NUMBER_OK, INT64_MAX);
    check_i64("-9223372036854775808", NUMBER_OK, INT64_MIN);
    check_i64("9223372036854775808", NUMBER_RANGE, 0);
    check_i64("-9223372036854775809", NUMBER_RANGE, 0);
    check_i64("99999999999999999999999999999999999999999", NUMBER_RANGE, 0);
    check_i64("1.0", NUMBER_NOT_INTEGER, 0);
    check_i64("1e3", NUMBER_NOT_INTEGER, 0);
    check_i64("1.", NUMBER_SYNTAX, 0);
    check_i64("01", NUMBER_SYNTAX, 0);
    check_i64("-", NUMBER_SYNTAX, 0);
    check_i64("", NUMBER_SYNTAX, 0);
    check_i64("NaN", NUMBER_SYNTAX, 0);
    check_i64("+1", NUMBER_SYNTAX, 0);
    check_u64("18446744073709551615", NUMBER_OK, UINT64_MAX);
    check_u64("18446744073709551616", NUMBER_RANGE, 0);
    check_u64("-0", NUMBER_OK, 0);
    check_u64("-1", NUMBER_RANGE, 0);
}

/* The text is the shortest: no text with fewer significant digits reads back to the same float. */
static int digits_needed_f32(float value)
{
    char text[64];
    for (int digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, (double)value);
        if (strtof(text, NULL) == value) {
            return digits;
        }
    }
    return 9;
}

static int digits_needed_f64(double value)
{
    char text[64];
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value) {
            return digits;
        }
    }
    return 17;
}

/* The number of significant digits in printed text: without sign, point, exponent and outer
 * zeros. */
static int digits_printed(const char *text)
{
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0') {
            zeros += count > 0;
        } else if (*text != '.' && *text != '-') {
            count += zeros + 1;
            zeros = 0;
        }
    }
    return count;
}

static void check_print_f32(uint32_t bits)
{
    float value = f32_of_bits(bits);
    if (!isfinite(value)) {
        return;
    }
    char text[NUMBER_TEXT_MAX + 1];
    size_t len = number_print_f32((uint8_t *)text, value, NUMBER_NAN_STRING);
    assert_true(len <= NUMBER_TEXT_MAX);
    text[len] = '\0';
    if (bits_of_f32(strtof(text, NULL)) != bits ||
        (value != 0 && digits_printed(text) > digits_needed_f32(value))) {
        fail_msg("%a is printed as '%s'", (double)value, text);
    }
}

static void check_print_f64(uint64_t bits)
{
    double value = f64_of_bits(bits);
    if (!isfinite(value)) {
        return;
    }
    char text[NUMBER_TEXT_MAX + 1];
    size_t len = number_print_f64((uint8_t *)text, value, NUMBER_NAN_STRING);
    assert_true(len <= NUMBER_TEXT_MAX);
    text[len] = '\0';
    if (bits_of_f64(strtod(text, NULL)) != bits ||
        (value != 0 && digits_printed(text) > digits_needed_f64(value))) {
        fail_msg("%a is printed as '%s'", value, text);
    }
}

/* Halves, quarters and eighths, across the bound up to which they are printed as they are. */
static void test_print_eighths(void **state)
{
    (void)state;
    for (uint32_t eighths = 1; eighths < 1 << 21; eighths += eighths < 4096 ? 1 : 37) {
        check_print_f32(bits_of_f32((float)eighths / 8));
        check_print_f32(bits_of_f32(-(float)eighths / 8));
        check_print_f64(bits_of_f64((double)eighths / 8));
        check_print_f64(bits_of_f64((double)eighths / 64));
    }
}

static void test_print_shortest(void **state)
{
    (void)state;
    for (int i = 0; i < 30000; i++) {
        check_print_f32((uint32_t)random_u64());
        check_print_f64(random_u64());
        check_print_f64(bits_of_f64((double)(random_u64() % 100000) / 1000));
    }
    for (uint32_t field = 0; field < 255; field++) {
        check_print_f32(field << 23);
        check_print_f32((field << 23) + 1);
        check_print_f32((field << 23) - 1);
    }
    for (uint64_t field = 0; field < 2047; field++) {
        check_print_f64(field << 52);
        check_print_f64((field << 52) + 1);
        check_print_f64((field << 52) - 1);
    }
}

static void test_print_form(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {100, "100.0"},
        {123456789, "123456789.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e16"},
        {1.25e16, "1.25e16"},
        {0.00001, "0.00001"},
        {0.000001, "1e-6"},
        {1.5e-7, "1.5e-7"},
        {5e-324, "5e-324"},
        {DBL_MAX, "1.7976931348623157e308"},
        {9007199254740992, "9007199254740992.0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[NUMBER_TEXT_MAX + 1];
        text[number_print_f64((uint8_t *)text, cases[i].value, NUMBER_NAN_STRING)] = '\0';
        assert_string_equal(text, cases[i].text);
    }
    char text[NUMBER_TEXT_MAX + 1];
    text[number_print_f32((uint8_t *)text, 0.1f, NUMBER_NAN_STRING)] = '\0';
    assert_string_equal(text, "0.1");
    text[number_print_f32((uint8_t *)text, -FLT_MAX, NUMBER_NAN_STRING)] = '\0';
    assert_string_equal(text, "-3.4028235e38");
}

/* The text is strict JSON unless the caller asks for bare words. */
static void test_print_nonfinite(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *texts[3]; /* by enum number_nan */
    } cases[] = {
        {NAN, {"\"NaN\"", "NaN", "null"}},
        {-NAN, {"\"NaN\"", "NaN", "null"}},
        {INFINITY, {"\"Infinity\"", "Infinity", "null"}},
        {-INFINITY, {"\"-Infinity\"", "-Infinity", "null"}},
        {1, {"1.0", "1.0", "1.0"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int nan = 0; nan < 3; nan++) {
            char text[NUMBER_TEXT_MAX + 1];
            enum number_nan form = (enum number_nan)nan;
            text[number_print_f64((uint8_t *)text, cases[i].value, form)] = '\0';
            assert_string_equal(text, cases[i].texts[nan]);
            text[number_print_f32((uint8_t *)text, (float)cases[i].value, form)] = '\0';
            assert_string_equal(text, cases[i].texts[nan]);
        }
    }
}

static void test_print_integers(void **state)
{
    (void)state;
    char text[NUMBER_TEXT_MAX + 1], expected[NUMBER_TEXT_MAX + 1];
    for (int i = 0; i < 10000; i++) {
        uint64_t value = i < 65 ? ((uint64_t)1 << i % 64) - (i < 64) : random_u64() >> i % 64;
        text[number_print_u64((uint8_t *)text, value)] = '\0';
        snprintf(expected, sizeof(expected), "%" PRIu64, value);
        assert_string_equal(text, expected);
        text[number_print_i64((uint8_t *)text, (int64_t)value)] = '\0';
        snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)value);
        assert_string_equal(text, expected);
    }
    text[number_print_i64((uint8_t *)text, INT64_MIN)] = '\0';
    assert_string_equal(text, "-9223372036854775808");
}

static void test_half(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        bool is_nan16 = (bits & 0x7fff) > 0x7c00, is_nan_brain = (bits & 0x7fff) > 0x7f80;
        float half = number_from_f16((uint16_t)bits), brain = number_from_bf16((uint16_t)bits);
        assert_int_equal(isnan(half) != 0, is_nan16);
        assert_int_equal(isnan(brain) != 0, is_nan_brain);
        if (!is_nan16) {
            assert_int_equal(number_to_f16((double)half), bits);
        }
        if (!is_nan_brain) {
            assert_int_equal(number_to_bf16((double)brain), bits);
        }
    }
    assert_true(isnan(number_from_f16(number_to_f16(NAN))));
    assert_true(isnan(number_from_bf16(number_to_bf16(NAN))));
    assert_int_equal(number_to_f16(65504), 0x7bff);
    assert_int_equal(number_to_f16(65519.999), 0x7bff);
    assert_int_equal(number_to_f16(65520), 0x7c00);
    assert_int_equal(number_to_f16(-1e300), 0xfc00);
    assert_int_equal(number_to_f16(1 + 0x1p-11), 0x3c00);
    assert_int_equal(number_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(number_to_f16(1 + 3 * 0x1p-11), 0x3c02);
    assert_int_equal(number_to_f16(0x1p-25), 0);
    assert_int_equal(number_to_f16(0x1.8p-25), 1);
    assert_int_equal(number_to_bf16((double)FLT_MAX), 0x7f80);
}

/* Big integers for the table; the lowest limb comes first. */
#define LIMBS 48

struct whole {
    uint32_t limbs[LIMBS];
};

static void whole_multiply(struct whole *n, uint32_t factor)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)n->limbs[i] * factor;
        n->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    assert_int_equal(carry, 0);
}

static int whole_bits(const struct whole *n)
{
    for (int i = LIMBS - 1; i >= 0; i--) {
        if (n->limbs[i]) {
            return 32 * i + 32 - __builtin_clz(n->limbs[i]);
        }
    }
    return 0;
}

/* The highest 128 bits of |n| x 2^128. */
static struct pow10 whole_top(const struct whole *n)
{
    struct pow10 top = {0, 0};
    int highest = whole_bits(n) - 1;
    for (int i = 0; i < 128; i++) {
        int bit = highest - i;
        uint64_t is_set = bit >= 0 && (n->limbs[bit / 32] >> bit % 32 & 1);
        *(i < 64 ? &top.high : &top.low) |= is_set << (63 - i % 64);
    }
    return top;
}

/* Checks that |g| x 10^n is at most a power of two and (|g| + 1) x 10^n is above it. */
static void check_reciprocal(struct pow10 g, int n)
{
    struct whole product = {
        {(uint32_t)g.low, (uint32_t)(g.low >> 32), (uint32_t)g.high, (uint32_t)(g.high >> 32)}};
    struct whole ten = {{1}};
    for (int i = 0; i < n; i++) {
        whole_multiply(&product, 10);
        whole_multiply(&ten, 10);
    }
    int bits = whole_bits(&product);
    uint64_t carry = 0;
    for (size_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)product.limbs[i] + ten.limbs[i];
        product.limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    assert_int_equal(whole_bits(&product), bits + 1);
}

static void test_powers_of_ten(void **state)
{
    (void)state;
    struct whole power = {{1}};
    for (int k = 0; k <= POW10_MAX; k++) {
        struct pow10 expected = whole_top(&power), got = number_pow10[k - POW10_MIN];
        assert_int_equal(got.high, expected.high);
        assert_int_equal(got.low, expected.low);
        assert_int_equal(floor_log2_pow10(k), whole_bits(&power) - 1);
        if (k > 0) {
            assert_int_equal(floor_log2_pow10(-k), -whole_bits(&power));
        }
        if (k < POW10_MAX) {
            whole_multiply(&power, 10);
        }
    }
    for (int k = POW10_MIN; k < 0; k++) {
        struct pow10 got = number_pow10[k - POW10_MIN];
        assert_true(got.high >> 63);
        check_reciprocal(got, -k);
    }
}

/* The product as a processor without numbers of 128 bits has it: by (2^64 - 1)^2, by what carries
 * from each part, and beside the other way. */
static void test_wide_products(void **state)
{
    (void)state;
    struct wide_product most = wide_multiply_halves(UINT64_MAX, UINT64_MAX);
    assert_true(most.high == UINT64_MAX - 1 && most.low == 1);
    const uint64_t halves = UINT64_C(0x00000001ffffffff);
    struct wide_product carried = wide_multiply_halves(halves, halves);
    assert_true(carried.high == 3 && carried.low == UINT64_C(0xfffffffc00000001));
    for (int i = 0; i < 100000; i++) {
        uint64_t a = random_u64() >> (i % 64), b = random_u64() >> (i / 64 % 64);
        struct wide_product one = wide_multiply_halves(a, b), other = wide_multiply(a, b);
        assert_true(one.high == other.high && one.low == other.low && one.low == a * b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_powers_of_ten),
        cmocka_unit_test(test_wide_products),
        cmocka_unit_test(test_floats_by_hand),
        cmocka_unit_test(test_short_floats),
        cmocka_unit_test(test_floats_at_random),
        cmocka_unit_test(test_floats_at_ties),
        cmocka_unit_test(test_short_floats_near_ties),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_malformed_floats),
        cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_print_shortest),
        cmocka_unit_test(test_print_eighths),
        cmocka_unit_test(test_print_form),
        cmocka_unit_test(test_print_nonfinite),
        cmocka_unit_test(test_print_integers),
        cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
