/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/oracle.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/table.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/program/method.h"

/* ---- text ------------------------------------------------------------------------------------ */

void rt_io_print(const struct rt_io *io, struct buf *out)
{
    static const char *const names[] = {
        [RT_IO_NONE] = "nothing", [RT_IO_INT] = "an int",      [RT_IO_FLOAT] = "a float",
        [RT_IO_BOOL] = "a bool",  [RT_IO_STRING] = "a string",
    };
    TABLE_ENDS_WITH(names, RT_IO_STRING);
    if (io->kind != RT_IO_TENSOR) {
        buf_add_str(out, names[io->kind]);
        return;
    }
    buf_printf(out, "%s[", dtype_name(io->dtype));
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        buf_add_str(out, d ? "," : "");
        if (rt_io_is_dynamic(io, d)) {
            buf_add_char(out, '?');
        } else {
            buf_printf(out, "%" PRId64, io->shape.dims[d]);
        }
    }
    buf_add_char(out, ']');
}

enum status rt_io_refuse(const struct rt_io *io, const char *given, struct error *err)
{
    struct buf type;
    buf_init(&type, 512);
    rt_io_print(io, &type);
    error_set(err, ST_INVALID, "expected %.*s, got %s", SPAN_FMT(buf_span(&type)), given);
    buf_fini(&type);
    return ST_INVALID;
}

enum status rt_io_missing(const struct rt_io *io, const char *label, struct error *err)
{
    struct buf type;
    buf_init(&type, 512);
    rt_io_print(io, &type);
    error_set(err, ST_INVALID, "%s is missing, expected %.*s", label, SPAN_FMT(buf_span(&type)));
    buf_fini(&type);
    return ST_INVALID;
}

static enum status refuse_tensor(const struct rt_io *io, enum dtype dtype,
                                 const struct shape *shape, struct error *err)
{
    char dims[SHAPE_TEXT_MAX], text[160];
    snprintf(text, sizeof(text), "%s%s", dtype_name(dtype), shape_print(shape, dims));
    return rt_io_refuse(io, text, err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static enum status check_type(const struct rt_io *io, enum dtype dtype, const struct shape *shape,
                              struct error *err)
{
    if (io->kind != RT_IO_TENSOR || io->dtype != dtype || io->shape.rank != shape->rank) {
        return refuse_tensor(io, dtype, shape, err);
    }
    for (uint8_t d = 0; d < shape->rank; d++) {
        bool is_dynamic = rt_io_is_dynamic(io, d);
        if (is_dynamic && shape->dims[d] > io->shape.dims[d]) {
            return error_set(err, ST_INVALID, "dim %u is %" PRId64 ", expected at most %" PRId64, d,
                             shape->dims[d], io->shape.dims[d]);
        }
        if (!is_dynamic && shape->dims[d] != io->shape.dims[d]) {
            return refuse_tensor(io, dtype, shape, err);
        }
    }
    return ST_OK;
}

static enum status refuse_extent(const struct rt_buffer_desc *given, size_t bytes,
                                 struct error *err)
{
    return error_set(err, ST_INVALID, "%zu bytes at %zu do not lie inside a buffer of %zu bytes",
                     bytes, given->offset, hal_buffer_size(given->buffer));
}

/* Does every element lie inside the buffer? Without a buffer the offset has to be valid. */
static enum status check_extent(const struct rt_buffer_desc *given, size_t bytes, struct error *err)
{
    size_t size = hal_buffer_size(given->buffer);
    int64_t element = (int64_t)dtype_bytes(given->dtype), low = 0, high = 0;
    int64_t from = 0, to = 0, offset = (int64_t)given->offset;
    if (given->offset > size) {
        return refuse_extent(given, bytes, err);
    }
    if (bytes == 0) {
        return ST_OK;
    }
    if (!given->has_strides) {
        high = (int64_t)bytes / element - 1;
    } else if (!shape_reach(&given->shape, given->strides, &low, &high)) {
        return error_set(err, ST_INVALID, "the strides reach beyond all memory");
    }
    bool is_inside = mul_i64(low, element, &from) && mul_i64(high, element, &to) &&
                     add_i64(offset, from, &from) && add_i64(offset, to, &to) && from >= 0 &&
                     (uint64_t)to < size && size - (uint64_t)to >= (uint64_t)element;
    return is_inside ? ST_OK : refuse_extent(given, bytes, err);
}

static size_t alignment(const struct hal_device *device, enum dtype dtype)
{
    size_t element = dtype_bytes(dtype), align = hal_device_props(device)->offset_align;
    return align > element ? align : element;
}

size_t rt_oracle_alignment(const struct rt_method *method, enum dtype dtype)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return alignment(method->device, dtype);
}

/* Is |given| row-major? Both orders of a tensor without elements, or of one pixel, are that. */
static bool is_row_major(const struct rt_buffer_desc *given, size_t bytes)
{
    return bytes == 0 || !given->has_strides || shape_is_packed(&given->shape, given->strides, 1);
}

static bool has_order(const struct rt_io *io, const struct rt_buffer_desc *given)
{
    return io->order && shape_is_packed_in(&given->shape, io->order, given->strides, 1);
}

enum status rt_oracle_measure(const struct rt_io *io, enum dtype dtype, const struct shape *shape,
                              size_t *out_bytes, struct error *err)
{
    TRY(check_type(io, dtype, shape, err));
    return shape_bytes(shape, dtype, out_bytes, err);
}

enum rt_oracle_answer rt_oracle(const struct rt_io *io, const struct hal_device *device,
                                const struct rt_buffer_desc *given,
                                struct rt_buffer_desc *out_wanted, size_t *out_bytes,
                                struct error *err)
{
    size_t bytes = 0;
    if (rt_oracle_measure(io, given->dtype, &given->shape, &bytes, err) != ST_OK ||
        (given->buffer && check_extent(given, bytes, err) != ST_OK)) {
        return RT_ORACLE_UNSUPPORTED;
    }
    *out_wanted = (struct rt_buffer_desc){.dtype = given->dtype, .shape = given->shape};
    *out_bytes = bytes;
    bool is_usable = given->buffer && hal_buffer_device(given->buffer) == device &&
                     (bytes == 0 || given->offset % alignment(device, given->dtype) == 0);
    if (is_usable && is_row_major(given, bytes)) {
        return RT_ORACLE_USE;
    }
    if (io->order) {
        out_wanted->has_strides = true;
        shape_order_strides(&given->shape, io->order, out_wanted->strides);
    }
    if (!given->buffer) {
        return RT_ORACLE_ALLOCATE;
    }
    return is_usable && has_order(io, given) ? RT_ORACLE_USE : RT_ORACLE_CONVERT;
}
