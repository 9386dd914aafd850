/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/target.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define SCHEME_UNIX "unix:"
#define PORT_MAX 65535
#define URL_BYTES_MAX 2048
#define SHOWN_MAX 96 /* bytes of a target in a message */

static const char *const schemes[] = {"http://", "https://"};

/* The length of the scheme at |text|; 0: there is none. */
static size_t scheme_length(const char *text)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) {
            return strlen(schemes[i]);
        }
    }
    return 0;
}

static bool is_unix(const char *text)
{
    return strncmp(text, SCHEME_UNIX, strlen(SCHEME_UNIX)) == 0;
}

/* Copies |part| with its end. False: it is empty or does not fit. */
static bool copy(struct span part, char *out, size_t max)
{
    if (part.len == 0 || part.len > max) {
        return false;
    }
    memcpy(out, part.ptr, part.len);
    out[part.len] = '\0';
    return true;
}

/* ---- the server ------------------------------------------------------------------------------ */

static bool is_port(struct span text)
{
    char digits[6];
    return copy(text, digits, sizeof(digits) - 1) && digits[strspn(digits, "0123456789")] == '\0' &&
           strtol(digits, NULL, 10) > 0 && strtol(digits, NULL, 10) <= PORT_MAX;
}

/* All of |text| are letters, digits or |others|. */
static bool has_only(struct span text, const char *others)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!isalnum(text.ptr[i]) && (!text.ptr[i] || !strchr(others, text.ptr[i]))) {
            return false;
        }
    }
    return true;
}

/* HOST, HOST:PORT, [ADDR6] or [ADDR6]:PORT. */
static bool is_authority(struct span text)
{
    struct span host = text;
    const uint8_t *bracket = text.len ? memchr(text.ptr, ']', text.len) : NULL;
    bool is_v6 = text.len && text.ptr[0] == '[';
    if (is_v6) {
        host = span_of(text.ptr + 1, bracket ? (size_t)(bracket - text.ptr) - 1 : 0);
    } else {
        const uint8_t *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
        host.len = colon ? (size_t)(colon - text.ptr) : text.len;
    }
    size_t used = host.len + (is_v6 ? 2 : 0);
    if (host.len == 0 || !has_only(host, is_v6 ? ":.%" : "._-")) {
        return false;
    }
    return used == text.len ||
           (text.ptr[used] == ':' && is_port(span_of(text.ptr + used + 1, text.len - used - 1)));
}

/* HOST:PORT, perhaps with a path behind it: http:// is meant. */
static bool is_bare(const char *text)
{
    size_t len = strcspn(text, "/?#");
    return len > 0 && isdigit((uint8_t)text[len - 1]) && memchr(text, ':', len) &&
           is_authority(span_of(text, len));
}

bool target_is_one(const char *text)
{
    return is_unix(text) || scheme_length(text) > 0 || is_bare(text);
}

/* ---- the path -------------------------------------------------------------------------------- */

static int hex_digit(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* A part of a path without its escapes. False: an escape or a byte that no name has, or no room. */
static bool unescape(struct span part, char *out, size_t max)
{
    size_t len = 0;
    for (size_t i = 0; i < part.len; i++) {
        uint8_t c = part.ptr[i];
        if (c == '%') {
            bool is_whole = in_range(i, 3, part.len);
            int high = is_whole ? hex_digit(part.ptr[i + 1]) : -1;
            int low = is_whole ? hex_digit(part.ptr[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (uint8_t)(high * 16 + low);
            i += 2;
        }
        if (c < 0x20 || c == 0x7f || c == '/' || len == max) {
            return false;
        }
        out[len++] = (char)c;
    }
    out[len] = '\0';
    return len > 0 && strcmp(out, ".") != 0 && strcmp(out, "..") != 0;
}

/* Takes the next part of "/a/b/": "a", then "b". False: there is none. */
static bool next_part(struct span *path, struct span *out_part)
{
    while (path->len > 0 && path->ptr[0] == '/') {
        *path = span_of(path->ptr + 1, path->len - 1);
    }
    const uint8_t *slash = path->len ? memchr(path->ptr, '/', path->len) : NULL;
    size_t len = slash ? (size_t)(slash - path->ptr) : path->len;
    *out_part = span_of(path->ptr, len);
    *path = span_of(path->ptr + len, path->len - len);
    return len > 0;
}

/* The last part of a call's path, which the command itself knows. */
static bool is_verb(struct span part)
{
    static const char *const verbs[] = {"infer", "call",  "stats",     "config",
                                        "ready", "shape", "signature", "generate"};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (span_is(part, verbs[i])) {
            return true;
        }
    }
    return false;
}

/* MODEL[/versions/VERSION], and a verb if |may_have_verb|. */
static bool parse_model(struct span path, bool may_have_verb, struct target *out)
{
    struct span part;
    if (!next_part(&path, &part) || !unescape(part, out->model, TARGET_NAME_MAX)) {
        return false;
    }
    bool has_part = next_part(&path, &part);
    if (has_part && span_is(part, "versions")) {
        if (!next_part(&path, &part) || !unescape(part, out->version, TARGET_VERSION_MAX)) {
            return false;
        }
        has_part = next_part(&path, &part);
    }
    return !has_part || (may_have_verb && is_verb(part) && !next_part(&path, &part));
}

/* Splits |path| into the parts before and behind "v2". False: there is no such part. */
static bool split_at_v2(struct span path, struct span *out_before, struct span *out_behind)
{
    struct span rest = path, part;
    while (next_part(&rest, &part)) {
        if (span_is(part, "v2")) {
            *out_before = span_of(path.ptr, (size_t)(part.ptr - path.ptr) - 1);
            *out_behind = rest;
            return true;
        }
    }
    return false;
}

/* Appends |prefix| to the base. False: it does not fit, or it is no path. */
static bool add_prefix(struct span prefix, struct target *out)
{
    size_t len = strlen(out->base);
    while (prefix.len > 0 && prefix.ptr[prefix.len - 1] == '/') {
        prefix.len--;
    }
    return prefix.len == 0 ||
           (has_only(prefix, "/._~%-") && copy(prefix, out->base + len, TARGET_BASE_MAX - len));
}

static bool parse_path(struct span path, struct target *out)
{
    struct span before, behind, part, rest = path;
    if (!next_part(&rest, &part)) {
        return true;
    }
    if (!split_at_v2(path, &before, &behind)) {
        return parse_model(path, false, out);
    }
    if (!add_prefix(before, out)) {
        return false;
    }
    if (!next_part(&behind, &part)) {
        return true;
    }
    return span_is(part, "models") && (!next_part(&(struct span){behind.ptr, behind.len}, &part) ||
                                       parse_model(behind, true, out));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status refuse(const char *text, const char *expected, struct error *err)
{
    struct span shown = span_str(text);
    shown.len = shown.len > SHOWN_MAX ? SHOWN_MAX : shown.len;
    return error_set(err, ST_INVALID, "'%.*s': expected %s", SPAN_FMT(shown), expected);
}

static enum status parse_unix(const char *text, struct target *out, struct error *err)
{
    const char *path = text + strlen(SCHEME_UNIX), *colon = NULL;
    for (const char *at = strstr(path, ":/"); at; at = strstr(at + 1, ":/")) {
        colon = at;
    }
    out->is_abstract = path[0] == '@';
    path += out->is_abstract ? 1 : 0;
    size_t len = colon && colon >= path ? (size_t)(colon - path) : strlen(path);
    if (!copy(span_of(path, len), out->socket, TARGET_SOCKET_MAX)) {
        return refuse(text, "unix:PATH or unix:PATH:/MODEL with a path of 1 to 107 bytes", err);
    }
    snprintf(out->base, sizeof(out->base), "http://localhost");
    if (path[len] && (strpbrk(path + len, "?#") || !parse_path(span_str(path + len + 1), out))) {
        return refuse(text, "unix:PATH:/MODEL or unix:PATH:/v2/models/MODEL", err);
    }
    snprintf(out->text, sizeof(out->text), "%.*s", (int)(path + len - text), text);
    return ST_OK;
}

static enum status parse_url(const char *text, struct target *out, struct error *err)
{
    size_t scheme = scheme_length(text), len = strcspn(text + scheme, "/?#");
    struct span authority = span_of(text + scheme, len);
    const char *path = text + scheme + len;
    if (memchr(authority.ptr, '@', len)) {
        return error_set(err, ST_INVALID,
                         "a URL with a user's name or password: expected --token or --token-file");
    }
    if (!is_authority(authority) || scheme + len > TARGET_BASE_MAX) {
        return refuse(text, "a host and perhaps a port, as in http://127.0.0.1:8000", err);
    }
    copy(span_of(text, scheme + len), out->base, TARGET_BASE_MAX);
    if (strpbrk(path, "?#") || !parse_path(span_str(path), out)) {
        return refuse(text, "http://HOST:PORT/MODEL or http://HOST:PORT/v2/models/MODEL", err);
    }
    snprintf(out->text, sizeof(out->text), "%s", out->base);
    return ST_OK;
}

enum status target_parse(const char *text, struct target *out, struct error *err)
{
    *out = (struct target){.base = ""};
    for (const char *at = text; *at; at++) {
        if ((uint8_t)*at <= 0x20 || *at == 0x7f) {
            return error_set(err, ST_INVALID,
                             "a target with a blank or a control character: expected http://HOST, "
                             "https://HOST or unix:PATH");
        }
    }
    if (is_unix(text)) {
        return parse_unix(text, out, err);
    }
    if (scheme_length(text) == 0 && is_bare(text)) {
        char url[URL_BYTES_MAX];
        int len = snprintf(url, sizeof(url), "http://%s", text);
        return len > 0 && (size_t)len < sizeof(url) ? parse_url(url, out, err)
                                                    : refuse(text, "a shorter URL", err);
    }
    return scheme_length(text) > 0
               ? parse_url(text, out, err)
               : refuse(text, "HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH", err);
}

enum status target_parse_model(const char *text, struct target *out, struct error *err)
{
    TRY(target_parse(text, out, err));
    return out->model[0]
               ? ST_OK
               : refuse(text, "a model behind the server, as in http://HOST:PORT/MODEL", err);
}

enum status target_parse_server(const char *text, struct target *out, struct error *err)
{
    TRY(target_parse(text, out, err));
    return out->model[0] ? refuse(text, "a server alone, without a model", err) : ST_OK;
}

/* ---- to text --------------------------------------------------------------------------------- */

void target_print_escaped(const char *text, struct buf *out)
{
    for (const char *at = text; *at; at++) {
        if (has_only(span_of(at, 1), "._~-")) {
            buf_add_char(out, *at);
        } else {
            buf_printf(out, "%%%02X", (uint8_t)*at);
        }
    }
}

void target_print_path(const struct target *target, const char *rest, struct buf *out)
{
    buf_add_str(out, "/v2/models/");
    target_print_escaped(target->model, out);
    if (target->version[0]) {
        buf_add_str(out, "/versions/");
        target_print_escaped(target->version, out);
    }
    buf_add_str(out, rest);
}
