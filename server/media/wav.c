/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/wav.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_CHUNK 12 /* behind "RIFF", the length of all, "WAVE" */
#define HEAD_BYTES 8   /* of a chunk: type and length */

/* From here on a length says "unknown": 2^31 - 1 and 2^32 - 1, less what stands before it. */
#define UNKNOWN_MIN 0x7f000000u

/* Of RF64: the length of the samples is in its first chunk; libsndfile reads no other. */
#define DS64_DATA_AT (FIRST_CHUNK + HEAD_BYTES + 8)
#define DS64_END (DS64_DATA_AT + 8)
#define UNKNOWN_MIN_64 ((uint64_t)UNKNOWN_MIN << 32)

static bool is_chunk(struct span file, size_t at, const char *type)
{
    return in_range(at, HEAD_BYTES, file.len) && memcmp(file.ptr + at, type, 4) == 0;
}

/* Do whole chunks follow, up to the end of the file? Their types are letters. */
static bool are_chunks(struct span file, size_t at)
{
    while (in_range(at, HEAD_BYTES, file.len)) {
        uint64_t len = load_le32(file.ptr + at + 4);
        for (size_t i = 0; i < 4; i++) {
            if (file.ptr[at + i] < ' ' || file.ptr[at + i] > '~') {
                return false;
            }
        }
        if (len > file.len - at - HEAD_BYTES) {
            return false;
        }
        at += HEAD_BYTES + (size_t)len + (len & 1);
    }
    return at >= file.len;
}

/* |len| is that of the samples, which begin at |data|. One that is not known becomes what is left:
 * libsndfile knows some words for it, and takes a sound of no length for others. */
static enum status check_length(struct span file, uint64_t len, size_t data, bool is_unknown,
                                struct wav_length *out, struct error *err)
{
    size_t left = file.len - data;
    if (is_unknown || (len == 0 && !are_chunks(file, data))) {
        out->bytes = left;
        return ST_OK;
    }
    out->field_bytes = 0;
    return len <= left
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "a damaged WAV file: expected %" PRIu64 " bytes of samples, got %zu",
                           len, left);
}

static enum status check_data(struct span file, size_t at, struct wav_length *out,
                              struct error *err)
{
    uint32_t len = load_le32(file.ptr + at + 4);
    bool is_long =
        memcmp(file.ptr, "RF64", 4) == 0 && is_chunk(file, FIRST_CHUNK, "ds64") && at >= DS64_END;
    if (is_long) {
        uint64_t len_64 = load_le64(file.ptr + DS64_DATA_AT);
        *out = (struct wav_length){.at = DS64_DATA_AT, .field_bytes = 8};
        return check_length(file, len_64, at + HEAD_BYTES, len_64 >= UNKNOWN_MIN_64, out, err);
    }
    *out = (struct wav_length){.at = at + 4, .field_bytes = 4};
    return check_length(file, len, at + HEAD_BYTES, len >= UNKNOWN_MIN, out, err);
}

enum status wav_check_length(struct span file, struct wav_length *out, struct error *err)
{
    size_t at = FIRST_CHUNK;
    *out = (struct wav_length){.field_bytes = 0};
    while (in_range(at, HEAD_BYTES, file.len)) {
        if (is_chunk(file, at, "data")) {
            return check_data(file, at, out, err);
        }
        uint32_t len = load_le32(file.ptr + at + 4);
        if (len > file.len - at - HEAD_BYTES) {
            break; /* libsndfile says what it makes of that */
        }
        at += HEAD_BYTES + (size_t)len + (len & 1);
    }
    return ST_OK;
}
