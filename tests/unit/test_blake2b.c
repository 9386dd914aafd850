/* SPDX-License-Identifier: MIT */
/* Results beside those of Python's hashlib.blake2b(bytes, digest_size=32). */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/blake2b.h"
#include "tests/unit/unit.h"

static void expect(const uint8_t *bytes, size_t len, size_t step, const char *hex)
{
    struct blake2b hash;
    uint8_t out[BLAKE2B_BYTES];
    char text[2 * BLAKE2B_BYTES + 1];
    blake2b_init(&hash);
    for (size_t at = 0; at < len; at += step) {
        blake2b_add(&hash, span_of(bytes + at, step < len - at ? step : len - at));
    }
    blake2b_end(&hash, out);
    for (size_t i = 0; i < sizeof(out); i++) {
        snprintf(text + 2 * i, 3, "%02x", out[i]);
    }
    assert_string_equal(text, hex);
}

static void test_results(void **state)
{
    uint8_t all[256], same[129];
    (void)state;
    for (size_t i = 0; i < sizeof(all); i++) {
        all[i] = (uint8_t)i;
    }
    memset(same, 'a', sizeof(same));
    for (size_t step = 1; step <= 256; step += 51) {
        expect(all, 0, step, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
        expect((const uint8_t *)"abc", 3, step,
               "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
        expect(all, 256, step, "39a7eb9fedc19aabc83425c6755dd90e6f9d0c804964a1f4aaeea3b9fb599835");
        expect(same, 128, step, "ae2aa48507885c4c950fb809b2076f959cde9f8ea6da260d9a3587df33dac450");
        expect(same, 129, step, "2f64744a6de0d2c0b56e64cf6e29a5aaa255010d415d51c75ccc82f73dccd865");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
