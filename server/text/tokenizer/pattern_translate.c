/* SPDX-License-Identifier: MIT */
/*
 * From Oniguruma's syntax to PCRE2's. docs/reference/tokenizers.md has the table of differences.
 * What stands in a pattern is read atom by atom; an atom that both engines read alike is copied,
 * one that they read differently is written anew, and one that PCRE2 cannot do alike is refused by
 * name.
 */
#include "config.h"

#include "server/text/tokenizer/pattern_translate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/text/tokenizer/pattern_priv.h"
#include "server/text/tokenizer/unicode.h"

#define GROUPS_MAX 200 /* in each other; PCRE2 takes 250, some of them are ours */
#define REPEAT_MAX 65535
#define EDGE_MAX 2 /* letters beside a border that may stand for one character */
#define REPEAT_FREE UINT32_MAX

/* A group that is open. */
struct group {
    size_t start;    /* in the output */
    unsigned closes; /* brackets of ours in it, for options up to its end */
    bool is_assertion, is_lookbehind;
    bool consumes, has_bar;                    /* before it */
    bool ignores_case, is_extended, is_dotall; /* before it */
};

enum atom { ATOM_NONE, ATOM_PLAIN, ATOM_REPEATED, ATOM_ASSERTION };

struct translation {
    struct pattern_reader in;
    struct buf *places; /* pairs of 32 bits: place in the output, place in the source */
    bool consumes;      /* the alternative so far takes a character, or may */
    bool has_empty;     /* an alternative never takes one */
    bool has_bar;       /* in this group */
    struct group groups[GROUPS_MAX];
    size_t depth;
    unsigned closes; /* outside of groups */
    bool is_extended, is_dotall;
    enum atom atom;          /* the one before */
    size_t atom_start;       /* in the output */
    bool is_any;             /* it is \O */
    struct buf run;          /* characters whose case is ignored and that are not written yet */
    size_t run_at;           /* in the source */
    uint32_t edge[EDGE_MAX]; /* the last characters that were written, but for plain groups */
    size_t edge_count;
    unsigned lookbehinds; /* that are open */
};

enum status pattern_refuse(const struct pattern_reader *in, size_t at, const char *what)
{
    return error_set(in->err, ST_UNSUPPORTED, "regular expression, byte %zu: %s is not supported",
                     at, what);
}

enum status pattern_fail(const struct pattern_reader *in, size_t at, const char *what)
{
    return error_set(in->err, ST_CORRUPT, "regular expression, byte %zu: %s", at, what);
}

bool pattern_at(const struct pattern_reader *in, const char *text)
{
    size_t len = strlen(text);
    return in_range(in->at, len, in->source.len) && memcmp(in->source.ptr + in->at, text, len) == 0;
}

/* ---- characters ------------------------------------------------------------------------------ */

void pattern_put_code(struct buf *out, uint32_t code)
{
    if (code >= 0x80 || isalnum((int)code) || code == '_') {
        unicode_add(out, code);
    } else {
        buf_printf(out, "\\x{%x}", (unsigned)code);
    }
}

static int digit_of(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 99;
}

/* Up to |count| digits; the number of them. */
static size_t read_digits(struct pattern_reader *in, int base, size_t count, uint32_t *out)
{
    size_t start = in->at;
    *out = 0;
    while (in->at < in->source.len && in->at - start < count &&
           digit_of(in->source.ptr[in->at]) < base) {
        *out = *out * (uint32_t)base + (uint32_t)digit_of(in->source.ptr[in->at++]);
    }
    return in->at - start;
}

static enum status read_number(struct pattern_reader *in, size_t start, uint32_t *out)
{
    uint8_t letter = in->source.ptr[in->at++];
    bool has_brace = pattern_at(in, "{");
    int base = letter == 'o' || isdigit(letter) ? 8 : 16;
    if (isdigit(letter)) {
        in->at--;
        (void)read_digits(in, base, 3, out);
    } else if (has_brace && letter != 'u') {
        in->at++;
        if (read_digits(in, base, 8, out) == 0 || !pattern_at(in, "}")) {
            return pattern_refuse(in, start, "this escape");
        }
        in->at++;
    } else if (letter == 'u') {
        if (read_digits(in, base, 4, out) != 4) {
            return pattern_refuse(in, start, "this escape");
        }
    } else {
        bool is_end = in->at == in->source.len;
        (void)read_digits(in, base, 2, out);
        *out = is_end ? letter : *out; /* it stands for itself */
        if (*out > 0x7f) {             /* a byte of a character */
            return pattern_refuse(in, start, "this escape");
        }
    }
    return *out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000)
               ? pattern_refuse(in, start, "this escape")
               : ST_OK;
}

enum status pattern_read_code(struct pattern_reader *in, bool is_escaped, uint32_t *out)
{
    static const char letters[] = "abefnrtv", codes[] = "\x07\x08\x1b\x0c\x0a\x0d\x09\x0b";
    size_t start = in->at - is_escaped, len;
    if (is_escaped && in->at < in->source.len) {
        uint8_t c = in->source.ptr[in->at];
        const char *found = memchr(letters, c, sizeof(letters) - 1); /* \b: within a class */
        if (found) {
            *out = (uint32_t)codes[found - letters];
            in->at++;
            return ST_OK;
        }
        if (c == 'x' || c == 'u' || (c >= '0' && c <= '7') || (c == 'o' && pattern_at(in, "o{"))) {
            return read_number(in, start, out);
        }
        if (c == 'c' || c == 'C' || c == 'M' || c == '8' || c == '9') {
            return pattern_refuse(in, start, "this escape");
        }
    }
    if (in->at >= in->source.len) {
        return pattern_fail(in, start, "it ends within a character");
    }
    *out = unicode_next(in->source.ptr + in->at, &len);
    in->at += len;
    return ST_OK;
}

/* ---- atoms ----------------------------------------------------------------------------------- */

/* Notes where the next atom begins, for errors of PCRE2 and for what repeats it. */
static void begin_atom(struct translation *t, size_t at, enum atom atom)
{
    uint32_t place[2] = {(uint32_t)t->in.out->len, (uint32_t)at};
    buf_add(t->places, place, sizeof(place));
    t->atom = atom;
    t->atom_start = t->in.out->len;
    t->edge_count = 0;
    t->consumes |= atom == ATOM_PLAIN;
    t->is_any = false;
}

static void put_atom(struct translation *t, size_t at, enum atom atom, const char *text)
{
    begin_atom(t, at, atom);
    buf_add_str(t->in.out, text);
}

/* Oniguruma joins letters to those of a plain group beside them, which we do not. */
static enum status check_edge(struct translation *t, const uint32_t *codes, size_t count)
{
    uint32_t both[2 * EDGE_MAX];
    size_t edge = t->edge_count, more = count < EDGE_MAX ? count : EDGE_MAX;
    memcpy(both, t->edge, edge * sizeof(*both));
    memcpy(both + edge, codes, more * sizeof(*both));
    t->edge_count = more;
    memcpy(t->edge, codes + count - more, more * sizeof(*both));
    return pattern_fold_crosses(both, edge + more, edge)
               ? pattern_refuse(&t->in, t->run_at, "a group in a row of letters without case")
               : ST_OK;
}

/* In a lookbehind, letters are one character each. */
static enum status put_plain(struct translation *t, const uint32_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pattern_fold_splits(codes[i], codes[i])) {
            return pattern_refuse(&t->in, t->run_at, "this letter without case in a lookbehind");
        }
        pattern_put_code(t->in.out, codes[i]);
    }
    return ST_OK;
}

/* Writes the run but for its last |kept| characters. */
static enum status flush_run(struct translation *t, size_t kept)
{
    size_t count = t->run.len / sizeof(uint32_t);
    if (count <= kept) {
        return ST_OK;
    }
    if (buf_failed(&t->run)) {
        return ST_OK; /* translate() says it */
    }
    const uint32_t *codes = (const uint32_t *)(const void *)t->run.ptr;
    uint32_t last = codes[count - 1];
    TRY(check_edge(t, codes, count - kept));
    if (t->lookbehinds > 0) {
        TRY(put_plain(t, codes, count - kept));
    } else {
        pattern_fold_put(t->in.out, codes, count - kept);
    }
    buf_reset(&t->run);
    if (kept) {
        buf_add(&t->run, &last, sizeof(last));
    }
    return ST_OK;
}

static void put_literal(struct translation *t, size_t at, uint32_t code)
{
    if (!t->in.ignores_case) {
        begin_atom(t, at, ATOM_PLAIN);
        pattern_put_code(t->in.out, code);
        return;
    }
    if (t->run.len == 0) {
        size_t edge_count = t->edge_count;
        t->run_at = at;
        begin_atom(t, at, ATOM_PLAIN);
        t->edge_count = edge_count;
    }
    buf_add(&t->run, &code, sizeof(code));
}

static void put_set(struct translation *t, size_t at, const struct pattern_set *set)
{
    begin_atom(t, at, ATOM_PLAIN);
    bool is_one = set->items[0] == '\\' && set->items[1] == 'p' && !strchr(set->items + 1, '\\');
    const char *guard = t->in.ignores_case ? "(?-i:" : "";
    buf_add_str(t->in.out, guard); /* such a set has no case */
    if (is_one) {
        buf_printf(t->in.out, "\\%c%s", set->is_negated ? 'P' : 'p', set->items + 2);
    } else {
        buf_printf(t->in.out, "[%s%s]", set->is_negated ? "^" : "", set->items);
    }
    buf_add_str(t->in.out, guard[0] ? ")" : "");
}

#define WORDS "[" PATTERN_WORD PATTERN_WORD_MORE "]"

/* Escapes that stand for no character; |at| is on the backslash. False: none of them. */
static bool put_assertion(struct translation *t, size_t at, uint8_t letter)
{
    static const struct {
        char letter;
        enum atom atom;
        const char *text;
    } rows[] = {
        {'A', ATOM_ASSERTION, "\\A"},
        {'z', ATOM_ASSERTION, "\\z"},
        {'Z', ATOM_ASSERTION, "\\Z"},
        {'G', ATOM_ASSERTION, "\\G"},
        {'b', ATOM_ASSERTION, "(?:(?<=" WORDS ")(?!" WORDS ")|(?<!" WORDS ")(?=" WORDS "))"},
        {'B', ATOM_ASSERTION, "(?:(?<=" WORDS ")(?=" WORDS ")|(?<!" WORDS ")(?!" WORDS "))"},
        {'N', ATOM_PLAIN, "\\N"},
        {'O', ATOM_PLAIN, "(?s:.)"},
        {'R', ATOM_PLAIN, "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])"},
        {'w', ATOM_PLAIN, WORDS},
        {'W', ATOM_PLAIN, "[^" PATTERN_WORD PATTERN_WORD_MORE "]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].letter == letter) {
            put_atom(t, at, rows[i].atom, rows[i].text);
            t->is_any = letter == 'O';
            t->in.at++;
            return true;
        }
    }
    return false;
}

static enum status refuse_escape(const struct translation *t, size_t at, uint8_t letter)
{
    static const struct {
        char letter;
        const char *what;
    } rows[] = {{'X', "a text segment (\\X)"},       {'y', "a text segment's end (\\y)"},
                {'Y', "a text segment (\\Y)"},       {'k', "a reference (\\k)"},
                {'g', "a subexpression call (\\g)"}, {'K', "a kept match (\\K)"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].letter == letter) {
            return pattern_refuse(&t->in, at, rows[i].what);
        }
    }
    const uint8_t *rest = t->in.source.ptr + t->in.at;
    bool is_octal = letter == '0' || (t->in.at + 2 < t->in.source.len && letter < '4' &&
                                      digit_of(rest[1]) < 8 && digit_of(rest[2]) < 8);
    return isdigit(letter) && !is_octal ? pattern_refuse(&t->in, at, "a reference (\\1)") : ST_OK;
}

static enum status put_property(struct translation *t, size_t at)
{
    struct pattern_set set;
    bool is_negated = t->in.source.ptr[t->in.at++] == 'P';
    TRY(pattern_class_property(&t->in, is_negated, &set));
    if (strcmp(set.items, PATTERN_WORD) == 0) { /* \p{Word} is \w */
        snprintf(set.items, sizeof(set.items), "%s", PATTERN_WORD PATTERN_WORD_MORE);
    }
    put_set(t, at, &set);
    return ST_OK;
}

static enum status put_escape(struct translation *t)
{
    struct pattern_reader *in = &t->in;
    struct pattern_set set;
    size_t at = in->at++;
    if (in->at == in->source.len) {
        return pattern_fail(in, at, "it ends with a backslash");
    }
    uint8_t letter = in->source.ptr[in->at];
    TRY(refuse_escape(t, at, letter));
    bool has_property = pattern_at(in, "p{") || pattern_at(in, "P{");
    bool has_set = pattern_class_escape(letter, &set);
    if (has_property || has_set || strchr("AzZGbBNORwW", letter)) {
        TRY(flush_run(t, 0));
    }
    if (has_property) {
        return put_property(t, at);
    }
    if (put_assertion(t, at, letter)) {
        return ST_OK;
    }
    if (has_set) {
        in->at++;
        put_set(t, at, &set);
        return ST_OK;
    }
    uint32_t code;
    TRY(pattern_read_code(in, true, &code));
    put_literal(t, at, code);
    return ST_OK;
}

/* ---- repeats --------------------------------------------------------------------------------- */

struct repeat {
    uint32_t least, most; /* REPEAT_FREE: no maximum */
    bool is_possessive, is_braced, is_exact;
};

/* {n}, {n,}, {n,m} or {,m}; false: the brace stands for itself. */
static bool read_braces(struct pattern_reader *in, struct repeat *out)
{
    size_t start = in->at++;
    size_t least = read_digits(in, 10, 6, &out->least), most = 0;
    out->most = out->least;
    out->is_exact = !pattern_at(in, ",");
    if (!out->is_exact) {
        in->at++;
        most = read_digits(in, 10, 6, &out->most);
        out->most = most ? out->most : REPEAT_FREE;
    }
    if (least + most == 0 || !pattern_at(in, "}")) {
        in->at = start;
        return false;
    }
    in->at++;
    out->is_braced = true;
    out->is_possessive = out->most < out->least;
    if (out->is_possessive) {
        uint32_t swapped = out->most;
        out->most = out->least;
        out->least = swapped;
    }
    return true;
}

static bool read_repeat(struct pattern_reader *in, struct repeat *out)
{
    uint8_t c = in->source.ptr[in->at];
    *out = (struct repeat){.most = REPEAT_FREE};
    if (c == '{') {
        return read_braces(in, out);
    }
    if (c != '*' && c != '+' && c != '?') {
        return false;
    }
    out->least = c == '+';
    out->most = c == '?' ? 1 : REPEAT_FREE;
    in->at++;
    return true;
}

/* Puts brackets around the atom. */
static void wrap_atom(struct translation *t)
{
    static const char open[] = "(?:";
    struct buf *out = t->in.out;
    size_t added = sizeof(open) - 1, len = out->len - t->atom_start;
    buf_add_str(out, open);
    if (buf_failed(out) || buf_failed(t->places)) {
        return;
    }
    memmove(out->ptr + t->atom_start + added, out->ptr + t->atom_start, len);
    memcpy(out->ptr + t->atom_start, open, added);
    buf_add_char(out, ')');
    for (size_t at = t->places->len; at >= 8; at -= 8) {
        uint32_t place;
        memcpy(&place, t->places->ptr + at - 8, sizeof(place));
        if (place <= t->atom_start) {
            break;
        }
        place += (uint32_t)added;
        memcpy(t->places->ptr + at - 8, &place, sizeof(place));
    }
}

static void put_repeat(struct buf *out, const struct repeat *repeat, char ending)
{
    if (!repeat->is_braced) {
        buf_add_char(out, repeat->least ? '+' : repeat->most == 1 ? '?' : '*');
    } else if (repeat->is_exact) {
        buf_printf(out, "{%u}", repeat->least);
    } else if (repeat->most == REPEAT_FREE) {
        buf_printf(out, "{%u,}", repeat->least);
    } else {
        buf_printf(out, "{%u,%u}", repeat->least, repeat->most);
    }
    if (ending) {
        buf_add_char(out, ending);
    }
}

/* Behind braces '+' repeats once more, and '?' does so behind {n}: unlike in PCRE2. */
static char read_ending(struct translation *t, const struct repeat *repeat)
{
    struct pattern_reader *in = &t->in;
    bool has_possessive = !repeat->is_braced || in->dialect == PATTERN_TEXT;
    char ending = repeat->is_possessive                                             ? '+'
                  : pattern_at(in, "?") && !(repeat->is_braced && repeat->is_exact) ? '?'
                  : pattern_at(in, "+") && has_possessive                           ? '+'
                                                                                    : '\0';
    in->at += ending && !repeat->is_possessive;
    return ending;
}

static enum status put_repeated(struct translation *t, size_t at, const struct repeat *repeat)
{
    if (t->atom == ATOM_NONE || t->atom == ATOM_ASSERTION) {
        return pattern_refuse(
            &t->in, at, t->atom == ATOM_NONE ? "a repeat of nothing" : "a repeat of an assertion");
    }
    if (repeat->least > REPEAT_MAX || (repeat->most > REPEAT_MAX && repeat->most != REPEAT_FREE)) {
        return pattern_refuse(&t->in, at, "a repeat of more than 65535 times");
    }
    if (t->is_any && repeat->least == 0) { /* Oniguruma's does not match at the end of a text */
        return pattern_refuse(&t->in, at, "a repeat of \\O from 0 times");
    }
    if (t->run.len > 0) { /* only the last character of the run is repeated */
        TRY(flush_run(t, 1));
        begin_atom(t, at, ATOM_PLAIN);
        TRY(flush_run(t, 0));
    }
    if (t->atom == ATOM_REPEATED) {
        wrap_atom(t);
    }
    put_repeat(t->in.out, repeat, read_ending(t, repeat));
    t->atom = ATOM_REPEATED;
    t->edge_count = 0;
    return ST_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static enum status open_group(struct translation *t, size_t at, const char *text, size_t len,
                              bool is_assertion)
{
    if (t->depth == GROUPS_MAX) {
        return pattern_refuse(&t->in, at, "a group in more than 199 others");
    }
    size_t edge_count = strcmp(text, "(?:") == 0 ? t->edge_count : 0;
    bool is_lookbehind = pattern_at(&t->in, "(?<=") || pattern_at(&t->in, "(?<!");
    begin_atom(t, at, ATOM_NONE);
    t->edge_count = edge_count;
    t->lookbehinds += is_lookbehind;
    t->groups[t->depth++] = (struct group){.start = t->in.out->len,
                                           .is_assertion = is_assertion,
                                           .is_lookbehind = is_lookbehind,
                                           .consumes = t->consumes,
                                           .has_bar = t->has_bar,
                                           .ignores_case = t->in.ignores_case,
                                           .is_extended = t->is_extended,
                                           .is_dotall = t->is_dotall};
    t->consumes = t->has_bar = false;
    buf_add_str(t->in.out, text);
    t->in.at += len;
    return ST_OK;
}

static void close_brackets(struct translation *t, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        buf_add_char(t->in.out, ')');
    }
}

static enum status close_group(struct translation *t)
{
    if (t->depth == 0) {
        return pattern_fail(&t->in, t->in.at, "')' has no '('");
    }
    const struct group *group = &t->groups[--t->depth];
    close_brackets(t, group->closes + 1);
    t->has_empty |= t->has_bar && !t->consumes;
    t->consumes = group->consumes || (t->consumes && !group->is_assertion);
    t->has_bar = group->has_bar;
    t->lookbehinds -= group->is_lookbehind;
    t->edge_count = group->closes || group->is_assertion ? 0 : t->edge_count;
    t->in.ignores_case = group->ignores_case;
    t->is_extended = group->is_extended;
    t->is_dotall = group->is_dotall;
    t->atom = group->is_assertion ? ATOM_ASSERTION : ATOM_PLAIN;
    t->atom_start = group->start;
    t->in.at++;
    return ST_OK;
}

/* (?imx-imx) up to the end of the group around it, bars included, or (?imx-imx:...). */
static enum status put_options(struct translation *t, size_t at)
{
    struct pattern_reader *in = &t->in;
    bool is_on = true, ignores_case = in->ignores_case, is_extended = t->is_extended,
         is_dotall = t->is_dotall;
    size_t end = in->at + 2;
    for (; end < in->source.len && strchr("imx-", in->source.ptr[end]) && in->source.ptr[end];
         end++) {
        uint8_t c = in->source.ptr[end];
        bool *option = c == 'i' ? &ignores_case : c == 'm' ? &is_dotall : &is_extended;
        if (c == '-') {
            is_on = false;
        } else {
            *option = is_on;
        }
    }
    bool is_group = end < in->source.len && in->source.ptr[end] == ':';
    if (!is_group && (end == in->source.len || in->source.ptr[end] != ')')) {
        return pattern_refuse(in, at, "this group");
    }
    const char *open = ignores_case == in->ignores_case ? "(?:" : ignores_case ? "(?i:" : "(?-i:";
    if (is_group) {
        TRY(open_group(t, at, open, 0, false));
    } else {
        buf_add_str(in->out, open);
        t->atom = ATOM_NONE;
        t->edge_count = 0;
        *(t->depth ? &t->groups[t->depth - 1].closes : &t->closes) += 1;
    }
    in->at = end + 1;
    in->ignores_case = ignores_case;
    t->is_extended = is_extended;
    t->is_dotall = is_dotall;
    return ST_OK;
}

static enum status refuse_group(const struct translation *t)
{
    static const char *const rows[][2] = {
        {"(*", "a callout"},      {"(?{", "a callout"},           {"(?~", "an absent operator"},
        {"(?(", "a condition"},   {"(?P", "an option or a name"}, {"(?W", "an option"},
        {"(?D", "an option"},     {"(?S", "an option"},           {"(?y", "an option"},
        {"(?s", "an option (?s)"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (pattern_at(&t->in, rows[i][0])) {
            return pattern_refuse(&t->in, t->in.at, rows[i][1]);
        }
    }
    return ST_OK;
}

/* (?<name>...) and (?'name'...): nothing can refer to it. */
static enum status put_named(struct translation *t, size_t at)
{
    struct pattern_reader *in = &t->in;
    char close = in->source.ptr[in->at + 2] == '<' ? '>' : '\'';
    const uint8_t *name = in->source.ptr + in->at + 3;
    const uint8_t *end = memchr(name, close, in->source.len - in->at - 3);
    if (!end || end == name) {
        return pattern_fail(in, at, "a group's name does not end");
    }
    return open_group(t, at, "(?:", (size_t)(end - name) + 4, false);
}

static enum status put_group(struct translation *t)
{
    static const struct {
        const char *text;
        bool is_assertion;
    } rows[] = {{"(?:", false}, {"(?>", false}, {"(?=", true},
                {"(?!", true},  {"(?<=", true}, {"(?<!", true}};
    struct pattern_reader *in = &t->in;
    size_t at = in->at;
    TRY(refuse_group(t));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (pattern_at(in, rows[i].text)) {
            return open_group(t, at, rows[i].text, strlen(rows[i].text), rows[i].is_assertion);
        }
    }
    if (!pattern_at(in, "(?")) {
        return open_group(t, at, "(?:", 1, false); /* nothing can refer to it */
    }
    if (pattern_at(in, "(?<") || pattern_at(in, "(?'")) {
        return put_named(t, at);
    }
    return put_options(t, at);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Goes behind a comment, or a blank of the extended syntax. */
static enum status skip_comment(struct translation *t, bool *out_is_comment)
{
    struct pattern_reader *in = &t->in;
    size_t start = in->at;
    uint8_t c = in->source.ptr[in->at];
    char ending = '\0';
    *out_is_comment = true;
    if (pattern_at(in, "(?#")) {
        ending = ')';
    } else if (t->is_extended && c == '#') {
        ending = '\n';
    } else if (!t->is_extended || (c != ' ' && (c < 9 || c > 13))) {
        *out_is_comment = false;
        return ST_OK;
    }
    while (ending && in->at < in->source.len && in->source.ptr[in->at] != ending) {
        in->at++;
    }
    if (ending == ')' && in->at == in->source.len) {
        return pattern_fail(in, start, "a comment does not end");
    }
    in->at += in->at < in->source.len;
    return ST_OK;
}

static void put_line_end(struct translation *t, size_t at, bool is_start)
{
    const char *text = t->in.dialect == PATTERN_LINES ? is_start ? "(?m:^)" : "(?m:$)"
                       : is_start                     ? "\\A"
                                                      : "\\z";
    put_atom(t, at, ATOM_ASSERTION, text);
    t->in.at++;
}

static enum status put_special(struct translation *t, uint8_t c)
{
    struct pattern_reader *in = &t->in;
    size_t at = in->at;
    TRY(flush_run(t, 0));
    switch (c) {
    case '(':
        return put_group(t);
    case ')':
        return close_group(t);
    case '[':
        begin_atom(t, at, ATOM_PLAIN);
        return pattern_class_put(in);
    case '|':
        buf_add_char(in->out, '|');
        t->atom = ATOM_NONE;
        t->edge_count = 0;
        t->has_empty |= !t->consumes;
        t->consumes = false;
        t->has_bar = true;
        break;
    case '.':
        put_atom(t, at, ATOM_PLAIN, t->is_dotall ? "(?s:.)" : ".");
        break;
    default:
        put_line_end(t, at, c == '^');
        return ST_OK;
    }
    in->at++;
    return ST_OK;
}

static enum status put_next(struct translation *t)
{
    struct pattern_reader *in = &t->in;
    struct repeat repeat;
    size_t at = in->at;
    uint8_t c = in->source.ptr[at];
    bool is_comment;
    TRY(skip_comment(t, &is_comment));
    if (is_comment) {
        return ST_OK;
    }
    if (read_repeat(in, &repeat)) {
        return put_repeated(t, at, &repeat);
    }
    if (c == '\\') {
        return put_escape(t);
    }
    if (strchr("()[|.^$", c) && c) {
        return put_special(t, c);
    }
    uint32_t code;
    TRY(pattern_read_code(in, false, &code));
    put_literal(t, at, code);
    return ST_OK;
}

static enum status translate(struct translation *t)
{
    struct pattern_reader *in = &t->in;
    while (in->at < in->source.len) {
        TRY(put_next(t));
    }
    TRY(flush_run(t, 0));
    if (t->depth > 0) {
        return pattern_fail(in, in->source.len, "')' is missing");
    }
    close_brackets(t, t->closes);
    t->has_empty |= t->has_bar && !t->consumes;
    if (buf_failed(in->out) || buf_failed(t->places) || buf_failed(&t->run)) {
        bool lacks_memory = in->out->lacks_memory || t->places->lacks_memory || t->run.lacks_memory;
        return lacks_memory ? error_no_memory(in->err, "a regular expression")
                            : error_set(in->err, ST_TOO_LARGE, "a regular expression is too long");
    }
    return ST_OK;
}

void pattern_translation_init(struct pattern_translation *translation)
{
    buf_init(&translation->text, PATTERN_OUT_MAX);
    buf_init(&translation->places, PATTERN_OUT_MAX);
    translation->has_empty_choice = false;
}

void pattern_translation_fini(struct pattern_translation *translation)
{
    buf_fini(&translation->text);
    buf_fini(&translation->places);
}

enum status pattern_translate(struct span source, enum pattern_dialect dialect,
                              struct pattern_translation *out, struct error *err)
{
    struct translation t = {.in = {source, 0, dialect, &out->text, err, false},
                            .places = &out->places};
    if (source.len > PATTERN_BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "a regular expression of %zu bytes, more than %d",
                         source.len, PATTERN_BYTES_MAX);
    }
    buf_init(&t.run, (size_t)PATTERN_BYTES_MAX * sizeof(uint32_t));
    enum status status = translate(&t);
    buf_fini(&t.run);
    out->has_empty_choice = t.has_empty;
    return status;
}

size_t pattern_translation_place(const struct pattern_translation *translation, size_t at)
{
    struct span places = buf_span(&translation->places);
    size_t found = 0;
    for (size_t i = 0; i + 8 <= places.len; i += 8) {
        uint32_t place[2];
        memcpy(place, places.ptr + i, sizeof(place));
        if (place[0] > at) {
            break;
        }
        found = place[1];
    }
    return found;
}
