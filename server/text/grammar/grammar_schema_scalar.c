/* SPDX-License-Identifier: MIT */
/* Strings and numbers of JSON Schemas. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar_schema_priv.h"

/* ---- formats --------------------------------------------------------------------------------- */

#define DAYS "(0[1-9]|[12][0-9]"
#define DATE                                                                                       \
    "[1-9][0-9]{3}-((0[13578]|1[02])-" DAYS "|3[01])|(0[469]|11)-" DAYS "|30)|"                    \
    "02-(0[1-9]|1[0-9]|2[0-8]))"
#define TIME                                                                                       \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define UUID(version)                                                                              \
    "^[0-9a-f]{8}-[0-9a-f]{4}-" version "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
#define MAIL "[A-Za-z0-9_+-]{1,30}"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?"
#define EMAIL "^" MAIL "(\\." MAIL ")*@(" LABEL "\\.)+[A-Za-z]{2,12}$"
#define LONG_MAIL "[A-Za-z0-9_+-]+"
#define LONG_LABEL "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
#define LONG_EMAIL "^" LONG_MAIL "(\\." LONG_MAIL ")*@(" LONG_LABEL "\\.)+[A-Za-z]{2,}$"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 "^(" BYTE "\\.){3}" BYTE "$"
#define BASE64(all) "^([" all "]{4})*([" all "]{2}==|[" all "]{3}=)?$"
#define COUNT "(0|[1-9][0-9]{0,4})"
#define MINUTE COUNT "M(" COUNT "S)?"
#define CLOCK "T(" COUNT "H(" MINUTE ")?|" MINUTE "|" COUNT "S)"
#define DAY "(" COUNT "D(" CLOCK ")?|" CLOCK ")"
#define MONTH COUNT "M(" COUNT "D)?(" CLOCK ")?"
#define YEAR COUNT "Y(" COUNT "M(" COUNT "D)?)?(" CLOCK ")?"

static const struct format {
    const char *name;
    const char *regex;  /* NULL: any string */
    const char *beside; /* beside a pattern or lengths, which bound it; NULL: the same */
    const char *begin;  /* of patterns that zod writes beside it, which |regex| keeps to */
} formats[] = {
    {"date", "^" DATE "$", NULL, NULL},
    {"time", "^" TIME "$", NULL, NULL},
    {"date-time", "^" DATE "T" TIME "$", NULL, NULL},
    {"duration", "^P(" DAY "|" MONTH "|" YEAR "|" COUNT "W)$", NULL, NULL},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", NULL, NULL},
    {"uuid1", UUID("1"), NULL, NULL},
    {"uuid3", UUID("3"), NULL, NULL},
    {"uuid4", UUID("4"), NULL, NULL},
    {"uuid5", UUID("5"), NULL, NULL},
    {"uuid6", UUID("6"), NULL, NULL},
    {"uuid7", UUID("7"), NULL, NULL},
    {"uuid8", UUID("8"), NULL, NULL},
    {"email", EMAIL, LONG_EMAIL, NULL},
    {"name-email", EMAIL, LONG_EMAIL, NULL},
    {"hostname", "^" LABEL "(\\." LABEL "){0,8}$", "^" LONG_LABEL "(\\." LONG_LABEL ")*$",
     "^(?=.{1,253}\\.?$)[a-zA-Z0-9]("},
    {"emoji", "^[\U0001f600-\U0001f64f\U0001f680-\U0001f6c5\U0001f90c-\U0001f93a]{1,20}$", NULL,
     "^(?=[\\s\\S]*[\\p{Extended_Pictographic}"},
    {"ipv4", IPV4, NULL, NULL},
    {"ipvanyaddress", IPV4, NULL, NULL},
    {"ipv6", "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$", NULL, NULL},
    {"base64", BASE64("A-Za-z0-9+/"), NULL, NULL},
    {"byte", BASE64("A-Za-z0-9+/"), NULL, NULL},
    {"base64url", BASE64("A-Za-z0-9_-"), NULL, NULL},
    {"uri", NULL, NULL, NULL},
    {"url", NULL, NULL, NULL},
    {"uri-reference", NULL, NULL, NULL},
    {"uri-template", NULL, NULL, NULL},
    {"iri", NULL, NULL, NULL},
    {"iri-reference", NULL, NULL, NULL},
    {"multi-host-uri", NULL, NULL, NULL},
    {"binary", NULL, NULL, NULL},
    {"path", NULL, NULL, NULL},
    {"file-path", NULL, NULL, NULL},
    {"directory-path", NULL, NULL, NULL},
    {"password", NULL, NULL, NULL},
    {"regex", NULL, NULL, NULL},
    {"json-pointer", NULL, NULL, NULL},
    {"relative-json-pointer", NULL, NULL, NULL},
    {"json-string", NULL, NULL, NULL},
    {"jwt", NULL, NULL, NULL},
    {"ipv4network", NULL, NULL, NULL},
    {"ipv6network", NULL, NULL, NULL},
    {"ipvanynetwork", NULL, NULL, NULL},
    {"ipv4interface", NULL, NULL, NULL},
    {"ipv6interface", NULL, NULL, NULL},
    {"ipvanyinterface", NULL, NULL, NULL},
};

static const struct format *find_format(const struct value *name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (name->kind == VALUE_STRING && span_is(name->string, formats[i].name)) {
            return &formats[i];
        }
    }
    return NULL;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* All that a string has to be at one time. */
#define PARTS_MAX 8

struct parts {
    const struct part *at[PARTS_MAX];
    size_t count;
};

static bool add_part(struct schema *schema, struct parts *parts, const struct part *part)
{
    if (part && parts->count == PARTS_MAX) {
        schema_refuse(schema, ST_TOO_LARGE, "more than 8 patterns of one string");
    } else if (part) {
        parts->at[parts->count++] = part;
    }
    return schema->builder->status == ST_OK;
}

/* "pattern" is a text, or a tuple of texts that schema_merge() has made. */
static bool add_patterns(struct schema *schema, const struct value *pattern, struct parts *parts)
{
    bool is_list = pattern->kind == VALUE_LIST && pattern->flags & VALUE_IS_TUPLE;
    size_t count = is_list ? pattern->list->count : 1;
    for (size_t i = 0; i < count; i++) {
        const struct value *one = is_list ? &pattern->list->items[i] : pattern;
        if (one->kind != VALUE_STRING) {
            schema_refuse(schema, ST_INVALID, "'pattern' is a string");
            return false;
        }
        if (!add_part(schema, parts, grammar_regex(schema->builder, one->string, true))) {
            return false;
        }
    }
    return true;
}

/* |is_beside|: a pattern or lengths stand beside it. */
static bool add_format(struct schema *schema, const struct format *format, bool has_pattern,
                       bool is_beside, struct parts *parts)
{
    const char *regex = !format                       ? NULL
                        : is_beside && format->beside ? format->beside
                                                      : format->regex;
    if (!format && !has_pattern) {
        schema_refuse(schema, ST_UNSUPPORTED, "this 'format' is not supported");
        return false;
    }
    return !regex || add_part(schema, parts, grammar_regex(schema->builder, span_str(regex), true));
}

static const struct part *any_characters(struct schema *schema, uint32_t min, uint32_t max)
{
    const struct part *character = grammar_json_codes(schema->builder, 0, 0x10ffff);
    return grammar_counted(schema->builder, character, min, max);
}

/* The numbers of characters. */
struct lengths {
    bool are_given;
    uint32_t min, max;
};

static bool read_lengths(struct schema *schema, const struct value *value, struct lengths *out)
{
    out->are_given = schema_get(value, "minLength") || schema_get(value, "maxLength");
    if (!schema_read_count(schema, value, "minLength", 0, &out->min) ||
        !schema_read_count(schema, value, "maxLength", UINT32_MAX, &out->max)) {
        return false;
    }
    if (out->min > out->max) {
        schema_refuse_all(schema, "'minLength' is more than 'maxLength'");
    }
    return out->min <= out->max;
}

/* What a text has to match, other than its lengths; |parts->count| 0: any. */
static bool read_forms(struct schema *schema, const struct value *value, bool has_lengths,
                       struct parts *parts)
{
    const struct value *pattern = schema_get(value, "pattern");
    const struct value *name = schema_get(value, "format");
    const struct format *format = name ? find_format(name) : NULL;
    if (format && format->begin && pattern && pattern->kind == VALUE_STRING &&
        span_begins(pattern->string, format->begin)) {
        pattern = NULL; /* no automaton of ours has room for it */
    }
    return (!pattern || add_patterns(schema, pattern, parts)) &&
           (!name || add_format(schema, format, pattern != NULL, pattern || has_lengths, parts));
}

static const struct part *meet(struct schema *schema, const struct parts *parts)
{
    const struct part *out =
        parts->count == 1 ? parts->at[0] : grammar_meet(schema->builder, parts->at, parts->count);
    return out && out->kind == PART_NEVER
               ? schema_refuse_all(schema,
                                   "no text keeps to 'pattern', 'format' and lengths at one time")
               : out;
}

const struct part *schema_parse_text(struct schema *schema, const struct value *value)
{
    struct lengths lengths = {.max = UINT32_MAX};
    struct parts parts = {.count = 0};
    if (value && (!read_lengths(schema, value, &lengths) ||
                  !read_forms(schema, value, lengths.are_given, &parts))) {
        return NULL;
    }
    if ((parts.count == 0 || lengths.are_given) &&
        !add_part(schema, &parts, any_characters(schema, lengths.min, lengths.max))) {
        return NULL;
    }
    return meet(schema, &parts);
}

/* Without a pattern or a format each character may be spelled in any way. */
const struct part *schema_parse_string(struct schema *schema, const struct value *value)
{
    struct lengths lengths;
    struct parts parts = {.count = 0};
    if (!read_lengths(schema, value, &lengths) ||
        !read_forms(schema, value, lengths.are_given, &parts)) {
        return NULL;
    }
    if (parts.count == 0 && !lengths.are_given) {
        return grammar_rule(schema->builder, schema->json.string);
    }
    if (parts.count == 0) {
        const struct part *character = grammar_rule(schema->builder, schema->json.character);
        return grammar_json_quoted(
            &schema->json, grammar_repeat(schema->builder, character, lengths.min, lengths.max));
    }
    if (lengths.are_given &&
        !add_part(schema, &parts, any_characters(schema, lengths.min, lengths.max))) {
        return NULL;
    }
    return grammar_json_quoted(&schema->json, meet(schema, &parts));
}

/* ---- numbers --------------------------------------------------------------------------------- */

bool schema_read_decimal(struct schema *schema, const struct value *number, const char *name,
                         struct grammar_decimal *out)
{
    struct buf text;
    bool is_good = number->kind >= VALUE_INT && number->kind <= VALUE_DOUBLE;
    buf_init(&text, 8192);
    if (number->kind == VALUE_INT) {
        buf_printf(&text, "%lld", (long long)number->integer);
    } else if (number->kind == VALUE_LONG) {
        buf_add(&text, number->string.ptr, number->string.len);
    } else if (number->kind == VALUE_DOUBLE) {
        value_print_double(number->number, &text);
    }
    buf_add(&text, "", 1);
    is_good = is_good && !buf_failed(&text) && grammar_decimal_read((const char *)text.ptr, out);
    buf_fini(&text);
    if (!is_good) {
        grammar_refuse(schema->builder, ST_INVALID, "'%s' is a finite number", name);
    }
    return is_good;
}

/* If a bound has an exclusive form, too, the narrower of both counts. Drafts before 6, and OpenAPI
 * 3.0, say with true that "minimum" itself is open. */
static bool read_bound(struct schema *schema, const struct value *value, bool is_max,
                       struct grammar_bounds *out)
{
    static const char *const names[2][2] = {{"minimum", "exclusiveMinimum"},
                                            {"maximum", "exclusiveMaximum"}};
    bool *has = is_max ? &out->has_max : &out->has_min;
    bool *is_open = is_max ? &out->is_max_open : &out->is_min_open;
    struct grammar_decimal *at = is_max ? &out->max : &out->min, number;
    for (int opens = 0; opens < 2; opens++) {
        const struct value *bound = schema_get(value, names[is_max][opens]);
        if (!bound) {
            continue;
        }
        if (opens && bound->kind == VALUE_BOOL) {
            *is_open |= *has && bound->boolean;
            continue;
        }
        if (!schema_read_decimal(schema, bound, names[is_max][opens], &number)) {
            return false;
        }
        int order = *has ? grammar_decimal_compare(&number, at) : 0;
        if (!*has || (is_max ? order < 0 : order > 0) || (opens && order == 0)) {
            *has = true;
            *is_open = opens;
            *at = number;
        }
    }
    return true;
}

/* Formats of integers, as OpenAPI and other writers of schemas have them. */
static bool add_width(struct schema *schema, const struct value *format,
                      struct grammar_bounds *bounds)
{
    static const struct {
        const char *name, *min, *max;
    } widths[] = {
        {"int8", "-128", "127"},
        {"uint8", "0", "255"},
        {"int16", "-32768", "32767"},
        {"uint16", "0", "65535"},
        {"int32", "-2147483648", "2147483647"},
        {"uint32", "0", "4294967295"},
        {"int64", "-9223372036854775808", "9223372036854775807"},
        {"uint64", "0", "18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        struct grammar_decimal min, max;
        if (format->kind != VALUE_STRING || !span_is(format->string, widths[i].name)) {
            continue;
        }
        must(grammar_decimal_read(widths[i].min, &min) &&
             grammar_decimal_read(widths[i].max, &max));
        if (!bounds->has_min || grammar_decimal_compare(&min, &bounds->min) > 0) {
            bounds->has_min = true;
            bounds->is_min_open = false;
            bounds->min = min;
        }
        if (!bounds->has_max || grammar_decimal_compare(&max, &bounds->max) < 0) {
            bounds->has_max = true;
            bounds->is_max_open = false;
            bounds->max = max;
        }
        return true;
    }
    bool is_known = format->kind == VALUE_STRING &&
                    (span_is(format->string, "float") || span_is(format->string, "double"));
    if (!is_known) {
        schema_refuse(schema, ST_UNSUPPORTED, "this 'format' is not supported");
    }
    return is_known;
}

const struct part *schema_parse_number(struct schema *schema, const struct value *value,
                                       bool is_integer)
{
    struct grammar_bounds bounds = {.is_integer = is_integer};
    const struct value *multiple = schema_get(value, "multipleOf");
    const struct value *format = schema_get(value, "format");
    bounds.has_multiple = multiple != NULL;
    if (!read_bound(schema, value, false, &bounds) || !read_bound(schema, value, true, &bounds) ||
        (multiple && !schema_read_decimal(schema, multiple, "multipleOf", &bounds.multiple)) ||
        (format && !add_width(schema, format, &bounds))) {
        return NULL;
    }
    if (!bounds.has_min && !bounds.has_max && !multiple) {
        return grammar_rule(schema->builder,
                            is_integer ? schema->json.integer : schema->json.number);
    }
    const struct part *out = grammar_numbers(schema->builder, &bounds);
    return out && out->kind == PART_NEVER
               ? schema_refuse_all(schema, "no number keeps to the bounds")
               : out;
}
