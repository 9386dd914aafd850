/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "server/language/ask_message.h"
#include "server/language/ask_prediction.h"
#include "server/language/ask_priv.h"
#include "server/language/ask_reasoning.h"
#include "server/language/ask_response.h"
#include "server/language/ask_text.h"
#include "server/language/ask_tools.h"
#include "server/language/ask_values.h"
#include "server/text/template/template.h"

#define IDS_MAX (1 << 20) /* of a prompt that is given as ids */
/* Of a member that the answer repeats, while it is checked. */
#define REPEATED_VALUES_MAX (1 << 16)
#define REPEATED_BYTES_MAX (64 << 20)

typedef enum status reader_f(struct ask_reader *r);

enum kind { NUMBER, COUNT, SWITCH, OTHER, REFUSED, ABSENT };

struct member {
    const char *name;
    enum kind kind;
    unsigned forms;
    size_t offset;
    double min, max;
    reader_f *read;
    const char *why;
};

static enum status no_memory(struct ask_reader *r)
{
    return arena_fail(r->arena, "the request", r->err);
}

/* Calls |read| for each element of the array that comes next. */
static enum status read_each(struct ask_reader *r, reader_f *read)
{
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(read(r));
    }
}

/* ---- values that are not plain --------------------------------------------------------------- */

static enum status read_text(struct ask_reader *r, struct span *out)
{
    return ask_read_text(r->in, r->arena, out, r->err);
}

static enum status read_model(struct ask_reader *r)
{
    return ask_read_model(r->in, r->arena, &r->ask->model, r->err);
}

static enum status add_prompt(struct ask_reader *r)
{
    struct ask *ask = r->ask;
    struct ask_prompt *prompt = &ask->prompts[ask->prompt_count];
    if (ask->prompt_count == ASK_PROMPTS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected at most %d prompts", ASK_PROMPTS_MAX);
    }
    if (json_peek(r->in) == JSON_ARRAY) {
        TRY(ask_read_ids(r->in, r->arena, IDS_MAX, &prompt->ids, &prompt->id_count, r->err));
    } else {
        TRY(read_text(r, &prompt->text));
    }
    ask->prompt_count++;
    return ST_OK;
}

static enum status make_prompts(struct ask_reader *r)
{
    r->ask->prompts = arena_array(r->arena, ASK_PROMPTS_MAX, sizeof(r->ask->prompts[0]));
    return r->ask->prompts ? ST_OK : no_memory(r);
}

/* A text, ids, texts, or lists of ids. */
static enum status read_prompt(struct ask_reader *r)
{
    TRY(make_prompts(r));
    if (json_peek(r->in) != JSON_ARRAY || ask_is_list_of_ids(r->in)) {
        return add_prompt(r);
    }
    return read_each(r, add_prompt);
}

static enum status read_suffix(struct ask_reader *r)
{
    return read_text(r, &r->ask->suffix);
}

static enum status read_text_input(struct ask_reader *r)
{
    TRY(make_prompts(r));
    return add_prompt(r);
}

static enum status read_messages(struct ask_reader *r)
{
    return ask_take_json(r, JSON_ARRAY, &r->ask->messages);
}

static enum status append_messages(struct ask_reader *r,
                                   enum status (*read)(struct ask_reader *r, struct buf *items),
                                   struct buf *items)
{
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(read(r, items));
    }
}

enum status ask_read_messages(struct ask_reader *r,
                              enum status (*read)(struct ask_reader *r, struct buf *items))
{
    struct buf items;
    buf_init(&items, ASK_MESSAGES_BYTES_MAX);
    enum status status = append_messages(r, read, &items);
    if (status == ST_OK) {
        status = ask_text_keep_list(r->arena, &items, &r->ask->messages, r->err);
    }
    buf_fini(&items);
    return status;
}

static enum status read_tools(struct ask_reader *r)
{
    return ask_take_json(r, JSON_ARRAY, &r->ask->tools);
}

static enum status read_template_values(struct ask_reader *r)
{
    return ask_take_json(r, JSON_OBJECT, &r->ask->template_values);
}

static enum status read_effort(struct ask_reader *r)
{
    return ask_effort(r->in, r->arena, r->ask, r->err);
}

static enum status read_reasoning(struct ask_reader *r)
{
    return ask_reasoning(r->in, r->arena, r->ask, r->err);
}

static enum status read_prediction(struct ask_reader *r)
{
    return ask_prediction(r->in, r->arena, &r->ask->prediction, r->err);
}

static enum status read_input(struct ask_reader *r)
{
    return ask_response_input(r->in, r->arena, r->ask, r->err);
}

static enum status read_instructions(struct ask_reader *r)
{
    return ask_response_instructions(r->in, r->ask, r->err);
}

static enum status read_flat_tools(struct ask_reader *r)
{
    return ask_response_tools(r->in, r->arena, r->ask, r->err);
}

static enum status read_turns(struct ask_reader *r)
{
    return ask_message_turns(r->in, r->arena, r->ask, r->err);
}

static enum status read_system(struct ask_reader *r)
{
    return ask_message_system(r->in, r->arena, r->ask, r->err);
}

static enum status read_message_tools(struct ask_reader *r)
{
    return ask_message_tools(r->in, r->arena, r->ask, r->err);
}

static enum status read_thinking(struct ask_reader *r)
{
    return ask_message_thinking(r->in, r->ask, r->err);
}

static enum status read_message_choice(struct ask_reader *r)
{
    return ask_message_choice(r->in, r->arena, r->ask, r->err);
}

static enum status read_metadata(struct ask_reader *r)
{
    return ask_take_json(r, JSON_OBJECT, &r->ask->metadata);
}

static enum status read_background(struct ask_reader *r)
{
    bool is_wanted;
    TRY(json_read_bool(r->in, &is_wanted, r->err));
    return is_wanted
               ? json_fail(r->in, r->err, ST_INVALID, "expected false: answers are not stored")
               : ST_OK;
}

static enum status read_tool_choice(struct ask_reader *r)
{
    return ask_tool_choice(r->in, r->arena, r->ask, r->err);
}

static enum status read_parallel(struct ask_reader *r)
{
    bool is_wanted;
    TRY(json_read_bool(r->in, &is_wanted, r->err));
    r->ask->has_one_call = !is_wanted;
    return ST_OK;
}

static bool has_bias(const struct sampler_bias *biases, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (biases[i].id == id) {
            return true;
        }
    }
    return false;
}

static enum status refuse_biases(struct ask_reader *r)
{
    return json_fail(r->in, r->err, ST_INVALID,
                     "expected at most %d ids of tokens with numbers from -100 to 100",
                     ASK_BIASES_MAX);
}

static enum status add_bias(struct ask_reader *r, uint64_t id, double value)
{
    struct sampler_options *sampler = &r->ask->sampler;
    struct sampler_bias *biases = r->biases;
    if (id >= UINT32_MAX || sampler->bias_count == ASK_BIASES_MAX ||
        !(value >= -100 && value <= 100)) {
        return refuse_biases(r);
    }
    if (has_bias(biases, sampler->bias_count, id)) {
        return json_fail(r->in, r->err, ST_INVALID, "the id repeats");
    }
    biases[sampler->bias_count++] = (struct sampler_bias){(uint32_t)id, (float)value};
    return ST_OK;
}

/* {"50256": -100} */
static enum status read_bias_object(struct ask_reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        double value;
        uint64_t id;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(json_read_f64(r->in, &value, r->err));
        json_forget_keys(r->in); /* ids are compared here: there may be more than a reader's keys */
        const uint8_t *at = key.raw.ptr, *end = at + key.raw.len;
        bool is_id = number_parse_u64(&at, end, &id) == NUMBER_OK && at == end;
        TRY(is_id ? add_bias(r, id, value) : refuse_biases(r));
    }
}

/* [50256, -100]; false is -100. */
static enum status read_bias_pair(struct ask_reader *r)
{
    uint64_t id;
    double value = -100;
    bool is_kept = false;
    TRY(json_array(r->in, r->err));
    TRY(json_element(r->in, r->err));
    if (r->in->is_closed || json_peek(r->in) != JSON_NUMBER) {
        return refuse_biases(r);
    }
    TRY(json_read_u64(r->in, &id, r->err));
    TRY(json_element(r->in, r->err));
    if (r->in->is_closed) {
        return refuse_biases(r);
    }
    TRY(json_peek(r->in) == JSON_BOOL ? json_read_bool(r->in, &is_kept, r->err)
                                      : json_read_f64(r->in, &value, r->err));
    TRY(is_kept ? refuse_biases(r) : add_bias(r, id, value));
    TRY(json_element(r->in, r->err));
    return r->in->is_closed ? ST_OK : refuse_biases(r);
}

/* As llama.cpp's clients send them, a list of pairs, or else an object. */
static enum status read_biases(struct ask_reader *r)
{
    bool may_be_list = r->ask->form & (ASK_LLAMA | ASK_INFILL);
    r->biases = arena_array(r->arena, ASK_BIASES_MAX, sizeof(r->biases[0]));
    if (!r->biases) {
        return no_memory(r);
    }
    r->ask->sampler.biases = r->biases;
    return may_be_list && json_peek(r->in) == JSON_ARRAY ? read_each(r, read_bias_pair)
                                                         : read_bias_object(r);
}

static enum status read_seed(struct ask_reader *r)
{
    int64_t seed;
    TRY(json_read_i64(r->in, &seed, r->err));
    r->ask->sampler.seed = (uint64_t)seed;
    r->ask->has_seed = true;
    return ST_OK;
}

static enum status add_stop(struct ask_reader *r)
{
    struct ask *ask = r->ask;
    struct span text;
    TRY(read_text(r, &text));
    if (text.len == 0 || text.len > ASK_STOP_BYTES_MAX || ask->stop_count == ASK_STOPS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected at most %d strings of 1 to %d bytes",
                         ASK_STOPS_MAX, ASK_STOP_BYTES_MAX);
    }
    ask->stops[ask->stop_count++] = text;
    return ST_OK;
}

static enum status read_stops(struct ask_reader *r)
{
    r->ask->stops = arena_array(r->arena, ASK_STOPS_MAX, sizeof(r->ask->stops[0]));
    if (!r->ask->stops) {
        return no_memory(r);
    }
    if (json_peek(r->in) != JSON_ARRAY) {
        return add_stop(r);
    }
    return read_each(r, add_stop);
}

static enum status read_stop_ids(struct ask_reader *r)
{
    return ask_read_ids(r->in, r->arena, ASK_BIASES_MAX, &r->ask->stop_ids, &r->ask->stop_id_count,
                        r->err);
}

static enum status read_keep_alive(struct ask_reader *r)
{
    r->ask->has_keep = true;
    return ask_read_keep(r->in, &r->ask->keep_ns, r->err);
}

static enum status read_cache_prompt(struct ask_reader *r)
{
    bool is_used;
    TRY(json_read_bool(r->in, &is_used, r->err));
    r->ask->computes_all = !is_used;
    r->says_cache = true;
    return ST_OK;
}

static enum status read_stream_options(struct ask_reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "include_usage")) {
            TRY(json_read_bool(r->in, &r->ask->wants_usage, r->err));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

static enum status read_top_count(struct ask_reader *r, uint32_t *out)
{
    uint64_t count;
    TRY(json_read_u64(r->in, &count, r->err));
    if (count > SAMPLER_TOP_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number from 0 to %d",
                         SAMPLER_TOP_MAX);
    }
    *out = (uint32_t)count;
    return ST_OK;
}

/* Of completions a number of tokens, of chats a switch beside top_logprobs. */
static enum status read_logprobs(struct ask_reader *r)
{
    if (r->ask->form != ASK_COMPLETION) {
        return json_read_bool(r->in, &r->ask->wants_logprobs, r->err);
    }
    r->ask->wants_logprobs = true;
    return read_top_count(r, &r->ask->top_count);
}

static enum status read_prompt_logprobs(struct ask_reader *r)
{
    r->ask->wants_prompt_logprobs = true;
    return read_top_count(r, &r->ask->prompt_top_count);
}

/* ---- members --------------------------------------------------------------------------------- */

#define C ASK_COMPLETION
#define M ASK_CHAT
#define G ASK_GENERATE
#define R ASK_RESPONSE
#define A ASK_MESSAGE
#define H ASK_COHERE
#define L ASK_LLAMA
#define I ASK_INFILL
#define O ASK_OLLAMA_CHAT
#define P ASK_OLLAMA_GENERATE
#define E (C | M | G | R | A | H | L | I)
#define AT(member) offsetof(struct ask, member)
#define ASK_NUMBER(name, member, forms, min, max)                                                  \
    {#name, NUMBER, forms, AT(member), min, max, NULL, NULL},
#define ASK_COUNT(name, member, forms, min, max)                                                   \
    {#name, COUNT, forms, AT(member), min, max, NULL, NULL},
#define ASK_SWITCH(name, member, forms) {#name, SWITCH, forms, AT(member), 0, 0, NULL, NULL},
#define ASK_OTHER(name, function, forms) {#name, OTHER, forms, 0, 0, 0, function, NULL},
#define ASK_REFUSED(name, forms, why) {#name, REFUSED, forms, 0, 0, 0, NULL, why},
#define ASK_ABSENT(name, forms, min, max) {#name, ABSENT, forms, 0, min, max, NULL, NULL},

static const struct member members[] = {
#include "server/language/ask.def"
};
#undef C
#undef M
#undef G
#undef R
#undef A
#undef H
#undef L
#undef I
#undef O
#undef P
#undef E

_Static_assert(sizeof(members) / sizeof(members[0]) <= ASK_MEMBERS_MAX, "a bit of |seen| for each");

static enum status read_number(struct ask_reader *r, const struct member *member)
{
    double value;
    TRY(json_read_f64(r->in, &value, r->err));
    if (!(value >= member->min && value <= member->max)) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number from %g to %g", member->min,
                         member->max);
    }
    memcpy((char *)r->ask + member->offset, &value, sizeof(value));
    return ST_OK;
}

static enum status read_count(struct ask_reader *r, const struct member *member)
{
    int64_t value;
    TRY(json_read_i64(r->in, &value, r->err));
    if (value < (int64_t)member->min || value > (int64_t)member->max) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number from %.0f to %.0f",
                         member->min, member->max);
    }
    uint32_t count = (uint32_t)value;
    memcpy((char *)r->ask + member->offset, &count, sizeof(count));
    return ST_OK;
}

static enum status read_switch(struct ask_reader *r, const struct member *member)
{
    return json_read_bool(r->in, (bool *)((char *)r->ask + member->offset), r->err);
}

/* The value that comes next as a number, where that can say that nothing is wanted. */
static enum status read_wish(struct ask_reader *r, double *out)
{
    bool is_true = false;
    struct span raw;
    switch (json_peek(r->in)) {
    case JSON_NUMBER:
        return json_read_f64(r->in, out, r->err);
    case JSON_BOOL:
        TRY(json_read_bool(r->in, &is_true, r->err));
        *out = is_true;
        return ST_OK;
    default:
        TRY(ask_text_take(r->in, &raw, r->err));
        *out = raw.len == 2 ? 0 : NAN; /* [], {} or "" */
        return ST_OK;
    }
}

/* Who asks for another way of sampling would get another answer without noticing. */
static enum status read_absent(struct ask_reader *r, const struct member *member)
{
    double wish;
    TRY(read_wish(r, &wish));
    return isnan(wish) || wish < member->min || wish > member->max
               ? json_fail(r->in, r->err, ST_INVALID,
                           "it is not done here, and would change the answer: leave it out")
               : ST_OK;
}

static enum status read_value(struct ask_reader *r, const struct member *member)
{
    if (json_peek(r->in) == JSON_NULL) {
        return json_read_null(r->in, r->err);
    }
    switch (member->kind) {
    case NUMBER:
        return read_number(r, member);
    case COUNT:
        return read_count(r, member);
    case SWITCH:
        return read_switch(r, member);
    case OTHER:
        return member->read(r);
    case ABSENT:
        return read_absent(r, member);
    case REFUSED:
        break;
    }
    TRY(json_skip(r->in, r->err));
    return json_fail(r->in, r->err, ST_INVALID, "it is not done here: %s", member->why);
}

static const struct member *find_member(const struct json_string *key, enum ask_form form)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if ((members[i].forms & form) && json_string_is(key, members[i].name)) {
            return &members[i];
        }
    }
    return NULL;
}

/* The member with members of its own, which may stand in it or beside it, not in both. */
static const char *inner_name(enum ask_form form)
{
    return form == ASK_GENERATE ? "parameters" : form & ASK_OLLAMA ? "options" : NULL;
}

static enum status read_once(struct ask_reader *r, const struct member *member)
{
    size_t row = (size_t)(member - members);
    uint64_t bit = UINT64_C(1) << row % 64;
    if (r->seen[row / 64] & bit) {
        return json_fail(r->in, r->err, ST_INVALID, "given twice, in %s and beside them",
                         inner_name(r->ask->form));
    }
    r->seen[row / 64] |= bit;
    return read_value(r, member);
}

/* A member without a row is for other servers, or a slip. */
static enum status pass_member(struct ask_reader *r, const struct json_string *key)
{
    const char *meant = NULL;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !meant; i++) {
        bool is_known = members[i].forms & r->ask->form && members[i].kind != REFUSED;
        meant = is_known && ask_is_slip(key, members[i].name) ? members[i].name : NULL;
    }
    return ask_pass(r->in, meant, r->err);
}

static enum status read_members(struct ask_reader *r, bool is_inner)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        const char *inner = is_inner ? NULL : inner_name(r->ask->form);
        bool is_generate = r->ask->form == ASK_GENERATE;
        const struct member *member = find_member(&key, r->ask->form);
        if (inner && json_string_is(&key, inner)) {
            TRY(json_peek(r->in) == JSON_NULL ? json_read_null(r->in, r->err)
                                              : read_members(r, true));
        } else if (is_generate && !is_inner && json_string_is(&key, "id")) {
            TRY(read_text(r, &r->ask->id));
        } else if (member) {
            TRY(read_once(r, member));
        } else {
            TRY(pass_member(r, &key));
        }
    }
}

/* An answer that has to be a call has no other shape. */
static enum status check_call(struct ask *ask, struct error *err)
{
    if (ask->tools.len == 0) {
        return error_set(err, ST_INVALID, "tool_choice: expected tools to choose from");
    }
    if (ask->shape != ASK_ANY_TEXT && ask->form != ASK_RESPONSE) { /* there the call counts */
        return error_set(
            err, ST_INVALID,
            "tool_choice: a call is required, so the answer cannot have another format");
    }
    ask->shape = ASK_CALL;
    ask->grammar = ask->chosen_tool;
    ask->grammar_path = "tools: ";
    return ST_OK;
}

/* A copy of JSON in one line: the end of a line would end the field of an event. JSON has them
 * between its tokens alone. */
static enum status keep_text(struct ask_reader *r, struct span *text)
{
    char *copy = arena_alloc(r->arena, text->len + 1);
    if (!copy) {
        return no_memory(r);
    }
    for (size_t i = 0; i < text->len; i++) {
        uint8_t c = text->ptr[i];
        copy[i] = c == '\n' || c == '\r' ? ' ' : (char)c;
    }
    *text = span_of(copy, text->len);
    return ST_OK;
}

/* The words NaN and Infinity, which are no JSON. |text| is right otherwise. */
static bool has_odd_numbers(struct span text)
{
    bool is_quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (is_quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            is_quoted = !is_quoted;
        } else if (!is_quoted && (c == 'N' || c == 'I')) {
            return true;
        }
    }
    return false;
}

/* What the answer repeats has to be JSON: perhaps nobody has read it yet. */
static enum status check_repeated(struct ask_reader *r, const char *name, struct span text)
{
    struct value_limits limits = VALUE_LIMITS_DEFAULT;
    struct value ignored;
    struct arena arena;
    limits.values_max = REPEATED_VALUES_MAX;
    arena_init(&arena, REPEATED_BYTES_MAX);
    enum status status = value_parse(text, &limits, &arena, &ignored, r->err);
    arena_fini(&arena);
    if (status == ST_OK && has_odd_numbers(text)) {
        status = error_set(r->err, ST_INVALID, "expected JSON, which has no NaN and no Infinity");
    }
    return status == ST_OK ? ST_OK : error_prefix(r->err, "%s: ", name);
}

/* The body is freed before the first step, so texts that the answer needs are copied. */
static enum status keep_texts(struct ask_reader *r)
{
    struct ask *ask = r->ask;
    bool is_message = ask->form == ASK_MESSAGE; /* its texts are made in the arena */
    const struct {
        const char *name; /* NULL: it is not repeated, or known to be JSON */
        struct span *text;
    } rows[] = {
        {NULL, is_message ? NULL : &ask->tools},
        {NULL, is_message ? NULL : &ask->instructions},
        {NULL, &ask->effort},
        {"tools", &ask->given_tools},
        {"tool_choice", &ask->given_choice},
        {"text.format", &ask->format},
        {"metadata", &ask->metadata},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].text && rows[i].text->len > 0) {
            TRY(rows[i].name ? check_repeated(r, rows[i].name, *rows[i].text) : ST_OK);
            TRY(keep_text(r, rows[i].text));
        }
    }
    return ST_OK;
}

/* Clients of Ollama load a model by an empty prompt. One token, without an answer, does that. */
static enum status only_load(struct ask_reader *r)
{
    static const uint32_t ids[] = {0};
    struct ask *ask = r->ask;
    TRY(make_prompts(r));
    ask->prompts[0] = (struct ask_prompt){.ids = ids, .id_count = 1};
    ask->is_load = ask->is_raw = true;
    ask->is_stream = ask->wants_logprobs = false;
    ask->prompt_count = 1;
    ask->max_tokens = 0;
    ask->shape = ASK_ANY_TEXT;
    ask->tools = ask->suffix = span_str("");
    return ST_OK;
}

static enum status check(struct ask_reader *r)
{
    const struct ask *ask = r->ask;
    bool is_response = ask->form == ASK_RESPONSE, is_chat = ask_is_chat(ask);
    const char *needed = is_response                   ? "input"
                         : is_chat                     ? "messages"
                         : ask->form == ASK_COMPLETION ? "prompt"
                         : ask->form == ASK_LLAMA      ? "prompt"
                         : ask->form == ASK_INFILL     ? "input_prefix"
                                                       : "text_input";
    if (ask->form & ASK_OLLAMA && ask->messages.len == 0) {
        return only_load(r);
    }
    if (is_chat ? ask->messages.len == 0 : ask->prompt_count == 0) {
        return error_set(r->err, ST_INVALID, "%s is missing or empty", needed);
    }
    if (is_chat && ask->top_count > 0 && !ask->wants_logprobs) {
        return error_set(r->err, ST_INVALID, "top_logprobs: expected logprobs to be true");
    }
    TRY(ask_tools_keep_allowed(r->arena, r->ask, r->err));
    if (ask->drops_tools) {
        r->ask->tools = span_str("");
    }
    if (ask->needs_call) {
        TRY(check_call(r->ask, r->err));
    }
    if (ask->has_seed && !r->says_cache) {
        r->ask->computes_all = true; /* parts of another size may round otherwise */
    }
    if (ask->best_of && ask->best_of != ask->n) {
        return error_set(r->err, ST_INVALID,
                         "best_of: expected n (%u), got %u: every answer is sent", ask->n,
                         ask->best_of);
    }
    if (ask->instructions.len > 0 && ask_has_gap(ask)) {
        return error_set(r->err, ST_INVALID, "system: not with a suffix, which takes no template");
    }
    if (ask->echoes && ask_has_gap(ask)) {
        return error_set(r->err, ST_INVALID, "echo: not with a suffix");
    }
    if (ask->wants_prompt_logprobs && ask->is_stream) {
        return error_set(r->err, ST_INVALID, "prompt_logprobs: not in a stream; echo has them");
    }
    return keep_texts(r);
}

bool ask_scores_prompt(const struct ask *ask)
{
    return ask->wants_prompt_logprobs || (ask->echoes && ask->wants_logprobs);
}

enum status ask_parse(enum ask_form form, struct span body, uint32_t depth_max, struct arena *arena,
                      struct ask *out, struct error *err)
{
    struct json *in = arena_alloc(arena, sizeof(*in));
    struct ask_reader r = {.in = in, .arena = arena, .ask = out, .err = err};
    *out = ask_new(form);
    if (!in) {
        return no_memory(&r);
    }
    json_init(in, body);
    in->depth_max = (uint16_t)(depth_max < JSON_DEPTH_MAX ? depth_max : JSON_DEPTH_MAX);
    TRY(read_members(&r, false));
    TRY(json_end(in, err));
    return check(&r);
}
