/* SPDX-License-Identifier: MIT */
/* WAV, FLAC and Ogg by libsndfile. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "server/media/format.h"
#include "server/media/ogg.h"
#include "server/media/sndfile.h"
#include "server/media/sound_file.h"
#include "server/media/sound_reader.h"
#include "server/media/wav.h"

/* libsndfile's number of frames where the file does not say it. */
#define FRAMES_UNKNOWN ((sf_count_t)0x7fffffffffffffff)

struct reading {
    struct sound_file file;
    struct wav_length length; /* what libsndfile reads in the file's stead */
    const char *format;
    const struct sndfile *library;
    SNDFILE *handle;
    uint64_t frames; /* read so far */
};

/* ---- the file as libsndfile sees it ---------------------------------------------------------- */

static sf_count_t io_length(void *user)
{
    const struct reading *reading = user;
    return (sf_count_t)reading->file.bytes.len;
}

static sf_count_t io_seek(sf_count_t offset, int whence, void *user)
{
    struct reading *reading = user;
    return sound_file_seek(&reading->file, offset, whence);
}

/* Where |len| bytes at |at| of the file have the field of the length, they get the real one. */
static void put_length(const struct wav_length *length, size_t at, uint8_t *out, size_t len)
{
    for (uint32_t i = 0; i < length->field_bytes; i++) {
        size_t place = length->at + i;
        if (place >= at && place - at < len) {
            out[place - at] = (uint8_t)(length->bytes >> 8 * i);
        }
    }
}

static sf_count_t io_read(void *out, sf_count_t count, void *user)
{
    struct reading *reading = user;
    size_t at = reading->file.at;
    size_t len = sound_file_read(&reading->file, out, count > 0 ? (size_t)count : 0);
    put_length(&reading->length, at, out, len);
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
    const struct reading *reading = user;
    return (sf_count_t)reading->file.at;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status check_file(struct reading *reading, struct error *err)
{
    struct span file = reading->file.bytes;
    enum media_format format = media_find_format(file);
    reading->format = media_format_name(format);
    if (format == MEDIA_OGG) {
        return ogg_verify(file, err);
    }
    bool is_wav = format == MEDIA_WAV || format == MEDIA_RF64;
    return is_wav ? wav_check_length(file, &reading->length, err) : ST_OK;
}

static enum status open_file(struct reading *reading, struct sound_head *head, struct error *err)
{
    SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    SF_INFO info = {0};
    TRY(check_file(reading, err));
    TRY(sndfile_load(&reading->library, err));
    reading->handle = reading->library->open_virtual(&io, SFM_READ, &info, reading);
    if (!reading->handle) {
        return error_set(err, ST_INVALID, "a damaged %s file: %s", reading->format,
                         reading->library->strerror(NULL));
    }
    if (info.frames < 0) {
        return error_set(err, ST_INVALID, "a damaged %s file: it has %" PRId64 " frames",
                         reading->format, (int64_t)info.frames);
    }
    head->channels = info.channels;
    head->rate = info.samplerate;
    head->frames = info.frames == FRAMES_UNKNOWN ? SOUND_FRAMES_UNKNOWN : (uint64_t)info.frames;
    return ST_OK;
}

static enum status sndfile_open(struct span file, struct sound_head *head, void **out,
                                struct error *err)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    *out = reading;
    if (!reading) {
        return error_no_memory(err, "sound");
    }
    reading->file.bytes = file;
    return open_file(reading, head, err);
}

static enum status sndfile_read(void *state, float *out, uint64_t max, uint64_t *out_frames,
                                struct error *err)
{
    struct reading *reading = state;
    const struct sndfile *library = reading->library;
    sf_count_t frames = library->readf_float(reading->handle, out, (sf_count_t)max);
    must(frames <= (sf_count_t)max);
    *out_frames = frames > 0 ? (uint64_t)frames : 0;
    reading->frames += *out_frames;
    if (*out_frames < max && library->error(reading->handle) != SF_ERR_NO_ERROR) {
        return error_set(err, ST_INVALID, "a damaged %s file: after frame %" PRIu64 ": %s",
                         reading->format, reading->frames, library->strerror(reading->handle));
    }
    return ST_OK;
}

static void sndfile_close(void *state)
{
    struct reading *reading = state;
    if (reading && reading->handle) {
        reading->library->close(reading->handle);
    }
    free(reading);
}

const struct sound_reader sound_sndfile = {sndfile_open, sndfile_read, sndfile_close};
