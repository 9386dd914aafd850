/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/embed_ask.h"

#include <string.h>

#include "protocol/json.h"
#include "server/language/ask_values.h"

#define IDS_MAX (1u << 20) /* of a text that is given as ids */
#define DIMENSIONS_MAX (1u << 20)

struct reader {
    struct json *in;
    struct arena *arena;
    struct embed_ask *ask;
    bool says_texts;         /* whether the answer has the texts */
    enum embed_form settled; /* by the member that has the texts; 0: not yet */
    struct error *err;
};

typedef enum status reader_f(struct reader *r);

static enum status no_memory(struct reader *r)
{
    return arena_fail(r->arena, "the request", r->err);
}

static enum status read_text(struct reader *r, struct span *out)
{
    return ask_read_text(r->in, r->arena, out, r->err);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static enum status read_ids(struct reader *r, struct embed_text *out)
{
    TRY(ask_read_ids(r->in, r->arena, IDS_MAX, &out->ids, &out->id_count, r->err));
    return out->id_count > 0
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected at least one id of a token");
}

/* {"text": "..."}, as Jina's clients may send documents. */
static enum status read_document(struct reader *r, struct span *out)
{
    bool is_given = false;
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return is_given ? ST_OK : json_fail(r->in, r->err, ST_INVALID, "text is missing");
        }
        if (json_string_is(&key, "text")) {
            is_given = true;
            TRY(read_text(r, out));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

static bool takes_ids(const struct reader *r)
{
    return r->ask->form &
           (EMBED_OPENAI | EMBED_TEI | EMBED_TEI_ALL | EMBED_TEI_SPARSE | EMBED_LLAMA);
}

static enum status add_text(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    if (ask->text_count == EMBED_TEXTS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected at most %d texts", EMBED_TEXTS_MAX);
    }
    struct embed_text *text = &ask->texts[ask->text_count++];
    enum json_type type = json_peek(r->in);
    if (type == JSON_ARRAY && takes_ids(r)) {
        return read_ids(r, text);
    }
    return type == JSON_OBJECT && embed_ask_has_documents(ask) ? read_document(r, &text->text)
                                                               : read_text(r, &text->text);
}

static enum status make_room(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    uint32_t room = json_count_elements(r->in, EMBED_TEXTS_MAX);
    ask->text_count = 0;
    ask->texts = arena_array(r->arena, (size_t)room + 1, sizeof(ask->texts[0]));
    return ask->texts ? ST_OK : no_memory(r);
}

/* A text, texts, and of encoders ids or lists of ids. */
static enum status read_texts(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    TRY(make_room(r));
    bool is_list = json_peek(r->in) == JSON_ARRAY,
         is_ids = takes_ids(r) && ask_is_list_of_ids(r->in);
    bool may_be_one = !embed_ask_ranks(ask) || ask->form == SCORE_VLLM;
    if ((!is_list && may_be_one) || is_ids) {
        return add_text(r);
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ask->text_count > 0
                       ? ST_OK
                       : json_fail(r->in, r->err, ST_INVALID, "expected at least one text");
        }
        TRY(add_text(r));
    }
}

/* ---- queries --------------------------------------------------------------------------------- */

static enum status make_query_room(struct reader *r, uint32_t count)
{
    r->ask->query_count = 0;
    r->ask->queries = arena_array(r->arena, (size_t)count + 1, sizeof(r->ask->queries[0]));
    return r->ask->queries ? ST_OK : no_memory(r);
}

static enum status add_query(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    return ask->query_count == EMBED_TEXTS_MAX
               ? json_fail(r->in, r->err, ST_INVALID, "expected at most %d texts", EMBED_TEXTS_MAX)
               : read_text(r, &ask->queries[ask->query_count++]);
}

static enum status read_query(struct reader *r)
{
    TRY(make_query_room(r, 1));
    return add_query(r);
}

/* Of SCORE_VLLM: a text, or texts, in one of several members. */
static enum status read_queries(struct reader *r)
{
    if (r->ask->queries) {
        return json_fail(r->in, r->err, ST_INVALID, "expected either text_1 or queries");
    }
    TRY(make_query_room(r, json_count_elements(r->in, EMBED_TEXTS_MAX)));
    if (json_peek(r->in) != JSON_ARRAY) {
        return add_query(r);
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(add_query(r));
    }
}

static enum status read_scored(struct reader *r)
{
    return r->ask->texts
               ? json_fail(r->in, r->err, ST_INVALID, "expected one of text_2, documents and items")
               : read_texts(r);
}

/* ---- pairs and sentences --------------------------------------------------------------------- */

/* The rest of a list, whose first element comes next: a text, or the two of a pair. */
static enum status add_pair(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    if (ask->text_count == EMBED_TEXTS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected at most %d texts", EMBED_TEXTS_MAX);
    }
    struct embed_text *text = &ask->texts[ask->text_count++];
    TRY(read_text(r, &text->text));
    TRY(json_element(r->in, r->err));
    if (r->in->is_closed) {
        return ST_OK;
    }
    text->is_pair = true;
    TRY(read_text(r, &text->second));
    TRY(json_element(r->in, r->err));
    return r->in->is_closed ? ST_OK
                            : json_fail(r->in, r->err, ST_INVALID, "expected one text or two");
}

static enum status begin_list(struct reader *r)
{
    TRY(json_array(r->in, r->err));
    TRY(json_element(r->in, r->err));
    return r->in->is_closed ? json_fail(r->in, r->err, ST_INVALID, "expected one text or two")
                            : ST_OK;
}

/* "a", ["a"] and ["a", "b"] are one text or pair; [["a"], ["b", "c"]] are several. */
static enum status read_classified(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    TRY(make_room(r));
    ask->is_one = true;
    if (json_peek(r->in) != JSON_ARRAY) {
        return add_text(r);
    }
    TRY(begin_list(r));
    if (json_peek(r->in) != JSON_ARRAY) {
        return add_pair(r);
    }
    ask->is_one = false;
    do {
        TRY(begin_list(r));
        TRY(add_pair(r));
        TRY(json_element(r->in, r->err));
    } while (!r->in->is_closed);
    return ST_OK;
}

/* {"source_sentence": "...", "sentences": ["..."]} */
static enum status read_sentences(struct reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "source_sentence")) {
            TRY(read_query(r));
        } else if (json_string_is(&key, "sentences")) {
            TRY(read_texts(r));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

static enum status read_one_text(struct reader *r)
{
    return json_peek(r->in) == JSON_STRING
               ? read_texts(r)
               : json_fail(r->in, r->err, ST_INVALID, "expected a text");
}

/* A body of /rerank has one of the two forms. */
static enum status read_texts_of(struct reader *r, enum embed_form form)
{
    if (r->settled) {
        return json_fail(r->in, r->err, ST_INVALID, "expected either texts or documents");
    }
    r->settled = form;
    return read_texts(r);
}

static enum status read_tei_texts(struct reader *r)
{
    return read_texts_of(r, RANK_TEI);
}

static enum status read_documents(struct reader *r)
{
    return read_texts_of(r, r->ask->form == RANK_COHERE ? RANK_COHERE : RANK_JINA);
}

/* ---- other members --------------------------------------------------------------------------- */

static enum status read_tagged_model(struct reader *r)
{
    return ask_read_tagged_model(r->in, r->arena, &r->ask->model, r->err);
}

static enum status read_model(struct reader *r)
{
    return ask_read_model(r->in, r->arena, &r->ask->model, r->err);
}

static enum status read_format(struct reader *r)
{
    struct json_string format;
    TRY(json_read_string(r->in, &format, r->err));
    r->ask->is_base64 = json_string_is(&format, "base64");
    return r->ask->is_base64 || json_string_is(&format, "float")
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected \"float\" or \"base64\"");
}

static enum status read_count(struct reader *r, uint32_t *out)
{
    uint64_t count;
    TRY(json_read_u64(r->in, &count, r->err));
    if (count < 1 || count > DIMENSIONS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number from 1 to %u",
                         DIMENSIONS_MAX);
    }
    *out = (uint32_t)count;
    return ST_OK;
}

static enum status read_dimensions(struct reader *r)
{
    return read_count(r, &r->ask->dimensions);
}

static enum status read_top(struct reader *r)
{
    return read_count(r, &r->ask->top_count);
}

static enum status read_normalize(struct reader *r)
{
    r->ask->says_normalize = true;
    return json_read_bool(r->in, &r->ask->normalizes, r->err);
}

static enum status read_truncate(struct reader *r)
{
    return json_read_bool(r->in, &r->ask->cuts, r->err);
}

/* vLLM's: -1 is what the model takes. */
static enum status read_cut_tokens(struct reader *r)
{
    int64_t count;
    TRY(json_read_i64(r->in, &count, r->err));
    if (count < -1 || count == 0 || count > IDS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected -1, or a number from 1 to %u",
                         IDS_MAX);
    }
    r->ask->cuts = true;
    r->ask->cut_tokens = count > 0 ? (uint32_t)count : 0;
    return ST_OK;
}

static enum status refuse_side(struct reader *r, const char *side)
{
    return json_fail(r->in, r->err, ST_INVALID, "texts are cut at their end: expected \"%s\"",
                     side);
}

/* "NONE", "END" or "START", as Cohere's clients send it. */
static enum status read_cut(struct reader *r)
{
    struct json_string side;
    TRY(json_read_string(r->in, &side, r->err));
    r->ask->cuts = json_string_is(&side, "END");
    return json_string_is(&side, "START") ? refuse_side(r, "END")
           : r->ask->cuts || json_string_is(&side, "NONE")
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected \"NONE\" or \"END\"");
}

/* A list of "float" and "base64". */
static enum status read_types(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    ask->has_floats = ask->is_base64 = false;
    ask->has_types = true;
    TRY(json_array(r->in, r->err));
    while (true) {
        struct json_string type;
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ask->has_floats || ask->is_base64
                       ? ST_OK
                       : json_fail(r->in, r->err, ST_INVALID, "expected at least one type");
        }
        TRY(json_read_string(r->in, &type, r->err));
        bool is_float = json_string_is(&type, "float"), is_base64 = json_string_is(&type, "base64");
        ask->has_floats |= is_float;
        ask->is_base64 |= is_base64;
        if (!is_float && !is_base64) {
            return json_fail(r->in, r->err, ST_INVALID, "expected \"float\" or \"base64\"");
        }
    }
}

static enum status refuse(struct reader *r)
{
    TRY(json_skip(r->in, r->err));
    return json_fail(r->in, r->err, ST_INVALID,
                     "it is not done here, and would change the answer: leave it out");
}

static enum status read_direction(struct reader *r)
{
    struct json_string side;
    TRY(json_read_string(r->in, &side, r->err));
    return json_string_is(&side, "Right") || json_string_is(&side, "right") ? ST_OK
           : json_string_is(&side, "Left") || json_string_is(&side, "left")
               ? refuse_side(r, "Right")
               : json_fail(r->in, r->err, ST_INVALID, "expected \"Right\"");
}

/* Of SIMILAR_TEI: what other forms have beside their texts. */
static enum status read_parameters(struct reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        bool is_null = json_peek(r->in) == JSON_NULL;
        if (!is_null && json_string_is(&key, "truncate")) {
            TRY(read_truncate(r));
        } else if (!is_null && json_string_is(&key, "truncation_direction")) {
            TRY(read_direction(r));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

static enum status read_keep_alive(struct reader *r)
{
    r->ask->has_keep = true;
    return ask_read_keep(r->in, &r->ask->keep_ns, r->err);
}

static enum status read_raw_scores(struct reader *r)
{
    return json_read_bool(r->in, &r->ask->wants_raw_scores, r->err);
}

/* vLLM's: false leaves the scores as the model gives them. */
static enum status read_activation(struct reader *r)
{
    bool is_wanted;
    TRY(json_read_bool(r->in, &is_wanted, r->err));
    r->ask->wants_raw_scores = !is_wanted;
    return ST_OK;
}

/* Of POOL_VLLM. */
static enum status read_task(struct reader *r)
{
    static const struct {
        const char *name;
        enum embed_task task;
    } tasks[] = {{"embed", EMBED_TEXT_TASK},
                 {"token_embed", EMBED_TOKENS_TASK},
                 {"classify", EMBED_CLASSES_TASK}};
    struct json_string name;
    TRY(json_read_string(r->in, &name, r->err));
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        if (json_string_is(&name, tasks[i].name)) {
            r->ask->task = tasks[i].task;
            return ST_OK;
        }
    }
    return json_fail(r->in, r->err, ST_INVALID,
                     "expected \"embed\", \"token_embed\" or \"classify\"");
}

/* Of EMBED_LLAMA: how a vector is normalized. */
static enum status read_norm(struct reader *r)
{
    int64_t norm;
    TRY(json_read_i64(r->in, &norm, r->err));
    r->ask->says_normalize = true;
    r->ask->normalizes = norm == 2;
    return norm == 2 || norm == -1
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected 2 (Euclidean) or -1 (none)");
}

/* Of EMBED_LLAMA: what the texts come in says whose form it is. */
static enum status read_texts_in(struct reader *r, enum embed_form form)
{
    if (r->settled) {
        return json_fail(r->in, r->err, ST_INVALID, "expected either content or input");
    }
    r->settled = form;
    return read_texts(r);
}

static enum status read_content(struct reader *r)
{
    return read_texts_in(r, EMBED_LLAMA);
}

static enum status read_input(struct reader *r)
{
    return read_texts_in(r, EMBED_OPENAI);
}

static enum status read_wants_texts(struct reader *r)
{
    r->says_texts = true;
    return json_read_bool(r->in, &r->ask->wants_texts, r->err);
}

/* ---- all members ----------------------------------------------------------------------------- */

#define OLLAMA (EMBED_OLLAMA | EMBED_OLLAMA_ONE)
#define TEI (EMBED_TEI | EMBED_TEI_ALL | EMBED_TEI_SPARSE)
#define EMBEDS_COHERE (EMBED_COHERE | EMBED_COHERE_ONE)
#define COHERE (RANK_COHERE | EMBEDS_COHERE)
#define VLLM (SCORE_VLLM | CLASSIFY_VLLM | POOL_VLLM)
#define ANY                                                                                        \
    (EMBED_OPENAI | TEI | PREDICT_TEI | SIMILAR_TEI | RANK_ROOT | COHERE | OLLAMA | VLLM |         \
     EMBED_LLAMA)

static const struct member {
    const char *name;
    unsigned forms;
    reader_f *read;
} members[] = {
    {"model", ANY & ~OLLAMA, read_model},
    {"model", OLLAMA, read_tagged_model},
    {"input", EMBED_OPENAI | EMBED_OLLAMA | CLASSIFY_VLLM | POOL_VLLM, read_texts},
    {"input", EMBED_LLAMA, read_input},
    {"content", EMBED_LLAMA, read_content},
    {"embd_normalize", EMBED_LLAMA, read_norm},
    {"text_1", SCORE_VLLM, read_queries},
    {"queries", SCORE_VLLM, read_queries},
    {"text_2", SCORE_VLLM, read_scored},
    {"documents", SCORE_VLLM, read_scored},
    {"items", SCORE_VLLM, read_scored},
    {"task", POOL_VLLM, read_task},
    {"use_activation", VLLM, read_activation},
    {"truncate_prompt_tokens", EMBED_OPENAI | VLLM | RANK_JINA, read_cut_tokens},
    {"prompt", EMBED_OLLAMA_ONE, read_one_text},
    {"inputs", TEI, read_texts},
    {"inputs", PREDICT_TEI, read_classified},
    {"texts", RANK_TEI, read_tei_texts},
    {"texts", EMBEDS_COHERE, read_texts},
    {"documents", RANK_JINA | RANK_COHERE, read_documents},
    {"query", RANK_ROOT | RANK_COHERE, read_query},
    {"encoding_format", EMBED_OPENAI | EMBED_LLAMA | POOL_VLLM, read_format},
    {"dimensions", EMBED_OPENAI | EMBED_TEI | EMBED_OLLAMA | EMBED_LLAMA | POOL_VLLM,
     read_dimensions},
    {"normalize", EMBED_TEI, read_normalize},
    {"truncate", ANY & ~EMBEDS_COHERE, read_truncate},
    {"truncate", EMBEDS_COHERE, read_cut},
    {"embedding_types", EMBEDS_COHERE, read_types},
    {"output_dimension", EMBED_COHERE, read_dimensions},
    {"max_tokens", EMBED_COHERE, refuse},
    {"images", EMBEDS_COHERE, refuse},
    {"inputs", EMBED_COHERE, refuse},
    {"inputs", SIMILAR_TEI, read_sentences},
    {"parameters", SIMILAR_TEI, read_parameters},
    {"truncation_direction", TEI | PREDICT_TEI | RANK_TEI, read_direction},
    {"keep_alive", ANY, read_keep_alive},
    {"raw_scores", PREDICT_TEI | RANK_TEI, read_raw_scores},
    {"return_text", RANK_TEI, read_wants_texts},
    {"return_documents", RANK_JINA | RANK_COHERE, read_wants_texts},
    {"top_n", RANK_JINA | RANK_COHERE, read_top},
};

/* A member without a row is for other servers, or a slip. */
static enum status pass_member(struct reader *r, const struct json_string *key)
{
    const char *meant = NULL;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !meant; i++) {
        bool is_known = members[i].forms & r->ask->form;
        meant = is_known && ask_is_slip(key, members[i].name) ? members[i].name : NULL;
    }
    return ask_pass(r->in, meant, r->err);
}

static enum status read_member(struct reader *r, const struct json_string *key)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const struct member *member = &members[i];
        if ((member->forms & r->ask->form) && json_string_is(key, member->name)) {
            return json_peek(r->in) == JSON_NULL ? json_read_null(r->in, r->err) : member->read(r);
        }
    }
    return pass_member(r, key);
}

static enum status read_members(struct reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return json_end(r->in, r->err);
        }
        TRY(read_member(r, &key));
    }
}

/* Members of the other form mean nothing. */
static void settle(struct reader *r)
{
    struct embed_ask *ask = r->ask;
    ask->form = r->settled ? r->settled : ask->form;
    if (!(ask->form & (PREDICT_TEI | RANK_TEI | VLLM))) {
        ask->wants_raw_scores = false;
    }
    if (!embed_ask_has_documents(ask)) {
        ask->top_count = 0;
    }
    if (!r->says_texts) {
        ask->wants_texts = ask->form == RANK_JINA;
    }
}

const char *embed_ask_member(const struct embed_ask *ask)
{
    static const struct {
        unsigned forms;
        const char *name;
    } rows[] = {
        {EMBED_OPENAI | EMBED_OLLAMA | CLASSIFY_VLLM | POOL_VLLM, "input"},
        {TEI | PREDICT_TEI, "inputs"},
        {EMBED_OLLAMA_ONE, "prompt"},
        {EMBEDS_COHERE, "texts"},
        {SIMILAR_TEI, "inputs.sentences"},
        {SCORE_VLLM, "text_2"},
        {EMBED_LLAMA, "content"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].forms & ask->form) {
            return rows[i].name;
        }
    }
    return ask->form == RANK_TEI    ? "texts"
           : ask->form == RANK_ROOT ? "texts or documents"
                                    : "documents";
}

const char *embed_ask_query_member(const struct embed_ask *ask)
{
    return ask->form == SIMILAR_TEI  ? "inputs.source_sentence"
           : ask->form == SCORE_VLLM ? "text_1"
                                     : "query";
}

static enum status check_queries(const struct embed_ask *ask, struct error *err)
{
    if (embed_ask_ranks(ask) && ask->query_count == 0) {
        return error_set(err, ST_INVALID, "%s is missing", embed_ask_query_member(ask));
    }
    return ask->query_count <= 1 || ask->query_count == ask->text_count
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "text_1: expected one text, or as many as text_2 has (%u), got %u",
                           ask->text_count, ask->query_count);
}

enum status embed_ask_parse(enum embed_form form, struct span body, uint32_t depth_max,
                            struct arena *arena, struct embed_ask *out, struct error *err)
{
    struct json in;
    json_init(&in, body);
    in.depth_max = depth_max < JSON_LEVELS_MAX ? (uint16_t)depth_max : JSON_LEVELS_MAX;
    *out = (struct embed_ask){.form = form, .cuts = form & (COHERE | OLLAMA), .has_floats = true};
    struct reader reader = {.in = &in, .arena = arena, .ask = out, .err = err};
    TRY(read_members(&reader));
    settle(&reader);
    if (!out->texts) {
        return error_set(err, ST_INVALID, "%s is missing", embed_ask_member(out));
    }
    return check_queries(out, err);
}
