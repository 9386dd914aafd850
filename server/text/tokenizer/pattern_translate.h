/* SPDX-License-Identifier: MIT */
#ifndef PTED_SERVER_TEXT_TOKENIZER_PATTERN_TRANSLATE_H
#define PTED_SERVER_TEXT_TOKENIZER_PATTERN_TRANSLATE_H

#include "base/buf.h"
#include "server/text/tokenizer/pattern.h"

#define PATTERN_OUT_MAX ((size_t)PATTERN_BYTES_MAX * 32)

/* A pattern in the syntax of PCRE2. */
struct pattern_translation {
    struct buf text;       /* owned */
    struct buf places;     /* owned; for pattern_translation_place() */
    bool has_empty_choice; /* an alternative takes no character, whatever the text */
};

void pattern_translation_init(struct pattern_translation *translation);
void pattern_translation_fini(struct pattern_translation *translation);

/* Translates |source|, valid UTF-8. Needs unicode_load(). Fails with ST_UNSUPPORTED, ST_CORRUPT,
 * ST_TOO_LARGE or ST_EXHAUSTED; the error says the byte of |source|. */
MUST_CHECK enum status pattern_translate(struct span source, enum pattern_dialect dialect,
                                         struct pattern_translation *out, struct error *err);

/* Returns the byte of the source whose translation stands at |at|. */
size_t pattern_translation_place(const struct pattern_translation *translation, size_t at);

#endif
