/* SPDX-License-Identifier: MIT */
/*
 * tokenizer.json of Hugging Face: the model, the added tokens and the template. Members have the
 * same names here as there. A type or an option that is not known is refused; members that only
 * concern training, offsets, padding and truncation are passed over.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/tokenizer/json_reader.h"
#include "server/text/tokenizer/json_vocab.h"

static const struct document_limits limits = {TOKENIZER_FILE_MAX, 1 << 20};

/* ---- the model ------------------------------------------------------------------------------- */

static enum status find_unknown(struct json_reader *in, const struct cJSON *model, bool is_needed)
{
    struct span name;
    const struct cJSON *member = json_reader_find(in, model, "unk_token");
    if (!member) {
        return is_needed ? document_fail(in->document, model, in->err, ST_CORRUPT,
                                         "expected a member \"unk_token\"")
                         : ST_OK;
    }
    TRY(json_reader_span(in, member, &name));
    in->tokenizer->model.unk_id = vocab_find(&in->tokenizer->vocab, name);
    in->tokenizer->roles[TOKENIZER_UNK] = in->tokenizer->model.unk_id;
    if (in->tokenizer->model.unk_id == VOCAB_NONE) {
        return document_fail(in->document, member, in->err, ST_CORRUPT,
                             "'%.*s' is not in the vocabulary", SPAN_SHORT(name));
    }
    return ST_OK;
}

static enum status read_bpe(struct json_reader *in, const struct cJSON *model,
                            const struct json_vocab *vocab)
{
    struct token_model *out = &in->tokenizer->model;
    const struct cJSON *dropout = json_reader_find(in, model, "dropout");
    out->type = MODEL_BPE;
    if (dropout) {
        return document_fail(in->document, dropout, in->err, ST_UNSUPPORTED,
                             "dropout is not supported: tokens would be random");
    }
    TRY(json_reader_bool(in, model, "fuse_unk", false, &out->fuse_unk));
    TRY(json_reader_bool(in, model, "byte_fallback", false, &out->byte_fallback));
    TRY(json_reader_bool(in, model, "ignore_merges", false, &out->ignore_merges));
    TRY(json_reader_text(in, model, "continuing_subword_prefix", "", &out->prefix));
    TRY(json_reader_text(in, model, "end_of_word_suffix", "", &out->suffix));
    TRY(json_vocab_read_ids(vocab, &in->tokenizer->vocab, in->err));
    TRY(find_unknown(in, model, false));
    if (!vocab->merges.len) {
        return document_fail(in->document, model, in->err, ST_CORRUPT,
                             "expected a member \"merges\"");
    }
    return json_vocab_read_merges(vocab, &in->tokenizer->vocab, out, in->err);
}

static enum status read_wordpiece(struct json_reader *in, const struct cJSON *model,
                                  const struct json_vocab *vocab)
{
    struct token_model *out = &in->tokenizer->model;
    uint64_t chars_max = 100;
    out->type = MODEL_WORDPIECE;
    const struct cJSON *member = json_reader_find(in, model, "max_input_chars_per_word");
    if (member) {
        TRY(document_u64(in->document, member, UINT32_MAX, &chars_max, in->err));
    }
    out->chars_max = (uint32_t)chars_max;
    TRY(json_reader_text(in, model, "continuing_subword_prefix", "##", &out->prefix));
    TRY(json_vocab_read_ids(vocab, &in->tokenizer->vocab, in->err));
    TRY(find_unknown(in, model, true));
    TRY(model_make_trie(&out->trie, &in->tokenizer->vocab, NULL, 0, in->err));
    out->has_prefix = out->prefix.len > 0;
    for (size_t i = 0; i < out->prefix.len && (i == 0 || out->prefix_node); i++) {
        out->prefix_node = trie_step(&out->trie, out->prefix_node, out->prefix.ptr[i]);
    }
    return ST_OK;
}

static enum status read_unigram(struct json_reader *in, const struct cJSON *model,
                                const struct json_vocab *vocab)
{
    struct token_model *out = &in->tokenizer->model;
    uint64_t unk_id;
    out->type = MODEL_UNIGRAM;
    out->fuse_unk = true;
    TRY(json_reader_bool(in, model, "byte_fallback", false, &out->byte_fallback));
    TRY(json_vocab_read_scores(vocab, &in->tokenizer->vocab, out, in->err));
    const struct cJSON *member = json_reader_find(in, model, "unk_id");
    if (member) {
        TRY(document_u64(in->document, member, VOCAB_TOKENS_MAX, &unk_id, in->err));
        if (unk_id >= in->tokenizer->vocab.size) {
            return document_fail(in->document, member, in->err, ST_CORRUPT,
                                 "expected an id below %u, got %u", in->tokenizer->vocab.size,
                                 (unsigned)unk_id);
        }
        out->unk_id = in->tokenizer->roles[TOKENIZER_UNK] = (uint32_t)unk_id;
    }
    double least = 0;
    for (uint32_t id = 0; id < in->tokenizer->vocab.size; id++) {
        least = id == 0 || out->scores[id] < least ? out->scores[id] : least;
    }
    out->unk_score = least - 10;
    return model_make_trie(&out->trie, &in->tokenizer->vocab, NULL, 0, in->err);
}

static enum status read_wordlevel(struct json_reader *in, const struct cJSON *model,
                                  const struct json_vocab *vocab)
{
    in->tokenizer->model.type = MODEL_WORDLEVEL;
    TRY(json_vocab_read_ids(vocab, &in->tokenizer->vocab, in->err));
    return find_unknown(in, model, true);
}

/* Old files do not say the type. */
static const char *guess_type(struct json_reader *in, const struct cJSON *model,
                              const struct json_vocab *vocab)
{
    return vocab->merges.len                                          ? "BPE"
           : json_vocab_is_list(vocab)                                ? "Unigram"
           : json_reader_find(in, model, "continuing_subword_prefix") ? "WordPiece"
                                                                      : "WordLevel";
}

static enum status read_model(struct json_reader *in, const struct json_vocab *vocab)
{
    static const struct {
        const char *name;
        bool has_list;
        enum status (*read)(struct json_reader *in, const struct cJSON *model,
                            const struct json_vocab *vocab);
    } rows[] = {{"BPE", false, read_bpe},
                {"WordPiece", false, read_wordpiece},
                {"Unigram", true, read_unigram},
                {"WordLevel", false, read_wordlevel}};
    const struct cJSON *model = json_reader_find(in, in->document->root, "model");
    if (!model || document_type(model) != JSON_OBJECT || !vocab->vocab.len) {
        return document_fail(in->document, model ? model : in->document->root, in->err, ST_CORRUPT,
                             "expected a model with a vocabulary");
    }
    const struct cJSON *member = json_reader_find(in, model, "type");
    const char *type = guess_type(in, model, vocab);
    if (member) {
        TRY(document_text(in->document, member, &type, in->err));
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, type) == 0) {
            if (rows[i].has_list != json_vocab_is_list(vocab)) {
                return document_fail(in->document, model, in->err, ST_CORRUPT,
                                     "the vocabulary of %s is %s", type,
                                     rows[i].has_list ? "a list" : "an object");
            }
            return rows[i].read(in, model, vocab);
        }
    }
    return document_fail(in->document, member, in->err, ST_UNSUPPORTED,
                         "'%.40s' is not supported; expected BPE, WordPiece, Unigram or WordLevel",
                         type);
}

/* ---- added tokens ---------------------------------------------------------------------------- */

static uint32_t next_added_id(const struct tokenizer *tokenizer, size_t count)
{
    uint32_t largest = 0;
    bool has_any = count > 0;
    for (size_t i = 0; i < count; i++) {
        largest = tokenizer->added[i].id > largest ? tokenizer->added[i].id : largest;
    }
    return has_any && largest >= tokenizer->vocab.count ? largest + 1 : tokenizer->vocab.count;
}

static enum status read_added_token(struct json_reader *in, const struct cJSON *value,
                                    struct added_token *out, uint32_t *next_id)
{
    struct tokenizer *tokenizer = in->tokenizer;
    uint64_t id;
    TRY(document_need(in->document, value, JSON_OBJECT, in->err));
    const struct cJSON *member = json_reader_find(in, value, "id");
    if (!member) {
        return document_fail(in->document, value, in->err, ST_CORRUPT, "expected a member \"id\"");
    }
    TRY(document_u64(in->document, member, VOCAB_TOKENS_MAX - 1, &id, in->err));
    TRY(json_reader_text(in, value, "content", NULL, &out->text));
    TRY(json_reader_bool(in, value, "special", false, &out->is_special));
    TRY(json_reader_bool(in, value, "normalized", !out->is_special, &out->is_normalized));
    TRY(json_reader_bool(in, value, "lstrip", false, &out->strips_left));
    TRY(json_reader_bool(in, value, "rstrip", false, &out->strips_right));
    TRY(json_reader_bool(in, value, "single_word", false, &out->is_single_word));
    out->id = vocab_find(&tokenizer->vocab, out->text);
    if (out->id == VOCAB_NONE) {
        out->id = vocab_find(&tokenizer->extra, out->text);
    }
    if (out->id == VOCAB_NONE) {
        out->id = (uint32_t)id;
        if (vocab_has(&tokenizer->vocab, out->id) ||
            out->id > tokenizer->vocab.size + *next_id + 65536) {
            return document_fail(in->document, member, in->err, ST_CORRUPT,
                                 "token '%.*s' has id %u, which is another token's or too far away",
                                 SPAN_SHORT(out->text), out->id);
        }
        enum status status = vocab_add(&tokenizer->extra, out->id, out->text, in->err);
        if (status != ST_OK) {
            document_place(in->document, member, in->err);
            return status;
        }
    }
    return ST_OK;
}

static enum status read_added(struct json_reader *in)
{
    struct tokenizer *tokenizer = in->tokenizer;
    const struct cJSON *list = json_reader_find(in, in->document->root, "added_tokens");
    size_t count = 0;
    if (!list) {
        return ST_OK;
    }
    TRY(document_need(in->document, list, JSON_ARRAY, in->err));
    for (const struct cJSON *value = document_first(list); value; value = document_next(value)) {
        count++;
    }
    tokenizer->added = arena_array(&tokenizer->arena, count + 1, sizeof(*tokenizer->added));
    if (!tokenizer->added) {
        return arena_fail(&tokenizer->arena, "the added tokens", in->err);
    }
    uint32_t next_id = next_added_id(tokenizer, 0);
    for (const struct cJSON *value = document_first(list); value; value = document_next(value)) {
        struct added_token *out = &tokenizer->added[tokenizer->added_count];
        TRY(read_added_token(in, value, out, &next_id));
        tokenizer->added_count += out->text.len > 0;
    }
    return ST_OK;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void find_role(struct tokenizer *tokenizer, enum tokenizer_role role,
                      const char *const *names)
{
    for (; *names && tokenizer->roles[role] == VOCAB_NONE; names++) {
        uint32_t id;
        if (tokenizer_find(tokenizer, span_str(*names), &id)) {
            tokenizer->roles[role] = id;
        }
    }
}

/* Finds roles by the first and last token of the template; otherwise by customary names. */
static void find_roles(struct tokenizer *tokenizer)
{
    static const char *const first[] = {"<s>",   "<|begin_of_text|>", "<bos>",
                                        "[CLS]", "<|startoftext|>",   NULL};
    static const char *const last[] = {"</s>",       "<|end_of_text|>", "<eos>", "[SEP]",
                                       "<|im_end|>", "<|endoftext|>",   NULL};
    static const char *const pad[] = {"<pad>", "[PAD]", "<|pad|>", NULL};
    static const char *const unk[] = {"<unk>", "[UNK]", NULL};
    const struct template *single = &tokenizer->single;
    if (single->count > 1 && single->items[0].kind == TEMPLATE_IDS &&
        single->items[0].id_count == 1) {
        tokenizer->roles[TOKENIZER_BOS] = single->items[0].ids[0];
    }
    if (single->count > 1 && single->items[single->count - 1].kind == TEMPLATE_IDS &&
        single->items[single->count - 1].id_count == 1) {
        tokenizer->roles[TOKENIZER_EOS] = single->items[single->count - 1].ids[0];
    }
    find_role(tokenizer, TOKENIZER_BOS, first);
    find_role(tokenizer, TOKENIZER_EOS, last);
    find_role(tokenizer, TOKENIZER_PAD, pad);
    find_role(tokenizer, TOKENIZER_UNK, unk);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static enum status read_document(struct json_reader *in, const struct json_vocab *vocab)
{
    TRY(document_need(in->document, in->document->root, JSON_OBJECT, in->err));
    TRY(read_model(in, vocab));
    TRY(read_added(in));
    TRY(json_reader_normalizer(in));
    TRY(json_reader_pre_tokenizer(in));
    TRY(json_reader_decoder(in));
    TRY(json_reader_post_processor(in));
    struct token_model *model = &in->tokenizer->model;
    if (model->byte_fallback) {
        model_find_fallback(model, &in->tokenizer->vocab);
    }
    if (model->type == MODEL_BPE) {
        if (model->takes_bytes) {
            bpe_find_bytes(model, &in->tokenizer->vocab);
        } else {
            bpe_find_cuts(model, &in->tokenizer->vocab);
        }
    }
    find_roles(in->tokenizer);
    return ST_OK;
}

enum status tokenizer_parse_json(struct tokenizer *tokenizer, struct span file, struct error *err)
{
    struct json_vocab vocab;
    struct document document;
    struct buf text;
    json_vocab_find(file, &vocab);
    buf_init(&text, TOKENIZER_FILE_MAX);
    enum status status = json_vocab_blank(&vocab, &text, err);
    if (status == ST_OK) {
        status = document_parse(buf_span(&text), &limits, &document, err);
    }
    buf_fini(&text);
    TRY(status);
    struct json_reader in = {.tokenizer = tokenizer, .document = &document, .err = err};
    status = read_document(&in, &vocab);
    document_close(&document);
    return status;
}
