/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/token.h"

#include <string.h>

#include "base/check.h"

static const struct {
    const char *name;
    enum token_scope scope;
} scopes[] = {
    {"infer", TOKEN_SCOPE_INFER}, {"read", TOKEN_SCOPE_READ}, {"admin", TOKEN_SCOPE_ADMIN}};
#define SCOPE_COUNT (sizeof(scopes) / sizeof(scopes[0]))

const char *token_scope_name(enum token_scope scope)
{
    for (size_t i = 0; i < SCOPE_COUNT; i++) {
        if (scopes[i].scope == scope) {
            return scopes[i].name;
        }
    }
    unreachable();
}

enum status token_parse_name(struct span word, char *out, struct error *err)
{
    bool is_good = word.len > 0 && word.len <= TOKEN_NAME_MAX;
    for (size_t i = 0; is_good && i < word.len; i++) {
        uint8_t c = word.ptr[i], letter = c | 0x20;
        is_good =
            (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || (c && strchr("._-@", c));
    }
    if (!is_good) {
        return error_set(err, ST_INVALID,
                         "expected a name of 1 to %d letters, digits and . _ - @, got '%.*s'",
                         TOKEN_NAME_MAX, (int)(word.len < 64 ? word.len : 64), word.ptr);
    }
    memcpy(out, word.ptr, word.len);
    out[word.len] = '\0';
    return ST_OK;
}

enum status token_parse_scopes(struct span word, unsigned *out_scopes, struct error *err)
{
    const struct span all = word;
    bool is_good = word.len > 0;
    *out_scopes = 0;
    while (is_good) {
        const uint8_t *comma = memchr(word.ptr, ',', word.len);
        struct span scope = span_of(word.ptr, comma ? (size_t)(comma - word.ptr) : word.len);
        size_t i = 0;
        while (i < SCOPE_COUNT && !span_is(scope, scopes[i].name)) {
            i++;
        }
        is_good = i < SCOPE_COUNT;
        *out_scopes |= is_good ? scopes[i].scope : 0;
        if (!comma) {
            break;
        }
        word = span_of(comma + 1, word.len - scope.len - 1);
    }
    return is_good ? ST_OK
                   : error_set(
                         err, ST_INVALID,
                         "expected scopes: some of infer, read and admin, with commas, got '%.*s'",
                         (int)(all.len < 64 ? all.len : 64), (const char *)all.ptr);
}
