/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include "server/text/grammar/grammar_json_priv.h"

static const struct part *word(struct grammar_json *json, const char *text)
{
    return grammar_text(json->builder, span_str(text));
}

static const struct part *space(struct grammar_json *json)
{
    return grammar_rule(json->builder, json->space);
}

static const struct part *then(struct grammar_json *json, const struct part *a,
                               const struct part *b)
{
    return grammar_then(json->builder, a, b);
}

static const struct part *either(struct grammar_json *json, const struct part *a,
                                 const struct part *b)
{
    return grammar_or(json->builder, a, b);
}

static const struct part *optional(struct grammar_json *json, const struct part *part)
{
    return grammar_repeat(json->builder, part, 0, 1);
}

const struct part *grammar_json_mark(struct grammar_json *json, const char *text)
{
    return then(json, word(json, text), space(json));
}

const struct part *grammar_json_quoted(struct grammar_json *json, const struct part *content)
{
    return then(json, word(json, "\""), then(json, content, word(json, "\"")));
}

const struct part *grammar_json_listed(struct grammar_json *json, const char *open,
                                       const char *close, const struct part *item, uint32_t min,
                                       uint32_t max)
{
    struct grammar_builder *builder = json->builder;
    const struct part *more =
        then(json, grammar_json_mark(json, ","), then(json, item, space(json)));
    const struct part *items =
        then(json, then(json, item, space(json)),
             grammar_repeat(builder, more, min ? min - 1 : 0, max == UINT32_MAX ? max : max - 1));
    items = max == 0 ? grammar_empty(builder) : min == 0 ? optional(json, items) : items;
    return then(json, grammar_json_mark(json, open), then(json, items, word(json, close)));
}

const struct part *grammar_json_member(struct grammar_json *json, const struct part *key,
                                       const struct part *value)
{
    return then(json, key,
                then(json, space(json), then(json, grammar_json_mark(json, ":"), value)));
}

static const struct part *digits(struct grammar_json *json, uint32_t min, uint32_t max)
{
    return grammar_repeat(json->builder, grammar_bytes(json->builder, '0', '9'), min, max);
}

static const struct part *integer(struct grammar_json *json)
{
    const struct part *whole =
        then(json, grammar_bytes(json->builder, '1', '9'), digits(json, 0, UINT32_MAX));
    return then(json, optional(json, word(json, "-")), either(json, word(json, "0"), whole));
}

static const struct part *number(struct grammar_json *json)
{
    const struct part *sign = either(json, word(json, "+"), word(json, "-"));
    const struct part *e = either(json, word(json, "e"), word(json, "E"));
    const struct part *fraction = then(json, word(json, "."), digits(json, 1, UINT32_MAX));
    const struct part *exponent =
        then(json, e, then(json, optional(json, sign), digits(json, 1, 3)));
    return then(json, grammar_rule(json->builder, json->integer),
                then(json, optional(json, fraction), optional(json, exponent)));
}

/* A character in a string: itself, or an escape that is no half of a pair. */
static const struct part *character(struct grammar_json *json)
{
    struct grammar_builder *builder = json->builder;
    static const char regex[] = "\\\\([\"\\\\/bfnrt]|u([0-9a-cA-CefEF][0-9a-fA-F]{3}|"
                                "[dD][0-7][0-9a-fA-F]{2}))";
    const struct part *plain = either(
        json, grammar_codes(builder, 0x20, 0x21),
        either(json, grammar_codes(builder, 0x23, 0x5b), grammar_codes(builder, 0x5d, 0x10ffff)));
    return either(json, plain, grammar_regex(builder, span_str(regex), false));
}

static const struct part *any_object(struct grammar_json *json)
{
    const struct part *any = grammar_rule(json->builder, json->any);
    const struct part *string = grammar_rule(json->builder, json->string);
    return grammar_json_listed(json, "{", "}", grammar_json_member(json, string, any), 0,
                               UINT32_MAX);
}

static const struct part *any_value(struct grammar_json *json)
{
    struct grammar_builder *builder = json->builder;
    const struct part *any = grammar_rule(builder, json->any);
    const struct part *string = grammar_rule(builder, json->string);
    const struct part *words = either(json, word(json, json->words[GRAMMAR_NULL]),
                                      either(json, word(json, json->words[GRAMMAR_TRUE]),
                                             word(json, json->words[GRAMMAR_FALSE])));
    const struct part *list = grammar_json_listed(json, "[", "]", any, 0, UINT32_MAX);
    const struct part *scalar = either(json, string, grammar_rule(builder, json->number));
    return either(json, either(json, scalar, words), either(json, grammar_json_object(json), list));
}

void grammar_json_init(struct grammar_json *json, struct grammar_builder *builder, bool is_python)
{
    static const char *const words[2][GRAMMAR_WORDS] = {{"null", "true", "false"},
                                                        {"None", "True", "False"}};
    static const char blank[] = "( |\n[ \t]{0,20})?";
    uint32_t *const rules[] = {&json->space,   &json->character, &json->string, &json->number,
                               &json->integer, &json->object,    &json->any};
    json->builder = builder;
    memcpy(json->words, words[is_python], sizeof(json->words));
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        *rules[i] = grammar_rule_new(builder);
    }
    if (builder->status != ST_OK) {
        return;
    }
    grammar_rule_set(builder, json->space, grammar_regex(builder, span_str(blank), false));
    grammar_rule_set(builder, json->character, character(json));
    grammar_rule_set(
        builder, json->string,
        grammar_json_quoted(
            json, grammar_repeat(builder, grammar_rule(builder, json->character), 0, UINT32_MAX)));
    grammar_rule_set(builder, json->integer, integer(json));
    grammar_rule_set(builder, json->number, number(json));
    grammar_rule_set(builder, json->object, any_object(json));
    grammar_rule_set(builder, json->any, any_value(json));
}

const struct part *grammar_json_object(struct grammar_json *json)
{
    return grammar_rule(json->builder, json->object);
}
