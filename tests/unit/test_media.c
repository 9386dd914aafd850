/* SPDX-License-Identifier: MIT */
/* Sound: files as samples, hostile ones among them, and features as Whisper defines them. */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/media/format.h"
#include "server/media/log_mel.h"
#include "server/media/mp3.h"
#include "server/media/sound.h"

#define FRAMES 40
#define FILE_BYTES_MAX (1 << 20)
#define DAMAGED_COUNT 300

static const struct sound_limits limits = {.seconds_max = 60, .channels_max = 2, .rate_max = 48000};

/* The libraries are optional where pted runs. */
static bool has_libraries(void)
{
    struct error err;
    return sound_load(&err) == ST_OK;
}

static size_t read_file(const char *name, uint8_t *out)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/models/whisper/%s", top ? top : ".", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return len;
}

/* ---- features -------------------------------------------------------------------------------- */

/* As in contrib/export/whisper.py: quiet noise, then loud noise, with gaps. */
static void make_samples(float *samples, int count)
{
    uint32_t state = 12345;
    for (int i = 0; i < count; i++) {
        state = (state * 1103515245u + 12345u) & 0x7fffffff;
        samples[i] = (float)((state / (double)0x3fffffff - 1) * (i < 2500 ? 0.001 : 0.5) *
                             (i % 700 < 350 ? 1 : 0.01));
    }
}

static void compare(uint32_t bands, const float *expected)
{
    static float samples[5000], out[128 * FRAMES];
    struct log_mel *log_mel;
    struct error err;
    make_samples(samples, 5000);
    assert_int_equal(log_mel_new(bands, &log_mel, &err), ST_OK);
    assert_int_equal(log_mel_compute(log_mel, samples, 5000, FRAMES, out, &err), ST_OK);
    for (uint32_t i = 0; i < bands * FRAMES; i++) {
        assert_true(fabsf(out[i] - expected[i]) < 1e-4f);
    }
    log_mel_free(log_mel);
}

static void test_features(void **state)
{
    static float expected[(80 + 128) * FRAMES + 1];
    (void)state;
    size_t len = read_file("features.f32", (uint8_t *)expected);
    assert_int_equal(len, (80 + 128) * FRAMES * sizeof(float));
    compare(80, expected);
    compare(128, expected + 80 * FRAMES);
}

/* ---- files ----------------------------------------------------------------------------------- */

static enum status decode(struct span file, float **out, uint64_t *count, struct error *err)
{
    struct sound *sound;
    *out = NULL;
    *count = 0;
    TRY(sound_open(file, 16000, &limits, &sound, err));
    uint64_t max = sound_count_max(sound);
    assert_true(max <= 60 * 16000 + 2);
    *out = malloc(max * sizeof(float) + 1);
    assert_non_null(*out);
    enum status status = sound_read(sound, *out, count, err);
    assert_true(*count <= max);
    sound_close(sound);
    return status;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, 4); /* the machine is little-endian */
}

/* A WAV file of 16 bits. */
static size_t make_wav(uint8_t *out, uint32_t rate, uint16_t channels, uint32_t frames)
{
    uint32_t bytes = 2u * channels * frames;
    memcpy(out, "RIFF    WAVEfmt \x10\0\0\0\x01\0", 22);
    put_u32(out + 4, 36 + bytes);
    memcpy(out + 22, &channels, 2);
    put_u32(out + 24, rate);
    put_u32(out + 28, rate * 2 * channels);
    put_u32(out + 32, 2u * channels | 16u << 16);
    memcpy(out + 36, "data", 4);
    put_u32(out + 40, bytes);
    for (uint32_t i = 0; i < frames * channels; i++) {
        int16_t value = i % channels ? -1000 : 3000;
        memcpy(out + 44 + 2 * (size_t)i, &value, 2);
    }
    return 44 + bytes;
}

static void test_wav(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    float *samples;
    uint64_t count;
    struct error err;
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    size_t len = make_wav(file, 16000, 2, 1000);
    assert_int_equal(decode(span_of(file, len), &samples, &count, &err), ST_OK);
    assert_int_equal(count, 1000);
    assert_true(fabsf(samples[7] - 1000.0f / 32768) < 1e-6f); /* the mean of both channels */
    free(samples);

    len = make_wav(file, 48000, 1, 48000);
    assert_int_equal(decode(span_of(file, len), &samples, &count, &err), ST_OK);
    assert_true(count >= 15999 && count <= 16001);
    assert_true(fabsf(samples[8000] - 3000.0f / 32768) < 1e-4f);
    free(samples);
}

static void test_coded(void **state)
{
    static const char *const names[] = {"sound.flac", "sound.ogg", "sound.opus"};
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (int i = 0; i < 3; i++) {
        float *samples, sum = 0;
        uint64_t count;
        struct error err;
        size_t len = read_file(names[i], file);
        assert_int_equal(decode(span_of(file, len), &samples, &count, &err), ST_OK);
        assert_true(count > 14000 && count < 16000);
        assert_true(i != 2 || count == 15040); /* without what the encoder added */
        for (uint64_t k = 0; k < count; k++) {
            sum += samples[k] * samples[k];
        }
        assert_true(sum > 1000 && sum < 4000);
        free(samples);
    }
}

static void expect_refusal(const uint8_t *file, size_t len, enum status code, const char *text)
{
    float *samples;
    uint64_t count;
    struct error err;
    assert_int_equal(decode(span_of(file, len), &samples, &count, &err), code);
    assert_non_null(strstr(err.text, text));
    free(samples);
}

static uint64_t count_of(struct span file)
{
    float *samples;
    uint64_t count;
    struct error err = {0};
    assert_ok(err, decode(file, &samples, &count, &err));
    free(samples);
    return count;
}

static void expect_count(struct span file, uint64_t wanted)
{
    assert_int_equal(count_of(file), wanted);
}

static void test_refusals(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    expect_refusal((const uint8_t *)"", 0, ST_INVALID,
                   "the file is empty, expected WAV, FLAC, MP3 or Ogg");
    expect_refusal((const uint8_t *)"ID3\x04", 4, ST_INVALID, "a damaged MP3 file");
    expect_refusal((const uint8_t *)"\xff\xf3\x40", 3, ST_INVALID, "a damaged MP3 file");
    expect_refusal((const uint8_t *)"\xff\xfd\x40", 3, ST_INVALID, "got MP2 of 3 bytes");
    expect_refusal((const uint8_t *)"\x1a\x45\xdf\xa3", 4, ST_INVALID, "got WebM of 4 bytes");
    expect_refusal((const uint8_t *)"fLaC", 4, ST_INVALID, "a damaged FLAC file");
    expect_refusal(file, make_wav(file, 16000, 3, 10), ST_TOO_LARGE,
                   "expected 1 to 2 channels, got 3");
    expect_refusal(file, make_wav(file, 96000, 1, 10), ST_TOO_LARGE,
                   "expected a sample rate of 1000 to 48000 Hz, got 96000");
    expect_refusal(file, make_wav(file, 1000, 1, 61000), ST_TOO_LARGE,
                   "expected at most 60 s of sound, got 61 s");
    size_t len = read_file("sound.ogg", file);
    expect_refusal(file, 500, ST_INVALID, "a damaged Ogg file: page 1: expected a whole page");
    expect_refusal(file, len - 1, ST_INVALID, "a damaged Ogg file: it ends within a page");
    file[30] ^= 1;
    expect_refusal(file, len, ST_INVALID, "a damaged Ogg file: page 0");
    len = read_file("sound.flac", file);
    expect_refusal(file, len / 2, ST_INVALID, "a damaged FLAC file");
    file[21] |= 0x0f; /* of the 36 bits that say how many samples there are */
    memset(file + 22, 0xff, 4);
    expect_refusal(file, len, ST_TOO_LARGE, "expected at most 60 s of sound");
}

static void test_not_finite(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    size_t len = make_wav(file, 16000, 1, 10);
    memcpy(file + 20, "\x03", 1);         /* floats ... */
    memcpy(file + 32, "\x04\0\x20\0", 4); /* ... of 4 bytes */
    memset(file + 44, 0xff, len - 44);    /* that are not numbers */
    expect_refusal(file, len, ST_INVALID, "frame 0 of the sound is");
}

/* A file that lost its end is refused; one that never said its length ends where it ends. */
static void test_cut_wav(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    size_t len = make_wav(file, 16000, 1, 100);
    expect_refusal(file, len - 1, ST_INVALID,
                   "a damaged WAV file: expected 200 bytes of samples, got 199");
    expect_refusal(file, 44, ST_INVALID, "expected 200 bytes of samples, got 0");
    for (int all = 0; all < 4; all++) { /* what RIFF and the samples say */
        const uint32_t lens[] = {0, 36, INT32_MAX - 36u, UINT32_MAX};
        for (int i = 0; i < 4; i++) {
            put_u32(file + 4, lens[all]);
            put_u32(file + 40, i == 1 ? UINT32_MAX - 44 : lens[i]);
            expect_count(span_of(file, len), 100);
        }
    }
    put_u32(file + 40, 0); /* a sound without samples, and what follows it */
    memcpy(file + 44, "LIST\x02\0\0\0ab", 10);
    expect_count(span_of(file, 54), 0);
    expect_count(span_of(file, 44), 0);
}

/* RF64, for files of more than 4 GB, has the lengths in its first chunk. */
static size_t make_rf64(uint8_t *out, uint32_t frames, uint64_t bytes)
{
    static uint8_t wav[FILE_BYTES_MAX];
    size_t len = make_wav(wav, 16000, 1, frames);
    uint64_t lengths[3] = {len + 28, bytes, frames};
    memcpy(out, "RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0", 20);
    memcpy(out + 20, lengths, sizeof(lengths));
    put_u32(out + 44, 0);
    memcpy(out + 48, wav + 12, len - 12);
    put_u32(out + 76, UINT32_MAX);
    return len + 36;
}

static void test_rf64(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    size_t len = make_rf64(file, 100, 200);
    expect_count(span_of(file, len), 100);
    expect_refusal(file, len - 1, ST_INVALID, "expected 200 bytes of samples, got 199");
    len = make_rf64(file, 100, 0);
    expect_count(span_of(file, len), 100);
    len = make_rf64(file, 100, UINT64_MAX);
    expect_count(span_of(file, len), 100);
    put_u32(file + 76, 0);
    expect_count(span_of(file, len), 100);
}

/* An ID3v2 of |bytes| bytes behind its head. */
static size_t put_id3v2(uint8_t *out, uint32_t bytes)
{
    memcpy(out, "ID3\x04\0\0", 6);
    for (int i = 0; i < 4; i++) {
        out[6 + i] = bytes >> (21 - 7 * i) & 127;
    }
    memset(out + 10, 0, bytes);
    return 10 + bytes;
}

static size_t put_end_tags(uint8_t *out)
{
    memset(out, 0, 64 + 128);
    memcpy(out, "APETAGEX\xd0\x07\0\0\x20\0\0\0", 16); /* a head of 32 bytes, and the footer */
    memcpy(out + 32, "APETAGEX\xd0\x07\0\0\x20\0\0\0", 16);
    put_u32(out + 32 + 20, 0x80000000u);
    memcpy(out + 64, "TAG", 3);
    return 64 + 128;
}

/* Sound between tags is the sound without them. */
static void test_tags(void **state)
{
    static const char *const names[] = {"sound.flac", "sound.ogg", "sound.opus", "sound.mp3",
                                        "a.wav"};
    static uint8_t file[FILE_BYTES_MAX], bare[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (int i = 0; i < 5; i++) {
        size_t len = i < 4 ? read_file(names[i], bare) : make_wav(bare, 16000, 1, 1000);
        uint64_t count = count_of(span_of(bare, len));
        size_t begin = put_id3v2(file, 300);
        begin += put_id3v2(file + begin, 0);
        memcpy(file + begin, bare, len);
        expect_count(span_of(file, begin + len), count);
        size_t end = begin + len + put_end_tags(file + begin + len);
        expect_count(span_of(file, end), count);
        expect_count(span_of(file + begin, end - begin), count);
    }
    size_t begin = put_id3v2(file, 20);
    memcpy(file + begin, "\xff\xfb\x90\0", 4);
    expect_refusal(file, begin + 4, ST_INVALID, "a damaged MP3 file");
    memcpy(file + 6, "\x7f\x7f\x7f\x7f", 4);
    expect_refusal(file, begin + 4, ST_INVALID, "a damaged MP3 file");
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t x = 0x9e3779b97f4a7c15;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)((x >> 32) % limit);
}

/* Damaged pages of an Ogg file get the checksums that they would have, so that they are read. */
static void sign_pages(uint8_t *file, size_t len)
{
    for (size_t at = 0; at + 27 <= len && memcmp(file + at, "OggS", 4) == 0;) {
        size_t bytes = 27u + file[at + 26];
        for (size_t i = 0; i < file[at + 26] && at + 27 + i < len; i++) {
            bytes += file[at + 27 + i];
        }
        bytes = bytes < len - at ? bytes : len - at;
        uint32_t crc = 0;
        put_u32(file + at + 22, 0);
        for (size_t i = 0; i < bytes; i++) {
            crc ^= (uint32_t)file[at + i] << 24;
            for (int bit = 0; bit < 8; bit++) {
                crc = crc << 1 ^ (crc & 0x80000000u ? 0x04c11db7u : 0);
            }
        }
        put_u32(file + at + 22, crc);
        at += bytes;
    }
}

/* What is behind the first of several streams would be lost. */
static void test_streams_of_ogg(void **state)
{
    static const char *const names[] = {"sound.ogg", "sound.opus"};
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    for (int i = 0; i < 2; i++) {
        size_t len = read_file(names[i], file);
        (void)read_file(names[1 - i], file + len);
        expect_refusal(file, len + 28, ST_INVALID, "it ends within a page");
        expect_refusal(file, len + 3, ST_INVALID, "it ends within a page");
        memcpy(file + len, file, len);
        expect_refusal(file, 2 * len, ST_INVALID, "one stream in an Ogg file, got several");
        size_t last = len - 1; /* of one stream: its last page has another number */
        while (memcmp(file + last, "OggS", 4) != 0) {
            last--;
        }
        file[last + 14] ^= 1;
        sign_pages(file, len);
        expect_refusal(file, len, ST_INVALID, "one stream in an Ogg file, got several");
        file[last + 14] ^= 1;
        sign_pages(file, len);
        /* What was recorded from a live stream has no page that is marked as the last one. */
        assert_true(count_of(span_of(file, last)) < count_of(span_of(file, len)));
    }
}

/* Any bytes end in samples or in an error. PTED_DAMAGED_COUNT: how many copies of each file. */
static void test_damaged(void **state)
{
    enum { WAV, FLAC, OGG, OPUS, MP3, FILES };
    static uint8_t whole[FILES][FILE_BYTES_MAX], file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    const char *more = getenv("PTED_DAMAGED_COUNT");
    long rounds = more ? strtol(more, NULL, 10) : DAMAGED_COUNT, good = 0;
    size_t lens[FILES] = {make_wav(whole[WAV], 22050, 2, 3000),
                          read_file("sound.flac", whole[FLAC]), read_file("sound.ogg", whole[OGG]),
                          read_file("sound.opus", whole[OPUS]), read_file("sound.mp3", whole[MP3])};
    for (long i = 0; i < rounds * FILES; i++) {
        long kind = i % FILES;
        size_t len = lens[kind];
        memcpy(file, whole[kind], len);
        for (uint32_t k = random_below(8); k <= 8; k++) {
            file[random_below(random_below(2) ? 100 : (uint32_t)len)] = (uint8_t)random_below(256);
        }
        if ((kind == OGG || kind == OPUS) && random_below(4)) {
            sign_pages(file, len);
        }
        len = random_below(4) ? len : random_below((uint32_t)len);
        uint8_t *exact = malloc(len + 1); /* so that a sanitizer sees its end */
        assert_non_null(exact);
        memcpy(exact, file, len);
        float *samples;
        uint64_t count;
        struct error err = {0};
        enum status status = decode(span_of(exact, len), &samples, &count, &err);
        assert_true(status == ST_OK || (err.code == status && err.text[0]));
        good += status == ST_OK;
        free(samples);
        free(exact);
    }
    assert_true(good > 0 && good < rounds * FILES);
}

/* A file of variable rate that does not say its length, and begins with loud frames: libsndfile 1.2
 * ends it after 5791 of its 31104 samples. */
static void test_mp3(void **state)
{
    static uint8_t file[FILE_BYTES_MAX], more[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    size_t len = read_file("sound.mp3", file);
    uint64_t count = count_of(span_of(file, len)), wanted = 31104 * UINT64_C(16000) / 22050;
    assert_true(count == wanted || count == wanted + 1);
    memcpy(more, file, len);
    memcpy(more + len, file, len);
    assert_true(count_of(span_of(more, 2 * len)) >= 2 * wanted); /* one after the other */
    memset(more + len, 0, 5000);
    memcpy(more + len + 5000, file, len);
    expect_refusal(more, 2 * len + 5000, ST_INVALID, "a damaged MP3 file");
}

/* The first frame may say how many follow. */
static void test_mp3_cut(void **state)
{
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    memcpy(file, "\xff\xf3\x80\xc4", 4); /* 208 bytes: 64 kbit/s at 22050 Hz */
    memcpy(file + 13, "Xing\0\0\0\1\0\0\0\66", 12);
    size_t len = 208 + read_file("sound.mp3", file + 208);
    assert_true(count_of(span_of(file, len)) > 22000);
    expect_refusal(file, len - 100, ST_INVALID,
                   "a damaged MP3 file: expected 54 frames of MPEG, got 50");
}

/* One that says nothing ends where a frame does: the last of 54 begins at 3121. */
static void test_mp3_cut_in_frame(void **state)
{
    static const size_t lens[] = {3146, 3127, 3122, 3000, 1500, 1400};
    static uint8_t file[FILE_BYTES_MAX];
    (void)state;
    if (!has_libraries()) {
        skip();
    }
    size_t len = read_file("sound.mp3", file);
    for (int i = 0; i < 6; i++) {
        expect_refusal(file, lens[i], ST_INVALID, "a damaged MP3 file: it ends within a frame");
    }
    assert_true(count_of(span_of(file, 3121)) < count_of(span_of(file, len)));
}

/* Lengths of frames, of each version. */
static void test_mp3_frames(void **state)
{
    static const struct {
        uint8_t head[4];
        uint32_t bytes; /* 0: it does not say */
    } rows[] = {
        {{0xff, 0xfb, 0x90, 0x00}, 417}, {{0xff, 0xfb, 0x92, 0x00}, 418}, /* 128 k, 44.1 kHz */
        {{0xff, 0xfa, 0xe4, 0x00}, 960}, {{0xff, 0xfb, 0x18, 0x00}, 144}, /* 320 k, 48; 32 k, 32 */
        {{0xff, 0xf3, 0x80, 0x00}, 208}, {{0xff, 0xf3, 0xe4, 0x00}, 480}, /* 22.05; 24 kHz */
        {{0xff, 0xe3, 0x40, 0x00}, 208}, {{0xff, 0xe3, 0x18, 0x00}, 72},  /* 11.025; 8 kHz */
        {{0xff, 0xfb, 0x00, 0x00}, 0},   {{0xff, 0xfb, 0xf0, 0x00}, 0},
        {{0xff, 0xfb, 0x9c, 0x00}, 0},   {{0xff, 0xfd, 0x90, 0x00}, 0},
    };
    static uint8_t file[3000];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = rows[i].bytes;
        memset(file, 0, sizeof(file));
        memcpy(file, rows[i].head, 4);
        memcpy(file + len, rows[i].head, 4);
        assert_false(mp3_ends_in_frame(span_of(file, 2 * len)));
        assert_false(mp3_ends_in_frame(span_of(file, 2 * len + 100))); /* something else */
        assert_int_equal(mp3_ends_in_frame(span_of(file, len + 1)), len > 0);
        assert_int_equal(mp3_ends_in_frame(span_of(file, len + 4)), len > 0);
        assert_int_equal(mp3_ends_in_frame(span_of(file, len ? 2 * len - 1 : 9)), len > 0);
    }
}

static void test_formats(void **state)
{
    (void)state;
    assert_int_equal(media_find_format(span_str("RIFF1234WAVE")), MEDIA_WAV);
    assert_int_equal(media_find_format(span_str("RIFF1234WEBP")), MEDIA_WEBP);
    assert_int_equal(media_find_format(span_str("RIFF1234WAV")), MEDIA_FORMATS);
    assert_int_equal(media_find_format(span_str("1234ftypM4A ")), MEDIA_MP4);
    assert_string_equal(media_format_name(media_find_format(span_str("1234ftypheic"))), "HEIC");
    assert_string_equal(media_format_name(media_find_format(span_str("1234ftypavif"))), "AVIF");
    assert_string_equal(media_format_name(media_find_format(span_str("GIF89a"))), "GIF");
    assert_string_equal(media_format_name(media_find_format(span_of("MM\0*", 4))), "TIFF");
    assert_int_equal(media_kind_of(MEDIA_FORMATS), MEDIA_OTHER);
    assert_int_equal(media_kind_of(media_find_format(span_str("OggS"))), MEDIA_SOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_wav),
        cmocka_unit_test(test_cut_wav),
        cmocka_unit_test(test_rf64),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_coded),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_mp3),
        cmocka_unit_test(test_mp3_cut),
        cmocka_unit_test(test_streams_of_ogg),
        cmocka_unit_test(test_mp3_cut_in_frame),
        cmocka_unit_test(test_mp3_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
