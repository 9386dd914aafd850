/* SPDX-License-Identifier: MIT */
/* A regular expression of Oniguruma or of Rust's engines as one of PCRE2. */
#ifndef PTED_SERVER_TEXT_PATTERN_TRANSLATE_H
#define PTED_SERVER_TEXT_PATTERN_TRANSLATE_H

#include "base/buf.h"
#include "server/text/pattern.h"

/* Fails with ST_UNSUPPORTED for a construct that has another meaning in PCRE2, or none that is
 * known here; the text says the byte. */
MUST_CHECK enum status pattern_translate(struct span source, enum pattern_dialect dialect,
                                         struct buf *out, struct error *err);

#endif
