/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "server/http/coding.h"

#define PLAIN_BYTES 300000
#define BODY_BYTES_MAX 400000

static struct hal_device *device;
static struct hal_pool *pool;
static uint8_t plain[PLAIN_BYTES];

static int open_pool(void **state)
{
    (void)state;
    struct error err;
    struct hal_device_options options = {.workers = 1};
    for (size_t i = 0; i < PLAIN_BYTES; i++) {
        plain[i] = (uint8_t)(i * i >> 7);
    }
    return hal_device_open("cpu", &options, &device, &err) != ST_OK ||
           hal_pool_new(device, 4 << 20, &pool, &err) != ST_OK;
}

static int close_pool(void **state)
{
    (void)state;
    hal_pool_free(pool);
    hal_device_unref(device);
    return 0;
}

static void there_and_back(void **state)
{
    (void)state;
    for (int coding = CODING_GZIP; coding <= CODING_DEFLATE; coding++) {
        for (size_t len = 0; len <= PLAIN_BYTES; len = len * 3 + 1) {
            struct error err;
            struct buf packed;
            struct body body;
            struct span spans[] = {span_of(plain, len / 3),
                                   span_of(plain + len / 3, len - len / 3)};
            buf_init(&packed, 1 << 20);
            body_init(&body, pool, BODY_BYTES_MAX);
            assert_ok(err, coding_deflate((enum coding)coding, spans, 2, &packed, &err));
            assert_ok(err, coding_inflate((enum coding)coding, buf_span(&packed), &body, &err));
            assert_true(span_equal(body_span(&body), span_of(plain, len)));
            body_reset(&body);
            for (size_t cut = 0; cut < packed.len; cut += packed.len / 7 + 1) {
                assert_int_equal(
                    coding_inflate((enum coding)coding, span_of(packed.ptr, cut), &body, &err),
                    ST_INVALID);
                body_reset(&body);
            }
            buf_add_char(&packed, 'x');
            assert_fails(err, coding_inflate((enum coding)coding, buf_span(&packed), &body, &err),
                         ST_INVALID,
                         coding == CODING_GZIP ? "the body ends in the middle of its gzip data"
                                               : "1 bytes behind the end of the deflate data");
            body_fini(&body);
            buf_fini(&packed);
        }
    }
}

static void other_data(void **state)
{
    (void)state;
    static const uint8_t text[] = "{\"inputs\":[]}";
    struct error err;
    struct body body;
    body_init(&body, pool, BODY_BYTES_MAX);
    assert_fails(err, coding_inflate(CODING_GZIP, span_of(text, sizeof(text) - 1), &body, &err),
                 ST_INVALID, "Content-Encoding: expected gzip data, got others (");
    assert_fails(err, coding_inflate(CODING_DEFLATE, span_of(text, sizeof(text) - 1), &body, &err),
                 ST_INVALID, "Content-Encoding: expected deflate data, got others (");
    body_fini(&body);
}

/* The output of `cat a.gz b.gz`. */
static void gzip_of_several_members(void **state)
{
    (void)state;
    struct error err;
    struct buf packed;
    struct body body;
    struct span half[] = {span_of(plain, PLAIN_BYTES / 2),
                          span_of(plain + PLAIN_BYTES / 2, PLAIN_BYTES - PLAIN_BYTES / 2)};
    buf_init(&packed, 1 << 20);
    body_init(&body, pool, BODY_BYTES_MAX);
    assert_ok(err, coding_deflate(CODING_GZIP, &half[0], 1, &packed, &err));
    assert_ok(err, coding_deflate(CODING_GZIP, &half[1], 1, &packed, &err));
    assert_ok(err, coding_inflate(CODING_GZIP, buf_span(&packed), &body, &err));
    assert_true(span_equal(body_span(&body), span_of(plain, PLAIN_BYTES)));
    body_fini(&body);
    buf_fini(&packed);
}

static void a_bomb_stops_at_the_maximum(void **state)
{
    (void)state;
    struct error err;
    struct buf packed;
    struct body body;
    struct span spans[] = {span_of(plain, PLAIN_BYTES), span_of(plain, PLAIN_BYTES)};
    buf_init(&packed, 1 << 20);
    body_init(&body, pool, BODY_BYTES_MAX);
    assert_ok(err, coding_deflate(CODING_GZIP, spans, 2, &packed, &err));
    assert_fails(err, coding_inflate(CODING_GZIP, buf_span(&packed), &body, &err), ST_TOO_LARGE,
                 "at most 400000");
    assert_true(body.len <= BODY_BYTES_MAX);
    body_fini(&body);
    buf_fini(&packed);
}

static void acceptance(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum coding coding;
    } cases[] = {
        {"", CODING_IDENTITY},
        {"gzip", CODING_GZIP},
        {"GZIP", CODING_GZIP},
        {"deflate", CODING_DEFLATE},
        {"gzip, deflate, br", CODING_GZIP},
        {"x-gzip", CODING_GZIP},
        {"br, zstd", CODING_IDENTITY},
        {"gzip;q=0.5, deflate;q=0.9", CODING_DEFLATE},
        {"gzip;q=0", CODING_IDENTITY},
        {"identity, gzip;q=0.9", CODING_IDENTITY},
        {"gzip ; q=1.0", CODING_GZIP},
        {"gzip;q=2", CODING_IDENTITY},
        {"gzip;q=x", CODING_IDENTITY},
        {"gzip;x", CODING_IDENTITY},
        {",,;,gzip", CODING_GZIP},
        {"*", CODING_IDENTITY},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (coding_accept(span_str(cases[i].value)) != cases[i].coding) {
            fail_msg("'%s' is not %s", cases[i].value, coding_name(cases[i].coding));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(other_data),
        cmocka_unit_test(gzip_of_several_members),
        cmocka_unit_test(a_bomb_stops_at_the_maximum),
        cmocka_unit_test(acceptance),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
