/* SPDX-License-Identifier: MIT */
/* Inputs and outputs of methods. A struct pted_info is the struct rt_io of the runtime. */
#include "config.h"

#include "base/dtype.h"
#include "base/table.h"
#include "lib/inside.h"
#include "runtime/program/keep.h"
#include "runtime/program/program.h"

static const struct rt_io *io_of(const struct pted_info *info)
{
    return (const struct rt_io *)(const void *)info;
}

static const struct pted_info *info_of(const struct rt_io *io)
{
    return (const struct pted_info *)(const void *)io;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* The public ones are ExecuTorch's, which are PyTorch's. */
static bool find(enum pted_dtype number, enum dtype *out_dtype)
{
    return dtype_from_executorch((int)number, out_dtype) && dtype_is_public(*out_dtype);
}

const char *pted_dtype_name(enum pted_dtype number)
{
    enum dtype dtype;
    return find(number, &dtype) ? dtype_name(dtype) : NULL;
}

size_t pted_dtype_bytes(enum pted_dtype number)
{
    enum dtype dtype;
    return find(number, &dtype) ? dtype_bytes(dtype) : 0;
}

/* ---- of a method ----------------------------------------------------------------------------- */

size_t pted_method_input_count(const struct pted_method *method)
{
    return rt_method_input_count(method->rt);
}

size_t pted_method_output_count(const struct pted_method *method)
{
    return rt_method_result_count(method->rt);
}

size_t pted_method_kept_count(const struct pted_method *method)
{
    return rt_method_kept_count(method->rt);
}

const struct pted_info *pted_method_input(const struct pted_method *method, size_t index)
{
    return index < pted_method_input_count(method)
               ? info_of(rt_method_input(method->rt, (uint32_t)index))
               : NULL;
}

const struct pted_info *pted_method_output(const struct pted_method *method, size_t index)
{
    return index < pted_method_output_count(method)
               ? info_of(rt_method_result(method->rt, (uint32_t)index))
               : NULL;
}

bool pted_method_find_input(const struct pted_method *method, const char *name, size_t *out_index)
{
    for (size_t i = 0; i < pted_method_input_count(method); i++) {
        if (rt_io_is_called(io_of(pted_method_input(method, i)), span_str(name))) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

bool pted_method_find_output(const struct pted_method *method, const char *name, size_t *out_index)
{
    for (size_t i = 0; i < pted_method_output_count(method); i++) {
        if (rt_io_is_called(io_of(pted_method_output(method, i)), span_str(name))) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

/* ---- of an info ------------------------------------------------------------------------------ */

const char *pted_info_name(const struct pted_info *info)
{
    return io_of(info)->name;
}

enum pted_kind pted_info_kind(const struct pted_info *info)
{
    static const enum pted_kind kinds[] = {
        [RT_IO_NONE] = PTED_KIND_NONE, [RT_IO_TENSOR] = PTED_KIND_TENSOR,
        [RT_IO_INT] = PTED_KIND_INT,   [RT_IO_FLOAT] = PTED_KIND_FLOAT,
        [RT_IO_BOOL] = PTED_KIND_BOOL, [RT_IO_STRING] = PTED_KIND_STRING,
    };
    TABLE_ENDS_WITH(kinds, RT_IO_STRING);
    return kinds[io_of(info)->kind];
}

enum pted_dtype pted_info_dtype(const struct pted_info *info)
{
    return (enum pted_dtype)dtype_infos[io_of(info)->dtype].executorch;
}

size_t pted_info_rank(const struct pted_info *info)
{
    return io_of(info)->shape.rank;
}

int64_t pted_info_dim(const struct pted_info *info, size_t dim)
{
    return dim < pted_info_rank(info) ? io_of(info)->shape.dims[dim] : 0;
}

bool pted_info_dim_varies(const struct pted_info *info, size_t dim)
{
    return dim < pted_info_rank(info) && rt_io_is_dynamic(io_of(info), (uint32_t)dim);
}

bool pted_info_is_fixed(const struct pted_info *info)
{
    return io_of(info)->is_fixed;
}
