/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/multipart.h"

#include <string.h>

#define TYPE "multipart/form-data"

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* ---- values with parameters ------------------------------------------------------------------ */

/* Takes what stands before the next |end| that is in no quotes from the front of |rest|. */
static struct span take_until(struct span *rest, uint8_t end)
{
    size_t at = 0;
    bool is_quoted = false;
    for (; at < rest->len && (is_quoted || rest->ptr[at] != end); at++) {
        is_quoted ^= rest->ptr[at] == '"';
        at += is_quoted && rest->ptr[at] == '\\' && at + 1 < rest->len;
    }
    struct span taken = span_of(rest->ptr, at);
    size_t used = at < rest->len ? at + 1 : at;
    *rest = span_of(rest->ptr + used, rest->len - used);
    return span_trim(taken, " \t");
}

/* The value of parameter |name| in ";"-separated |rest|. False: there is none. */
static bool find_parameter(struct span rest, const char *name, struct span *out)
{
    while (rest.len > 0) {
        struct span value = take_until(&rest, ';');
        struct span key = take_until(&value, '=');
        if (span_is_word(key, name)) {
            value = span_trim(value, " \t");
            bool is_quoted =
                value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"';
            *out = is_quoted ? span_of(value.ptr + 1, value.len - 2) : value;
            return true;
        }
    }
    return false;
}

/* ---- boundaries ------------------------------------------------------------------------------ */

/* RFC 2046: bchars, and no blank at the end. */
static bool is_boundary(struct span text)
{
    static const char others[] = "'()+_,-./:=? ";
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i], lower = (uint8_t)(c | 0x20);
        bool is_plain = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
        if (!is_plain && (c == '\0' || !strchr(others, c))) {
            return false;
        }
    }
    return text.len > 0 && text.len <= MULTIPART_BOUNDARY_MAX && text.ptr[text.len - 1] != ' ';
}

/* Where the next delimiter begins, from |from| on; the length of the body if there is none. */
static size_t find_delimiter(const struct multipart *m, size_t from)
{
    const uint8_t *found =
        memmem(m->body.ptr + from, m->body.len - from, m->delimiter, m->delimiter_len);
    return found ? (size_t)(found - m->body.ptr) : m->body.len;
}

/* |at| is behind the boundary: "--" ends the body, blanks and CR LF begin a part. */
static enum status end_boundary(struct multipart *m, size_t at, struct error *err)
{
    const struct span body = m->body;
    if (body.len - at >= 2 && body.ptr[at] == '-' && body.ptr[at + 1] == '-') {
        m->is_over = true;
        return ST_OK;
    }
    while (at < body.len && is_blank(body.ptr[at])) {
        at++;
    }
    if (body.len - at < 2 || body.ptr[at] != '\r' || body.ptr[at + 1] != '\n') {
        return error_set(err, ST_INVALID,
                         "multipart: byte %zu: expected the end of a line or -- behind a boundary",
                         at);
    }
    m->at = at + 2;
    return ST_OK;
}

enum status multipart_init(struct multipart *m, struct span content_type, struct span body,
                           struct error *err)
{
    struct span rest = content_type, type = take_until(&rest, ';'), boundary = {0};
    *m = (struct multipart){.body = body};
    if (!span_is_word(type, TYPE)) {
        return error_set(err, ST_INVALID, "Content-Type: expected " TYPE ", got '%.*s'",
                         SPAN_FMT(span_of(type.ptr, type.len < 80 ? type.len : 80)));
    }
    if (!find_parameter(rest, "boundary", &boundary) || !is_boundary(boundary)) {
        return error_set(err, ST_INVALID,
                         "Content-Type: expected a boundary of 1 to %d letters, digits and signs",
                         MULTIPART_BOUNDARY_MAX);
    }
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.ptr, boundary.len);
    m->delimiter_len = 4 + boundary.len;
    size_t len = m->delimiter_len - 2; /* at the very beginning no line ends before it */
    if (body.len >= len && memcmp(body.ptr, m->delimiter + 2, len) == 0) {
        return end_boundary(m, len, err);
    }
    size_t first = find_delimiter(m, 0);
    return first < body.len
               ? end_boundary(m, first + m->delimiter_len, err)
               : error_set(err, ST_INVALID, "multipart: the boundary is not in the body");
}

/* ---- parts ----------------------------------------------------------------------------------- */

static enum status fail(const struct multipart *m, const char *what, struct error *err)
{
    return error_set(err, ST_INVALID, "multipart: part %u: %s", m->count, what);
}

/* Takes a line from the front of |rest|, without its end. False: it has none. */
static bool take_line(struct span *rest, struct span *out)
{
    const uint8_t *end = memmem(rest->ptr, rest->len, "\r\n", 2);
    if (!end) {
        return false;
    }
    size_t len = (size_t)(end - rest->ptr);
    *out = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len + 2, rest->len - len - 2);
    return true;
}

static void take_field(struct span line, struct multipart_part *part, bool *has_name)
{
    struct span value = line, name = take_until(&value, ':');
    if (span_is_word(name, "Content-Disposition")) {
        struct span type = take_until(&value, ';');
        *has_name = span_is_word(type, "form-data") && find_parameter(value, "name", &part->name);
        (void)find_parameter(value, "filename", &part->filename);
    } else if (span_is_word(name, "Content-Type")) {
        part->content_type = span_trim(value, " \t");
    }
}

/* The fields up to the empty line. */
static enum status read_head(struct multipart *m, struct multipart_part *part, struct error *err)
{
    size_t left = m->body.len - m->at;
    struct span rest = span_of(m->body.ptr + m->at,
                               left < MULTIPART_HEAD_BYTES_MAX ? left : MULTIPART_HEAD_BYTES_MAX);
    struct span line;
    bool has_name = false;
    do {
        if (!take_line(&rest, &line)) {
            return fail(m,
                        left < MULTIPART_HEAD_BYTES_MAX ? "the body ends within its head"
                                                        : "its head has more than 4096 bytes",
                        err);
        }
        take_field(line, part, &has_name);
    } while (line.len > 0);
    m->at = (size_t)(rest.ptr - m->body.ptr);
    return has_name ? ST_OK : fail(m, "expected Content-Disposition: form-data; name=\"...\"", err);
}

enum status multipart_next(struct multipart *m, struct multipart_part *out, bool *out_found,
                           struct error *err)
{
    *out = (struct multipart_part){0};
    *out_found = !m->is_over;
    if (m->is_over) {
        return ST_OK;
    }
    if (m->count++ == MULTIPART_PARTS_MAX) {
        return error_set(err, ST_INVALID, "multipart: expected at most %d parts",
                         MULTIPART_PARTS_MAX);
    }
    TRY(read_head(m, out, err));
    size_t from = m->at - 2; /* the empty line may belong to the boundary, if there is no data */
    size_t end = find_delimiter(m, from);
    if (end == m->body.len) {
        return fail(m, "the body ends within it", err);
    }
    out->data =
        end < m->at ? span_of(m->body.ptr + m->at, 0) : span_of(m->body.ptr + m->at, end - m->at);
    return end_boundary(m, end + m->delimiter_len, err);
}
