/* SPDX-License-Identifier: MIT */
/*
 * The inside of templates: lexemes, nodes, and the state of a rendering. Nodes and the source
 * belong to the template's arena and are immutable after template_parse().
 */
#ifndef PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_PRIV_H
#define PTED_SERVER_TEXT_TEMPLATE_TEMPLATE_PRIV_H

#include "server/text/template/template.h"

#define TEMPLATE_ARENA_MAX (64u << 20)
#define TEMPLATE_NESTING_MAX 100  /* statements and expressions in the source */
#define TEMPLATE_STACK_MAX 1500   /* nodes that are being evaluated at one time */
#define TEMPLATE_RANGE_MAX 100000 /* jinja2.sandbox.MAX_RANGE */
#define TEMPLATE_VALUE_DEPTH_MAX 200
#define BUILTIN_PARAMS_MAX 5

/* ---- lexemes --------------------------------------------------------------------------------- */

enum lexeme_kind {
    LEXEME_DATA,
    LEXEME_VARIABLE_BEGIN,
    LEXEME_VARIABLE_END,
    LEXEME_BLOCK_BEGIN,
    LEXEME_BLOCK_END,
    LEXEME_NAME,
    LEXEME_STRING, /* without its quotes, with its escapes */
    LEXEME_INT,
    LEXEME_FLOAT,
    LEXEME_OPERATOR,
    LEXEME_END,
};

/* Two characters of an operator as one number. */
#define OP2(a, b) ((uint16_t)((a) << 8 | (b)))

struct position {
    uint32_t line, column; /* from 1; columns count bytes */
};

struct lexeme {
    enum lexeme_kind kind;
    uint16_t op;
    struct position position;
    struct span text;
};

struct lexemes {
    struct lexeme *items;
    size_t count, capacity;
};

/* Splits |source|, which is normalised in place of |arena|, into lexemes with LEXEME_END behind. */
enum status template_lex(struct span source, struct arena *arena, struct lexemes *out,
                         struct error *err);

/* ---- nodes ----------------------------------------------------------------------------------- */

enum node_kind {
    NODE_TEXT,   /* text */
    NODE_OUTPUT, /* a */
    NODE_IF,     /* items: branches */
    NODE_BRANCH, /* a: condition or NULL; items */
    /* a: target, b: the walked value, c: condition or NULL; items, others: else */
    NODE_FOR,
    NODE_SET,          /* a: target, b */
    NODE_SET_BLOCK,    /* a: target, b: filters around NODE_CAPTURED; items */
    NODE_FILTER_BLOCK, /* b: filters around NODE_CAPTURED; items */
    NODE_WITH,         /* others: NODE_SETs; items */
    NODE_SCOPE,        /* items: a block with names of its own */
    NODE_MACRO,        /* text; others: NODE_PARAMETERs; items; op: enum macro_uses */
    NODE_CALL_BLOCK,   /* a: NODE_MACRO "caller", b: the call that gets it */
    NODE_PARAMETER,    /* text, a: default or NULL */
    NODE_BREAK,
    NODE_CONTINUE,
    /* expressions */
    NODE_CONSTANT,  /* constant */
    NODE_NAME,      /* text */
    NODE_LIST,      /* items */
    NODE_TUPLE,     /* items */
    NODE_MAP,       /* items: pairs */
    NODE_PAIR,      /* a, b */
    NODE_CONDITION, /* b if a else c; c may be NULL */
    NODE_OR,        /* a, b */
    NODE_AND,       /* a, b */
    NODE_NOT,       /* a */
    NODE_COMPARE,   /* a; items: operands */
    NODE_OPERAND,   /* op, a */
    NODE_BINARY,    /* op, a, b */
    NODE_CONCAT,    /* items */
    NODE_NEGATIVE,  /* a */
    NODE_POSITIVE,  /* a */
    NODE_ATTRIBUTE, /* a, text */
    NODE_SUBSCRIPT, /* a, b */
    NODE_SLICE,     /* a[b:c:d], each of the three may be NULL */
    NODE_CALL,      /* a; items: arguments */
    NODE_FILTER,    /* a, builtin; items: arguments */
    NODE_TEST,      /* a, builtin; items: arguments */
    NODE_NAMED,     /* text, a: an argument with its name */
    NODE_STAR,      /* a: arguments from a list */
    NODE_STARS,     /* a: arguments with names, from a map */
    NODE_CAPTURED,  /* the text of the block around it */
};

/* The special names that stand in the body of a macro, or in one within it. */
enum macro_uses {
    MACRO_CALLER = 1,
    MACRO_VARARGS = 2,
    MACRO_KWARGS = 4,
};

#define OP_IN OP2('i', 'n')
#define OP_NOT_IN OP2('n', 'i')

struct node {
    enum node_kind kind;
    uint16_t op;
    struct position position;
    struct span text;
    struct value constant;
    const struct builtin *builtin;
    struct node *a, *b, *c, *d;
    struct node *items, *others; /* lists, linked by |next| */
    struct node *next;
};

struct template
{
    struct arena arena;
    struct node *body;
};

/* ---- rendering ------------------------------------------------------------------------------- */

/* The kinds of a VALUE_OBJECT, by its flags. */
enum object_kind {
    OBJECT_MISSING,   /* an argument that was not given; an item that is not there */
    OBJECT_UNDEFINED, /* object: the name, a struct span, or NULL */
    OBJECT_NAMESPACE, /* object: a struct value_map */
    OBJECT_MACRO,     /* object: a struct macro */
    OBJECT_FUNCTION,  /* object: a struct builtin */
    OBJECT_METHOD,    /* object: a struct method */
    OBJECT_LOOP,      /* object: a struct loop */
};

struct variable {
    struct span name;
    struct value value;
};

struct scope {
    struct scope *parent;
    struct variable *variables;
    size_t count, capacity;
};

struct macro {
    const struct node *node;
    struct scope *scope; /* where it was made */
};

struct method {
    const struct builtin *builtin;
    struct value self;
};

struct loop {
    struct value_list *list;
    size_t at;
    bool has_changed;     /* changed() was called */
    struct value changed; /* its last arguments */
};

enum flow {
    FLOW_ON,
    FLOW_BREAK,
    FLOW_CONTINUE,
};

struct render {
    const struct value *context;
    const struct template_limits *limits;
    struct arena *arena;
    struct buf *out;
    size_t out_start;
    struct error *err;
    uint64_t steps_left;
    uint32_t stack_depth, macro_depth;
    enum flow flow;
    struct scope *scope;
    struct value captured;
};

struct argument {
    struct span name; /* empty: by its position */
    struct value value;
};

struct arguments {
    struct argument *items;
    size_t count, capacity;
};

/* Runs a filter, a test, a method or a function. |args| has one value for each name in |params|,
 * which is an OBJECT_MISSING if it was not given. A parameter whose name begins with '*' takes all
 * the others that have no name, as a list. A name in capitals takes no argument by name. */
typedef enum status builtin_f(struct render *render, const struct node *node, struct value self,
                              const struct value *args, struct value *out);

struct builtin {
    const char *name;
    builtin_f *call;
    uint32_t required;
    const char *params[BUILTIN_PARAMS_MAX];
};

const struct builtin *template_filter_find(struct span name);
const struct builtin *template_test_find(struct span name);
const struct builtin *template_function_find(struct span name);
const struct builtin *template_method_find(const struct value *self, struct span name);
bool template_method_is_known(struct span name);

/* Does the value refuse to say of its methods more than that they exist? Python has them, this has
 * not, or its sandbox forbids them. */
bool template_method_is_refused(const struct value *self, struct span name);

enum status template_call_builtin(struct render *render, const struct node *node,
                                  const struct builtin *builtin, struct value self,
                                  const struct arguments *arguments, struct value *out);
enum status template_eval(struct render *render, const struct node *node, struct value *out);

/* Evaluates a NODE_CALL, with one more argument, "caller". */
enum status template_call_with(struct render *render, const struct node *node, struct value caller,
                               struct value *out);
enum status template_run(struct render *render, const struct node *items);

/* Sets the error with the position of |node| in front. */
enum status template_fail(struct render *render, const struct node *node, enum status code,
                          const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Does the same with a text that quotes a value. The client has it from us or has sent it, so it is
 * not logged: see error_hide(). */
enum status template_fail_quoting(struct render *render, const struct node *node, enum status code,
                                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
enum status template_no_memory(struct render *render);

/* Takes steps for work on so many bytes or items. */
enum status template_charge(struct render *render, const struct node *node, size_t amount);

struct scope *template_scope_new(struct render *render, struct scope *parent);
enum status template_scope_set(struct render *render, struct scope *scope, struct span name,
                               struct value value);

/* Builds text: write to render->out after begin; end takes it from there. */
size_t template_text_begin(struct render *render);
enum status template_text_end(struct render *render, const struct node *node, size_t begin,
                              struct value *out);

/* ---- values as Python sees them -------------------------------------------------------------- */

/* |name| is in the template, or a constant; of a value, it may be a client's. */
struct value template_undefined(struct render *render, struct span name);
struct value template_undefined_of(struct render *render, struct span name);
bool template_is(const struct value *value, enum object_kind kind);
enum status template_undefined_fail(struct render *render, const struct node *node,
                                    const struct value *value);
bool template_truth(const struct value *value);

/* bool and int as int, any number as double. */
bool template_as_int(const struct value *value, int64_t *out);
bool template_as_double(const struct value *value, double *out);
bool template_same(struct render *render, const struct value *a, const struct value *b, int depth);

/* <0, 0, >0 in |order|; a type error if Python cannot order them. */
enum status template_order(struct render *render, const struct node *node, const struct value *a,
                           const struct value *b, int *order);
enum status template_contains(struct render *render, const struct node *node,
                              const struct value *container, const struct value *item, bool *out);

/* str(), to render->out; |is_repr|: repr(). */
enum status template_print(struct render *render, const struct node *node,
                           const struct value *value, bool is_repr);

/* str() as a value. */
enum status template_text(struct render *render, const struct node *node, const struct value *value,
                          struct value *out);

/* Gives the values that a loop walks: characters, items or keys. An iterator is empty after it. */
enum status template_iterate(struct render *render, const struct node *node,
                             const struct value *value, struct value_list **out);
enum status template_length(struct render *render, const struct node *node,
                            const struct value *value, int64_t *out);
enum status template_attribute(struct render *render, const struct node *node,
                               const struct value *self, struct span name, struct value *out);
enum status template_item(struct render *render, const struct node *node, const struct value *self,
                          const struct value *key, struct value *out);
enum status template_slice(struct render *render, const struct node *node, const struct value *self,
                           const struct value bounds[3], struct value *out);
enum status template_binary(struct render *render, const struct node *node, uint16_t op,
                            const struct value *a, const struct value *b, struct value *out);
const struct value *template_map_find(const struct value_map *map, const struct value *key);
const char *template_type_text(const struct value *value);

#endif
