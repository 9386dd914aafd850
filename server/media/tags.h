/* SPDX-License-Identifier: MIT */
/*
 * Tags that programs for MP3 put around files of any kind: ID3v2 before them, APEv2 and ID3v1
 * behind them. libsndfile knows none of them around FLAC or Ogg, and libmpg123 takes a long one at
 * the end for damage.
 *
 * Sources: id3.org, ID3v2.4 3.1 and 3.4 (head, footer), ID3v1 ("TAG" in the last 128 bytes);
 * wiki.hydrogenaud.io, APEv2. Any thread.
 */
#ifndef PTED_SERVER_MEDIA_TAGS_H
#define PTED_SERVER_MEDIA_TAGS_H

#include "base/bytes.h"

/* |file| without them if FLAC, MP3, Ogg or WAV is between them; else the whole of it. Nothing is
 * cut off the end of a WAV: its last samples may look like a tag. */
struct span tags_strip(struct span file);

#endif
