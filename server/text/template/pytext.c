/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/utf8.h"
#include "server/text/template/pytext.h"

struct range {
    uint32_t first, last;
};

struct case_range {
    uint32_t first, last;
    int32_t step, distance;
};

struct case_special {
    uint32_t code;
    const char *text;
};

#define UNPRINTABLE(first, last) {first, last},
#define LOWER(first, last, step, distance)
#define UPPER(first, last, step, distance)
#define LOWER_SPECIAL(code, text)
#define UPPER_SPECIAL(code, text)
#define TITLE_SPECIAL(code, text)
#define CASED(first, last)
static const struct range unprintable[] = {
#include "server/text/template/pytext.def"
};
#undef UNPRINTABLE
#undef LOWER
#define UNPRINTABLE(first, last)
#define LOWER(first, last, step, distance) {first, last, step, distance},
static const struct case_range lower_ranges[] = {
#include "server/text/template/pytext.def"
};
#undef LOWER
#undef UPPER
#define LOWER(first, last, step, distance)
#define UPPER(first, last, step, distance) {first, last, step, distance},
static const struct case_range upper_ranges[] = {
#include "server/text/template/pytext.def"
};
#undef UPPER
#undef LOWER_SPECIAL
#define UPPER(first, last, step, distance)
#define LOWER_SPECIAL(code, text) {code, text},
static const struct case_special lower_specials[] = {
#include "server/text/template/pytext.def"
};
#undef LOWER_SPECIAL
#undef UPPER_SPECIAL
#define LOWER_SPECIAL(code, text)
#define UPPER_SPECIAL(code, text) {code, text},
static const struct case_special upper_specials[] = {
#include "server/text/template/pytext.def"
};
#undef UPPER_SPECIAL
#undef TITLE_SPECIAL
#define UPPER_SPECIAL(code, text)
#define TITLE_SPECIAL(code, text) {code, text},
static const struct case_special title_specials[] = {
#include "server/text/template/pytext.def"
};
#undef TITLE_SPECIAL
#undef CASED
#define TITLE_SPECIAL(code, text)
#define CASED(first, last) {first, last},
static const struct range cased[] = {
#include "server/text/template/pytext.def"
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct case_table {
    const struct case_range *ranges;
    size_t range_count;
    const struct case_special *specials;
    size_t special_count;
    char first; /* ASCII letters from here change */
    int distance;
};

static const struct case_table to_lower = {
    lower_ranges, COUNT(lower_ranges), lower_specials, COUNT(lower_specials), 'A', 32};
static const struct case_table to_upper = {
    upper_ranges, COUNT(upper_ranges), upper_specials, COUNT(upper_specials), 'a', -32};

/* Just the characters whose title case is not their upper case. */
static const struct case_table to_title = {NULL, 0, title_specials, COUNT(title_specials), 'a', 0};

/* ---- characters ------------------------------------------------------------------------------ */

size_t pytext_char(const uint8_t *at, const uint8_t *end)
{
    size_t len = *at > 0x7f ? utf8_sequence(at, end) : 1;
    return len ? len : 1;
}

static uint32_t code_at(const uint8_t *at, size_t len)
{
    return *at < 0x80 ? *at : len > 1 ? utf8_code(at, len) : 0xfffd;
}

static bool is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
           code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

size_t pytext_space(const uint8_t *at, const uint8_t *end)
{
    size_t len = pytext_char(at, end);
    return is_space(code_at(at, len)) ? len : 0;
}

size_t pytext_line_end(const uint8_t *at, const uint8_t *end)
{
    size_t len = pytext_char(at, end);
    uint32_t code = code_at(at, len);
    if (code == '\r') {
        return at + 1 < end && at[1] == '\n' ? 2 : 1;
    }
    bool is_end = (code >= 0x0a && code <= 0x0c) || (code >= 0x1c && code <= 0x1e) ||
                  code == 0x85 || code == 0x2028 || code == 0x2029;
    return is_end ? len : 0;
}

/* Is |code| in one of |count| ranges, which ascend? */
static bool is_within(const struct range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && code >= ranges[low].first;
}

static bool is_printable(uint32_t code)
{
    return code < 0x7f ? code >= 0x20 : !is_within(unprintable, COUNT(unprintable), code);
}

static void print_code(uint32_t code, struct buf *out)
{
    if (code < 0x80) {
        buf_add_char(out, (char)code);
    } else if (code < 0x800) {
        buf_add_char(out, (char)(0xc0 | code >> 6));
        buf_add_char(out, (char)(0x80 | (code & 0x3f)));
    } else {
        if (code < 0x10000) {
            buf_add_char(out, (char)(0xe0 | code >> 12));
        } else {
            buf_add_char(out, (char)(0xf0 | code >> 18));
            buf_add_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
        }
        buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        buf_add_char(out, (char)(0x80 | (code & 0x3f)));
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

size_t pytext_length(struct span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += (text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

size_t pytext_offset(struct span text, size_t index)
{
    size_t at = 0;
    for (; at < text.len; at++) {
        if ((text.ptr[at] & 0xc0) != 0x80) {
            if (index == 0) {
                break;
            }
            index--;
        }
    }
    return at;
}

size_t pytext_find(struct span text, struct span part)
{
    if (part.len == 0) {
        return 0;
    }
    const uint8_t *at = text.len ? memmem(text.ptr, text.len, part.ptr, part.len) : NULL;
    return at ? (size_t)(at - text.ptr) : SIZE_MAX;
}

size_t pytext_find_last(struct span text, struct span part)
{
    for (size_t at = text.len + 1; at-- > 0;) {
        if (in_range(at, part.len, text.len) &&
            (part.len == 0 || memcmp(text.ptr + at, part.ptr, part.len) == 0)) {
            return at;
        }
    }
    return SIZE_MAX;
}

/* ---- strip ----------------------------------------------------------------------------------- */

static bool is_stripped(const uint8_t *at, size_t len, const struct span *chars)
{
    if (!chars) {
        return is_space(code_at(at, len));
    }
    return pytext_find(*chars, span_of(at, len)) != SIZE_MAX;
}

struct span pytext_strip(struct span text, const struct span *chars, bool at_begin, bool at_end)
{
    const uint8_t *first = text.ptr, *end = text.ptr + text.len;
    while (at_begin && first < end) {
        size_t len = pytext_char(first, end);
        if (!is_stripped(first, len, chars)) {
            break;
        }
        first += len;
    }
    while (at_end && end > first) {
        const uint8_t *last = end - 1;
        while (last > first && (*last & 0xc0) == 0x80) {
            last--;
        }
        if (!is_stripped(last, (size_t)(end - last), chars)) {
            break;
        }
        end = last;
    }
    return span_of(first, (size_t)(end - first));
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const char *find_special(const struct case_table *table, uint32_t code)
{
    for (size_t i = 0; i < table->special_count; i++) {
        if (table->specials[i].code == code) {
            return table->specials[i].text;
        }
    }
    return NULL;
}

static uint32_t change(const struct case_table *table, uint32_t code)
{
    if (code < 0x80) {
        bool is_changed = code >= (uint32_t)table->first && code < (uint32_t)table->first + 26;
        return is_changed ? (uint32_t)((int32_t)code + table->distance) : code;
    }
    size_t low = 0, high = table->range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > table->ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct case_range *range = &table->ranges[low];
    if (low == table->range_count || code < range->first ||
        (code - range->first) % (uint32_t)range->step != 0) {
        return code;
    }
    return (uint32_t)((int32_t)code + range->distance);
}

static void print_changed(const struct case_table *table, const uint8_t *at, size_t len,
                          struct buf *out)
{
    uint32_t code = code_at(at, len);
    const char *special = code < 0x80 ? NULL : find_special(table, code);
    if (special) {
        buf_add_str(out, special);
    } else {
        print_code(change(table, code), out);
    }
}

static void print_all(const struct case_table *table, struct span text, struct buf *out)
{
    for (const uint8_t *at = text.ptr, *end = at + text.len; at < end;) {
        size_t len = pytext_char(at, end);
        print_changed(table, at, len, out);
        at += len;
    }
}

void pytext_print_lower(struct span text, struct buf *out)
{
    print_all(&to_lower, text, out);
}

void pytext_print_upper(struct span text, struct buf *out)
{
    print_all(&to_upper, text, out);
}

static bool is_cased(uint32_t code)
{
    return change(&to_lower, code) != code || change(&to_upper, code) != code ||
           (code >= 0x80 && (find_special(&to_upper, code) || find_special(&to_lower, code) ||
                             is_within(cased, COUNT(cased), code)));
}

/* A character that begins a word. */
static void print_first(const uint8_t *at, size_t len, struct buf *out)
{
    bool is_special = find_special(&to_title, code_at(at, len)) != NULL;
    print_changed(is_special ? &to_title : &to_upper, at, len, out);
}

void pytext_print_title(struct span text, struct buf *out)
{
    bool is_inside = false;
    for (const uint8_t *at = text.ptr, *end = at + text.len; at < end;) {
        size_t len = pytext_char(at, end);
        if (is_inside) {
            print_changed(&to_lower, at, len, out);
        } else {
            print_first(at, len, out);
        }
        is_inside = is_cased(code_at(at, len));
        at += len;
    }
}

void pytext_print_capital(struct span text, struct buf *out)
{
    size_t first = text.len ? pytext_char(text.ptr, text.ptr + text.len) : 0;
    if (first > 0) {
        print_first(text.ptr, first, out);
    }
    print_all(&to_lower, span_of(text.ptr + first, text.len - first), out);
}

static bool is_of_case(struct span text, const struct case_table *other)
{
    bool has_letter = false;
    for (const uint8_t *at = text.ptr, *end = at + text.len; at < end;) {
        size_t len = pytext_char(at, end);
        uint32_t code = code_at(at, len);
        if (change(other, code) == code && is_cased(code)) {
            return false;
        }
        has_letter |= is_cased(code);
        at += len;
    }
    return has_letter;
}

bool pytext_is_lower(struct span text)
{
    return is_of_case(text, &to_upper);
}

bool pytext_is_upper(struct span text)
{
    return is_of_case(text, &to_lower);
}

/* ---- repr ------------------------------------------------------------------------------------ */

static void print_escaped(uint32_t code, struct buf *out)
{
    if (code == '\n') {
        buf_add_str(out, "\\n");
    } else if (code == '\r') {
        buf_add_str(out, "\\r");
    } else if (code == '\t') {
        buf_add_str(out, "\\t");
    } else if (code < 0x100) {
        buf_printf(out, "\\x%02x", code);
    } else if (code < 0x10000) {
        buf_printf(out, "\\u%04x", code);
    } else {
        buf_printf(out, "\\U%08x", code);
    }
}

void pytext_print_repr(struct span text, struct buf *out)
{
    bool has_single = pytext_find(text, span_str("'")) != SIZE_MAX;
    bool has_double = pytext_find(text, span_str("\"")) != SIZE_MAX;
    char quote = has_single && !has_double ? '"' : '\'';
    buf_add_char(out, quote);
    for (const uint8_t *at = text.ptr, *end = at + text.len; at < end;) {
        size_t len = pytext_char(at, end);
        uint32_t code = code_at(at, len);
        if (code == (uint32_t)quote || code == '\\') {
            buf_add_char(out, '\\');
            buf_add_char(out, (char)code);
        } else if (is_printable(code)) {
            buf_add(out, at, len);
        } else {
            print_escaped(code, out);
        }
        at += len;
    }
    buf_add_char(out, quote);
}
