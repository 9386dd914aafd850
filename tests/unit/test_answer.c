/* SPDX-License-Identifier: MIT */
/* Answers for people from numbers of this file: boxes with points, corners and masks, maps, texts,
 * and what a card may say of them. Pictures are looked at before they become files. */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/media/png_write.h"
#include "server/model/answer/answer.h"

#define OUT_BYTES_MAX 65536
#define PIXELS_MAX 65536
#define TENSOR(of, rows, ...)                                                                      \
    tensor_of((of), (const int64_t[]){__VA_ARGS__},                                                \
              sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (rows), sizeof(rows))

static struct buf out;
static const struct answer_form boxes_form = {
    .kind = ANSWER_BOXES,
    .rules = {.form = BOXES_CORNERS,
              .score_least = 0.25,
              .overlap_most = 0.5,
              .count_max = 10,
              .background = -1},
    .scores = ANSWER_NO_INDEX,
    .classes = ANSWER_NO_INDEX,
    .masks = ANSWER_NO_INDEX,
};
static struct span labels[3];

/* ---- in place of libpng ---------------------------------------------------------------------- */

static uint8_t pixels[PIXELS_MAX], colors[PNG_COLOR_COUNT_MAX][4];
static struct png_picture picture; /* the last one that became a file */
static unsigned picture_count;
static enum status png_status;

enum status __wrap_png_write(const struct png_picture *of, struct buf *file, struct error *err);

enum status __wrap_png_write(const struct png_picture *of, struct buf *file, struct error *err)
{
    size_t count = (size_t)of->height * of->width;
    count = count < sizeof(pixels) ? count : sizeof(pixels);
    memcpy(pixels, of->pixels, count);
    if (of->colors) {
        memcpy(colors, of->colors, 4 * (size_t)of->color_count);
    }
    picture = *of;
    picture_count++;
    if (png_status != ST_OK) {
        return error_set(err, png_status, "no picture");
    }
    buf_add_str(file, "abc"); /* in base64: YWJj */
    return ST_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static struct answer_tensor tensor_of(enum dtype dtype, const int64_t *dims, size_t rank,
                                      const void *numbers, size_t bytes)
{
    struct answer_tensor tensor = {
        .dtype = dtype, .shape = {.rank = (uint32_t)rank}, .bytes = span_of(numbers, bytes)};
    memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
    return tensor;
}

static int set_up(void **state)
{
    (void)state;
    labels[0] = span_str("cat");
    labels[1] = span_str("\"dog\"");
    labels[2] = span_str("_");
    png_status = ST_OK;
    picture_count = 0;
    buf_init(&out, OUT_BYTES_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_fini(&out);
    return 0;
}

static struct answer_source source_of(const struct answer_form *form, struct answer_tensor tensor)
{
    return (struct answer_source){
        .answer = form, .tensor = tensor, .labels = labels, .label_count = 2};
}

static const char *text(void)
{
    buf_add_char(&out, '\0');
    return (const char *)out.ptr;
}

static void expect(const struct answer_source *source, size_t row, const char *wanted)
{
    struct error err;
    out.len = 0;
    assert_ok(err, answer_verify(source, &err));
    assert_ok(err, answer_print(source, row, &out, &err));
    assert_string_equal(text(), wanted);
}

static void expect_refusal(const struct answer_source *source, enum status status, const char *why)
{
    struct error err;
    out.len = 0;
    assert_int_equal(answer_print(source, 0, &out, &err), status);
    assert_string_equal(err.text, why);
}

static void expect_bad_card(const struct answer_source *source, const char *why)
{
    struct error err;
    assert_int_equal(answer_verify(source, &err), ST_INVALID);
    assert_string_equal(err.text, why);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static void boxes_have_labels_and_scores(void **state)
{
    static const float numbers[2][3][6] = {
        {{1, 2, 3, 4, 0.25f, 0.75f}, {10, 20, 30, 40, 0.5f, 0.125f}, {1, 2, 3, 4, 0.125f, 0.0625f}},
        {{0}}};
    struct answer_source source = source_of(&boxes_form, TENSOR(DT_F32, numbers, 2, 3, 6));
    struct answer_form form = boxes_form;
    (void)state;
    form.order = ANSWER_CANDIDATES_FIRST;
    source.answer = &form;
    expect(&source, 0,
           "[{\"label\":\"\\\"dog\\\"\",\"index\":1,\"score\":0.75,\"box\":[1.0,2.0,3.0,4.0]},"
           "{\"label\":\"cat\",\"index\":0,\"score\":0.5,\"box\":[10.0,20.0,30.0,40.0]}]");
    expect(&source, 1, "[]");
    assert_int_equal(answer_score_count(&source), 2);
    assert_int_equal(answer_rows(&source), 2);
    assert_true(answer_has_joined_scores(&form));
    source.label_count = 1; /* a class without a label */
    form.rules.score_least = 0.6;
    expect(&source, 0, "[{\"index\":1,\"score\":0.75,\"box\":[1.0,2.0,3.0,4.0]}]");
}

/* The longer dim has the candidates: here one box of eight features has them last. */
static void candidates_may_be_last(void **state)
{
    static const float numbers[1][5][6] = {{{1, 11, 0, 0, 0, 0},
                                            {2, 12, 0, 0, 0, 0},
                                            {3, 13, 0, 0, 0, 0},
                                            {4, 14, 0, 0, 0, 0},
                                            {0.5f, 0.75f, 0, 0, 0, 0}}};
    struct answer_source source = source_of(&boxes_form, TENSOR(DT_F32, numbers, 1, 5, 6));
    (void)state;
    expect(&source, 0,
           "[{\"label\":\"cat\",\"index\":0,\"score\":0.75,\"box\":[11.0,12.0,13.0,14.0]},"
           "{\"label\":\"cat\",\"index\":0,\"score\":0.5,\"box\":[1.0,2.0,3.0,4.0]}]");
}

/* Halves: 0x3c00 is 1, and a higher exponent by one doubles it. */
static void half_floats_are_read(void **state)
{
    static const uint16_t numbers[1][1][6] = {{{0x3c00, 0x4000, 0x4200, 0x4400, 0x3800, 0x3800}}};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F16, numbers, 1, 1, 6));
    (void)state;
    form.order = ANSWER_CANDIDATES_FIRST;
    form.has_objectness = true; /* 0.5 * 0.5 */
    expect(&source, 0,
           "[{\"label\":\"cat\",\"index\":0,\"score\":0.25,\"box\":[1.0,2.0,3.0,4.0]}]");
    assert_int_equal(answer_score_count(&source), 1);
}

static void scores_and_classes_may_be_results_of_their_own(void **state)
{
    static const float places[1][2][4] = {{{1, 2, 3, 4}, {11, 12, 13, 14}}};
    static const float scores[1][2][2] = {{{0.25f, 0.5f}, {0.75f, 0.125f}}};
    static const int32_t classes[1][2] = {{5, 1}};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F32, places, 1, 2, 4));
    (void)state;
    form.scores = 1;
    source.scores = TENSOR(DT_F32, scores, 1, 2, 2);
    assert_false(answer_has_joined_scores(&form));
    assert_int_equal(answer_score_count(&source), 2);
    expect(&source, 0,
           "[{\"label\":\"cat\",\"index\":0,\"score\":0.75,\"box\":[11.0,12.0,13.0,14.0]},"
           "{\"label\":\"\\\"dog\\\"\",\"index\":1,\"score\":0.5,\"box\":[1.0,2.0,3.0,4.0]}]");
    form.classes = 2;
    source.classes = TENSOR(DT_I32, classes, 1, 2);
    source.scores = tensor_of(DT_F32, (const int64_t[]){1, 2}, 2, scores, 2 * sizeof(float));
    assert_int_equal(answer_score_count(&source), 0);
    expect(&source, 0,
           "[{\"label\":\"\\\"dog\\\"\",\"index\":1,\"score\":0.5,\"box\":[11.0,12.0,13.0,14.0]},"
           "{\"index\":5,\"score\":0.25,\"box\":[1.0,2.0,3.0,4.0]}]");
    source.classes.shape.dims[1] = 1;
    expect_refusal(&source, ST_INVALID, "the results have different numbers of boxes");
    source.classes.shape.dims[1] = 2;
    source.scores.shape.dims[1] = 1;
    expect_refusal(&source, ST_INVALID, "the results have different numbers of boxes");
}

/* ---- where boxes are ------------------------------------------------------------------------- */

/* The model's picture has 50 x 100 pixels; the picture sent is 100 x 200, and turned in the file.
 */
static const struct image_place place = {
    .height = 100, .width = 200, .orientation = 6, .first = {0, 0}, .step = {2, 2}};

static void boxes_are_in_the_picture_that_was_sent(void **state)
{
    static const float numbers[1][1][5] = {{{10, 15, 30, 45, 0.5f}}};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F32, numbers, 1, 1, 5));
    (void)state;
    form.order = ANSWER_CANDIDATES_FIRST;
    form.picture = ANSWER_SHOWN;
    source.pixels[0] = 50;
    source.pixels[1] = 100;
    source.label_count = 0;
    expect(&source, 0,
           "[{\"index\":0,\"score\":0.5,\"box\":[10.0,15.0,30.0,45.0]}]"); /* a tensor */
    source.places = &place;
    source.place_count = 1;
    expect(&source, 0, "[{\"index\":0,\"score\":0.5,\"box\":[20.0,30.0,60.0,90.0]}]");
    form.picture = ANSWER_STORED; /* x is y, and y is 200 - x */
    expect(&source, 0, "[{\"index\":0,\"score\":0.5,\"box\":[30.0,140.0,90.0,180.0]}]");
    form.is_normalized = true; /* of 200 x 100 pixels */
    expect(&source, 0, "[{\"index\":0,\"score\":0.5,\"box\":[0.3,0.7,0.9,0.9]}]");
    form.picture = ANSWER_OF_MODEL;
    expect(&source, 0, "[{\"index\":0,\"score\":0.5,\"box\":[0.1,0.3,0.3,0.9]}]");
}

static void relative_boxes_have_the_model_s_sides(void **state)
{
    static const float numbers[1][1][5] = {{{0.25f, 0.5f, 0.5f, 2, 0.5f}}};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F32, numbers, 1, 1, 5));
    (void)state;
    form.order = ANSWER_CANDIDATES_FIRST;
    form.is_relative = true;
    form.picture = ANSWER_SHOWN;
    source.label_count = 0;
    expect(&source, 0, "[{\"index\":0,\"score\":0.5,\"box\":[0.25,0.5,0.5,2.0]}]"); /* unknown */
    source.pixels[0] = 50;
    source.pixels[1] = 100;
    expect(&source, 0, "[{\"index\":0,\"score\":0.5,\"box\":[25.0,25.0,50.0,100.0]}]");
    source.places = &place;
    source.place_count = 1;
    expect(&source, 0,
           "[{\"index\":0,\"score\":0.5,\"box\":[50.0,50.0,100.0,100.0]}]"); /* to its border */
}

static void points_follow_the_scores(void **state)
{
    static const float numbers[1][1][11] = {{{0, 0, 9, 9, 0.5f, 1, 2, 0.5f, 3, 4, 0.25f}}};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F32, numbers, 1, 1, 11));
    (void)state;
    form.order = ANSWER_CANDIDATES_FIRST;
    form.box_classes = 1;
    form.points = 2;
    form.point_numbers = 3;
    expect(&source, 0,
           "[{\"label\":\"cat\",\"index\":0,\"score\":0.5,\"box\":[0.0,0.0,9.0,9.0],"
           "\"points\":[[1.0,2.0,0.5],[3.0,4.0,0.25]]}]");
    form.points = 3;
    form.point_numbers = 2;
    expect(&source, 0,
           "[{\"label\":\"cat\",\"index\":0,\"score\":0.5,\"box\":[0.0,0.0,9.0,9.0],"
           "\"points\":[[1.0,2.0],[0.5,3.0],[4.0,0.25]]}]");
    form.point_numbers = 3;
    expect_bad_card(&source, "boxes: expected at least 14 numbers of a candidate, got 11");
    form.box_classes = 0;
    expect_bad_card(&source, "boxes: expected class_count, too: 9 numbers follow the scores");
}

/* A quarter turn: 8 x 4 around (20, 10) becomes 4 x 8. The corners go round. */
static void turned_boxes_have_corners(void **state)
{
    static const float numbers[1][1][6] = {{{20, 10, 8, 4, 0.5f, (float)(M_PI / 2)}}};
    static const double wanted[4][2] = {{18, 14}, {22, 14}, {22, 6}, {18, 6}};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F32, numbers, 1, 1, 6));
    struct error err;
    double corners[4][2], sides[4];
    (void)state;
    form.order = ANSWER_CANDIDATES_FIRST;
    form.rules.form = BOXES_CENTER;
    form.box_classes = 1;
    form.has_angle = true;
    assert_ok(err, answer_verify(&source, &err));
    assert_ok(err, answer_print(&source, 0, &out, &err));
    assert_int_equal(sscanf(text(),
                            "[{\"label\":\"cat\",\"index\":0,\"score\":0.5,\"box\":[%lf,%lf,%lf,%lf"
                            "],\"corners\":[[%lf,%lf],[%lf,%lf],[%lf,%lf],[%lf,%lf]]}]",
                            &sides[0], &sides[1], &sides[2], &sides[3], &corners[0][0],
                            &corners[0][1], &corners[1][0], &corners[1][1], &corners[2][0],
                            &corners[2][1], &corners[3][0], &corners[3][1]),
                     12);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(corners[i][0] - wanted[i][0]) < 1e-4);
        assert_true(fabs(corners[i][1] - wanted[i][1]) < 1e-4);
    }
    assert_true(fabs(sides[0] - 18) + fabs(sides[1] - 6) + fabs(sides[2] - 22) +
                    fabs(sides[3] - 14) <
                1e-4);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Two maps of 4 x 4 over a picture of 8 x 8: the left half, and the upper half less 2. */
static const float maps[1][2][4][4] = {
    {{{1, 1, -1, -1}, {1, 1, -1, -1}, {1, 1, -1, -1}, {1, 1, -1, -1}},
     {{-1, -1, -1, -1}, {-1, -1, -1, -1}, {-3, -3, -3, -3}, {-3, -3, -3, -3}}}};
/* The first box takes the first map; the second one nothing. */
static const float masked[1][2][7] = {{{2, 1, 7, 5, 0.75f, 1, 0}, {20, 20, 22, 22, 0.5f, 0, 1}}};

static struct answer_source masks_of(struct answer_form *form)
{
    struct answer_source source = source_of(form, TENSOR(DT_F32, masked, 1, 2, 7));
    form->order = ANSWER_CANDIDATES_FIRST;
    form->box_classes = 1;
    form->masks = 1;
    source.masks = TENSOR(DT_F32, maps, 1, 2, 4, 4);
    source.pixels[0] = source.pixels[1] = 8;
    source.label_count = 0;
    return source;
}

static void a_mask_is_where_the_sum_is_positive(void **state)
{
    struct answer_form form = boxes_form;
    struct answer_source source = masks_of(&form);
    (void)state;
    form.picture = ANSWER_OF_MODEL;
    expect(&source, 0,
           "[{\"index\":0,\"score\":0.75,\"box\":[2.0,1.0,7.0,5.0],\"mask\":{\"png\":\"YWJj\","
           "\"left\":2,"
           "\"top\":1,\"width\":5,\"height\":4}}]");
    assert_int_equal(picture_count, 1); /* the other one has no pixel */
    assert_int_equal(picture.kind, PNG_GRAY);
    assert_int_equal(picture.width, 5);
    assert_int_equal(picture.height, 4);
    for (int i = 0; i < 20; i++) { /* columns 2 and 3 are in the left half */
        assert_int_equal(pixels[i], i % 5 < 2 ? 255 : 0);
    }
    assert_true(answer_work_bytes(&source) >= 8 * 8 + sizeof(maps));
    assert_true(answer_cost(&source) > (1u << 20));
    png_status = ST_EXHAUSTED;
    expect_refusal(&source, ST_EXHAUSTED, "no picture");
}

/* The picture sent is twice as large as the model's: the half is 8 pixels wide. */
static void a_mask_has_the_pixels_of_the_picture_sent(void **state)
{
    static const struct image_place twice = {
        .height = 16, .width = 16, .orientation = 1, .step = {2, 2}};
    struct answer_form form = boxes_form;
    struct answer_source source = masks_of(&form);
    (void)state;
    form.picture = ANSWER_SHOWN;
    source.places = &twice;
    source.place_count = 1;
    expect(&source, 0,
           "[{\"index\":0,\"score\":0.75,\"box\":[4.0,2.0,14.0,10.0],\"mask\":{\"png\":\"YWJj\","
           "\"left\":4,"
           "\"top\":2,\"width\":10,\"height\":8}}]");
    for (int i = 0; i < 80; i++) {
        assert_int_equal(pixels[i], i % 10 < 4 ? 255 : 0);
    }
    form.is_normalized = true; /* the mask still counts pixels */
    expect(&source, 0,
           "[{\"index\":0,\"score\":0.75,\"box\":[0.25,0.125,0.875,0.625],\"mask\":{\"png\":"
           "\"YWJj\",\"left\":4,\"top\":2,\"width\":10,\"height\":8}}]");
}

/* Of boxes with more pixels in all than a row may have, a mask has each second one. */
static void large_masks_are_coarser(void **state)
{
    static const float numbers[1][1][6] = {{{0, 0, 8, 8, 0.75f, 1}}};
    static const float map[1][1][1][1] = {{{{1}}}};
    static const struct image_place large = {
        .height = 3000, .width = 3000, .orientation = 1, .step = {375, 375}};
    struct answer_form form = boxes_form;
    struct answer_source source = masks_of(&form);
    (void)state;
    source.tensor = TENSOR(DT_F32, numbers, 1, 1, 6);
    source.masks = TENSOR(DT_F32, map, 1, 1, 1, 1);
    source.places = &large;
    source.place_count = 1;
    form.picture = ANSWER_SHOWN;
    expect(
        &source, 0,
        "[{\"index\":0,\"score\":0.75,\"box\":[0.0,0.0,3000.0,3000.0],\"mask\":{\"png\":\"YWJj\","
        "\"left\":0,\"top\":0,\"width\":3000,\"height\":3000}}]");
    assert_int_equal(picture.width, 1500);
    assert_int_equal(picture.height, 1500);
}

static void masks_must_fit(void **state)
{
    struct answer_form form = boxes_form;
    struct answer_source source = masks_of(&form);
    (void)state;
    source.masks.dtype = DT_I32;
    expect_bad_card(&source, "masks: expected floats [n, coefficients, height, width], got "
                             "int32[1,2,4,4]");
    source = masks_of(&form);
    source.masks.shape.dims[1] = 3;
    expect_bad_card(&source, "boxes: expected at least 8 numbers of a candidate, got 7");
    source = masks_of(&form);
    source.masks.shape.dims[0] = 2;
    expect_refusal(&source, ST_INVALID, "the results have different numbers of boxes");
    source = masks_of(&form);
    source.pixels[0] = 0; /* the model's picture is not known */
    form.picture = ANSWER_OF_MODEL;
    expect(&source, 0, "[]");
}

/* ---- maps ------------------------------------------------------------------------------------ */

static const struct answer_form map_form = {.kind = ANSWER_MAP};

static void a_map_counts_classes(void **state)
{
    static const uint8_t classes[2][2][3] = {{{0, 1, 1}, {2, 1, 0}}, {{0}}};
    struct answer_source source = source_of(&map_form, TENSOR(DT_U8, classes, 2, 2, 3));
    struct error err;
    (void)state;
    expect(&source, 0,
           "{\"png\":\"YWJj\",\"width\":3,\"height\":2,\"classes\":[{\"label\":\"cat\",\"index\":0,"
           "\"pixels\":2},{\"label\":\"\\\"dog\\\"\",\"index\":1,\"pixels\":3},{\"index\":2,"
           "\"pixels\":1}]}");
    assert_int_equal(picture.kind, PNG_PALETTE);
    assert_memory_equal(pixels, classes[0], 6);
    out.len = 0;
    assert_ok(err, answer_describe(&source, 1, &out, &err));
    assert_string_equal(text(), "{\"width\":3,\"height\":2,\"classes\":[{\"label\":\"cat\","
                                "\"index\":0,\"pixels\":6}]}");
    assert_int_equal(picture_count, 1); /* a terminal gets none */
    out.len = 0;
    assert_ok(err, answer_write(&source, 1, &out, &err));
    assert_string_equal(text(), "abc");
    assert_true(answer_work_bytes(&source) >= 6 * 9);
    png_status = ST_TOO_LARGE;
    expect_refusal(&source, ST_TOO_LARGE, "no picture");
}

/* The colours that PASCAL VOC's development kit has for classes 0 to 4, 20 and 255. */
static void a_map_has_the_colors_of_pascal_voc(void **state)
{
    static const uint8_t classes[1][1][1] = {{{0}}};
    static const struct {
        uint8_t class, color[3];
    } wanted[] = {{0, {0, 0, 0}},   {1, {128, 0, 0}},   {2, {0, 128, 0}},      {3, {128, 128, 0}},
                  {4, {0, 0, 128}}, {20, {0, 64, 128}}, {255, {224, 224, 192}}};
    struct answer_source source = source_of(&map_form, TENSOR(DT_U8, classes, 1, 1, 1));
    struct error err;
    (void)state;
    assert_ok(err, answer_write(&source, 0, &out, &err));
    assert_int_equal(picture.color_count, 256);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_memory_equal(colors[wanted[i].class], wanted[i].color, 3);
        assert_int_equal(colors[wanted[i].class][3], 255);
    }
}

static void a_map_is_laid_over_the_picture_sent(void **state)
{
    static const int64_t classes[1][1][2][2] = {{{{1, 2}, {3, 4}}}};
    /* the model saw the columns 1 to 4 of 6 x 4 pixels */
    static const struct image_place middle = {
        .height = 4, .width = 6, .orientation = 1, .first = {0, 1}, .step = {1, 1}};
    static const uint8_t wanted[4][6] = {
        {0, 1, 1, 2, 2, 0}, {0, 1, 1, 2, 2, 0}, {0, 3, 3, 4, 4, 0}, {0, 3, 3, 4, 4, 0}};
    struct answer_form form = map_form;
    struct answer_source source = source_of(&form, TENSOR(DT_I64, classes, 1, 1, 2, 2));
    (void)state;
    form.picture = ANSWER_SHOWN;
    source.places = &middle;
    source.place_count = 1;
    source.pixels[0] = source.pixels[1] = 4;
    source.label_count = 0;
    expect(&source, 0,
           "{\"png\":\"YWJj\",\"width\":6,\"height\":4,\"classes\":[{\"index\":0,\"pixels\":8},"
           "{\"index\":1,\"pixels\":4},{\"index\":2,\"pixels\":4},{\"index\":3,\"pixels\":4},"
           "{\"index\":4,\"pixels\":4}]}");
    assert_memory_equal(pixels, wanted, sizeof(wanted));
    struct image_place large = middle;
    large.height = 5000;
    large.width = 5000;
    source.places = &large;
    expect_refusal(&source, ST_TOO_LARGE,
                   "map: expected a picture of at most 16777216 pixels, got 5000 x 5000");
    assert_true(answer_cost(&source) > 25000000);
}

static void maps_with_other_classes_are_refused(void **state)
{
    static const int32_t below[1][1][1] = {{{-1}}}, above[1][1][1] = {{{256}}};
    static const uint64_t far[1][1][1] = {{{UINT64_MAX}}};
    static const float floats[1][1][1] = {{{0}}};
    struct answer_source source = source_of(&map_form, TENSOR(DT_I32, below, 1, 1, 1));
    (void)state;
    expect_refusal(&source, ST_INVALID, "map: expected classes 0 to 255, got -1");
    source.tensor = TENSOR(DT_I32, above, 1, 1, 1);
    expect_refusal(&source, ST_INVALID, "map: expected classes 0 to 255, got 256");
    source.tensor = TENSOR(DT_U64, far, 1, 1, 1);
    expect_refusal(&source, ST_INVALID, "map: expected classes 0 to 255, got 9223372036854775807");
    source.tensor.shape.dims[2] = 0;
    expect_refusal(&source, ST_INVALID, "map: a picture of that size cannot be written");
    source.tensor = TENSOR(DT_F32, floats, 1, 1, 1);
    expect_bad_card(&source, "map: expected floats [n, classes, height, width], or integers [n, "
                             "height, width], got float32[1,1,1]");
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* CTC: equal neighbours are one, unless a blank is between them. */
static void a_text_has_no_repetitions_and_no_blanks(void **state)
{
    static const int64_t steps[2][8] = {{2, 0, 0, 2, 0, 1, 1, 2}, {2, 2, 2, 9, -1, 2, 2, 2}};
    static const struct answer_form form = {.kind = ANSWER_TEXT, .blank = 2};
    struct answer_source source = source_of(&form, TENSOR(DT_I64, steps, 2, 8));
    struct error err;
    (void)state;
    source.label_count = 3;
    expect(&source, 0, "\"catcat\\\"dog\\\"\"");
    expect(&source, 1, "\"\""); /* labels that nobody knows */
    out.len = 0;
    assert_ok(err, answer_write(&source, 0, &out, &err));
    assert_string_equal(text(), "catcat\"dog\"");
    assert_int_equal(answer_cost(&source), sizeof(steps));
    source.label_count = 2;
    expect_bad_card(&source, "text: expected labels, and label 2 to be the blank");
    source.tensor.shape.rank = 1;
    expect_bad_card(&source, "text: expected floats [n, steps, labels], or integers [n, steps], "
                             "got int64[2]");
}

static void a_text_beyond_the_limit_is_refused(void **state)
{
    static const int64_t steps[1][2] = {{0, 1}};
    static const struct answer_form form = {.kind = ANSWER_TEXT, .blank = 2};
    struct answer_source source = source_of(&form, TENSOR(DT_I64, steps, 1, 2));
    struct buf small;
    struct error err;
    (void)state;
    buf_init(&small, 4);
    assert_fails(err, answer_print(&source, 0, &small, &err), ST_TOO_LARGE, "the text is too long");
    buf_fini(&small);
}

/* ---- what a card says ------------------------------------------------------------------------ */

static void a_card_must_fit_the_results(void **state)
{
    static const float floats[12] = {0};
    struct answer_form form = boxes_form;
    struct answer_source source = source_of(&form, TENSOR(DT_F32, floats, 1, 3, 4));
    (void)state;
    expect_bad_card(&source, "boxes: expected [n, candidates, 4 + classes] or the last two the "
                             "other way round, got float32[1,3,4]");
    form.has_objectness = true;
    expect_bad_card(&source, "boxes: expected [n, candidates, 5 + classes] or the last two the "
                             "other way round, got float32[1,3,4]");
    source.tensor.dtype = DT_I32;
    expect_bad_card(&source, "boxes: expected floats, got int32[1,3,4]");
    source.tensor = TENSOR(DT_F32, floats, 1, 4, 3);
    form.has_objectness = false;
    form.scores = 1;
    expect_bad_card(&source, "boxes: expected [n, candidates, 4], got float32[1,4,3]");
    source.tensor = TENSOR(DT_F32, floats, 1, 3, 4);
    source.scores = TENSOR(DT_F32, floats, 3, 4);
    expect_bad_card(&source, "scores: expected floats [n, candidates, classes], got float32[3,4]");
    form.classes = 2;
    source.scores = TENSOR(DT_F32, floats, 1, 3, 4);
    expect_bad_card(&source, "scores: expected floats [n, candidates], got float32[1,3,4]");
    source.scores = TENSOR(DT_F32, floats, 3, 4);
    source.classes = TENSOR(DT_F32, floats, 3, 4);
    expect_bad_card(&source, "classes: expected integers [n, candidates], got float32[3,4]");
    form = (struct answer_form){.kind = ANSWER_CLASSES};
    source.tensor.shape.rank = 0;
    expect_bad_card(&source, "classes: expected scores of classes, got float32[]");
    source.tensor.shape.rank = 2;
    struct error err;
    assert_ok(err, answer_verify(&source, &err));
    form.kind = ANSWER_TENSOR;
    source.tensor.shape.rank = 0;
    assert_ok(err, answer_verify(&source, &err));
    assert_int_equal(answer_score_count(&source), 0);
}

static void parts_of_boxes_are_known(void **state)
{
    struct answer_form form = boxes_form;
    (void)state;
    form.scores = 3;
    form.masks = 5;
    assert_true(answer_has_part(&form, 3));
    assert_false(answer_has_part(&form, 4));
    assert_true(answer_has_part(&form, 5));
    assert_false(answer_has_part(NULL, 3));
    form.kind = ANSWER_MAP;
    assert_false(answer_has_part(&form, 3));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(boxes_have_labels_and_scores),
        TEST(candidates_may_be_last),
        TEST(half_floats_are_read),
        TEST(scores_and_classes_may_be_results_of_their_own),
        TEST(boxes_are_in_the_picture_that_was_sent),
        TEST(relative_boxes_have_the_model_s_sides),
        TEST(points_follow_the_scores),
        TEST(turned_boxes_have_corners),
        TEST(a_mask_is_where_the_sum_is_positive),
        TEST(a_mask_has_the_pixels_of_the_picture_sent),
        TEST(large_masks_are_coarser),
        TEST(masks_must_fit),
        TEST(a_map_counts_classes),
        TEST(a_map_has_the_colors_of_pascal_voc),
        TEST(a_map_is_laid_over_the_picture_sent),
        TEST(maps_with_other_classes_are_refused),
        TEST(a_text_has_no_repetitions_and_no_blanks),
        TEST(a_text_beyond_the_limit_is_refused),
        TEST(a_card_must_fit_the_results),
        TEST(parts_of_boxes_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
