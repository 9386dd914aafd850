/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "server/process/nearest.h"

#define KEY_BYTES_MAX 40

static const char what[] = "the request";

enum status ask_read_text(struct json *in, struct arena *arena, struct span *out, struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    return json_string_copy(&text, arena, what, out, err);
}

enum status ask_read_model(struct json *in, struct arena *arena, const char **out,
                           struct error *err)
{
    struct span text;
    TRY(ask_read_text(in, arena, &text, err));
    if (memchr(text.ptr, 0, text.len)) {
        return json_fail(in, err, ST_INVALID, "expected the name of a model");
    }
    *out = (const char *)text.ptr;
    return ST_OK;
}

enum status ask_read_tagged_model(struct json *in, struct arena *arena, const char **out,
                                  struct error *err)
{
    static const char tag[] = ":latest";
    TRY(ask_read_model(in, arena, out, err));
    size_t len = strlen(*out), tag_len = sizeof(tag) - 1;
    if (len > tag_len && strcmp(*out + len - tag_len, tag) == 0) {
        *out = arena_strdup(arena, *out, len - tag_len);
    }
    return *out ? ST_OK : arena_fail(arena, what, err);
}

enum status ask_read_ids(struct json *in, struct arena *arena, uint32_t max, const uint32_t **out,
                         uint32_t *out_count, struct error *err)
{
    uint32_t room = json_count_elements(in, max + 1), count = 0;
    uint32_t *ids = arena_array(arena, (size_t)room + 1, sizeof(*ids));
    if (!ids) {
        return arena_fail(arena, what, err);
    }
    TRY(json_array(in, err));
    while (true) {
        uint64_t id;
        TRY(json_element(in, err));
        if (in->is_closed) {
            break;
        }
        TRY(json_read_u64(in, &id, err));
        if (id >= UINT32_MAX) {
            return json_fail(in, err, ST_INVALID, "expected ids below %u, got %" PRIu64, UINT32_MAX,
                             id);
        }
        if (count == max) {
            return json_fail(in, err, ST_INVALID, "expected at most %u ids of tokens", max);
        }
        must(count < room);
        ids[count++] = (uint32_t)id;
    }
    *out = ids;
    *out_count = count;
    return ST_OK;
}

bool ask_is_list_of_ids(const struct json *in)
{
    struct json ahead = *in;
    struct error ignored;
    return json_array(&ahead, &ignored) == ST_OK && json_element(&ahead, &ignored) == ST_OK &&
           !ahead.is_closed && json_peek(&ahead) == JSON_NUMBER;
}

/* ---- keep_alive ------------------------------------------------------------------------------ */

#define NS_PER_S 1e9
/* More is for ever. */
#define KEEP_S_MAX 1e9

static const struct {
    const char *text;
    double s;
} units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6},
             {"ms", 1e-3}, {"s", 1},     {"m", 60},           {"h", 3600}};

/* Digits with or without a fraction. */
static bool take_number(const uint8_t **at, const uint8_t *end, double *out)
{
    double scale = 1;
    bool has_digit = false, has_point = false;
    *out = 0;
    for (; *at < end && ((**at >= '0' && **at <= '9') || (**at == '.' && !has_point)); (*at)++) {
        if (**at == '.') {
            has_point = true;
            continue;
        }
        has_digit = true;
        scale *= has_point ? 0.1 : 1;
        *out = has_point ? *out + scale * (**at - '0') : *out * 10 + (**at - '0');
    }
    return has_digit;
}

/* The longest unit that comes next. */
static bool take_unit(const uint8_t **at, const uint8_t *end, double *out_s)
{
    size_t best = 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t len = strlen(units[i].text);
        if (len > best && len <= (size_t)(end - *at) && memcmp(*at, units[i].text, len) == 0) {
            best = len;
            *out_s = units[i].s;
        }
    }
    *at += best;
    return best > 0;
}

bool ask_parse_duration(struct span text, double *out_s)
{
    const uint8_t *at = text.ptr, *end = text.ptr + text.len;
    bool is_negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    double sum = 0, number, unit;
    bool is_first = true;
    do {
        if (!take_number(&at, end, &number)) {
            return false;
        }
        unit = 1;
        bool is_bare = is_first && at == end; /* seconds, as without quotes */
        if (!is_bare && !take_unit(&at, end, &unit)) {
            return false;
        }
        sum += number * unit;
        is_first = false;
    } while (at < end);
    *out_s = is_negative ? -sum : sum;
    return true;
}

static enum status refuse_keep(struct json *in, struct error *err)
{
    return json_fail(in, err, ST_INVALID,
                     "expected seconds, or a time such as \"5m\" or \"1h30m\"");
}

enum status ask_read_keep(struct json *in, uint64_t *out_ns, struct error *err)
{
    double s;
    if (json_peek(in) == JSON_STRING) {
        struct json_string text;
        TRY(json_read_string(in, &text, err));
        if (text.bytes != text.raw.len || !ask_parse_duration(text.raw, &s)) {
            return refuse_keep(in, err);
        }
    } else {
        TRY(json_read_f64(in, &s, err));
    }
    if (isnan(s)) {
        return refuse_keep(in, err);
    }
    *out_ns = s < 0 || s > KEEP_S_MAX ? UINT64_MAX : (uint64_t)(s * NS_PER_S);
    return ST_OK;
}

/* ---- members that nobody knows --------------------------------------------------------------- */

bool ask_is_slip(const struct json_string *key, const char *name)
{
    /* Members of other servers that are like one of ours. */
    static const char *const others[] = {"mode", "speed"};
    char text[KEY_BYTES_MAX + 1];
    if (key->raw.len > KEY_BYTES_MAX || key->bytes != key->raw.len) {
        return false;
    }
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(key->raw));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(text, others[i]) == 0) {
            return false;
        }
    }
    return nearest_is_slip(text, name);
}

enum status ask_pass(struct json *in, const char *meant, struct error *err)
{
    TRY(json_skip(in, err));
    return meant ? json_fail(in, err, ST_INVALID, "unknown member, did you mean '%s'?", meant)
                 : ST_OK;
}
