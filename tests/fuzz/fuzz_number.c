/* SPDX-License-Identifier: MIT */
/* Any bytes as a number: floats are equal to those of the C library for the same token, integers
 * agree with each other, and accepted numbers read back after printing. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/number.h"

#define TOKEN_BYTES_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_f64(const char *token, const uint8_t *data, size_t size)
{
    double value, again, expected = strtod(token, NULL);
    const uint8_t *at = data;
    if (number_parse_f64(&at, data + size, &value) != NUMBER_OK) {
        return;
    }
    must(at > data && at <= data + size);
    must(memcmp(&value, &expected, sizeof(value)) == 0 || (isnan(value) && isnan(expected)));
    uint8_t text[NUMBER_TEXT_MAX];
    const uint8_t *start = text, *end = text + number_print_f64(text, value, NUMBER_NAN_TOKEN);
    must(number_parse_f64(&start, end, &again) == NUMBER_OK && start == end);
    must(memcmp(&value, &again, sizeof(value)) == 0);
}

static void check_f32(const char *token, const uint8_t *data, size_t size)
{
    float value, again, expected = strtof(token, NULL);
    if (!number_read_f32(data, data + size, &value)) {
        return;
    }
    must(memcmp(&value, &expected, sizeof(value)) == 0 || (isnan(value) && isnan(expected)));
    uint8_t text[NUMBER_TEXT_MAX];
    const uint8_t *end = text + number_print_f32(text, value, NUMBER_NAN_TOKEN);
    must(number_read_f32(text, end, &again) == end);
    must(memcmp(&value, &again, sizeof(value)) == 0);
}

static void check_integers(const uint8_t *data, size_t size)
{
    int64_t i;
    uint64_t u;
    const uint8_t *at = data, *other = data;
    enum number_result signed_result = number_parse_i64(&at, data + size, &i);
    enum number_result unsigned_result = number_parse_u64(&other, data + size, &u);
    if (signed_result == NUMBER_OK && i >= 0) {
        must(unsigned_result == NUMBER_OK && u == (uint64_t)i && at == other);
    }
    must((signed_result == NUMBER_SYNTAX) == (unsigned_result == NUMBER_SYNTAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char token[TOKEN_BYTES_MAX];
    size_t len = size < sizeof(token) - 1 ? size : sizeof(token) - 1;
    memcpy(token, data, len);
    token[len] = '\0';
    /* strtod() reads hexadecimal; in this grammar the token is only the leading 0. */
    for (char *c = token; *c; c++) {
        if (*c == 'x' || *c == 'X') {
            *c = '\0';
            break;
        }
    }
    check_f64(token, data, len);
    check_f32(token, data, len);
    check_integers(data, len);
    return 0;
}
