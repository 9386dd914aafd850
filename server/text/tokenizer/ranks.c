/* SPDX-License-Identifier: MIT */
/*
 * Lists of ranks, as tiktoken and Llama 3's tokenizer.model have them: lines of a token in base64,
 * a blank, and its rank, which is also its id. The pattern and the special tokens are not in the
 * list; they belong to an encoding's name, and are here.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base64.h"
#include "protocol/number.h"
#include "server/text/tokenizer/tokenizer_priv.h"

#define LINE_BYTES_MAX 65536
#define NAME_BYTES_MAX 64

#define GPT2                                                                                       \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s"
#define CL100K                                                                                     \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| "                         \
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"
#define UPPER "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define SHORT_FORM "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define O200K                                                                                      \
    UPPER "*" LOWER "+" SHORT_FORM "|" UPPER "+" LOWER "*" SHORT_FORM                              \
          "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "                     \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* A special token: how far behind the number of ranks its id is. */
struct special {
    const char *text;
    uint32_t place;
};

static const struct special gpt2_special[] = {{"<|endoftext|>", 0}, {NULL, 0}};
static const struct special cl100k_special[] = {{"<|endoftext|>", 1},    {"<|fim_prefix|>", 2},
                                                {"<|fim_middle|>", 3},   {"<|fim_suffix|>", 4},
                                                {"<|endofprompt|>", 20}, {NULL, 0}};
static const struct special o200k_special[] = {
    {"<|endoftext|>", 1}, {"<|endofprompt|>", 20}, {NULL, 0}};
static const struct special llama3_special[] = {{"<|begin_of_text|>", 0},
                                                {"<|end_of_text|>", 1},
                                                {"<|reserved_special_token_0|>", 2},
                                                {"<|reserved_special_token_1|>", 3},
                                                {"<|finetune_right_pad_id|>", 4},
                                                {"<|reserved_special_token_2|>", 5},
                                                {"<|start_header_id|>", 6},
                                                {"<|end_header_id|>", 7},
                                                {"<|eom_id|>", 8},
                                                {"<|eot_id|>", 9},
                                                {"<|python_tag|>", 10},
                                                {NULL, 0}};

static const struct encoding {
    const char *name, *pattern;
    uint32_t counts[4]; /* of ranks in the published lists */
    const struct special *special;
    uint32_t reserved_from, reserved_to; /* <|reserved_special_token_N|> by place; N from 3 */
} encodings[] = {
    [TOKENIZER_PATTERN_AUTO] = {.name = "auto"},
    [TOKENIZER_PATTERN_GPT2] = {"gpt2", GPT2, {50256, 50280}, gpt2_special, 0, 0},
    [TOKENIZER_PATTERN_CL100K] = {"cl100k", CL100K, {100256}, cl100k_special, 0, 0},
    [TOKENIZER_PATTERN_O200K] = {"o200k", O200K, {199998}, o200k_special, 0, 0},
    [TOKENIZER_PATTERN_LLAMA3] = {"llama3", LLAMA3, {128000}, llama3_special, 11, 256},
};

#define ENCODING_COUNT (sizeof(encodings) / sizeof(encodings[0]))

bool tokenizer_pattern_find(const char *name, enum tokenizer_pattern *out)
{
    for (size_t i = 0; i < ENCODING_COUNT; i++) {
        if (strcmp(encodings[i].name, name) == 0) {
            *out = (enum tokenizer_pattern)i;
            return true;
        }
    }
    return false;
}

/* ---- the list -------------------------------------------------------------------------------- */

static enum status fail_line(struct error *err, size_t line)
{
    return error_set(err, ST_CORRUPT,
                     "line %zu: expected a token in base64, a blank and a rank (is this a "
                     "tokenizer.json, a SentencePiece model or a list of ranks?)",
                     line);
}

static enum status read_line(struct tokenizer *tokenizer, struct span text, size_t line,
                             struct error *err)
{
    uint8_t token[LINE_BYTES_MAX];
    uint64_t rank = 0;
    const uint8_t *blank = memchr(text.ptr, ' ', text.len);
    if (!blank || text.len > LINE_BYTES_MAX) {
        return fail_line(err, line);
    }
    struct span base64 = span_of(text.ptr, (size_t)(blank - text.ptr));
    const uint8_t *end = text.ptr + text.len;
    size_t len = base64_bytes(base64);
    if (number_read_u64(blank + 1, end, &rank) != end || rank >= VOCAB_TOKENS_MAX || len == 0 ||
        base64.len % 4 != 0 || len > sizeof(token) ||
        base64_decode(base64, token, len, NULL) != ST_OK) {
        return fail_line(err, line);
    }
    if (rank > tokenizer->vocab.size + 65536u) {
        return error_set(err, ST_CORRUPT, "line %zu: rank %u, but there are few tokens", line,
                         (unsigned)rank);
    }
    enum status status = vocab_add(&tokenizer->vocab, (uint32_t)rank, span_of(token, len), err);
    return status == ST_OK ? ST_OK : error_prefix(err, "line %zu: ", line);
}

static enum status read_lines(struct tokenizer *tokenizer, struct span file, struct error *err)
{
    size_t line = 1;
    for (size_t at = 0; at < file.len; line++) {
        const uint8_t *end = memchr(file.ptr + at, '\n', file.len - at);
        size_t len = end ? (size_t)(end - file.ptr) - at : file.len - at;
        struct span text = span_of(file.ptr + at, len);
        at += len + 1;
        if (text.len > 0 && text.ptr[text.len - 1] == '\r') {
            text.len--;
        }
        if (text.len > 0) {
            TRY(read_line(tokenizer, text, line, err));
        }
    }
    return ST_OK;
}

/* Every way to make a token of two others; the pair has the rank of the token. */
static enum status add_merges(struct tokenizer *tokenizer, uint32_t id, struct error *err)
{
    struct span text = vocab_text(&tokenizer->vocab, id);
    for (size_t at = 1; at < text.len; at++) {
        uint32_t left = vocab_find(&tokenizer->vocab, span_of(text.ptr, at));
        uint32_t right = left == VOCAB_NONE
                             ? VOCAB_NONE
                             : vocab_find(&tokenizer->vocab, span_of(text.ptr + at, text.len - at));
        if (right != VOCAB_NONE) {
            TRY(bpe_add_merge(&tokenizer->model, tokenizer->vocab.seed, left, right, id, id, err));
        }
    }
    return ST_OK;
}

static enum status make_model(struct tokenizer *tokenizer, struct error *err)
{
    struct token_model *model = &tokenizer->model;
    model->type = MODEL_BPE;
    model->takes_bytes = model->is_raw = model->ignore_merges = true;
    TRY(bpe_reserve(model, (size_t)tokenizer->vocab.count * 2, err));
    for (uint32_t id = 0; id < tokenizer->vocab.size; id++) {
        if (vocab_has(&tokenizer->vocab, id)) {
            TRY(add_merges(tokenizer, id, err));
        }
    }
    bpe_find_bytes(model, &tokenizer->vocab);
    for (unsigned byte = 0; byte < 256; byte++) {
        if (model->byte_ids[byte] == VOCAB_NONE) {
            return error_set(err, ST_CORRUPT, "byte 0x%02x has no rank", byte);
        }
    }
    return ST_OK;
}

/* ---- special tokens -------------------------------------------------------------------------- */

static enum status add_special(struct tokenizer *tokenizer, const char *text, uint32_t id,
                               struct error *err)
{
    struct added_token *added = &tokenizer->added[tokenizer->added_count];
    if (vocab_has(&tokenizer->vocab, id)) {
        return error_set(err, ST_CORRUPT, "rank %u is the id of %s", id, text);
    }
    *added = (struct added_token){.id = id, .is_special = true};
    TRY(tokenizer_copy(tokenizer, span_str(text), &added->text, err));
    tokenizer->added_count++;
    return vocab_add(&tokenizer->extra, id, added->text, err);
}

static enum status add_specials(struct tokenizer *tokenizer, const struct encoding *encoding,
                                struct error *err)
{
    uint32_t base = tokenizer->vocab.size;
    /* gpt2's list may have its special token already, as a rank. */
    base -= encoding->special == gpt2_special && base > 50256 ? base - 50256 : 0;
    tokenizer->added = arena_array(&tokenizer->arena, 300, sizeof(*tokenizer->added));
    if (!tokenizer->added) {
        return arena_fail(&tokenizer->arena, "the special tokens", err);
    }
    for (const struct special *special = encoding->special; special->text; special++) {
        TRY(add_special(tokenizer, special->text, base + special->place, err));
    }
    for (uint32_t place = encoding->reserved_from; place < encoding->reserved_to; place++) {
        char name[NAME_BYTES_MAX];
        snprintf(name, sizeof(name), "<|reserved_special_token_%u|>",
                 place - encoding->reserved_from + 3);
        TRY(add_special(tokenizer, name, base + place, err));
    }
    return ST_OK;
}

static enum status choose(const struct tokenizer *tokenizer, enum tokenizer_pattern *pattern,
                          struct error *err)
{
    for (size_t i = 1; *pattern == TOKENIZER_PATTERN_AUTO && i < ENCODING_COUNT; i++) {
        for (unsigned k = 0; k < 4; k++) {
            if (encodings[i].counts[k] == tokenizer->vocab.count) {
                *pattern = (enum tokenizer_pattern)i;
            }
        }
    }
    return *pattern == TOKENIZER_PATTERN_AUTO
               ? error_set(err, ST_INVALID,
                           "a list of %u ranks does not say its pattern, and no published list "
                           "has that many; expected gpt2, cl100k, o200k or llama3 by name",
                           tokenizer->vocab.count)
               : ST_OK;
}

static enum status make_template(struct tokenizer *tokenizer, uint32_t bos, struct error *err)
{
    struct template_item *items = arena_array(&tokenizer->arena, 2, sizeof(*items));
    uint32_t *id = arena_array(&tokenizer->arena, 1, sizeof(*id));
    if (!items || !id) {
        return arena_fail(&tokenizer->arena, "the template", err);
    }
    *id = bos;
    items[0] = (struct template_item){.kind = TEMPLATE_IDS, .ids = id, .id_count = 1};
    items[1] = (struct template_item){.kind = TEMPLATE_FIRST};
    tokenizer->single = (struct template){items, 2};
    return ST_OK;
}

enum status tokenizer_parse_ranks(struct tokenizer *tokenizer, struct span file,
                                  enum tokenizer_pattern pattern, struct error *err)
{
    TRY(read_lines(tokenizer, file, err));
    TRY(choose(tokenizer, &pattern, err));
    TRY(make_model(tokenizer, err));
    const struct encoding *encoding = &encodings[pattern];
    TRY(add_specials(tokenizer, encoding, err));
    struct split_step *step = &tokenizer->split[tokenizer->split_count++];
    step->kind = SPLIT_PATTERN;
    step->behavior = BEHAVIOR_ISOLATED;
    TRY(pattern_new(span_str(encoding->pattern), PATTERN_TEXT, &step->pattern, err));
    tokenizer->decode[tokenizer->decode_count++].kind = DECODE_RAW_BYTES;
    uint32_t id;
    if (tokenizer_find(tokenizer, span_str("<|begin_of_text|>"), &id)) {
        tokenizer->roles[TOKENIZER_BOS] = id;
        TRY(make_template(tokenizer, id, err));
    }
    if (tokenizer_find(tokenizer, span_str("<|end_of_text|>"), &id) ||
        tokenizer_find(tokenizer, span_str("<|endoftext|>"), &id)) {
        tokenizer->roles[TOKENIZER_EOS] = id;
    }
    return ST_OK;
}
