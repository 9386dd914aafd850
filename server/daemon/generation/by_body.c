/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/by_body.h"

#include "protocol/json.h"
#include "server/daemon/generation/embedding.h"
#include "server/daemon/generation/generation.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/infer/infer.h"
#include "server/language/ask_values.h"
#include "server/language/embedder.h"

/* What a request may be. The first row counts whose member the body has. */
static const struct kind {
    const char *member;
    const struct infer_ops *ops;
    const struct codec *codec; /* NULL: the model decides */
} kinds[] = {
    {"messages", &generation_ops, &generation_chat},
    {"prompt", &generation_ops, &generation_completion},
    {"input", &embedding_ops, &embedding_openai},
    {"query", &embedding_ops, &embedding_rank},
    {"inputs", &embedding_ops, NULL},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct look {
    struct arena *arena;
    const char *model;  /* NULL: not named */
    size_t kind;        /* KINDS: none yet */
    bool has_sentences; /* "inputs" is an object */
};

static enum status look_at(struct json *in, const struct json_string *key, void *user,
                           struct error *err)
{
    struct look *look = user;
    bool is_null = json_peek(in) == JSON_NULL;
    if (!is_null && json_string_is(key, "model")) {
        return ask_read_model(in, look->arena, &look->model, err);
    }
    for (size_t i = 0; !is_null && i < look->kind; i++) {
        look->kind = json_string_is(key, kinds[i].member) ? i : look->kind;
    }
    enum json_type type = json_peek(in);
    struct span text;
    look->has_sentences |= type == JSON_OBJECT && json_string_is(key, "inputs");
    return type == JSON_OBJECT || type == JSON_ARRAY || type == JSON_STRING
               ? json_skip_loosely(in, &text, err) /* the kind's own reader looks at it */
               : json_skip(in, err);
}

/* Vectors come before classes, and an encoder of pairs can give only these. */
static enum status find_only(struct infer *infer, char out_name[MODEL_NAME_MAX + 1],
                             struct error *err)
{
    struct error other = {.code = ST_OK};
    enum status status = embedding_find_only(infer, EMBED_TEI, out_name, err);
    if (status == ST_NOT_FOUND &&
        embedding_find_only(infer, PREDICT_TEI, out_name, &other) != ST_NOT_FOUND) {
        *err = other;
        return other.code;
    }
    return status;
}

static enum status find_model(struct infer *infer, const char *name, struct error *err)
{
    char only[MODEL_NAME_MAX + 1];
    if (!name) {
        TRY(find_only(infer, only, err));
        name = only;
    }
    return infer_find_model(infer, &infer->call, name, infer->version, err);
}

static const struct codec *codec_of(const struct embedder *embedder)
{
    bool has_classes = embedder->is_ranker || embedder->claim == EMBEDDER_CLASSES;
    return has_classes && !embedder->has_states   ? &embedding_predict
           : embedder->pooling == EMBEDDER_SPLADE ? &embedding_sparse
                                                  : &embedding_tei;
}

static enum status choose_codec(struct infer *infer, const struct look *look,
                                const struct codec **out, struct error *err)
{
    *out = look->has_sentences ? &embedding_similar : kinds[look->kind].codec;
    if (*out) {
        return ST_OK;
    }
    TRY(find_model(infer, look->model, err));
    const struct embedder *embedder = infer->call.model->embedder;
    if (!embedder) {
        return model_refuse_texts(infer->call.model, "encoder of texts", err);
    }
    *out = codec_of(embedder);
    return ST_OK;
}

/* From here on it is a request of its kind, also if its step begins again. */
static enum status parse(struct infer *infer, const struct oip_body *parts, struct error *err)
{
    const struct codec *codec;
    struct look look = {.arena = &infer->arena, .kind = KINDS};
    TRY(json_read_members(parts->json, look_at, &look, err));
    if (look.kind == KINDS) {
        return error_set(err, ST_INVALID,
                         "expected one of the members messages, prompt, input, inputs and query; "
                         "tensors go to /v2/models/NAME/infer");
    }
    TRY(choose_codec(infer, &look, &codec, err));
    infer->ops = kinds[look.kind].ops;
    infer->call.codec = codec;
    return runs_parse(infer, parts, err);
}

static bool is_long(const struct infer *infer, enum infer_step step)
{
    (void)infer;
    return step == INFER_PARSE;
}

const struct infer_ops by_body_ops = {
    .life = {.is_apart = true, .find = infer_find_any, .is_long = is_long, .parse = parse},
};

const struct codec by_body = {.name_input = codec_name_none};
