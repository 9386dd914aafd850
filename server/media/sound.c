/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/sound.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/media/format.h"
#include "server/media/mpg123.h"
#include "server/media/sndfile.h"
#include "server/media/sound_reader.h"
#include "server/media/soxr.h"
#include "server/media/tags.h"

#define SOUND_MAGIC 0x736e6421u

/* Frames that are read at a time. */
#define BLOCK_FRAMES 4096

struct sound {
    uint32_t magic;
    const char *format; /* its name */
    uint32_t rate;
    struct sound_limits limits;
    const struct sound_reader *reader;
    void *reading; /* of the reader */
    struct sound_head head;
    const struct soxr_library *soxr; /* NULL: the file has the rate */
    soxr_t resampler;
    uint64_t count_max;
    float *block, *mono; /* owned: frames as they are in the file, and as one channel */
    uint64_t count;      /* samples that are written */
    uint64_t frame_count;
};

enum status sound_load(struct error *err)
{
    const struct sndfile *sndfile;
    const struct mpg123 *mpg123;
    const struct soxr_library *soxr;
    TRY(sndfile_load(&sndfile, err));
    TRY(mpg123_load(&mpg123, err));
    return soxr_load(&soxr, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static const struct sound_reader *find_reader(enum media_format format)
{
    switch (format) {
    case MEDIA_ID3:
    case MEDIA_MP3:
    case MEDIA_MP3_CRC:
    case MEDIA_MP3_MPEG_2:
    case MEDIA_MP3_MPEG_2_CRC:
    case MEDIA_MP3_MPEG_2_5:
    case MEDIA_MP3_MPEG_2_5_CRC:
        return &sound_mpg123;
    default:
        return &sound_sndfile;
    }
}

static enum status open_file(struct sound *sound, struct span file, struct error *err)
{
    enum media_format format = media_find_format(file);
    if (media_kind_of(format) != MEDIA_SOUND) {
        return media_refuse(file, MEDIA_SOUND, err);
    }
    sound->format = media_format_name(format);
    sound->reader = find_reader(format);
    return sound->reader->open(tags_strip(file), &sound->head, &sound->reading, err);
}

static enum status check_limits(struct sound *sound, struct error *err)
{
    const struct sound_head *head = &sound->head;
    const struct sound_limits *limits = &sound->limits;
    if (head->channels < 1 || (uint32_t)head->channels > limits->channels_max) {
        return error_set(err, ST_TOO_LARGE,
                         "expected 1 to %" PRIu32 " channels, got %" PRId32
                         ", see --sound-channels-max",
                         limits->channels_max, head->channels);
    }
    if (head->rate < SOUND_RATE_MIN || (uint32_t)head->rate > limits->rate_max) {
        return error_set(err, ST_TOO_LARGE,
                         "expected a sample rate of %d to %" PRIu32 " Hz, got %" PRId32
                         ", see --sound-rate-max",
                         SOUND_RATE_MIN, limits->rate_max, head->rate);
    }
    uint64_t max = limits->seconds_max * (uint64_t)head->rate;
    if (head->frames != SOUND_FRAMES_UNKNOWN && head->frames > max) {
        return error_set(err, ST_TOO_LARGE,
                         "expected at most %" PRIu64 " s of sound, got %" PRIu64
                         " s, see --sound-seconds-max",
                         limits->seconds_max, head->frames / (uint64_t)head->rate);
    }
    return ST_OK;
}

/* Of the file. */
static uint64_t frames_max(const struct sound *sound)
{
    const struct sound_head *head = &sound->head;
    return head->frames != SOUND_FRAMES_UNKNOWN ? head->frames
                                                : sound->limits.seconds_max * (uint64_t)head->rate;
}

static uint64_t count_max(const struct sound *sound)
{
    uint64_t rate = (uint64_t)sound->head.rate, frames = frames_max(sound);
    uint64_t seconds = frames / rate; /* at most seconds_max, so nothing overflows */
    return seconds * sound->rate + frames % rate * sound->rate / rate + 2;
}

static enum status open_resampler(struct sound *sound, struct error *err)
{
    soxr_error_t problem = NULL;
    if ((uint32_t)sound->head.rate == sound->rate) {
        return ST_OK;
    }
    TRY(soxr_load(&sound->soxr, err));
    sound->resampler =
        sound->soxr->create(sound->head.rate, sound->rate, 1, &problem, NULL, NULL, NULL);
    return sound->resampler && !problem
               ? ST_OK
               : error_set(err, ST_EXHAUSTED,
                           "sound: libsoxr from %" PRId32 " to %" PRIu32 " Hz: %s",
                           sound->head.rate, sound->rate, problem ? problem : "no memory");
}

static enum status open_parts(struct sound *sound, struct span file, struct error *err)
{
    TRY(open_file(sound, file, err));
    TRY(check_limits(sound, err));
    TRY(open_resampler(sound, err));
    sound->count_max = count_max(sound);
    sound->block = malloc(BLOCK_FRAMES * (size_t)sound->head.channels * sizeof(float));
    sound->mono = malloc(BLOCK_FRAMES * sizeof(float));
    return sound->block && sound->mono ? ST_OK : error_no_memory(err, "sound");
}

enum status sound_open(struct span file, uint32_t rate, const struct sound_limits *limits,
                       struct sound **out, struct error *err)
{
    struct sound *sound = calloc(1, sizeof(*sound));
    *out = NULL;
    if (!sound) {
        return error_no_memory(err, "sound");
    }
    sound->magic = SOUND_MAGIC;
    sound->rate = rate;
    sound->limits = *limits;
    enum status status = open_parts(sound, file, err);
    if (status != ST_OK) {
        sound_close(sound);
        return status;
    }
    *out = sound;
    return ST_OK;
}

void sound_close(struct sound *sound)
{
    if (!sound) {
        return;
    }
    OBJ_CHECK(sound, SOUND_MAGIC);
    if (sound->reader) {
        sound->reader->close(sound->reading);
    }
    if (sound->resampler) {
        sound->soxr->delete (sound->resampler);
    }
    free(sound->block);
    free(sound->mono);
    sound->magic = 0;
    free(sound);
}

uint64_t sound_count_max(const struct sound *sound)
{
    OBJ_CHECK(sound, SOUND_MAGIC);
    return sound->count_max;
}

uint64_t sound_decoded_bytes(const struct sound *sound)
{
    OBJ_CHECK(sound, SOUND_MAGIC);
    return frames_max(sound) * (uint64_t)sound->head.channels * sizeof(float);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Files of floats may hold anything. */
static enum status mix(struct sound *sound, uint64_t frames, struct error *err)
{
    uint64_t channels = (uint64_t)sound->head.channels;
    for (uint64_t i = 0; i < frames; i++) {
        double sum = 0;
        for (uint64_t c = 0; c < channels; c++) {
            sum += sound->block[i * channels + c];
        }
        sound->mono[i] = (float)(sum / (double)channels);
        if (!isfinite(sound->mono[i])) {
            return error_set(err, ST_INVALID, "frame %" PRIu64 " of the sound is %g, not a number",
                             sound->frame_count + i, (double)sound->mono[i]);
        }
    }
    return ST_OK;
}

/* |mono| is NULL at the end: takes the rest that the resampler still has. */
static enum status resample(struct sound *sound, const float *mono, uint64_t frames, float *out,
                            struct error *err)
{
    size_t taken = 0, used = 0, written = 1;
    while (mono ? used < frames : written > 0) {
        size_t room = (size_t)(sound->count_max - sound->count);
        soxr_error_t problem = sound->soxr->process(sound->resampler, mono ? mono + used : NULL,
                                                    mono ? (size_t)frames - used : 0, &taken,
                                                    out + sound->count, room, &written);
        if (problem) {
            return error_set(err, ST_EXHAUSTED, "sound: libsoxr: %s", problem);
        }
        used += taken;
        sound->count += written;
        if (taken == 0 && written == 0) {
            break; /* there is no room for samples that rounding adds */
        }
    }
    return ST_OK;
}

static enum status take_block(struct sound *sound, uint64_t frames, float *out, struct error *err)
{
    TRY(mix(sound, frames, err));
    sound->frame_count += frames;
    if (sound->resampler) {
        return resample(sound, sound->mono, frames, out, err);
    }
    if (frames > sound->count_max - sound->count) {
        return error_set(err, ST_TOO_LARGE,
                         "expected at most %" PRIu64 " s of sound, got more, see "
                         "--sound-seconds-max",
                         sound->limits.seconds_max);
    }
    memcpy(out + sound->count, sound->mono, (size_t)frames * sizeof(float));
    sound->count += frames;
    return ST_OK;
}

/* A sound that ends too early has lost its end on the way. */
static enum status check_end(const struct sound *sound, struct error *err)
{
    uint64_t frames = sound->head.frames;
    return frames == SOUND_FRAMES_UNKNOWN || sound->frame_count >= frames
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "a damaged %s file: expected %" PRIu64 " frames, got %" PRIu64,
                           sound->format, frames, sound->frame_count);
}

enum status sound_read(struct sound *sound, float *out, uint64_t *out_count, struct error *err)
{
    OBJ_CHECK(sound, SOUND_MAGIC);
    uint64_t max = sound->limits.seconds_max * (uint64_t)sound->head.rate;
    uint64_t frames = BLOCK_FRAMES;
    while (frames == BLOCK_FRAMES) {
        TRY(sound->reader->read(sound->reading, sound->block, BLOCK_FRAMES, &frames, err));
        if (frames > 0) {
            TRY(take_block(sound, frames, out, err));
        }
        if (sound->frame_count > max) {
            return error_set(err, ST_TOO_LARGE,
                             "expected at most %" PRIu64 " s of sound, got more, see "
                             "--sound-seconds-max",
                             sound->limits.seconds_max);
        }
    }
    TRY(check_end(sound, err));
    if (sound->resampler) {
        TRY(resample(sound, NULL, 0, out, err));
    }
    *out_count = sound->count;
    return ST_OK;
}
