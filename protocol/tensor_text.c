/* SPDX-License-Identifier: MIT */
/*
 * JSON arrays -> typed memory. A walk over the brackets finds the innermost arrays. Each of these
 * is a run: a known number of elements, read by a loop made for their type. A flat array has a
 * single run.
 */
#include "config.h"

#include "protocol/tensor_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json_priv.h"
#include "protocol/number.h"
#include "protocol/tensor_priv.h"

static inline bool is_next(struct tensor_walk *walk, char c)
{
    walk->at = tensor_skip_space(walk->at, walk->end);
    return walk->at < walk->end && *walk->at == c;
}

#define PATH_TEXT_MAX 160

/* Prints the first |count| indices as "[3][1]: "; prints nothing if |count| is 0. */
static const char *print_path(const struct tensor_walk *walk, unsigned count,
                              char text[PATH_TEXT_MAX])
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count && len < PATH_TEXT_MAX; i++) {
        len += (size_t)snprintf(text + len, PATH_TEXT_MAX - len, "[%" PRId64 "]", walk->index[i]);
    }
    if (len < PATH_TEXT_MAX) {
        snprintf(text + len, PATH_TEXT_MAX - len, ": ");
    }
    return text;
}

static enum status fail_next(const struct tensor_walk *walk, unsigned depth, const char *wanted,
                             struct error *err)
{
    char path[PATH_TEXT_MAX], next[JSON_NEXT_TEXT_MAX];
    struct json in;
    const uint8_t *at = tensor_skip_space(walk->at, walk->end);
    if (at < walk->end && *at == ',') {
        at = tensor_skip_space(at + 1, walk->end);
    }
    if (json_is_trailing_comma(walk->start, at, walk->end)) {
        return error_set(err, ST_INVALID, "%s" JSON_TRAILING_COMMA, print_path(walk, depth, path),
                         *at);
    }
    json_init(&in, span_of(walk->at, (size_t)(walk->end - walk->at)));
    return error_set(err, ST_INVALID, "%sexpected %s, got %s", print_path(walk, depth, path),
                     wanted, json_next_text(&in, next));
}

static enum status fail_short(const struct tensor_walk *walk, size_t done, size_t count,
                              struct error *err)
{
    char path[PATH_TEXT_MAX], shape[SHAPE_TEXT_MAX];
    return error_set(err, ST_INVALID, "%sexpected %zu elements (shape %.80s), got %zu",
                     print_path(walk, walk->level, path), count, shape_print(walk->shape, shape),
                     done);
}

/*
 * Counts the items of the array at |at|, up to its closing bracket or the end of the text: its own
 * elements and arrays or, if |is_deep|, the elements at any depth.
 */
static size_t count_items(const uint8_t *at, const uint8_t *end, bool is_deep)
{
    size_t count = 0, depth = 0;
    bool is_open = false; /* an item has begun */
    while (at < end && (*at != ']' || depth > 0)) {
        struct json_string string;
        uint8_t c = *at;
        bool is_bracket = c == '[' || c == ']', is_seen = is_deep || depth == 0;
        if ((c == ',' && is_seen) || (is_bracket && is_deep)) {
            is_open = false;
        } else if (c > ' ' && is_seen && !is_open) {
            is_open = true;
            count++;
        }
        depth += c == '[';
        depth -= c == ']';
        if (c != '"' || json_string_scan(&at, end, &string)) {
            at++;
        }
    }
    return count;
}

size_t tensor_text_count(struct span text)
{
    return text.len > 0 ? count_items(text.ptr + 1, text.ptr + text.len, true) : 0;
}

/* Reports that there is no closing bracket after |count| elements. */
static enum status fail_long(struct tensor_walk *walk, size_t count, struct error *err)
{
    char path[PATH_TEXT_MAX], shape[SHAPE_TEXT_MAX];
    if (count > 0 && !is_next(walk, ',')) {
        return fail_next(walk, walk->level, "']'", err);
    }
    size_t more = count_items(walk->at, walk->end, false);
    return more > 0 ? error_set(err, ST_INVALID, "%sexpected %zu elements (shape %.80s), got %zu",
                                print_path(walk, walk->level, path), count,
                                shape_print(walk->shape, shape), count + more)
                    : fail_next(walk, walk->level, "']'", err);
}

/* Reports why the string at walk->at was not read: it is malformed, or memory ran out. */
static enum status fail_string(const struct tensor_walk *walk, const char *path, struct error *err)
{
    struct json_string string;
    const uint8_t *at = walk->at;
    const char *wrong = json_string_scan(&at, walk->end, &string);
    if (wrong) {
        return error_set(err, ST_INVALID, "%s%s", path, wrong);
    }
    arena_fail(walk->arena, "the request", err);
    return error_prefix(err, "%s", path);
}

/* The number at walk->at was not read. */
static enum status fail_number(const struct tensor_walk *walk, const char *path, struct error *err)
{
    struct span token = json_number_text(walk->at, walk->end);
    const uint8_t *at = walk->at;
    int64_t integer;
    double number;
    enum number_result result = walk->element->is_float
                                    ? number_parse_f64(&at, walk->end, &number)
                                    : number_parse_i64(&at, walk->end, &integer);
    if (!walk->element->is_float && number_read_word(walk->at, walk->end, &number)) {
        result = NUMBER_NOT_INTEGER;
    }
    switch (result) {
    case NUMBER_NOT_INTEGER:
        return error_set(err, ST_INVALID, "%sexpected an integer, got %.*s", path, SPAN_FMT(token));
    case NUMBER_SYNTAX:
        return error_set(err, ST_INVALID, "%smalformed number %.*s", path, SPAN_FMT(token));
    default:
        return error_set(err, ST_INVALID, "%s%.*s is out of the range of %s (%s)", path,
                         SPAN_FMT(token), walk->element->name, walk->element->range);
    }
}

/* Reports why the element at walk->at, whose index is set, was not read. */
static enum status fail_element(const struct tensor_walk *walk, struct error *err)
{
    char path[PATH_TEXT_MAX];
    struct json in;
    json_init(&in, span_of(walk->at, (size_t)(walk->end - walk->at)));
    print_path(walk, walk->level + 1, path);
    enum json_type type = json_peek(&in);
    if (!walk->is_at_element) {
        return fail_next(walk, walk->level + 1, "',' or ']'", err);
    }
    if (type == JSON_STRING && walk->element == &tensor_string_element) {
        return fail_string(walk, path, err);
    }
    if (type == JSON_NUMBER && walk->element != &tensor_string_element) {
        return fail_number(walk, path, err);
    }
    if (type == JSON_BOOL && walk->element == &tensor_elements[DT_BOOL]) {
        return error_set(err, ST_INVALID, "%sexpected true or false, got another word", path);
    }
    return fail_next(walk, walk->level + 1, walk->element->wanted, err);
}

/* Reads an innermost array of |count| elements, from behind its opening bracket to behind its
 * closing one. */
static enum status walk_run(struct tensor_walk *walk, size_t count, struct error *err)
{
    size_t done = walk->element->read_run(walk, count);
    walk->index[walk->level] = (int64_t)done;
    if (done < count) {
        bool is_short = is_next(walk, ']') && (done == 0 || !walk->is_at_element);
        return is_short ? fail_short(walk, done, count, err) : fail_element(walk, err);
    }
    if (!is_next(walk, ']')) {
        return fail_long(walk, count, err);
    }
    walk->at++;
    return ST_OK;
}

/* Enters the next array inside the one at walk->level, or leaves that one if it is complete. */
static enum status walk_brackets(struct tensor_walk *walk, bool *is_inside, struct error *err)
{
    int64_t done = walk->index[walk->level], count = walk->shape->dims[walk->level];
    *is_inside = false;
    if (is_next(walk, ']')) {
        walk->at++;
        return done == count ? ST_OK : fail_short(walk, (size_t)done, (size_t)count, err);
    }
    if (done == count) {
        return fail_long(walk, (size_t)count, err);
    }
    if (done > 0) {
        if (!is_next(walk, ',')) {
            return fail_next(walk, walk->level, "',' or ']'", err);
        }
        walk->at++;
    }
    if (!is_next(walk, '[')) {
        return fail_next(walk, walk->level + 1, "an array", err);
    }
    walk->at++;
    *is_inside = true;
    return ST_OK;
}

static enum status walk_nested(struct tensor_walk *walk, struct error *err)
{
    const unsigned innermost = walk->shape->rank - 1u;
    walk->index[0] = 0;
    while (true) {
        bool is_inside = false;
        if (walk->level == innermost) {
            TRY(walk_run(walk, (size_t)walk->shape->dims[innermost], err));
        } else {
            TRY(walk_brackets(walk, &is_inside, err));
        }
        if (is_inside) {
            walk->index[++walk->level] = 0;
        } else if (walk->level > 0) {
            walk->index[--walk->level]++;
        } else {
            return ST_OK;
        }
    }
}

static enum status walk_array(struct tensor_walk *walk, size_t count, struct error *err)
{
    if (!is_next(walk, '[')) {
        return fail_next(walk, 0, "an array", err);
    }
    walk->at++;
    if (walk->shape->rank > 1 && is_next(walk, '[')) {
        TRY(walk_nested(walk, err));
    } else {
        TRY(walk_run(walk, count, err));
    }
    walk->at = tensor_skip_space(walk->at, walk->end);
    return walk->at == walk->end ? ST_OK : fail_next(walk, 0, "the end of the array", err);
}

size_t tensor_text_bytes_min(int64_t count)
{
    /* One character an element, commas between them, two brackets. */
    return count <= 0 ? 2 : (uint64_t)count > SIZE_MAX / 2 - 1 ? SIZE_MAX : (size_t)count * 2 + 1;
}

enum status tensor_text_parse(struct span text, enum dtype dtype, const struct shape *shape,
                              struct tensor_nan *nan, void *dst, size_t bytes, struct error *err)
{
    must(bytes == (size_t)shape_numel(shape) * dtype_bytes(dtype));
    struct tensor_walk walk = {
        .start = text.ptr,
        .at = text.ptr,
        .end = text.ptr + text.len,
        .shape = shape,
        .element = &tensor_elements[dtype],
        .dst = dst,
        .nan = nan,
    };
    return walk_array(&walk, bytes / dtype_bytes(dtype), err);
}

enum status tensor_text_parse_element(struct span text, enum dtype dtype, struct tensor_nan *nan,
                                      void *dst, struct error *err)
{
    static const struct shape scalar = {.rank = 0};
    struct tensor_walk walk = {
        .start = text.ptr,
        .at = text.ptr,
        .end = text.ptr + text.len,
        .shape = &scalar,
        .element = &tensor_elements[dtype],
        .dst = dst,
        .nan = nan,
    };
    struct json in;
    json_init(&in, text);
    if (walk.element->read_run(&walk, 1) == 1) {
        return walk.at == walk.end ? ST_OK : fail_next(&walk, 0, "the end of the value", err);
    }
    return json_peek(&in) == JSON_NUMBER ? fail_number(&walk, ": ", err)
                                         : fail_next(&walk, 0, walk.element->wanted, err);
}

enum status tensor_text_parse_strings(struct span text, const struct shape *shape,
                                      struct arena *arena, struct span **out_strings,
                                      struct error *err)
{
    int64_t count = shape_numel(shape);
    if (text.len < tensor_text_bytes_min(count)) {
        return error_set(err, ST_INVALID, ": expected %" PRId64 " strings, got %zu", count,
                         tensor_text_count(text));
    }
    struct span *strings = arena_array(arena, (size_t)count, sizeof(*strings));
    if (!strings) {
        arena_fail(arena, "the request", err);
        return error_prefix(err, ": ");
    }
    struct tensor_walk walk = {
        .start = text.ptr,
        .at = text.ptr,
        .end = text.ptr + text.len,
        .shape = shape,
        .element = &tensor_string_element,
        .dst = (uint8_t *)strings,
        .arena = arena,
    };
    TRY(walk_array(&walk, (size_t)count, err));
    *out_strings = strings;
    return ST_OK;
}
