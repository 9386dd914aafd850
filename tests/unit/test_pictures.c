/* SPDX-License-Identifier: MIT */
/* Pictures: files as pixels, with the bytes that Pillow gets (contrib/export/pictures.py), and the
 * limits of hostile ones. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/media/image.h"
#include "server/media/png_write.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define PIXELS_MAX ((uint64_t)1 << 20)
#define DAMAGED_COUNT 400 /* copies of each file */

static const struct image_limits limits = {.pixels_max = PIXELS_MAX};

struct row {
    const char *name;
    struct image_form form;
    uint32_t height, width;
};

static const struct row rows[] = {
#define X(file_name, h, w, how, kind, crop_h, crop_w, order, out_h, out_w)                         \
    {(file_name),                                                                                  \
     {.resize_height = (h),                                                                        \
      .resize_width = (w),                                                                         \
      .fit = IMAGE_##how,                                                                          \
      .filter = IMAGE_##kind,                                                                      \
      .crop_height = (crop_h),                                                                     \
      .crop_width = (crop_w),                                                                      \
      .colors = IMAGE_##order},                                                                    \
     (out_h),                                                                                      \
     (out_w)},
#include "tests/media/pictures.def"
#undef X
};

static uint8_t file[FILE_BYTES_MAX], expected[FILE_BYTES_MAX], pixels[FILE_BYTES_MAX];

static size_t read_file(const char *folder, const char *name, uint8_t *out)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/%s/%s", top ? top : ".", folder, name);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t len = fread(out, 1, FILE_BYTES_MAX, stream);
    fclose(stream);
    return len;
}

/* The libraries are optional where pted runs. */
static void need_libraries(void)
{
    struct error err;
    if (image_load(&err) != ST_OK) {
        print_message("%s\n", err.text);
        skip();
    }
}

/* ---- the bytes of Pillow --------------------------------------------------------------------- */

/* The first byte that differs fails the test. */
static void compare(const struct row *row, size_t number, const uint8_t *wanted, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (pixels[i] != wanted[i]) {
            fail_msg("case %zu, %s: byte %zu of %zu is %u, expected %u", number, row->name, i, len,
                     pixels[i], wanted[i]);
        }
    }
}

static size_t check_row(const struct row *row, size_t number, const uint8_t *wanted)
{
    struct image *image;
    struct error err;
    uint32_t height, width;
    size_t file_len = read_file("fuzz/corpus/image", row->name, file);
    assert_ok(err, image_open(span_of(file, file_len), &limits, &image, &err));
    assert_ok(err, image_size(image, &row->form, &height, &width, &err));
    assert_int_equal(height, row->height);
    assert_int_equal(width, row->width);
    size_t len = (size_t)height * width * image_form_channels(&row->form);
    memset(pixels, 0xa5, len + 64);
    assert_ok(err, image_read(image, &row->form, pixels, len, &err));
    compare(row, number, wanted, len);
    for (size_t i = len; i < len + 64; i++) {
        assert_int_equal(pixels[i], 0xa5);
    }
    image_close(image);
    return len;
}

static void test_pixels_are_those_of_pillow(void **state)
{
    (void)state;
    need_libraries();
    size_t at = 0, len = read_file("media", "pictures.bin", expected);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        at += check_row(&rows[i], i, expected + at);
    }
    assert_int_equal(at, len);
}

static void test_crop_is_filled_with_the_colour(void **state)
{
    struct image *image;
    struct error err;
    struct image_form form = {.crop_height = 20, .crop_width = 25, .fill = {1, 2, 3}};
    (void)state;
    need_libraries();
    size_t len = read_file("fuzz/corpus/image", "rgb.png", file);
    assert_ok(err, image_open(span_of(file, len), &limits, &image, &err));
    assert_ok(err, image_read(image, &form, pixels, 20 * 25 * 3, &err));
    const uint8_t fill[6] = {1, 2, 3, 1, 2, 3};
    assert_memory_equal(pixels, fill, 6);
    assert_memory_equal(pixels + (20 * 25 - 2) * 3, fill, 6);
    image_close(image);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void put_be32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void check_png_size(uint32_t height, uint32_t width, enum status status, const char *text)
{
    struct image *image;
    struct error err;
    size_t len = read_file("fuzz/corpus/image", "rgb.png", file);
    put_be32(file + 16, width);
    put_be32(file + 20, height);
    assert_fails(err, image_open(span_of(file, len), &limits, &image, &err), status, text);
    assert_null(image);
}

static void test_sizes_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    check_png_size(1, (uint32_t)PIXELS_MAX, ST_TOO_LARGE, "at most 65535 pixels a side");
    check_png_size(65500, 65500, ST_TOO_LARGE, "at most 1048576 pixels, got 65500 x 65500");
    check_png_size(1025, 1024, ST_TOO_LARGE, "at most 1048576 pixels");
    check_png_size(UINT32_MAX, UINT32_MAX, ST_TOO_LARGE, "at most");
    check_png_size(0, 5, ST_INVALID, "no pixels");
    check_png_size(5, 0, ST_INVALID, "no pixels");
}

static void check_jpeg_size(const char *name, uint32_t height, uint32_t width, enum status status)
{
    struct image *image;
    struct error err;
    size_t len = read_file("fuzz/corpus/image", name, file), at = 2;
    while (file[at + 1] != 0xc0 && file[at + 1] != 0xc2) {
        at += 2 + ((size_t)file[at + 2] << 8 | file[at + 3]);
        assert_true(at + 9 < len);
    }
    file[at + 5] = (uint8_t)(height >> 8);
    file[at + 6] = (uint8_t)height;
    file[at + 7] = (uint8_t)(width >> 8);
    file[at + 8] = (uint8_t)width;
    assert_int_equal(image_open(span_of(file, len), &limits, &image, &err), status);
    assert_null(image);
}

static void test_sizes_of_jpeg_files_are_checked(void **state)
{
    (void)state;
    check_jpeg_size("base.jpg", 65500, 65500, ST_TOO_LARGE);
    check_jpeg_size("progressive.jpg", 65500, 65500, ST_TOO_LARGE);
    check_jpeg_size("base.jpg", 0, 16, ST_INVALID);
    check_jpeg_size("base.jpg", 16, 0, ST_INVALID);
}

/* Two rows of pixels cost little, however large the picture; libraries may add their own. */
static void test_work_is_bounded(void **state)
{
    const struct image_form form = {.resize_height = 8, .resize_width = 8, .fit = IMAGE_STRETCH};
    const struct image_form wrong = {.height = 7};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct image *image;
        struct error err;
        size_t len = read_file("fuzz/corpus/image", rows[i].name, file);
        assert_ok(err, image_open(span_of(file, len), &limits, &image, &err));
        assert_between(image_work_bytes(image, &form), 1, (size_t)20 << 20);
        assert_true(image_work_bytes(image, &wrong) == SIZE_MAX);
        assert_fails(err, image_read(image, &wrong, pixels, 1, &err), ST_INVALID,
                     "expected a picture that becomes 7 x");
        image_close(image);
    }
}

/* Each beginning of each picture: refused, or, where only its end lacks, read. */
static void test_cut_files_are_refused(void **state)
{
    const struct image_form form = {0};
    (void)state;
    need_libraries();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = read_file("fuzz/corpus/image", rows[i].name, file);
        size_t half = len / 2;
        if (i > 0 && strcmp(rows[i].name, rows[i - 1].name) == 0) {
            continue;
        }
        for (size_t cut = 0; cut <= half; cut++) {
            struct image *image;
            struct error err;
            uint32_t height, width;
            uint8_t *copy = malloc(cut + 1); /* exactly: a sanitizer sees reads beyond */
            assert_non_null(copy);
            memcpy(copy + 1, file, cut);
            enum status status = image_open(span_of(copy + 1, cut), &limits, &image, &err);
            if (status == ST_OK) {
                assert_ok(err, image_size(image, &form, &height, &width, &err));
                status = image_read(image, &form, pixels, (size_t)height * width * 3, &err);
            }
            if (status != ST_INVALID) {
                fail_msg("%s, %zu of %zu bytes: status %d", rows[i].name, cut, len, status);
            }
            image_close(image);
            free(copy);
        }
    }
}

/* Damaged bytes, and copies that end too early: pixels or a text, and no byte beyond the file. */
static void damage(const char *name, uint32_t *random)
{
    const struct image_form form = {.resize_height = 24,
                                    .resize_width = 40,
                                    .fit = IMAGE_STRETCH,
                                    .filter = IMAGE_BICUBIC,
                                    .crop_height = 19,
                                    .crop_width = 23};
    size_t len = read_file("fuzz/corpus/image", name, file);
    for (int k = 0; k < DAMAGED_COUNT; k++) {
        struct image *image;
        struct error err = {0};
        *random = *random * 1664525u + 1013904223u;
        size_t cut = k % 4 ? len : (*random >> 8) % len;
        uint8_t *copy = malloc(cut + 1);
        assert_non_null(copy);
        memcpy(copy + 1, file, cut);
        for (int n = 0; n < 1 + k % 5 && cut; n++) {
            *random = *random * 1664525u + 1013904223u;
            copy[1 + (*random >> 8) % (k % 3 ? cut : cut < 64 ? cut : 64)] = (uint8_t)*random;
        }
        enum status status = image_open(span_of(copy + 1, cut), &limits, &image, &err);
        if (status == ST_OK) {
            status = image_read(image, &form, pixels, (size_t)19 * 23 * 3, &err);
            image_close(image);
        }
        assert_true(status == ST_OK || (status == err.code && err.text[0] != '\0'));
        free(copy);
    }
}

static enum status read_beginning(size_t len, const struct image_form *form)
{
    struct image *image;
    struct error err;
    uint32_t height, width;
    enum status status = image_open(span_of(file, len), &limits, &image, &err);
    if (status == ST_OK) {
        assert_ok(err, image_size(image, form, &height, &width, &err));
        status = image_read(image, form, pixels, (size_t)height * width * 3, &err);
    }
    image_close(image);
    return status;
}

/* A file that lacks its last rows is refused also where a crop needs none of them. */
static void test_cut_files_are_refused_with_crops(void **state)
{
    static const char *const names[] = {"base.jpg", "progressive.jpg", "cmyk.jpg"};
    static const struct image_form whole = {0}, part = {.crop_height = 4, .crop_width = 6};
    (void)state;
    need_libraries();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = read_file("fuzz/corpus/image", names[i], file);
        for (size_t cut = len / 2; cut <= len; cut++) {
            enum status status = read_beginning(cut, &whole);
            assert_int_equal(read_beginning(cut, &part), status);
        }
    }
}

static void test_damaged_files_are_refused_or_read(void **state)
{
    uint32_t random = 1;
    (void)state;
    need_libraries();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0) {
            damage(rows[i].name, &random);
        }
    }
}

static void test_other_formats_are_refused(void **state)
{
    struct image *image;
    struct error err;
    (void)state;
    assert_fails(err, image_open(span_str("GIF89a"), &limits, &image, &err), ST_INVALID,
                 "expected JPEG, PNG or WebP");
}

/* ---- pictures that are written --------------------------------------------------------------- */

static void check_round(enum png_kind kind, const void *from, const uint8_t *colors,
                        uint32_t color_count, const uint8_t *wanted)
{
    const struct image_form form = {0};
    const struct png_picture picture = {.height = 4,
                                        .width = 5,
                                        .kind = kind,
                                        .pixels = from,
                                        .colors = colors,
                                        .color_count = color_count};
    struct image *image;
    struct error err;
    struct buf out;
    buf_init(&out, FILE_BYTES_MAX);
    assert_ok(err, png_write(&picture, &out, &err));
    assert_ok(err, image_open(buf_span(&out), &limits, &image, &err));
    assert_ok(err, image_read(image, &form, pixels, 60, &err));
    assert_memory_equal(pixels, wanted, 60);
    image_close(image);
    buf_fini(&out);
}

static void test_written_pictures_are_read(void **state)
{
    uint8_t rgb[60], rgba[80], gray[20], numbers[20], colors[16], from_gray[60], from_numbers[60];
    (void)state;
    need_libraries();
    for (int i = 0; i < 20; i++) {
        gray[i] = (uint8_t)(13 * i);
        numbers[i] = (uint8_t)(i % 4);
        rgba[4 * i + 3] = (uint8_t)(i % 3);
    }
    for (int i = 0; i < 16; i++) {
        colors[i] = (uint8_t)(16 * i + 3);
    }
    for (int i = 0; i < 60; i++) {
        rgb[i] = (uint8_t)(4 * i + 1);
        rgba[4 * (i / 3) + i % 3] = rgb[i];
        from_gray[i] = gray[i / 3];
        from_numbers[i] = colors[4 * numbers[i / 3] + i % 3];
    }
    check_round(PNG_RGB, rgb, NULL, 0, rgb);
    check_round(PNG_RGBA, rgba, NULL, 0, rgb);
    check_round(PNG_GRAY, gray, NULL, 0, from_gray);
    check_round(PNG_PALETTE, numbers, colors, 4, from_numbers);
}

static void test_wrong_pictures_are_not_written(void **state)
{
    const uint8_t numbers[4] = {0, 1, 2, 1}, colors[8] = {0};
    struct png_picture picture = {2, 2, PNG_PALETTE, numbers, colors, 2};
    struct error err;
    struct buf out;
    (void)state;
    buf_init(&out, FILE_BYTES_MAX);
    assert_int_equal(png_write(&picture, &out, &err), ST_INVALID);
    picture.width = 0;
    assert_int_equal(png_write(&picture, &out, &err), ST_INVALID);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_are_those_of_pillow),
        cmocka_unit_test(test_crop_is_filled_with_the_colour),
        cmocka_unit_test(test_sizes_beyond_the_limits_are_refused),
        cmocka_unit_test(test_sizes_of_jpeg_files_are_checked),
        cmocka_unit_test(test_work_is_bounded),
        cmocka_unit_test(test_cut_files_are_refused),
        cmocka_unit_test(test_cut_files_are_refused_with_crops),
        cmocka_unit_test(test_damaged_files_are_refused_or_read),
        cmocka_unit_test(test_other_formats_are_refused),
        cmocka_unit_test(test_written_pictures_are_read),
        cmocka_unit_test(test_wrong_pictures_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
