/* SPDX-License-Identifier: MIT */
/*
 * tokenizer.model of SentencePiece: a ModelProto (sentencepiece_model.proto). Read are the pieces
 * (field 1: text 1, score 2, type 3), the trainer's spec (field 2: model type 3, whitespace as
 * suffix 24, byte fallback 35, ids of roles 40 to 43, surface of the unknown piece 44) and the
 * normalizer's spec (field 3: map 2, dummy prefix 3, extra blanks 4, escape 5). Everything else
 * concerns training.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/utf8.h"
#include "protocol/json.h"
#include "protocol/protobuf.h"
#include "server/text/tokenizer/tokenizer_priv.h"

enum trainer_model { TRAINER_UNIGRAM = 1, TRAINER_BPE = 2, TRAINER_WORD = 3, TRAINER_CHAR = 4 };

struct loader {
    struct tokenizer *tokenizer;
    struct error *err;
    size_t score_capacity, type_capacity;
    uint64_t model_type;
    int32_t roles[TOKENIZER_PAD + 1]; /* -1: none */
    bool has_byte_fallback;
};

static enum status damaged(struct loader *in, const char *where)
{
    return error_set(in->err, ST_CORRUPT, "the %s of the SentencePiece model is damaged", where);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static enum status make_room(struct loader *in, size_t count)
{
    struct token_model *model = &in->tokenizer->model;
    return ARRAY_ROOM(model->scores, in->score_capacity, count) &&
                   ARRAY_ROOM(model->piece_types, in->type_capacity, count)
               ? ST_OK
               : error_no_memory(in->err, "the vocabulary");
}

static enum status add_piece(struct loader *in, struct span message)
{
    struct tokenizer *tokenizer = in->tokenizer;
    uint32_t id = tokenizer->vocab.size;
    struct span text = {NULL, 0};
    float score = 0;
    uint64_t type = PIECE_NORMAL;
    struct protobuf fields;
    struct protobuf_field field;
    for (protobuf_init(&fields, message); protobuf_next(&fields, &field);) {
        if (field.number == 1 && field.type == PROTOBUF_BYTES) {
            text = field.bytes;
        } else if (field.number == 2 && field.type == PROTOBUF_I32) {
            score = protobuf_float(&field);
        } else if (field.number == 3 && field.type == PROTOBUF_VARINT) {
            type = field.value;
        }
    }
    if (fields.is_wrong || text.len == 0 || !isfinite(score) || type < PIECE_NORMAL ||
        type > PIECE_BYTE || !json_is_utf8(text)) {
        return error_set(in->err, ST_CORRUPT, "piece %u of the SentencePiece model is damaged", id);
    }
    TRY(make_room(in, (size_t)id + 1));
    tokenizer->model.scores[id] = (double)score;
    tokenizer->model.piece_types[id] = (uint8_t)type;
    return vocab_add(&tokenizer->vocab, id, text, in->err);
}

/* ---- specs ----------------------------------------------------------------------------------- */

static enum status read_trainer(struct loader *in, struct span message)
{
    static const enum tokenizer_role roles[] = {TOKENIZER_UNK, TOKENIZER_BOS, TOKENIZER_EOS,
                                                TOKENIZER_PAD}; /* fields 40 to 43 */
    struct sentencepiece *spec = &in->tokenizer->sentencepiece;
    struct protobuf fields;
    struct protobuf_field field;
    for (protobuf_init(&fields, message); protobuf_next(&fields, &field);) {
        bool is_number = field.type == PROTOBUF_VARINT;
        if (field.number == 3 && is_number) {
            in->model_type = field.value;
        } else if (field.number == 24 && is_number) {
            spec->suffixes_space = field.value != 0;
        } else if (field.number == 35 && is_number) {
            in->has_byte_fallback = field.value != 0;
        } else if (field.number >= 40 && field.number <= 43 && is_number) {
            in->roles[roles[field.number - 40]] = (int32_t)field.value;
        } else if (field.number == 44 && field.type == PROTOBUF_BYTES) {
            TRY(tokenizer_copy(in->tokenizer, field.bytes, &spec->unk_surface, in->err));
        }
    }
    return fields.is_wrong ? damaged(in, "trainer's spec") : ST_OK;
}

static enum status read_normalizer(struct loader *in, struct span message)
{
    struct sentencepiece *spec = &in->tokenizer->sentencepiece;
    struct protobuf fields;
    struct protobuf_field field;
    for (protobuf_init(&fields, message); protobuf_next(&fields, &field);) {
        bool is_number = field.type == PROTOBUF_VARINT;
        if (field.number == 2 && field.type == PROTOBUF_BYTES && field.bytes.len > 0) {
            charsmap_free(spec->charsmap);
            spec->charsmap = NULL;
            TRY(charsmap_new(field.bytes, &spec->charsmap, in->err));
        } else if (field.number == 3 && is_number) {
            spec->adds_dummy_prefix = field.value != 0;
        } else if (field.number == 4 && is_number) {
            spec->removes_extra_spaces = field.value != 0;
        } else if (field.number == 5 && is_number) {
            spec->escapes_spaces = field.value != 0;
        }
    }
    return fields.is_wrong ? damaged(in, "normalizer's spec") : ST_OK;
}

/* A denormalizer with a map changes decoded texts. */
static enum status refuse_denormalizer(struct loader *in, struct span message)
{
    struct protobuf fields;
    struct protobuf_field field;
    for (protobuf_init(&fields, message); protobuf_next(&fields, &field);) {
        if (field.number == 2 && field.type == PROTOBUF_BYTES && field.bytes.len > 0) {
            return error_set(in->err, ST_UNSUPPORTED,
                             "a SentencePiece model with a denormalizer is not supported");
        }
    }
    return fields.is_wrong ? damaged(in, "denormalizer's spec") : ST_OK;
}

static enum status read_field(struct loader *in, const struct protobuf_field *field)
{
    if (field->type != PROTOBUF_BYTES) {
        return ST_OK;
    }
    switch (field->number) {
    case 1:
        return add_piece(in, field->bytes);
    case 2:
        return read_trainer(in, field->bytes);
    case 3:
        return read_normalizer(in, field->bytes);
    case 5:
        return refuse_denormalizer(in, field->bytes);
    default:
        return ST_OK;
    }
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool is_joined(const struct token_model *model, uint32_t id)
{
    return model->piece_types[id] == PIECE_NORMAL || model->piece_types[id] == PIECE_USER_DEFINED;
}

static uint32_t part_of(const struct tokenizer *tokenizer, struct span text)
{
    uint32_t id = vocab_find(&tokenizer->vocab, text);
    if (id != VOCAB_NONE && is_joined(&tokenizer->model, id)) {
        return id;
    }
    uint32_t part = vocab_find(&tokenizer->model.parts, text);
    return part == VOCAB_NONE ? VOCAB_NONE : tokenizer->vocab.size + part;
}

/* Characters of pieces that are no pieces: they may be joined all the same. */
static enum status add_parts(struct loader *in, struct span text)
{
    struct tokenizer *tokenizer = in->tokenizer;
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        (void)unicode_next(text.ptr + at, &len);
        struct span part = span_of(text.ptr + at, len);
        if (part_of(tokenizer, part) == VOCAB_NONE) {
            TRY(vocab_add(&tokenizer->model.parts, tokenizer->model.parts.size, part, in->err));
        }
    }
    return ST_OK;
}

/* Every way to make a piece of two others. */
static enum status add_merges(struct loader *in, uint32_t id, uint32_t rank)
{
    struct tokenizer *tokenizer = in->tokenizer;
    struct span text = vocab_text(&tokenizer->vocab, id);
    size_t len;
    (void)unicode_next(text.ptr, &len);
    for (size_t at = len; at < text.len; at += len) {
        uint32_t left = part_of(tokenizer, span_of(text.ptr, at));
        uint32_t right = left == VOCAB_NONE
                             ? VOCAB_NONE
                             : part_of(tokenizer, span_of(text.ptr + at, text.len - at));
        if (right != VOCAB_NONE) {
            TRY(bpe_add_merge(&tokenizer->model, tokenizer->vocab.seed, left, right, rank, id,
                              in->err));
        }
        (void)unicode_next(text.ptr + at, &len);
    }
    return ST_OK;
}

struct ranked {
    double score;
    uint32_t id;
};

static int compare_scores(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

/* The highest score is joined first; equal scores have equal ranks. */
static enum status make_merges(struct loader *in, struct ranked *pieces, uint32_t count)
{
    uint32_t rank = 0;
    qsort(pieces, count, sizeof(*pieces), compare_scores);
    for (uint32_t i = 0; i < count; i++) {
        rank += i > 0 && pieces[i].score != pieces[i - 1].score;
        TRY(add_merges(in, pieces[i].id, rank));
    }
    return ST_OK;
}

static enum status make_bpe(struct loader *in)
{
    struct tokenizer *tokenizer = in->tokenizer;
    struct token_model *model = &tokenizer->model;
    uint32_t count = 0;
    model->type = MODEL_BPE;
    vocab_init(&model->parts, tokenizer->vocab.seed);
    TRY(bpe_reserve(model, tokenizer->vocab.count, in->err));
    struct ranked *pieces = calloc(tokenizer->vocab.size, sizeof(*pieces));
    if (!pieces) {
        return error_no_memory(in->err, "the vocabulary");
    }
    enum status status = ST_OK;
    for (uint32_t id = 0; status == ST_OK && id < tokenizer->vocab.size; id++) {
        if (model->piece_types[id] == PIECE_UNUSED) {
            status = error_set(in->err, ST_UNSUPPORTED,
                               "piece %u is unused, which is not supported for BPE", id);
        } else if (is_joined(model, id)) {
            pieces[count++] = (struct ranked){model->scores[id], id};
            status = add_parts(in, vocab_text(&tokenizer->vocab, id));
        }
    }
    status = status == ST_OK ? make_merges(in, pieces, count) : status;
    free(pieces);
    if (status == ST_OK) {
        bpe_find_cuts(model, &tokenizer->vocab);
    }
    return status;
}

static enum status make_unigram(struct loader *in)
{
    struct tokenizer *tokenizer = in->tokenizer;
    struct token_model *model = &tokenizer->model;
    const unsigned types = 1u << PIECE_NORMAL | 1u << PIECE_USER_DEFINED;
    float least = 1e30F; /* without normal pieces unknown characters win, as in the library */
    model->type = MODEL_UNIGRAM;
    for (uint32_t id = 0; id < tokenizer->vocab.size; id++) {
        if (model->piece_types[id] == PIECE_NORMAL) {
            least = (float)model->scores[id] < least ? (float)model->scores[id] : least;
        }
    }
    model->unk_score = (double)(least - 10.0f);
    return model_make_trie(&model->trie, &tokenizer->vocab, model->piece_types, types, in->err);
}

static enum status find_types(struct loader *in)
{
    struct tokenizer *tokenizer = in->tokenizer;
    struct token_model *model = &tokenizer->model;
    unsigned unknown_count = 0, byte_count = 0;
    for (uint32_t id = 0; id < tokenizer->vocab.size; id++) {
        if (model->piece_types[id] == PIECE_UNKNOWN) {
            unknown_count++;
            model->unk_id = id;
        }
        byte_count += model->piece_types[id] == PIECE_BYTE;
        model->has_user_defined |= model->piece_types[id] == PIECE_USER_DEFINED;
    }
    if (unknown_count != 1) {
        return error_set(in->err, ST_CORRUPT,
                         "the SentencePiece model has %u unknown pieces, expected one",
                         unknown_count);
    }
    model->fuse_unk = true;
    model->byte_fallback = in->has_byte_fallback;
    model_find_fallback(model, &tokenizer->vocab);
    for (unsigned byte = 0; model->byte_fallback && byte < 256; byte++) {
        if (model->fallback_ids[byte] == VOCAB_NONE ||
            model->piece_types[model->fallback_ids[byte]] != PIECE_BYTE) {
            return error_set(in->err, ST_CORRUPT,
                             "the SentencePiece model has %u pieces for bytes, but not <0x%02X>",
                             byte_count, byte);
        }
    }
    return model->has_user_defined
               ? model_make_trie(&model->user_defined, &tokenizer->vocab, model->piece_types,
                                 1u << PIECE_USER_DEFINED, in->err)
               : ST_OK;
}

/* Control pieces that are written in a text count as special tokens, if the caller wants that. */
static enum status add_control_pieces(struct loader *in)
{
    struct tokenizer *tokenizer = in->tokenizer;
    size_t count = 0;
    for (uint32_t id = 0; id < tokenizer->vocab.size; id++) {
        count += tokenizer->model.piece_types[id] == PIECE_CONTROL;
    }
    tokenizer->added = arena_array(&tokenizer->arena, count + 1, sizeof(*tokenizer->added));
    if (!tokenizer->added) {
        return arena_fail(&tokenizer->arena, "the control pieces", in->err);
    }
    for (uint32_t id = 0; id < tokenizer->vocab.size; id++) {
        if (tokenizer->model.piece_types[id] == PIECE_CONTROL) {
            struct added_token *added = &tokenizer->added[tokenizer->added_count++];
            *added = (struct added_token){.id = id, .is_special = true};
            TRY(tokenizer_copy(tokenizer, vocab_text(&tokenizer->vocab, id), &added->text,
                               in->err));
        }
    }
    return ST_OK;
}

static void find_roles(struct loader *in)
{
    const struct tokenizer *tokenizer = in->tokenizer;
    for (unsigned role = 0; role <= TOKENIZER_PAD; role++) {
        if (in->roles[role] >= 0 && (uint32_t)in->roles[role] < tokenizer->vocab.size) {
            uint32_t id = (uint32_t)in->roles[role];
            uint8_t type = tokenizer->model.piece_types[id];
            bool fits = role == TOKENIZER_UNK ? type == PIECE_UNKNOWN : type == PIECE_CONTROL;
            in->tokenizer->roles[role] = fits ? id : VOCAB_NONE;
        }
    }
}

enum status tokenizer_parse_sentencepiece(struct tokenizer *tokenizer, struct span file,
                                          struct error *err)
{
    struct loader in = {
        .tokenizer = tokenizer,
        .err = err,
        .model_type = TRAINER_UNIGRAM,
        .roles = {
            [TOKENIZER_UNK] = 0, [TOKENIZER_BOS] = 1, [TOKENIZER_EOS] = 2, [TOKENIZER_PAD] = -1}};
    struct protobuf fields;
    struct protobuf_field field;
    tokenizer->is_sentencepiece = true;
    tokenizer->sentencepiece = (struct sentencepiece){.adds_dummy_prefix = true,
                                                      .removes_extra_spaces = true,
                                                      .escapes_spaces = true,
                                                      .unk_surface = span_str(" \xe2\x81\x87 ")};
    for (protobuf_init(&fields, file); protobuf_next(&fields, &field);) {
        TRY(read_field(&in, &field));
    }
    if (fields.is_wrong || tokenizer->vocab.count == 0) {
        return damaged(&in, "message");
    }
    TRY(find_types(&in));
    if (in.model_type != TRAINER_BPE && in.model_type != TRAINER_UNIGRAM) {
        return error_set(err, ST_UNSUPPORTED,
                         "SentencePiece models of type %u are not supported; expected 1 (Unigram) "
                         "or 2 (BPE)",
                         (unsigned)in.model_type);
    }
    TRY(in.model_type == TRAINER_BPE ? make_bpe(&in) : make_unigram(&in));
    TRY(add_control_pieces(&in));
    find_roles(&in);
    tokenizer->decode[tokenizer->decode_count++].kind = DECODE_SENTENCEPIECE;
    return ST_OK;
}

/* ---- encode ---------------------------------------------------------------------------------- */

/* Normalizes the beginning of |text|: its replacement, and the length that it replaces. */
static size_t normalize_prefix(const struct tokenizer *tokenizer, struct span text,
                               struct span *out)
{
    const struct sentencepiece *spec = &tokenizer->sentencepiece;
    size_t len;
    uint32_t id;
    if (tokenizer->model.has_user_defined &&
        (len = trie_longest(&tokenizer->model.user_defined, text, &id)) > 0) {
        *out = span_of(text.ptr, len);
        return len;
    }
    if (spec->charsmap && (len = charsmap_longest(spec->charsmap, text, out)) > 0) {
        return len;
    }
    (void)unicode_next(text.ptr, &len);
    *out = span_of(text.ptr, len);
    return len;
}

static void add_blank(const struct tokenizer *tokenizer, struct buf *out)
{
    buf_add_str(out, tokenizer->sentencepiece.escapes_spaces ? META : " ");
}

static void add_normal(const struct tokenizer *tokenizer, struct span part, struct buf *out)
{
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == ' ') {
            add_blank(tokenizer, out);
        } else {
            buf_add_char(out, (char)part.ptr[i]);
        }
    }
}

static void cut_blanks(const struct tokenizer *tokenizer, struct buf *out)
{
    struct span blank = span_str(tokenizer->sentencepiece.escapes_spaces ? META : " ");
    while (out->len >= blank.len &&
           memcmp(out->ptr + out->len - blank.len, blank.ptr, blank.len) == 0) {
        out->len -= blank.len;
    }
}

static void normalize(const struct tokenizer *tokenizer, struct span text, bool is_first,
                      struct buf *out)
{
    const struct sentencepiece *spec = &tokenizer->sentencepiece;
    struct span part;
    size_t at = 0;
    while (spec->removes_extra_spaces && at < text.len) {
        size_t len = normalize_prefix(tokenizer, span_of(text.ptr + at, text.len - at), &part);
        if (!span_is(part, " ")) {
            break;
        }
        at += len;
    }
    if (at == text.len) {
        return;
    }
    if (!spec->suffixes_space && spec->adds_dummy_prefix && is_first) {
        add_blank(tokenizer, out);
    }
    bool is_behind_blank = spec->removes_extra_spaces;
    while (at < text.len) {
        at += normalize_prefix(tokenizer, span_of(text.ptr + at, text.len - at), &part);
        while (is_behind_blank && part.len > 0 && part.ptr[0] == ' ') {
            part = span_of(part.ptr + 1, part.len - 1);
        }
        if (part.len > 0) {
            add_normal(tokenizer, part, out);
            is_behind_blank = part.ptr[part.len - 1] == ' ';
        }
        is_behind_blank &= spec->removes_extra_spaces;
    }
    if (spec->removes_extra_spaces) {
        cut_blanks(tokenizer, out);
    }
    if (spec->suffixes_space && spec->adds_dummy_prefix) {
        add_blank(tokenizer, out);
    }
}

enum status sentencepiece_encode(struct encoder *encoder, struct span text, bool is_first)
{
    struct buf *out = &encoder->normal[0];
    buf_reset(out);
    normalize(encoder->tokenizer, text, is_first, out);
    TRY(encoder_check(encoder, out));
    return model_encode(encoder, buf_span(out));
}
