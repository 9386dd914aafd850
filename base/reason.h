/* SPDX-License-Identifier: MIT */
/* The reasons of reason.def: each text once, for logs, `pte inspect` and descriptions of models. */
#ifndef PTED_BASE_REASON_H
#define PTED_BASE_REASON_H

#include "base/status.h"

enum reason {
#define REASON(ID, text) REASON_##ID,
#include "base/reason.def"
#undef REASON
    REASON_COUNT
};

const char *reason_text(enum reason reason);

/* Returns ST_UNSUPPORTED with the text. */
enum status reason_set(struct error *err, enum reason reason);

#endif
