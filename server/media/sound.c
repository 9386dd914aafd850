/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/sound.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/media/format.h"
#include "server/media/ogg.h"
#include "server/media/sndfile.h"
#include "server/media/soxr.h"
#include "server/media/tags.h"
#include "server/media/wav.h"

#define SOUND_MAGIC 0x736e6421u

/* Frames that are read at a time. */
#define BLOCK_FRAMES 4096

/* A slower file has no words in it. */
#define RATE_MIN 1000

/* libsndfile's number of frames where the file does not say it. */
#define FRAMES_UNKNOWN ((sf_count_t)0x7fffffffffffffff)

struct sound {
    uint32_t magic;
    struct span file;         /* without tags around it */
    struct wav_length length; /* what libsndfile reads in the file's stead */
    size_t at;                /* in |file|: the next byte that libsndfile reads */
    uint32_t rate;
    struct sound_limits limits;
    const struct sndfile *sndfile;
    const struct soxr_library *soxr; /* NULL: the file has the rate */
    SNDFILE *handle;
    SF_INFO info;
    soxr_t resampler;
    uint64_t count_max;
    float *block, *mono; /* owned: frames as they are in the file, and as one channel */
    uint64_t count;      /* samples that are written */
    uint64_t frame_count;
};

/* ---- the file as libsndfile sees it ---------------------------------------------------------- */

static sf_count_t io_length(void *user)
{
    const struct sound *sound = user;
    return (sf_count_t)sound->file.len;
}

static sf_count_t io_seek(sf_count_t offset, int whence, void *user)
{
    struct sound *sound = user;
    sf_count_t base = whence == SEEK_SET   ? 0
                      : whence == SEEK_CUR ? (sf_count_t)sound->at
                                           : (sf_count_t)sound->file.len;
    sf_count_t to;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) {
        return -1;
    }
    sound->at = (uint64_t)to < sound->file.len ? (size_t)to : sound->file.len;
    return (sf_count_t)sound->at;
}

/* Where |len| bytes from |at| on have the field of the length, they get the real one. */
static void put_length(const struct sound *sound, uint8_t *out, size_t len)
{
    const struct wav_length *length = &sound->length;
    for (uint32_t i = 0; i < length->field_bytes; i++) {
        size_t place = length->at + i;
        if (place >= sound->at && place - sound->at < len) {
            out[place - sound->at] = (uint8_t)(length->bytes >> 8 * i);
        }
    }
}

static sf_count_t io_read(void *out, sf_count_t count, void *user)
{
    struct sound *sound = user;
    size_t left = sound->file.len - sound->at;
    size_t len = count <= 0 ? 0 : (uint64_t)count < left ? (size_t)count : left;
    memcpy(out, sound->file.ptr + sound->at, len);
    put_length(sound, out, len);
    sound->at += len;
    return (sf_count_t)len;
}

static sf_count_t io_write(const void *bytes, sf_count_t count, void *user)
{
    (void)bytes;
    (void)count;
    (void)user;
    return 0;
}

static sf_count_t io_tell(void *user)
{
    const struct sound *sound = user;
    return (sf_count_t)sound->at;
}

enum status sound_load(struct error *err)
{
    const struct sndfile *sndfile;
    const struct soxr_library *soxr;
    TRY(sndfile_load(&sndfile, err));
    return soxr_load(&soxr, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum status check_format(struct sound *sound, struct error *err)
{
    struct span file = sound->file;
    enum media_format format = media_find_format(file);
    if (format == MEDIA_OGG) {
        return ogg_verify_vorbis(file, err);
    }
    if (format == MEDIA_WAV || format == MEDIA_RF64) {
        return wav_check_length(file, &sound->length, err);
    }
    return media_kind_of(format) == MEDIA_SOUND ? ST_OK : media_refuse(file, MEDIA_SOUND, err);
}

static enum status open_file(struct sound *sound, struct error *err)
{
    SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    TRY(sndfile_load(&sound->sndfile, err));
    sound->handle = sound->sndfile->open_virtual(&io, SFM_READ, &sound->info, sound);
    return sound->handle ? ST_OK
                         : error_set(err, ST_INVALID, "a damaged %s file: %s",
                                     media_format_name(media_find_format(sound->file)),
                                     sound->sndfile->strerror(NULL));
}

static enum status check_limits(struct sound *sound, struct error *err)
{
    const SF_INFO *info = &sound->info;
    const struct sound_limits *limits = &sound->limits;
    if (info->channels < 1 || (uint32_t)info->channels > limits->channels_max) {
        return error_set(err, ST_TOO_LARGE,
                         "expected 1 to %" PRIu32 " channels, got %d, see --sound-channels-max",
                         limits->channels_max, info->channels);
    }
    if (info->samplerate < RATE_MIN || (uint32_t)info->samplerate > limits->rate_max) {
        return error_set(err, ST_TOO_LARGE,
                         "expected a sample rate of %d to %" PRIu32
                         " Hz, got %d, see --sound-rate-max",
                         RATE_MIN, limits->rate_max, info->samplerate);
    }
    uint64_t max = limits->seconds_max * (uint64_t)info->samplerate;
    bool is_known = info->frames != FRAMES_UNKNOWN;
    if (info->frames < 0 || (is_known && (uint64_t)info->frames > max)) {
        return error_set(err, ST_TOO_LARGE,
                         "expected at most %" PRIu64 " s of sound, got %" PRId64
                         " s, see --sound-seconds-max",
                         limits->seconds_max, (int64_t)info->frames / info->samplerate);
    }
    return ST_OK;
}

/* Of the file. */
static uint64_t frames_max(const struct sound *sound)
{
    const SF_INFO *info = &sound->info;
    return info->frames != FRAMES_UNKNOWN ? (uint64_t)info->frames
                                          : sound->limits.seconds_max * (uint64_t)info->samplerate;
}

static uint64_t count_max(const struct sound *sound)
{
    uint64_t rate = (uint64_t)sound->info.samplerate, frames = frames_max(sound);
    uint64_t seconds = frames / rate; /* at most seconds_max, so nothing overflows */
    return seconds * sound->rate + frames % rate * sound->rate / rate + 2;
}

static enum status open_resampler(struct sound *sound, struct error *err)
{
    soxr_error_t problem = NULL;
    if ((uint32_t)sound->info.samplerate == sound->rate) {
        return ST_OK;
    }
    TRY(soxr_load(&sound->soxr, err));
    sound->resampler =
        sound->soxr->create(sound->info.samplerate, sound->rate, 1, &problem, NULL, NULL, NULL);
    return sound->resampler && !problem
               ? ST_OK
               : error_set(err, ST_EXHAUSTED, "sound: libsoxr from %d to %" PRIu32 " Hz: %s",
                           sound->info.samplerate, sound->rate, problem ? problem : "no memory");
}

static enum status open_parts(struct sound *sound, struct error *err)
{
    TRY(check_format(sound, err));
    TRY(open_file(sound, err));
    TRY(check_limits(sound, err));
    TRY(open_resampler(sound, err));
    sound->count_max = count_max(sound);
    sound->block = malloc(BLOCK_FRAMES * (size_t)sound->info.channels * sizeof(float));
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
    sound->file = tags_strip(file);
    sound->rate = rate;
    sound->limits = *limits;
    enum status status = open_parts(sound, err);
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
    if (sound->handle) {
        sound->sndfile->close(sound->handle);
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
    return frames_max(sound) * (uint64_t)sound->info.channels * sizeof(float);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Files of floats may hold anything. */
static enum status mix(struct sound *sound, uint64_t frames, struct error *err)
{
    uint64_t channels = (uint64_t)sound->info.channels;
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
    const SF_INFO *info = &sound->info;
    const struct sndfile *sndfile = sound->sndfile;
    if (sndfile->error(sound->handle) != SF_ERR_NO_ERROR) {
        return error_set(err, ST_INVALID, "a damaged %s file: after frame %" PRIu64 ": %s",
                         media_format_name(media_find_format(sound->file)), sound->frame_count,
                         sndfile->strerror(sound->handle));
    }
    bool is_whole = info->frames == FRAMES_UNKNOWN || sound->frame_count >= (uint64_t)info->frames;
    return is_whole ? ST_OK
                    : error_set(err, ST_INVALID,
                                "a damaged %s file: expected %" PRId64 " frames, got %" PRIu64,
                                media_format_name(media_find_format(sound->file)),
                                (int64_t)info->frames, sound->frame_count);
}

enum status sound_read(struct sound *sound, float *out, uint64_t *out_count, struct error *err)
{
    OBJ_CHECK(sound, SOUND_MAGIC);
    uint64_t max = sound->limits.seconds_max * (uint64_t)sound->info.samplerate;
    sf_count_t frames = BLOCK_FRAMES;
    while (frames == BLOCK_FRAMES) {
        frames = sound->sndfile->readf_float(sound->handle, sound->block, BLOCK_FRAMES);
        must(frames <= BLOCK_FRAMES);
        if (frames > 0) {
            TRY(take_block(sound, (uint64_t)frames, out, err));
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
