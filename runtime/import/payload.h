/* SPDX-License-Identifier: MIT */
/*
 * What ExecuTorch's exporters put around a delegate's flatbuffer: a header that says where it lies,
 * and where the constants behind it do. Oldest files have the bare flatbuffer.
 *
 * Source: exir's XNNPACK and Vulkan serializers, whose headers differ in their magic alone.
 */
#ifndef PTED_RUNTIME_IMPORT_PAYLOAD_H
#define PTED_RUNTIME_IMPORT_PAYLOAD_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

struct rt_payload {
    bool has_header;
    struct span flatbuffer; /* at least 8 bytes; borrowed, like the next */
    struct span behind;     /* constants; may be empty */
};

/* |magic| is four letters, "XH00". ST_CORRUPT when a range lies outside of |bytes|. */
MUST_CHECK enum status rt_payload_parse(struct span bytes, const char *magic,
                                        struct rt_payload *out_payload, struct error *err);

/* Is the flatbuffer's own identifier |identifier|, "XN01"? */
bool rt_payload_is(const struct rt_payload *payload, const char *identifier);

#endif
