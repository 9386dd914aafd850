/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/inside.h"

static const enum pted_status numbers[STATUS_COUNT] = {
    [ST_OK] = PTED_OK,
    [ST_INVALID] = PTED_INVALID,
    [ST_NOT_FOUND] = PTED_NOT_FOUND,
    [ST_TOO_LARGE] = PTED_TOO_LARGE,
    [ST_UNSUPPORTED] = PTED_UNSUPPORTED,
    [ST_EXHAUSTED] = PTED_EXHAUSTED,
    [ST_TIMEOUT] = PTED_INTERNAL, /* calls have no deadlines here */
    [ST_CANCELLED] = PTED_CANCELLED,
    [ST_CORRUPT] = PTED_CORRUPT,
    [ST_UNAVAILABLE] = PTED_UNAVAILABLE,
    [ST_SYSTEM] = PTED_SYSTEM_ERROR,
    [ST_UNWRITTEN] = PTED_SYSTEM_ERROR,
    [ST_WOULD_PLAN] = PTED_INTERNAL, /* calls are planned at once, and so on */
    [ST_WOULD_LOAD] = PTED_INTERNAL,
    [ST_WOULD_BE_HEAVY] = PTED_INTERNAL,
    [ST_INTERNAL] = PTED_INTERNAL,
};

enum pted_status lib_give(enum status status, const struct error *err, struct pted_error *out_err)
{
    enum pted_status number = numbers[status];
    if (status != ST_OK && out_err) {
        out_err->status = number;
        snprintf(out_err->text, sizeof(out_err->text), "%s", err ? err->text : status_text(status));
    }
    return number;
}

enum pted_status lib_refuse(struct pted_error *err, enum status status, const char *fmt, ...)
{
    struct error own;
    va_list args;
    va_start(args, fmt);
    error_setv(&own, status, fmt, args);
    va_end(args);
    return lib_give(status, &own, err);
}

const char *pted_status_text(enum pted_status status)
{
    for (unsigned i = 0; i < STATUS_COUNT; i++) {
        if (numbers[i] == status && i != ST_TIMEOUT && i != ST_WOULD_PLAN && i != ST_WOULD_LOAD &&
            i != ST_WOULD_BE_HEAVY) {
            return status_text((enum status)i);
        }
    }
    return "no status of pted.h";
}

const char *pted_version(void)
{
    return PACKAGE_VERSION;
}
