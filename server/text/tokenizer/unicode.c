/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/unicode.h"

#include <stddef.h>
#include <stdlib.h>

#include <utf8proc.h>

#include "base/array.h"
#include "base/check.h"
#include "base/utf8.h"
#include "server/process/library.h"

/* The functions of the library, with their names. */
static struct {
    utf8proc_category_t (*category)(utf8proc_int32_t code);
    utf8proc_int32_t (*tolower)(utf8proc_int32_t code);
    utf8proc_bool (*grapheme_break_stateful)(utf8proc_int32_t left, utf8proc_int32_t right,
                                             utf8proc_int32_t *state);
    utf8proc_ssize_t (*decompose_char)(utf8proc_int32_t code, utf8proc_int32_t *out,
                                       utf8proc_ssize_t size, utf8proc_option_t options,
                                       int *boundary);
    const utf8proc_property_t *(*get_property)(utf8proc_int32_t code);
    utf8proc_ssize_t (*normalize_utf32)(utf8proc_int32_t *codes, utf8proc_ssize_t count,
                                        utf8proc_option_t options);
} utf8proc;

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(utf8proc_##member, __typeof__(utf8proc), member)
    SYMBOL(category),       SYMBOL(tolower),      SYMBOL(grapheme_break_stateful),
    SYMBOL(decompose_char), SYMBOL(get_property), SYMBOL(normalize_utf32),
#undef SYMBOL
};

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_UTF8PROC, PTED_PACKAGE_UTF8PROC, symbols, &utf8proc, ST_UNAVAILABLE),
};

enum status unicode_load(struct error *err)
{
    return library_load(&library, err);
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

size_t unicode_last_len(struct span text)
{
    size_t len = 1;
    while (len < text.len && (text.ptr[text.len - len] & 0xc0) == 0x80) {
        len++;
    }
    return len;
}

size_t unicode_put(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i > 1; i--) {
        out[i - 1] = (uint8_t)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (uint8_t)((len == 2 ? 0xc0 : len == 3 ? 0xe0 : 0xf0) | code);
    return len;
}

void unicode_add(struct buf *out, uint32_t code)
{
    uint8_t bytes[4];
    if (code < 0x80) {
        buf_add_char(out, (char)code);
    } else {
        buf_add(out, bytes, unicode_put(code, bytes));
    }
}

/* How many bytes at |at|, where no character stands, are one error: the longest beginning of a
 * character, or one byte (Unicode 3.9, "maximal subpart"). |*out_is_cut|: the text ends within. */
static size_t wrong_len(const uint8_t *at, const uint8_t *end, bool *out_is_cut)
{
    size_t len = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    *out_is_cut = false;
    if (*at < 0xc2 || *at > 0xf4) {
        return 1;
    }
    for (size_t i = 1; i < len; i++) {
        if (at + i == end) {
            *out_is_cut = true;
            return i;
        }
        uint8_t low = 0x80, high = 0xbf;
        if (i == 1) {
            low = *at == 0xe0 ? 0xa0 : *at == 0xf0 ? 0x90 : 0x80;
            high = *at == 0xed ? 0x9f : *at == 0xf4 ? 0x8f : 0xbf;
        }
        if (at[i] < low || at[i] > high) {
            return i;
        }
    }
    return len;
}

void unicode_repair(struct span bytes, struct buf *out)
{
    const uint8_t *at = bytes.ptr, *end = bytes.ptr + bytes.len, *start = at;
    while (at < end) {
        if (*at < 0x80) {
            at++;
            continue;
        }
        size_t len = utf8_sequence(at, end);
        if (len) {
            at += len;
            continue;
        }
        bool is_cut;
        buf_add(out, start, (size_t)(at - start));
        buf_add(out, "\xef\xbf\xbd", 3);
        at += wrong_len(at, end, &is_cut);
        start = at;
    }
    if (at > start) {
        buf_add(out, start, (size_t)(at - start));
    }
}

size_t unicode_tail(struct span bytes)
{
    for (size_t back = 1; back <= 3 && back <= bytes.len; back++) {
        const uint8_t *at = bytes.ptr + bytes.len - back;
        if (*at >= 0xc0) {
            bool is_cut = false;
            return wrong_len(at, bytes.ptr + bytes.len, &is_cut) == back && is_cut ? back : 0;
        }
        if (*at < 0x80) {
            return 0;
        }
    }
    return 0;
}

/* ---- properties ------------------------------------------------------------------------------ */

bool unicode_is_space(uint32_t code)
{
    if (code < 0x80) {
        return code == ' ' || (code >= 9 && code <= 13);
    }
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

#define BIT(name) (1u << UTF8PROC_CATEGORY_##name)
#define LETTERS (BIT(LU) | BIT(LL) | BIT(LT) | BIT(LM) | BIT(LO))
#define MARKS (BIT(MN) | BIT(MC) | BIT(ME))

static bool is_in(uint32_t code, unsigned categories)
{
    return categories >> utf8proc.category((utf8proc_int32_t)code) & 1;
}

bool unicode_is_mark(uint32_t code)
{
    return code >= 0x300 && is_in(code, MARKS);
}

bool unicode_is_nonspacing_mark(uint32_t code)
{
    return code >= 0x300 && is_in(code, BIT(MN));
}

bool unicode_is_numeric(uint32_t code)
{
    return code < 0x80 ? code >= '0' && code <= '9' : is_in(code, BIT(ND) | BIT(NL) | BIT(NO));
}

bool unicode_is_punctuation(uint32_t code)
{
    if (code < 0x80) {
        return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) ||
               (code >= 91 && code <= 96) || (code >= 123 && code <= 126);
    }
    return is_in(code, BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO));
}

bool unicode_is_other(uint32_t code)
{
    return code < 0x7f ? code < 0x20 : is_in(code, BIT(CC) | BIT(CF) | BIT(CO));
}

bool unicode_is_word(uint32_t code)
{
    if (code < 0x80) {
        return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
               (code >= 'a' && code <= 'z') || code == '_';
    }
    return is_in(code, LETTERS | MARKS | BIT(ND) | BIT(NL) | BIT(PC)) || code == 0x200c ||
           code == 0x200d || (code >= 0x24b6 && code <= 0x24e9) ||
           (code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
           (code >= 0x1f170 && code <= 0x1f189); /* Other_Alphabetic that are symbols */
}

uint32_t unicode_lower(uint32_t code)
{
    return (uint32_t)utf8proc.tolower((utf8proc_int32_t)code);
}

void unicode_add_lower(struct buf *out, uint32_t code)
{
    if (code < 0x80) {
        buf_add_char(out, (char)(code >= 'A' && code <= 'Z' ? code | 0x20 : code));
    } else if (code == 0x130) {
        buf_add(out, "i\xcc\x87", 3); /* the only character whose lower case is two */
    } else {
        unicode_add(out, (uint32_t)utf8proc.tolower((utf8proc_int32_t)code));
    }
}

bool unicode_is_boundary(uint32_t left, uint32_t right, int32_t *state)
{
    return utf8proc.grapheme_break_stateful((utf8proc_int32_t)left, (utf8proc_int32_t)right, state);
}

/* ---- normal forms ---------------------------------------------------------------------------- */

#define DECOMPOSED_MAX 18 /* of one character: U+FDFA */
#define SHORT_RUN 16

void unicode_codes_fini(struct unicode_codes *codes)
{
    free(codes->ptr);
    *codes = (struct unicode_codes){0};
}

/* Twice the room: the second half is for sorting. */
static enum status reserve(struct unicode_codes *codes, size_t count, struct error *err)
{
    return ARRAY_ROOM(codes->ptr, codes->capacity, 2 * count)
               ? ST_OK
               : error_no_memory(err, "a normal form");
}

static unsigned class_of(int32_t code)
{
    return code < 0x300 ? 0 : (unsigned)utf8proc.get_property(code)->combining_class;
}

static void sort_short(int32_t *codes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        int32_t code = codes[i];
        unsigned class = class_of(code);
        size_t at = i;
        for (; at > 0 && class_of(codes[at - 1]) > class; at--) {
            codes[at] = codes[at - 1];
        }
        codes[at] = code;
    }
}

/* Counts the classes. The library's own sort takes quadratic time, which a client could use. */
static void sort_long(int32_t *codes, int32_t *scratch, size_t count)
{
    size_t place[256] = {0};
    for (size_t i = 0; i < count; i++) {
        place[class_of(codes[i])]++;
    }
    for (size_t class = 0, sum = 0; class < 256; class ++) {
        size_t here = place[class];
        place[class] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) {
        scratch[place[class_of(codes[i])]++] = codes[i];
    }
    memcpy(codes, scratch, count * sizeof(*codes));
}

/* Puts each run of marks in the order of their classes; equal ones keep theirs. */
static void order_marks(int32_t *codes, int32_t *scratch, size_t count)
{
    for (size_t i = 0; i < count;) {
        if (class_of(codes[i]) == 0) {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < count && class_of(codes[end]) != 0) {
            end++;
        }
        if (end - i <= SHORT_RUN) {
            sort_short(codes + i, end - i);
        } else {
            sort_long(codes + i, scratch, end - i);
        }
        i = end;
    }
}

static enum status decompose(struct span text, utf8proc_option_t options,
                             struct unicode_codes *codes, size_t *out_count, struct error *err)
{
    size_t count = 0, len;
    for (size_t at = 0; at < text.len; at += len) {
        uint32_t code = unicode_next(text.ptr + at, &len);
        TRY(reserve(codes, count + DECOMPOSED_MAX, err));
        if (code < 0xa0) {
            codes->ptr[count++] = (int32_t)code;
            continue;
        }
        int boundary = 0;
        utf8proc_ssize_t added = utf8proc.decompose_char((utf8proc_int32_t)code, codes->ptr + count,
                                                         DECOMPOSED_MAX, options, &boundary);
        must(added >= 0 && added <= DECOMPOSED_MAX);
        count += (size_t)added;
    }
    *out_count = count;
    return ST_OK;
}

static enum status normalize_part(struct span text, enum unicode_form form,
                                  struct unicode_codes *codes, struct buf *out, struct error *err)
{
    bool is_compatible = form == UNICODE_NFKC || form == UNICODE_NFKD;
    size_t count = 0;
    TRY(decompose(text,
                  (utf8proc_option_t)(UTF8PROC_DECOMPOSE | (is_compatible ? UTF8PROC_COMPAT : 0)),
                  codes, &count, err));
    order_marks(codes->ptr, codes->ptr + codes->capacity / 2, count);
    if (form == UNICODE_NFC || form == UNICODE_NFKC) {
        utf8proc_ssize_t composed =
            utf8proc.normalize_utf32(codes->ptr, (utf8proc_ssize_t)count,
                                     (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        must(composed >= 0);
        count = (size_t)composed;
    }
    for (size_t i = 0; i < count; i++) {
        unicode_add(out, (uint32_t)codes->ptr[i]);
    }
    return ST_OK;
}

enum status unicode_normalize(struct span text, enum unicode_form form, struct unicode_codes *codes,
                              struct buf *out, struct error *err)
{
    size_t at = 0;
    while (at < text.len) {
        /* Plain text goes through as it is, except its last character: a mark may follow. */
        size_t plain = at;
        while (plain < text.len && text.ptr[plain] < 0x80) {
            plain++;
        }
        if (plain > at + 1 || plain == text.len) {
            size_t kept = plain == text.len ? plain : plain - 1;
            buf_add(out, text.ptr + at, kept - at);
            at = kept;
            continue;
        }
        size_t end = plain + 1;
        while (end < text.len && !(text.ptr[end] < 0x80 && text.ptr[end - 1] < 0x80)) {
            end++;
        }
        /* |end| is the second of two plain characters, or the end: nothing combines across. */
        TRY(normalize_part(span_of(text.ptr + at, end - at), form, codes, out, err));
        at = end;
    }
    return ST_OK;
}
