/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/model_name.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"
#include "server/process/fetch.h"

#define VERSION_DIGITS_MAX 9

/* Ultralytics writes a folder with this ending. */
#define FOLDER_SUFFIX "_executorch_model"

static bool may_have(uint8_t byte)
{
    return isalnum(byte) || memchr("._-", byte, 3);
}

bool model_name_is_valid(struct span name)
{
    if (name.len == 0 || name.len > MODEL_NAME_MAX || name.ptr[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!may_have(name.ptr[i])) {
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

static struct span without(struct span name, const char *suffix)
{
    size_t len = strlen(suffix);
    bool has_it = name.len > len && memcmp(name.ptr + name.len - len, suffix, len) == 0;
    return span_of(name.ptr, name.len - (has_it ? len : 0));
}

struct span model_name_of_file(const char *path, char out[MODEL_NAME_MAX + 1])
{
    size_t len = fetch_is_url(path) ? strcspn(path, "?#") : strlen(path);
    while (len > 1 && path[len - 1] == '/') {
        len--; /* a folder */
    }
    const char *slash = memrchr(path, '/', len);
    size_t start = slash ? (size_t)(slash + 1 - path) : 0;
    struct span from = span_of(path + start, len - start);
    from = without(without(from, ".pte"), FOLDER_SUFFIX);
    size_t count = 0;
    bool is_behind_others = false;
    for (size_t i = 0; i < from.len && count + is_behind_others < MODEL_NAME_MAX; i++) {
        if (!may_have(from.ptr[i]) || (count == 0 && from.ptr[i] == '.')) {
            is_behind_others = count > 0;
            continue;
        }
        if (is_behind_others) {
            out[count++] = '_';
        }
        is_behind_others = false;
        out[count++] = (char)from.ptr[i];
    }
    if (count == 0) {
        model_name_copy(span_str("model"), out);
        return span_str(out);
    }
    out[count] = '\0';
    return span_of(out, count);
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
