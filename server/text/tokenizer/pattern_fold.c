/* SPDX-License-Identifier: MIT */
/*
 * Characters whose case is ignored. PCRE2 knows the cases that are one character each. Oniguruma
 * also knows those that are several: "ss" matches U+00DF, and the other way round. It goes from
 * left to right and takes the longest: "ffi" matches U+FB03, but not U+FB00 and "i".
 */
#include "config.h"

#include "server/text/tokenizer/pattern_priv.h"
#include "server/text/tokenizer/unicode.h"

#define PARTS_MAX 3

/* CaseFolding.txt, status F. */
static const struct row {
    uint32_t code, parts[PARTS_MAX];
} rows[] = {
#define FOLD(code, a, b, c) {code, {a, b, c}},
#include "server/text/tokenizer/pattern_fold.def"
#undef FOLD
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static size_t part_count(const struct row *row)
{
    return row->parts[2] ? 3 : 2;
}

bool pattern_fold_splits(uint32_t first, uint32_t last)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].code >= first && rows[i].code <= last) {
            return true;
        }
    }
    return false;
}

static uint32_t fold(uint32_t code)
{
    return code == 0x17f ? 's' : unicode_lower(code);
}

static const struct row *find_row(uint32_t code)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool is_row_at(const struct row *row, const uint32_t *codes, size_t count)
{
    size_t parts = part_count(row);
    for (size_t i = 0; i < parts; i++) {
        if (i >= count || fold(codes[i]) != row->parts[i]) {
            return false;
        }
    }
    return true;
}

/* The longest row whose letters stand at |codes|. */
static const struct row *find_parts(const uint32_t *codes, size_t count)
{
    const struct row *found = NULL;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (is_row_at(&rows[i], codes, count) &&
            (!found || part_count(&rows[i]) > part_count(found))) {
            found = &rows[i];
        }
    }
    return found;
}

bool pattern_fold_crosses(const uint32_t *codes, size_t count, size_t border)
{
    for (size_t at = 0; at < border; at++) {
        const struct row *row = find_parts(codes + at, count - at);
        if (row && at + part_count(row) > border) {
            return true;
        }
    }
    return false;
}

static void put_codes(struct buf *out, const uint32_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pattern_put_code(out, codes[i]);
    }
}

/* The letters, and each character that stands for them. */
static void put_parts(struct buf *out, const uint32_t *parts, size_t count)
{
    buf_add_str(out, "(?:");
    put_codes(out, parts, count);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (part_count(&rows[i]) == count && is_row_at(&rows[i], parts, count)) {
            buf_add_char(out, '|');
            pattern_put_code(out, rows[i].code);
        }
    }
    buf_add_char(out, ')');
}

void pattern_fold_put(struct buf *out, const uint32_t *codes, size_t count)
{
    for (size_t i = 0; i < count;) {
        const struct row *split = find_row(codes[i]);
        const struct row *joined = split ? NULL : find_parts(codes + i, count - i);
        if (split) {
            put_parts(out, split->parts, part_count(split));
        } else if (joined) {
            put_parts(out, codes + i, part_count(joined));
        } else {
            pattern_put_code(out, codes[i]);
        }
        i += joined ? part_count(joined) : 1;
    }
}
