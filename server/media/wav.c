/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/wav.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#define FIRST_CHUNK 12 /* behind "RIFF", the length of all, "WAVE" */
#define HEAD_BYTES 8   /* of a chunk: type and length */

/* From here on a length says "unknown": 2^31 - 1 and 2^32 - 1, less what stands before it. */
#define UNKNOWN_MIN 0x7f000000u

enum status wav_verify_length(struct span file, struct error *err)
{
    size_t at = FIRST_CHUNK;
    while (in_range(at, HEAD_BYTES, file.len)) {
        uint32_t len = load_le32(file.ptr + at + 4);
        size_t left = file.len - at - HEAD_BYTES;
        if (memcmp(file.ptr + at, "data", 4) == 0) {
            return len <= left || len >= UNKNOWN_MIN
                       ? ST_OK
                       : error_set(err, ST_INVALID,
                                   "a damaged WAV file: expected %" PRIu32
                                   " bytes of samples, got %zu",
                                   len, left);
        }
        if (len > left) {
            break; /* libsndfile says what it makes of that */
        }
        at += HEAD_BYTES + (size_t)len + (len & 1);
    }
    return ST_OK;
}
