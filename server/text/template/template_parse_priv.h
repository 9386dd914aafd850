/* SPDX-License-Identifier: MIT */
/* Shared by the files of the templates' parser: statements, expressions, literals. */
#ifndef PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_PARSE_PRIV_H
#define PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_PARSE_PRIV_H

#include "server/text/template/template_priv.h"

/* A function that fails sets |status| and the error and returns NULL. */
struct parser {
    const struct lexeme *at;
    struct arena *arena;
    struct error *err;
    enum status status;
    uint32_t depth;
    uint32_t loop_count; /* loops around the statement, up to the macro around it */
    uint16_t macro_uses; /* enum macro_uses, of the macro around the statement */
};

/* A list that grows at its end. */
struct node_list {
    struct node *first, *last;
};

struct node *parser_node(struct parser *parser, enum node_kind kind, struct position position);
void *parser_refuse(struct parser *parser, struct position position, enum status code,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Says that |expected| must stand here. */
void *parser_refuse_lexeme(struct parser *parser, const char *expected);

bool parser_enter(struct parser *parser); /* one level deeper; false: refused */
void parser_leave(struct parser *parser);

/* false if |node| is NULL. */
bool parser_add(struct node_list *list, struct node *node);

bool parser_is_op(const struct parser *parser, uint16_t op);
bool parser_is_name(const struct parser *parser, const char *name);
bool parser_skip_op(struct parser *parser, uint16_t op);
bool parser_skip_name(struct parser *parser, const char *name);
bool parser_expect_op(struct parser *parser, uint16_t op); /* false: refused */

/* Returns the text of a name that must stand here; an empty span: refused. */
struct span parser_expect_name(struct parser *parser);

/* Reads the string, or strings behind each other, or the number that stands here. */
struct node *parser_string(struct parser *parser);
struct node *parser_number(struct parser *parser);

struct node *parser_expression(struct parser *parser);

/* Expressions with commas between them, which make a tuple. |has_condition|: "a if b" is one. */
struct node *parser_tuple(struct parser *parser, bool has_condition);

/* Reads names to assign to: a name, ns.name or a tuple of names. */
struct node *parser_target(struct parser *parser, bool may_be_attribute);

/* Filters behind |self|; a pipe stands here unless |is_inline|. */
struct node *parser_filters(struct parser *parser, struct node *self, bool is_inline);

#endif
