/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static const char *const texts[STATUS_COUNT] = {
#define STATUS(name, text) [ST_##name] = text,
#include "base/status.def"
#undef STATUS
};

enum status error_setv(struct error *err, enum status code, const char *fmt, va_list args)
{
    must(code != ST_OK);
    if (err) {
        err->code = code;
        err->hidden_len = 0;
        vsnprintf(err->text, sizeof(err->text), fmt, args);
    }
    return code;
}

enum status error_set(struct error *err, enum status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_setv(err, code, fmt, args);
    va_end(args);
    return code;
}

enum status error_no_memory(struct error *err, const char *what, ...)
{
    va_list args;
    va_start(args, what);
    error_setv(err, ST_EXHAUSTED, what, args);
    va_end(args);
    return err ? error_prefix(err, "no memory for ") : ST_EXHAUSTED;
}

enum status error_prefix(struct error *err, const char *fmt, ...)
{
    must(err && err->code != ST_OK);
    char prefix[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    int wanted = vsnprintf(prefix, sizeof(prefix), fmt, args);
    va_end(args);
    if (wanted < 0) {
        return err->code;
    }
    size_t len = strlen(prefix);
    size_t room = sizeof(err->text) - len - 1;
    size_t keep = strlen(err->text);
    if (keep > room) {
        size_t cut = keep - room;
        err->hidden_len -= cut < err->hidden_len ? cut : err->hidden_len;
        keep = room;
    }
    memmove(err->text + len, err->text, keep);
    memcpy(err->text, prefix, len);
    err->text[len + keep] = '\0';
    return err->code;
}

enum status error_hide(struct error *err)
{
    must(err && err->code != ST_OK);
    err->hidden_len = strlen(err->text);
    return err->code;
}

const char *error_log_text(const struct error *err, char out[ERROR_TEXT_MAX])
{
    size_t len = strlen(err->text);
    must(err->hidden_len <= len);
    snprintf(out, ERROR_TEXT_MAX, "%.*s%s", (int)(len - err->hidden_len), err->text,
             err->hidden_len > 0 ? "(only the client is told)" : "");
    return out;
}

enum status status_of_errno(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return ST_NOT_FOUND;
    case EACCES:
    case EPERM:
        return ST_UNAVAILABLE;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return ST_EXHAUSTED;
    default:
        return ST_SYSTEM;
    }
}

const char *status_text(enum status code)
{
    return (unsigned)code < STATUS_COUNT ? texts[code] : "unknown status";
}
