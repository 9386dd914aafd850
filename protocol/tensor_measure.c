/* SPDX-License-Identifier: MIT */
/*
 * Finds shapes from nesting. The first array of each depth fixes the length of all arrays of that
 * depth; the first innermost array fixes the rank. Separators are not checked here: the text is
 * read strictly afterwards, into memory of the size found here. A shape never has more elements
 * than the text has bytes.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json_priv.h"
#include "protocol/tensor_priv.h"

#define UNKNOWN (-1)
#define PATH_TEXT_MAX 160

struct measure {
    const uint8_t *at, *end;
    unsigned depth, rank;           /* open arrays; of the innermost ones, 0 before one was seen */
    int64_t counts[SHAPE_RANK_MAX]; /* elements of the open arrays so far */
    int64_t dims[SHAPE_RANK_MAX];   /* UNKNOWN until an array of that depth was closed */
};

/* Prints the path of the array at |depth|: "[0][3]". */
static const char *print_path(const struct measure *m, unsigned depth, char text[PATH_TEXT_MAX])
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < depth && len < PATH_TEXT_MAX; i++) {
        len += (size_t)snprintf(text + len, PATH_TEXT_MAX - len, "[%" PRId64 "]", m->counts[i] - 1);
    }
    return text;
}

static enum status fail_element(const struct measure *m, struct error *err)
{
    char path[PATH_TEXT_MAX], next[JSON_NEXT_TEXT_MAX];
    struct json in;
    json_init(&in, span_of(m->at, (size_t)(m->end - m->at)));
    return error_set(err, ST_INVALID, "%s: expected a number, got %s",
                     print_path(m, m->depth, path), json_next_text(&in, next));
}

/* Reports that the element at m->at is a number among arrays, or an array among numbers. */
static enum status fail_depth(const struct measure *m, struct error *err)
{
    char path[PATH_TEXT_MAX], next[JSON_NEXT_TEXT_MAX];
    struct json in;
    json_init(&in, span_of(m->at, (size_t)(m->end - m->at)));
    return error_set(err, ST_INVALID, "%s: ragged at depth %u: expected %s, got %s",
                     print_path(m, m->depth, path), m->depth,
                     m->depth < m->rank ? "an array" : "a number", json_next_text(&in, next));
}

static enum status open_array(struct measure *m, struct error *err)
{
    if (m->depth > 0) {
        m->counts[m->depth - 1]++;
    }
    if (m->rank != 0 && m->depth == m->rank) {
        return fail_depth(m, err);
    }
    if (m->depth == SHAPE_RANK_MAX) {
        return error_set(err, ST_TOO_LARGE, ": more than %d dims", SHAPE_RANK_MAX);
    }
    m->counts[m->depth++] = 0;
    m->at++;
    return ST_OK;
}

static enum status close_array(struct measure *m, struct error *err)
{
    char path[PATH_TEXT_MAX];
    unsigned level = m->depth - 1;
    if (m->rank == 0) {
        m->rank = m->depth;
    }
    if (m->dims[level] == UNKNOWN) {
        m->dims[level] = m->counts[level];
    }
    if (m->dims[level] != m->counts[level]) {
        return error_set(err, ST_INVALID,
                         "%s: ragged at depth %u: expected %" PRId64
                         " elements as in the first, got %" PRId64,
                         print_path(m, level, path), level, m->dims[level], m->counts[level]);
    }
    m->depth = level;
    m->at++;
    return ST_OK;
}

/* Skips at least one byte, and all bytes up to the next separator or bracket. */
static enum status pass_element(struct measure *m, struct error *err)
{
    double number;
    const uint8_t *behind =
        *m->at == '"' ? tensor_read_quoted(m->at, m->end, &number) : NULL; /* NaN */
    m->counts[m->depth - 1]++;
    if (!behind && (*m->at == '"' || *m->at == '{' || *m->at < ' ')) {
        return fail_element(m, err);
    }
    if (m->rank == 0) {
        m->rank = m->depth;
    }
    if (m->depth != m->rank) {
        return fail_depth(m, err);
    }
    m->at = behind ? behind : m->at;
    while (m->at < m->end && *m->at != ',' && *m->at != ']' && *m->at != '[' && *m->at > ' ') {
        m->at++;
    }
    return ST_OK;
}

static enum status pass(struct measure *m, struct error *err)
{
    switch (*m->at) {
    case '[':
        return open_array(m, err);
    case ']':
        return close_array(m, err);
    case ',':
        m->at++;
        return ST_OK;
    default:
        return pass_element(m, err);
    }
}

/* ---- the usual case -------------------------------------------------------------------------- */

enum kind { OTHER, OPEN, CLOSE, SPACE, COMMA, NUMBER };

/* Of the bytes that stand in an array of numbers; words, for NaN and the infinities, are rare. */
static const uint8_t kinds[256] = {
    [' '] = SPACE,  ['\n'] = SPACE, ['\r'] = SPACE, ['\t'] = SPACE, [','] = COMMA,  ['['] = OPEN,
    [']'] = CLOSE,  ['0'] = NUMBER, ['1'] = NUMBER, ['2'] = NUMBER, ['3'] = NUMBER, ['4'] = NUMBER,
    ['5'] = NUMBER, ['6'] = NUMBER, ['7'] = NUMBER, ['8'] = NUMBER, ['9'] = NUMBER, ['-'] = NUMBER,
    ['+'] = NUMBER, ['.'] = NUMBER, ['e'] = NUMBER, ['E'] = NUMBER,
};

/* Counts the numbers of an innermost array, from behind its opening bracket; |*at| moves to its
 * closing one. False: something else stands there. */
static bool count_numbers(const uint8_t **at, const uint8_t *end, int64_t *out)
{
    const uint8_t *p = *at;
    int64_t count = 0;
    bool is_inside = false;
    for (; p < end && kinds[*p] > CLOSE; p++) {
        bool is_number = kinds[*p] == NUMBER;
        count += is_number > is_inside;
        is_inside = is_number;
    }
    *at = p;
    *out = count;
    return p < end && kinds[*p] == CLOSE;
}

/* An array of |level| ends with |count| elements. False: an earlier one had others. */
static bool end_array(struct shape *shape, unsigned level, int64_t count)
{
    if (shape->dims[level] == UNKNOWN) {
        shape->dims[level] = count;
    }
    return shape->dims[level] == count;
}

const uint8_t *tensor_text_pass(const uint8_t *at, const uint8_t *end, struct shape *out_shape)
{
    int64_t counts[SHAPE_RANK_MAX];
    unsigned depth = 0, rank = 0;
    struct shape *shape = out_shape;
    do {
        uint8_t kind = at < end ? kinds[*at] : (uint8_t)OTHER;
        bool is_ok = depth > 0 || kind == OPEN;
        at++;
        if (kind == OPEN && depth < (rank ? rank : SHAPE_RANK_MAX)) {
            counts[depth ? depth - 1 : 0] += depth > 0;
            counts[depth] = 0;
            shape->dims[depth] = rank ? shape->dims[depth] : UNKNOWN;
            depth++;
            at = tensor_skip_space(at, end);
            if (depth == rank || (rank == 0 && at < end && *at != '[')) {
                rank = depth;
                is_ok = count_numbers(&at, end, &counts[depth - 1]);
            }
        } else if (kind == CLOSE && is_ok) {
            depth--;
            is_ok = end_array(shape, depth, counts[depth]);
        } else {
            is_ok &= kind == COMMA || kind == SPACE;
        }
        if (!is_ok) {
            return NULL;
        }
    } while (depth > 0);
    shape->rank = (uint8_t)rank;
    return at;
}

enum status tensor_text_measure(struct span text, struct shape *out_shape, struct error *err)
{
    struct measure m = {.at = text.ptr, .end = text.ptr + text.len};
    memset(m.dims, UNKNOWN, sizeof(m.dims));
    do {
        m.at = tensor_skip_space(m.at, m.end);
        if (m.at == m.end || (m.depth == 0 && *m.at != '[')) {
            return error_set(err, ST_INVALID, ": expected an array");
        }
        TRY(pass(&m, err));
    } while (m.depth > 0);
    *out_shape = (struct shape){.rank = (uint8_t)m.rank};
    for (unsigned i = 0; i < m.rank; i++) {
        out_shape->dims[i] = m.dims[i] == UNKNOWN ? 0 : m.dims[i];
    }
    return ST_OK;
}
