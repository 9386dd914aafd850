/* SPDX-License-Identifier: MIT */
/*
 * Is an MP3 whole? Encoders may put a frame of silence first, with the number of frames behind it;
 * libmpg123 does not tell that number from its own. And it drops a last frame that was cut.
 *
 * Sources: ISO/IEC 11172-3, 2.4.1.3 and 2.4.3.1, and ISO/IEC 13818-3 (the head of a frame, and its
 * length); gabriel.mp3-tech.org, "LAME Tag" rev. 1 ("Xing" and "Info"). Any thread.
 */
#ifndef PTED_SERVER_MEDIA_MP3_H
#define PTED_SERVER_MEDIA_MP3_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* Returns 0 if |file|, without tags before it, does not say it. */
uint32_t mp3_declared_frames(struct span file);

/* Follows the heads of frames of |file|, without tags around it. True: the last frame is longer
 * than the file. False, too, if something other than a frame lies between, or a frame's length is
 * free. */
bool mp3_ends_in_frame(struct span file);

#endif
