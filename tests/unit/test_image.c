/* SPDX-License-Identifier: MIT */
/* Pictures: files as pixels, compared with those of Pillow, and hostile ones. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/media/image.h"
#include "server/media/png_write.h"
#include "server/media/resize_rows.h"

#define FILE_BYTES_MAX (1 << 16)
#define HEIGHT 19
#define WIDTH 23
#define DAMAGED_COUNT 1500 /* copies of each file */

static const struct image_limits limits = {.pixels_max = 1 << 20};

/* That of tests/unit/images/make.py. */
static const struct image_form form = {
    .resize_height = 24,
    .resize_width = 40,
    .fit = IMAGE_STRETCH,
    .filter = IMAGE_BICUBIC,
    .crop_height = HEIGHT,
    .crop_width = WIDTH,
    .height = HEIGHT,
    .width = WIDTH,
};

static const char *const names[] = {"baseline.jpg",   "progressive_6.jpg", "cmyk_3.jpg",
                                    "palette_5.png",  "alpha_8.png",       "lossy.webp",
                                    "lossless_7.webp"};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

/* The libraries are optional where pted runs. */
static bool has_libraries(void)
{
    struct error err;
    return image_load(&err) == ST_OK;
}

static size_t read_file(const char *name, const char *suffix, uint8_t *out)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/unit/images/%s%s", top ? top : ".", name, suffix);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return len;
}

static enum status decode(struct span file, const struct image_form *how, uint8_t *out, size_t len,
                          struct error *err)
{
    struct image *image;
    *err = (struct error){0};
    TRY(image_open(file, &limits, &image, err));
    enum status status = image_read(image, how, out, len, err);
    image_close(image);
    return status;
}

static void test_files(void **state)
{
    static uint8_t file[FILE_BYTES_MAX], raw[FILE_BYTES_MAX];
    uint8_t out[HEIGHT * WIDTH * 3];
    struct error err;
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (size_t i = 0; i < NAME_COUNT; i++) {
        size_t len = read_file(names[i], "", file);
        assert_int_equal(read_file(names[i], ".raw", raw), sizeof(out));
        assert_int_equal(decode(span_of(file, len), &form, out, sizeof(out), &err), ST_OK);
        assert_memory_equal(out, raw, sizeof(out));
    }
}

/* Damaged bytes, and copies that end too early: pixels or a text, and no byte beyond the file. */
static void test_damaged(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    uint8_t out[HEIGHT * WIDTH * 3];
    uint32_t random = 1;
    struct error err;
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (size_t i = 0; i < NAME_COUNT; i++) {
        size_t len = read_file(names[i], "", file);
        for (int k = 0; k < DAMAGED_COUNT; k++) {
            random = random * 1664525u + 1013904223u;
            size_t cut = k % 4 ? len : (random >> 8) % len;
            uint8_t *copy = malloc(cut + 1);
            assert_non_null(copy);
            memcpy(copy, file, cut);
            for (int n = 0; n < 1 + k % 5 && cut; n++) {
                random = random * 1664525u + 1013904223u;
                copy[(random >> 8) % (k % 3 ? cut : cut < 64 ? cut : 64)] = (uint8_t)random;
            }
            enum status status = decode(span_of(copy, cut), &form, out, sizeof(out), &err);
            assert_true(status == ST_OK || (status == err.code && err.text[0] != '\0'));
            free(copy);
        }
        for (size_t cut = 0; cut < len / 2; cut += 7) {
            assert_int_not_equal(decode(span_of(file, cut), &form, out, sizeof(out), &err), ST_OK);
        }
    }
}

/* A file that lacks its last rows is refused also where a crop needs none of them. */
static void test_cut(void **state)
{
    static const char *const cut_names[] = {"baseline.jpg", "progressive_6.jpg", "cmyk_3.jpg"};
    static const struct image_form whole = {.colors = IMAGE_RGB};
    static const struct image_form part = {.crop_height = 4, .crop_width = 6};
    static uint8_t file[FILE_BYTES_MAX];
    uint8_t all[61 * 47 * 3], few[4 * 6 * 3];
    struct error err;
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (size_t i = 0; i < sizeof(cut_names) / sizeof(cut_names[0]); i++) {
        size_t len = read_file(cut_names[i], "", file);
        for (size_t cut = len / 2; cut <= len; cut++) {
            struct span left = span_of(file, cut);
            enum status status = decode(left, &whole, all, sizeof(all), &err);
            assert_int_equal(decode(left, &part, few, sizeof(few), &err), status);
        }
    }
}

/* What png_write() writes is read again. */
static void test_written(void **state)
{
    uint8_t pixels[5 * 7 * 3], out[5 * 7 * 3];
    const struct png_picture picture = {5, 7, PNG_RGB, pixels, NULL, 0};
    const struct image_form same = {.height = 5, .width = 7};
    struct buf buf;
    struct error err;
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(i * 37);
    }
    buf_init(&buf, 1 << 16);
    assert_int_equal(png_write(&picture, &buf, &err), ST_OK);
    assert_int_equal(decode(buf_span(&buf), &same, out, sizeof(out), &err), ST_OK);
    assert_memory_equal(out, pixels, sizeof(out));
    buf_fini(&buf);
}

static void test_limits(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    const struct image_limits few = {.pixels_max = 1000};
    struct image *image;
    struct error err;
    (void)state;
    size_t len = read_file("palette_5.png", "", file);
    assert_int_equal(image_open(span_of(file, len), &few, &image, &err), ST_TOO_LARGE);
    assert_non_null(strstr(err.text, "at most 1000 pixels, got 47 x 61"));
    memset(file + 16, 0, 4);
    assert_int_equal(image_open(span_of(file, len), &limits, &image, &err), ST_INVALID);
    memset(file + 16, 0xff, 4);
    assert_int_equal(image_open(span_of(file, len), &limits, &image, &err), ST_TOO_LARGE);
    assert_int_equal(image_open(span_str("GIF89a"), &limits, &image, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "expected JPEG, PNG or WebP"));
}

#define LOOP_INPUTS 300
#define LOOP_BYTES ((size_t)4 * LOOP_INPUTS)

/* Rows and columns that are resized with |rows| have the results of the plain loops. The row ends
 * where the memory that may be read ends. */
static void check_loops(const struct resize_rows *rows, struct axis *axis, const uint8_t *pixels)
{
    static uint8_t plain[LOOP_BYTES + RESIZE_ROW_PAD], fast[LOOP_BYTES + RESIZE_ROW_PAD];
    const uint8_t *taps[LOOP_INPUTS];
    if (rows->is_packed) {
        axis_pack(axis, LOOP_INPUTS + RESIZE_ROW_PAD / 4);
        assert_true(axis->is_packed);
    }
    resize_rows_plain.across(axis, pixels, plain);
    rows->across(axis, pixels, fast);
    assert_memory_equal(fast, plain, (size_t)4 * axis->count);
    if (rows->is_packed) {
        memset(axis->blocks, 0, axis->block_count * AXIS_BLOCK_BYTES * ((axis->count + 3) / 4));
        axis_pack(axis, UINT32_MAX);
    }
    for (uint32_t i = 0; i < axis->count; i++) {
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            taps[k] = pixels + k % 7;
        }
        resize_rows_plain.down(axis, i, taps, 100, plain);
        rows->down(axis, i, taps, 100, fast);
        assert_memory_equal(fast, plain, 100);
    }
    for (int is_bgr = 0; is_bgr < 2; is_bgr++) {
        resize_rows_plain.pack(pixels, 77, is_bgr, plain);
        rows->pack(pixels, 77, is_bgr, fast);
        assert_memory_equal(fast, plain, 77 * 3);
    }
}

static void check_axis(const struct resize_rows *rows, const struct axis_task *task)
{
    struct axis axis;
    void *memory = NULL;
    uint8_t *pixels = malloc(LOOP_BYTES + RESIZE_ROW_PAD);
    assert_non_null(pixels);
    assert_int_equal(posix_memalign(&memory, 64, axis_bytes(task)), 0);
    memset(memory, 0, axis_bytes(task));
    for (size_t i = 0; i < LOOP_BYTES + RESIZE_ROW_PAD; i++) {
        pixels[i] = (uint8_t)(i % 97 < 48 ? i * i * 31 >> 3 : i % 2 * 255);
    }
    axis_init(&axis, task, memory);
    check_loops(rows, &axis, pixels);
    free(memory);
    free(pixels);
}

/* Each set of loops that this machine can run has the results of the plain one: smaller, larger,
 * with all counts of taps up to 30, and with all inputs as taps. */
static void test_loops(void **state)
{
    static const struct resize_rows *const sets[] = {
        &resize_rows_plain,
#ifdef PTED_CPU_X86
        &resize_rows_avx2,
        &resize_rows_avx512,
#endif
    };
    static const uint32_t counts[] = {1, 2, 3, 20, 21, 38, 77, 160, 299, 300};
    (void)state;
    for (size_t set = 0; set < sizeof(sets) / sizeof(sets[0]); set++) {
        for (int filter = IMAGE_BOX; filter <= IMAGE_LANCZOS; filter++) {
            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                struct axis_task task = {LOOP_INPUTS - 1,
                                         LOOP_INPUTS - 1,
                                         counts[i],
                                         0,
                                         counts[i] < 299 ? counts[i] : 298,
                                         (enum image_filter)filter,
                                         i % 2};
                if (task.in_count == task.out_count || !resize_rows_is_run(sets[set])) {
                    continue;
                }
                check_axis(sets[set], &task);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),   cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_written), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_loops),   cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
