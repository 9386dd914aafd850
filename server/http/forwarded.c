/* SPDX-License-Identifier: MIT */
/* A list is cut into its elements from the left, because that is the only way to know what is
 * quoted. Only the last ones are kept and read. */
#include "config.h"

#include "server/http/forwarded.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define NODE_BYTES_MAX 64 /* of an address with its port, without quotes */
#define PORT_DIGITS_MAX 5

/* The last elements of a list; the oldest one gives way. */
struct elements {
    struct span items[FORWARDED_HOPS_MAX];
    uint32_t count; /* of all that have been added */
};

enum node {
    NODE_IP,
    NODE_UNKNOWN,   /* the proxy does not say, or not by an address */
    NODE_MALFORMED, /* it is no element of such a list */
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* The text before the next |separator|, which is not quoted if there |are_quotes|; |*rest| is what
 * is behind it. */
static struct span take(struct span *rest, char separator, bool are_quotes)
{
    bool is_quoted = false;
    size_t end = 0;
    for (; end < rest->len && (is_quoted || rest->ptr[end] != (uint8_t)separator); end++) {
        if (are_quotes && rest->ptr[end] == '"') {
            is_quoted = !is_quoted;
        } else if (is_quoted && rest->ptr[end] == '\\' && end + 1 < rest->len) {
            end++;
        }
    }
    struct span text = span_trim(span_of(rest->ptr, end), " \t");
    size_t used = end < rest->len ? end + 1 : end;
    *rest = span_of(rest->ptr + used, rest->len - used);
    return text;
}

/* RFC 9110, section 5.6.1: empty elements do not count. */
static void add_elements(struct elements *elements, struct span line, bool are_quotes)
{
    while (line.len) {
        struct span element = take(&line, ',', are_quotes);
        if (element.len) {
            elements->items[elements->count++ % FORWARDED_HOPS_MAX] = element;
        }
    }
}

/* ---- an address ------------------------------------------------------------------------------ */

/* 1 to 5 digits; RFC 7239 also has names that begin with "_". */
static bool is_port(struct span port)
{
    bool is_hidden = port.len && port.ptr[0] == '_', is_number = port.len <= PORT_DIGITS_MAX;
    for (size_t i = 0; i < port.len; i++) {
        is_number = is_number && port.ptr[i] >= '0' && port.ptr[i] <= '9';
    }
    return port.len && (is_hidden || is_number);
}

/* "192.0.2.1" or "2001:db8::1", with a port "192.0.2.1:80", "[2001:db8::1]" or "[2001:db8::1]:80".
 */
static bool read_ip(struct span text, struct address *out)
{
    if (text.len && text.ptr[0] == '[') {
        const uint8_t *end = memchr(text.ptr, ']', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : 0;
        bool is_whole = end && len + 1 == text.len;
        bool has_port = end && len + 2 < text.len && end[1] == ':' &&
                        is_port(span_of(end + 2, text.len - len - 2));
        return (is_whole || has_port) && memchr(text.ptr, ':', len) &&
               address_read_ip(span_of(text.ptr + 1, len - 1), out);
    }
    const uint8_t *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    size_t len = colon ? (size_t)(colon - text.ptr) : text.len;
    bool is_one = colon && !memchr(colon + 1, ':', text.len - len - 1);
    if (is_one && !is_port(span_of(colon + 1, text.len - len - 1))) {
        return false;
    }
    return address_read_ip(is_one ? span_of(text.ptr, len) : text, out);
}

static enum node read_node(struct span text, struct address *out)
{
    if (read_ip(text, out)) {
        return NODE_IP;
    }
    const uint8_t *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    size_t len = colon ? (size_t)(colon - text.ptr) : text.len;
    bool is_named = len > 1 && text.ptr[0] == '_';
    if (colon && !is_port(span_of(colon + 1, text.len - len - 1))) {
        return NODE_MALFORMED;
    }
    return is_named || span_is_word(span_of(text.ptr, len), "unknown") ? NODE_UNKNOWN
                                                                       : NODE_MALFORMED;
}

/* ---- an element of Forwarded ----------------------------------------------------------------- */

/* RFC 9110, section 5.6.2. */
static bool is_token(struct span text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    bool is_good = text.len > 0;
    for (size_t i = 0; is_good && i < text.len; i++) {
        uint8_t c = text.ptr[i], letter = c | 0x20;
        is_good =
            (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || (c && strchr(others, c));
    }
    return is_good;
}

/* A token, or a quoted string without its quotes; what is too long for a node is cut off. False:
 * neither. */
static bool unquote(struct span value, char text[NODE_BYTES_MAX], struct span *out)
{
    size_t len = 0, i = 1;
    *out = value;
    if (!value.len || value.ptr[0] != '"') {
        return is_token(value);
    }
    for (; i < value.len && value.ptr[i] != '"'; i++) {
        i += value.ptr[i] == '\\';
        if (i < value.len && len < NODE_BYTES_MAX) {
            text[len++] = (char)value.ptr[i];
        }
    }
    *out = span_of(text, len);
    return i + 1 == value.len;
}

/* Pairs NAME=VALUE with semicolons between them; |out| is the address of "for". */
static enum node read_element(struct span element, struct address *out)
{
    enum node node = NODE_UNKNOWN;
    bool has_for = false;
    while (element.len) {
        char text[NODE_BYTES_MAX];
        struct span pair = take(&element, ';', true), name, value;
        if (!pair.len) {
            continue;
        }
        const uint8_t *equals = memchr(pair.ptr, '=', pair.len);
        name = span_of(pair.ptr, equals ? (size_t)(equals - pair.ptr) : 0);
        if (!is_token(name) ||
            !unquote(span_of(equals + 1, pair.len - name.len - 1), text, &value)) {
            return NODE_MALFORMED;
        }
        if (span_is_word(name, "for")) {
            node = has_for ? NODE_MALFORMED : read_node(value, out);
            has_for = true;
        }
        if (node == NODE_MALFORMED) {
            return node;
        }
    }
    return node;
}

/* ---- the list -------------------------------------------------------------------------------- */

static enum status fail(enum http_field field, struct span element, struct error *err)
{
    bool is_forwarded = field == HTTP_FORWARDED;
    return error_set(err, ST_INVALID, "%s: expected %s, got '%.*s'",
                     is_forwarded ? "Forwarded" : "X-Forwarded-For",
                     is_forwarded ? "for=ADDR or for=\"[ADDR6]:PORT\"" : "an address",
                     SPAN_SHORT(element));
}

enum status forwarded_find(const struct proxies *proxies, const struct head *head,
                           enum http_field field, struct address *out, bool *out_is_found,
                           struct error *err)
{
    must(field == HTTP_FORWARDED || field == HTTP_X_FORWARDED_FOR);
    struct elements elements = {.count = 0};
    for (uint32_t line = head_line_count(head, field); line > 0; line--) {
        add_elements(&elements, head_line(head, field, line - 1), field == HTTP_FORWARDED);
    }
    bool is_proxy = true;
    *out_is_found = false;
    for (uint32_t hop = 0; is_proxy && hop < elements.count && hop < FORWARDED_HOPS_MAX; hop++) {
        struct span element = elements.items[(elements.count - 1 - hop) % FORWARDED_HOPS_MAX];
        struct address address;
        enum node node = field == HTTP_FORWARDED ? read_element(element, &address)
                                                 : read_node(element, &address);
        if (node == NODE_MALFORMED) {
            return fail(field, element, err);
        }
        is_proxy = node == NODE_IP && proxies_have(proxies, &address);
        if (node == NODE_IP) {
            *out = address;
            *out_is_found = true;
        }
    }
    return ST_OK;
}
