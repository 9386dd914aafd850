/* SPDX-License-Identifier: MIT */
/*
 * Grammars in the form of llama.cpp, GBNF: lines NAME ::= CHOICE; the rule "root" is the text.
 *
 *     choice    sequence | sequence ...
 *     sequence  items one after the other, each perhaps with * + ? {2} {2,} {2,5}
 *     item      "text"  [class]  .  NAME  (choice)
 *
 * A rule ends with its line, unless a parenthesis is open, or the next line begins with "|". "#"
 * begins a comment. Rules may call themselves, but not before their first character.
 */
#include "config.h"

#include <string.h>

#include "server/text/grammar/grammar_priv.h"

#define CODE_MAX 0x10ffff
#define TABLE_SIZE (4 * GRAMMAR_RULES_MAX) /* a power of two */

struct name {
    struct span text;
    uint32_t rule;
    size_t place; /* where it was met first */
    bool is_set;
};

struct gbnf {
    struct grammar_builder *builder;
    struct span source;
    size_t at;
    int depth;
    struct name
        *names; /* in the builder's arena; a table by hash, empty where |text.ptr| is NULL */
};

static const struct part *parse_choice(struct gbnf *gbnf);

/* ---- words ----------------------------------------------------------------------------------- */

static uint8_t peek(const struct gbnf *gbnf)
{
    return gbnf->at < gbnf->source.len ? gbnf->source.ptr[gbnf->at] : 0;
}

/* Blanks and comments, and with |crosses_lines| the ends of lines. */
static void skip(struct gbnf *gbnf, bool crosses_lines)
{
    while (gbnf->at < gbnf->source.len) {
        uint8_t byte = gbnf->source.ptr[gbnf->at];
        if (byte == '#') {
            while (gbnf->at < gbnf->source.len && gbnf->source.ptr[gbnf->at] != '\n') {
                gbnf->at++;
            }
        } else if (byte == ' ' || byte == '\t' ||
                   (crosses_lines && (byte == '\n' || byte == '\r'))) {
            gbnf->at++;
        } else {
            return;
        }
    }
}

static bool is_of_name(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

static struct span take_name(struct gbnf *gbnf)
{
    size_t begin = gbnf->at;
    while (is_of_name(peek(gbnf))) {
        gbnf->at++;
    }
    return span_of(gbnf->source.ptr + begin, gbnf->at - begin);
}

static uint32_t hash(struct span text)
{
    uint32_t out = 2166136261u;
    for (size_t i = 0; i < text.len; i++) {
        out = (out ^ text.ptr[i]) * 16777619u;
    }
    return out;
}

/* The row of |text|; a new one has a new rule. NULL: failed. */
static struct name *find_name(struct gbnf *gbnf, struct span text)
{
    uint32_t at = hash(text) & (TABLE_SIZE - 1);
    while (gbnf->names[at].text.ptr && !span_equal(gbnf->names[at].text, text)) {
        at = (at + 1) & (TABLE_SIZE - 1); /* there are fewer rules than rows */
    }
    struct name *name = &gbnf->names[at];
    if (!name->text.ptr) {
        uint32_t rule = grammar_rule_new(gbnf->builder);
        if (rule == UINT32_MAX) {
            return NULL;
        }
        *name = (struct name){.text = text, .rule = rule, .place = gbnf->at - text.len};
    }
    return name;
}

/* ---- items ----------------------------------------------------------------------------------- */

static const struct part *parse_text(struct gbnf *gbnf)
{
    size_t place = gbnf->at++;
    const struct part *out = grammar_empty(gbnf->builder);
    while (out && gbnf->at < gbnf->source.len && peek(gbnf) != '"') {
        uint32_t code = grammar_code(gbnf->source, &gbnf->at);
        if (code == '\n') {
            break;
        }
        if (code == '\\' && !grammar_escape(gbnf->builder, gbnf->source, &gbnf->at, &code)) {
            return NULL;
        }
        out = grammar_then(gbnf->builder, out, grammar_codes(gbnf->builder, code, code));
    }
    if (out && peek(gbnf) != '"') {
        return grammar_refuse(gbnf->builder, ST_INVALID, "the text at byte %zu is not closed",
                              place);
    }
    gbnf->at++;
    return out;
}

static const struct part *parse_group(struct gbnf *gbnf)
{
    size_t place = gbnf->at++;
    if (gbnf->depth == GRAMMAR_NESTING_MAX) {
        return grammar_refuse(gbnf->builder, ST_TOO_LARGE, "groups are nested too deep");
    }
    gbnf->depth++;
    const struct part *out = parse_choice(gbnf);
    gbnf->depth--;
    if (out && peek(gbnf) != ')') {
        return grammar_refuse(gbnf->builder, ST_INVALID, "the group at byte %zu is not closed",
                              place);
    }
    gbnf->at++;
    return out;
}

/* NULL without an error: no item stands here. */
static const struct part *parse_item(struct gbnf *gbnf)
{
    uint8_t byte = peek(gbnf);
    if (byte == '"') {
        return parse_text(gbnf);
    }
    if (byte == '[') {
        return grammar_class(gbnf->builder, gbnf->source, &gbnf->at, false);
    }
    if (byte == '(') {
        return parse_group(gbnf);
    }
    if (byte == '.') {
        gbnf->at++;
        return grammar_codes(gbnf->builder, 0, CODE_MAX);
    }
    if (is_of_name(byte)) {
        const struct name *name = find_name(gbnf, take_name(gbnf));
        return name ? grammar_rule(gbnf->builder, name->rule) : NULL;
    }
    return NULL;
}

static const struct part *parse_sequence(struct gbnf *gbnf)
{
    const struct part *out = grammar_empty(gbnf->builder);
    skip(gbnf, gbnf->depth > 0);
    while (out) {
        const struct part *item = parse_item(gbnf);
        if (!item) {
            return gbnf->builder->status == ST_OK ? out : NULL;
        }
        skip(gbnf, gbnf->depth > 0);
        item = grammar_quantify(gbnf->builder, gbnf->source, &gbnf->at, item);
        out = grammar_then(gbnf->builder, out, item);
        skip(gbnf, gbnf->depth > 0);
    }
    return NULL;
}

/* Is the next thing a "|", perhaps on a later line? Moves to it. */
static bool goes_on(struct gbnf *gbnf)
{
    size_t before = gbnf->at;
    skip(gbnf, true);
    if (peek(gbnf) == '|') {
        return true;
    }
    gbnf->at = before;
    return false;
}

static const struct part *parse_choice(struct gbnf *gbnf)
{
    const struct part *out = parse_sequence(gbnf);
    while (out && goes_on(gbnf)) {
        gbnf->at++;
        skip(gbnf, true);
        out = grammar_or(gbnf->builder, out, parse_sequence(gbnf));
    }
    return out;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* NAME ::= CHOICE, and the end of its line. */
static bool parse_rule(struct gbnf *gbnf)
{
    struct grammar_builder *builder = gbnf->builder;
    size_t place = gbnf->at;
    struct span text = take_name(gbnf);
    skip(gbnf, false);
    bool has_sign =
        gbnf->source.len - gbnf->at >= 3 && memcmp(gbnf->source.ptr + gbnf->at, "::=", 3) == 0;
    if (text.len == 0 || !has_sign) {
        grammar_refuse(builder, ST_INVALID, "expected NAME ::= at byte %zu", place);
        return false;
    }
    gbnf->at += 3;
    struct name *name = find_name(gbnf, text);
    if (!name || name->is_set) {
        grammar_refuse(builder, ST_INVALID, "the rule '%.*s' at byte %zu stands there twice",
                       SPAN_SHORT(text), place);
        return false;
    }
    name->is_set = true;
    skip(gbnf, true);
    const struct part *part = parse_choice(gbnf);
    grammar_rule_set(builder, name->rule, part);
    uint8_t byte = peek(gbnf);
    if (part && gbnf->at < gbnf->source.len && byte != '\n' && byte != '\r') {
        grammar_refuse(builder, ST_INVALID, "expected an item or the end of the line at byte %zu",
                       gbnf->at);
    }
    return builder->status == ST_OK;
}

static void check_names(struct gbnf *gbnf)
{
    for (uint32_t i = 0; i < TABLE_SIZE; i++) {
        const struct name *name = &gbnf->names[i];
        if (name->text.ptr && !name->is_set) {
            grammar_refuse(gbnf->builder, ST_INVALID, "there is no rule '%.*s'",
                           SPAN_SHORT(name->text));
        }
    }
}

static void parse_rules(struct gbnf *gbnf)
{
    struct grammar_builder *builder = gbnf->builder;
    uint32_t text = grammar_rule_new(builder);
    gbnf->names = arena_array(&builder->arena, TABLE_SIZE, sizeof(gbnf->names[0]));
    if (!gbnf->names) {
        grammar_refuse(builder, ST_EXHAUSTED, "no memory for a grammar");
        return;
    }
    const struct name *root = find_name(gbnf, span_str("root"));
    grammar_rule_set(builder, text, root ? grammar_rule(builder, root->rule) : NULL);
    skip(gbnf, true);
    while (builder->status == ST_OK && gbnf->at < gbnf->source.len && parse_rule(gbnf)) {
        skip(gbnf, true);
    }
    if (builder->status == ST_OK) {
        check_names(gbnf);
    }
}

enum status grammar_parse_gbnf(struct span source, struct grammar **out, struct error *err)
{
    struct grammar_builder builder;
    grammar_builder_init(&builder, err);
    if (source.len > GRAMMAR_SOURCE_MAX || !json_is_utf8(source)) {
        grammar_refuse(&builder, ST_INVALID, "a grammar is UTF-8 of at most %u bytes",
                       GRAMMAR_SOURCE_MAX);
    } else {
        struct gbnf gbnf = {.builder = &builder, .source = source};
        parse_rules(&gbnf);
    }
    return grammar_builder_finish(&builder, out);
}
