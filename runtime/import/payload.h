/* SPDX-License-Identifier: MIT */
/*
 * The frame that ExecuTorch's exporters put around a delegate's flatbuffer: a header with the
 * places of the flatbuffer and of the constants after it. The oldest files have a flatbuffer
 * without a header.
 *
 * Source: exir's XNNPACK and Vulkan serializers, whose headers differ only in their magic.
 */
#ifndef PTED_RUNTIME_IMPORT_PAYLOAD_H
#define PTED_RUNTIME_IMPORT_PAYLOAD_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

struct rt_payload {
    bool has_header;
    struct span flatbuffer; /* at least 8 bytes; borrowed, like |behind| */
    struct span behind;     /* the constants; may be empty */
};

/* |magic| is four letters, such as "XH00". ST_CORRUPT if a range does not fit into |bytes|. */
MUST_CHECK enum status rt_payload_parse(struct span bytes, const char *magic,
                                        struct rt_payload *out_payload, struct error *err);

/* Is the flatbuffer's own identifier |identifier|, such as "XN01"? */
bool rt_payload_is(const struct rt_payload *payload, const char *identifier);

#endif
