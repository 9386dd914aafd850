/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/embed_reply.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/base64.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "server/language/texts.h"

#define FLOAT_TEXT_BYTES 13 /* of a number in text, with its comma, as most have it */
#define CLASS_TEXT_BYTES 36 /* of a class: what is around its name, and a name that is made */

/* Most that a string becomes: a control character is \u001f. */
static uint64_t string_bytes(struct span string)
{
    return 6 * (uint64_t)string.len;
}

/* Does the answer have the texts of the request? */
static bool has_texts(const struct embed_ask *ask)
{
    return ask->form & (EMBED_COHERE | EMBED_COHERE_ONE) ||
           (embed_ask_ranks(ask) && ask->wants_texts);
}

static uint64_t texts_bytes(const struct embed_ask *ask)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; has_texts(ask) && i < ask->text_count; i++) {
        bytes += string_bytes(ask->texts[i].text);
    }
    return bytes;
}

/* The names of the classes, which each text has. */
static uint64_t classes_bytes(const struct embed_reply *reply)
{
    if (!embed_ask_classifies(reply->ask)) {
        return 0;
    }
    uint64_t bytes = (uint64_t)reply->width * CLASS_TEXT_BYTES;
    for (uint32_t i = 0; i < reply->label_count && i < reply->width; i++) {
        bytes += string_bytes(reply->labels[i]);
    }
    return bytes * reply->ask->text_count;
}

size_t embed_reply_bytes(const struct embed_reply *reply)
{
    const struct embed_ask *ask = reply->ask;
    uint64_t vectors = embed_ask_has_tokens(ask) ? reply->token_count : ask->text_count;
    uint64_t floats = vectors * reply->width * FLOAT_TEXT_BYTES;
    return (size_t)(floats + texts_bytes(ask) + classes_bytes(reply));
}

static void print_float(struct buf *out, float value)
{
    uint8_t text[NUMBER_TEXT_MAX];
    buf_add(out, text, number_print_f32(text, value, NUMBER_NAN_NULL));
}

static void print_vector(const struct embed_reply *reply, uint32_t index, struct buf *out)
{
    const float *vector = reply->vectors + (size_t)index * reply->width;
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < reply->width; i++) {
        if (i) {
            buf_add_char(out, ',');
        }
        print_float(out, vector[i]);
    }
    buf_add_char(out, ']');
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The bytes of the floats, little-endian, as the machine has them. */
static void print_base64_rows(const struct embed_reply *reply, uint32_t index, uint32_t count,
                              struct buf *out)
{
    size_t bytes = (size_t)count * reply->width * sizeof(float);
    buf_add_char(out, '"');
    base64_print(out, span_of(reply->vectors + (size_t)index * reply->width, bytes));
    buf_add_char(out, '"');
}

static void print_base64(const struct embed_reply *reply, uint32_t index, struct buf *out)
{
    print_base64_rows(reply, index, 1, out);
}

static void print_rows(const struct embed_reply *reply, uint32_t index, uint32_t count,
                       struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? "," : "");
        print_vector(reply, index + i, out);
    }
    buf_add_char(out, ']');
}

static void print_usage(const struct embed_reply *reply, struct buf *out)
{
    buf_add_str(out, "\"model\":");
    json_print_string(out, span_str(reply->model));
    buf_printf(out, ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"total_tokens\":%" PRIu64 "}",
               reply->token_count, reply->token_count);
}

static void print_openai(const struct embed_reply *reply, struct buf *out)
{
    buf_add_str(out, "{\"object\":\"list\",\"data\":[");
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        buf_printf(out, "%s{\"object\":\"embedding\",\"index\":%u,\"embedding\":", i ? "," : "", i);
        if (reply->ask->is_base64) {
            print_base64(reply, i, out);
        } else {
            print_vector(reply, i, out);
        }
        buf_add_char(out, '}');
    }
    buf_add_str(out, "],");
    print_usage(reply, out);
    buf_add_char(out, '}');
}

/* For each text a list of the vectors of its tokens. */
static void print_states(const struct embed_reply *reply, struct buf *out)
{
    uint32_t index = 0;
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        buf_add_str(out, i ? "," : "");
        print_rows(reply, index, reply->items[i].count, out);
        index += reply->items[i].count;
    }
    buf_add_char(out, ']');
}

/* For each text its numbers that are not 0, with their places. */
static void print_sparse(const struct embed_reply *reply, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        const float *vector = reply->vectors + (size_t)i * reply->width;
        const char *before = "";
        buf_add_str(out, i ? ",[" : "[");
        for (uint32_t j = 0; j < reply->width; j++) {
            if (vector[j] != 0) {
                buf_printf(out, "%s{\"index\":%u,\"value\":", before, j);
                print_float(out, vector[j]);
                buf_add_char(out, '}');
                before = ",";
            }
        }
        buf_add_char(out, ']');
    }
    buf_add_char(out, ']');
}

/* A list of vectors, or an object with a list for each type. */
static void print_cohere_vectors(const struct embed_reply *reply, struct buf *out)
{
    const struct embed_ask *ask = reply->ask;
    if (ask->form == EMBED_COHERE_ONE && !ask->has_types) {
        print_rows(reply, 0, ask->text_count, out);
        return;
    }
    buf_add_char(out, '{');
    if (ask->has_floats) {
        buf_add_str(out, "\"float\":");
        print_rows(reply, 0, ask->text_count, out);
    }
    if (ask->is_base64) {
        buf_add_str(out, ask->has_floats ? ",\"base64\":[" : "\"base64\":[");
        for (uint32_t i = 0; i < ask->text_count; i++) {
            buf_add_str(out, i ? "," : "");
            print_base64(reply, i, out);
        }
        buf_add_char(out, ']');
    }
    buf_add_char(out, '}');
}

static void print_cohere(const struct embed_reply *reply, struct buf *out)
{
    const struct embed_ask *ask = reply->ask;
    bool is_first = ask->form == EMBED_COHERE_ONE;
    buf_printf(out, "{\"id\":\"%016" PRIx64 "\",\"embeddings\":", reply->id);
    print_cohere_vectors(reply, out);
    buf_add_str(out, ",\"texts\":[");
    for (uint32_t i = 0; i < ask->text_count; i++) {
        buf_add_str(out, i ? "," : "");
        json_print_string(out, ask->texts[i].text);
    }
    buf_printf(out,
               "],\"meta\":{\"api_version\":{\"version\":\"%d\"},\"billed_units\":"
               "{\"input_tokens\":%" PRIu64 "}},\"response_type\":\"embeddings_%s\"}",
               is_first ? 1 : 2, reply->token_count,
               is_first && !ask->has_types ? "floats" : "by_type");
}

/* A score for each text, in the order of the request. */
static void print_similar(const struct embed_reply *reply, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        buf_add_str(out, i ? "," : "");
        print_float(out, reply->vectors[i]);
    }
    buf_add_char(out, ']');
}

static void print_ollama(const struct embed_reply *reply, struct buf *out)
{
    buf_add_str(out, "{\"model\":");
    json_print_string(out, span_str(reply->model));
    buf_add_str(out, ",\"embeddings\":");
    print_rows(reply, 0, reply->ask->text_count, out);
    buf_printf(out,
               ",\"total_duration\":%" PRIu64 ",\"load_duration\":%" PRIu64
               ",\"prompt_eval_count\":%" PRIu64 "}",
               reply->total_ns, reply->load_ns, reply->token_count);
}

/* For each text a list of one vector. */
static void print_llama(const struct embed_reply *reply, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        buf_printf(out, "%s{\"index\":%u,\"embedding\":", i ? "," : "", i);
        print_rows(reply, i, 1, out);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

/* ---- rankings -------------------------------------------------------------------------------- */

struct rank {
    float score;
    uint32_t index;
};

/* The greatest score first, equal ones in the order of the request; NaN comes last. */
static int compare_ranks(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    bool x_is_nan = x->score != x->score, y_is_nan = y->score != y->score;
    if (x_is_nan != y_is_nan) {
        return x_is_nan ? 1 : -1;
    }
    if (!x_is_nan && x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

static void print_rank(const struct embed_reply *reply, const struct rank *rank, struct buf *out)
{
    bool has_documents = embed_ask_has_documents(reply->ask);
    buf_printf(out, "{\"index\":%u,\"%s\":", rank->index,
               has_documents ? "relevance_score" : "score");
    print_float(out, rank->score);
    if (reply->ask->wants_texts) {
        buf_add_str(out, has_documents ? ",\"document\":{\"text\":" : ",\"text\":");
        json_print_string(out, reply->ask->texts[rank->index].text);
        buf_add_str(out, has_documents ? "}" : "");
    }
    buf_add_char(out, '}');
}

/* What Cohere's clients read of an answer beside its results. */
static void print_meta(const struct embed_reply *reply, struct buf *out)
{
    buf_printf(out,
               ",\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":"
               "{\"search_units\":1},\"tokens\":{\"input_tokens\":%" PRIu64 "}}}",
               reply->token_count);
}

static enum status print_ranking(const struct embed_reply *reply, struct arena *arena,
                                 struct buf *out, struct error *err)
{
    uint32_t count = reply->ask->text_count, top = reply->ask->top_count;
    bool has_documents = embed_ask_has_documents(reply->ask);
    struct rank *ranks = arena_array(arena, count, sizeof(*ranks));
    if (!ranks) {
        return arena_fail(arena, "the answer", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = (struct rank){reply->vectors[i], i};
    }
    qsort(ranks, count, sizeof(*ranks), compare_ranks);
    count = top && top < count ? top : count;
    buf_add_str(out, has_documents ? "{\"results\":[" : "[");
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? "," : "");
        print_rank(reply, &ranks[i], out);
    }
    buf_add_char(out, ']');
    if (reply->ask->form == RANK_COHERE) {
        print_meta(reply, out);
    } else if (has_documents) {
        buf_add_char(out, ',');
        print_usage(reply, out);
        buf_add_char(out, '}');
    }
    return ST_OK;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* As exporters call a class that has no name. */
static void print_label(const struct embed_reply *reply, uint32_t index, struct buf *out)
{
    if (index < reply->label_count) {
        json_print_string(out, reply->labels[index]);
    } else {
        buf_printf(out, "\"LABEL_%u\"", index);
    }
}

/* The classes of one text, the most probable one first. |ranks|: room for all. */
static void print_classes(const struct embed_reply *reply, uint32_t text, struct rank *ranks,
                          struct buf *out)
{
    const float *scores = reply->vectors + (size_t)text * reply->width;
    for (uint32_t i = 0; i < reply->width; i++) {
        ranks[i] = (struct rank){scores[i], i};
    }
    qsort(ranks, reply->width, sizeof(*ranks), compare_ranks);
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < reply->width; i++) {
        buf_add_str(out, i ? ",{\"score\":" : "{\"score\":");
        print_float(out, ranks[i].score);
        buf_add_str(out, ",\"label\":");
        print_label(reply, ranks[i].index, out);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

static enum status print_predictions(const struct embed_reply *reply, struct arena *arena,
                                     struct buf *out, struct error *err)
{
    struct rank *ranks = arena_array(arena, reply->width, sizeof(*ranks));
    if (!ranks) {
        return arena_fail(arena, "the answer", err);
    }
    buf_add_str(out, reply->ask->is_one ? "" : "[");
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        buf_add_str(out, i ? "," : "");
        print_classes(reply, i, ranks, out);
    }
    buf_add_str(out, reply->ask->is_one ? "" : "]");
    return ST_OK;
}

/* ---- vLLM ------------------------------------------------------------------------------------ */

static void print_probabilities(const struct embed_reply *reply, uint32_t text, struct buf *out)
{
    const float *scores = reply->vectors + (size_t)text * reply->width;
    uint32_t best = 0;
    for (uint32_t i = 1; i < reply->width; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    buf_add_str(out, "\"label\":");
    print_label(reply, best, out);
    buf_printf(out, ",\"num_classes\":%u,\"probs\":", reply->width);
    print_vector(reply, text, out);
}

/* Of a text, whose first vector is |index|. */
static void print_pooled(const struct embed_reply *reply, uint32_t text, uint32_t index,
                         struct buf *out)
{
    bool has_tokens = embed_ask_has_tokens(reply->ask);
    uint32_t count = has_tokens ? reply->items[text].count : 1;
    buf_add_str(out, "\"object\":\"pooling\",\"data\":");
    if (reply->ask->is_base64) {
        print_base64_rows(reply, index, count, out);
    } else if (has_tokens) {
        print_rows(reply, index, count, out);
    } else {
        print_vector(reply, index, out);
    }
}

static void print_vllm(const struct embed_reply *reply, const char *kind, struct buf *out)
{
    enum embed_form form = reply->ask->form;
    uint32_t index = 0;
    buf_printf(
        out, "{\"id\":\"%s-%016" PRIx64 "\",\"object\":\"list\",\"created\":%" PRId64 ",\"data\":[",
        kind, reply->id, reply->created);
    for (uint32_t i = 0; i < reply->ask->text_count; i++) {
        buf_printf(out, "%s{\"index\":%u,", i ? "," : "", i);
        if (form == SCORE_VLLM) {
            buf_add_str(out, "\"object\":\"score\",\"score\":");
            print_float(out, reply->vectors[i]);
        } else if (form == CLASSIFY_VLLM) {
            print_probabilities(reply, i, out);
        } else {
            print_pooled(reply, i, index, out);
            index += embed_ask_has_tokens(reply->ask) ? reply->items[i].count : 1;
        }
        buf_add_char(out, '}');
    }
    buf_add_str(out, "],");
    print_usage(reply, out);
    buf_add_char(out, '}');
}

static void print_score(const struct embed_reply *reply, struct buf *out)
{
    print_vllm(reply, "score", out);
}

static void print_classified(const struct embed_reply *reply, struct buf *out)
{
    print_vllm(reply, "classify", out);
}

static void print_pool(const struct embed_reply *reply, struct buf *out)
{
    print_vllm(reply, "pool", out);
}

/* ---- all forms ------------------------------------------------------------------------------- */

static void print_tei(const struct embed_reply *reply, struct buf *out)
{
    print_rows(reply, 0, reply->ask->text_count, out);
}

static void print_ollama_one(const struct embed_reply *reply, struct buf *out)
{
    buf_add_str(out, "{\"embedding\":");
    print_vector(reply, 0, out);
    buf_add_char(out, '}');
}

static const struct printer {
    unsigned forms;
    void (*print)(const struct embed_reply *reply, struct buf *out);
} printers[] = {
    {EMBED_OPENAI, print_openai},  {EMBED_TEI, print_tei},
    {EMBED_TEI_ALL, print_states}, {EMBED_TEI_SPARSE, print_sparse},
    {SIMILAR_TEI, print_similar},  {EMBED_COHERE | EMBED_COHERE_ONE, print_cohere},
    {EMBED_OLLAMA, print_ollama},  {EMBED_OLLAMA_ONE, print_ollama_one},
    {SCORE_VLLM, print_score},     {CLASSIFY_VLLM, print_classified},
    {POOL_VLLM, print_pool},       {EMBED_LLAMA, print_llama},
};

enum status embed_reply_print(const struct embed_reply *reply, struct arena *arena, struct buf *out,
                              struct error *err)
{
    const struct printer *printer = NULL;
    for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++) {
        printer = printers[i].forms & reply->ask->form ? &printers[i] : printer;
    }
    if (printer) {
        printer->print(reply, out);
    } else if (reply->ask->form == PREDICT_TEI) {
        TRY(print_predictions(reply, arena, out, err));
    } else {
        TRY(print_ranking(reply, arena, out, err));
    }
    return buf_check(out, "the answer", err);
}

void embed_reply_print_error(struct buf *out, const char *text, int http_status)
{
    const char *type = http_status == 429 || http_status == 503 ? "overloaded"
                       : http_status >= 500                     ? "backend"
                                                                : "validation";
    buf_add_str(out, "{\"error\":");
    json_print_string(out, span_str(text));
    buf_printf(out, ",\"error_type\":\"%s\"}", type);
}

void embed_reply_print_message(struct buf *out, const char *text, int http_status)
{
    (void)http_status;
    buf_add_str(out, "{\"message\":");
    json_print_string(out, span_str(text));
    buf_add_char(out, '}');
}
