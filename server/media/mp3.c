/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/mp3.h"

#include <stdbool.h>
#include <string.h>

#define HEAD_BYTES 4
#define HAS_FRAME_COUNT 1 /* of the flags behind the name */

/* Of the second and the fourth byte of a head. */
#define IS_MPEG_1 0x08
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
