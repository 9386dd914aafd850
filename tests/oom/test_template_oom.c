/* SPDX-License-Identifier: MIT */
/*
 * A chat template and a grammar when memory runs out: the first allocation fails, then the second,
 * and so on until the text is there. Each time the error says so, and nothing leaks (LeakSanitizer
 * finds what does).
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar.h"
#include "server/text/template/template.h"
#include "tests/oom/failing.h"

#define ALLOCATIONS_MAX 1000

static const char source[] =
    "{% macro m(v) %}{{ v | tojson }}{% endmacro %}{% set ns = namespace(n=0) %}"
    "{% for x in messages[::-1] %}{% set ns.n = ns.n + 1 %}{{ m(x) ~ ns.n }}{% endfor %}"
    "{% set big = 'x' * 100000 %}{% for i in range(20) %}{{ big | upper }}{% endfor %}"
    "{{ messages | map(attribute='role') | join(',') }}{{ messages | sort(attribute='role') }}";

static enum status make(struct arena *arena, struct buf *out, struct error *err)
{
    const struct template_limits limits = TEMPLATE_LIMITS_DEFAULT;
    const struct span text = span_str("{\"messages\": [{\"role\": \"b\"}, {\"role\": \"a\"}]}");
    struct template *template;
    struct value context;
    TRY(value_parse(text, &VALUE_LIMITS_DEFAULT, arena, &context, err));
    TRY(template_parse(span_str(source), &template, err));
    enum status status = template_render(template, &context, &limits, arena, out, err);
    template_free(template);
    return status;
}

static enum status walk(const struct grammar *grammar, struct error *err)
{
    const struct span tokens[] = {span_str("{\""), span_str("a"), span_str("\": "), span_str("1")};
    struct grammar_vocabulary *vocabulary;
    struct grammar_walk *walk;
    uint64_t bits[1];
    TRY(grammar_vocabulary_new(tokens, 4, &vocabulary, err));
    enum status status = grammar_walk_new(grammar, &walk, err);
    if (status == ST_OK) {
        struct grammar_state state = grammar_walk_begin(walk);
        grammar_state_advance(walk, &state, span_str("{\"a\": "));
        status = grammar_mask(walk, state, vocabulary, bits, err);
        must(status != ST_OK || bits[0] == 8);
        grammar_walk_free(walk);
    }
    grammar_vocabulary_free(vocabulary);
    return status;
}

static enum status make_grammar(struct arena *arena, struct error *err)
{
    const struct span text = span_str("{\"type\": \"object\", \"required\": [\"a\"], "
                                      "\"properties\": {\"a\": {\"type\": \"integer\"}}}");
    struct value schema;
    struct grammar *grammar;
    TRY(value_parse(text, &VALUE_LIMITS_DEFAULT, arena, &schema, err));
    TRY(grammar_parse_schema(&schema, &grammar, err));
    enum status status = walk(grammar, err);
    grammar_free(grammar);
    return status;
}

static enum status make_with(long allocations, struct error *err)
{
    struct arena arena;
    struct buf out;
    arena_init(&arena, 64u << 20);
    buf_init(&out, 16u << 20);
    allocations_left = allocations;
    enum status status = make(&arena, &out, err);
    status = status == ST_OK ? make_grammar(&arena, err) : status;
    allocations_left = -1;
    buf_fini(&out);
    arena_fini(&arena);
    return status;
}

int main(void)
{
    struct error err = {0};
    enum status status;
    long count = 0;
    for (; (status = make_with(count, &err)) != ST_OK; count++) {
        if (status != ST_EXHAUSTED || !strstr(err.text, "memory") || count == ALLOCATIONS_MAX) {
            fprintf(stderr, "allocation %ld fails: status %d, \"%s\"\n", count, (int)status,
                    err.text);
            return 1;
        }
    }
    printf("%ld allocations, each failed\n", count);
    must(count > 10);
    return 0;
}
