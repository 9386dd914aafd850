/* SPDX-License-Identifier: MIT */
/* libwebp, which reads WebP files, loaded when something first needs it. */
#ifndef PTED_SERVER_MEDIA_LIBWEBP_H
#define PTED_SERVER_MEDIA_LIBWEBP_H

#include <webp/decode.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "WebP". */
struct libwebp {
    int (*InitDecoderConfigInternal)(WebPDecoderConfig *config, int version);
    VP8StatusCode (*Decode)(const uint8_t *data, size_t len, WebPDecoderConfig *config);
};

/* Does as sndfile_load(). */
MUST_CHECK enum status libwebp_load(const struct libwebp **library, struct error *err);

#endif
