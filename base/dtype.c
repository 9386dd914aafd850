/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/dtype.h"

const struct dtype_info dtype_infos[DTYPE_COUNT] = {
#define DTYPE(name, size, et, short_text, oip_name, sig, long_name, kind_name)                     \
    [DT_##name] = {.text = short_text,                                                             \
                   .oip = oip_name,                                                                \
                   .long_text = long_name,                                                         \
                   .bytes = size,                                                                  \
                   .executorch = et,                                                               \
                   .signature = sig,                                                               \
                   .kind = DTYPE_##kind_name},
#include "base/dtype.def"
#undef DTYPE
};

const char *dtype_name(enum dtype dtype)
{
    const char *name = dtype_infos[dtype].long_text; /* "sint64": signatures name the sign */
    return dtype_infos[dtype].kind == DTYPE_INT ? name + 1 : name;
}

bool dtype_from_executorch(int number, enum dtype *out_dtype)
{
    for (enum dtype d = 0; d < DTYPE_COUNT; d++) {
        if (dtype_infos[d].executorch == number) {
            *out_dtype = d;
            return true;
        }
    }
    return false;
}

bool dtype_from_oip(struct span name, enum dtype *out_dtype)
{
    for (enum dtype d = 0; d < DTYPE_COUNT; d++) {
        if (dtype_is_public(d) && span_is(name, dtype_infos[d].oip)) {
            *out_dtype = d;
            return true;
        }
    }
    return false;
}

bool dtype_from_signature(int64_t code, enum dtype *out_dtype)
{
    for (enum dtype d = 0; d < DTYPE_COUNT; d++) {
        if (code >= 0 && dtype_infos[d].signature == code) {
            *out_dtype = d;
            return true;
        }
    }
    return false;
}
