/* SPDX-License-Identifier: MIT */
/* server/media/without.c, of ../configure --without-media: files are refused, whatever they are,
 * and the reason is said. */
#include "config.h"

#include "server/media/image.h"
#include "server/media/sound.h"
#include "tests/unit/unit.h"

static const char REASON[] = "pictures and sound: this pted was configured --without-media";

static void pictures_are_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct image_limits limits = {.pixels_max = 1 << 20};
    struct image *image = (struct image *)&limits;
    assert_int_equal(image_open(span_str("\x89PNG"), &limits, &image, &err), ST_UNSUPPORTED);
    assert_null(image);
    assert_string_equal(err.text, REASON);
    assert_int_equal(image_load(&err), ST_UNSUPPORTED);
    image_close(NULL);
}

static void sound_is_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct sound_limits limits = {.seconds_max = 1, .channels_max = 1, .rate_max = 48000};
    struct sound *sound = (struct sound *)&limits;
    assert_int_equal(sound_open(span_str("fLaC"), 16000, &limits, &sound, &err), ST_UNSUPPORTED);
    assert_null(sound);
    assert_string_equal(err.text, REASON);
    assert_int_equal(sound_load(&err), ST_UNSUPPORTED);
    sound_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_refused),
        cmocka_unit_test(sound_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
