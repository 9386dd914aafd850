/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions of tokenizers, by PCRE2, which is loaded when a tokenizer first needs it.
 *
 * The files are written for other engines. A pattern is therefore translated: each construct that
 * means the same in PCRE2 is taken over, \s, \w and names of scripts are rewritten, and everything
 * else is refused by name. A compiled pattern is immutable; any thread.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_PATTERN_H
#define PTED_SERVER_TEXT_TOKENIZER_PATTERN_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

#define PATTERN_BYTES_MAX 8192
#define PATTERN_STEPS_MAX 2000000 /* of one match */

struct pattern;

/* Where |^| and |$| match: at each line, as for tokenizer.json, or at the ends of the text alone.
 */
enum pattern_dialect { PATTERN_LINES, PATTERN_TEXT };

MUST_CHECK enum status pattern_new(struct span source, enum pattern_dialect dialect,
                                   struct pattern **out, struct error *err);
void pattern_free(struct pattern *pattern);

/* Memory in which one thread matches; NULL in the beginning, made by pattern_search_next(). */
struct pattern_scratch;
void pattern_scratch_free(struct pattern_scratch *scratch);

/* The matches in a text, one after the other, as the library tokenizers goes through them. */
struct pattern_search {
    const struct pattern *pattern; /* borrowed; NULL: |literal| */
    struct span literal, text;     /* borrowed; valid UTF-8 */
    size_t from;
    size_t last_end; /* of the match before; SIZE_MAX: none */
};

void pattern_search_begin(struct pattern_search *search, const struct pattern *pattern,
                          struct span literal, struct span text);

/* Finds the next match; *out_start becomes SIZE_MAX if there is none. Nothing matches in an empty
 * text, and no empty match begins where the match before ends. Fails with ST_INVALID if a match
 * takes more than PATTERN_STEPS_MAX steps. */
MUST_CHECK enum status pattern_search_next(struct pattern_search *search,
                                           struct pattern_scratch **scratch, size_t *out_start,
                                           size_t *out_end, struct error *err);

#endif
