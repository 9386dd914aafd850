/* SPDX-License-Identifier: MIT */
/*
 * What the first frame of an MP3 may say of the others: encoders put a frame of silence there, with
 * the number of frames behind it. libmpg123 does not tell that number from its own.
 *
 * Sources: ISO/IEC 11172-3, 2.4.1.3 (the head of a frame); gabriel.mp3-tech.org, "LAME Tag" rev. 1
 * ("Xing" and "Info"). Any thread.
 */
#ifndef PTED_SERVER_MEDIA_MP3_H
#define PTED_SERVER_MEDIA_MP3_H

#include <stdint.h>

#include "base/bytes.h"

/* Returns 0 if |file|, without tags before it, does not say it. */
uint32_t mp3_declared_frames(struct span file);

#endif
