/* SPDX-License-Identifier: MIT */
/* Texts of a language model to ids of tokens, and back: a client learns the length of a prompt
 * before it sends it. */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"
#include "server/language/embedder.h"
#include "server/language/generator.h"
#include "server/language/words.h"
#include "server/process/options.h"

/* Ids of one text; the body is small. */
#define IDS_MAX (1 << 18)

/* Members that both bodies may have. */
struct words_query {
    bool is_text; /* "text" is wanted, else "tokens" */
    bool is_given;
    struct span text;
    bool is_raw; /* nothing is put around it */
    uint32_t *ids;
    uint32_t count;
};

/* The words of the model that the target names: of a language model, or of an encoder. */
struct vocabulary {
    const struct words *words;
    uint32_t size, context;
};

static enum status find_vocabulary(struct request *request, struct vocabulary *out,
                                   struct error *err)
{
    const struct model *model = api_find_ready(request, err);
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

static enum status read_text(struct request *request, struct json *in, struct words_query *query,
                             struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    return json_string_copy(&text, &request->infer.arena, "the text", &query->text, err);
}

static enum status read_ids(struct json *in, const struct vocabulary *vocabulary,
                            struct words_query *query, struct error *err)
{
    uint32_t vocab = vocabulary->size;
    TRY(json_array(in, err));
    while (true) {
        uint64_t id;
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(json_read_u64(in, &id, err));
        if (id >= vocab) {
            return json_fail(in, err, ST_INVALID, "expected ids below %u, got %" PRIu64, vocab, id);
        }
        if (query->count == IDS_MAX) {
            return json_fail(in, err, ST_INVALID, "expected at most %d ids", IDS_MAX);
        }
        query->ids[query->count++] = (uint32_t)id;
    }
}

static enum status read_members(struct request *request, const struct vocabulary *vocabulary,
                                struct words_query *query, struct error *err)
{
    struct json in;
    json_init(&in, body_span(&request->body));
    TRY(json_object(&in, err));
    while (true) {
        struct json_string key;
        bool adds = true;
        TRY(json_member(&in, &key, err));
        if (in.is_closed) {
            return json_end(&in, err);
        }
        if (query->is_text && json_string_is(&key, "text")) {
            query->is_given = true;
            TRY(read_text(request, &in, query, err));
        } else if (query->is_text && json_string_is(&key, "add_special")) {
            TRY(json_read_bool(&in, &adds, err));
            query->is_raw = !adds;
        } else if (!query->is_text && json_string_is(&key, "tokens")) {
            query->is_given = true;
            TRY(read_ids(&in, vocabulary, query, err));
        } else {
            TRY(json_skip(&in, err));
            return json_fail(&in, err, ST_INVALID, "unknown member, expected %s",
                             query->is_text ? "text or add_special" : "tokens");
        }
    }
}

static enum status read_query(struct request *request, const struct vocabulary *vocabulary,
                              struct words_query *query, struct error *err)
{
    query->ids = arena_array(&request->infer.arena, IDS_MAX, sizeof(query->ids[0]));
    if (!query->ids) {
        return arena_fail(&request->infer.arena, "the ids", err);
    }
    TRY(read_members(request, vocabulary, query, err));
    return query->is_given
               ? ST_OK
               : error_set(err, ST_INVALID, "%s is missing", query->is_text ? "text" : "tokens");
}

enum status api_tokenize(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct words_query query = {.is_text = true};
    struct buf *out = &request->out;
    struct vocabulary vocabulary;
    TRY(find_vocabulary(request, &vocabulary, err));
    TRY(read_query(request, &vocabulary, &query, err));
    struct words_room room = {.ids = query.ids, .max = IDS_MAX};
    TRY(words_encode(vocabulary.words, query.text, query.is_raw, &room, err));
    query.count = room.count;
    if (query.count > IDS_MAX) {
        return error_set(err, ST_TOO_LARGE, "text: expected at most %d tokens, got %u", IDS_MAX,
                         query.count);
    }
    buf_printf(out, "{\"count\":%u,\"context\":%u,\"tokens\":[", query.count, vocabulary.context);
    for (uint32_t i = 0; i < query.count; i++) {
        buf_printf(out, "%s%u", i ? "," : "", query.ids[i]);
    }
    buf_add_str(out, "]}");
    return api_check_printed(request, err);
}

enum status api_detokenize(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct words_query query = {.is_text = false};
    struct buf text;
    struct vocabulary vocabulary;
    TRY(find_vocabulary(request, &vocabulary, err));
    TRY(read_query(request, &vocabulary, &query, err));
    buf_init(&text, request->api->params->answer_bytes_max);
    enum status status = words_decode(vocabulary.words, query.ids, query.count, &text, err);
    if (status == ST_OK) {
        status = buf_check(&text, "the answer", err);
    }
    if (status == ST_OK) {
        buf_add_str(&request->out, "{\"text\":");
        json_print_string(&request->out, buf_span(&text));
        buf_add_char(&request->out, '}');
        status = api_check_printed(request, err);
    }
    buf_fini(&text);
    return status;
}
