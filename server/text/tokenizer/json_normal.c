/* SPDX-License-Identifier: MIT */
/* The normalizer and the pre-tokenizer of tokenizer.json. */
#include "config.h"

#include "protocol/base64.h"
#include "server/text/tokenizer/json_reader.h"

#define GPT2_PATTERN                                                                               \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static enum status too_many(struct json_reader *in, const struct cJSON *value)
{
    (void)document_fail(in->document, value, in->err, ST_TOO_LARGE, "more than %d steps",
                        TOKENIZER_STEPS_MAX);
    return ST_TOO_LARGE; /* for the compiler's sake */
}

/* ---- normalizers ----------------------------------------------------------------------------- */

/* Room for one more step. The step is in the chain at once, so that it is freed. */
static enum status add_normal(struct json_reader *in, const struct cJSON *value,
                              enum normal_kind kind, struct normal_step **out)
{
    if (in->tokenizer->normal_count == TOKENIZER_STEPS_MAX) {
        return too_many(in, value);
    }
    *out = &in->tokenizer->normal[in->tokenizer->normal_count++];
    (*out)->kind = kind;
    return ST_OK;
}

static enum status read_form(struct json_reader *in, const struct cJSON *value,
                             enum unicode_form form)
{
    struct normal_step *step;
    TRY(add_normal(in, value, NORMAL_FORM, &step));
    step->form = form;
    return ST_OK;
}

static enum status read_nfc(struct json_reader *in, const struct cJSON *value)
{
    return read_form(in, value, UNICODE_NFC);
}

static enum status read_nfd(struct json_reader *in, const struct cJSON *value)
{
    return read_form(in, value, UNICODE_NFD);
}

static enum status read_nfkc(struct json_reader *in, const struct cJSON *value)
{
    return read_form(in, value, UNICODE_NFKC);
}

static enum status read_nfkd(struct json_reader *in, const struct cJSON *value)
{
    return read_form(in, value, UNICODE_NFKD);
}

static enum status read_lowercase(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    return add_normal(in, value, NORMAL_LOWERCASE, &step);
}

static enum status read_strip_accents(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    return add_normal(in, value, NORMAL_STRIP_ACCENTS, &step);
}

static enum status read_nmt(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    return add_normal(in, value, NORMAL_NMT, &step);
}

static enum status read_bytes(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    return add_normal(in, value, NORMAL_BYTES, &step);
}

static enum status read_strip(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    TRY(add_normal(in, value, NORMAL_STRIP, &step));
    TRY(json_reader_bool(in, value, "strip_left", true, &step->strips_left));
    return json_reader_bool(in, value, "strip_right", true, &step->strips_right);
}

static enum status read_replace(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    TRY(add_normal(in, value, NORMAL_REPLACE, &step));
    TRY(json_reader_pattern(in, value, &step->pattern, &step->literal));
    return json_reader_text(in, value, "content", NULL, &step->content);
}

static enum status read_prepend(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    TRY(add_normal(in, value, NORMAL_PREPEND, &step));
    return json_reader_text(in, value, "prepend", NULL, &step->content);
}

static enum status read_charsmap(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    struct span text;
    struct buf bytes;
    TRY(json_reader_text(in, value, "precompiled_charsmap", "", &text));
    if (text.len == 0) {
        return ST_OK;
    }
    TRY(add_normal(in, value, NORMAL_CHARSMAP, &step));
    const struct cJSON *member = json_reader_find(in, value, "precompiled_charsmap");
    if (text.len % 4 != 0) {
        return document_fail(in->document, member, in->err, ST_CORRUPT, "base64 is not whole");
    }
    size_t len = base64_bytes(text);
    buf_init(&bytes, TOKENIZER_FILE_MAX);
    uint8_t *to = buf_reserve(&bytes, len + 1);
    enum status status = to ? base64_decode(text, to, len, in->err)
                            : error_no_memory(in->err, "a map of characters");
    if (status == ST_OK) {
        status = charsmap_new(span_of(to, len), &step->charsmap, in->err);
    }
    buf_fini(&bytes);
    if (status != ST_OK) {
        return document_fail(in->document, member, in->err, status, "%s",
                             in->err ? in->err->text : "");
    }
    return ST_OK;
}

static enum status read_bert(struct json_reader *in, const struct cJSON *value)
{
    struct normal_step *step;
    bool cleans, splits_chinese, lowers, strips;
    TRY(json_reader_bool(in, value, "clean_text", true, &cleans));
    TRY(json_reader_bool(in, value, "handle_chinese_chars", true, &splits_chinese));
    TRY(json_reader_bool(in, value, "lowercase", true, &lowers));
    TRY(json_reader_bool(in, value, "strip_accents", lowers, &strips));
    TRY(cleans ? add_normal(in, value, NORMAL_BERT_CLEAN, &step) : ST_OK);
    TRY(splits_chinese ? add_normal(in, value, NORMAL_BERT_CHINESE, &step) : ST_OK);
    TRY(strips ? add_normal(in, value, NORMAL_BERT_ACCENTS, &step) : ST_OK);
    return lowers ? add_normal(in, value, NORMAL_LOWERCASE, &step) : ST_OK;
}

enum status json_reader_normalizer(struct json_reader *in)
{
    static const struct json_kind kinds[] = {
        {"NFC", read_nfc},
        {"NFD", read_nfd},
        {"NFKC", read_nfkc},
        {"NFKD", read_nfkd},
        {"Lowercase", read_lowercase},
        {"StripAccents", read_strip_accents},
        {"Strip", read_strip},
        {"Replace", read_replace},
        {"Prepend", read_prepend},
        {"Precompiled", read_charsmap},
        {"BertNormalizer", read_bert},
        {"Nmt", read_nmt},
        {"ByteLevel", read_bytes},
        {NULL, NULL},
    };
    const struct cJSON *value = json_reader_find(in, in->document->root, "normalizer");
    return value ? json_reader_chain(in, value, "normalizers", kinds) : ST_OK;
}

/* ---- pre-tokenizers -------------------------------------------------------------------------- */

static enum status add_split(struct json_reader *in, const struct cJSON *value,
                             enum split_kind kind, enum split_behavior behavior,
                             struct split_step **out)
{
    if (in->tokenizer->split_count == TOKENIZER_STEPS_MAX) {
        return too_many(in, value);
    }
    *out = &in->tokenizer->split[in->tokenizer->split_count++];
    (*out)->kind = kind;
    (*out)->behavior = behavior;
    return ST_OK;
}

static const char *const behaviors[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous", NULL};

static enum status read_behavior(struct json_reader *in, const struct cJSON *value,
                                 struct split_step *step)
{
    size_t behavior;
    TRY(json_reader_choice(in, value, "behavior", behaviors, BEHAVIOR_ISOLATED, &behavior));
    step->behavior = (enum split_behavior)behavior;
    return ST_OK;
}

static enum status read_byte_level(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    bool adds_space, uses_pattern;
    TRY(json_reader_bool(in, value, "add_prefix_space", true, &adds_space));
    TRY(json_reader_bool(in, value, "use_regex", true, &uses_pattern));
    if (adds_space) {
        TRY(add_split(in, value, SPLIT_PREFIX_SPACE, BEHAVIOR_ISOLATED, &step));
    }
    if (uses_pattern) {
        TRY(add_split(in, value, SPLIT_PATTERN, BEHAVIOR_ISOLATED, &step));
        TRY(pattern_new(span_str(GPT2_PATTERN), PATTERN_LINES, &step->pattern, in->err));
    }
    return add_split(in, value, SPLIT_BYTES, BEHAVIOR_ISOLATED, &step);
}

static enum status read_split(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    TRY(add_split(in, value, SPLIT_PATTERN, BEHAVIOR_ISOLATED, &step));
    TRY(json_reader_pattern(in, value, &step->pattern, &step->literal));
    step->kind = step->pattern ? SPLIT_PATTERN : SPLIT_LITERAL;
    TRY(json_reader_bool(in, value, "invert", false, &step->is_inverted));
    return read_behavior(in, value, step);
}

static enum status read_whitespace(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    return add_split(in, value, SPLIT_WORDS, BEHAVIOR_ISOLATED, &step);
}

static enum status read_whitespace_split(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    return add_split(in, value, SPLIT_SPACE, BEHAVIOR_REMOVED, &step);
}

static enum status read_bert_split(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    TRY(add_split(in, value, SPLIT_SPACE, BEHAVIOR_REMOVED, &step));
    return add_split(in, value, SPLIT_PUNCTUATION, BEHAVIOR_ISOLATED, &step);
}

static enum status read_punctuation(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    TRY(add_split(in, value, SPLIT_PUNCTUATION, BEHAVIOR_ISOLATED, &step));
    return read_behavior(in, value, step);
}

static enum status read_digits(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    bool is_individual;
    TRY(json_reader_bool(in, value, "individual_digits", false, &is_individual));
    return add_split(in, value, SPLIT_DIGITS,
                     is_individual ? BEHAVIOR_ISOLATED : BEHAVIOR_CONTIGUOUS, &step);
}

static enum status read_delimiter(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    TRY(add_split(in, value, SPLIT_LITERAL, BEHAVIOR_REMOVED, &step));
    return json_reader_text(in, value, "delimiter", NULL, &step->literal);
}

static enum status read_length(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    uint64_t length = 5;
    const struct cJSON *member = json_reader_find(in, value, "length");
    TRY(member ? document_u64_from(in->document, member, 1, UINT32_MAX, &length, in->err) : ST_OK);
    TRY(add_split(in, value, SPLIT_LENGTH, BEHAVIOR_ISOLATED, &step));
    step->length = (size_t)length;
    return ST_OK;
}

/* Also of the decoder. Old files have add_prefix_space and no scheme. */
static enum status read_scheme(struct json_reader *in, const struct cJSON *value,
                               struct span *out_replacement, enum prepend_scheme *out)
{
    static const char *const names[] = {"always", "first", "never", NULL};
    size_t scheme;
    bool adds_space;
    TRY(json_reader_text(in, value, "replacement", META, out_replacement));
    TRY(json_reader_bool(in, value, "add_prefix_space", true, &adds_space));
    TRY(json_reader_choice(in, value, "prepend_scheme", names,
                           adds_space ? PREPEND_ALWAYS : PREPEND_NEVER, &scheme));
    *out = adds_space ? (enum prepend_scheme)scheme : PREPEND_NEVER;
    return ST_OK;
}

static enum status read_metaspace(struct json_reader *in, const struct cJSON *value)
{
    struct split_step *step;
    TRY(add_split(in, value, SPLIT_METASPACE, BEHAVIOR_MERGED_WITH_NEXT, &step));
    TRY(json_reader_bool(in, value, "split", true, &step->splits));
    TRY(read_scheme(in, value, &step->literal, &step->scheme));
    in->tokenizer->marks_first |= step->scheme == PREPEND_FIRST;
    return ST_OK;
}

/* Where the byte level comes last, the model takes the bytes themselves. */
static void simplify(struct tokenizer *tokenizer)
{
    struct token_model *model = &tokenizer->model;
    if (tokenizer->split_count > 0 && model->type == MODEL_BPE && !model->byte_fallback &&
        !model->prefix.len && !model->suffix.len &&
        tokenizer->split[tokenizer->split_count - 1].kind == SPLIT_BYTES) {
        tokenizer->split_count--;
        model->takes_bytes = true;
    }
}

enum status json_reader_pre_tokenizer(struct json_reader *in)
{
    static const struct json_kind kinds[] = {
        {"ByteLevel", read_byte_level},
        {"Split", read_split},
        {"Whitespace", read_whitespace},
        {"WhitespaceSplit", read_whitespace_split},
        {"BertPreTokenizer", read_bert_split},
        {"Punctuation", read_punctuation},
        {"Digits", read_digits},
        {"Metaspace", read_metaspace},
        {"CharDelimiterSplit", read_delimiter},
        {"FixedLength", read_length},
        {NULL, NULL},
    };
    const struct cJSON *value = json_reader_find(in, in->document->root, "pre_tokenizer");
    TRY(value ? json_reader_chain(in, value, "pretokenizers", kinds) : ST_OK);
    simplify(in->tokenizer);
    return ST_OK;
}

/* ---- decoders -------------------------------------------------------------------------------- */

static enum status add_decode(struct json_reader *in, const struct cJSON *value,
                              enum decode_kind kind, struct decode_step **out)
{
    if (in->tokenizer->decode_count == TOKENIZER_STEPS_MAX) {
        return too_many(in, value);
    }
    *out = &in->tokenizer->decode[in->tokenizer->decode_count++];
    (*out)->kind = kind;
    return ST_OK;
}

static enum status decode_byte_level(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    return add_decode(in, value, DECODE_BYTE_LEVEL, &step);
}

static enum status decode_byte_fallback(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    return add_decode(in, value, DECODE_BYTE_FALLBACK, &step);
}

static enum status decode_fuse(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    return add_decode(in, value, DECODE_FUSE, &step);
}

static enum status decode_metaspace(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    TRY(add_decode(in, value, DECODE_METASPACE, &step));
    return read_scheme(in, value, &step->literal, &step->scheme);
}

static enum status decode_wordpiece(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    TRY(add_decode(in, value, DECODE_WORDPIECE, &step));
    TRY(json_reader_bool(in, value, "cleanup", true, &step->cleans_up));
    return json_reader_text(in, value, "prefix", "##", &step->literal);
}

static enum status decode_replace(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    TRY(add_decode(in, value, DECODE_REPLACE, &step));
    TRY(json_reader_pattern(in, value, &step->pattern, &step->literal));
    return json_reader_text(in, value, "content", NULL, &step->content);
}

static enum status read_count(struct json_reader *in, const struct cJSON *value, const char *name,
                              size_t *out)
{
    uint64_t count = 0;
    const struct cJSON *member = json_reader_find(in, value, name);
    TRY(member ? document_u64(in->document, member, UINT32_MAX, &count, in->err) : ST_OK);
    *out = (size_t)count;
    return ST_OK;
}

static enum status decode_strip(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    TRY(add_decode(in, value, DECODE_STRIP, &step));
    TRY(read_count(in, value, "start", &step->start));
    TRY(read_count(in, value, "stop", &step->stop));
    return json_reader_text(in, value, "content", " ", &step->literal);
}

static enum status decode_bpe(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    TRY(add_decode(in, value, DECODE_BPE, &step));
    return json_reader_text(in, value, "suffix", "</w>", &step->literal);
}

static enum status decode_ctc(struct json_reader *in, const struct cJSON *value)
{
    struct decode_step *step;
    TRY(add_decode(in, value, DECODE_CTC, &step));
    TRY(json_reader_bool(in, value, "cleanup", true, &step->cleans_up));
    TRY(json_reader_text(in, value, "word_delimiter_token", "|", &step->content));
    return json_reader_text(in, value, "pad_token", "<pad>", &step->literal);
}

enum status json_reader_decoder(struct json_reader *in)
{
    static const struct json_kind kinds[] = {
        {"ByteLevel", decode_byte_level},
        {"ByteFallback", decode_byte_fallback},
        {"Metaspace", decode_metaspace},
        {"WordPiece", decode_wordpiece},
        {"Replace", decode_replace},
        {"Strip", decode_strip},
        {"Fuse", decode_fuse},
        {"BPEDecoder", decode_bpe},
        {"CTC", decode_ctc},
        {NULL, NULL},
    };
    struct decode_step *step;
    const struct cJSON *value = json_reader_find(in, in->document->root, "decoder");
    return value ? json_reader_chain(in, value, "decoders", kinds)
                 : add_decode(in, in->document->root, DECODE_JOIN, &step);
}
