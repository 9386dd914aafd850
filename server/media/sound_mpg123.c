/* SPDX-License-Identifier: MIT */
/* MP3 by libmpg123, which looks at the head of each frame before the first sample is asked for, so
 * the length is that of the file and nobody's estimate. */
#include "config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "server/media/mp3.h"
#include "server/media/mpg123.h"
#include "server/media/sound_file.h"
#include "server/media/sound_reader.h"

/* Tags are skipped: their texts would be copied at the length that the file declares. */
#define FLAGS (MPG123_QUIET | MPG123_SKIP_ID3V2 | MPG123_FORCE_FLOAT | MPG123_GAPLESS)

struct reading {
    struct sound_file file;
    const struct mpg123 *library;
    mpg123_handle *handle;
    size_t frame_bytes;
    uint64_t frames; /* read so far */
};

static ssize_t io_read(void *user, void *out, size_t count)
{
    return (ssize_t)sound_file_read(user, out, count);
}

static off_t io_seek(void *user, off_t offset, int whence)
{
    return (off_t)sound_file_seek(user, offset, whence);
}

static enum status fail(const struct reading *reading, struct error *err)
{
    return error_set(err, ST_INVALID, "a damaged MP3 file: after frame %" PRIu64 ": %s",
                     reading->frames, reading->library->strerror(reading->handle));
}

static enum status make_handle(struct reading *reading, struct error *err)
{
    int problem = MPG123_OK;
    TRY(mpg123_load(&reading->library, err));
    reading->handle = reading->library->new (NULL, &problem);
    if (!reading->handle) {
        return error_set(err, ST_EXHAUSTED, "sound: libmpg123: %s",
                         reading->library->plain_strerror(problem));
    }
    bool is_ready = reading->library->param(reading->handle, MPG123_FLAGS, FLAGS, 0) == MPG123_OK &&
                    reading->library->replace_reader_handle(reading->handle, io_read, io_seek,
                                                            NULL) == MPG123_OK;
    return is_ready ? ST_OK
                    : error_set(err, ST_UNSUPPORTED, "sound: libmpg123: %s",
                                reading->library->strerror(reading->handle));
}

/* A file that lost its end has fewer frames than its first one says, or ends within one. */
static enum status check_whole(const struct reading *reading, struct error *err)
{
    uint64_t declared = mp3_declared_frames(reading->file.bytes);
    off_t got = reading->library->framelength(reading->handle);
    if (got < 0 || (uint64_t)got < declared) {
        return error_set(err, ST_INVALID,
                         "a damaged MP3 file: expected %" PRIu64 " frames of MPEG, got %" PRId64,
                         declared, (int64_t)got);
    }
    return mp3_ends_in_frame(reading->file.bytes)
               ? error_set(err, ST_INVALID, "a damaged MP3 file: it ends within a frame")
               : ST_OK;
}

static enum status read_head(struct reading *reading, struct sound_head *head, struct error *err)
{
    const struct mpg123 *library = reading->library;
    long rate;
    int channels, encoding;
    if (library->open_handle(reading->handle, &reading->file) != MPG123_OK ||
        library->getformat(reading->handle, &rate, &channels, &encoding) != MPG123_OK ||
        library->scan(reading->handle) != MPG123_OK) {
        return fail(reading, err);
    }
    if (encoding != MPG123_ENC_FLOAT_32) {
        return error_set(err, ST_UNSUPPORTED, "sound: this libmpg123 makes no floats of 32 bits");
    }
    TRY(check_whole(reading, err));
    off_t frames = library->length(reading->handle);
    *head = (struct sound_head){
        .channels = channels,
        .rate = (int32_t)rate,
        .frames = frames >= 0 ? (uint64_t)frames : SOUND_FRAMES_UNKNOWN,
    };
    reading->frame_bytes = (size_t)channels * sizeof(float);
    return ST_OK;
}

static enum status mpg123_open_sound(struct span file, struct sound_head *head, void **out,
                                     struct error *err)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    *out = reading;
    if (!reading) {
        return error_no_memory(err, "sound");
    }
    reading->file.bytes = file;
    TRY(make_handle(reading, err));
    return read_head(reading, head, err);
}

static enum status mpg123_read_sound(void *state, float *out, uint64_t max, uint64_t *out_frames,
                                     struct error *err)
{
    struct reading *reading = state;
    size_t size = (size_t)max * reading->frame_bytes, done = 0;
    int result = reading->library->read(reading->handle, out, size, &done);
    *out_frames = done / reading->frame_bytes;
    reading->frames += *out_frames;
    if (result == MPG123_NEW_FORMAT) {
        return error_set(err, ST_INVALID,
                         "a damaged MP3 file: after frame %" PRIu64
                         " its rate or its number of channels is another",
                         reading->frames);
    }
    bool is_done = result == MPG123_DONE && reading->file.at == reading->file.bytes.len;
    return result == MPG123_OK || is_done ? ST_OK : fail(reading, err);
}

static void mpg123_close_sound(void *state)
{
    struct reading *reading = state;
    if (reading && reading->handle) {
        reading->library->delete (reading->handle);
    }
    free(reading);
}

const struct sound_reader sound_mpg123 = {mpg123_open_sound, mpg123_read_sound, mpg123_close_sound};
