/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/oip_layout.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/json.h"

static enum status read_strides(struct json *in, struct oip_layout *out, struct error *err)
{
    out->has_strides = true;
    out->count = 0;
    TRY(json_array(in, err));
    while (true) {
        int64_t stride;
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(json_read_i64(in, &stride, err));
        if (out->count == SHAPE_RANK_MAX) {
            return json_fail(in, err, ST_TOO_LARGE, "more than %d strides", SHAPE_RANK_MAX);
        }
        out->strides[out->count++] = stride;
    }
}

enum status oip_read_order(struct json *in, bool *out_is_channels_last, struct error *err)
{
    struct json_string order;
    TRY(json_read_string(in, &order, err));
    *out_is_channels_last = json_string_is(&order, "channels_last");
    return *out_is_channels_last || json_string_is(&order, "row_major")
               ? ST_OK
               : json_fail(in, err, ST_INVALID,
                           "expected 'row_major' or 'channels_last', got '%.*s'",
                           SPAN_SHORT(order.raw));
}

enum status oip_read_layout(struct json *in, const struct json_string *key, struct oip_layout *out,
                            bool *out_is_read, struct error *err)
{
    bool is_strides = json_string_is(key, "strides"), is_order = json_string_is(key, "order");
    *out_is_read = is_strides || is_order || json_string_is(key, "offset");
    if (!*out_is_read) {
        return ST_OK;
    }
    out->is_given = true;
    out->has_order |= is_order;
    return is_strides ? read_strides(in, out, err)
           : is_order ? oip_read_order(in, &out->is_channels_last, err)
                      : json_read_u64(in, &out->offset, err);
}

static enum status check_strides(const struct oip_layout *layout, const struct shape *shape,
                                 enum dtype dtype, struct error *err)
{
    char text[SHAPE_TEXT_MAX];
    int64_t element = (int64_t)dtype_bytes(dtype);
    if (layout->count != shape->rank) {
        return error_set(err, ST_INVALID, ".strides: expected %u (shape %.80s), got %u",
                         shape->rank, shape_print(shape, text), layout->count);
    }
    for (uint8_t d = 0; d < shape->rank; d++) {
        if (layout->strides[d] % element != 0) {
            return error_set(err, ST_INVALID,
                             ".strides[%u]: expected a multiple of %" PRId64
                             ", the bytes of an element, got %" PRId64,
                             d, element, layout->strides[d]);
        }
    }
    return ST_OK;
}

static enum status refuse_reach(const struct oip_layout *layout, const struct shape *shape,
                                size_t bytes, struct error *err)
{
    struct shape strides = {.rank = shape->rank};
    char dims[SHAPE_TEXT_MAX], steps[SHAPE_TEXT_MAX];
    memcpy(strides.dims, layout->strides, shape->rank * sizeof(strides.dims[0]));
    return error_set(err, ST_INVALID,
                     ": shape %.60s with strides %.60s from byte %" PRIu64
                     " on reaches beyond the %zu bytes that came",
                     shape_print(shape, dims), shape_print(&strides, steps), layout->offset, bytes);
}

/* Strides in bytes of a packed tensor in the order that was sent. */
static enum status fill_strides(struct oip_layout *layout, const struct shape *shape,
                                enum dtype dtype, struct error *err)
{
    const uint8_t *order = layout->is_channels_last ? shape_channels_last(shape->rank) : NULL;
    char text[SHAPE_TEXT_MAX];
    if (layout->is_channels_last && !order) {
        return error_set(err, ST_INVALID, ".order: expected 3 to 5 dims, got shape %.80s",
                         shape_print(shape, text));
    }
    shape_order_strides(shape, order, layout->strides);
    for (uint8_t d = 0; d < shape->rank; d++) {
        layout->strides[d] *= (int64_t)dtype_bytes(dtype);
    }
    return ST_OK;
}

enum status oip_settle_layout(struct oip_layout *layout, const struct shape *shape,
                              enum dtype dtype, size_t bytes, struct error *err)
{
    int64_t element = (int64_t)dtype_bytes(dtype), low = 0, high = 0;
    if (layout->has_strides && layout->has_order) {
        return error_set(err, ST_INVALID, ": expected strides or an order, got both");
    }
    TRY(layout->has_strides ? check_strides(layout, shape, dtype, err)
                            : fill_strides(layout, shape, dtype, err));
    bool is_inside = layout->offset <= bytes;
    if (is_inside && shape_numel(shape) > 0) {
        is_inside = shape_reach(shape, layout->strides, &low, &high);
        uint64_t below = 0 - (uint64_t)low, above = (uint64_t)high + (uint64_t)element;
        is_inside = is_inside && below <= layout->offset && above <= bytes - layout->offset;
    }
    return is_inside ? ST_OK : refuse_reach(layout, shape, bytes, err);
}

void oip_drop_layout(struct oip_layout *layout, const struct shape *shape, enum dtype dtype,
                     struct span *data)
{
    int64_t element = (int64_t)dtype_bytes(dtype), numel = shape_numel(shape);
    if (numel == 0 || shape_is_packed(shape, layout->strides, element)) {
        *data = span_of(data->ptr + layout->offset, (size_t)(numel * element));
        layout->is_given = false;
    }
}
