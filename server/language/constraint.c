/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/constraint.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/language/words.h"
#include "server/text/grammar/grammar.h"

#define CONSTRAINT_MAGIC 0x636f6e73u

/* Of the tree of a schema while it is compiled. */
#define SCHEMA_BYTES_MAX (32 << 20)
#define SCHEMA_VALUES_MAX (1u << 16)

/* Of one constraint_weigh(), see grammar_mask_within(). */
#define WORK_MAX (1u << 18)

struct constraint {
    uint32_t magic;
    const struct ask *ask;
    const struct generator *generator;
    const struct grammar_vocabulary *vocabulary; /* the generator's */
    struct grammar *grammar;                     /* owned */
    struct grammar_walk *walk;                   /* owned: of the present answer */
    struct grammar_state state;
    uint64_t *bits;   /* owned: a bit for each token */
    size_t bit_words; /* of |bits| */
    struct buf token; /* the bytes of one */
};

/* ---- life ------------------------------------------------------------------------------------ */

/* In the form of the model's family; what that form cannot write as JSON, which counts in each. */
static enum status parse_call(const struct ask *ask, const struct generator *generator,
                              const struct value *tools, struct grammar **out, struct error *err)
{
    struct grammar_call_form form;
    struct buf text;
    struct error ignored;
    if (!generator->tools.has_form) {
        return grammar_parse_call(tools, ask->grammar, NULL, out, err);
    }
    enum status status = tools_call_form(&generator->tools, generator->words, &text, &form, err);
    bool has_form =
        status == ST_OK && grammar_parse_call(tools, ask->grammar, &form, out, &ignored) == ST_OK;
    buf_fini(&text);
    return status != ST_OK || has_form ? status
                                       : grammar_parse_call(tools, ask->grammar, NULL, out, err);
}

/* A schema, tools or texts: what is JSON. */
static enum status parse_json(const struct ask *ask, const struct generator *generator,
                              struct grammar **out, struct error *err)
{
    bool is_call = ask->shape == ASK_CALL;
    struct value_limits limits = VALUE_LIMITS_DEFAULT;
    struct value value;
    struct arena arena;
    limits.values_max = SCHEMA_VALUES_MAX;
    arena_init(&arena, SCHEMA_BYTES_MAX);
    enum status status =
        value_parse(is_call ? ask->tools : ask->grammar, &limits, &arena, &value, err);
    if (status == ST_OK) {
        status = is_call                    ? parse_call(ask, generator, &value, out, err)
                 : ask->shape == ASK_CHOICE ? grammar_parse_choice(&value, out, err)
                                            : grammar_parse_schema(&value, out, err);
    }
    arena_fini(&arena);
    return status;
}

static enum status parse_grammar(const struct ask *ask, const struct generator *generator,
                                 struct grammar **out, struct error *err)
{
    enum status status = ask->shape == ASK_OBJECT  ? grammar_parse_object(out, err)
                         : ask->shape == ASK_REGEX ? grammar_parse_regex(ask->grammar, out, err)
                         : ask->shape == ASK_GBNF  ? grammar_parse_gbnf(ask->grammar, out, err)
                                                   : parse_json(ask, generator, out, err);
    if (status == ST_UNSUPPORTED || status == ST_TOO_LARGE) {
        err->code = ST_INVALID; /* the client's affair, as all that it may write */
    }
    return status == ST_OK ? ST_OK : error_prefix(err, "%s", ask->grammar_path);
}

static enum status fill(struct constraint *constraint, struct generator *generator,
                        struct error *err)
{
    constraint->bit_words = ((size_t)generator->vocab + 63) / 64;
    constraint->bits = calloc(constraint->bit_words, sizeof(constraint->bits[0]));
    if (!constraint->bits) {
        return error_no_memory(err, "constrained output");
    }
    TRY(parse_grammar(constraint->ask, generator, &constraint->grammar, err));
    return generator_find_vocabulary(generator, &constraint->vocabulary, err);
}

enum status constraint_new(const struct ask *ask, struct generator *generator,
                           struct constraint **out, struct error *err)
{
    *out = NULL;
    if (ask->shape == ASK_ANY_TEXT) {
        return ST_OK;
    }
    struct constraint *constraint = calloc(1, sizeof(*constraint));
    if (!constraint) {
        return error_no_memory(err, "constrained output");
    }
    constraint->magic = CONSTRAINT_MAGIC;
    constraint->ask = ask;
    constraint->generator = generator;
    buf_init(&constraint->token, GENERATOR_TOKEN_BYTES_MAX);
    enum status status = fill(constraint, generator, err);
    if (status != ST_OK) {
        constraint_free(constraint);
        return status;
    }
    *out = constraint;
    return ST_OK;
}

void constraint_free(struct constraint *constraint)
{
    if (constraint) {
        OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
        grammar_walk_free(constraint->walk);
        grammar_free(constraint->grammar);
        buf_fini(&constraint->token);
        free(constraint->bits);
        constraint->magic = 0;
        free(constraint);
    }
}

/* ---- an answer ------------------------------------------------------------------------------- */

enum status constraint_begin(struct constraint *constraint, struct error *err)
{
    OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
    grammar_walk_free(constraint->walk); /* its bounds are for one text */
    constraint->walk = NULL;
    TRY(grammar_walk_new(constraint->grammar, &constraint->walk, err));
    constraint->state = grammar_walk_begin(constraint->walk);
    return ST_OK;
}

static void set_bits(struct constraint *constraint, const uint32_t *ids, uint32_t count,
                     bool is_allowed)
{
    for (uint32_t i = 0; i < count; i++) {
        must(ids[i] < constraint->generator->vocab);
        uint64_t bit = (uint64_t)1 << ids[i] % 64, *word = &constraint->bits[ids[i] / 64];
        *word = is_allowed ? *word | bit : *word & ~bit;
    }
}

static bool is_empty(const struct constraint *constraint)
{
    uint64_t all = 0;
    for (size_t i = 0; i < constraint->bit_words; i++) {
        all |= constraint->bits[i];
    }
    return all == 0;
}

enum status constraint_mask(struct constraint *constraint, const uint32_t *also,
                            const uint64_t **out, struct error *err)
{
    OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
    const struct generator *generator = constraint->generator;
    const struct ask *ask = constraint->ask;
    *out = NULL;
    TRY(grammar_mask(constraint->walk, constraint->state, constraint->vocabulary, constraint->bits,
                     err));
    bool may_end = grammar_state_may_end(constraint->walk, constraint->state);
    set_bits(constraint, ask->stop_ids, ask->stop_id_count, may_end);
    if (!ask->ignores_ends) {
        set_bits(constraint, generator->ends, generator->end_count, may_end);
    }
    if (also) {
        set_bits(constraint, also, 1, true);
    }
    if (!is_empty(constraint)) {
        *out = constraint->bits;
        return ST_OK;
    }
    return may_end ? ST_OK
                   : error_set(err, ST_INVALID,
                               "constrained output: no token of the model may come next, and the "
                               "text is not complete");
}

enum status constraint_weigh(struct constraint *constraint, struct error *err)
{
    OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
    return grammar_mask_within(constraint->walk, constraint->state, constraint->vocabulary,
                               constraint->bits, WORK_MAX, err);
}

size_t constraint_bytes(const struct constraint *constraint)
{
    OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
    return constraint->bit_words * sizeof(constraint->bits[0]) +
           grammar_bytes_held(constraint->grammar) + grammar_walk_bytes(constraint->walk);
}

enum status constraint_advance_text(struct constraint *constraint, struct span text,
                                    bool *out_is_taken, bool *out_is_complete, struct error *err)
{
    OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
    *out_is_taken = grammar_state_advance(constraint->walk, &constraint->state, text);
    *out_is_complete = grammar_state_must_end(constraint->walk, constraint->state);
    return grammar_walk_check(constraint->walk, err);
}

enum status constraint_advance(struct constraint *constraint, uint32_t id, bool *out_is_complete,
                               struct error *err)
{
    OBJ_CHECK(constraint, CONSTRAINT_MAGIC);
    buf_reset(&constraint->token);
    TRY(generator_token_text(constraint->generator, id, &constraint->token, err));
    if (buf_failed(&constraint->token)) {
        return error_no_memory(err, "constrained output");
    }
    if (!grammar_state_advance(constraint->walk, &constraint->state,
                               buf_span(&constraint->token))) {
        TRY(grammar_walk_check(constraint->walk, err));
        return error_set(err, ST_INTERNAL, "constrained output: token %u was not allowed", id);
    }
    *out_is_complete = grammar_state_must_end(constraint->walk, constraint->state);
    return grammar_walk_check(constraint->walk, err);
}
