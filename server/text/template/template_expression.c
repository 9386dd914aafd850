/* SPDX-License-Identifier: MIT */
/* Expressions of templates: the grammar of jinja2.parser, with its precedences. */
#include "config.h"

#include "server/text/template/template_parse_priv.h"

#define CHAIN_MAX 500 /* operators of one kind in a row */

/* ---- primary expressions --------------------------------------------------------------------- */

static bool is_constant(struct span name, struct value *out)
{
    if (span_is(name, "true") || span_is(name, "True")) {
        *out = value_bool(true);
        return true;
    }
    if (span_is(name, "false") || span_is(name, "False")) {
        *out = value_bool(false);
        return true;
    }
    *out = (struct value){.kind = VALUE_NONE};
    return span_is(name, "none") || span_is(name, "None");
}

static struct node *parse_name(struct parser *parser)
{
    static const char *const special[] = {"caller", "varargs", "kwargs"}; /* enum macro_uses */
    static const char *const functions[] = {"cycler", "joiner", "lipsum", "self", "super"};
    const struct lexeme *lexeme = parser->at++;
    struct node *node = parser_node(parser, NODE_NAME, lexeme->position);
    if (!node) {
        return NULL;
    }
    if (is_constant(lexeme->text, &node->constant)) {
        node->kind = NODE_CONSTANT;
        return node;
    }
    for (unsigned i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        parser->macro_uses |= (uint16_t)(span_is(lexeme->text, special[i]) << i);
    }
    for (size_t i = 0; parser_is_op(parser, '(') && i < sizeof(functions) / sizeof(functions[0]);
         i++) {
        if (span_is(lexeme->text, functions[i])) {
            return parser_refuse(parser, lexeme->position, ST_UNSUPPORTED,
                                 "the function '%s' is not supported", functions[i]);
        }
    }
    node->text = lexeme->text;
    return node;
}

static struct node *parse_list(struct parser *parser)
{
    struct node *node = parser_node(parser, NODE_LIST, parser->at++->position);
    struct node_list items = {0};
    while (node && !parser_skip_op(parser, ']')) {
        if (items.first && !parser_expect_op(parser, ',')) {
            return NULL;
        }
        if (parser_skip_op(parser, ']')) {
            break;
        }
        if (!parser_add(&items, parser_expression(parser))) {
            return NULL;
        }
    }
    if (node) {
        node->items = items.first;
    }
    return node;
}

static struct node *parse_pair(struct parser *parser)
{
    struct node *pair = parser_node(parser, NODE_PAIR, parser->at->position);
    if (!pair || !(pair->a = parser_expression(parser)) || !parser_expect_op(parser, ':') ||
        !(pair->b = parser_expression(parser))) {
        return NULL;
    }
    return pair;
}

static struct node *parse_map(struct parser *parser)
{
    struct node *node = parser_node(parser, NODE_MAP, parser->at++->position);
    struct node_list items = {0};
    while (node && !parser_skip_op(parser, '}')) {
        if (items.first && !parser_expect_op(parser, ',')) {
            return NULL;
        }
        if (parser_skip_op(parser, '}')) {
            break;
        }
        if (!parser_add(&items, parse_pair(parser))) {
            return NULL;
        }
    }
    if (node) {
        node->items = items.first;
    }
    return node;
}

static struct node *parse_parentheses(struct parser *parser)
{
    struct position position = parser->at++->position;
    if (parser_skip_op(parser, ')')) {
        return parser_node(parser, NODE_TUPLE, position);
    }
    struct node *node = parser_tuple(parser, true);
    return node && parser_expect_op(parser, ')') ? node : NULL;
}

static struct node *parse_primary(struct parser *parser)
{
    switch (parser->at->kind) {
    case LEXEME_NAME:
        return parse_name(parser);
    case LEXEME_STRING:
        return parser_string(parser);
    case LEXEME_INT:
    case LEXEME_FLOAT:
        return parser_number(parser);
    default:
        break;
    }
    if (parser_is_op(parser, '(')) {
        return parse_parentheses(parser);
    }
    if (parser_is_op(parser, '[')) {
        return parse_list(parser);
    }
    return parser_is_op(parser, '{') ? parse_map(parser)
                                     : parser_refuse_lexeme(parser, "an expression");
}

/* ---- what follows them ----------------------------------------------------------------------- */

/* Which arguments came already. */
struct came {
    bool named, star, stars;
};

/* *list or **map. */
static struct node *parse_star(struct parser *parser, struct came *came)
{
    const struct lexeme *lexeme = parser->at++;
    bool are_two = lexeme->op == OP2('*', '*');
    struct node *node = parser_node(parser, are_two ? NODE_STARS : NODE_STAR, lexeme->position);
    if (came->stars || (!are_two && came->star)) {
        return parser_refuse(parser, lexeme->position, ST_INVALID,
                             "arguments from a list come once, and then those from a map");
    }
    came->star |= !are_two;
    came->stars |= are_two;
    return node && (node->a = parser_expression(parser)) ? node : NULL;
}

static struct node *parse_named(struct parser *parser, struct came *came)
{
    const struct lexeme *lexeme = parser->at;
    struct node *named = parser_node(parser, NODE_NAMED, lexeme->position);
    parser->at += 2;
    came->named = true;
    if (!named || !(named->a = parser_expression(parser))) {
        return NULL;
    }
    named->text = lexeme->text;
    return named;
}

static struct node *parse_argument(struct parser *parser, struct came *came)
{
    const struct lexeme *lexeme = parser->at;
    bool is_named =
        lexeme->kind == LEXEME_NAME && lexeme[1].kind == LEXEME_OPERATOR && lexeme[1].op == '=';
    if (parser_is_op(parser, '*') || parser_is_op(parser, OP2('*', '*'))) {
        return parse_star(parser, came);
    }
    if (came->stars || (!is_named && (came->named || came->star))) {
        return parser_refuse(parser, lexeme->position, ST_INVALID,
                             "an argument without a name follows one with a name");
    }
    return is_named ? parse_named(parser, came) : parser_expression(parser);
}

static bool parse_arguments(struct parser *parser, struct node *call)
{
    struct node_list items = {0};
    struct came came = {false, false, false};
    if (!parser_expect_op(parser, '(')) {
        return false;
    }
    while (!parser_skip_op(parser, ')')) {
        if (items.first && !parser_expect_op(parser, ',')) {
            return false;
        }
        if (parser_skip_op(parser, ')')) {
            break;
        }
        if (!parser_add(&items, parse_argument(parser, &came))) {
            return false;
        }
    }
    call->items = items.first;
    return true;
}

static struct node *parse_call(struct parser *parser, struct node *callee)
{
    struct node *call = parser_node(parser, NODE_CALL, parser->at->position);
    if (!call) {
        return NULL;
    }
    if (callee->kind == NODE_ATTRIBUTE && !template_method_is_known(callee->text)) {
        return parser_refuse(parser, callee->position, ST_UNSUPPORTED,
                             "the method '%.*s' is not supported", SPAN_SHORT(callee->text));
    }
    call->a = callee;
    return parse_arguments(parser, call) ? call : NULL;
}

static struct node *parse_bound(struct parser *parser, bool *has_failed)
{
    if (parser_is_op(parser, ':') || parser_is_op(parser, ']')) {
        return NULL;
    }
    struct node *bound = parser_expression(parser);
    *has_failed |= !bound;
    return bound;
}

static struct node *parse_brackets(struct parser *parser, struct node *self)
{
    struct node *node = parser_node(parser, NODE_SUBSCRIPT, parser->at++->position);
    bool has_failed = false;
    if (!node) {
        return NULL;
    }
    node->a = self;
    if (parser_is_op(parser, ']')) {
        return parser_refuse_lexeme(parser, "an index");
    }
    node->b = parse_bound(parser, &has_failed);
    if (!has_failed && parser_skip_op(parser, ':')) {
        node->kind = NODE_SLICE;
        node->c = parse_bound(parser, &has_failed);
        if (!has_failed && parser_skip_op(parser, ':')) {
            node->d = parse_bound(parser, &has_failed);
        }
    }
    if (!has_failed && parser_is_op(parser, ',')) {
        return parser_refuse(parser, parser->at->position, ST_UNSUPPORTED,
                             "a tuple as an index is not supported");
    }
    return !has_failed && parser_expect_op(parser, ']') ? node : NULL;
}

static struct node *parse_dot(struct parser *parser, struct node *self)
{
    struct node *node = parser_node(parser, NODE_ATTRIBUTE, parser->at++->position);
    if (!node) {
        return NULL;
    }
    node->a = self;
    if (parser->at->kind == LEXEME_INT) {
        node->kind = NODE_SUBSCRIPT;
        node->b = parser_number(parser);
        return node->b ? node : NULL;
    }
    node->text = parser_expect_name(parser);
    return node->text.len ? node : NULL;
}

static struct node *parse_postfix(struct parser *parser, struct node *node)
{
    for (int i = 0; node; i++) {
        if (i == CHAIN_MAX) {
            return parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "too long a chain");
        }
        if (parser_is_op(parser, '.')) {
            node = parse_dot(parser, node);
        } else if (parser_is_op(parser, '[')) {
            node = parse_brackets(parser, node);
        } else if (parser_is_op(parser, '(')) {
            node = parse_call(parser, node);
        } else {
            break;
        }
    }
    return node;
}

static struct node *parse_filter(struct parser *parser, struct node *self)
{
    struct node *node = parser_node(parser, NODE_FILTER, parser->at->position);
    struct span name = parser_expect_name(parser);
    if (!node || name.len == 0) {
        return NULL;
    }
    node->a = self;
    node->builtin = template_filter_find(name);
    if (!node->builtin) {
        return parser_refuse(parser, node->position, ST_UNSUPPORTED,
                             "the filter '%.*s' is not supported", SPAN_SHORT(name));
    }
    if (parser_is_op(parser, '(') && !parse_arguments(parser, node)) {
        return NULL;
    }
    return node;
}

struct node *parser_filters(struct parser *parser, struct node *self, bool is_inline)
{
    for (int i = 0; self && (is_inline || parser_skip_op(parser, '|')); i++) {
        if (i == CHAIN_MAX) {
            return parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "too long a chain");
        }
        is_inline = false;
        self = parse_filter(parser, self);
    }
    return self;
}

static bool is_test_argument(const struct parser *parser)
{
    switch (parser->at->kind) {
    case LEXEME_NAME:
        return !parser_is_name(parser, "else") && !parser_is_name(parser, "or") &&
               !parser_is_name(parser, "and");
    case LEXEME_STRING:
    case LEXEME_INT:
    case LEXEME_FLOAT:
        return true;
    default:
        return parser_is_op(parser, '[') || parser_is_op(parser, '{');
    }
}

static bool parse_test_arguments(struct parser *parser, struct node *node)
{
    if (parser_is_op(parser, '(')) {
        return parse_arguments(parser, node);
    }
    if (!is_test_argument(parser)) {
        return true;
    }
    if (parser_is_name(parser, "is")) {
        parser_refuse(parser, parser->at->position, ST_INVALID, "two tests in a row");
        return false;
    }
    struct node *argument = parse_primary(parser);
    node->items = argument ? parse_postfix(parser, argument) : NULL;
    return node->items != NULL;
}

static struct node *parse_test(struct parser *parser, struct node *self)
{
    struct node *node = parser_node(parser, NODE_TEST, parser->at++->position);
    bool is_negated = parser_skip_name(parser, "not");
    struct position position = parser->at->position;
    struct span name = parser_expect_name(parser);
    if (!node || name.len == 0) {
        return NULL;
    }
    node->a = self;
    node->builtin = template_test_find(name);
    if (!node->builtin) {
        return parser_refuse(parser, position, ST_UNSUPPORTED, "the test '%.*s' is not supported",
                             SPAN_SHORT(name));
    }
    if (!parse_test_arguments(parser, node)) {
        return NULL;
    }
    struct node *outer = is_negated ? parser_node(parser, NODE_NOT, node->position) : node;
    if (is_negated && outer) {
        outer->a = node;
    }
    return outer;
}

static struct node *parse_filters_and_tests(struct parser *parser, struct node *node)
{
    for (int i = 0; node; i++) {
        if (i == CHAIN_MAX) {
            return parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "too long a chain");
        }
        if (parser_is_op(parser, '|')) {
            node = parser_filters(parser, node, false);
        } else if (parser_is_name(parser, "is")) {
            node = parse_test(parser, node);
        } else if (parser_is_op(parser, '(')) {
            node = parse_call(parser, node);
        } else {
            break;
        }
    }
    return node;
}

/* ---- operators ------------------------------------------------------------------------------- */

static struct node *parse_unary(struct parser *parser, bool has_filters)
{
    struct node *node;
    if (parser_is_op(parser, '-') || parser_is_op(parser, '+')) {
        enum node_kind kind = parser_is_op(parser, '-') ? NODE_NEGATIVE : NODE_POSITIVE;
        node = parser_node(parser, kind, parser->at++->position);
        if (!node || !parser_enter(parser)) {
            return NULL;
        }
        node->a = parse_unary(parser, false);
        parser_leave(parser);
        node = node->a ? node : NULL;
    } else {
        node = parse_primary(parser);
    }
    node = node ? parse_postfix(parser, node) : NULL;
    return node && has_filters ? parse_filters_and_tests(parser, node) : node;
}

typedef struct node *parse_operand_f(struct parser *parser);

/* Operands with any of |ops| between them, taken from the left. */
static struct node *parse_chain(struct parser *parser, parse_operand_f *parse_operand,
                                const uint16_t *ops, size_t op_count)
{
    struct node *left = parse_operand(parser);
    for (int count = 0; left; count++) {
        size_t i = 0;
        while (i < op_count && !parser_is_op(parser, ops[i])) {
            i++;
        }
        if (i == op_count) {
            break;
        }
        if (count == CHAIN_MAX) {
            return parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "too long a chain");
        }
        struct node *node = parser_node(parser, NODE_BINARY, parser->at++->position);
        if (!node || !(node->b = parse_operand(parser))) {
            return NULL;
        }
        node->op = ops[i];
        node->a = left;
        left = node;
    }
    return left;
}

static struct node *parse_operand(struct parser *parser)
{
    return parse_unary(parser, true);
}

static struct node *parse_power(struct parser *parser)
{
    static const uint16_t ops[] = {OP2('*', '*')};
    return parse_chain(parser, parse_operand, ops, 1);
}

static struct node *parse_product(struct parser *parser)
{
    static const uint16_t ops[] = {'*', '/', OP2('/', '/'), '%'};
    return parse_chain(parser, parse_power, ops, 4);
}

static struct node *parse_concat(struct parser *parser)
{
    struct position position = parser->at->position;
    struct node *first = parse_product(parser);
    struct node_list items = {0};
    if (!first || !parser_is_op(parser, '~')) {
        return first;
    }
    struct node *node = parser_node(parser, NODE_CONCAT, position);
    parser_add(&items, first);
    while (node && parser_skip_op(parser, '~')) {
        if (!parser_add(&items, parse_product(parser))) {
            return NULL;
        }
    }
    if (node) {
        node->items = items.first;
    }
    return node;
}

static struct node *parse_sum(struct parser *parser)
{
    static const uint16_t ops[] = {'+', '-'};
    return parse_chain(parser, parse_concat, ops, 2);
}

/* Takes an operator of comparisons; 0: there is none. */
static uint16_t take_comparison(struct parser *parser)
{
    static const uint16_t ops[] = {OP2('=', '='), OP2('!', '='), OP2('>', '='),
                                   OP2('<', '='), '>',           '<'};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (parser_skip_op(parser, ops[i])) {
            return ops[i];
        }
    }
    if (parser_skip_name(parser, "in")) {
        return OP_IN;
    }
    if (parser_is_name(parser, "not") && parser->at[1].kind == LEXEME_NAME &&
        span_is(parser->at[1].text, "in")) {
        parser->at += 2;
        return OP_NOT_IN;
    }
    return 0;
}

static struct node *parse_comparison(struct parser *parser)
{
    struct position position = parser->at->position;
    struct node *first = parse_sum(parser), *node = NULL;
    struct node_list operands = {0};
    uint16_t op;
    while (first && (op = take_comparison(parser)) != 0) {
        struct node *operand = parser_node(parser, NODE_OPERAND, parser->at->position);
        if (!operand || !(operand->a = parse_sum(parser))) {
            return NULL;
        }
        operand->op = op;
        parser_add(&operands, operand);
    }
    if (!first || !operands.first) {
        return first;
    }
    node = parser_node(parser, NODE_COMPARE, position);
    if (node) {
        node->a = first;
        node->items = operands.first;
    }
    return node;
}

static struct node *parse_not(struct parser *parser)
{
    struct position position = parser->at->position;
    if (!parser_skip_name(parser, "not")) {
        return parse_comparison(parser);
    }
    struct node *node = parser_node(parser, NODE_NOT, position);
    if (!node || !parser_enter(parser)) {
        return NULL;
    }
    node->a = parse_not(parser);
    parser_leave(parser);
    return node->a ? node : NULL;
}

static struct node *parse_logic(struct parser *parser, parse_operand_f *parse_part,
                                const char *word, enum node_kind kind)
{
    struct node *left = parse_part(parser);
    for (int count = 0; left && parser_is_name(parser, word); count++) {
        if (count == CHAIN_MAX) {
            return parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "too long a chain");
        }
        struct node *node = parser_node(parser, kind, parser->at++->position);
        if (!node || !(node->b = parse_part(parser))) {
            return NULL;
        }
        node->a = left;
        left = node;
    }
    return left;
}

static struct node *parse_and(struct parser *parser)
{
    return parse_logic(parser, parse_not, "and", NODE_AND);
}

static struct node *parse_or(struct parser *parser)
{
    return parse_logic(parser, parse_and, "or", NODE_OR);
}

static struct node *parse_condition(struct parser *parser)
{
    struct node *node = parse_or(parser);
    for (int count = 0; node && parser_is_name(parser, "if"); count++) {
        if (count == CHAIN_MAX) {
            return parser_refuse(parser, parser->at->position, ST_TOO_LARGE, "too long a chain");
        }
        struct node *outer = parser_node(parser, NODE_CONDITION, parser->at++->position);
        if (!outer || !(outer->a = parse_or(parser))) {
            return NULL;
        }
        if (parser_skip_name(parser, "else") && !(outer->c = parser_expression(parser))) {
            return NULL;
        }
        outer->b = node;
        node = outer;
    }
    return node;
}

struct node *parser_expression(struct parser *parser)
{
    if (!parser_enter(parser)) {
        return NULL;
    }
    struct node *node = parse_condition(parser);
    parser_leave(parser);
    return node;
}

/* Does a tuple end here? */
static bool is_tuple_end(const struct parser *parser)
{
    return parser->at->kind == LEXEME_VARIABLE_END || parser->at->kind == LEXEME_BLOCK_END ||
           parser_is_op(parser, ')') || parser_is_op(parser, '=') || parser_is_name(parser, "in");
}

struct node *parser_tuple(struct parser *parser, bool has_condition)
{
    struct position position = parser->at->position;
    struct node_list items = {0};
    if (!parser_enter(parser)) {
        return NULL;
    }
    struct node *first = has_condition ? parse_condition(parser) : parse_or(parser);
    parser_leave(parser);
    if (!first || !parser_is_op(parser, ',')) {
        return first;
    }
    struct node *node = parser_node(parser, NODE_TUPLE, position);
    parser_add(&items, first);
    while (node && parser_skip_op(parser, ',') && !is_tuple_end(parser)) {
        if (!parser_add(&items, has_condition ? parser_expression(parser) : parse_or(parser))) {
            return NULL;
        }
    }
    if (node) {
        node->items = items.first;
    }
    return node;
}

/* ---- targets --------------------------------------------------------------------------------- */

static struct node *parse_target_name(struct parser *parser, bool may_be_attribute)
{
    struct position position = parser->at->position;
    struct value constant;
    if (parser_skip_op(parser, '(')) {
        if (!parser_enter(parser)) {
            return NULL;
        }
        struct node *inner = parser_target(parser, false);
        parser_leave(parser);
        return inner && parser_expect_op(parser, ')') ? inner : NULL;
    }
    struct span name = parser_expect_name(parser);
    struct node *node = name.len ? parser_node(parser, NODE_NAME, position) : NULL;
    if (!node) {
        return NULL;
    }
    if (is_constant(name, &constant)) {
        return parser_refuse(parser, position, ST_INVALID, "'%.*s' cannot be set",
                             SPAN_SHORT(name));
    }
    node->text = name;
    if (may_be_attribute && parser_skip_op(parser, '.')) {
        struct node *outer = parser_node(parser, NODE_ATTRIBUTE, position);
        struct span attribute = parser_expect_name(parser);
        if (!outer || attribute.len == 0) {
            return NULL;
        }
        outer->a = node;
        outer->text = attribute;
        return outer;
    }
    return node;
}

struct node *parser_target(struct parser *parser, bool may_be_attribute)
{
    struct position position = parser->at->position;
    struct node_list items = {0};
    struct node *first = parse_target_name(parser, may_be_attribute);
    if (!first || !parser_is_op(parser, ',')) {
        return first;
    }
    struct node *node = parser_node(parser, NODE_TUPLE, position);
    parser_add(&items, first);
    while (node && parser_skip_op(parser, ',') && !is_tuple_end(parser)) {
        if (!parser_add(&items, parse_target_name(parser, may_be_attribute))) {
            return NULL;
        }
    }
    if (node) {
        node->items = items.first;
    }
    return node;
}
