/* SPDX-License-Identifier: MIT */
/* Sounds: their samples, or features of them, as rows of one length or of the longest one's. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/media/log_mel.h"
#include "server/model/intake/medium_priv.h"

#define FRAMES_PER_S (LOG_MEL_RATE / LOG_MEL_HOP)

static enum status take_sound(struct medium *medium, const struct medium_origin *origin,
                              struct error *err)
{
    const struct card_sound *said = &origin->said->sound;
    struct medium_sound *sound = &medium->sound;
    const struct rt_io *io = medium->io;
    uint8_t last = io->shape.rank - 1;
    medium->item_rank = said->is_log_mel ? 2 : 1;
    sound->rate = said->rate;
    sound->length_max = (uint64_t)io->shape.dims[last];
    bool is_fixed = medium_has_length(medium, origin->method);
    if (said->seconds > 0) {
        double length = said->seconds * (said->is_log_mel ? FRAMES_PER_S : said->rate);
        sound->length = length < 1 ? 1 : (uint64_t)llround(length);
    } else if (is_fixed) {
        sound->length = sound->length_max;
    }
    if (is_fixed && sound->length != sound->length_max) {
        return error_set(err, ST_INVALID,
                         "sound.seconds: the program takes exactly %llu samples or frames",
                         (unsigned long long)sound->length_max);
    }
    if (said->is_log_mel) {
        int64_t bands = io->shape.dims[last - 1];
        if (bands < 1 || bands > LOG_MEL_BANDS_MAX || sound->length_max < 2) {
            return error_set(err, ST_INVALID,
                             "sound: expected 1 to %d bands and at least 2 frames, the program "
                             "takes %lld and %llu",
                             LOG_MEL_BANDS_MAX, (long long)bands,
                             (unsigned long long)sound->length_max);
        }
        TRY(log_mel_new((uint32_t)bands, &sound->log_mel, err));
    }
    return sound_load(err);
}

static void fini_sound(struct medium *medium)
{
    log_mel_free(medium->sound.log_mel);
}

static void bound_sound(struct medium *relay)
{
    struct medium_sound *sound = &relay->sound;
    bool is_fixed;
    uint64_t most = medium_last_dim(relay, &is_fixed);
    sound->length = is_fixed ? most : medium_least(sound->length, most);
    sound->length_max = medium_least(sound->length_max, most);
}

static const char *compare_sounds(const struct medium *medium_a, const struct medium *medium_b)
{
    const struct medium_sound *a = &medium_a->sound, *b = &medium_b->sound;
    return a->rate != b->rate           ? "rate"
           : !a->log_mel != !b->log_mel ? "features"
           : a->length != b->length     ? "seconds"
                                        : NULL;
}

static void print_sound(const struct medium *medium, struct buf *out)
{
    buf_printf(out, "{\"rate\":%" PRIu32 "}", medium->sound.rate);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_sound_fixed(const struct medium *medium)
{
    return medium->sound.length > 0;
}

static void shape_sound(const struct medium *medium, uint64_t length, struct shape *out)
{
    uint64_t fixed = medium->sound.length;
    out->dims[out->rank - 1] = (int64_t)(fixed ? fixed : length);
}

static enum status read_samples(struct sound *sound, struct medium_reader *reader,
                                struct medium_held *out, struct error *err)
{
    size_t bytes;
    if (!mul_size(sound_count_max(sound), sizeof(float), &bytes)) {
        return error_set(err, ST_TOO_LARGE, "the sound is too long");
    }
    TRY(medium_take(reader, bytes, err));
    out->bytes = bytes;
    out->values = malloc(bytes + sizeof(float));
    return out->values ? sound_read(sound, out->values, &out->count, err)
                       : error_no_memory(err, "sound");
}

static enum status hold_sound(const struct medium *medium, struct span file,
                              struct medium_reader *reader, struct medium_held *out,
                              struct error *err)
{
    struct sound *sound;
    TRY(sound_open(file, medium->sound.rate, &reader->limits->sound, &sound, err));
    enum status status = medium_weigh(reader, file, sound_decoded_bytes(sound), err);
    if (status == ST_OK) {
        status = read_samples(sound, reader, out, err);
    }
    sound_close(sound);
    TRY(status);
    return out->count > 0 ? ST_OK : error_set(err, ST_INVALID, "expected a sound, got no samples");
}

/* Samples or frames that it has, within what the program takes. */
static uint64_t sound_length(const struct medium *medium, const struct medium_held *held)
{
    uint64_t length = medium->sound.log_mel ? held->count / LOG_MEL_HOP : held->count;
    uint64_t least = medium->sound.log_mel ? 2 : 1;
    length = length < least ? least : length;
    return medium_least(length, medium->sound.length_max);
}

static enum status write_sound(const struct medium *medium, const struct medium_held *held,
                               uint64_t length, float *dst, struct error *err)
{
    if (medium->sound.log_mel) {
        return log_mel_compute(medium->sound.log_mel, held->values, held->count, (uint32_t)length,
                               dst, err);
    }
    uint64_t count = held->count < length ? held->count : length;
    memcpy(dst, held->values, count * sizeof(float));
    memset(dst + count, 0, (length - count) * sizeof(float));
    return ST_OK;
}

static enum status read_sound(const struct medium *medium, struct span file,
                              struct medium_reader *reader, void *dst, size_t bytes,
                              struct error *err)
{
    struct medium_held held;
    (void)bytes;
    TRY(medium_hold(medium, file, reader, &held, err));
    enum status status = write_sound(medium, &held, medium->sound.length, dst, err);
    medium_drop(&held, reader);
    return status;
}

const struct medium_ops medium_sound_ops = {
    .word = "sound",
    .take = take_sound,
    .fini = fini_sound,
    .bound = bound_sound,
    .compare = compare_sounds,
    .print = print_sound,
    .is_fixed = is_sound_fixed,
    .shape = shape_sound,
    .read = read_sound,
    .hold = hold_sound,
    .length = sound_length,
    .write = write_sound,
};
