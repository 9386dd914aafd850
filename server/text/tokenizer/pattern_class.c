/* SPDX-License-Identifier: MIT */
/*
 * Classes and properties of Oniguruma. A class of PCRE2 has neither classes in it nor
 * intersections. A union of plain items stays one class; anything else becomes an expression that
 * matches one character: an alternative for each part of a union, a lookahead for each side of an
 * intersection and for what is negated.
 */
#include "config.h"

#include "server/text/tokenizer/pattern_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 8
#define LEVEL_BYTES_MAX ((size_t)64 << 10)

/* Names that mean something else in PCRE2, in lower case without blanks, '_' and '-'. All others
 * are the names of scripts. */
struct name_row {
    const char *name, *items;
    enum pattern_case folds;
};

static const struct name_row names[] = {
    {"alnum", "\\p{Alphabetic}\\p{Nd}", PATTERN_CASE_WHOLE},
    {"alpha", "\\p{Alphabetic}", PATTERN_CASE_WHOLE},
    {"alphabetic", "\\p{Alphabetic}", PATTERN_CASE_WHOLE},
    {"ascii", "\\x{0}-\\x{7f}", PATTERN_CASE_SAME},
    {"any", "\\p{Any}", PATTERN_CASE_WHOLE},
    {"blank", "\\x{9}\\p{Zs}", PATTERN_CASE_SAME},
    {"cntrl", "\\p{Cc}", PATTERN_CASE_SAME},
    {"digit", "\\p{Nd}", PATTERN_CASE_SAME},
    {"graph", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}", PATTERN_CASE_WHOLE},
    {"lower", "\\p{Lowercase}", PATTERN_CASE_OPEN},
    {"lowercase", "\\p{Lowercase}", PATTERN_CASE_OPEN},
    {"print", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}", PATTERN_CASE_WHOLE},
    {"space", PATTERN_SPACES, PATTERN_CASE_SAME},
    {"whitespace", PATTERN_SPACES, PATTERN_CASE_SAME},
    {"upper", "\\p{Uppercase}", PATTERN_CASE_OPEN},
    {"uppercase", "\\p{Uppercase}", PATTERN_CASE_OPEN},
    {"word", PATTERN_WORD, PATTERN_CASE_WHOLE},
    {"xdigit", "0-9A-Fa-f", PATTERN_CASE_SAME},
    {"emoji", "\\p{Emoji}", PATTERN_CASE_SAME},
    {"extendedpictographic", "\\p{Extended_Pictographic}", PATTERN_CASE_SAME},
    {"ideographic", "\\p{Ideographic}", PATTERN_CASE_SAME},
    {"c", "\\p{C}", PATTERN_CASE_SAME},
    {"other", "\\p{C}", PATTERN_CASE_SAME},
    {"cc", "\\p{Cc}", PATTERN_CASE_SAME},
    {"control", "\\p{Cc}", PATTERN_CASE_SAME},
    {"cf", "\\p{Cf}", PATTERN_CASE_SAME},
    {"format", "\\p{Cf}", PATTERN_CASE_SAME},
    {"cn", "\\p{Cn}", PATTERN_CASE_SAME},
    {"unassigned", "\\p{Cn}", PATTERN_CASE_SAME},
    {"co", "\\p{Co}", PATTERN_CASE_SAME},
    {"privateuse", "\\p{Co}", PATTERN_CASE_SAME},
    {"cs", "\\p{Cs}", PATTERN_CASE_SAME},
    {"surrogate", "\\p{Cs}", PATTERN_CASE_SAME},
    {"l", "\\p{L}", PATTERN_CASE_MARK},
    {"letter", "\\p{L}", PATTERN_CASE_MARK},
    {"lc", "\\p{L&}", PATTERN_CASE_OPEN},
    {"casedletter", "\\p{L&}", PATTERN_CASE_OPEN},
    {"ll", "\\p{Ll}", PATTERN_CASE_OPEN},
    {"lowercaseletter", "\\p{Ll}", PATTERN_CASE_OPEN},
    {"lm", "\\p{Lm}", PATTERN_CASE_SAME},
    {"modifierletter", "\\p{Lm}", PATTERN_CASE_SAME},
    {"lo", "\\p{Lo}", PATTERN_CASE_OPEN},
    {"otherletter", "\\p{Lo}", PATTERN_CASE_OPEN},
    {"lt", "\\p{Lt}", PATTERN_CASE_OPEN},
    {"titlecaseletter", "\\p{Lt}", PATTERN_CASE_OPEN},
    {"lu", "\\p{Lu}", PATTERN_CASE_OPEN},
    {"uppercaseletter", "\\p{Lu}", PATTERN_CASE_OPEN},
    {"m", "\\p{M}", PATTERN_CASE_OPEN},
    {"mark", "\\p{M}", PATTERN_CASE_OPEN},
    {"combiningmark", "\\p{M}", PATTERN_CASE_OPEN},
    {"mc", "\\p{Mc}", PATTERN_CASE_SAME},
    {"spacingmark", "\\p{Mc}", PATTERN_CASE_SAME},
    {"me", "\\p{Me}", PATTERN_CASE_SAME},
    {"enclosingmark", "\\p{Me}", PATTERN_CASE_SAME},
    {"mn", "\\p{Mn}", PATTERN_CASE_OPEN},
    {"nonspacingmark", "\\p{Mn}", PATTERN_CASE_OPEN},
    {"n", "\\p{N}", PATTERN_CASE_SAME},
    {"number", "\\p{N}", PATTERN_CASE_SAME},
    {"nd", "\\p{Nd}", PATTERN_CASE_SAME},
    {"decimalnumber", "\\p{Nd}", PATTERN_CASE_SAME},
    {"nl", "\\p{Nl}", PATTERN_CASE_SAME},
    {"letternumber", "\\p{Nl}", PATTERN_CASE_SAME},
    {"no", "\\p{No}", PATTERN_CASE_SAME},
    {"othernumber", "\\p{No}", PATTERN_CASE_SAME},
    {"p", "\\p{P}", PATTERN_CASE_SAME},
    {"punct", "\\p{P}", PATTERN_CASE_SAME},
    {"punctuation", "\\p{P}", PATTERN_CASE_SAME},
    {"pc", "\\p{Pc}", PATTERN_CASE_SAME},
    {"connectorpunctuation", "\\p{Pc}", PATTERN_CASE_SAME},
    {"pd", "\\p{Pd}", PATTERN_CASE_SAME},
    {"dashpunctuation", "\\p{Pd}", PATTERN_CASE_SAME},
    {"pe", "\\p{Pe}", PATTERN_CASE_SAME},
    {"closepunctuation", "\\p{Pe}", PATTERN_CASE_SAME},
    {"pf", "\\p{Pf}", PATTERN_CASE_SAME},
    {"finalpunctuation", "\\p{Pf}", PATTERN_CASE_SAME},
    {"pi", "\\p{Pi}", PATTERN_CASE_SAME},
    {"initialpunctuation", "\\p{Pi}", PATTERN_CASE_SAME},
    {"po", "\\p{Po}", PATTERN_CASE_SAME},
    {"otherpunctuation", "\\p{Po}", PATTERN_CASE_SAME},
    {"ps", "\\p{Ps}", PATTERN_CASE_SAME},
    {"openpunctuation", "\\p{Ps}", PATTERN_CASE_SAME},
    {"s", "\\p{S}", PATTERN_CASE_SAME},
    {"symbol", "\\p{S}", PATTERN_CASE_SAME},
    {"sc", "\\p{Sc}", PATTERN_CASE_SAME},
    {"currencysymbol", "\\p{Sc}", PATTERN_CASE_SAME},
    {"sk", "\\p{Sk}", PATTERN_CASE_SAME},
    {"modifiersymbol", "\\p{Sk}", PATTERN_CASE_SAME},
    {"sm", "\\p{Sm}", PATTERN_CASE_SAME},
    {"mathsymbol", "\\p{Sm}", PATTERN_CASE_SAME},
    {"so", "\\p{So}", PATTERN_CASE_SAME},
    {"othersymbol", "\\p{So}", PATTERN_CASE_SAME},
    {"z", "\\p{Z}", PATTERN_CASE_SAME},
    {"separator", "\\p{Z}", PATTERN_CASE_SAME},
    {"zl", "\\p{Zl}", PATTERN_CASE_SAME},
    {"lineseparator", "\\p{Zl}", PATTERN_CASE_SAME},
    {"zp", "\\p{Zp}", PATTERN_CASE_SAME},
    {"paragraphseparator", "\\p{Zp}", PATTERN_CASE_SAME},
    {"zs", "\\p{Zs}", PATTERN_CASE_SAME},
    {"spaceseparator", "\\p{Zs}", PATTERN_CASE_SAME},
};

static const struct name_row *find_name(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].name, name) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

static void fill(struct pattern_set *out, const char *items, bool is_negated,
                 enum pattern_case folds)
{
    snprintf(out->items, sizeof(out->items), "%s", items);
    out->is_negated = is_negated;
    out->folds = folds;
    if (is_negated && folds != PATTERN_CASE_OPEN) {
        out->folds = folds == PATTERN_CASE_MARK ? PATTERN_CASE_OPEN : PATTERN_CASE_WHOLE;
    }
}

bool pattern_class_escape(uint8_t letter, struct pattern_set *out)
{
    static const struct {
        char letter;
        const char *name;
    } rows[] = {{'d', "digit"}, {'s', "space"}, {'w', "word"}, {'h', "xdigit"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (tolower(letter) == rows[i].letter) {
            const struct name_row *row = find_name(rows[i].name);
            fill(out, row->items, isupper(letter), row->folds);
            if (letter == 'S') { /* one class still */
                fill(out, PATTERN_NOT_SPACES, false, PATTERN_CASE_WHOLE);
            }
            return true;
        }
    }
    return false;
}

/* Reads a name up to |end|, in lower case without blanks, '_' and '-'. */
static enum status read_name(struct pattern_reader *in, size_t end, char out[PATTERN_NAME_MAX])
{
    size_t len = 0, start = in->at;
    for (; in->at < end; in->at++) {
        uint8_t c = in->source.ptr[in->at];
        if (c == ' ' || c == '_' || c == '-') {
            continue;
        }
        if (!isalnum(c) || len + 1 == PATTERN_NAME_MAX) {
            return pattern_refuse(in, start, "this property");
        }
        out[len++] = (char)tolower(c);
    }
    out[len] = '\0';
    return len ? ST_OK : pattern_refuse(in, start, "this property");
}

enum status pattern_class_property(struct pattern_reader *in, bool is_negated,
                                   struct pattern_set *out)
{
    char name[PATTERN_NAME_MAX], items[PATTERN_NAME_MAX + 8];
    const uint8_t *start = in->source.ptr + in->at;
    const uint8_t *end = memchr(start, '}', in->source.len - in->at);
    if (!end) {
        return pattern_fail(in, in->at, "'}' is missing");
    }
    in->at++;
    if (pattern_at(in, "^")) {
        is_negated = !is_negated;
        in->at++;
    }
    TRY(read_name(in, (size_t)(end - in->source.ptr), name));
    in->at++;
    const struct name_row *row = find_name(name);
    if (strcmp(name, "assigned") == 0) {
        fill(out, "\\p{Cn}", !is_negated, PATTERN_CASE_SAME);
    } else if (row) {
        fill(out, row->items, is_negated, row->folds);
    } else {
        snprintf(items, sizeof(items), "\\p{sc:%s}", name);
        fill(out, items, is_negated, PATTERN_CASE_OPEN);
    }
    return ST_OK;
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* A class that is open. */
struct level {
    struct buf items;  /* of one class */
    struct buf others; /* of the union, each behind a bar */
    struct buf sides;  /* of the intersection, each a lookahead */
    bool is_negated, has_sides;
    bool has_complement; /* of a set, or a range up to the last character */
    unsigned item_count;
};

struct class_reader {
    struct pattern_reader *in;
    size_t start;
    size_t depth; /* levels that are open */
    struct level levels[DEPTH_MAX];
};

static enum status refuse_case(const struct class_reader *class, size_t at, const char *what)
{
    return class->in->ignores_case ? pattern_refuse(class->in, at, what) : ST_OK;
}

static struct level *top(struct class_reader *class)
{
    return &class->levels[class->depth - 1];
}

static enum status open_level(struct class_reader *class)
{
    struct pattern_reader *in = class->in;
    if (class->depth == DEPTH_MAX) {
        return pattern_refuse(in, in->at, "a class in more than 7 others");
    }
    class->depth++;
    struct level *level = top(class);
    in->at++;
    level->is_negated = pattern_at(in, "^");
    in->at += level->is_negated;
    level->has_sides = level->has_complement = false;
    level->item_count = 0;
    if (pattern_at(in, "]")) {
        buf_add_str(&level->items, "\\]");
        in->at++;
    }
    return ST_OK;
}

/* What the union has so far, as an expression. */
static void put_union(struct buf *out, struct level *level)
{
    struct span others = buf_span(&level->others);
    if (others.len == 0 && level->items.len == 0) {
        buf_add_str(out, "(?!)");
        return;
    }
    buf_add_str(out, others.len ? "(?:" : "");
    if (level->items.len) {
        buf_printf(out, "[%.*s]", (int)level->items.len, (const char *)level->items.ptr);
        buf_add(out, others.ptr, others.len);
    } else {
        buf_add(out, others.ptr + 1, others.len - 1);
    }
    buf_add_str(out, others.len ? ")" : "");
}

static bool is_plain(const struct level *level)
{
    return !level->has_sides && level->others.len == 0 && level->items.len > 0;
}

static void put_level(struct buf *out, struct level *level)
{
    if (is_plain(level)) {
        buf_printf(out, "[%s%.*s]", level->is_negated ? "^" : "", (int)level->items.len,
                   (const char *)level->items.ptr);
        return;
    }
    buf_add_str(out, level->is_negated ? "(?:(?!" : "(?:");
    buf_add(out, level->sides.ptr, level->sides.len);
    put_union(out, level);
    buf_add_str(out, level->is_negated ? ")(?s:.))" : ")");
}

static void clear(struct level *level)
{
    buf_reset(&level->items);
    buf_reset(&level->others);
    buf_reset(&level->sides);
}

static enum status check_level(const struct pattern_reader *in, const struct level *level)
{
    if (!buf_failed(&level->items) && !buf_failed(&level->others) && !buf_failed(&level->sides)) {
        return ST_OK;
    }
    bool lacks_memory =
        level->items.lacks_memory || level->others.lacks_memory || level->sides.lacks_memory;
    return lacks_memory
               ? error_no_memory(in->err, "a regular expression")
               : error_set(in->err, ST_TOO_LARGE, "a class of a regular expression is too long");
}

static enum status close_level(struct class_reader *class)
{
    struct level *level = top(class);
    TRY(check_level(class->in, level));
    class->in->at++;
    if (class->depth == 1) {
        if (!is_plain(level)) {
            TRY(refuse_case(class, class->start, "this class without case"));
        }
        put_level(class->in->out, level);
    } else {
        struct level *outer = &class->levels[class->depth - 2];
        if (outer->is_negated && level->is_negated && level->has_complement &&
            level->item_count > 1) { /* if it holds everything, Oniguruma negates it wrongly */
            return pattern_refuse(class->in, class->start, "the negation of such a negation");
        }
        outer->item_count++;
        if (is_plain(level) && !level->is_negated) {
            buf_add(&outer->items, level->items.ptr, level->items.len);
        } else {
            buf_add_char(&outer->others, '|');
            put_level(&outer->others, level);
        }
    }
    clear(level);
    class->depth--;
    return ST_OK;
}

static void add_side(struct level *level)
{
    buf_add_str(&level->sides, "(?=");
    put_union(&level->sides, level);
    buf_add_str(&level->sides, ")");
    buf_reset(&level->items);
    buf_reset(&level->others);
    level->has_sides = true;
}

/* ---- items ----------------------------------------------------------------------------------- */

static enum status add_set(struct class_reader *class, size_t at, const struct pattern_set *set)
{
    struct level *level = top(class);
    level->item_count++;
    level->has_complement |= set->is_negated || strcmp(set->items, PATTERN_NOT_SPACES) == 0;
    bool is_negative = class->depth == 1 && level->is_negated;
    if (set->folds == PATTERN_CASE_OPEN || (set->folds != PATTERN_CASE_SAME && !is_negative)) {
        TRY(refuse_case(class, at, "this set in a class without case"));
    }
    bool is_one = set->items[0] == '\\' && !strchr(set->items + 1, '\\');
    if (!set->is_negated) {
        buf_add_str(&level->items, set->items);
    } else if (is_one && set->items[1] == 'p') {
        buf_printf(&level->items, "\\P%s", set->items + 2);
    } else {
        buf_printf(&level->others, "|[^%s]", set->items);
    }
    if (set->folds == PATTERN_CASE_MARK && class->in->ignores_case) {
        buf_add_str(&level->items, "\\x{345}");
    }
    if (pattern_at(class->in, "-") && !pattern_at(class->in, "-]")) {
        return pattern_refuse(class->in, class->in->at, "'-' behind a set in a class");
    }
    return ST_OK;
}

/* [:name:] or [:^name:]; |at| is on the bracket. */
static enum status add_posix(struct class_reader *class)
{
    static const char *const posix[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    struct pattern_reader *in = class->in;
    size_t start = in->at;
    in->at += 2;
    bool is_negated = pattern_at(in, "^");
    in->at += is_negated;
    for (size_t i = 0; i < sizeof(posix) / sizeof(posix[0]); i++) {
        char name[16];
        struct pattern_set set;
        snprintf(name, sizeof(name), "%s:]", posix[i]);
        if (pattern_at(in, name)) {
            const struct name_row *row = find_name(posix[i]);
            bool is_punct = strcmp(posix[i], "punct") == 0; /* symbols too, unlike \p{punct} */
            fill(&set, is_punct ? "\\p{P}\\p{S}" : row->items, is_negated, row->folds);
            in->at += strlen(name);
            return add_set(class, start, &set);
        }
    }
    return pattern_refuse(in, start, "this bracket in a class");
}

/* One character, or a range of them. */
static enum status add_codes(struct class_reader *class, bool is_escaped)
{
    struct pattern_reader *in = class->in;
    struct buf *items = &top(class)->items;
    size_t start = in->at;
    uint32_t first, last;
    bool is_dash = !is_escaped && pattern_at(in, "-");
    TRY(pattern_read_code(in, is_escaped, &first));
    last = first;
    top(class)->item_count++;
    pattern_put_code(items, first);
    if (pattern_at(in, "-") && !pattern_at(in, "-]") && !pattern_at(in, "-&&")) {
        in->at++;
        struct pattern_set ignored;
        bool is_other = is_dash || pattern_at(in, "[") ||
                        (pattern_at(in, "\\") && in->at + 1 < in->source.len &&
                         (pattern_class_escape(in->source.ptr[in->at + 1], &ignored) ||
                          pattern_at(in, "\\p{") || pattern_at(in, "\\P{")));
        if (is_other || in->at == in->source.len) {
            return pattern_refuse(in, start, "this range in a class");
        }
        is_escaped = pattern_at(in, "\\");
        in->at += is_escaped;
        TRY(pattern_read_code(in, is_escaped, &last));
        if (last < first) {
            return pattern_fail(in, start, "a range in a class ends before it begins");
        }
        buf_add_char(items, '-');
        pattern_put_code(items, last);
        if (last == 0x10ffff) {
            top(class)->has_complement = true;
            top(class)->item_count++;
        }
        if (pattern_at(in, "-") && !pattern_at(in, "-]")) { /* it stands for itself */
            buf_add_str(items, "\\-");
            in->at++;
        }
    }
    return pattern_fold_splits(first, last)
               ? refuse_case(class, start, "this letter in a class without case")
               : ST_OK;
}

static enum status add_escape(struct class_reader *class)
{
    struct pattern_reader *in = class->in;
    struct pattern_set set;
    size_t start = in->at++;
    if (in->at == in->source.len) {
        return pattern_fail(in, start, "it ends with a backslash");
    }
    if (pattern_class_escape(in->source.ptr[in->at], &set)) {
        in->at++;
        return add_set(class, start, &set);
    }
    if (pattern_at(in, "p{") || pattern_at(in, "P{")) {
        bool is_negated = in->source.ptr[in->at++] == 'P';
        TRY(pattern_class_property(in, is_negated, &set));
        return add_set(class, start, &set);
    }
    return add_codes(class, true);
}

static enum status read_item(struct class_reader *class)
{
    struct pattern_reader *in = class->in;
    if (pattern_at(in, "]")) {
        return close_level(class);
    }
    if (pattern_at(in, "[:")) {
        return add_posix(class);
    }
    if (pattern_at(in, "[")) {
        return open_level(class);
    }
    if (pattern_at(in, "&&")) {
        TRY(check_level(in, top(class)));
        add_side(top(class));
        in->at += 2;
        return ST_OK;
    }
    return pattern_at(in, "\\") ? add_escape(class) : add_codes(class, false);
}

enum status pattern_class_put(struct pattern_reader *in)
{
    struct class_reader class = {.in = in, .start = in->at};
    for (size_t i = 0; i < DEPTH_MAX; i++) {
        buf_init(&class.levels[i].items, LEVEL_BYTES_MAX);
        buf_init(&class.levels[i].others, LEVEL_BYTES_MAX);
        buf_init(&class.levels[i].sides, LEVEL_BYTES_MAX);
    }
    enum status status = open_level(&class);
    while (status == ST_OK && class.depth > 0) {
        status = in->at < in->source.len ? read_item(&class)
                                         : pattern_fail(in, class.start, "']' is missing");
    }
    for (size_t i = 0; i < DEPTH_MAX; i++) {
        struct level *level = &class.levels[i];
        status = status == ST_OK ? check_level(in, level) : status;
        buf_fini(&level->items);
        buf_fini(&level->others);
        buf_fini(&level->sides);
    }
    return status;
}
