/* SPDX-License-Identifier: MIT */
/* From cards to media, and from files and texts to the numbers that a program gets. Sounds are made
 * here, so their samples are known; ids of tokens are those of the library tokenizers. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/json.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "server/language/generator.h"
#include "server/media/png_write.h"
#include "server/model/card/card.h"
#include "server/model/intake/intake.h"
#include "server/model/intake/medium_priv.h"
#include "tests/unit/call_support.h"

#define PATH_BYTES 4096
#define FILE_BYTES_MAX 65536
#define INPUTS_MAX 3

static const struct document_limits limits = {.bytes_max = CARD_BYTES_MAX,
                                              .values_max = CARD_VALUES_MAX};
static const struct medium_limits file_limits = {
    .image = {.pixels_max = 1000},
    .sound = {.seconds_max = 10, .channels_max = 2, .rate_max = 48000}};

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t bytes_taken, bytes_max;

static bool take(void *user, size_t bytes)
{
    (void)user;
    if (bytes_taken + bytes > bytes_max) {
        return false;
    }
    bytes_taken += bytes;
    return true;
}

static void give(void *user, size_t bytes)
{
    (void)user;
    assert_true(bytes_taken >= bytes);
    bytes_taken -= bytes;
}

static const struct medium_account account = {.take = take, .give = give};

/* ---- what a call gets ------------------------------------------------------------------------ */

static void *input_memory[INPUTS_MAX]; /* of the last call, by raw index */

enum status __wrap_rt_invocation_input(struct rt_invocation *invocation, uint32_t index,
                                       enum dtype dtype, const struct shape *shape, void **out,
                                       struct error *err);
enum status __real_rt_invocation_input(struct rt_invocation *invocation, uint32_t index,
                                       enum dtype dtype, const struct shape *shape, void **out,
                                       struct error *err);

enum status __wrap_rt_invocation_input(struct rt_invocation *invocation, uint32_t index,
                                       enum dtype dtype, const struct shape *shape, void **out,
                                       struct error *err)
{
    enum status status = __real_rt_invocation_input(invocation, index, dtype, shape, out, err);
    assert_true(index < INPUTS_MAX);
    input_memory[index] = *out;
    return status;
}

/* ---- a program with a card ------------------------------------------------------------------- */

static struct hal_device *device;
static struct hal_pool *pool;

struct fixture {
    struct rt_program *program;
    struct card *card;
    struct document document;
    struct rt_method *method;
    struct medium *medium; /* of the input, or NULL */
    char path[PATH_BYTES];
    struct medium_reader reader;
    struct error err;
};

static int open_device(void **state)
{
    (void)state;
    open_two_workers(&device, &pool);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    close_two_workers(device, pool);
    return 0;
}

static enum status open_method(struct fixture *f, const char *model, const char *method,
                               const char *text)
{
    const char *top = getenv("top_srcdir");
    *f = (struct fixture){.card = card_new()};
    f->reader = (struct medium_reader){.limits = &file_limits, .account = &account};
    bytes_taken = 0;
    bytes_max = SIZE_MAX;
    const struct rt_load_options options = {
        .device = device, .precision = PRECISION_FAST, .adapt = card_adapt, .adapt_arg = f->card};
    snprintf(f->path, sizeof(f->path), "%s/tests/models/%s.pte", top ? top : ".", model);
    assert_ok(f->err, document_parse(span_str(text), &limits, &f->document, &f->err));
    TRY(card_read_members(f->card, &f->document, f->document.root, "pted.json", &f->err));
    TRY(rt_load_program(f->path, &options, &f->program, &f->err));
    TRY(card_apply(f->card, f->program, &f->err));
    f->method = rt_program_find_method(f->program, span_str(method));
    assert_non_null(f->method);
    return ST_OK;
}

static enum status open_medium(struct fixture *f, uint32_t input)
{
    const struct card_method *said = card_find_method(f->card, f->method);
    return medium_new(f->method, said ? card_find_io(said, RT_INPUT, input) : NULL, f->path, NULL,
                      &f->medium, &f->err);
}

/* The libraries of files are optional where pted runs. */
static void open_fixture(struct fixture *f, const char *model, const char *method, const char *text)
{
    assert_ok(f->err, open_method(f, model, method, text));
    enum status status = open_medium(f, 0);
    if (status == ST_UNSUPPORTED) {
        print_message("%s\n", f->err.text);
        skip();
    }
    assert_int_equal(status, ST_OK);
    assert_non_null(f->medium);
}

static void close_fixture(struct fixture *f)
{
    medium_unref(f->medium);
    card_free(f->card);
    document_close(&f->document);
    rt_program_unref(f->program);
    assert_int_equal(bytes_taken, 0);
}

static void check_refused(const char *model, const char *method, const char *text,
                          const char *message)
{
    struct fixture f;
    enum status status = open_method(&f, model, method, text);
    if (status == ST_OK) {
        status = open_medium(&f, 0);
    }
    if (status == ST_UNSUPPORTED) {
        skip();
    }
    assert_int_not_equal(status, ST_OK);
    if (!strstr(f.err.text, message)) {
        fail_msg("%s: got '%s', expected '%s' in it", text, f.err.text, message);
    }
    close_fixture(&f);
}

static void check_print(const struct fixture *f, const char *wanted)
{
    struct buf out;
    buf_init(&out, 1000);
    medium_print(f->medium, &out);
    buf_add(&out, "", 1);
    assert_string_equal((const char *)out.ptr, wanted);
    buf_fini(&out);
}

/* ---- sounds ---------------------------------------------------------------------------------- */

static uint8_t file_bytes[FILE_BYTES_MAX];

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* |count| samples of 16 bits, one channel: |first|, |first| + |step| and so on. */
static struct span make_wav(uint32_t rate, uint32_t count, int first, int step)
{
    uint32_t bytes = 2 * count;
    assert_true(44 + bytes <= FILE_BYTES_MAX);
    memcpy(file_bytes, "RIFF----WAVEfmt ----\1\0\1\0--------\2\0\20\0data", 40);
    put_u32(file_bytes + 4, 36 + bytes);
    put_u32(file_bytes + 16, 16);
    put_u32(file_bytes + 24, rate);
    put_u32(file_bytes + 28, 2 * rate);
    put_u32(file_bytes + 40, bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t sample = (uint16_t)(first + step * (int)i);
        file_bytes[44 + 2 * i] = (uint8_t)sample;
        file_bytes[45 + 2 * i] = (uint8_t)(sample >> 8);
    }
    return span_of(file_bytes, 44 + bytes);
}

static void a_sound_is_filled_with_silence_or_cut(void **state)
{
    struct fixture f;
    struct shape shape;
    static float row[1600];
    (void)state;
    open_fixture(&f, "media/model", "second",
                 "{\"methods\": {\"second\": {\"inputs\": [{\"sound\": {\"rate\": 8000, "
                 "\"seconds\": 0.2}}]}}}");
    check_print(&f, "{\"rate\":8000}");
    assert_true(medium_is_fixed(f.medium));
    assert_int_equal(medium_way(f.medium), MEDIUM_ROWS);
    assert_ok(f.err, medium_shape(f.medium, 3, 0, &shape, &f.err));
    assert_int_equal(shape.dims[0], 3);
    assert_int_equal(shape.dims[1], 1600);
    memset(row, 0x55, sizeof(row));
    assert_ok(f.err, medium_read(f.medium, make_wav(8000, 3, -16384, 16384), &f.reader, row,
                                 sizeof(row), &f.err));
    assert_true(row[0] == -0.5f && row[1] == 0 && row[2] == 0.5f);
    for (int i = 3; i < 1600; i++) {
        assert_true(row[i] == 0);
    }
    assert_ok(f.err, medium_read(f.medium, make_wav(8000, 2000, 0, 16), &f.reader, row, sizeof(row),
                                 &f.err));
    for (int i = 0; i < 1600; i++) {
        assert_true(row[i] == (float)i / 2048);
    }
    close_fixture(&f);
}

static void sounds_are_as_long_as_the_longest(void **state)
{
    struct fixture f;
    struct medium_held held[2];
    struct shape shape;
    (void)state;
    open_fixture(&f, "media/model", "sound",
                 "{\"methods\": {\"sound\": {\"inputs\": [{\"sound\": {\"rate\": 8000}}]}}}");
    assert_int_equal(medium_way(f.medium), MEDIUM_LONGEST);
    assert_ok(f.err,
              medium_hold(f.medium, make_wav(8000, 2, 8192, 8192), &f.reader, &held[0], &f.err));
    assert_ok(f.err,
              medium_hold(f.medium, make_wav(8000, 4, -8192, 0), &f.reader, &held[1], &f.err));
    assert_int_equal(held[0].count, 2);
    assert_true(bytes_taken >= 6 * sizeof(float));
    struct rt_invocation *call = begin_call(f.method, pool, NULL, NULL, 0);
    assert_ok(f.err, medium_put_held(f.medium, held, 2, call, &shape, &f.err));
    assert_int_equal(shape.dims[0], 2);
    assert_int_equal(shape.dims[1], 4);
    static const float wanted[] = {0.25f, 0.5f, 0, 0, -0.25f, -0.25f, -0.25f, -0.25f};
    assert_memory_equal(input_memory[0], wanted, sizeof(wanted));
    rt_invocation_free(call);
    medium_drop(&held[0], &f.reader);
    medium_drop(&held[1], &f.reader);
    close_fixture(&f);
}

/* Features of frames: 160 samples each, at 16 kHz; the least are two. */
static void frames_are_counted_for_log_mel(void **state)
{
    struct fixture f;
    struct medium_held held;
    struct shape shape;
    (void)state;
    open_fixture(&f, "media/model", "mel",
                 "{\"methods\": {\"mel\": {\"inputs\": [{\"sound\": {\"features\": "
                 "\"log_mel\"}}]}}}");
    assert_ok(f.err, medium_hold(f.medium, make_wav(16000, 1600, 0, 5), &f.reader, &held, &f.err));
    assert_int_equal(f.medium->ops->length(f.medium, &held), 10);
    struct rt_invocation *call = begin_call(f.method, pool, NULL, NULL, 0);
    assert_ok(f.err, medium_put_held(f.medium, &held, 1, call, &shape, &f.err));
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dims[1], 8);
    assert_int_equal(shape.dims[2], 10);
    rt_invocation_free(call);
    medium_drop(&held, &f.reader);
    assert_ok(f.err, medium_hold(f.medium, make_wav(16000, 10, 0, 5), &f.reader, &held, &f.err));
    assert_int_equal(f.medium->ops->length(f.medium, &held), 2);
    medium_drop(&held, &f.reader);
    close_fixture(&f);
}

static void seconds_make_sounds_of_one_length(void **state)
{
    struct fixture f;
    struct shape shape;
    (void)state;
    open_fixture(&f, "media/model", "sound",
                 "{\"methods\": {\"sound\": {\"inputs\": [{\"sound\": {\"rate\": 8000, "
                 "\"seconds\": 0.0125}}]}}}");
    assert_true(medium_is_fixed(f.medium));
    assert_ok(f.err, medium_shape(f.medium, 1, 0, &shape, &f.err));
    assert_int_equal(shape.dims[1], 100);
    close_fixture(&f);
    check_refused("optimum/speech/model", "encoder",
                  "{\"methods\": {\"encoder\": {\"inputs\": [{\"sound\": {\"features\": "
                  "\"log_mel\", \"seconds\": 1}}]}}}",
                  "sound.seconds: the program takes exactly 200 samples or frames");
    check_refused("media/model", "sound",
                  "{\"methods\": {\"sound\": {\"inputs\": [{\"sound\": {\"rate\": 8000, "
                  "\"seconds\": 3}}]}}}",
                  "seconds: the program takes at most 16000 samples, 3 s have 24000");
    check_refused("media/model", "mel",
                  "{\"methods\": {\"mel\": {\"inputs\": [{\"sound\": {\"features\": \"log_mel\", "
                  "\"rate\": 8000}}]}}}",
                  "rate: expected 16000 for log_mel");
    check_refused("media/model", "picture",
                  "{\"methods\": {\"picture\": {\"inputs\": [{\"sound\": {}}]}}}",
                  "float32[n, samples]");
    check_refused("media/model", "pixels",
                  "{\"methods\": {\"pixels\": {\"inputs\": [{\"sound\": {\"features\": "
                  "\"log_mel\"}}]}}}",
                  "float32[n, bands, frames]");
}

static void sounds_are_hostile(void **state)
{
    struct fixture f;
    struct medium_held held;
    (void)state;
    open_fixture(&f, "media/model", "sound",
                 "{\"methods\": {\"sound\": {\"inputs\": [{\"sound\": {\"rate\": 8000}}]}}}");
    assert_int_equal(medium_hold(f.medium, span_str("no sound"), &f.reader, &held, &f.err),
                     ST_INVALID);
    assert_fails(f.err, medium_hold(f.medium, make_wav(8000, 0, 0, 0), &f.reader, &held, &f.err),
                 ST_INVALID, "expected a sound, got no samples");
    assert_int_equal(medium_hold(f.medium, make_wav(96000, 10, 0, 0), &f.reader, &held, &f.err),
                     ST_TOO_LARGE);
    bytes_max = 100;
    assert_fails(f.err, medium_hold(f.medium, make_wav(8000, 1000, 0, 0), &f.reader, &held, &f.err),
                 ST_EXHAUSTED, "no memory now to read a file, which takes ");
    assert_true(f.reader.wanted >= 4000);
    assert_null(held.values);
    bytes_max = SIZE_MAX;
    f.reader.work = 0;
    f.reader.work_max = 3999;
    assert_int_equal(medium_hold(f.medium, make_wav(8000, 1000, 0, 0), &f.reader, &held, &f.err),
                     ST_WOULD_BE_HEAVY);
    f.reader.work = 0;
    f.reader.work_max = 4000;
    assert_ok(f.err, medium_hold(f.medium, make_wav(8000, 1000, 0, 0), &f.reader, &held, &f.err));
    medium_drop(&held, &f.reader);
    close_fixture(&f);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static struct buf png;

/* A picture of 3 channels: number i of its bytes is i. */
static struct span make_png(struct fixture *f, uint32_t height, uint32_t width)
{
    static uint8_t pixels[4096];
    const struct png_picture picture = {
        .height = height, .width = width, .kind = PNG_RGB, .pixels = pixels};
    assert_true(3 * (size_t)height * width <= sizeof(pixels));
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)i;
    }
    buf_fini(&png);
    buf_init(&png, FILE_BYTES_MAX);
    assert_ok(f->err, png_write(&picture, &png, &f->err));
    return buf_span(&png);
}

#define ALSO(members) PIXELS(", " members)
#define PIXELS(members)                                                                            \
    "{\"methods\": {\"pixels\": {\"inputs\": [{\"image\": {\"layout\": \"nhwc\"" members "}}]}}}"

static void a_picture_becomes_its_pixels(void **state)
{
    struct fixture f;
    struct image_place place;
    uint32_t sides[2];
    uint8_t row[4 * 6 * 3];
    (void)state;
    open_fixture(&f, "media/model", "pixels", PIXELS(""));
    check_print(&f, "{}");
    f.reader.place = &place;
    assert_ok(f.err,
              medium_read(f.medium, make_png(&f, 4, 6), &f.reader, row, sizeof(row), &f.err));
    for (int i = 0; i < 72; i++) {
        assert_int_equal(row[i], i);
    }
    assert_true(place.height == 4 && place.width == 6 && place.step[0] == 1 && place.first[1] == 0);
    assert_fails(f.err, medium_measure(f.medium, make_png(&f, 5, 6), &f.reader, sides, &f.err),
                 ST_INVALID, "at most 4 x 6 (height x width), got one that becomes 5 x 6");
    close_fixture(&f);
}

/* The middle of 8 x 8 pixels. */
static void a_picture_is_cropped(void **state)
{
    struct fixture f;
    struct image_place place;
    uint8_t row[4 * 6 * 3];
    (void)state;
    open_fixture(&f, "media/model", "pixels", ALSO("\"crop\": [4, 6]"));
    check_print(&f, "{\"crop\":[4,6]}");
    f.reader.place = &place;
    assert_ok(f.err,
              medium_read(f.medium, make_png(&f, 8, 8), &f.reader, row, sizeof(row), &f.err));
    for (int y = 0; y < 4; y++) {
        for (int x = 0; x < 18; x++) {
            assert_int_equal(row[18 * y + x], 24 * (y + 2) + x + 3);
        }
    }
    assert_true(place.first[0] == 2 && place.first[1] == 1);
    close_fixture(&f);
}

static void media_are_printed_as_cards_say_them(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, "media/model", "pixels", ALSO("\"resize\": 5, \"crop\": [4, 6]"));
    check_print(&f, "{\"resize\":5,\"fit\":\"shorter\",\"crop\":[4,6]}");
    close_fixture(&f);
    open_fixture(&f, "media/model", "pixels", ALSO("\"resize\": [4, 6], \"fit\": \"letterbox\""));
    check_print(&f, "{\"resize\":[4,6],\"fit\":\"letterbox\"}");
    close_fixture(&f);
}

/* The program takes pictures of several sizes. */
static void pictures_of_a_call_have_one_size(void **state)
{
    struct fixture f;
    uint32_t sides[2], other[2];
    struct shape shape;
    (void)state;
    open_fixture(&f, "media/sizes", "forward",
                 "{\"methods\": {\"forward\": {\"inputs\": [{\"image\": {\"scale\": 1}}]}}}");
    assert_false(medium_is_fixed(f.medium));
    assert_int_equal(medium_way(f.medium), MEDIUM_ROWS);
    assert_ok(f.err, medium_measure(f.medium, make_png(&f, 4, 6), &f.reader, sides, &f.err));
    assert_ok(f.err, medium_measure(f.medium, make_png(&f, 6, 4), &f.reader, other, &f.err));
    assert_true(sides[0] == 4 && sides[1] == 6);
    assert_ok(f.err, medium_compare(f.medium, 0, other, sides, &f.err));
    assert_ok(f.err, medium_compare(f.medium, 1, sides, sides, &f.err));
    assert_fails(f.err, medium_compare(f.medium, 1, other, sides, &f.err), ST_INVALID,
                 "expected a picture that becomes 4 x 6 (height x width), as the first one of the "
                 "call, got one that becomes 6 x 4");
    assert_ok(f.err, medium_shape_sides(f.medium, 2, sides, &shape, &f.err));
    assert_true(shape.dims[0] == 2 && shape.dims[1] == 4 && shape.dims[2] == 6);
    assert_fails(f.err, medium_measure(f.medium, make_png(&f, 4, 60), &f.reader, sides, &f.err),
                 ST_INVALID,
                 "expected a picture that becomes at most 30 x 40 (height x width), got one that "
                 "becomes 4 x 60");
    assert_int_equal(medium_measure(f.medium, span_str("GIF"), &f.reader, sides, &f.err),
                     ST_INVALID);
    close_fixture(&f);
}

static void pictures_are_hostile(void **state)
{
    struct fixture f;
    uint8_t row[4 * 6 * 3];
    (void)state;
    open_fixture(&f, "media/model", "pixels", PIXELS(""));
    struct span file = make_png(&f, 4, 6);
    for (size_t len = 0; len < file.len; len++) { /* one that ends too early */
        int status =
            medium_read(f.medium, span_of(file.ptr, len), &f.reader, row, sizeof(row), &f.err);
        assert_true(status == ST_INVALID || len > file.len - 16);
    }
    f.reader.work_max = 1;
    assert_int_equal(medium_read(f.medium, file, &f.reader, row, sizeof(row), &f.err),
                     ST_WOULD_BE_HEAVY);
    f.reader.work_max = 0;
    bytes_max = 0;
    assert_fails(f.err, medium_read(f.medium, file, &f.reader, row, sizeof(row), &f.err),
                 ST_EXHAUSTED, "no memory now to read a file, which takes ");
    assert_true(f.reader.wanted > 0);
    bytes_max = SIZE_MAX;
    assert_int_equal(medium_read(f.medium, make_png(&f, 4, 300), &f.reader, row, 72, &f.err),
                     ST_TOO_LARGE);
    close_fixture(&f);
}

/* ---- texts ----------------------------------------------------------------------------------- */

#define TEXTS(method, members)                                                                     \
    "{\"methods\": {\"" method "\": {\"inputs\": [{\"text\": {" members "}}]}}}"
#define BESIDE "\"mask\": \"attention_mask\", \"types\": \"token_type_ids\""

/* Ids of the library tokenizers (0.22) for tests/models/encoder/tokenizer.json. */
static const int64_t a_cat[] = {2, 9, 64, 3}, the_dog_sat[] = {2, 48, 96, 83, 3};

static void texts_become_ids_mask_and_types(void **state)
{
    static const bool none_given[MEDIUM_PARTS];
    struct fixture f;
    struct texts_ids ids[2];
    struct shape shape;
    struct arena arena;
    (void)state;
    open_fixture(&f, "encoder/model", "rows", TEXTS("rows", BESIDE));
    check_print(&f, "{\"max_tokens\":12}");
    assert_int_equal(medium_way(f.medium), MEDIUM_TEXTS);
    arena_init(&arena, 1 << 20);
    assert_ok(f.err, medium_encode(f.medium, span_str("a cat"), &arena, &ids[0], &f.err));
    assert_ok(f.err, medium_encode(f.medium, span_str("the dog sat"), &arena, &ids[1], &f.err));
    struct rt_invocation *call = begin_call(f.method, pool, NULL, NULL, 0);
    assert_ok(f.err, medium_put_texts(f.medium, ids, 2, none_given, call, &shape, &f.err));
    assert_true(shape.rank == 2 && shape.dims[0] == 2 && shape.dims[1] == 12);
    const int64_t *got = input_memory[0], *mask = input_memory[1], *types = input_memory[2];
    for (int i = 0; i < 12; i++) {
        assert_int_equal(got[i], i < 4 ? a_cat[i] : 0); /* 0: [PAD] */
        assert_int_equal(got[12 + i], i < 5 ? the_dog_sat[i] : 0);
        assert_int_equal(mask[i], i < 4);
        assert_int_equal(mask[12 + i], i < 5);
        assert_int_equal(types[i] + types[12 + i], 0);
    }
    rt_invocation_free(call);
    arena_fini(&arena);
    close_fixture(&f);
}

/* As long as the text; a caller who has sent a mask keeps it. */
static void a_text_may_have_any_length(void **state)
{
    static const bool has_mask[MEDIUM_PARTS] = {[MEDIUM_MASK] = true};
    struct fixture f;
    struct texts_ids ids;
    struct shape shape;
    struct arena arena;
    (void)state;
    open_fixture(&f, "encoder/model", "forward", TEXTS("forward", BESIDE ", \"max_tokens\": 4"));
    check_print(&f, "{\"max_tokens\":4}");
    arena_init(&arena, 1 << 20);
    assert_ok(f.err, medium_encode(f.medium, span_str("the dog sat"), &arena, &ids, &f.err));
    assert_int_equal(ids.count, 4); /* cut before [SEP], as tokenizers does it */
    assert_int_equal(ids.ids[2], 96);
    assert_int_equal(ids.ids[3], 3);
    struct rt_invocation *call = begin_call(f.method, pool, NULL, NULL, 0);
    memset(input_memory, 0, sizeof(input_memory));
    assert_ok(f.err, medium_put_texts(f.medium, &ids, 1, has_mask, call, &shape, &f.err));
    assert_int_equal(shape.dims[1], 4);
    assert_non_null(input_memory[0]);
    assert_null(input_memory[1]);
    assert_non_null(input_memory[2]);
    rt_invocation_free(call);
    arena_fini(&arena);
    close_fixture(&f);
    open_fixture(&f, "encoder/model", "forward",
                 TEXTS("forward", BESIDE ", \"max_tokens\": 8, \"pad\": true"));
    assert_ok(f.err, medium_shape(f.medium, 1, 3, &shape, &f.err));
    assert_int_equal(shape.dims[1], 8);
    close_fixture(&f);
}

static void texts_must_fit(void **state)
{
    (void)state;
    check_refused("encoder/model", "forward", TEXTS("forward", "\"max_tokens\": 49"),
                  "max_tokens: the program takes at most 48");
    check_refused("encoder/model", "forward", TEXTS("forward", "\"mask\": \"nothing\""),
                  "the program has no such input");
    check_refused("encoder/model", "forward", TEXTS("forward", "\"mask\": \"input_ids\""),
                  "expected another input of the shape of 'input_ids', got 'input_ids'");
    check_refused("encoder/model", "forward",
                  TEXTS("forward", "\"mask\": \"input_1\", \"types\": \"attention_mask\""),
                  "mask and types name the same input");
    check_refused("encoder/model", "forward", TEXTS("forward", "\"tokenizer\": \"nowhere\""), "");
    check_refused("media/model", "sound", TEXTS("sound", ""), "int64[n, tokens]");
    check_refused("found", "forward", TEXTS("forward", "\"pad\": 1"), "pad: expected");
    check_refused("found", "forward", TEXTS("forward", "\"length\": 1"),
                  "unknown member, expected tokenizer, max_tokens, pad, mask or types");
}

/* ---- two media, and pipelines ---------------------------------------------------------------- */

static const char *difference(const char *method, const char *first, const char *second)
{
    static char what[CARD_MEDIA_TEXT_MAX];
    struct fixture a, b;
    open_fixture(&a, "media/model", method, first);
    open_fixture(&b, "media/model", method, second);
    what[0] = '\0';
    assert_true(medium_is_alike(a.medium, a.medium, what));
    bool is_alike = medium_is_alike(a.medium, b.medium, what);
    assert_int_equal(is_alike, what[0] == '\0');
    close_fixture(&b);
    close_fixture(&a);
    return what;
}

#define MEL_OR_NOT(method, members)                                                                \
    "{\"methods\": {\"" method "\": {\"inputs\": [{\"sound\": {" members "}}]}}}"

static void media_differ_in_a_member(void **state)
{
    static const struct {
        const char *a, *b, *what;
    } rows[] = {
        {PIXELS(""), PIXELS(""), ""},
        {ALSO("\"resize\": [4, 6]"), ALSO("\"crop\": [4, 6]"), "resize"},
        {ALSO("\"resize\": [4, 6]"), ALSO("\"resize\": [4, 6], \"fit\": \"letterbox\""), "fit"},
        {ALSO("\"resize\": [4, 6]"), ALSO("\"resize\": [4, 6], \"interpolation\": \"nearest\""),
         "interpolation"},
        {PIXELS(""), ALSO("\"crop\": [4, 6]"), "crop"},
        {ALSO("\"crop\": [4, 6]"), ALSO("\"crop\": [4, 6], \"crop_rounding\": \"down\""),
         "crop_rounding"},
        {ALSO("\"crop\": [4, 6]"), ALSO("\"crop\": [4, 6], \"fill\": 7"), "fill"},
        {PIXELS(""), ALSO("\"draft\": true"), "draft"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(difference("pixels", rows[i].a, rows[i].b), rows[i].what);
    }
    assert_string_equal(difference("sound", MEL_OR_NOT("sound", "\"rate\": 8000"),
                                   MEL_OR_NOT("sound", "\"rate\": 16000")),
                        "rate");
    assert_string_equal(difference("sound", MEL_OR_NOT("sound", "\"rate\": 8000"),
                                   MEL_OR_NOT("sound", "\"rate\": 8000, \"seconds\": 1")),
                        "seconds");
}

static void texts_differ_in_a_member(void **state)
{
    struct fixture a, b;
    char what[CARD_MEDIA_TEXT_MAX];
    (void)state;
    open_fixture(&a, "encoder/model", "forward", TEXTS("forward", BESIDE));
    open_fixture(&b, "encoder/model", "forward", TEXTS("forward", BESIDE));
    assert_true(medium_is_alike(a.medium, b.medium, what));
    b.medium->text.tokens_max = 8;
    assert_false(medium_is_alike(a.medium, b.medium, what));
    assert_string_equal(what, "max_tokens");
    b.medium->text.tokens_max = 48;
    b.medium->text.tokens = 48;
    assert_false(medium_is_alike(a.medium, b.medium, what));
    assert_string_equal(what, "pad");
    b.medium->parts[MEDIUM_TYPES] = 1;
    assert_false(medium_is_alike(a.medium, b.medium, what));
    assert_string_equal(what, "types");
    b.medium->parts[MEDIUM_MASK] = 2;
    assert_false(medium_is_alike(a.medium, b.medium, what));
    assert_string_equal(what, "mask");
    close_fixture(&b);
    close_fixture(&a);
}

/* A pipeline whose input takes less than its step does. */
static void a_relay_takes_what_both_take(void **state)
{
    static const uint32_t parts[MEDIUM_PARTS] = {0, MEDIUM_ABSENT, MEDIUM_ABSENT};
    struct fixture f, outer;
    struct medium *relay;
    (void)state;
    open_fixture(&f, "media/model", "sound", MEL_OR_NOT("sound", "\"rate\": 8000"));
    open_fixture(&outer, "media/model", "second", MEL_OR_NOT("second", "\"rate\": 8000"));
    assert_ok(f.err, medium_relay(f.medium, outer.method, 0, parts, &relay, &f.err));
    medium_unref(f.medium); /* the relay keeps it */
    f.medium = NULL;
    assert_int_equal(relay->sound.length_max, 1600);
    assert_true(medium_is_fixed(relay) == !rt_io_is_dynamic(rt_method_input(outer.method, 0), 1));
    medium_unref(relay);
    close_fixture(&outer);
    close_fixture(&f);
    open_fixture(&f, "encoder/model", "forward", TEXTS("forward", BESIDE));
    open_fixture(&outer, "encoder/model", "rows", TEXTS("rows", BESIDE));
    assert_ok(f.err, medium_relay(f.medium, outer.method, 0, parts, &relay, &f.err));
    assert_int_equal(relay->text.tokens_max, 12);
    assert_int_equal(relay->dtypes[MEDIUM_IDS], DT_I64);
    assert_int_equal(relay->parts[MEDIUM_MASK], MEDIUM_ABSENT);
    medium_unref(relay);
    close_fixture(&outer);
    close_fixture(&f);
}

static void an_input_without_media_has_none(void **state)
{
    struct fixture f;
    (void)state;
    assert_ok(f.err, open_method(&f, "media/model", "sound", "{}"));
    assert_ok(f.err, open_medium(&f, 0));
    assert_null(f.medium);
    close_fixture(&f);
}

/* ---- everything beside a program ------------------------------------------------------------- */

static void kinds_of_methods_are_known(void **state)
{
    struct fixture f;
    (void)state;
    assert_ok(f.err, open_method(&f, "encoder/model", "forward", "{}"));
    assert_string_equal(intake_kind(f.method), "an encoder of texts");
    assert_true(intake_has_tokenizer(f.path));
    close_fixture(&f);
    assert_ok(f.err, open_method(&f, "optimum/text/model", "forward", "{}"));
    assert_string_equal(intake_kind(f.method), "a language model");
    close_fixture(&f);
    assert_ok(f.err, open_method(&f, "add", "forward", "{}"));
    assert_null(intake_kind(f.method));
    assert_false(intake_has_tokenizer(f.path));
    close_fixture(&f);
}

static void what_opens_is_verified(void **state)
{
    struct fixture f;
    struct intake_language language;
    (void)state;
    assert_ok(f.err, open_method(&f, "encoder/model", "forward", TEXTS("forward", BESIDE)));
    assert_ok(f.err, intake_verify(f.method, f.card, f.path, NULL, &f.err));
    assert_ok(f.err, intake_open_language(f.method, f.card, f.path, NULL, &language, &f.err));
    assert_non_null(language.embedder);
    assert_null(language.generator);
    intake_close_language(&language);
    assert_null(language.embedder);
    assert_int_not_equal(intake_verify(f.method, f.card, f.path, "/no/such/tokenizer", &f.err),
                         ST_OK);
    close_fixture(&f);
    assert_ok(f.err, open_method(&f, "add", "forward", "{\"embedding\": {\"pooling\": \"mean\"}}"));
    assert_fails(f.err, intake_verify(f.method, f.card, f.path, NULL, &f.err), ST_INVALID,
                 "method 'forward': ");
    close_fixture(&f);
}

/* A card's settings of answers reach the generator. */
static void a_generator_has_the_card_s_defaults(void **state)
{
    struct fixture f;
    struct intake_language language;
    (void)state;
    assert_ok(f.err, open_method(&f, "optimum/text/model", "forward",
                                 "{\"generation\": {\"temperature\": 0.5, \"top_k\": 7, "
                                 "\"stop_token_ids\": [1, 2]}}"));
    assert_ok(f.err, intake_open_language(f.method, f.card, f.path, NULL, &language, &f.err));
    assert_non_null(language.generator);
    const struct generator *generator = language.generator;
    assert_true(generator->defaults.temperature == 0.5);
    assert_int_equal(generator->defaults.top_k, 7);
    assert_int_equal(generator->end_count, 2); /* its own one is the first */
    assert_int_equal(generator->ends[0], 2);
    assert_int_equal(generator->ends[1], 1);
    intake_close_language(&language);
    close_fixture(&f);
}

static void export_json_is_read(void **state)
{
    struct fixture f;
    struct exported *exported;
    (void)state;
    assert_ok(f.err, open_method(&f, "add", "forward", "{}"));
    assert_ok(f.err, intake_read_exported(f.path, &exported, &f.err));
    assert_null(exported);
    assert_null(intake_carries(exported));
    intake_free_exported(exported);
    char path[PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%.*sexported/static/decode.pte",
             (int)(strlen(f.path) - strlen("add.pte")), f.path);
    assert_ok(f.err, intake_read_exported(path, &exported, &f.err));
    assert_non_null(intake_carries(exported));
    intake_free_exported(exported);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_is_filled_with_silence_or_cut),
        cmocka_unit_test(sounds_are_as_long_as_the_longest),
        cmocka_unit_test(frames_are_counted_for_log_mel),
        cmocka_unit_test(seconds_make_sounds_of_one_length),
        cmocka_unit_test(sounds_are_hostile),
        cmocka_unit_test(a_picture_becomes_its_pixels),
        cmocka_unit_test(a_picture_is_cropped),
        cmocka_unit_test(media_are_printed_as_cards_say_them),
        cmocka_unit_test(pictures_of_a_call_have_one_size),
        cmocka_unit_test(pictures_are_hostile),
        cmocka_unit_test(texts_become_ids_mask_and_types),
        cmocka_unit_test(a_text_may_have_any_length),
        cmocka_unit_test(texts_must_fit),
        cmocka_unit_test(media_differ_in_a_member),
        cmocka_unit_test(texts_differ_in_a_member),
        cmocka_unit_test(a_relay_takes_what_both_take),
        cmocka_unit_test(an_input_without_media_has_none),
        cmocka_unit_test(kinds_of_methods_are_known),
        cmocka_unit_test(what_opens_is_verified),
        cmocka_unit_test(a_generator_has_the_card_s_defaults),
        cmocka_unit_test(export_json_is_read),
    };
    int failed = cmocka_run_group_tests(tests, open_device, close_device);
    buf_fini(&png);
    return failed;
}
