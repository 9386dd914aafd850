/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/embedding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uv.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/infer/stats.h"
#include "server/daemon/serving/serving.h"
#include "server/language/embed_ask.h"
#include "server/language/embed_reply.h"
#include "server/language/embedder.h"
#include "server/language/texts.h"
#include "server/language/words.h"

#define EMBEDDING_MAGIC 0x656d6264u

struct embedding {
    uint32_t magic;
    struct embed_ask ask;
    const struct embedder *embedder; /* of the request's model, which the request holds */
    struct texts_ids *items;         /* texts, the query before them, or pairs; in the arena */
    uint32_t item_count, done_count;
    uint32_t rows, length;     /* of the present run */
    uint32_t query_count;      /* of |items|, the first ones: queries, whose vectors are compared */
    struct hal_buffer *memory; /* ref held; of the memory for requests */
    float *vectors; /* in |memory|: of each item, as the model gives it; then room for scores */
    const float *answer; /* within |vectors|: |width| floats for each text */
    uint32_t width;
    uint64_t token_count;
    size_t state_count;      /* of a vector for each token: taken so far */
    struct runs_times times; /* the loop's */
};

static struct embedding *embedding_of(const struct infer *infer)
{
    struct embedding *embedding;
    OBJ_CAST(embedding, infer->own, EMBEDDING_MAGIC);
    return embedding;
}

static void free_embedding(struct infer *infer)
{
    struct embedding *embedding = embedding_of(infer);
    hal_buffer_unref(embedding->memory);
    embedding->magic = 0;
    free(embedding);
}

static enum status embedding_new(struct infer *infer, struct error *err)
{
    struct embedding *embedding = calloc(1, sizeof(*embedding));
    if (!embedding) {
        return error_no_memory(err, "an embedding");
    }
    embedding->magic = EMBEDDING_MAGIC;
    infer->own = embedding;
    return ST_OK;
}

/* ---- PARSE: the model ------------------------------------------------------------------------ */

static int find(struct infer *infer, struct error *err)
{
    return infer->model_name[0] ? infer_find_target(infer, err) : infer_find_any(infer, err);
}

/* How well models can answer, best first: for a ranking those that read pairs come first. */
#define PLACES (2 * EMBEDDER_CLAIMS)

struct answerers {
    uint32_t counts[PLACES];
    char names[PLACES][MODEL_NAME_MAX + 1]; /* of the last one */
};

#define CLASSIFIES (PREDICT_TEI | CLASSIFY_VLLM)

/* PLACES: it cannot. */
static unsigned place_of(const struct model_uses *uses, enum embed_form form)
{
    bool is_ranking = form & (RANK_ROOT | RANK_COHERE | SCORE_VLLM);
    if (form & CLASSIFIES) {
        return uses->embeds && uses->embeds_claim == EMBEDDER_CLASSES ? 0
               : uses->ranks                                          ? 1
                                                                      : PLACES;
    }
    return uses->ranks && is_ranking ? uses->embeds_claim
           : uses->embeds            ? uses->embeds_claim + EMBEDDER_CLAIMS
                                     : PLACES;
}

static void note_answerer(struct answerers *all, const struct model *model, enum embed_form form)
{
    unsigned place = place_of(&model->uses, form);
    if (!model_is_to_be_had(model) || place == PLACES) {
        return;
    }
    all->counts[place] += strcmp(all->names[place], model->name) != 0; /* versions are neighbours */
    snprintf(all->names[place], sizeof(all->names[place]), "%s", model->name);
}

enum status embedding_find_only(struct infer *infer, enum embed_form form,
                                char out_name[MODEL_NAME_MAX + 1], struct error *err)
{
    struct repository_index *index = repository_ref_index(&infer->serving->repository);
    struct answerers all = {.counts = {0}};
    unsigned best = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        note_answerer(&all, index->models[i], form);
    }
    repository_unref_index(index);
    while (best < PLACES && all.counts[best] == 0) {
        best++;
    }
    if (best == PLACES) {
        return error_set(err, ST_NOT_FOUND, "no %s of texts is loaded",
                         form & CLASSIFIES ? "classifier" : "encoder");
    }
    snprintf(out_name, MODEL_NAME_MAX + 1, "%s", all.names[best]);
    return all.counts[best] == 1 ? ST_OK : runs_fail_several(err);
}

static bool is_ranking(const struct embedding *embedding)
{
    return embed_ask_ranks(&embedding->ask);
}

/* Scores of classes: what a classifier of texts gives, or a cross-encoder. */
static bool gives_classes(const struct model *model)
{
    const struct embedder *embedder = model->embedder;
    return !embedder->has_states && (embedder->is_ranker || embedder->claim == EMBEDDER_CLASSES);
}

static enum status check_use(const struct embedding *embedding, const struct model *model,
                             struct error *err)
{
    const struct embedder *embedder = embedding->embedder;
    const struct embed_ask *ask = &embedding->ask;
    enum embed_form form = ask->form;
    if (ask->dimensions && (embed_ask_has_tokens(ask) || embed_ask_classifies(ask))) {
        return error_set(err, ST_INVALID, "dimensions: expected a task with one vector a text");
    }
    if (embed_ask_classifies(ask)) {
        return gives_classes(model)
                   ? ST_OK
                   : error_set(err, ST_INVALID,
                               "model '%s' gives vectors of texts, not scores of classes: use "
                               "/embed",
                               model->name);
    }
    if (embedder->is_ranker && (!is_ranking(embedding) || form == SIMILAR_TEI)) {
        return error_set(err, ST_INVALID,
                         "model '%s' gives scores of pairs, not vectors of texts: use /rerank",
                         model->name);
    }
    if (embed_ask_has_tokens(ask) && !embedder->has_states) {
        return error_set(err, ST_INVALID,
                         "model '%s' gives one vector for each text, not one for each token",
                         model->name);
    }
    return form != EMBED_TEI_SPARSE || embedder->pooling == EMBEDDER_SPLADE
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "model '%s' gives no sparse vectors: that takes a program with logits "
                           "of words, and a card with \"pooling\": \"splade\"",
                           model->name);
}

/* What a request for anything gets: all that the model gives, as vLLM has it. */
static void settle_task(struct embedding *embedding, const struct model *model)
{
    struct embed_ask *ask = &embedding->ask;
    if (ask->form == POOL_VLLM && ask->task == EMBED_ANY_TASK) {
        ask->task = model->embedder->has_states ? EMBED_TOKENS_TASK
                    : gives_classes(model)      ? EMBED_CLASSES_TASK
                                                : EMBED_TEXT_TASK;
    }
}

static enum status find_model(struct infer *infer, struct embedding *embedding, struct error *err)
{
    struct infer_call *call = &infer->call;
    char only[MODEL_NAME_MAX + 1];
    const char *name = embedding->ask.model ? embedding->ask.model : infer->model_name;
    if (!call->model && !*name) {
        TRY(embedding_find_only(infer, embedding->ask.form, only, err));
        name = only;
    }
    if (!call->model) {
        TRY(infer_find_model(infer, call, name, infer->version, err));
    }
    embedding->embedder = call->model->embedder;
    if (!embedding->embedder) {
        return model_refuse_texts(call->model, "encoder of texts", err);
    }
    settle_task(embedding, call->model);
    TRY(check_use(embedding, call->model, err));
    /* For logs: the target may have no name. */
    snprintf(infer->model_name, MODEL_NAME_MAX + 1, "%s", call->model->name);
    return ST_OK;
}

/* ---- PARSE: the texts ------------------------------------------------------------------------ */

static enum status check_ids(const struct embedding *embedding, const struct embed_text *text,
                             struct error *err)
{
    uint32_t size = words_count(embedding->embedder->words);
    for (uint32_t i = 0; i < text->id_count; i++) {
        if (text->ids[i] >= size) {
            return error_set(err, ST_INVALID, "expected ids below %u, got %u", size, text->ids[i]);
        }
    }
    return ST_OK;
}

static uint32_t tokens_max(const struct embedding *embedding)
{
    uint32_t max = embedding->embedder->tokens_max, cut = embedding->ask.cut_tokens;
    return cut > 0 && cut < max ? cut : max;
}

/* Ids of the client are taken as they are: nothing is put around them. */
static enum status take_ids(const struct embedding *embedding, const struct embed_text *text,
                            struct texts_ids *out, struct error *err)
{
    uint32_t max = tokens_max(embedding);
    TRY(check_ids(embedding, text, err));
    if (text->id_count > max && !embedding->ask.cuts) {
        return texts_refuse_length(text->id_count, max, err);
    }
    uint32_t count = text->id_count < max ? text->id_count : max;
    *out = (struct texts_ids){text->ids, count, count, text->id_count > max};
    return ST_OK;
}

static enum status put_prefix(struct arena *arena, const char *prefix, struct span *text,
                              struct error *err)
{
    size_t len = prefix ? strlen(prefix) : 0;
    if (len == 0) {
        return ST_OK;
    }
    char *both = arena_alloc(arena, len + text->len);
    if (!both) {
        return arena_fail(arena, "the texts", err);
    }
    memcpy(both, prefix, len);
    if (text->len > 0) {
        memcpy(both + len, text->ptr, text->len);
    }
    *text = span_of(both, len + text->len);
    return ST_OK;
}

static enum status encode(struct infer *infer, const struct span *texts, uint32_t count,
                          struct texts_ids *out, struct error *err)
{
    const struct embedding *embedding = embedding_of(infer);
    const struct embedder *embedder = embedding->embedder;
    struct texts pair = {.items = {texts[0], count == 2 ? texts[1] : span_str("")},
                         .count = count,
                         .max = tokens_max(embedding),
                         .cuts = embedding->ask.cuts};
    if (!embedder->is_ranker && !embed_ask_classifies(&embedding->ask)) {
        TRY(put_prefix(&infer->arena, embedder->prefix, &pair.items[0], err));
    }
    return texts_encode(embedder->words, &pair, &infer->arena, out, err);
}

static enum status take_text(struct infer *infer, uint32_t index, struct texts_ids *out,
                             struct error *err)
{
    const struct embedding *embedding = embedding_of(infer);
    const struct embed_text *text = &embedding->ask.texts[index];
    struct span texts[2] = {text->text, {0}};
    if (text->ids) {
        return take_ids(embedding, text, out, err);
    }
    bool is_ranked = embedding->embedder->is_ranker && is_ranking(embedding);
    if (is_ranked) {
        texts[0] = embedding->ask.queries[embedding->ask.query_count > 1 ? index : 0];
        texts[1] = text->text;
    } else if (text->is_pair) {
        texts[1] = text->second;
    }
    return encode(infer, texts, is_ranked || text->is_pair ? 2 : 1, out, err);
}

static enum status take_texts(struct infer *infer, struct error *err)
{
    struct embedding *embedding = embedding_of(infer);
    const struct embed_ask *ask = &embedding->ask;
    struct texts_ids *items =
        arena_array(&infer->arena, (size_t)ask->text_count + ask->query_count, sizeof(*items));
    if (!items) {
        return arena_fail(&infer->arena, "the texts", err);
    }
    embedding->items = items;
    embedding->query_count = embedding->embedder->is_ranker ? 0 : ask->query_count;
    for (uint32_t i = 0; i < embedding->query_count; i++) {
        if (encode(infer, &ask->queries[i], 1, &items[embedding->item_count++], err) != ST_OK) {
            return ask->query_count > 1
                       ? error_prefix(err, "%s[%u]: ", embed_ask_query_member(ask), i)
                       : error_prefix(err, "%s: ", embed_ask_query_member(ask));
        }
    }
    for (uint32_t i = 0; i < ask->text_count; i++) {
        if (take_text(infer, i, &items[embedding->item_count++], err) != ST_OK) {
            return error_prefix(err, "%s[%u]: ", embed_ask_member(ask), i);
        }
    }
    for (uint32_t i = 0; i < embedding->item_count; i++) {
        embedding->token_count += items[i].count;
    }
    return ST_OK;
}

static bool has_all(const struct embedding *embedding)
{
    return embed_ask_has_tokens(&embedding->ask);
}

/* Where memory for requests is short for now, the request waits, and is parsed again. */
static enum status make_room(struct infer *infer, struct error *err)
{
    struct embedding *embedding = embedding_of(infer);
    size_t width = embedding->embedder->width, wanted = embedding->ask.dimensions;
    /* There may be queries; 2^31 tokens at most. */
    size_t texts = (size_t)embedding->ask.text_count + embedding->ask.query_count;
    size_t items = has_all(embedding) ? (size_t)embedding->token_count : texts;
    size_t bytes = items * (width + 1) * sizeof(float); /* 2^20 and 2^2 at most */
    if (wanted > width) {
        return error_set(err, ST_INVALID, "dimensions: the model has %zu, got %zu", width, wanted);
    }
    enum status status = hal_pool_reserve(infer->pool, bytes, &embedding->memory, err);
    if (status != ST_OK) {
        return status == ST_EXHAUSTED ? infer_refuse_memory(infer, bytes, true, err) : status;
    }
    embedding->width = (uint32_t)(is_ranking(embedding) ? 1 : wanted ? wanted : width);
    embedding->vectors = hal_buffer_map(embedding->memory);
    embedding->answer = embedding->vectors;
    return ST_OK;
}

static enum status parse_form(struct infer *infer, enum embed_form form,
                              const struct oip_body *parts, struct error *err)
{
    TRY(embedding_new(infer, err));
    struct embedding *embedding = embedding_of(infer);
    TRY(embed_ask_parse(form, parts->json, (uint32_t)infer->env->params->json_depth_max,
                        &infer->arena, &embedding->ask, err));
    infer->has_keep = embedding->ask.has_keep;
    infer->keep_ns = embedding->ask.keep_ns;
    TRY(find_model(infer, embedding, err));
    infer->call.sample_count = embedding->ask.text_count;
    if (has_all(embedding)) { /* how much room it takes, the tokens say */
        TRY(take_texts(infer, err));
        return make_room(infer, err);
    }
    TRY(make_room(infer, err));
    return take_texts(infer, err);
}

#define PARSE(name, form)                                                                          \
    static enum status name(struct infer *infer, struct infer_call *call,                          \
                            const struct oip_body *parts, struct span *out_rest,                   \
                            struct error *err)                                                     \
    {                                                                                              \
        (void)call;                                                                                \
        (void)out_rest;                                                                            \
        return parse_form(infer, (form), parts, err);                                              \
    }
PARSE(parse_openai, EMBED_OPENAI)
PARSE(parse_tei, EMBED_TEI)
PARSE(parse_ollama, EMBED_OLLAMA)
PARSE(parse_ollama_one, EMBED_OLLAMA_ONE)
PARSE(parse_all, EMBED_TEI_ALL)
PARSE(parse_sparse, EMBED_TEI_SPARSE)
PARSE(parse_predict, PREDICT_TEI)
PARSE(parse_similar, SIMILAR_TEI)
PARSE(parse_cohere, EMBED_COHERE)
PARSE(parse_cohere_one, EMBED_COHERE_ONE)
PARSE(parse_score, SCORE_VLLM)
PARSE(parse_classify, CLASSIFY_VLLM)
PARSE(parse_pool, POOL_VLLM)
PARSE(parse_llama, EMBED_LLAMA)
PARSE(parse_rank, RANK_ROOT)
PARSE(parse_rank_jina, RANK_JINA)
PARSE(parse_rank_cohere, RANK_COHERE)

/* ---- DECODE ---------------------------------------------------------------------------------- */

static void choose_run(struct embedding *embedding, const struct model *model)
{
    const struct embedder *embedder = embedding->embedder;
    uint32_t left = embedding->item_count - embedding->done_count;
    int64_t proven = embedder->length && embedder->rows_max > 1 ? model->rows_max : 1;
    proven = proven < embedder->rows_max ? proven : embedder->rows_max;
    embedding->rows = proven < left ? (uint32_t)proven : left;
    embedding->length =
        embedder->length ? embedder->length : embedding->items[embedding->done_count].count;
    must(embedding->rows > 0 && embedding->length > 0);
}

static int64_t value_at(const struct embedder *embedder, enum embedder_input kind,
                        const struct texts_ids *item, uint32_t at)
{
    bool is_text = at < item->count;
    switch (kind) {
    case EMBEDDER_IDS:
        return is_text ? item->ids[at] : embedder->pad;
    case EMBEDDER_MASK:
        return is_text;
    case EMBEDDER_TYPES:
        return is_text && at >= item->second;
    case EMBEDDER_POSITIONS:
        return at;
    case EMBEDDER_INPUTS:
        break;
    }
    unreachable();
}

static void store(void *memory, enum dtype dtype, size_t index, int64_t value)
{
    if (dtype == DT_I64) {
        ((int64_t *)memory)[index] = value;
    } else if (dtype == DT_I32) {
        ((int32_t *)memory)[index] = (int32_t)value;
    } else if (dtype == DT_F32) {
        ((float *)memory)[index] = (float)value;
    } else {
        must(dtype == DT_BOOL);
        ((uint8_t *)memory)[index] = (uint8_t)value;
    }
}

static enum status put_input(struct infer *infer, enum embedder_input kind, struct error *err)
{
    const struct embedding *embedding = embedding_of(infer);
    const struct embedder *embedder = embedding->embedder;
    enum dtype dtype = embedder->dtypes[kind];
    const struct shape shape = {.rank = 2, .dims = {embedding->rows, embedding->length}};
    void *memory;
    TRY(infer_input(infer, &infer->call, embedder->inputs[kind], dtype, &shape, &memory, err));
    size_t index = 0;
    for (uint32_t row = 0; row < embedding->rows; row++) {
        const struct texts_ids *item = &embedding->items[embedding->done_count + row];
        for (uint32_t at = 0; at < embedding->length; at++) {
            store(memory, dtype, index++, value_at(embedder, kind, item, at));
        }
    }
    return ST_OK;
}

static enum status decode(struct infer *infer, struct error *err)
{
    struct embedding *embedding = embedding_of(infer);
    const struct infer_call *call = &infer->call;
    must(embedding->done_count < embedding->item_count);
    choose_run(embedding, call->model);
    TRY(infer_invoke(infer, call->model->method, err));
    for (unsigned kind = 0; kind < EMBEDDER_INPUTS; kind++) {
        if (embedding->embedder->inputs[kind] != EMBEDDER_ABSENT) {
            TRY(put_input(infer, (enum embedder_input)kind, err));
        }
    }
    return ST_OK;
}

static enum status open_states(struct infer *infer, struct error *err)
{
    (void)infer;
    (void)err;
    return ST_OK; /* an encoder remembers nothing */
}

/* ---- the end of RUN -------------------------------------------------------------------------- */

static void count_run(struct infer *infer)
{
    struct embedding *embedding = embedding_of(infer);
    runs_add_times(&embedding->times, &infer->job);
    if (embedding->done_count + embedding->rows == embedding->item_count) {
        runs_join_times(&embedding->times, &infer->job);
    }
}

/* The result that is answered, if people know it. */
static const struct model_io *find_output(const struct infer *infer)
{
    const struct model *model = infer->call.model;
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].index == embedding_of(infer)->embedder->result) {
            return &model->outputs[i];
        }
    }
    return NULL;
}

static struct embed_reply reply_of(const struct infer *infer)
{
    const struct embedding *embedding = embedding_of(infer);
    const struct model_io *io = find_output(infer);
    return (struct embed_reply){
        .ask = &embedding->ask,
        .model = infer->call.model->name,
        .vectors = embedding->answer,
        .width = embedding->width,
        .items = embedding->items,
        .labels = io ? io->labels : NULL,
        .label_count = io ? io->label_count : 0,
        .token_count = embedding->token_count,
        .total_ns = uv_hrtime() - infer->arrived_ns,
        .load_ns = infer->waited_ns,
        .id = infer->arrived_ns,
        .created = (int64_t)time(NULL),
    };
}

/* Bytes of the vectors that are compared with a query's. */
static size_t compared_bytes(const struct embedding *embedding)
{
    return embedding->query_count > 0
               ? (size_t)embedding->item_count * embedding->embedder->width * sizeof(float)
               : 0;
}

/* Bytes of the run's result and, after the last run, of what is made of all, and of the answer. */
static size_t sampled_bytes(const struct infer *infer)
{
    const struct embedding *embedding = embedding_of(infer);
    const struct embedder *embedder = embedding->embedder;
    const struct embed_reply reply = reply_of(infer);
    size_t states = (size_t)embedding->rows * embedding->length * embedder->width;
    bool is_last = embedding->done_count + embedding->rows == embedding->item_count;
    size_t rest = is_last ? compared_bytes(embedding) + embed_reply_bytes(&reply) : 0;
    return states * dtype_bytes(embedder->floats) + rest;
}

static bool is_long(const struct infer *infer, enum infer_step step)
{
    return step == INFER_PARSE ||
           (step == INFER_SAMPLE && sampled_bytes(infer) > infer->env->params->inline_bytes_max);
}

/* ---- SAMPLE ---------------------------------------------------------------------------------- */

/* Bytes of a text's part of the result; false: it has not the size that its file declares. */
static bool find_row_bytes(const struct embedding *embedding, const struct rt_result *result,
                           size_t *out)
{
    const struct embedder *embedder = embedding->embedder;
    size_t states = embedder->has_states ? embedding->length : 1;
    *out = states * embedder->width * dtype_bytes(embedder->floats);
    return result->bytes.len == *out * embedding->rows;
}

static enum status take_vectors(struct embedding *embedding, const struct rt_result *result,
                                struct error *err)
{
    const struct embedder *embedder = embedding->embedder;
    size_t bytes;
    if (!find_row_bytes(embedding, result, &bytes)) {
        return error_set(
            err, ST_UNSUPPORTED, "the model gave %zu bytes for %u texts of %u tokens, expected %zu",
            result->bytes.len, embedding->rows, embedding->length, bytes * embedding->rows);
    }
    for (uint32_t row = 0; row < embedding->rows; row++) {
        uint32_t index = embedding->done_count + row, count = embedding->items[index].count;
        const uint8_t *states = result->bytes.ptr + row * bytes;
        if (has_all(embedding)) {
            embedder_take_states(embedder, states, count,
                                 embedding->vectors + embedding->state_count * embedder->width);
            embedding->state_count += count;
        } else {
            embedder_pool(embedder, states, count,
                          embedding->vectors + (size_t)index * embedder->width);
        }
    }
    embedding->done_count += embedding->rows;
    return ST_OK;
}

/* Vectors as the client wants them, one behind the other. */
static void shape_vectors(struct embedding *embedding)
{
    const struct embed_ask *ask = &embedding->ask;
    uint32_t width = embedding->embedder->width;
    bool is_tei = ask->form & (EMBED_TEI | EMBED_OLLAMA | EMBED_LLAMA) &&
                  embedding->embedder->pooling != EMBEDDER_SPLADE;
    bool normalizes = ask->says_normalize ? ask->normalizes
                      : is_tei            ? true
                                          : embedding->embedder->normalizes;
    for (uint32_t i = 0; i < embedding->item_count; i++) {
        float *to = embedding->vectors + (size_t)i * embedding->width;
        memmove(to, embedding->vectors + (size_t)i * width, embedding->width * sizeof(float));
        if (normalizes || ask->dimensions) {
            embedder_normalize(to, embedding->width);
        }
    }
}

/* The cosine of the vector of each text with that of its query. */
static void compare_vectors(struct embedding *embedding)
{
    uint32_t width = embedding->embedder->width;
    for (uint32_t i = 0; i < embedding->item_count; i++) {
        embedder_normalize(embedding->vectors + (size_t)i * width, width);
    }
    float *scores = embedding->vectors + (size_t)embedding->item_count * width;
    for (uint32_t i = 0; i < embedding->ask.text_count; i++) {
        const float *query =
            embedding->vectors + (embedding->query_count > 1 ? (size_t)i * width : 0);
        const float *vector = embedding->vectors + (size_t)(embedding->query_count + i) * width;
        double sum = 0;
        for (uint32_t d = 0; d < width; d++) {
            sum += (double)query[d] * vector[d];
        }
        scores[i] = (float)sum;
    }
    embedding->answer = scores;
}

static void score_pairs(struct embedding *embedding)
{
    for (uint32_t i = 0; i < embedding->item_count && !embedding->ask.wants_raw_scores; i++) {
        embedding->vectors[i] = 1.0f / (1.0f + expf(-embedding->vectors[i]));
    }
}

/* What the scores of a text say together, unless the card has computed that. */
static void share_classes(struct embedding *embedding)
{
    const struct embedder *embedder = embedding->embedder;
    uint32_t width = embedder->width;
    if (embedding->ask.wants_raw_scores || embedder->has_steps) {
        return;
    }
    if (width == 1) {
        score_pairs(embedding);
        return;
    }
    for (uint32_t i = 0; i < embedding->item_count; i++) {
        float *scores = embedding->vectors + (size_t)i * width, greatest = scores[0];
        double sum = 0;
        for (uint32_t j = 1; j < width; j++) {
            greatest = scores[j] > greatest ? scores[j] : greatest;
        }
        for (uint32_t j = 0; j < width; j++) {
            scores[j] = expf(scores[j] - greatest);
            sum += (double)scores[j];
        }
        for (uint32_t j = 0; j < width; j++) {
            scores[j] = (float)(scores[j] / sum);
        }
    }
}

static enum status sample(struct infer *infer, struct error *err)
{
    struct embedding *embedding = embedding_of(infer);
    uint32_t result = embedding->embedder->result;
    TRY(take_vectors(embedding, rt_invocation_result(infer->call.invocation, result), err));
    if (embedding->done_count < embedding->item_count) {
        return ST_OK;
    }
    if (has_all(embedding)) {
        return ST_OK; /* they are as the model gives them */
    }
    if (embed_ask_classifies(&embedding->ask)) {
        share_classes(embedding);
    } else if (embedding->query_count > 0) {
        compare_vectors(embedding);
    } else if (is_ranking(embedding)) {
        score_pairs(embedding);
    } else {
        shape_vectors(embedding);
    }
    return ST_OK;
}

static bool is_over(const struct infer *infer)
{
    const struct embedding *embedding = embedding_of(infer);
    return embedding->done_count == embedding->item_count;
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct infer *infer)
{
    const struct embed_reply reply = reply_of(infer);
    return embed_reply_bytes(&reply);
}

static uint32_t count_cut(const struct embedding *embedding)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < embedding->item_count; i++) {
        count += embedding->items[i].is_cut;
    }
    return count;
}

static enum status print(struct infer *infer, struct error *err)
{
    const struct embed_reply reply = reply_of(infer);
    infer->cut_texts = count_cut(embedding_of(infer));
    return embed_reply_print(&reply, &infer->arena, infer->out, err);
}

static size_t own_bytes(const struct infer *infer)
{
    const struct hal_buffer *memory = embedding_of(infer)->memory;
    return memory ? hal_buffer_size(memory) : 0;
}

const struct infer_ops embedding_ops = {
    .life =
        {
            .is_apart = true,
            .find = find,
            .is_long = is_long,
            .parse = runs_parse,
            .decode = decode,
            .own_bytes = own_bytes,
            .free = free_embedding,
        },
    .run =
        {
            .open_states = open_states,
            .count_run = count_run,
            .sample = sample,
            .is_over = is_over,
        },
    .print =
        {
            .encode_bytes = encode_bytes,
            .print = print,
        },
};

const struct codec embedding_openai = {.parse = parse_openai, .name_input = codec_name_none};
const struct codec embedding_tei = {.parse = parse_tei, .name_input = codec_name_none};
const struct codec embedding_ollama = {.parse = parse_ollama, .name_input = codec_name_none};
const struct codec embedding_ollama_one = {.parse = parse_ollama_one,
                                           .name_input = codec_name_none};
const struct codec embedding_all = {.parse = parse_all, .name_input = codec_name_none};
const struct codec embedding_sparse = {.parse = parse_sparse, .name_input = codec_name_none};
const struct codec embedding_predict = {.parse = parse_predict, .name_input = codec_name_none};
const struct codec embedding_similar = {.parse = parse_similar, .name_input = codec_name_none};
const struct codec embedding_cohere = {.parse = parse_cohere, .name_input = codec_name_none};
const struct codec embedding_cohere_one = {.parse = parse_cohere_one,
                                           .name_input = codec_name_none};
const struct codec embedding_score = {.parse = parse_score, .name_input = codec_name_none};
const struct codec embedding_classify = {.parse = parse_classify, .name_input = codec_name_none};
const struct codec embedding_pool = {.parse = parse_pool, .name_input = codec_name_none};
const struct codec embedding_llama = {.parse = parse_llama, .name_input = codec_name_none};
const struct codec embedding_rank = {.parse = parse_rank, .name_input = codec_name_none};
const struct codec embedding_rank_jina = {.parse = parse_rank_jina, .name_input = codec_name_none};
const struct codec embedding_rank_cohere = {.parse = parse_rank_cohere,
                                            .name_input = codec_name_none};
