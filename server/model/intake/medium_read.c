/* SPDX-License-Identifier: MIT */
/* Rows of tensors from files and texts. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/language/words.h"
#include "server/model/intake/medium.h"
#include "server/media/log_mel.h"

static enum status take(struct medium_reader *reader, size_t bytes, struct error *err)
{
    if (reader->account && !reader->account->take(reader->account->user, bytes)) {
        reader->wanted = bytes;
        return error_set(err, ST_EXHAUSTED, "no memory now to read a file, which takes %zu bytes",
                         bytes);
    }
    return ST_OK;
}

static void give(const struct medium_reader *reader, size_t bytes)
{
    if (reader->account) {
        reader->account->give(reader->account->user, bytes);
    }
}

/* The time of decoding is in proportion to the decoded bytes or to the file, whichever is larger.
 */
static enum status weigh(struct medium_reader *reader, struct span file, uint64_t decoded,
                         struct error *err)
{
    reader->work += decoded > file.len ? decoded : file.len;
    return reader->work_max == 0 || reader->work <= reader->work_max
               ? ST_OK
               : error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY));
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum status read_pixels(const struct medium *medium, struct image *image,
                               struct medium_reader *reader, void *dst, size_t bytes,
                               struct error *err)
{
    uint32_t height, width;
    TRY(image_size(image, &medium->image, &height, &width, err));
    TRY(reader->place ? image_find_place(image, &medium->image, reader->place, err) : ST_OK);
    size_t work = image_work_bytes(image, &medium->image);
    TRY(take(reader, work, err));
    enum status status = image_read(image, &medium->image, dst, bytes, err);
    give(reader, work);
    return status;
}

static enum status check_sides(const struct medium *medium, const uint32_t sides[2],
                               struct error *err)
{
    const uint32_t *most = medium->sides_max;
    return sides[0] <= most[0] && sides[1] <= most[1]
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected a picture that becomes at most %u x %u (height x width), got "
                           "one that becomes %u x %u",
                           most[0], most[1], sides[0], sides[1]);
}

enum status medium_measure(const struct medium *medium, struct span file,
                           struct medium_reader *reader, uint32_t out_sides[2], struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    must(medium->kind == MEDIUM_IMAGE);
    struct image *image;
    TRY(image_open(file, &reader->limits->image, &image, err));
    enum status status = image_size(image, &medium->image, &out_sides[0], &out_sides[1], err);
    image_close(image);
    TRY(status);
    TRY(weigh(reader, file, 0, err));
    return check_sides(medium, out_sides, err);
}

enum status medium_compare(uint32_t index, const uint32_t sides[2], const uint32_t first[2],
                           struct error *err)
{
    return index == 0 || (sides[0] == first[0] && sides[1] == first[1])
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected a picture that becomes %u x %u (height x width), as the first "
                           "one of the call, got one that becomes %u x %u",
                           first[0], first[1], sides[0], sides[1]);
}

static enum status read_image(const struct medium *medium, struct span file,
                              struct medium_reader *reader, void *dst, size_t bytes,
                              struct error *err)
{
    struct image *image;
    TRY(image_open(file, &reader->limits->image, &image, err));
    enum status status = weigh(reader, file, image_decoded_bytes(image), err);
    if (status == ST_OK) {
        status = read_pixels(medium, image, reader, dst, bytes, err);
    }
    image_close(image);
    return status;
}

/* ---- sound ----------------------------------------------------------------------------------- */

static enum status read_samples(struct sound *sound, struct medium_reader *reader,
                                struct medium_sound *out, struct error *err)
{
    size_t bytes;
    if (!mul_size(sound_count_max(sound), sizeof(float), &bytes)) {
        return error_set(err, ST_TOO_LARGE, "the sound is too long");
    }
    TRY(take(reader, bytes, err));
    out->bytes = bytes;
    out->samples = malloc(bytes + sizeof(float));
    return out->samples ? sound_read(sound, out->samples, &out->count, err)
                        : error_set(err, ST_EXHAUSTED, "sound: out of memory");
}

enum status medium_hear(const struct medium *medium, struct span file, struct medium_reader *reader,
                        struct medium_sound *out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    struct sound *sound;
    *out = (struct medium_sound){.samples = NULL};
    TRY(sound_open(file, medium->rate, &reader->limits->sound, &sound, err));
    enum status status = weigh(reader, file, sound_decoded_bytes(sound), err);
    if (status == ST_OK) {
        status = read_samples(sound, reader, out, err);
    }
    sound_close(sound);
    if (status == ST_OK && out->count == 0) {
        status = error_set(err, ST_INVALID, "expected a sound, got no samples");
    }
    if (status != ST_OK) {
        medium_drop(out, reader);
    }
    return status;
}

void medium_drop(struct medium_sound *sound, const struct medium_reader *reader)
{
    free(sound->samples);
    if (sound->bytes > 0) {
        give(reader, sound->bytes);
    }
    *sound = (struct medium_sound){.samples = NULL};
}

uint64_t medium_sound_length(const struct medium *medium, const struct medium_sound *sound)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    uint64_t length = medium->log_mel ? sound->count / LOG_MEL_HOP : sound->count;
    uint64_t least = medium->log_mel ? 2 : 1;
    length = length < least ? least : length;
    return length < medium->length_max ? length : medium->length_max;
}

enum status medium_write_sound(const struct medium *medium, const struct medium_sound *sound,
                               uint64_t length, float *dst, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    if (medium->log_mel) {
        return log_mel_compute(medium->log_mel, sound->samples, sound->count, (uint32_t)length, dst,
                               err);
    }
    uint64_t count = sound->count < length ? sound->count : length;
    memcpy(dst, sound->samples, count * sizeof(float));
    memset(dst + count, 0, (length - count) * sizeof(float));
    return ST_OK;
}

static enum status read_sound(const struct medium *medium, struct span file,
                              struct medium_reader *reader, void *dst, struct error *err)
{
    struct medium_sound sound;
    TRY(medium_hear(medium, file, reader, &sound, err));
    enum status status = medium_write_sound(medium, &sound, medium->length, dst, err);
    medium_drop(&sound, reader);
    return status;
}

enum status medium_read(const struct medium *medium, struct span file, struct medium_reader *reader,
                        void *dst, size_t bytes, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    must(medium->kind == MEDIUM_IMAGE || medium_is_fixed(medium));
    return medium->kind == MEDIUM_IMAGE ? read_image(medium, file, reader, dst, bytes, err)
                                        : read_sound(medium, file, reader, dst, err);
}

/* ---- texts ----------------------------------------------------------------------------------- */

enum status medium_encode(const struct medium *medium, struct span text, struct arena *arena,
                          struct texts_ids *out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    const struct texts texts = {
        .items = {text}, .count = 1, .max = medium->tokens_max, .cuts = true};
    return texts_encode(medium->words, &texts, arena, out, err);
}

static void put(void *dst, enum dtype dtype, uint64_t index, uint32_t value)
{
    if (dtype == DT_I64) {
        ((int64_t *)dst)[index] = value;
    } else if (dtype == DT_I32) {
        ((int32_t *)dst)[index] = (int32_t)value;
    } else if (dtype == DT_F32) {
        ((float *)dst)[index] = (float)value;
    } else {
        must(dtype == DT_BOOL || dtype == DT_U8);
        ((uint8_t *)dst)[index] = (uint8_t)value;
    }
}

void medium_write_ids(const struct medium *medium, enum medium_part part,
                      const struct texts_ids *ids, uint64_t length, void *dst)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    must(medium->parts[part] != MEDIUM_ABSENT && ids->count <= length);
    for (uint64_t i = 0; i < length; i++) {
        bool is_text = i < ids->count;
        uint32_t value = part == MEDIUM_IDS    ? is_text ? ids->ids[i] : medium->pad
                         : part == MEDIUM_MASK ? is_text
                                               : is_text && i >= ids->second;
        put(dst, medium->dtypes[part], i, value);
    }
}
