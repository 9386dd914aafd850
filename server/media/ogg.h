/* SPDX-License-Identifier: MIT */
/*
 * The pages of an Ogg file with Vorbis or Opus, before libsndfile sees them: releases up to 1.2
 * lose some kilobytes with each file whose headers they cannot read. So all that can stop them
 * there is checked here first: the pages of the headers, their checksums and numbers, and the first
 * header. They also read what is left of a file that was cut, and only the first of several
 * streams. So the last page has to be whole, and all pages of the same stream.
 *
 * A file that lost whole pages at its end is accepted: the flag "end of stream" of the last page is
 * not asked for. What was recorded from a live stream lacks it, and RFC 7845, 3, asks readers to
 * accept that.
 *
 * Sources: RFC 3533 (pages); Vorbis I specification, 4.2, and RFC 7845, 5 (headers).
 * Any thread.
 */
#ifndef PTED_SERVER_MEDIA_OGG_H
#define PTED_SERVER_MEDIA_OGG_H

#include "base/bytes.h"
#include "base/status.h"

/* The headers end within so many bytes. */
#define OGG_HEADER_BYTES_MAX ((size_t)1 << 20)

/* Fails with ST_INVALID: "a damaged Ogg file: page 2: ...", or it holds something else. */
MUST_CHECK enum status ogg_verify(struct span file, struct error *err);

#endif
