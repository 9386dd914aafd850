/* SPDX-License-Identifier: MIT */
/*
 * Where the elements of a tensor lie in the bytes that were sent: the buffer description of the
 * function signature specification, whose strides are bytes as those of Python's Py_buffer. A
 * client with a numpy array |a| sends the bytes of a.base, a.shape, a.strides and the place of a's
 * first element. numpy.ndarray(shape, dtype, buffer, offset, strides) makes |a| from these again.
 *
 * Any thread.
 */
#ifndef PTED_PROTOCOL_OIP_LAYOUT_H
#define PTED_PROTOCOL_OIP_LAYOUT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"

struct json;
struct json_string;

struct oip_layout {
    bool is_given;                   /* false: packed and row-major, from the first byte on */
    bool has_strides;                /* false: packed, from |offset| on */
    bool has_order;                  /* |is_channels_last| was sent, instead of strides */
    bool is_channels_last;           /* false: row-major */
    uint64_t offset;                 /* of the element whose indices are all 0, in bytes */
    uint8_t count;                   /* of strides that were sent */
    int64_t strides[SHAPE_RANK_MAX]; /* in bytes, any sign; elements may share bytes */
};

/* If |key| is "strides", "order" or "offset": reads its value and sets |*out_is_read|. The order is
 * "row_major" or "channels_last", a short form for the strides of a packed tensor. */
MUST_CHECK enum status oip_read_layout(struct json *in, const struct json_string *key,
                                       struct oip_layout *out, bool *out_is_read,
                                       struct error *err);

/* Reads "row_major" or "channels_last". */
MUST_CHECK enum status oip_read_order(struct json *in, bool *out_is_channels_last,
                                      struct error *err);

/*
 * Checks that the strides suit |shape|, whose bytes can be counted, and that every element lies in
 * the |bytes| bytes that came. If there are none, the strides of a packed tensor are filled in.
 * Errors begin with the text that goes behind a path.
 */
MUST_CHECK enum status oip_settle_layout(struct oip_layout *layout, const struct shape *shape,
                                         enum dtype dtype, size_t bytes, struct error *err);

/* If the tensor lies packed in |data|, |data| becomes what it has of that, and the layout none. */
void oip_drop_layout(struct oip_layout *layout, const struct shape *shape, enum dtype dtype,
                     struct span *data);

#endif
