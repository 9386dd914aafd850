/* SPDX-License-Identifier: MIT */
/* Tokenizers as their users see them. Texts go from here through the parts of the file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "protocol/json.h"
#include "server/text/tokenizer/decode.h"
#include "server/text/tokenizer/tokenizer_priv.h"

#define ENCODERS_KEPT 8 /* each has about 1 MiB, and the memory that a long text needed */
#define ENCODER_KEPT_BYTES ((size_t)4 << 20)

struct tokenizer *tokenizer_new(struct error *err)
{
    struct tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
    if (!tokenizer) {
        error_no_memory(err, "a tokenizer");
        return NULL;
    }
    tokenizer->magic = TOKENIZER_MAGIC;
    arena_init(&tokenizer->arena, TOKENIZER_ARENA_MAX);
    vocab_init(&tokenizer->vocab, vocab_seed());
    vocab_init(&tokenizer->extra, vocab_seed());
    vocab_init(&tokenizer->forms, vocab_seed());
    model_init(&tokenizer->model);
    for (unsigned i = 0; i <= TOKENIZER_PAD; i++) {
        tokenizer->roles[i] = VOCAB_NONE;
    }
    pthread_mutex_init(&tokenizer->mutex, NULL);
    return tokenizer;
}

void encoder_free(struct encoder *encoder)
{
    if (!encoder) {
        return;
    }
    pattern_scratch_free(encoder->scratch);
    unicode_codes_fini(&encoder->codes);
    buf_fini(&encoder->repaired);
    buf_fini(&encoder->normal[0]);
    buf_fini(&encoder->normal[1]);
    buf_fini(&encoder->word);
    for (size_t i = 0; i < TOKENIZER_STEPS_MAX; i++) {
        buf_fini(&encoder->stage[i]);
    }
    free(encoder->words);
    free(encoder->symbols);
    free(encoder->queue.lists);
    free(encoder->queue.nodes);
    free(encoder->lattice);
    free(encoder);
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer) {
        return;
    }
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    while (tokenizer->encoders) {
        struct encoder *encoder = tokenizer->encoders;
        tokenizer->encoders = encoder->next;
        encoder_free(encoder);
    }
    for (size_t i = 0; i < TOKENIZER_STEPS_MAX; i++) {
        pattern_free(tokenizer->normal[i].pattern);
        charsmap_free(tokenizer->normal[i].charsmap);
        pattern_free(tokenizer->split[i].pattern);
        pattern_free(tokenizer->decode[i].pattern);
    }
    charsmap_free(tokenizer->sentencepiece.charsmap);
    model_fini(&tokenizer->model);
    vocab_fini(&tokenizer->vocab);
    vocab_fini(&tokenizer->extra);
    vocab_fini(&tokenizer->forms);
    trie_fini(&tokenizer->raw_added);
    trie_fini(&tokenizer->normal_added);
    free(tokenizer->flags);
    arena_fini(&tokenizer->arena);
    pthread_mutex_destroy(&tokenizer->mutex);
    tokenizer->magic = 0;
    free(tokenizer);
}

bool tokenizer_is_same(const struct tokenizer *a, const struct tokenizer *b)
{
    OBJ_CHECK(a, TOKENIZER_MAGIC);
    OBJ_CHECK(b, TOKENIZER_MAGIC);
    return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

/* ---- encoders -------------------------------------------------------------------------------- */

struct encoder *encoder_new(const struct tokenizer *tokenizer)
{
    struct encoder *encoder = calloc(1, sizeof(*encoder));
    if (!encoder) {
        return NULL;
    }
    encoder->tokenizer = tokenizer;
    bpe_init_queue(&encoder->queue);
    buf_init(&encoder->repaired, ENCODER_BYTES_MAX);
    buf_init(&encoder->normal[0], ENCODER_BYTES_MAX);
    buf_init(&encoder->normal[1], ENCODER_BYTES_MAX);
    buf_init(&encoder->word, ENCODER_BYTES_MAX);
    for (size_t i = 0; i < TOKENIZER_STEPS_MAX; i++) {
        buf_init(&encoder->stage[i], ENCODER_BYTES_MAX);
    }
    return encoder;
}

static struct encoder *take_encoder(const struct tokenizer *tokenizer)
{
    /* The encoders are the only part that changes after loading. */
    struct tokenizer *owner = (struct tokenizer *)(uintptr_t)tokenizer;
    pthread_mutex_lock(&owner->mutex);
    struct encoder *encoder = owner->encoders;
    if (encoder) {
        owner->encoders = encoder->next;
        owner->encoder_count--;
    }
    pthread_mutex_unlock(&owner->mutex);
    return encoder ? encoder : encoder_new(tokenizer);
}

/* A long text leaves no large buffers behind. */
static void shrink(struct encoder *encoder)
{
    struct buf *bufs[] = {&encoder->repaired, &encoder->normal[0], &encoder->normal[1],
                          &encoder->word};
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]) + TOKENIZER_STEPS_MAX; i++) {
        struct buf *buf = i < 4 ? bufs[i] : &encoder->stage[i - 4];
        if (buf->capacity > ENCODER_KEPT_BYTES) {
            buf_fini(buf);
            buf_init(buf, ENCODER_BYTES_MAX);
        }
    }
    if (encoder->symbol_capacity > ENCODER_KEPT_BYTES / sizeof(struct symbol)) {
        free(encoder->symbols);
        encoder->symbols = NULL;
        encoder->symbol_capacity = 0;
    }
    if (encoder->queue.capacity > ENCODER_KEPT_BYTES / sizeof(struct pair_list)) {
        free(encoder->queue.lists);
        free(encoder->queue.nodes);
        encoder->queue.lists = NULL;
        encoder->queue.nodes = NULL;
        encoder->queue.capacity = encoder->queue.node_capacity = 0;
    }
    if (encoder->lattice_capacity > ENCODER_KEPT_BYTES / sizeof(struct lattice_node)) {
        free(encoder->lattice);
        encoder->lattice = NULL;
        encoder->lattice_capacity = 0;
    }
    if (encoder->codes.capacity > ENCODER_KEPT_BYTES / sizeof(int32_t)) {
        unicode_codes_fini(&encoder->codes);
    }
}

static void give_back(struct encoder *encoder)
{
    struct tokenizer *owner = (struct tokenizer *)(uintptr_t)encoder->tokenizer;
    shrink(encoder);
    pthread_mutex_lock(&owner->mutex);
    bool is_kept = owner->encoder_count < ENCODERS_KEPT;
    if (is_kept) {
        encoder->next = owner->encoders;
        owner->encoders = encoder;
        owner->encoder_count++;
    }
    pthread_mutex_unlock(&owner->mutex);
    if (!is_kept) {
        encoder_free(encoder);
    }
}

static enum status no_memory(struct encoder *encoder)
{
    return error_no_memory(encoder->err, "the tokens of a text");
}

enum status encoder_check(struct encoder *encoder, const struct buf *buf)
{
    if (!buf_failed(buf)) {
        return ST_OK;
    }
    return buf->lacks_memory ? no_memory(encoder)
                             : error_set(encoder->err, ST_TOO_LARGE,
                                         "the text becomes more than %zu bytes in a normal form",
                                         ENCODER_BYTES_MAX);
}

enum status encoder_reserve(struct encoder *encoder, void **array, size_t *capacity, size_t count,
                            size_t size)
{
    size_t wanted = count + count / 2 + 64, bytes;
    if (count <= *capacity) {
        return ST_OK;
    }
    if (!mul_size(wanted, size, &bytes)) {
        return no_memory(encoder);
    }
    free(*array);
    *array = malloc(bytes);
    *capacity = *array ? wanted : 0;
    return *array ? ST_OK : no_memory(encoder);
}

enum status encoder_add_slow(struct encoder *encoder, uint32_t id)
{
    struct token_list *out = encoder->out;
    if (id == VOCAB_NONE) {
        return ST_OK;
    }
    if (out->count >= encoder->count_max) {
        return error_set(encoder->err, ST_TOO_LARGE, "the text has more tokens than the maximum");
    }
    return token_list_add(out, id, encoder->err);
}

/* ---- lists of tokens ------------------------------------------------------------------------- */

void token_list_init(struct token_list *list)
{
    *list = (struct token_list){0};
}

void token_list_fini(struct token_list *list)
{
    free(list->ids);
    *list = (struct token_list){0};
}

enum status token_list_add(struct token_list *list, uint32_t id, struct error *err)
{
    if (!ARRAY_ROOM(list->ids, list->capacity, list->count + 1)) {
        return error_no_memory(err, "the tokens of a text");
    }
    list->ids[list->count++] = id;
    return ST_OK;
}

static enum status encode_normal(struct encoder *encoder, struct span text, size_t first_len)
{
    return split_run(encoder, 0, text, first_len);
}

static enum status encode_raw(struct encoder *encoder, struct span text, size_t first_len)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct span form;
    if (tokenizer->is_sentencepiece) {
        return sentencepiece_encode(encoder, text, first_len > 0);
    }
    TRY(normal_run(encoder, text, &first_len, &form));
    if (form.len == 0) {
        return ST_OK;
    }
    return tokenizer->has_normal_added
               ? added_cut(encoder, &tokenizer->normal_added, form, first_len, encode_normal)
               : encode_normal(encoder, form, first_len);
}

/* ---- encode ---------------------------------------------------------------------------------- */

static enum status encode_text(struct encoder *encoder, struct span text)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    if (text.len > TOKENIZER_TEXT_MAX) {
        return error_set(encoder->err, ST_TOO_LARGE,
                         "the text has %zu bytes, more than the maximum of %zu", text.len,
                         TOKENIZER_TEXT_MAX);
    }
    if (!json_is_utf8(text)) {
        buf_reset(&encoder->repaired);
        unicode_repair(text, &encoder->repaired);
        TRY(encoder_check(encoder, &encoder->repaired));
        text = buf_span(&encoder->repaired);
    }
    if (text.len == 0) {
        return ST_OK;
    }
    if (text.len > 64 && !encoder->words) {
        encoder->words = calloc(WORD_SLOTS, sizeof(*encoder->words)); /* works without */
    }
    size_t first_len;
    (void)unicode_next(text.ptr, &first_len);
    return tokenizer->has_raw_added
               ? added_cut(encoder, &tokenizer->raw_added, text, first_len, encode_raw)
               : encode_raw(encoder, text, first_len);
}

static enum status encode_template(struct encoder *encoder, const struct template *template,
                                   const struct span texts[2], size_t *out_second)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct template_item *item = &template->items[i];
        if (item->type_id == 1 && *out_second == SIZE_MAX) {
            *out_second = encoder->out->count;
        }
        if (item->kind != TEMPLATE_IDS) {
            TRY(encode_text(encoder, texts[item->kind == TEMPLATE_SECOND]));
            continue;
        }
        for (size_t k = 0; k < item->id_count; k++) {
            TRY(encoder_add(encoder, item->ids[k]));
        }
    }
    return ST_OK;
}

static enum status encode(const struct tokenizer *tokenizer, const struct span texts[2],
                          bool is_pair, unsigned flags, size_t tokens_max, struct token_list *out,
                          size_t *out_second, struct error *err)
{
    static const struct template_item plain[2] = {{.kind = TEMPLATE_FIRST},
                                                  {.kind = TEMPLATE_SECOND, .type_id = 1}};
    struct template template = {plain, is_pair ? 2 : 1};
    size_t before = out->count;
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    const struct template *own = is_pair ? &tokenizer->pair : &tokenizer->single;
    if ((flags & TOKENIZER_ADD_SPECIAL) && own->count > 0) {
        template = *own;
    }
    struct encoder *encoder = take_encoder(tokenizer);
    if (!encoder) {
        return error_no_memory(err, "the tokens of a text");
    }
    encoder->err = err;
    encoder->out = out;
    encoder->count_max = tokens_max > SIZE_MAX - before ? SIZE_MAX : before + tokens_max;
    encoder->parses_special = flags & TOKENIZER_PARSE_SPECIAL;
    enum status status = encode_template(encoder, &template, texts, out_second);
    give_back(encoder);
    if (status != ST_OK) {
        out->count = before;
    }
    return status;
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, struct span text, unsigned flags,
                             size_t tokens_max, struct token_list *out, struct error *err)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    size_t second = SIZE_MAX;
    struct span texts[2] = {text, {NULL, 0}};
    return encode(tokenizer, texts, false, flags, tokens_max, out, &second, err);
}

enum status tokenizer_encode_pair(const struct tokenizer *tokenizer, const struct span texts[2],
                                  unsigned flags, size_t tokens_max, struct token_list *out,
                                  size_t *out_second, struct error *err)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    size_t place = SIZE_MAX;
    TRY(encode(tokenizer, texts, true, flags, tokens_max, out, &place, err));
    if (out_second) {
        *out_second = place == SIZE_MAX ? out->count : place;
    }
    return ST_OK;
}

/* ---- decode ---------------------------------------------------------------------------------- */

enum status tokenizer_decode(const struct tokenizer *tokenizer, const uint32_t *ids, size_t count,
                             bool skip_special, struct buf *out, struct error *err)
{
    struct decoding decoding;
    enum status status = ST_OK;
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    decoding_init(&decoding, tokenizer, skip_special);
    for (size_t i = 0; status == ST_OK && i < count; i++) {
        status = decoding_push(&decoding, ids[i], out, err);
    }
    status = status == ST_OK ? decoding_end(&decoding, out, err) : status;
    decoding_fini(&decoding);
    return status;
}

void tokenizer_stream_init(struct tokenizer_stream *stream, const struct tokenizer *tokenizer,
                           bool skip_special)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    *stream = (struct tokenizer_stream){.tokenizer = tokenizer, .skip_special = skip_special};
}

void tokenizer_stream_fini(struct tokenizer_stream *stream)
{
    if (stream->decoding) {
        decoding_fini(stream->decoding);
        free(stream->decoding);
        stream->decoding = NULL;
    }
}

enum status tokenizer_stream_push(struct tokenizer_stream *stream, uint32_t id, struct buf *out,
                                  struct error *err)
{
    if (!stream->decoding) {
        stream->decoding = malloc(sizeof(*stream->decoding));
        if (!stream->decoding) {
            return error_no_memory(err, "the text of the tokens");
        }
        decoding_init(stream->decoding, stream->tokenizer, stream->skip_special);
    }
    return decoding_push(stream->decoding, id, out, err);
}

enum status tokenizer_stream_end(struct tokenizer_stream *stream, struct buf *out,
                                 struct error *err)
{
    return stream->decoding ? decoding_end(stream->decoding, out, err) : ST_OK;
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

uint32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    return tokenizer->size;
}

uint32_t tokenizer_longest(const struct tokenizer *tokenizer)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    uint32_t own = tokenizer->vocab.longest, extra = tokenizer->extra.longest;
    uint32_t form = tokenizer->forms.longest;
    own = own > extra ? own : extra;
    return own > form ? own : form;
}

bool tokenizer_find(const struct tokenizer *tokenizer, struct span text, uint32_t *out_id)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    uint32_t id = vocab_find(&tokenizer->extra, text);
    id = id == VOCAB_NONE ? vocab_find(&tokenizer->vocab, text) : id;
    if (id != VOCAB_NONE) {
        *out_id = id;
    }
    return id != VOCAB_NONE;
}

struct span tokenizer_text(const struct tokenizer *tokenizer, uint32_t id)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    return vocab_has(&tokenizer->forms, id)   ? vocab_text(&tokenizer->forms, id)
           : vocab_has(&tokenizer->vocab, id) ? vocab_text(&tokenizer->vocab, id)
                                              : vocab_text(&tokenizer->extra, id);
}

bool tokenizer_is_special(const struct tokenizer *tokenizer, uint32_t id)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    return id < tokenizer->size && tokenizer->flags[id] & TOKEN_SPECIAL;
}

/* The bytes that the token stands for in the middle of a text: its text through the chain, but
 * without the repair of broken characters and without the steps at the beginning of a text. */
enum status tokenizer_bytes(const struct tokenizer *tokenizer, uint32_t id, struct buf *out,
                            struct error *err)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    struct span text = tokenizer_text(tokenizer, id);
    if (tokenizer_is_special(tokenizer, id) || text.len == 0) {
        return ST_OK;
    }
    return decoding_token_bytes(tokenizer, text, out, err);
}

bool tokenizer_find_role(const struct tokenizer *tokenizer, enum tokenizer_role role,
                         uint32_t *out_id)
{
    OBJ_CHECK(tokenizer, TOKENIZER_MAGIC);
    if (tokenizer->roles[role] == VOCAB_NONE) {
        return false;
    }
    *out_id = tokenizer->roles[role];
    return true;
}
