/* SPDX-License-Identifier: MIT */
/*
 * The inside of the translation of patterns: pattern_translate.c reads what stands outside of
 * classes, pattern_class.c reads classes and properties, pattern_fold.c writes characters whose
 * case is ignored. All lengths are bounded by PATTERN_BYTES_MAX and PATTERN_OUT_MAX.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_PATTERN_PRIV_H
#define PTED_SERVER_TEXT_TOKENIZER_PATTERN_PRIV_H

#include "base/buf.h"
#include "server/text/tokenizer/pattern.h"
#include "server/text/tokenizer/pattern_translate.h"

/* White_Space, and what is none. */
#define PATTERN_SPACES                                                                             \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"    \
    "\\x{205f}\\x{3000}"
#define PATTERN_NOT_SPACES                                                                         \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{"     \
    "1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-"  \
    "\\x{10ffff}"
#define PATTERN_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define PATTERN_WORD_MORE "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" /* of \w outside of classes */

#define PATTERN_NAME_MAX 48

struct pattern_reader {
    struct span source;
    size_t at;
    enum pattern_dialect dialect;
    struct buf *out;
    struct error *err;
    bool ignores_case;
};

/* Fails with ST_UNSUPPORTED: what stands at |at| is not supported. */
MUST_CHECK enum status pattern_refuse(const struct pattern_reader *in, size_t at, const char *what);

/* Fails with ST_CORRUPT. */
MUST_CHECK enum status pattern_fail(const struct pattern_reader *in, size_t at, const char *what);

/* Does |text| stand at |at|? */
bool pattern_at(const struct pattern_reader *in, const char *text);

/* Reads the character at |at|, which is behind a backslash if |is_escaped|; goes behind it. Escapes
 * of sets and assertions are the caller's. */
MUST_CHECK enum status pattern_read_code(struct pattern_reader *in, bool is_escaped, uint32_t *out);

/* Appends a character that stands for itself, in a class or outside. */
void pattern_put_code(struct buf *out, uint32_t code);

/* How a set behaves when case is ignored. */
enum pattern_case {
    PATTERN_CASE_SAME,  /* has the other cases of all that it has, and none that is several letters
                         */
    PATTERN_CASE_WHOLE, /* has the other cases, and some that are several letters */
    PATTERN_CASE_MARK,  /* the same, but for U+0345, which is a case of iota */
    PATTERN_CASE_OPEN,  /* lacks other cases of what it has */
};

/* A set of characters. |items| are for a class of PCRE2. */
struct pattern_set {
    char items[256];
    bool is_negated; /* all other characters */
    enum pattern_case folds;
};

/* \d, \s, \w, \h and their complements; false: |letter| is none of them. */
bool pattern_class_escape(uint8_t letter, struct pattern_set *out);

/* \p{...} and \P{...}; |at| is on the brace. */
MUST_CHECK enum status pattern_class_property(struct pattern_reader *in, bool is_negated,
                                              struct pattern_set *out);

/* Puts a whole class; |at| is on its bracket. */
MUST_CHECK enum status pattern_class_put(struct pattern_reader *in);

/* Is one of these characters several letters if case is ignored? */
bool pattern_fold_splits(uint32_t first, uint32_t last);

/* Appends |count| characters in a row, whose case is ignored. */
void pattern_fold_put(struct buf *out, const uint32_t *codes, size_t count);

/* Do letters on both sides of |border| stand for one character? */
bool pattern_fold_crosses(const uint32_t *codes, size_t count, size_t border);

#endif
