/* SPDX-License-Identifier: MIT */
/* The kinds of media: each is a row of cards and a row of how it becomes a tensor, and both say the
 * same. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "runtime/program/program.h"
#include "server/media/format.h"
#include "server/model/intake/medium_priv.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static void check_files(const struct medium_ops *ops)
{
    assert_non_null(ops->read);
    if (!ops->measure) { /* its files may have to be held */
        assert_non_null(ops->hold);
        assert_non_null(ops->length);
        assert_non_null(ops->write);
    }
}

static void check_kind(const struct card_medium *kind)
{
    const struct medium_ops *ops = medium_find_ops(kind);
    assert_ptr_equal(card_find_medium(kind->word), kind);
    assert_non_null(kind->types[0]);
    assert_true(kind->read && kind->apply);
    assert_non_null(ops);
    assert_true(ops->take && ops->bound && ops->compare && ops->print);
    assert_true(ops->is_fixed && ops->shape);
    if (kind->is_text) {
        assert_true(kind->formats == MEDIA_OTHER && !ops->read && !ops->measure && !ops->hold);
    } else {
        assert_ptr_equal(card_find_medium_files(kind->formats), kind);
        check_files(ops);
    }
}

static void test_kinds(void **state)
{
    size_t count = 0;
    (void)state;
    for (; card_medium_at(count); count++) {
        check_kind(card_medium_at(count));
    }
    assert_int_equal(count, 3);
    assert_null(card_find_medium("images"));
    assert_null(card_find_medium(""));
}

/* A file whose format is read is one of a kind that a card can say. */
static void test_formats(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEDIA_FORMATS; i++) {
        enum media_kind kind = media_kind_of((enum media_format)i);
        const struct card_medium *medium = card_find_medium_files(kind);
        assert_int_equal(medium != NULL, kind != MEDIA_OTHER);
        assert_true(!medium || medium->formats == kind);
    }
}

static void check_type(const char *type, const char *word)
{
    const struct card_medium *kind = card_find_medium_type(span_str(type));
    assert_string_equal(kind ? kind->word : "", word);
}

static void test_types(void **state)
{
    (void)state;
    check_type("image/png", "image");
    check_type("IMAGE/webp", "image");
    check_type("image", "");
    check_type("audio/flac", "sound");
    check_type("video/ogg", "sound");
    check_type("application/ogg", "sound");
    check_type("application/oggs", "");
    check_type("application/og", "");
    check_type("Text/Plain", "text");
    check_type("text/html", "");
    check_type("application/json", "");
    assert_null(card_find_medium_type(span_of(NULL, 0)));
}

static void test_lists(void **state)
{
    char text[CARD_MEDIA_TEXT_MAX];
    (void)state;
    assert_string_equal(card_list_media(" or ", false, text), "image, sound or text");
    assert_string_equal(card_list_media(" and ", false, text), "image, sound and text");
    assert_string_equal(card_list_media(" or ", true, text), "a picture, a sound or a text");
}

/* ---- ways and shapes ------------------------------------------------------------------------- */

static struct medium medium_of(const char *word, const struct rt_io *io)
{
    const struct card_medium *kind = card_find_medium(word);
    return (struct medium){.magic = MEDIUM_MAGIC,
                           .kind = kind,
                           .ops = medium_find_ops(kind),
                           .io = io,
                           .item_rank = strcmp(word, "image") == 0 ? 3 : 1};
}

static void test_images(void **state)
{
    const struct rt_io io = {.shape = {.rank = 4, .dims = {8, 64, 96, 3}}, .dynamic_dims = 7};
    struct medium image = medium_of("image", &io);
    struct shape shape;
    struct error err;
    (void)state;
    image.image = (struct medium_image){.sides_max = {64, 96}, .form = {.width = 96}};
    assert_false(medium_is_fixed(&image));
    assert_int_equal(medium_way(&image), MEDIUM_ROWS);
    assert_int_equal(medium_shape_sides(&image, 2, (const uint32_t[]){32, 48}, &shape, &err), 0);
    assert_memory_equal(shape.dims, ((const int64_t[]){2, 32, 48, 3}), 4 * sizeof(int64_t));
    image.image.form.height = 64;
    assert_true(medium_is_fixed(&image));
    assert_int_equal(medium_shape(&image, 8, 0, &shape, &err), ST_OK);
    assert_memory_equal(shape.dims, ((const int64_t[]){8, 64, 96, 3}), 4 * sizeof(int64_t));
    assert_int_equal(medium_shape(&image, 9, 0, &shape, &err), ST_INVALID);
    assert_string_equal(err.text, "expected at most 8 files, got 9");
}

static void test_sounds(void **state)
{
    const struct rt_io io = {.shape = {.rank = 2, .dims = {4, 16000}}, .dynamic_dims = 3};
    struct medium sound = medium_of("sound", &io);
    const struct medium_held held = {.count = 20000};
    struct shape shape;
    struct error err;
    (void)state;
    sound.sound = (struct medium_sound){.rate = 16000, .length_max = 16000};
    assert_int_equal(medium_way(&sound), MEDIUM_LONGEST);
    assert_int_equal(sound.ops->length(&sound, &held), 16000);
    assert_int_equal(medium_shape(&sound, 2, 700, &shape, &err), ST_OK);
    assert_memory_equal(shape.dims, ((const int64_t[]){2, 700}), 2 * sizeof(int64_t));
    sound.sound.length = 8000;
    assert_true(medium_is_fixed(&sound));
    assert_int_equal(medium_way(&sound), MEDIUM_ROWS);
    assert_int_equal(medium_shape(&sound, 2, 0, &shape, &err), ST_OK);
    assert_int_equal(shape.dims[1], 8000);
}

static void test_texts(void **state)
{
    const struct rt_io io = {.shape = {.rank = 2, .dims = {1, 128}}, .dynamic_dims = 2};
    struct medium text = medium_of("text", &io);
    struct shape shape;
    struct error err;
    (void)state;
    assert_int_equal(medium_way(&text), MEDIUM_TEXTS);
    assert_false(medium_is_fixed(&text));
    assert_int_equal(medium_shape(&text, 2, 5, &shape, &err), ST_INVALID);
    assert_string_equal(err.text, "expected 1 text, got 2");
    assert_int_equal(medium_shape(&text, 1, 5, &shape, &err), ST_OK);
    assert_int_equal(shape.dims[1], 5);
}

static void test_alike(void **state)
{
    const struct rt_io io = {.shape = {.rank = 2, .dims = {4, 16000}}, .dynamic_dims = 3};
    struct medium a = medium_of("sound", &io), b = a, image = medium_of("image", &io);
    char what[CARD_MEDIA_TEXT_MAX];
    (void)state;
    a.sound.rate = b.sound.rate = 16000;
    assert_true(medium_is_alike(&a, &b, what));
    b.sound.rate = 8000;
    assert_false(medium_is_alike(&a, &b, what));
    assert_string_equal(what, "rate");
    assert_false(medium_is_alike(&a, &image, what));
    assert_string_equal(what, "image, sound or text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds), cmocka_unit_test(test_formats), cmocka_unit_test(test_types),
        cmocka_unit_test(test_lists), cmocka_unit_test(test_images),  cmocka_unit_test(test_sounds),
        cmocka_unit_test(test_texts), cmocka_unit_test(test_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
