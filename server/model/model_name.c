/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/model_name.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"

#define VERSION_DIGITS_MAX 9

bool model_name_is_valid(struct span name)
{
    if (name.len == 0 || name.len > MODEL_NAME_MAX || name.ptr[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!isalnum(name.ptr[i]) && !memchr("._-", name.ptr[i], 3)) {
            return false;
        }
    }
    return true;
}

enum status model_name_verify(struct span name, struct error *err)
{
    return model_name_is_valid(name)
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "model name '%.*s': expected 1 to %d of A-Z a-z 0-9 . _ -, no dot first",
                           SPAN_FMT(name), MODEL_NAME_MAX);
}

void model_name_copy(struct span name, char out[MODEL_NAME_MAX + 1])
{
    must(name.len <= MODEL_NAME_MAX);
    if (name.len) {
        memcpy(out, name.ptr, name.len);
    }
    out[name.len] = '\0';
}

bool model_name_parse_version(struct span text, uint32_t *out_version)
{
    if (text.len == 0 || text.len > VERSION_DIGITS_MAX) {
        return false;
    }
    uint32_t version = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        version = version * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    *out_version = version;
    return version > 0;
}
