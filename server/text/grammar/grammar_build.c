/* SPDX-License-Identifier: MIT */
/* From parts to the automaton of a grammar. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "server/text/grammar/grammar_priv.h"

#define BUILDER_BYTES_MAX (64u << 20)
#define COMPILE_DEPTH_MAX 4000

/* Looks at all rules, until it is known which may be empty: each takes time for each rule. */
#define EMPTY_PASSES_MAX 16

void grammar_builder_init(struct grammar_builder *builder, struct error *err)
{
    *builder = (struct grammar_builder){.err = err};
    arena_init(&builder->arena, BUILDER_BYTES_MAX);
}

void *grammar_refuse(struct grammar_builder *builder, enum status code, const char *fmt, ...)
{
    va_list args;
    if (builder->status == ST_OK) {
        va_start(args, fmt);
        builder->status = error_setv(builder->err, code, fmt, args);
        va_end(args);
        if (builder->path) {
            error_prefix(builder->err, "schema%s: ", builder->path);
        }
    }
    return NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Parts that are empty are PART_EMPTY, and nothing else: each other part becomes at least one move,
 * so the greatest number of moves bounds the work, whatever is repeated. */

const struct part *grammar_part(struct grammar_builder *builder, struct part part)
{
    struct part *out = arena_alloc(&builder->arena, sizeof(*out));
    if (!out) {
        if (builder->status == ST_OK) {
            builder->status = arena_fail(&builder->arena, "a grammar", builder->err);
        }
        return NULL;
    }
    *out = part;
    return out;
}

const struct part *grammar_empty(struct grammar_builder *builder)
{
    return grammar_part(builder, (struct part){.kind = PART_EMPTY});
}

const struct part *grammar_never(struct grammar_builder *builder)
{
    return grammar_part(builder, (struct part){.kind = PART_NEVER});
}

const struct part *grammar_bytes(struct grammar_builder *builder, uint8_t lo, uint8_t hi)
{
    return grammar_part(builder, (struct part){.kind = PART_BYTE, .lo = lo, .hi = hi});
}

const struct part *grammar_then(struct grammar_builder *builder, const struct part *a,
                                const struct part *b)
{
    if (!a || !b || a->kind == PART_EMPTY) {
        return a ? b : NULL;
    }
    return b->kind == PART_EMPTY
               ? a
               : grammar_part(builder, (struct part){.kind = PART_THEN, .a = a, .b = b});
}

const struct part *grammar_or(struct grammar_builder *builder, const struct part *a,
                              const struct part *b)
{
    if (!a || !b || a->kind == PART_NEVER) {
        return a ? b : NULL;
    }
    return b->kind == PART_NEVER
               ? a
               : grammar_part(builder, (struct part){.kind = PART_OR, .a = a, .b = b});
}

const struct part *grammar_repeat(struct grammar_builder *builder, const struct part *a,
                                  uint32_t min, uint32_t max)
{
    if (!a) {
        return NULL;
    }
    if (min > GRAMMAR_REPEAT_MAX || (max != UINT32_MAX && max > GRAMMAR_REPEAT_MAX)) {
        return grammar_refuse(builder, ST_TOO_LARGE, "a repetition of more than %d times",
                              GRAMMAR_REPEAT_MAX);
    }
    if (min > max) {
        return grammar_never(builder);
    }
    if (max == 0 || a->kind == PART_EMPTY) {
        return grammar_empty(builder); /* a part with no moves could be repeated without end */
    }
    return grammar_part(builder,
                        (struct part){.kind = PART_REPEAT, .min = min, .max = max, .a = a});
}

const struct part *grammar_text(struct grammar_builder *builder, struct span text)
{
    const struct part *out = grammar_empty(builder);
    for (size_t i = text.len; i-- > 0 && out;) {
        out = grammar_then(builder, grammar_bytes(builder, text.ptr[i], text.ptr[i]), out);
    }
    return out;
}

uint32_t grammar_rule_new(struct grammar_builder *builder)
{
    if (builder->rule_count == GRAMMAR_RULES_MAX) {
        grammar_refuse(builder, ST_TOO_LARGE, "a grammar of more than %d rules", GRAMMAR_RULES_MAX);
        return UINT32_MAX;
    }
    if (!ARENA_ROOM(&builder->arena, builder->rules, builder->rule_capacity,
                    builder->rule_count + 1)) {
        if (builder->status == ST_OK) {
            builder->status = arena_fail(&builder->arena, "a grammar", builder->err);
        }
        return UINT32_MAX;
    }
    return builder->rule_count++;
}

void grammar_rule_set(struct grammar_builder *builder, uint32_t rule, const struct part *part)
{
    if (rule != UINT32_MAX) {
        builder->rules[rule] = part;
    }
}

const struct part *grammar_rule(struct grammar_builder *builder, uint32_t rule)
{
    return rule == UINT32_MAX
               ? NULL
               : grammar_part(builder, (struct part){.kind = PART_RULE, .min = rule});
}

/* ---- code points ----------------------------------------------------------------------------- */

static size_t encode(uint32_t code, uint8_t bytes[4])
{
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1;) {
        bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    bytes[0] = (uint8_t)(marks[len] | code);
    return len;
}

/* lo and hi have |len| bytes; the range is cut where a byte would not run over all its values. */
static const struct part *of_one_length(struct grammar_builder *builder, uint32_t lo, uint32_t hi)
{
    uint8_t first[4], last[4];
    size_t len = encode(lo, first);
    encode(hi, last);
    for (size_t i = 1; i < len; i++) {
        uint32_t mask = (1u << (6 * i)) - 1;
        if ((lo & ~mask) == (hi & ~mask)) {
            continue;
        }
        if ((lo & mask) != 0) {
            return grammar_or(builder, of_one_length(builder, lo, lo | mask),
                              of_one_length(builder, (lo | mask) + 1, hi));
        }
        if ((hi & mask) != mask) {
            return grammar_or(builder, of_one_length(builder, lo, (hi & ~mask) - 1),
                              of_one_length(builder, hi & ~mask, hi));
        }
    }
    const struct part *out = grammar_empty(builder);
    for (size_t i = len; i-- > 0 && out;) {
        out = grammar_then(builder, grammar_bytes(builder, first[i], last[i]), out);
    }
    return out;
}

const struct part *grammar_codes(struct grammar_builder *builder, uint32_t lo, uint32_t hi)
{
    static const uint32_t pieces[][2] = {
        {0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, 0x10ffff}};
    const struct part *out = grammar_never(builder);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && out; i++) {
        uint32_t from = lo > pieces[i][0] ? lo : pieces[i][0];
        uint32_t to = hi < pieces[i][1] ? hi : pieces[i][1];
        if (from <= to) {
            out = grammar_or(builder, out, of_one_length(builder, from, to));
        }
    }
    return out;
}

static const struct part *escape_of(struct grammar_builder *builder, uint32_t code)
{
    static const char plain[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    static const char digits[] = "0123456789abcdef";
    const char *at = code ? strchr(plain, (int)code) : NULL;
    char text[] = "\\u0000";
    if (at) {
        text[1] = letters[at - plain];
        return grammar_text(builder, span_of(text, 2));
    }
    text[4] = digits[code >> 4];
    text[5] = digits[code & 15];
    return grammar_text(builder, span_of(text, 6));
}

const struct part *grammar_json_codes(struct grammar_builder *builder, uint32_t lo, uint32_t hi)
{
    static const uint32_t plain[][2] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x10ffff}};
    const struct part *out = grammar_never(builder);
    for (size_t i = 0; i < 3 && out; i++) {
        uint32_t from = lo > plain[i][0] ? lo : plain[i][0];
        uint32_t to = hi < plain[i][1] ? hi : plain[i][1];
        if (from <= to) {
            out = grammar_or(builder, out, grammar_codes(builder, from, to));
        }
    }
    for (uint32_t code = lo; code <= hi && code <= 0x5c && out; code++) {
        if (code < 0x20 || code == '"' || code == '\\') {
            out = grammar_or(builder, out, escape_of(builder, code));
        }
    }
    return out;
}

/* ---- moves ----------------------------------------------------------------------------------- */

struct compiler {
    struct grammar_builder *builder;
    struct grammar *grammar;
    size_t capacity;
    uint32_t depth;
    bool may_look; /* for grammar_meet() */
};

#define NOWHERE UINT32_MAX

/* Appends a move; NOWHERE: failed. */
static uint32_t add(struct compiler *compiler, struct move move)
{
    struct grammar *grammar = compiler->grammar;
    if (grammar->move_count == GRAMMAR_NODES_MAX) {
        grammar_refuse(compiler->builder, ST_TOO_LARGE, "a grammar of more than %u nodes",
                       GRAMMAR_NODES_MAX);
        return NOWHERE;
    }
    if (!ARRAY_ROOM(grammar->moves, compiler->capacity, grammar->move_count + 1)) {
        grammar_refuse(compiler->builder, ST_EXHAUSTED, "no memory for a grammar");
        return NOWHERE;
    }
    grammar->moves[grammar->move_count] = move;
    return grammar->move_count++;
}

static uint32_t compile(struct compiler *compiler, const struct part *part, uint32_t next);

static uint32_t split(struct compiler *compiler, uint32_t a, uint32_t b)
{
    return a == NOWHERE || b == NOWHERE
               ? NOWHERE
               : add(compiler, (struct move){.kind = MOVE_SPLIT, .next = a, .other = b});
}

static uint32_t repeat(struct compiler *compiler, const struct part *part, uint32_t next)
{
    uint32_t at = next;
    if (part->max == UINT32_MAX) {
        uint32_t loop = split(compiler, next, next);
        uint32_t body = loop == NOWHERE ? NOWHERE : compile(compiler, part->a, loop);
        if (body == NOWHERE) {
            return NOWHERE;
        }
        compiler->grammar->moves[loop].next = body;
        at = loop;
    } else {
        for (uint32_t i = part->min; i < part->max && at != NOWHERE; i++) {
            at = split(compiler, compile(compiler, part->a, at), next);
        }
    }
    for (uint32_t i = 0; i < part->min && at != NOWHERE; i++) {
        at = compile(compiler, part->a, at);
    }
    return at;
}

/* The moves of a state of a graph: one to choose for each way but the last. */
static uint32_t count_ways(const struct graph_state *state)
{
    return state->edge_count + state->may_end;
}

static uint32_t count_moves(const struct graph_state *state)
{
    uint32_t ways = count_ways(state);
    return ways == 0 ? 1 : ways == 1 && state->may_end ? 0 : ways - 1 + state->edge_count;
}

/* Moves of one state: the choices, and behind them the bytes. */
static bool add_state(struct compiler *compiler, const struct graph_state *state,
                      const uint32_t *heads, uint32_t next)
{
    uint32_t first = compiler->grammar->move_count, ways = count_ways(state);
    uint32_t bytes = ways > 0 ? first + ways - 1 : first;
    bool is_good = count_moves(state) > 0 || next != NOWHERE;
    for (uint32_t i = 0; i + 1 < ways && is_good; i++) {
        uint32_t rest = i + 2 < ways ? first + i + 1 : state->may_end ? next : bytes + i + 1;
        is_good =
            add(compiler, (struct move){.kind = MOVE_SPLIT, .next = bytes + i, .other = rest}) !=
            NOWHERE;
    }
    for (uint32_t i = 0; i < state->edge_count && is_good; i++) {
        const struct graph_edge *edge = &state->edges[i];
        is_good = add(compiler, (struct move){.kind = MOVE_BYTE,
                                              .lo = edge->lo,
                                              .hi = edge->hi,
                                              .next = heads[edge->to]}) != NOWHERE;
    }
    return is_good &&
           (ways > 0 ||
            add(compiler, (struct move){.kind = MOVE_BYTE, .lo = 1, .next = next}) != NOWHERE);
}

static uint32_t compile_graph(struct compiler *compiler, const struct graph *graph, uint32_t next)
{
    uint32_t *heads = arena_alloc(&compiler->builder->arena, graph->count * sizeof(*heads));
    uint64_t at = compiler->grammar->move_count;
    if (!heads) {
        grammar_refuse(compiler->builder, ST_TOO_LARGE, "a grammar takes too much memory");
        return NOWHERE;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        uint32_t count = count_moves(&graph->states[i]);
        heads[i] = count > 0 ? (uint32_t)at : next;
        at += count;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        if (!add_state(compiler, &graph->states[i], heads, next)) {
            return NOWHERE;
        }
    }
    return heads[0];
}

/* The second part of a chain is compiled first, since the first one goes on there. */
static uint32_t compile_part(struct compiler *compiler, const struct part *part, uint32_t next)
{
    switch (part->kind) {
    case PART_EMPTY:
        return next;
    case PART_NEVER: /* no byte is between 1 and 0 */
        return add(compiler, (struct move){.kind = MOVE_BYTE, .lo = 1, .hi = 0, .next = next});
    case PART_BYTE:
        return add(compiler,
                   (struct move){.kind = MOVE_BYTE, .lo = part->lo, .hi = part->hi, .next = next});
    case PART_THEN:
        next = compile(compiler, part->b, next);
        return next == NOWHERE ? NOWHERE : compile(compiler, part->a, next);
    case PART_OR: {
        uint32_t first = compile(compiler, part->a, next);
        return first == NOWHERE ? NOWHERE
                                : split(compiler, first, compile(compiler, part->b, next));
    }
    case PART_REPEAT:
        return repeat(compiler, part, next);
    case PART_GRAPH:
        return compile_graph(compiler, part->graph, next);
    case PART_LOOK:
        must(compiler->may_look);
        return add(compiler, (struct move){.kind = MOVE_LOOK, .next = next, .other = part->min});
    case PART_BEGIN:
        must(compiler->may_look);
        return add(compiler, (struct move){.kind = MOVE_BEGIN, .next = next});
    default:
        must(!compiler->may_look);
        return add(compiler, (struct move){.kind = MOVE_CALL, .next = next, .other = part->min});
    }
}

static uint32_t compile(struct compiler *compiler, const struct part *part, uint32_t next)
{
    if (compiler->depth == COMPILE_DEPTH_MAX) {
        grammar_refuse(compiler->builder, ST_TOO_LARGE,
                       "a grammar has more than %u levels; each byte of a text is one, and each "
                       "further choice, such as a value of an 'enum'",
                       COMPILE_DEPTH_MAX);
        return NOWHERE;
    }
    compiler->depth++;
    uint32_t at = compile_part(compiler, part, next);
    compiler->depth--;
    return at;
}

bool grammar_compile(struct grammar_builder *builder, const struct part *part, struct grammar *out,
                     uint32_t *out_start)
{
    struct compiler compiler = {.builder = builder, .grammar = out, .may_look = true};
    uint32_t end = add(&compiler, (struct move){.kind = MOVE_RETURN});
    *out_start = end == NOWHERE ? NOWHERE : compile(&compiler, part, end);
    return *out_start != NOWHERE;
}

/* ---- left recursion -------------------------------------------------------------------------- */

/* Walks what a rule can do before its first byte. */
struct lefts {
    const struct grammar *grammar;
    uint8_t *is_empty; /* of rules: may match no byte */
    uint8_t *colors;   /* of rules: 0 new, 1 open, 2 done */
    uint32_t depth;
    bool lacks_memory;
};

/* Can |rule| end without a byte, as far as the other rules are known? Calls |visit| for each rule
 * that it calls first; stops when that returns false. */
static bool scan(struct lefts *lefts, uint32_t rule, bool (*visit)(struct lefts *lefts, uint32_t),
                 bool *out_is_empty)
{
    const struct grammar *grammar = lefts->grammar;
    uint8_t *seen = calloc(grammar->move_count, 1);
    uint32_t *stack = malloc(grammar->move_count * sizeof(*stack));
    size_t count = 0;
    bool is_good = seen && stack;
    lefts->lacks_memory |= !is_good;
    if (is_good) {
        seen[grammar->rules[rule]] = 1;
        stack[count++] = grammar->rules[rule];
    }
    while (is_good && count > 0) {
        const struct move *move = &grammar->moves[stack[--count]];
        uint32_t nexts[2] = {NOWHERE, NOWHERE};
        *out_is_empty |= move->kind == MOVE_RETURN;
        if (move->kind == MOVE_SPLIT) {
            nexts[0] = move->next;
            nexts[1] = move->other;
        } else if (move->kind == MOVE_CALL) {
            is_good = !visit || visit(lefts, move->other);
            nexts[0] = lefts->is_empty[move->other] ? move->next : NOWHERE;
        }
        for (int i = 0; i < 2; i++) {
            if (nexts[i] != NOWHERE && !seen[nexts[i]]) {
                seen[nexts[i]] = 1;
                stack[count++] = nexts[i];
            }
        }
    }
    free(seen);
    free(stack);
    return is_good;
}

/* No rule calls itself before its first byte. */
static bool visit(struct lefts *lefts, uint32_t rule)
{
    bool is_empty = false;
    if (lefts->colors[rule]) {
        return lefts->colors[rule] == 2;
    }
    if (lefts->depth == GRAMMAR_DEPTH_MAX) {
        return false;
    }
    lefts->colors[rule] = 1;
    lefts->depth++;
    bool is_good = scan(lefts, rule, visit, &is_empty);
    lefts->depth--;
    lefts->colors[rule] = 2;
    return is_good;
}

static enum status refuse_left_recursion(struct grammar_builder *builder,
                                         const struct grammar *grammar)
{
    uint32_t count = grammar->rule_count;
    struct lefts lefts = {
        .grammar = grammar, .is_empty = calloc(count, 1), .colors = calloc(count, 1)};
    bool is_good = lefts.is_empty && lefts.colors, has_changed = is_good;
    for (uint32_t pass = 0; is_good && has_changed; pass++) {
        if (pass == EMPTY_PASSES_MAX) {
            grammar_refuse(builder, ST_TOO_LARGE,
                           "rules that may be empty call each other too deep");
            break;
        }
        has_changed = false;
        for (uint32_t k = 0; k < count && is_good; k++) {
            uint32_t i = pass % 2 ? count - 1 - k : k; /* chains go in either direction */
            bool is_empty = false;
            is_good = lefts.is_empty[i] || scan(&lefts, i, NULL, &is_empty);
            has_changed |= is_empty && !lefts.is_empty[i];
            lefts.is_empty[i] |= is_empty;
        }
    }
    if (!is_good) {
        grammar_refuse(builder, ST_EXHAUSTED, "no memory for a grammar");
    }
    for (uint32_t i = 0; i < count && is_good && builder->status == ST_OK; i++) {
        is_good = visit(&lefts, i);
        if (!is_good && lefts.lacks_memory) {
            grammar_refuse(builder, ST_EXHAUSTED, "no memory for a grammar");
        } else if (!is_good) {
            grammar_refuse(builder, ST_UNSUPPORTED,
                           "a rule calls itself before its first character, or rules call each "
                           "other too deep");
        }
    }
    free(lefts.is_empty);
    free(lefts.colors);
    return builder->status;
}

/* ---- the end --------------------------------------------------------------------------------- */

static enum status build(struct grammar_builder *builder, struct grammar *grammar)
{
    struct compiler compiler = {.builder = builder, .grammar = grammar};
    grammar->rules = calloc(builder->rule_count, sizeof(*grammar->rules));
    if (!grammar->rules) {
        grammar_refuse(builder, ST_EXHAUSTED, "no memory for a grammar");
        return builder->status;
    }
    grammar->rule_count = builder->rule_count;
    uint32_t end = add(&compiler, (struct move){.kind = MOVE_RETURN});
    for (uint32_t i = 0; i < builder->rule_count && builder->status == ST_OK; i++) {
        grammar->rules[i] = compile(&compiler, builder->rules[i], end);
    }
    return builder->status == ST_OK ? refuse_left_recursion(builder, grammar) : builder->status;
}

enum status grammar_builder_finish(struct grammar_builder *builder, struct grammar **out)
{
    struct grammar *grammar = NULL;
    *out = NULL;
    if (builder->status == ST_OK) {
        grammar = calloc(1, sizeof(*grammar));
        if (!grammar) {
            grammar_refuse(builder, ST_EXHAUSTED, "no memory for a grammar");
        } else if (build(builder, grammar) == ST_OK) {
            *out = grammar;
            grammar = NULL;
        }
    }
    grammar_free(grammar);
    arena_fini(&builder->arena);
    return builder->status;
}

size_t grammar_bytes_held(const struct grammar *grammar)
{
    return sizeof(*grammar) + grammar->move_count * sizeof(*grammar->moves) +
           grammar->rule_count * sizeof(*grammar->rules);
}

void grammar_free(struct grammar *grammar)
{
    if (grammar) {
        free(grammar->moves);
        free(grammar->rules);
        free(grammar);
    }
}
