/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/reason.h"

#include "base/check.h"

static const char *const texts[REASON_COUNT] = {
#define REASON(ID, text) [REASON_##ID] = text,
#include "base/reason.def"
#undef REASON
};

const char *reason_text(enum reason reason)
{
    must(reason < REASON_COUNT);
    return texts[reason];
}

enum status reason_set(struct error *err, enum reason reason)
{
    return error_set(err, ST_UNSUPPORTED, "%s", reason_text(reason));
}
