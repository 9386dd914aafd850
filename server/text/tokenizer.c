/* SPDX-License-Identifier: MIT */
/* Tokenizers as their users see them. Texts go from here through the parts of the file. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/digest.h"
#include "protocol/json.h"
#include "server/process/file.h"
#include "server/text/decode.h"
#include "server/text/tokenizer_priv.h"

#define ENCODERS_KEPT 8 /* each has about 1 MiB, and what a long text needed */
#define ENCODER_KEPT_BYTES ((size_t)4 << 20)
#define PATH_BYTES_MAX 4096

/* ---- files ----------------------------------------------------------------------------------- */

struct tokenizer *tokenizer_new(struct error *err)
{
    struct tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
    if (!tokenizer) {
        error_set(err, ST_EXHAUSTED, "no memory for a tokenizer");
        return NULL;
    }
    tokenizer->magic = TOKENIZER_MAGIC;
    arena_init(&tokenizer->arena, TOKENIZER_ARENA_MAX);
    vocab_init(&tokenizer->vocab, vocab_seed());
    vocab_init(&tokenizer->extra, vocab_seed());
    model_init(&tokenizer->model);
    for (unsigned i = 0; i <= TOKENIZER_PAD; i++) {
        tokenizer->roles[i] = VOCAB_NONE;
    }
    pthread_mutex_init(&tokenizer->mutex, NULL);
    return tokenizer;
}

static void encoder_free(struct encoder *encoder)
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
    trie_fini(&tokenizer->raw_added);
    trie_fini(&tokenizer->normal_added);
    free(tokenizer->flags);
    arena_fini(&tokenizer->arena);
    pthread_mutex_destroy(&tokenizer->mutex);
    tokenizer->magic = 0;
    free(tokenizer);
}

enum status tokenizer_copy(struct tokenizer *tokenizer, struct span text, struct span *out,
                           struct error *err)
{
    char *copy = arena_strdup(&tokenizer->arena, text.ptr, text.len);
    if (!copy) {
        return arena_fail(&tokenizer->arena, "a tokenizer", err);
    }
    *out = span_of(copy, text.len);
    return ST_OK;
}

/* JSON begins with a brace. A list of ranks begins with base64, a blank and a number. The fields of
 * SentencePiece's message have numbers below 16, so its first byte is a control character. */
static enum status parse_any(struct tokenizer *tokenizer, struct span file,
                             enum tokenizer_pattern pattern, struct error *err)
{
    size_t at = 0;
    while (at < file.len && strchr(" \t\r\n", file.ptr[at]) && file.ptr[at]) {
        at++;
    }
    if (at == file.len) {
        return error_set(err, ST_CORRUPT, "the file is empty");
    }
    if (file.ptr[at] == '{') {
        return tokenizer_parse_json(tokenizer, file, err);
    }
    if (file.ptr[0] == 0x0a || file.ptr[0] == 0x12 || file.ptr[0] == 0x1a) {
        return tokenizer_parse_sentencepiece(tokenizer, file, err);
    }
    return tokenizer_parse_ranks(tokenizer, file, pattern, err);
}

static void note_digest(struct tokenizer *tokenizer, struct span file,
                        enum tokenizer_pattern pattern)
{
    struct digest digest;
    digest_init(&digest);
    digest_add_number(&digest, pattern);
    digest_add(&digest, file);
    digest_end(&digest, tokenizer->digest);
}

enum status tokenizer_parse(struct span file, enum tokenizer_pattern pattern,
                            struct tokenizer **out, struct error *err)
{
    TRY(unicode_load(err));
    struct tokenizer *tokenizer = tokenizer_new(err);
    if (!tokenizer) {
        return ST_EXHAUSTED;
    }
    enum status status = parse_any(tokenizer, file, pattern, err);
    status = status == ST_OK ? tokenizer_finish(tokenizer, err) : status;
    if (status == ST_INVALID) {
        status = err->code = ST_CORRUPT; /* so documents call it that somebody wrote by hand */
    }
    if (status != ST_OK) {
        tokenizer_free(tokenizer);
        return status;
    }
    note_digest(tokenizer, file, pattern);
    *out = tokenizer;
    return ST_OK;
}

bool tokenizer_is_same(const struct tokenizer *a, const struct tokenizer *b)
{
    OBJ_CHECK(a, TOKENIZER_MAGIC);
    OBJ_CHECK(b, TOKENIZER_MAGIC);
    return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

/* The first name in the folder that ends in ".tiktoken", by order of bytes. */
static bool find_ranks(const char *folder, char *path, size_t size)
{
    static const char suffix[] = ".tiktoken";
    char best[256] = "";
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);
        if (len > strlen(suffix) && strcmp(entry->d_name + len - strlen(suffix), suffix) == 0 &&
            (!best[0] || strcmp(entry->d_name, best) < 0)) {
            snprintf(best, sizeof(best), "%s", entry->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    snprintf(path, size, "%s/%s", folder, best);
    return best[0] != '\0';
}

static enum status find_file(const char *path, char *out, size_t size, struct error *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
    struct stat about;
    if (stat(path, &about) != 0) {
        return error_set(err, status_of_errno(errno), "%s: %s", path, strerror(errno));
    }
    if ((size_t)snprintf(out, size, "%s", path) >= size) {
        return error_set(err, ST_INVALID, "the path of the tokenizer has more than %zu bytes",
                         size - 1);
    }
    for (size_t i = 0; S_ISDIR(about.st_mode) && i < 2; i++) {
        if ((size_t)snprintf(out, size, "%s/%s", path, names[i]) < size && stat(out, &about) == 0) {
            return ST_OK;
        }
        about.st_mode = S_IFDIR;
    }
    if (S_ISDIR(about.st_mode) && !find_ranks(path, out, size)) {
        return error_set(err, ST_NOT_FOUND,
                         "%s: no tokenizer.json, tokenizer.model or *.tiktoken in the folder",
                         path);
    }
    return ST_OK;
}

static enum status read_and_parse(const char *path, enum tokenizer_pattern pattern,
                                  struct tokenizer **out, struct error *err)
{
    struct buf file;
    struct stat about;
    buf_init(&file, TOKENIZER_FILE_MAX);
    if (stat(path, &about) == 0 && about.st_size > 0 &&
        (uint64_t)about.st_size < TOKENIZER_FILE_MAX) {
        (void)buf_reserve(&file, (size_t)about.st_size);
    }
    enum status status = file_read(path, &file, err);
    status = status == ST_OK ? tokenizer_parse(buf_span(&file), pattern, out, err) : status;
    buf_fini(&file);
    return status;
}

enum status tokenizer_load_pattern(const char *path, enum tokenizer_pattern pattern,
                                   struct tokenizer **out, struct error *err)
{
    char file[PATH_BYTES_MAX];
    TRY(find_file(path, file, sizeof(file), err));
    enum status status = read_and_parse(file, pattern, out, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", file);
}

enum status tokenizer_load(const char *path, struct tokenizer **out, struct error *err)
{
    return tokenizer_load_pattern(path, TOKENIZER_PATTERN_AUTO, out, err);
}

/* Steps behind a fused token need it whole, unless they only cut its beginning. */
static void find_holding(struct tokenizer *tokenizer)
{
    bool needs_whole = false;
    for (size_t i = tokenizer->decode_count; i-- > 0;) {
        struct decode_step *step = &tokenizer->decode[i];
        if (step->kind == DECODE_FUSE || step->kind == DECODE_BYTE_LEVEL) {
            step->holds = needs_whole;
            needs_whole = false;
        } else if (step->kind != DECODE_STRIP || step->stop > 0) {
            needs_whole = true;
        }
    }
    bool is_held = false;
    for (size_t i = 0; i < tokenizer->decode_count; i++) {
        struct decode_step *step = &tokenizer->decode[i];
        if (step->kind == DECODE_FUSE || step->kind == DECODE_BYTE_LEVEL) {
            is_held = step->holds;
        } else if (step->kind == DECODE_STRIP) {
            step->holds = is_held; /* each of its inputs is a whole token */
        }
    }
}

static enum status make_added_tries(struct tokenizer *tokenizer, struct error *err);

/* A list of pieces may have the text of a special token at another id, too. The library goes by
 * texts when it leaves special tokens out. */
static void mark_repeated(struct tokenizer *tokenizer)
{
    const struct vocab *vocab = &tokenizer->vocab;
    for (uint32_t id = 0; vocab->has_repeated && id < vocab->size; id++) {
        uint32_t found = vocab_has(vocab, id) ? vocab_find(vocab, vocab_text(vocab, id)) : id;
        tokenizer->flags[id] |= tokenizer->flags[found] & TOKEN_SPECIAL;
    }
}

enum status tokenizer_finish(struct tokenizer *tokenizer, struct error *err)
{
    struct vocab *extra = &tokenizer->extra;
    tokenizer->size = tokenizer->vocab.size > extra->size ? tokenizer->vocab.size : extra->size;
    if (tokenizer->size == 0) {
        return error_set(err, ST_CORRUPT, "the vocabulary is empty");
    }
    tokenizer->flags = calloc(tokenizer->size, 1);
    if (!tokenizer->flags) {
        return error_set(err, ST_EXHAUSTED, "no memory for the vocabulary");
    }
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        const struct added_token *added = &tokenizer->added[i];
        must(added->id < tokenizer->size);
        tokenizer->flags[added->id] |=
            (uint8_t)(TOKEN_ADDED | (added->is_special ? TOKEN_SPECIAL : 0));
    }
    for (uint32_t id = 0; tokenizer->model.piece_types && id < tokenizer->vocab.size; id++) {
        uint8_t type = tokenizer->model.piece_types[id];
        tokenizer->flags[id] |= type == PIECE_CONTROL || type == PIECE_UNKNOWN ? TOKEN_SPECIAL : 0;
    }
    mark_repeated(tokenizer);
    find_holding(tokenizer);
    return make_added_tries(tokenizer, err);
}

/* ---- encoders -------------------------------------------------------------------------------- */

static struct encoder *encoder_new(const struct tokenizer *tokenizer)
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

enum status encoder_no_memory(struct encoder *encoder)
{
    return error_set(encoder->err, ST_EXHAUSTED, "no memory for the tokens of a text");
}

enum status encoder_check(struct encoder *encoder, const struct buf *buf)
{
    if (!buf_failed(buf)) {
        return ST_OK;
    }
    return buf->lacks_memory ? encoder_no_memory(encoder)
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
        return encoder_no_memory(encoder);
    }
    free(*array);
    *array = malloc(bytes);
    *capacity = *array ? wanted : 0;
    return *array ? ST_OK : encoder_no_memory(encoder);
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
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64, bytes;
        uint32_t *ids = mul_size(capacity, sizeof(*ids), &bytes) ? realloc(list->ids, bytes) : NULL;
        if (!ids) {
            return error_set(err, ST_EXHAUSTED, "no memory for the tokens of a text");
        }
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->count++] = id;
    return ST_OK;
}

/* ---- added tokens ---------------------------------------------------------------------------- */

static enum status make_added_trie(struct tokenizer *tokenizer, bool is_normalized,
                                   struct trie *trie, bool *out_has, struct error *err)
{
    size_t count = 0, bytes = tokenizer->added_count + 1;
    struct trie_entry *entries = calloc(bytes, sizeof(*entries));
    if (!entries) {
        return error_set(err, ST_EXHAUSTED, "no memory for the added tokens");
    }
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        if (tokenizer->added[i].is_normalized == is_normalized) {
            entries[count++] =
                (struct trie_entry){.text = tokenizer->added[i].text, .value = (uint32_t)i};
        }
    }
    *out_has = count > 0;
    enum status status = trie_init(trie, entries, count, err);
    free(entries);
    return status;
}

/* A token that is looked for in the normal form is brought into that form. */
static enum status normalize_added(struct tokenizer *tokenizer, struct encoder *encoder,
                                   struct error *err)
{
    encoder->err = err;
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        struct added_token *added = &tokenizer->added[i];
        if (added->is_normalized && tokenizer->normal_count > 0) {
            struct span form;
            TRY(normal_run(encoder, added->text, &form));
            TRY(tokenizer_copy(tokenizer, form, &added->text, err));
        }
    }
    return ST_OK;
}

static enum status make_added_tries(struct tokenizer *tokenizer, struct error *err)
{
    struct encoder *encoder = encoder_new(tokenizer);
    if (!encoder) {
        return error_set(err, ST_EXHAUSTED, "no memory for the added tokens");
    }
    enum status status = normalize_added(tokenizer, encoder, err);
    encoder_free(encoder);
    TRY(status);
    TRY(make_added_trie(tokenizer, false, &tokenizer->raw_added, &tokenizer->has_raw_added, err));
    return make_added_trie(tokenizer, true, &tokenizer->normal_added, &tokenizer->has_normal_added,
                           err);
}

static bool is_word_at(struct span text, size_t at)
{
    size_t len;
    return at < text.len && unicode_is_word(unicode_next(text.ptr + at, &len));
}

static bool is_word_before(struct span text, size_t at)
{
    return at > 0 && is_word_at(text, at - unicode_last_len(span_of(text.ptr, at)));
}

static size_t skip_spaces_back(struct span text, size_t at, size_t least)
{
    while (at > least) {
        size_t len = unicode_last_len(span_of(text.ptr, at)), ignored;
        if (!unicode_is_space(unicode_next(text.ptr + at - len, &ignored))) {
            break;
        }
        at -= len;
    }
    return at < least ? least : at;
}

static size_t skip_spaces(struct span text, size_t at)
{
    size_t len;
    while (at < text.len && unicode_is_space(unicode_next(text.ptr + at, &len))) {
        at += len;
    }
    return at;
}

/* The longest added token at |at|, if it counts; its length in |*out_len| even if it does not. */
static const struct added_token *find_added(struct encoder *encoder, const struct trie *trie,
                                            struct span text, size_t at, size_t *out_len)
{
    uint32_t value;
    *out_len = trie_longest(trie, span_of(text.ptr + at, text.len - at), &value);
    if (*out_len == 0) {
        return NULL;
    }
    const struct added_token *added = &encoder->tokenizer->added[value];
    if ((added->is_special && !encoder->parses_special) ||
        (added->is_single_word && (is_word_before(text, at) || is_word_at(text, at + *out_len)))) {
        return NULL;
    }
    return added;
}

typedef enum status part_f(struct encoder *encoder, struct span text, bool is_first);

/* Gives what lies between added tokens to |part|. */
static enum status cut_added(struct encoder *encoder, const struct trie *trie, struct span text,
                             bool is_first, part_f *part)
{
    size_t done = 0, len;
    for (size_t at = 0; at < text.len;) {
        if (!trie->root_child[text.ptr[at]]) {
            at++;
            continue;
        }
        const struct added_token *added = find_added(encoder, trie, text, at, &len);
        if (!added) {
            at += len ? len : 1;
            continue;
        }
        size_t start = at > done ? at : done, end = at + len;
        start = added->strips_left ? skip_spaces_back(text, start, done) : start;
        if (start > done) {
            TRY(part(encoder, span_of(text.ptr + done, start - done), is_first && done == 0));
        }
        TRY(encoder_add(encoder, added->id));
        done = added->strips_right ? skip_spaces(text, end) : end;
        at = end;
    }
    return done < text.len
               ? part(encoder, span_of(text.ptr + done, text.len - done), is_first && done == 0)
               : ST_OK;
}

static enum status encode_normal(struct encoder *encoder, struct span text, bool is_first)
{
    return split_run(encoder, 0, text, is_first);
}

static enum status encode_raw(struct encoder *encoder, struct span text, bool is_first)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct span form;
    if (tokenizer->is_sentencepiece) {
        return sentencepiece_encode(encoder, text, is_first);
    }
    TRY(normal_run(encoder, text, &form));
    if (form.len == 0) {
        return ST_OK;
    }
    return tokenizer->has_normal_added
               ? cut_added(encoder, &tokenizer->normal_added, form, is_first, encode_normal)
               : encode_normal(encoder, form, is_first);
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
    return tokenizer->has_raw_added
               ? cut_added(encoder, &tokenizer->raw_added, text, true, encode_raw)
               : encode_raw(encoder, text, true);
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
        return error_set(err, ST_EXHAUSTED, "no memory for the tokens of a text");
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
    size_t second = SIZE_MAX;
    struct span texts[2] = {text, {NULL, 0}};
    return encode(tokenizer, texts, false, flags, tokens_max, out, &second, err);
}

enum status tokenizer_encode_pair(const struct tokenizer *tokenizer, struct span first,
                                  struct span second, unsigned flags, size_t tokens_max,
                                  struct token_list *out, size_t *out_second, struct error *err)
{
    size_t place = SIZE_MAX;
    struct span texts[2] = {first, second};
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
            return error_set(err, ST_EXHAUSTED, "no memory for the text of the tokens");
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
    return tokenizer->size;
}

uint32_t tokenizer_longest(const struct tokenizer *tokenizer)
{
    uint32_t own = tokenizer->vocab.longest, extra = tokenizer->extra.longest;
    return own > extra ? own : extra;
}

bool tokenizer_find(const struct tokenizer *tokenizer, struct span text, uint32_t *out_id)
{
    uint32_t id = vocab_find(&tokenizer->extra, text);
    id = id == VOCAB_NONE ? vocab_find(&tokenizer->vocab, text) : id;
    if (id != VOCAB_NONE) {
        *out_id = id;
    }
    return id != VOCAB_NONE;
}

struct span tokenizer_text(const struct tokenizer *tokenizer, uint32_t id)
{
    return vocab_has(&tokenizer->vocab, id) ? vocab_text(&tokenizer->vocab, id)
                                            : vocab_text(&tokenizer->extra, id);
}

bool tokenizer_is_special(const struct tokenizer *tokenizer, uint32_t id)
{
    return id < tokenizer->size && tokenizer->flags[id] & TOKEN_SPECIAL;
}

/* What the token stands for in the middle of a text: its text through the chain, but without the
 * repair of broken characters and without what is done at the beginning. */
enum status tokenizer_bytes(const struct tokenizer *tokenizer, uint32_t id, struct buf *out,
                            struct error *err)
{
    struct span text = tokenizer_text(tokenizer, id);
    if (tokenizer_is_special(tokenizer, id) || text.len == 0) {
        return ST_OK;
    }
    return decoding_token_bytes(tokenizer, text, out, err);
}

bool tokenizer_find_role(const struct tokenizer *tokenizer, enum tokenizer_role role,
                         uint32_t *out_id)
{
    if (tokenizer->roles[role] == VOCAB_NONE) {
        return false;
    }
    *out_id = tokenizer->roles[role];
    return true;
}
