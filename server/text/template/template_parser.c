/* SPDX-License-Identifier: MIT */
/* Shared by the parsers of statements and expressions of templates: taking lexemes, making nodes,
 * errors. */
#include "config.h"

#include "server/text/template/template_parse_priv.h"

void *parser_refuse(struct parser *parser, struct position position, enum status code,
                    const char *fmt, ...)
{
    va_list args;
    if (parser->status == ST_OK) {
        va_start(args, fmt);
        parser->status = error_setv(parser->err, code, fmt, args);
        va_end(args);
        error_prefix(parser->err, "line %u, column %u: ", position.line, position.column);
    }
    return NULL;
}

struct node *parser_node(struct parser *parser, enum node_kind kind, struct position position)
{
    struct node *node = arena_alloc(parser->arena, sizeof(*node));
    if (!node) {
        if (parser->status == ST_OK) {
            parser->status = arena_fail(parser->arena, "a template", parser->err);
        }
        return NULL;
    }
    node->kind = kind;
    node->position = position;
    return node;
}

bool parser_enter(struct parser *parser)
{
    if (parser->depth == TEMPLATE_NESTING_MAX) {
        parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "nested deeper than %d levels",
                      TEMPLATE_NESTING_MAX);
        return false;
    }
    parser->depth++;
    return true;
}

void parser_leave(struct parser *parser)
{
    parser->depth--;
}

bool parser_add(struct node_list *list, struct node *node)
{
    if (!node) {
        return false;
    }
    if (list->last) {
        list->last->next = node;
    } else {
        list->first = node;
    }
    list->last = node;
    return true;
}

bool parser_is_op(const struct parser *parser, uint16_t op)
{
    return parser->at->kind == LEXEME_OPERATOR && parser->at->op == op;
}

bool parser_is_name(const struct parser *parser, const char *name)
{
    return parser->at->kind == LEXEME_NAME && span_is(parser->at->text, name);
}

bool parser_skip_op(struct parser *parser, uint16_t op)
{
    bool is_here = parser_is_op(parser, op);
    parser->at += is_here;
    return is_here;
}

bool parser_skip_name(struct parser *parser, const char *name)
{
    bool is_here = parser_is_name(parser, name);
    parser->at += is_here;
    return is_here;
}

void *parser_refuse_lexeme(struct parser *parser, const char *expected)
{
    const struct lexeme *at = parser->at;
    if (at->kind == LEXEME_END) {
        return parser_refuse(parser, at->position, ST_INVALID, "expected %s, got the end",
                             expected);
    }
    return parser_refuse(parser, at->position, ST_INVALID, "expected %s, got '%.*s'", expected,
                         SPAN_SHORT(at->text));
}

bool parser_expect_op(struct parser *parser, uint16_t op)
{
    char text[] = {'\'', (char)op, '\'', 0};
    if (!parser_skip_op(parser, op)) {
        parser_refuse_lexeme(parser, text);
        return false;
    }
    return true;
}

struct span parser_expect_name(struct parser *parser)
{
    if (parser->at->kind != LEXEME_NAME) {
        parser_refuse_lexeme(parser, "a name");
        return span_of(NULL, 0);
    }
    return parser->at++->text;
}
