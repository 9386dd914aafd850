/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/mp3.h"

#include <string.h>

#define HEAD_BYTES 4
#define HAS_FRAME_COUNT 1 /* of the flags behind the name */

/* Of the second and the fourth byte of a head. */
#define IS_MPEG_1 0x08
#define IS_MPEG_1_OR_2 0x10 /* not 2.5 */
#define CHANNELS_MASK 0xc0
#define CHANNELS_ONE 0xc0

/* The name stands where the samples would, behind the side information. */
static size_t name_at(const uint8_t *head)
{
    bool is_one = (head[3] & CHANNELS_MASK) == CHANNELS_ONE;
    size_t side = head[1] & IS_MPEG_1 ? (is_one ? 17 : 32) : (is_one ? 9 : 17);
    return HEAD_BYTES + side;
}

uint32_t mp3_declared_frames(struct span file)
{
    const uint8_t *at = file.ptr;
    if (file.len < HEAD_BYTES || at[0] != 0xff || at[1] < 0xe0) {
        return 0;
    }
    size_t name = name_at(at);
    if (file.len < name + 12) {
        return 0;
    }
    at += name;
    bool is_named = memcmp(at, "Xing", 4) == 0 || memcmp(at, "Info", 4) == 0;
    return is_named && (load_be32(at + 4) & HAS_FRAME_COUNT) ? load_be32(at + 8) : 0;
}

/* Kilobits a second, by the upper bits of the third byte: MPEG 1, and those with half its rate. 0
 * is a rate that no table has. */
static const uint16_t bit_rates[2][16] = {
    {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},
    {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0},
};

/* Bytes of the frame, with its head; 0: it is none, or does not say it. */
static uint32_t frame_bytes(const uint8_t *head)
{
    static const uint32_t rates[4] = {44100, 48000, 32000, 0};
    bool is_half = !(head[1] & IS_MPEG_1);
    uint32_t rate = rates[head[2] >> 2 & 3] >> is_half >> !(head[1] & IS_MPEG_1_OR_2);
    uint32_t bits = bit_rates[is_half][head[2] >> 4] * UINT32_C(1000), padding = head[2] >> 1 & 1;
    if (bits == 0 || rate == 0) {
        return 0;
    }
    return (is_half ? 72 : 144) * bits / rate + padding;
}

/* Do the bytes there, fewer than 4 at the end, begin a frame of the same sound? */
static bool begins_frame(const uint8_t *first, struct span rest)
{
    static const uint8_t same[HEAD_BYTES] = {0xff, 0xfe, 0x0c, 0};
    bool is_same = rest.len > 0;
    for (size_t i = 0; i < HEAD_BYTES && i < rest.len; i++) {
        is_same = is_same && ((first[i] ^ rest.ptr[i]) & same[i]) == 0;
    }
    return is_same;
}

bool mp3_ends_in_frame(struct span file)
{
    struct span rest = file;
    bool is_layer_3 = file.len >= HEAD_BYTES && file.ptr[0] == 0xff && (file.ptr[1] & 0xe6) == 0xe2;
    while (is_layer_3 && begins_frame(file.ptr, rest)) {
        if (rest.len < HEAD_BYTES) {
            return true;
        }
        uint32_t bytes = frame_bytes(rest.ptr);
        if (bytes == 0 || bytes > rest.len) {
            return bytes > 0;
        }
        rest = span_of(rest.ptr + bytes, rest.len - bytes);
    }
    return false;
}
