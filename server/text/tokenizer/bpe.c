/* SPDX-License-Identifier: MIT */
/*
 * Byte pair encoding: neighbours are joined, the pair of the lowest rank first and of equal ranks
 * the leftmost, until no pair is in the table. Short words look for the lowest rank by scanning,
 * long ones keep a queue, so that a text of one long word takes n log n.
 *
 * SentencePiece and tiktoken have no list of pairs: there a pair may be joined if both together are
 * a token. Their loaders make the pairs from the tokens.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/text/tokenizer/tokenizer_priv.h"

#define MERGES_MAX ((size_t)8 << 20)
#define SHORT_WORD 48
#define NONE UINT32_MAX

/* ---- pairs ----------------------------------------------------------------------------------- */

static uint64_t hash_pair(uint64_t pair, uint64_t seed)
{
    return vocab_mix(pair ^ seed, UINT64_C(0x9fb21c651e98df25));
}

static struct merge *find_slot(const struct token_model *model, uint64_t seed, uint64_t pair)
{
    size_t at = (size_t)hash_pair(pair, seed) & (model->merge_slots - 1);
    while (model->merges[at].pair != UINT64_MAX && model->merges[at].pair != pair) {
        at = (at + 1) & (model->merge_slots - 1);
    }
    return &model->merges[at];
}

static inline const struct merge *find_merge(const struct tokenizer *tokenizer, uint32_t left,
                                             uint32_t right)
{
    const struct merge *merge =
        find_slot(&tokenizer->model, tokenizer->vocab.seed, (uint64_t)left << 32 | right);
    return merge->pair == UINT64_MAX ? NULL : merge;
}

static enum status resize(struct token_model *model, uint64_t seed, size_t slots, struct error *err)
{
    struct token_model old = *model;
    struct merge *merges = malloc(slots * sizeof(*merges));
    if (!merges) {
        return error_no_memory(err, "the merges");
    }
    for (size_t i = 0; i < slots; i++) {
        merges[i].pair = UINT64_MAX;
    }
    model->merges = merges;
    model->merge_slots = slots;
    for (size_t i = 0; i < old.merge_slots; i++) {
        if (old.merges[i].pair != UINT64_MAX) {
            *find_slot(model, seed, old.merges[i].pair) = old.merges[i];
        }
    }
    free(old.merges);
    return ST_OK;
}

enum status bpe_reserve(struct token_model *model, size_t merges, struct error *err)
{
    size_t slots = 64;
    must(!model->merges); /* so that the seed does not matter */
    while (slots / 2 < merges && slots < MERGES_MAX * 2) {
        slots *= 2;
    }
    return resize(model, 0, slots, err);
}

enum status bpe_add_merge(struct token_model *model, uint64_t seed, uint32_t left, uint32_t right,
                          uint32_t rank, uint32_t id, struct error *err)
{
    if (model->merge_count >= MERGES_MAX) {
        return error_set(err, ST_TOO_LARGE, "more than %zu merges", MERGES_MAX);
    }
    if (model->merge_count >= model->merge_slots / 2) {
        TRY(resize(model, seed, model->merge_slots * 2, err));
    }
    struct merge *merge = find_slot(model, seed, (uint64_t)left << 32 | right);
    model->merge_count += merge->pair == UINT64_MAX;
    *merge = (struct merge){(uint64_t)left << 32 | right, rank, id};
    return ST_OK;
}

void bpe_find_bytes(struct token_model *model, const struct vocab *vocab)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[4] = {(uint8_t)byte};
        size_t len = model->is_raw ? 1 : unicode_put(byte_level_code[byte], text);
        model->byte_ids[byte] = vocab_find(vocab, span_of(text, len));
    }
}

/* Does U+2581 stand behind another character in |text|? */
static bool holds_meta_inside(struct span text)
{
    for (size_t i = 1; i + META_LEN <= text.len; i++) {
        if (memcmp(text.ptr + i, META, META_LEN) == 0) {
            if (i < META_LEN || memcmp(text.ptr + i - META_LEN, META, META_LEN) != 0) {
                return true;
            }
        }
    }
    return false;
}

void bpe_find_cuts(struct token_model *model, const struct vocab *vocab)
{
    model->cuts_at_meta = vocab_find(vocab, span_str(META)) != VOCAB_NONE && !model->prefix.len &&
                          !model->suffix.len && !model->ignore_merges;
    for (uint32_t id = 0; model->cuts_at_meta && id < vocab->size; id++) {
        model->cuts_at_meta = !holds_meta_inside(vocab_text(vocab, id));
    }
    /* Bytes that are joined could cross any border. */
    for (size_t i = 0; model->cuts_at_meta && i < model->merge_slots; i++) {
        if (model->merges[i].pair != UINT64_MAX) {
            uint32_t sides[2] = {(uint32_t)(model->merges[i].pair >> 32),
                                 (uint32_t)model->merges[i].pair};
            for (unsigned side = 0; side < 2; side++) {
                struct span text = vocab_text(vocab, sides[side]);
                model->cuts_at_meta &= sides[side] != model->unk_id &&
                                       !(text.len == 6 && memcmp(text.ptr, "<0x", 3) == 0);
            }
        }
    }
}

/* ---- symbols --------------------------------------------------------------------------------- */

static void add_symbol(struct encoder *encoder, uint32_t id, bool is_frozen)
{
    encoder->symbols[encoder->symbol_count++] = (struct symbol){.id = id, .is_frozen = is_frozen};
}

/* The symbol of the character at |at| of |word|, with the prefix or suffix that the file adds. */
static uint32_t find_character(struct encoder *encoder, struct span word, size_t at, size_t len)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    const struct token_model *model = &tokenizer->model;
    bool has_prefix = at > 0 && model->prefix.len > 0;
    bool has_suffix = at + len == word.len && model->suffix.len > 0;
    if (!has_prefix && !has_suffix) {
        return vocab_find(&tokenizer->vocab, span_of(word.ptr + at, len));
    }
    buf_reset(&encoder->word);
    if (has_prefix) {
        buf_add(&encoder->word, model->prefix.ptr, model->prefix.len);
    }
    buf_add(&encoder->word, word.ptr + at, len);
    if (has_suffix) {
        buf_add(&encoder->word, model->suffix.ptr, model->suffix.len);
    }
    return vocab_find(&tokenizer->vocab, buf_span(&encoder->word));
}

/* The bytes of an unknown character; false: not all of them are tokens. With a prefix or a suffix
 * the bytes of these count too. */
static bool add_fallback(struct encoder *encoder, struct span word, size_t at, size_t len)
{
    const struct token_model *model = &encoder->tokenizer->model;
    struct span parts[3] = {at > 0 ? model->prefix : span_of(NULL, 0), span_of(word.ptr + at, len),
                            at + len == word.len ? model->suffix : span_of(NULL, 0)};
    for (unsigned part = 0; part < 3; part++) {
        for (size_t i = 0; i < parts[part].len; i++) {
            if (model->fallback_ids[parts[part].ptr[i]] == VOCAB_NONE) {
                return false;
            }
        }
    }
    for (unsigned part = 0; part < 3; part++) {
        for (size_t i = 0; i < parts[part].len; i++) {
            add_symbol(encoder, model->fallback_ids[parts[part].ptr[i]], false);
        }
    }
    return true;
}

static void add_characters(struct encoder *encoder, struct span word)
{
    const struct token_model *model = &encoder->tokenizer->model;
    bool is_unknown = false; /* an unknown token is due */
    size_t len;
    for (size_t at = 0; at < word.len; at += len) {
        (void)unicode_next(word.ptr + at, &len);
        uint32_t id = find_character(encoder, word, at, len);
        if (id != VOCAB_NONE) {
            if (is_unknown) {
                add_symbol(encoder, model->unk_id, false);
                is_unknown = false;
            }
            add_symbol(encoder, id, false);
        } else if (model->byte_fallback && add_fallback(encoder, word, at, len)) {
            continue; /* a due unknown token comes behind the bytes, as in the Python library */
        } else if (model->unk_id != VOCAB_NONE) {
            if (is_unknown && !model->fuse_unk) {
                add_symbol(encoder, model->unk_id, false);
            }
            is_unknown = true;
        }
    }
    if (is_unknown) {
        add_symbol(encoder, model->unk_id, false);
    }
}

static void add_bytes(struct encoder *encoder, struct span word)
{
    const struct token_model *model = &encoder->tokenizer->model;
    for (size_t i = 0; i < word.len; i++) {
        uint32_t id = model->byte_ids[word.ptr[i]];
        id = id == VOCAB_NONE ? model->unk_id : id;
        if (id != VOCAB_NONE && !(id == model->unk_id && model->fuse_unk && i > 0 &&
                                  model->byte_ids[word.ptr[i - 1]] == VOCAB_NONE)) {
            add_symbol(encoder, id, false);
        }
    }
}

/* SentencePiece: user-defined pieces stay as they are. Unknown characters are VOCAB_NONE. */
static void add_pieces(struct encoder *encoder, struct span word)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    const struct token_model *model = &tokenizer->model;
    size_t len;
    for (size_t at = 0; at < word.len; at += len) {
        struct span rest = span_of(word.ptr + at, word.len - at);
        uint32_t id;
        if (model->has_user_defined && (len = trie_longest(&model->user_defined, rest, &id)) > 0) {
            add_symbol(encoder, id, true);
            continue;
        }
        (void)unicode_next(rest.ptr, &len);
        id = vocab_find(&tokenizer->vocab, span_of(rest.ptr, len));
        if (id != VOCAB_NONE && model->piece_types[id] != PIECE_NORMAL &&
            model->piece_types[id] != PIECE_USER_DEFINED) {
            id = VOCAB_NONE;
        }
        if (id == VOCAB_NONE) {
            uint32_t part = vocab_find(&model->parts, span_of(rest.ptr, len));
            id = part == VOCAB_NONE ? VOCAB_NONE : tokenizer->vocab.size + part;
        }
        add_symbol(encoder, id, false);
    }
}

/* ---- joining --------------------------------------------------------------------------------- */

static inline uint32_t rank_of(const struct tokenizer *tokenizer, const struct symbol *left,
                               const struct symbol *right, uint32_t *out_id)
{
    if (left->is_frozen || right->is_frozen || left->id == NONE || right->id == NONE) {
        return NONE;
    }
    const struct merge *merge = find_merge(tokenizer, left->id, right->id);
    if (!merge) {
        return NONE;
    }
    *out_id = merge->id;
    return merge->rank;
}

static void join_short(struct encoder *encoder)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct symbol *symbols = encoder->symbols;
    uint32_t ranks[SHORT_WORD], ids[SHORT_WORD];
    size_t count = encoder->symbol_count;
    for (size_t i = 0; i + 1 < count; i++) {
        ranks[i] = rank_of(tokenizer, &symbols[i], &symbols[i + 1], &ids[i]);
    }
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            best = ranks[i] < ranks[best] ? i : best;
        }
        if (ranks[best] == NONE) {
            break;
        }
        symbols[best].id = ids[best];
        count--;
        for (size_t i = best + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
        }
        for (size_t i = best + 1; i + 1 < count; i++) {
            ranks[i] = ranks[i + 1];
            ids[i] = ids[i + 1];
        }
        if (best + 1 < count) {
            ranks[best] = rank_of(tokenizer, &symbols[best], &symbols[best + 1], &ids[best]);
        }
        if (best > 0) {
            ranks[best - 1] =
                rank_of(tokenizer, &symbols[best - 1], &symbols[best], &ids[best - 1]);
        }
    }
    encoder->symbol_count = count;
}

/* The pairs that may be joined come out by rank, and of one rank from left to right. They are
 * mostly met in that order, too: once at the beginning, and again each time that the joins of one
 * rank go through the text. So pairs of one rank are a list that ascends, and the heap has only the
 * first pair of each list: for a text of one letter it has a few lists instead of a million pairs.
 * A pair that does not fit behind the last of its list begins another list. */

/* Four children each: the heap is half as deep, and children share a line of the cache. */
#define HEAP_CHILDREN 4

static void heap_down(struct pair_list *heap, size_t count, size_t at)
{
    struct pair_list moved = heap[at];
    while (at * HEAP_CHILDREN + 1 < count) {
        size_t first = at * HEAP_CHILDREN + 1, child = first;
        size_t end = count - first < HEAP_CHILDREN ? count : first + HEAP_CHILDREN;
        for (size_t i = first + 1; i < end; i++) {
            child = heap[i].order < heap[child].order ? i : child;
        }
        if (heap[child].order >= moved.order) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void heap_push(struct pair_queue *queue, struct pair_list list)
{
    must(queue->list_count < queue->capacity);
    struct pair_list *heap = queue->lists;
    size_t at = queue->list_count++;
    while (at > 0 && heap[(at - 1) / HEAP_CHILDREN].order > list.order) {
        heap[at] = heap[(at - 1) / HEAP_CHILDREN];
        at = (at - 1) / HEAP_CHILDREN;
    }
    heap[at] = list;
}

/* A word of |count| symbols has count - 1 pairs at first, and each of fewer than |count| joins
 * takes one pair and offers two. */
static enum status begin_queue(struct encoder *encoder, size_t count)
{
    struct pair_queue *queue = &encoder->queue;
    TRY(encoder_reserve(encoder, (void **)&queue->lists, &queue->capacity, count * 2,
                        sizeof(*queue->lists)));
    TRY(encoder_reserve(encoder, (void **)&queue->nodes, &queue->node_capacity, count * 2,
                        sizeof(*queue->nodes)));
    queue->list_count = 0;
    queue->node_count = 0;
    queue->free_node = NONE;
    return ST_OK;
}

void bpe_init_queue(struct pair_queue *queue)
{
    for (unsigned i = 0; i < PAIR_TAILS; i++) {
        queue->tails[i].last = NONE;
    }
}

static uint32_t take_node(struct pair_queue *queue, uint32_t left)
{
    uint32_t node = queue->free_node;
    if (node == NONE) {
        must(queue->node_count < queue->node_capacity);
        node = (uint32_t)queue->node_count++;
    } else {
        queue->free_node = queue->nodes[node].next;
    }
    queue->nodes[node] = (struct pair_node){left, NONE};
    return node;
}

static void push_pair(struct pair_queue *queue, uint32_t rank, uint32_t left, uint32_t id)
{
    uint32_t node = take_node(queue, left);
    struct pair_tail *tail = &queue->tails[rank % PAIR_TAILS];
    if (tail->last != NONE && tail->rank == rank && tail->id == id &&
        queue->nodes[tail->last].left <= left) {
        queue->nodes[tail->last].next = node;
    } else {
        heap_push(queue, (struct pair_list){(uint64_t)rank << 32 | left, id, node});
    }
    *tail = (struct pair_tail){rank, id, node};
}

static struct pair_list pop_pair(struct pair_queue *queue)
{
    struct pair_list top = queue->lists[0];
    uint32_t next = queue->nodes[top.node].next, rank = (uint32_t)(top.order >> 32);
    if (next != NONE) {
        queue->lists[0].order = (uint64_t)rank << 32 | queue->nodes[next].left;
        queue->lists[0].node = next;
    } else {
        struct pair_tail *tail = &queue->tails[rank % PAIR_TAILS];
        tail->last = tail->last == top.node ? NONE : tail->last;
        queue->lists[0] = queue->lists[--queue->list_count];
    }
    heap_down(queue->lists, queue->list_count, 0);
    queue->nodes[top.node].next = queue->free_node;
    queue->free_node = top.node;
    return top;
}

static void offer(struct encoder *encoder, uint32_t left)
{
    const struct symbol *symbols = encoder->symbols;
    uint32_t right = symbols[left].next, id = 0;
    if (right == NONE) {
        return;
    }
    uint32_t rank = rank_of(encoder->tokenizer, &symbols[left], &symbols[right], &id);
    if (rank != NONE) {
        push_pair(&encoder->queue, rank, left, id);
    }
}

static void join_next(struct encoder *encoder, struct pair_list top)
{
    struct symbol *symbols = encoder->symbols;
    uint32_t left = (uint32_t)top.order, right = symbols[left].next, id = 0;
    if (symbols[left].is_gone || right == NONE ||
        rank_of(encoder->tokenizer, &symbols[left], &symbols[right], &id) == NONE || id != top.id) {
        return; /* a neighbour has changed since */
    }
    symbols[left].id = id;
    symbols[left].next = symbols[right].next;
    symbols[right].is_gone = true;
    if (symbols[right].next != NONE) {
        symbols[symbols[right].next].previous = left;
    }
    if (symbols[left].previous != NONE) {
        offer(encoder, symbols[left].previous);
    }
    offer(encoder, left);
}

static enum status join_long(struct encoder *encoder)
{
    size_t count = encoder->symbol_count, kept = 0;
    struct symbol *symbols = encoder->symbols;
    TRY(begin_queue(encoder, count));
    for (size_t i = 0; i < count; i++) {
        symbols[i].previous = i > 0 ? (uint32_t)i - 1 : NONE;
        symbols[i].next = i + 1 < count ? (uint32_t)i + 1 : NONE;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        offer(encoder, (uint32_t)i);
    }
    while (encoder->queue.list_count > 0) {
        join_next(encoder, pop_pair(&encoder->queue));
    }
    for (size_t i = 0; i < count; i++) {
        if (!symbols[i].is_gone) {
            symbols[kept++] = symbols[i];
        }
    }
    encoder->symbol_count = kept;
    return ST_OK;
}

static bool is_whole_token(struct encoder *encoder, struct span word, uint32_t *out)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    if (tokenizer->model.takes_bytes && !tokenizer->model.is_raw) {
        buf_reset(&encoder->word);
        byte_level_add(&encoder->word, word);
        if (buf_failed(&encoder->word)) {
            return false; /* longer than any token, or no memory for a shortcut */
        }
        word = buf_span(&encoder->word);
    }
    *out = vocab_find(&tokenizer->vocab, word);
    return *out != VOCAB_NONE;
}

/* SentencePiece: an unknown symbol becomes its bytes, or one unknown token for a run of them. */
static enum status put_pieces(struct encoder *encoder, struct span word)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    const struct token_model *model = &tokenizer->model;
    bool is_behind_unknown = false;
    size_t at = 0;
    for (size_t i = 0; i < encoder->symbol_count; i++) {
        uint32_t id = encoder->symbols[i].id;
        if (id < tokenizer->vocab.size) {
            at += vocab_text(&tokenizer->vocab, id).len;
            TRY(encoder_add(encoder, id));
            is_behind_unknown = false;
            continue;
        }
        size_t len;
        (void)unicode_next(word.ptr + at, &len);
        if (model->byte_fallback) {
            for (size_t byte = 0; byte < len; byte++) {
                TRY(encoder_add(encoder, model->fallback_ids[word.ptr[at + byte]]));
            }
        } else if (!is_behind_unknown) {
            TRY(encoder_add(encoder, model->unk_id));
            is_behind_unknown = true;
        }
        at += len;
    }
    return ST_OK;
}

enum status bpe_encode(struct encoder *encoder, struct span word)
{
    const struct token_model *model = &encoder->tokenizer->model;
    uint32_t whole;
    if (model->ignore_merges && is_whole_token(encoder, word, &whole)) {
        return encoder_add(encoder, whole);
    }
    /* A word's last and other characters with prefix and suffix may all fall back to bytes. */
    size_t symbols_max =
        word.len * (1 + (model->byte_fallback ? model->prefix.len : 0)) + model->suffix.len + 1;
    TRY(encoder_reserve(encoder, (void **)&encoder->symbols, &encoder->symbol_capacity, symbols_max,
                        sizeof(*encoder->symbols)));
    encoder->symbol_count = 0;
    if (model->piece_types) {
        add_pieces(encoder, word);
    } else if (model->takes_bytes) {
        add_bytes(encoder, word);
    } else {
        add_characters(encoder, word);
    }
    if (encoder->symbol_count > SHORT_WORD) {
        TRY(join_long(encoder));
    } else {
        join_short(encoder);
    }
    if (model->piece_types) {
        return put_pieces(encoder, word);
    }
    for (size_t i = 0; i < encoder->symbol_count; i++) {
        TRY(encoder_add(encoder, encoder->symbols[i].id));
    }
    return ST_OK;
}
