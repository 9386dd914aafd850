/* SPDX-License-Identifier: MIT */
/* What trials have proven, in files: it comes back as it was kept, or not at all. */
#include "config.h"

#include "runtime/program/adapt.h"
#include "runtime/program/proven.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/folder.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define BYTES_MAX 4096
#define HEAD 24 /* the format's number, and a digest of the name and the rest */

static char folder[] = "/tmp/pted-test-proven-XXXXXX";
static struct hal_device *device;
static struct hal_pool *pool;
static struct rt_program *program;
static struct rt_method *method;
static uint64_t key;
static char path[sizeof(folder) + 1 + NAME_MAX]; /* of the one file */

static const struct rt_proven some = {
    .rows = 23,
    .first_rows = 8,
    .measured_rows = 20,
    .measure_count = 2,
    .tokens = 3,
    .are_rows_final = true,
    .why_rows = {.code = ST_UNSUPPORTED,
                 .text = "row 4 of a batch of 24 differs from the same call run alone"},
    .tokens_ns = {0, 100, 110, 120},
};

/* The file with that end; returns how many there are. */
static unsigned find(const char *end)
{
    unsigned count = 0;
    DIR *dir = folder_open(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *at = strstr(entry->d_name, end);
        if (at && strcmp(at, end) == 0) {
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            count++;
        }
    }
    closedir(dir);
    return count;
}

static void write_some(void)
{
    struct error err;
    assert_ok(err, rt_proven_write(method, key, &some, &err));
    assert_int_equal(find(".proven"), 1);
    assert_int_equal(find(".new"), 0);
    find(".proven");
}

static int open_all(void **state)
{
    (void)state;
    struct error err;
    const uint64_t settings[] = {1, 2};
    open_two_workers(&device, &pool);
    if (!mkdtemp(folder)) {
        return -1;
    }
    const struct rt_load_options options = {.device = device, .packed_folder = folder};
    program = load_model("digits", &options);
    method = rt_program_default_method(program);
    return rt_proven_find(method, settings, 2, &key, &err);
}

static int close_all(void **state)
{
    (void)state;
    rt_program_unref(program);
    close_two_workers(device, pool);
    while (find(".packed") + find(".proven") > 0) {
        unlink(path);
    }
    return rmdir(folder);
}

static void comes_back(void **state)
{
    (void)state;
    struct rt_proven got;
    struct error err;
    assert_int_equal(rt_proven_read(method, key, &got, &err), ST_NOT_FOUND);
    write_some();
    assert_ok(err, rt_proven_read(method, key, &got, &err));
    assert_int_equal(got.rows, some.rows);
    assert_int_equal(got.first_rows, some.first_rows);
    assert_int_equal(got.measured_rows, some.measured_rows);
    assert_int_equal(got.measure_count, some.measure_count);
    assert_int_equal(got.tokens, some.tokens);
    assert_true(got.are_rows_final && !got.are_tokens_final);
    assert_string_equal(got.why_rows.text, some.why_rows.text);
    assert_memory_equal(got.tokens_ns, some.tokens_ns, sizeof(some.tokens_ns));
    assert_int_equal(rt_proven_read(method, key + 1, &got, &err), ST_NOT_FOUND);
}

/* Whatever decides the result of a trial is a part of the name. */
static void has_its_own_name(void **state)
{
    (void)state;
    struct error err;
    const uint64_t settings[] = {1, 2, 3};
    uint64_t other;
    assert_ok(err, rt_proven_find(method, settings, 2, &other, &err));
    assert_int_equal(other, key);
    assert_ok(err, rt_proven_find(method, settings + 1, 2, &other, &err));
    assert_int_not_equal(other, key);
    const struct rt_load_options plain = {.device = device};
    struct rt_program *unkept = load_model("digits", &plain);
    assert_int_equal(rt_proven_find(rt_program_default_method(unkept), settings, 2, &other, &err),
                     ST_NOT_FOUND);
    rt_program_unref(unkept);
}

static enum status adapt(void *arg, struct rt_method *of, bool is_default, struct error *err)
{
    struct rt_pixels pixels;
    (void)is_default;
    enum status status = rt_adapt_find_pixels(of, 0, &pixels, err);
    pixels.scale = *(const double *)arg;
    return status == ST_OK ? rt_adapt_pixels(of, 0, &pixels, err) : status;
}

static uint64_t key_with_scale(double scale)
{
    struct error err;
    const uint64_t settings[] = {1, 2};
    uint64_t out;
    const struct rt_load_options options = {
        .device = device, .packed_folder = folder, .adapt = adapt, .adapt_arg = &scale};
    struct rt_program *adapted = load_model("digits", &options);
    assert_ok(err, rt_proven_find(rt_program_default_method(adapted), settings, 2, &out, &err));
    rt_program_unref(adapted);
    return out;
}

/* What a card says changes the results, so its proofs are others. */
static void cards_have_their_own(void **state)
{
    (void)state;
    assert_int_equal(key_with_scale(0.5), key_with_scale(0.5));
    assert_int_not_equal(key_with_scale(0.5), key_with_scale(0.25));
    assert_int_not_equal(key_with_scale(0.5), key);
}

static size_t read_file(uint8_t bytes[BYTES_MAX])
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, BYTES_MAX, file);
    fclose(file);
    return len;
}

static void expect_refusal(const uint8_t *bytes, size_t len, const char *why)
{
    struct rt_proven got = {.rows = -1};
    struct error err;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
    assert_int_equal(rt_proven_read(method, key, &got, &err), ST_CORRUPT);
    assert_non_null(strstr(err.text, why));
    assert_int_equal(got.rows, -1);
}

static void damaged_files(void **state)
{
    (void)state;
    uint8_t bytes[BYTES_MAX] = {0};
    struct rt_proven got;
    struct error err;
    write_some();
    size_t len = read_file(bytes);
    assert_true(len > HEAD && len < BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 0x10;
        expect_refusal(bytes, len, i < 8 ? "another format" : "damaged");
        bytes[i] ^= 0x10;
    }
    expect_refusal(bytes, len - 1, "another size");
    expect_refusal(bytes, 0, "another size");
    expect_refusal(bytes, len + 1, "another size");
    write_some(); /* in its place */
    assert_ok(err, rt_proven_read(method, key, &got, &err));
}

/* A file of another program or with other settings, under this one's name. */
static void foreign_files(void **state)
{
    (void)state;
    uint8_t bytes[BYTES_MAX];
    struct error err;
    char own[sizeof(path)];
    write_some();
    snprintf(own, sizeof(own), "%s", path);
    assert_int_equal(unlink(own), 0);
    assert_ok(err, rt_proven_write(method, key + 1, &some, &err));
    assert_int_equal(find(".proven"), 1);
    size_t len = read_file(bytes);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s", own);
    expect_refusal(bytes, len, "made for another program");
}

/* Someone has made the digest right, too: a number by its place behind the head. */
static void values_out_of_bounds(void **state)
{
    static const struct {
        size_t place;
        uint64_t value;
    } all[] = {{0, 0},  {0, 65}, {0, UINT64_MAX}, {0, 7}, {1, 0}, {1, 24}, {1, 1ull << 63}, {2, 0},
               {2, 24}, {3, 17}, {4, 0},          {4, 9}, {5, 0}, {5, 3},  {5, 4}};
    (void)state;
    uint8_t bytes[BYTES_MAX], changed[BYTES_MAX];
    write_some();
    size_t len = read_file(bytes);
    for (size_t i = 0; i <= sizeof(all) / sizeof(all[0]); i++) {
        struct digest digest;
        memcpy(changed, bytes, len);
        if (i < sizeof(all) / sizeof(all[0])) {
            memcpy(changed + HEAD + all[i].place * 8, &all[i].value, 8);
        } else {
            memset(changed + len - 2 * ERROR_TEXT_MAX, 'x', ERROR_TEXT_MAX); /* a text has no end */
        }
        digest_init(&digest);
        digest_add_text(&digest, strrchr(path, '/') + 1);
        digest_add(&digest, span_of(changed + HEAD, len - HEAD));
        digest_end(&digest, (uint64_t *)(void *)(changed + 8));
        expect_refusal(changed, len, "out of bounds");
    }
}

static void files_of_others(void **state)
{
    (void)state;
    struct rt_proven got;
    struct error err;
    write_some();
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(rt_proven_read(method, key, &got, &err), ST_CORRUPT);
    assert_non_null(strstr(err.text, "only its owner"));
    write_some();
    assert_ok(err, rt_proven_read(method, key, &got, &err));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_int_equal(rt_proven_read(method, key, &got, &err), ST_CORRUPT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rt_proven_read(method, key, &got, &err), ST_CORRUPT);
    write_some();
}

/* A process was killed while it wrote: the next one removes its file. */
static void files_that_are_left(void **state)
{
    (void)state;
    char left[sizeof(path) + 16];
    write_some();
    snprintf(left, sizeof(left), "%s.1.0.new", path);
    int fd = open(left, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    write_some();
    assert_int_equal(access(left, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),           cmocka_unit_test(has_its_own_name),
        cmocka_unit_test(cards_have_their_own), cmocka_unit_test(damaged_files),
        cmocka_unit_test(foreign_files),        cmocka_unit_test(files_of_others),
        cmocka_unit_test(values_out_of_bounds), cmocka_unit_test(files_that_are_left),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
