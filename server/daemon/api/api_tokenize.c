/* SPDX-License-Identifier: MIT */
/*
 * Texts of a model to ids of tokens, and back: a client learns the length of a prompt before it
 * sends it. Where the target names the model, the members are pted's. Else they are those of vLLM
 * and of llama.cpp's server, whose answers are one here:
 *
 *     {"model": M, "prompt": T | "messages": [...], "add_special_tokens": B}   vLLM
 *     {"content": T, "add_special": B, "with_pieces": B}                       llama.cpp
 *
 * Those of TEI have an answer of their own, a list for each text:
 *
 *     {"inputs": T | [T], "add_special_tokens": B}                             TEI
 *
 * /decode is TEI's alone, with a list of texts:
 *
 *     {"ids": [I] | [[I]], "skip_special_tokens": B}                           TEI
 */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/utf8.h"
#include "protocol/json.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"
#include "server/language/ask.h"
#include "server/language/ask_values.h"
#include "server/language/embed_ask.h"
#include "server/language/embedder.h"
#include "server/language/generator.h"
#include "server/language/words.h"
#include "server/process/options.h"

/* Ids of one text; the body is small. */
#define IDS_MAX (1 << 18)

/* A prompt of a chat. */
#define PROMPT_BYTES_MAX (64 << 20)

/* Who has the member: pted's own routes, or those that have a model's name in the body; of texts,
 * or of ids. */
enum { OWN_TEXT = 1, ANY_TEXT = 2, OWN_IDS = 4, ANY_IDS = 8, TEI_IDS = 16 };

struct words_query {
    unsigned form;
    const char *model; /* NULL: not named */
    bool is_given, is_chat;
    struct span text;
    bool says_special, adds_special; /* what stands around a text */
    bool adds_special_else;          /* if the request does not say */
    bool wants_pieces, wants_texts;
    struct span *inputs; /* of TEI; NULL: not given */
    uint32_t input_count;
    uint32_t *ids;
    uint32_t count;
    uint32_t *ends; /* of TEI_IDS: where each list of ids ends */
    uint32_t end_count;
};

struct reader {
    struct json in;
    struct request *request;
    struct words_query *query;
    struct error *err;
};

/* The words of a language model, or of an encoder. */
struct vocabulary {
    const struct words *words;
    uint32_t size, context;
};

static bool has_words(const struct model *model)
{
    const struct model_uses *uses = &model->uses;
    return uses->generates || uses->embeds || uses->ranks;
}

static enum status find_vocabulary(struct request *request, const char *name,
                                   struct vocabulary *out, struct error *err)
{
    const struct model *model =
        api_find_named(request, name, has_words, "model with a tokenizer", err);
    if (!model) {
        return err->code;
    }
    if (model->generator) {
        const struct generator *generator = model->generator;
        *out = (struct vocabulary){generator->words, generator->vocab, generator->context};
        return ST_OK;
    }
    if (model->embedder) {
        const struct embedder *embedder = model->embedder;
        *out = (struct vocabulary){embedder->words, words_count(embedder->words),
                                   embedder->tokens_max};
        return ST_OK;
    }
    return model_refuse_texts(model, "language model", err);
}

/* ---- members --------------------------------------------------------------------------------- */

static enum status read_text(struct reader *r)
{
    struct json_string text;
    r->query->is_given = true;
    TRY(json_read_string(&r->in, &text, r->err));
    return json_string_copy(&text, &r->request->infer.arena, "the text", &r->query->text, r->err);
}

static enum status read_prompt(struct reader *r)
{
    r->query->adds_special_else = true;
    return read_text(r);
}

static enum status read_input(struct reader *r)
{
    struct words_query *query = r->query;
    if (query->input_count == EMBED_TEXTS_MAX) {
        return json_fail(&r->in, r->err, ST_INVALID, "expected at most %d texts", EMBED_TEXTS_MAX);
    }
    struct span *text = &query->inputs[query->input_count++];
    return ask_read_text(&r->in, &r->request->infer.arena, text, r->err);
}

static enum status read_inputs(struct reader *r)
{
    struct words_query *query = r->query;
    uint32_t room = json_count_elements(&r->in, EMBED_TEXTS_MAX);
    query->is_given = query->adds_special_else = true;
    query->inputs = arena_array(&r->request->infer.arena, (size_t)room + 1, sizeof(struct span));
    if (!query->inputs) {
        return arena_fail(&r->request->infer.arena, "the texts", r->err);
    }
    if (json_peek(&r->in) != JSON_ARRAY) {
        return read_input(r);
    }
    TRY(json_array(&r->in, r->err));
    while (true) {
        TRY(json_element(&r->in, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(read_input(r));
    }
}

/* The whole body is read again, as one of chats. */
static enum status read_messages(struct reader *r)
{
    r->query->is_given = r->query->is_chat = true;
    return json_skip(&r->in, r->err);
}

static enum status read_special(struct reader *r)
{
    r->query->says_special = true;
    return json_read_bool(&r->in, &r->query->adds_special, r->err);
}

static enum status read_pieces(struct reader *r)
{
    return json_read_bool(&r->in, &r->query->wants_pieces, r->err);
}

static enum status read_texts(struct reader *r)
{
    return json_read_bool(&r->in, &r->query->wants_texts, r->err);
}

static enum status read_model(struct reader *r)
{
    return ask_read_model(&r->in, &r->request->infer.arena, &r->query->model, r->err);
}

static enum status read_id(struct reader *r)
{
    struct words_query *query = r->query;
    uint64_t id;
    TRY(json_read_u64(&r->in, &id, r->err));
    if (query->count == IDS_MAX) {
        return json_fail(&r->in, r->err, ST_INVALID, "expected at most %d ids", IDS_MAX);
    }
    query->ids[query->count++] = id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
    return ST_OK;
}

static enum status read_ids(struct reader *r)
{
    r->query->is_given = true;
    TRY(json_array(&r->in, r->err));
    while (true) {
        TRY(json_element(&r->in, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(read_id(r));
    }
}

static enum status read_list(struct reader *r)
{
    struct words_query *query = r->query;
    if (query->end_count == EMBED_TEXTS_MAX) {
        return json_fail(&r->in, r->err, ST_INVALID, "expected at most %d lists", EMBED_TEXTS_MAX);
    }
    TRY(read_ids(r));
    query->ends[query->end_count++] = query->count;
    return ST_OK;
}

/* Ids, or lists of ids. */
static enum status read_lists(struct reader *r)
{
    struct words_query *query = r->query;
    struct arena *arena = &r->request->infer.arena;
    query->is_given = true;
    query->ends = arena_array(arena, EMBED_TEXTS_MAX, sizeof(query->ends[0]));
    if (!query->ends) {
        return arena_fail(arena, "the ids", r->err);
    }
    if (ask_is_list_of_ids(&r->in)) {
        return read_list(r);
    }
    TRY(json_array(&r->in, r->err));
    while (true) {
        TRY(json_element(&r->in, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(read_list(r));
    }
}

static enum status read_skip_special(struct reader *r)
{
    bool is_wanted;
    TRY(json_read_bool(&r->in, &is_wanted, r->err));
    return is_wanted ? ST_OK
                     : json_fail(&r->in, r->err, ST_INVALID,
                                 "special tokens are no text here: expected true");
}

/* Those of other servers. */
#define ANY_FORMS (ANY_TEXT | ANY_IDS | TEI_IDS)

static const struct member {
    const char *name;
    unsigned forms;
    enum status (*read)(struct reader *r);
} members[] = {
    {"text", OWN_TEXT, read_prompt},
    {"add_special", OWN_TEXT | ANY_TEXT, read_special},
    {"tokens", OWN_IDS | ANY_IDS, read_ids},
    {"model", ANY_FORMS, read_model},
    {"prompt", ANY_TEXT, read_prompt},
    {"content", ANY_TEXT, read_text},
    {"messages", ANY_TEXT, read_messages},
    {"add_special_tokens", ANY_TEXT, read_special},
    {"with_pieces", ANY_TEXT, read_pieces},
    {"return_token_strs", ANY_TEXT, read_texts},
    {"inputs", ANY_TEXT, read_inputs},
    {"ids", TEI_IDS, read_lists},
    {"skip_special_tokens", TEI_IDS, read_skip_special},
};

/* The members of the form that must be there, for people. */
static const char *needed(const struct words_query *query)
{
    return query->form == OWN_TEXT   ? "text"
           : query->form == ANY_TEXT ? "prompt, content, messages or inputs"
           : query->form == TEI_IDS  ? "ids"
                                     : "tokens";
}

/* Clients of other servers send members that change nothing here. */
static enum status read_member(struct reader *r, const struct json_string *key)
{
    unsigned form = r->query->form;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if ((members[i].forms & form) && json_string_is(key, members[i].name)) {
            bool is_null = form & ANY_FORMS && json_peek(&r->in) == JSON_NULL;
            return is_null ? json_read_null(&r->in, r->err) : members[i].read(r);
        }
    }
    TRY(json_skip(&r->in, r->err));
    return form & ANY_FORMS ? ST_OK
                            : json_fail(&r->in, r->err, ST_INVALID, "unknown member, expected %s",
                                        form == OWN_TEXT ? "text or add_special" : "tokens");
}

static enum status read_members(struct reader *r)
{
    json_init(&r->in, body_span(&r->request->body));
    TRY(json_object(&r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&r->in, &key, r->err));
        if (r->in.is_closed) {
            return json_end(&r->in, r->err);
        }
        TRY(read_member(r, &key));
    }
}

static enum status read_query(struct request *request, struct words_query *query, struct error *err)
{
    struct reader reader = {.request = request, .query = query, .err = err};
    query->ids = arena_array(&request->infer.arena, IDS_MAX, sizeof(query->ids[0]));
    if (!query->ids) {
        return arena_fail(&request->infer.arena, "the ids", err);
    }
    TRY(read_members(&reader));
    return query->is_given ? ST_OK : error_set(err, ST_INVALID, "%s is missing", needed(query));
}

/* A model that the target names is found first: without it nothing else matters. */
static enum status begin(struct request *request, struct words_query *query,
                         struct vocabulary *vocabulary, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    bool is_named = request->match.model[0] != '\0';
    query->form = is_named || query->form == TEI_IDS ? query->form : query->form << 1;
    if (is_named) {
        TRY(find_vocabulary(request, NULL, vocabulary, err));
    }
    TRY(read_query(request, query, err));
    return is_named ? ST_OK : find_vocabulary(request, query->model, vocabulary, err);
}

/* ---- to ids ---------------------------------------------------------------------------------- */

static enum status encode(const struct vocabulary *vocabulary, struct words_query *query,
                          struct span text, bool is_raw, struct error *err)
{
    struct words_room room = {.ids = query->ids, .max = IDS_MAX};
    TRY(words_encode(vocabulary->words, text, is_raw, &room, err));
    query->count = room.count;
    return query->count <= IDS_MAX
               ? ST_OK
               : error_set(err, ST_TOO_LARGE, "text: expected at most %d tokens, got %u", IDS_MAX,
                           query->count);
}

static enum status encode_chat(struct request *request, const struct vocabulary *vocabulary,
                               struct words_query *query, struct error *err)
{
    struct buf text;
    buf_init(&text, PROMPT_BYTES_MAX);
    enum status status = api_render_chat(request, ASK_CHAT, &text, err);
    if (status == ST_OK) {
        status = encode(vocabulary, query, buf_span(&text),
                        !(query->says_special && query->adds_special), err);
    }
    buf_fini(&text);
    return status;
}

static bool is_text(struct span bytes)
{
    for (size_t at = 0; at < bytes.len;) {
        bool is_ascii = bytes.ptr[at] < 0x80;
        size_t len = is_ascii ? 1 : utf8_sequence(bytes.ptr + at, bytes.ptr + bytes.len);
        if (len == 0) {
            return false;
        }
        at += len;
    }
    return true;
}

/* A text, or where a token is a part of a character its bytes. */
static void print_piece(struct buf *out, struct span bytes)
{
    if (is_text(bytes)) {
        json_print_string(out, bytes);
        return;
    }
    for (size_t i = 0; i < bytes.len; i++) {
        buf_printf(out, "%c%u", i ? ',' : '[', bytes.ptr[i]);
    }
    buf_add_char(out, ']');
}

/* How tokens are listed: 7, {"id": 7, "piece": "a"} or "a". */
enum listing { LIST_IDS, LIST_PIECES, LIST_TEXTS };

/* |piece|: room for the bytes of a token. */
static enum status print_token(struct buf *out, const struct words *words, uint32_t id,
                               enum listing listing, struct buf *piece, struct error *err)
{
    if (listing == LIST_IDS) {
        buf_printf(out, "%u", id);
        return ST_OK;
    }
    buf_reset(piece);
    TRY(words_bytes(words, id, piece, err));
    if (listing == LIST_TEXTS) {
        json_print_string(out, buf_span(piece));
    } else {
        buf_printf(out, "{\"id\":%u,\"piece\":", id);
        print_piece(out, buf_span(piece));
        buf_add_char(out, '}');
    }
    return ST_OK;
}

static enum status print_tokens(struct buf *out, const struct words *words,
                                const struct words_query *query, enum listing listing,
                                struct error *err)
{
    struct buf piece;
    enum status status = ST_OK;
    buf_init(&piece, GENERATOR_TOKEN_BYTES_MAX);
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < query->count && status == ST_OK; i++) {
        buf_add_str(out, i ? "," : "");
        status = print_token(out, words, query->ids[i], listing, &piece, err);
    }
    buf_add_char(out, ']');
    buf_fini(&piece);
    return status;
}

/* {"id", "text", "special", "start", "stop"}: where in its text a token begins is not known. */
static enum status print_simple(struct buf *out, const struct words *words, uint32_t id,
                                struct buf *piece, struct error *err)
{
    buf_reset(piece);
    TRY(words_bytes(words, id, piece, err));
    buf_printf(out, "{\"id\":%u,\"text\":", id);
    json_print_string(out, buf_span(piece));
    buf_printf(out, ",\"special\":%s,\"start\":null,\"stop\":null}",
               words_is_special(words, id) ? "true" : "false");
    return ST_OK;
}

/* The tokens of each text of TEI's form. */
static enum status print_inputs(struct buf *out, const struct vocabulary *vocabulary,
                                struct words_query *query, struct error *err)
{
    struct buf piece;
    enum status status = ST_OK;
    bool is_around = !query->says_special || query->adds_special;
    buf_init(&piece, GENERATOR_TOKEN_BYTES_MAX);
    for (uint32_t i = 0; i < query->input_count && status == ST_OK; i++) {
        status = encode(vocabulary, query, query->inputs[i], !is_around, err);
        buf_add_str(out, i ? ",[" : "[[");
        for (uint32_t j = 0; status == ST_OK && j < query->count; j++) {
            buf_add_str(out, j ? "," : "");
            status = print_simple(out, vocabulary->words, query->ids[j], &piece, err);
        }
        buf_add_char(out, ']');
    }
    buf_add_str(out, query->input_count ? "]" : "[]");
    buf_fini(&piece);
    return status;
}

enum status api_tokenize(struct request *request, struct error *err)
{
    struct words_query query = {.form = OWN_TEXT};
    struct buf *out = &request->out;
    struct vocabulary vocabulary;
    TRY(begin(request, &query, &vocabulary, err));
    if (query.inputs) {
        TRY(print_inputs(out, &vocabulary, &query, err));
        return api_check_printed(request, err);
    }
    if (query.is_chat) {
        TRY(encode_chat(request, &vocabulary, &query, err));
    } else {
        bool is_around = query.says_special ? query.adds_special : query.adds_special_else;
        TRY(encode(&vocabulary, &query, query.text, !is_around, err));
    }
    buf_printf(out, "{\"count\":%u,\"%s\":%u,\"tokens\":", query.count,
               query.form == OWN_TEXT ? "context" : "max_model_len", vocabulary.context);
    TRY(print_tokens(out, vocabulary.words, &query, query.wants_pieces ? LIST_PIECES : LIST_IDS,
                     err));
    if (query.form == ANY_TEXT) {
        buf_add_str(out, ",\"token_strs\":");
        if (query.wants_texts) {
            TRY(print_tokens(out, vocabulary.words, &query, LIST_TEXTS, err));
        } else {
            buf_add_str(out, "null");
        }
    }
    buf_add_char(out, '}');
    return api_check_printed(request, err);
}

/* ---- to a text ------------------------------------------------------------------------------- */

static enum status check_ids(const struct words_query *query, const struct vocabulary *vocabulary,
                             struct error *err)
{
    for (uint32_t i = 0; i < query->count; i++) {
        if (query->ids[i] >= vocabulary->size) {
            return query->ends
                       ? error_set(err, ST_INVALID, "ids: expected ids below %u, got %u",
                                   vocabulary->size, query->ids[i])
                       : error_set(err, ST_INVALID, "tokens[%u]: expected ids below %u, got %u", i,
                                   vocabulary->size, query->ids[i]);
        }
    }
    return ST_OK;
}

static void print_text(struct buf *out, unsigned form, struct span text)
{
    static const char *const own[] = {"text"}, *const any[] = {"prompt", "content"};
    const char *const *names = form == OWN_IDS ? own : any;
    for (int i = 0; i < (form == OWN_IDS ? 1 : 2); i++) {
        buf_printf(out, "%c\"%s\":", i ? ',' : '{', names[i]);
        json_print_string(out, text);
    }
    buf_add_char(out, '}');
}

enum status api_detokenize(struct request *request, struct error *err)
{
    struct words_query query = {.form = OWN_IDS};
    struct buf text;
    struct vocabulary vocabulary;
    TRY(begin(request, &query, &vocabulary, err));
    TRY(check_ids(&query, &vocabulary, err));
    buf_init(&text, request->api->params->answer_bytes_max);
    enum status status = words_decode(vocabulary.words, query.ids, query.count, &text, err);
    if (status == ST_OK) {
        status = buf_check(&text, "the answer", err);
    }
    if (status == ST_OK) {
        print_text(&request->out, query.form, buf_span(&text));
        status = api_check_printed(request, err);
    }
    buf_fini(&text);
    return status;
}

/* The texts of the lists of ids; |text| is room for one. */
static enum status print_lists(struct buf *out, const struct words *words,
                               const struct words_query *query, struct buf *text, struct error *err)
{
    uint32_t begin = 0;
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < query->end_count; i++) {
        uint32_t end = query->ends[i];
        buf_reset(text);
        TRY(words_decode(words, query->ids + begin, end - begin, text, err));
        TRY(buf_check(text, "the answer", err));
        buf_add_str(out, i ? "," : "");
        json_print_string(out, buf_span(text));
        begin = end;
    }
    buf_add_char(out, ']');
    return ST_OK;
}

enum status api_decode(struct request *request, struct error *err)
{
    struct words_query query = {.form = TEI_IDS};
    struct buf text;
    struct vocabulary vocabulary;
    TRY(begin(request, &query, &vocabulary, err));
    TRY(check_ids(&query, &vocabulary, err));
    buf_init(&text, request->api->params->answer_bytes_max);
    enum status status = print_lists(&request->out, vocabulary.words, &query, &text, err);
    buf_fini(&text);
    TRY(status);
    return api_check_printed(request, err);
}
