/* SPDX-License-Identifier: MIT */
/* Statements of templates. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "server/text/template/template_parse_priv.h"

typedef struct node *parse_statement_f(struct parser *parser, struct position position);

static bool parse_body(struct parser *parser, struct node **out, const char *const *ends,
                       struct span *out_end);

/* ---- the end of tags ------------------------------------------------------------------------- */

static bool expect_block_end(struct parser *parser)
{
    if (parser->at->kind != LEXEME_BLOCK_END) {
        parser_refuse(parser, parser->at->position, ST_INVALID,
                      "expected the end of the tag, got "
                      "'%.*s'",
                      SPAN_SHORT(parser->at->text));
        return false;
    }
    parser->at++;
    return true;
}

/* The body of a block up to the tag {% end %}, which is taken, too. */
static bool parse_block(struct parser *parser, struct node **out, const char *end)
{
    const char *const ends[] = {end, NULL};
    struct span which;
    return expect_block_end(parser) && parse_body(parser, out, ends, &which) &&
           expect_block_end(parser);
}

/* ---- statements ------------------------------------------------------------------------------ */

static struct node *parse_if(struct parser *parser, struct position position)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct node *node = parser_node(parser, NODE_IF, position);
    struct node_list branches = {0};
    struct span end = span_str("if");
    while (node && !span_is(end, "endif")) {
        struct node *branch = parser_node(parser, NODE_BRANCH, parser->at->position);
        bool is_else = span_is(end, "else");
        if (!branch || (!is_else && !(branch->a = parser_tuple(parser, false))) ||
            !expect_block_end(parser) ||
            !parse_body(parser, &branch->items, is_else ? ends + 2 : ends, &end)) {
            return NULL;
        }
        parser_add(&branches, branch);
    }
    if (node) {
        node->items = branches.first;
    }
    return node && expect_block_end(parser) ? node : NULL;
}

static struct node *parse_for(struct parser *parser, struct position position)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    struct node *node = parser_node(parser, NODE_FOR, position);
    struct span end;
    if (!node || !(node->a = parser_target(parser, false))) {
        return NULL;
    }
    if (!parser_skip_name(parser, "in")) {
        return parser_refuse(parser, parser->at->position, ST_INVALID, "expected 'in', got '%.*s'",
                             SPAN_SHORT(parser->at->text));
    }
    if (!(node->b = parser_tuple(parser, false)) ||
        (parser_skip_name(parser, "if") && !(node->c = parser_expression(parser)))) {
        return NULL;
    }
    if (parser_is_name(parser, "recursive")) {
        return parser_refuse(parser, parser->at->position, ST_UNSUPPORTED,
                             "recursive loops are not supported");
    }
    parser->loop_count++;
    bool is_parsed = expect_block_end(parser) && parse_body(parser, &node->items, ends, &end);
    parser->loop_count--;
    if (!is_parsed || (span_is(end, "else") && !parse_block(parser, &node->others, "endfor"))) {
        return NULL;
    }
    return span_is(end, "else") || expect_block_end(parser) ? node : NULL;
}

static struct node *parse_set(struct parser *parser, struct position position)
{
    struct node *node = parser_node(parser, NODE_SET, position);
    if (!node || !(node->a = parser_target(parser, true))) {
        return NULL;
    }
    if (parser_skip_op(parser, '=')) {
        node->b = parser_tuple(parser, true);
        return node->b && expect_block_end(parser) ? node : NULL;
    }
    node->kind = NODE_SET_BLOCK;
    node->b = parser_node(parser, NODE_CAPTURED, position);
    node->b = node->b ? parser_filters(parser, node->b, false) : NULL;
    return node->b && parse_block(parser, &node->items, "endset") ? node : NULL;
}

static struct node *parse_parameter(struct parser *parser)
{
    struct node *node = parser_node(parser, NODE_PARAMETER, parser->at->position);
    struct span name = parser_expect_name(parser);
    if (!node || name.len == 0 ||
        (parser_skip_op(parser, '=') && !(node->a = parser_expression(parser)))) {
        return NULL;
    }
    node->text = name;
    return node;
}

static bool parse_parameters(struct parser *parser, struct node *macro)
{
    struct node_list parameters = {0};
    if (!parser_expect_op(parser, '(')) {
        return false;
    }
    while (!parser_skip_op(parser, ')')) {
        if (parameters.first && !parser_expect_op(parser, ',')) {
            return false;
        }
        struct node *last = parameters.last;
        if (!parser_add(&parameters, parse_parameter(parser))) {
            return false;
        }
        if (last && last->a && !parameters.last->a) {
            parser_refuse(parser, parameters.last->position, ST_INVALID,
                          "a parameter without a default follows one with a default");
            return false;
        }
    }
    macro->others = parameters.first;
    return true;
}

/* The body of a macro up to |end|. It ends no loop around it. */
static bool parse_macro_body(struct parser *parser, struct node *macro, const char *end)
{
    uint16_t outer_uses = parser->macro_uses;
    uint32_t loop_count = parser->loop_count;
    parser->macro_uses = 0;
    parser->loop_count = 0;
    bool is_parsed = parse_block(parser, &macro->items, end);
    macro->op = parser->macro_uses;
    for (const struct node *item = macro->others; item; item = item->next) {
        macro->op &= (uint16_t) ~(span_is(item->text, "varargs")  ? MACRO_VARARGS
                                  : span_is(item->text, "kwargs") ? MACRO_KWARGS
                                                                  : 0);
    }
    parser->macro_uses |= outer_uses;
    parser->loop_count = loop_count;
    return is_parsed;
}

static struct node *parse_macro(struct parser *parser, struct position position)
{
    struct node *node = parser_node(parser, NODE_MACRO, position);
    if (!node || (node->text = parser_expect_name(parser)).len == 0) {
        return NULL;
    }
    return parse_parameters(parser, node) && parse_macro_body(parser, node, "endmacro") ? node
                                                                                        : NULL;
}

static struct node *parse_call_block(struct parser *parser, struct position position)
{
    struct node *node = parser_node(parser, NODE_CALL_BLOCK, position);
    struct node *body = parser_node(parser, NODE_MACRO, position);
    if (!node || !body || (parser_is_op(parser, '(') && !parse_parameters(parser, body)) ||
        !(node->b = parser_expression(parser))) {
        return NULL;
    }
    if (node->b->kind != NODE_CALL) {
        return parser_refuse(parser, node->b->position, ST_INVALID, "expected a call");
    }
    node->a = body; /* a macro without a name */
    return parse_macro_body(parser, body, "endcall") ? node : NULL;
}

static struct node *parse_filter_block(struct parser *parser, struct position position)
{
    struct node *node = parser_node(parser, NODE_FILTER_BLOCK, position);
    struct node *captured = parser_node(parser, NODE_CAPTURED, position);
    if (!node || !captured || !(node->b = parser_filters(parser, captured, true))) {
        return NULL;
    }
    return parse_block(parser, &node->items, "endfilter") ? node : NULL;
}

static struct node *parse_generation(struct parser *parser, struct position position)
{
    struct node *node = parser_node(parser, NODE_SCOPE, position);
    uint32_t loop_count = parser->loop_count;
    parser->loop_count = 0; /* the body is a function of its own: it ends no loop */
    bool is_parsed = node && parse_block(parser, &node->items, "endgeneration");
    parser->loop_count = loop_count;
    return is_parsed ? node : NULL;
}

static struct node *parse_with(struct parser *parser, struct position position)
{
    struct node *node = parser_node(parser, NODE_WITH, position);
    struct node_list settings = {0};
    while (node && parser->at->kind != LEXEME_BLOCK_END) {
        struct node *setting = parser_node(parser, NODE_SET, parser->at->position);
        if ((settings.first && !parser_expect_op(parser, ',')) || !setting ||
            !(setting->a = parser_target(parser, false)) || !parser_expect_op(parser, '=') ||
            !(setting->b = parser_expression(parser))) {
            return NULL;
        }
        parser_add(&settings, setting);
    }
    if (node) {
        node->others = settings.first;
    }
    return node && parse_block(parser, &node->items, "endwith") ? node : NULL;
}

static struct node *parse_jump(struct parser *parser, struct position position, enum node_kind kind)
{
    if (parser->loop_count == 0) {
        return parser_refuse(parser, position, ST_INVALID, "'%s' outside of a loop",
                             kind == NODE_BREAK ? "break" : "continue");
    }
    struct node *node = parser_node(parser, kind, position);
    return node && expect_block_end(parser) ? node : NULL;
}

static struct node *parse_break(struct parser *parser, struct position position)
{
    return parse_jump(parser, position, NODE_BREAK);
}

static struct node *parse_continue(struct parser *parser, struct position position)
{
    return parse_jump(parser, position, NODE_CONTINUE);
}

static struct node *parse_tag(struct parser *parser)
{
    static const struct {
        const char *name;
        parse_statement_f *parse;
    } tags[] = {
        {"if", parse_if},
        {"for", parse_for},
        {"set", parse_set},
        {"macro", parse_macro},
        {"call", parse_call_block},
        {"with", parse_with},
        {"filter", parse_filter_block},
        {"break", parse_break},
        {"generation", parse_generation},
        {"continue", parse_continue},
    };
    struct position position = parser->at->position;
    struct span name = parser_expect_name(parser);
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (span_is(name, tags[i].name)) {
            return tags[i].parse(parser, position);
        }
    }
    return parser_refuse(parser, position, ST_UNSUPPORTED, "the tag '%.*s' is not supported here",
                         SPAN_SHORT(name));
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static struct node *parse_piece(struct parser *parser)
{
    const struct lexeme *lexeme = parser->at++;
    if (lexeme->kind == LEXEME_BLOCK_BEGIN) {
        return parse_tag(parser);
    }
    struct node *node = parser_node(parser, lexeme->kind == LEXEME_DATA ? NODE_TEXT : NODE_OUTPUT,
                                    lexeme->position);
    if (!node) {
        return NULL;
    }
    node->text = lexeme->text;
    if (lexeme->kind == LEXEME_DATA) {
        return node;
    }
    if (!(node->a = parser_tuple(parser, true))) {
        return NULL;
    }
    if (parser->at->kind != LEXEME_VARIABLE_END) {
        return parser_refuse(parser, parser->at->position, ST_INVALID, "expected '}}', got '%.*s'",
                             SPAN_SHORT(parser->at->text));
    }
    parser->at++;
    return node;
}

/* Is this one of the tags that end the body? Then takes its name. */
static bool take_end(struct parser *parser, const char *const *ends, struct span *out)
{
    if (!ends || parser->at->kind != LEXEME_BLOCK_BEGIN || parser->at[1].kind != LEXEME_NAME) {
        return false;
    }
    for (size_t i = 0; ends[i]; i++) {
        if (span_is(parser->at[1].text, ends[i])) {
            *out = parser->at[1].text;
            parser->at += 2;
            return true;
        }
    }
    return false;
}

/* Statements up to one of |ends|; up to the end of the source if it is NULL. */
static bool parse_body(struct parser *parser, struct node **out, const char *const *ends,
                       struct span *out_end)
{
    struct node_list items = {0};
    struct position position = parser->at->position;
    if (!parser_enter(parser)) {
        return false;
    }
    while (!take_end(parser, ends, out_end)) {
        if (parser->at->kind == LEXEME_END) {
            if (ends) {
                size_t last = 0;
                while (ends[last + 1]) {
                    last++;
                }
                parser_refuse(parser, position, ST_INVALID,
                              "the block that begins here has no '%s'", ends[last]);
                return false;
            }
            break;
        }
        if (!parser_add(&items, parse_piece(parser))) {
            return false;
        }
    }
    parser_leave(parser);
    *out = items.first;
    return true;
}

enum status template_parse(struct span source, struct template **out, struct error *err)
{
    struct lexemes lexemes;
    struct span end;
    *out = NULL;
    struct template *template = calloc(1, sizeof(*template));
    if (!template) {
        return error_no_memory(err, "a template");
    }
    arena_init(&template->arena, TEMPLATE_ARENA_MAX);
    enum status status = template_lex(source, &template->arena, &lexemes, err);
    if (status == ST_OK) {
        struct parser parser = {.at = lexemes.items, .arena = &template->arena, .err = err};
        parse_body(&parser, &template->body, NULL, &end);
        status = parser.status;
    }
    if (status != ST_OK) {
        template_free(template);
        return status;
    }
    *out = template;
    return ST_OK;
}

void template_free(struct template *template)
{
    if (template) {
        arena_fini(&template->arena);
        free(template);
    }
}
