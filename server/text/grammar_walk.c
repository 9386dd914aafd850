/* SPDX-License-Identifier: MIT */
/*
 * A walk over the automaton of a grammar. A state of the walk is a set of places, each a move with
 * the rules that are open around it. Sets and open rules are kept once each, so a state is a number
 * and its moves by bytes are looked up in a table that is filled when it is asked.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar_priv.h"

#define STATES_MAX 32768
#define PLACES_MAX 4096           /* of one state */
#define PLACES_ALL_MAX (4u << 20) /* of all states */
#define MARKS (4 * PLACES_MAX)    /* a power of two */
#define FRAMES_MAX (1u << 18)
#define UNKNOWN UINT32_MAX
#define DEAD 0

/* A rule that is open: where it goes on, and the rule around it. Frame 0: none. */
struct frame {
    uint32_t next, outer, depth;
};

struct place {
    uint32_t move, frame;
};

/* What is in walk->pending, to be found quickly; of another round: nothing. */
struct mark {
    struct place place;
    uint32_t round;
};

struct walk_state {
    struct place *places; /* owned, sorted; moves by bytes only */
    uint32_t count;
    bool may_end;
    uint32_t *moves; /* owned, of 256 bytes; NULL: none is known */
};

/* Open addressing: numbers of items + 1. */
struct index {
    uint32_t *slots;
    uint32_t size, count; /* size is a power of two */
};

#define MASKS_KEPT 8

/* A mask that was made. Within a string the state is the same after each character. */
struct kept_mask {
    const struct grammar_vocabulary *vocabulary; /* borrowed; NULL: none */
    uint32_t state;
    uint64_t *bits; /* owned */
};

struct grammar_walk {
    const struct grammar *grammar; /* borrowed */
    struct walk_state *states;     /* state 0 is DEAD */
    uint32_t state_count, state_capacity;
    struct frame *frames;
    uint32_t frame_count, frame_capacity;
    struct index state_index, frame_index;
    struct place *work; /* of a state that is being made */
    uint32_t work_count;
    struct place *pending;
    struct mark *marks;
    struct kept_mask masks[MASKS_KEPT]; /* by the state's number */
    uint32_t round;
    uint32_t place_count; /* of all states */
    uint32_t start;
    enum status status; /* why a state could not be made */
};

static bool fail(struct grammar_walk *walk, enum status status)
{
    walk->status = walk->status == ST_OK ? status : walk->status;
    return false;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static uint32_t mix(uint32_t hash, uint32_t word)
{
    hash = (hash ^ word) * 0x9e3779b1u;
    return hash ^ hash >> 15;
}

static uint32_t hash_frame(const struct frame *frame)
{
    return mix(mix(1, frame->next), frame->outer);
}

static uint32_t hash_places(const struct place *places, uint32_t count, bool may_end)
{
    uint32_t hash = mix(2, may_end);
    for (uint32_t i = 0; i < count; i++) {
        hash = mix(mix(hash, places[i].move), places[i].frame);
    }
    return hash;
}

static uint32_t hash_item(const struct grammar_walk *walk, const struct index *index, uint32_t item)
{
    if (index == &walk->frame_index) {
        return hash_frame(&walk->frames[item]);
    }
    const struct walk_state *state = &walk->states[item];
    return hash_places(state->places, state->count, state->may_end);
}

static void put(const struct grammar_walk *walk, struct index *index, uint32_t item)
{
    uint32_t at = hash_item(walk, index, item) & (index->size - 1);
    while (index->slots[at]) {
        at = (at + 1) & (index->size - 1);
    }
    index->slots[at] = item + 1;
    index->count++;
}

/* Room for one more item. */
static bool grow_index(struct grammar_walk *walk, struct index *index)
{
    if (index->size > 0 && index->count < index->size / 2) {
        return true;
    }
    struct index bigger = {.size = index->size ? index->size * 2 : 256};
    bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
    if (!bigger.slots) {
        return fail(walk, ST_EXHAUSTED);
    }
    struct index old = *index;
    *index = bigger;
    for (uint32_t i = 0; i < old.size; i++) {
        if (old.slots[i]) {
            put(walk, index, old.slots[i] - 1);
        }
    }
    free(old.slots);
    return true;
}

static void *grow(struct grammar_walk *walk, void *old, uint32_t *capacity, uint32_t most,
                  size_t size)
{
    uint32_t more = *capacity ? *capacity * 2 : 64;
    if (more > most) {
        fail(walk, ST_TOO_LARGE);
        return NULL;
    }
    void *items = realloc(old, more * size);
    if (!items) {
        fail(walk, ST_EXHAUSTED);
        return NULL;
    }
    *capacity = more;
    return items;
}

/* ---- open rules ------------------------------------------------------------------------------ */

/* The frame that goes on at |next| within |outer|; UNKNOWN: no room. */
static uint32_t find_frame(struct grammar_walk *walk, uint32_t next, uint32_t outer)
{
    struct frame frame = {next, outer, walk->frames[outer].depth + 1};
    if (!grow_index(walk, &walk->frame_index)) {
        return UNKNOWN;
    }
    uint32_t at = hash_frame(&frame) & (walk->frame_index.size - 1);
    for (uint32_t item; (item = walk->frame_index.slots[at]) != 0;
         at = (at + 1) & (walk->frame_index.size - 1)) {
        if (walk->frames[item - 1].next == next && walk->frames[item - 1].outer == outer) {
            return item - 1;
        }
    }
    if (walk->frame_count == walk->frame_capacity) {
        struct frame *frames =
            grow(walk, walk->frames, &walk->frame_capacity, FRAMES_MAX, sizeof(*frames));
        if (!frames) {
            return UNKNOWN;
        }
        walk->frames = frames;
    }
    walk->frames[walk->frame_count] = frame;
    put(walk, &walk->frame_index, walk->frame_count);
    return walk->frame_count++;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Begins a set of places in walk->pending. */
static void begin_places(struct grammar_walk *walk)
{
    walk->round++;
    if (walk->round == 0) {
        memset(walk->marks, 0, MARKS * sizeof(*walk->marks));
        walk->round = 1;
    }
}

/* Adds a place to walk->pending, unless it is there. */
static bool push(struct grammar_walk *walk, uint32_t *count, uint32_t move, uint32_t frame)
{
    uint32_t at = mix(mix(3, move), frame) & (MARKS - 1);
    for (; walk->marks[at].round == walk->round; at = (at + 1) & (MARKS - 1)) {
        if (walk->marks[at].place.move == move && walk->marks[at].place.frame == frame) {
            return true;
        }
    }
    if (*count == PLACES_MAX) {
        return fail(walk, ST_TOO_LARGE);
    }
    walk->marks[at] = (struct mark){{move, frame}, walk->round};
    walk->pending[(*count)++] = (struct place){move, frame};
    return true;
}

/* Enters a rule. What would nest too deep is left out: the text has to end before. */
static bool call(struct grammar_walk *walk, uint32_t *count, const struct move *move,
                 uint32_t frame)
{
    bool is_last = walk->grammar->moves[move->next].kind == MOVE_RETURN;
    if (!is_last) {
        if (walk->frames[frame].depth == GRAMMAR_DEPTH_MAX) {
            return true;
        }
        frame = find_frame(walk, move->next, frame);
    }
    return frame != UNKNOWN && push(walk, count, walk->grammar->rules[move->other], frame);
}

/* Follows all that takes no byte, from the |count| places in walk->pending, to walk->work. */
static bool close_places(struct grammar_walk *walk, uint32_t count, bool *out_may_end)
{
    bool is_good = true;
    walk->work_count = 0;
    for (uint32_t i = 0; i < count && is_good; i++) {
        const struct place place = walk->pending[i];
        const struct move *move = &walk->grammar->moves[place.move];
        switch (move->kind) {
        case MOVE_BYTE:
            walk->work[walk->work_count++] = place;
            break;
        case MOVE_SPLIT:
            is_good = push(walk, &count, move->next, place.frame) &&
                      push(walk, &count, move->other, place.frame);
            break;
        case MOVE_CALL:
            is_good = call(walk, &count, move, place.frame);
            break;
        default:
            *out_may_end |= place.frame == 0;
            if (place.frame != 0) {
                const struct frame *frame = &walk->frames[place.frame];
                is_good = push(walk, &count, frame->next, frame->outer);
            }
        }
    }
    return is_good;
}

static int by_place(const void *a, const void *b)
{
    const struct place *one = a, *two = b;
    if (one->move != two->move) {
        return one->move < two->move ? -1 : 1;
    }
    return (one->frame > two->frame) - (one->frame < two->frame);
}

static bool is_state(const struct walk_state *state, const struct grammar_walk *walk, bool may_end)
{
    return state->count == walk->work_count && state->may_end == may_end &&
           (state->count == 0 ||
            memcmp(state->places, walk->work, state->count * sizeof(*state->places)) == 0);
}

/* Keeps walk->work as a new state. */
static uint32_t keep_state(struct grammar_walk *walk, bool may_end)
{
    struct walk_state state = {.count = walk->work_count, .may_end = may_end};
    if (walk->state_count == walk->state_capacity) {
        struct walk_state *states =
            grow(walk, walk->states, &walk->state_capacity, STATES_MAX, sizeof(*states));
        if (!states) {
            return DEAD;
        }
        walk->states = states;
    }
    if (walk->place_count > PLACES_ALL_MAX - state.count) {
        fail(walk, ST_TOO_LARGE);
        return DEAD;
    }
    walk->place_count += state.count;
    state.places = malloc((state.count ? state.count : 1) * sizeof(*state.places));
    if (!state.places) {
        fail(walk, ST_EXHAUSTED);
        return DEAD;
    }
    memcpy(state.places, walk->work, state.count * sizeof(*state.places));
    walk->states[walk->state_count] = state;
    put(walk, &walk->state_index, walk->state_count);
    return walk->state_count++;
}

/* The state with the places in walk->pending; DEAD: there is none, or no room for it. */
static uint32_t find_state(struct grammar_walk *walk, uint32_t pending_count)
{
    bool may_end = false;
    if (pending_count == 0 || !close_places(walk, pending_count, &may_end) ||
        (walk->work_count == 0 && !may_end) || !grow_index(walk, &walk->state_index)) {
        return DEAD;
    }
    qsort(walk->work, walk->work_count, sizeof(*walk->work), by_place);
    uint32_t at = hash_places(walk->work, walk->work_count, may_end) & (walk->state_index.size - 1);
    for (uint32_t item; (item = walk->state_index.slots[at]) != 0;
         at = (at + 1) & (walk->state_index.size - 1)) {
        if (is_state(&walk->states[item - 1], walk, may_end)) {
            return item - 1;
        }
    }
    return keep_state(walk, may_end);
}

static uint32_t make_move(struct grammar_walk *walk, uint32_t from, uint8_t byte)
{
    const struct walk_state *state = &walk->states[from];
    uint32_t count = 0;
    begin_places(walk);
    for (uint32_t i = 0; i < state->count; i++) {
        const struct move *move = &walk->grammar->moves[state->places[i].move];
        if (move->lo <= byte && byte <= move->hi &&
            !push(walk, &count, move->next, state->places[i].frame)) {
            return DEAD;
        }
    }
    return find_state(walk, count);
}

static uint32_t step(struct grammar_walk *walk, uint32_t from, uint8_t byte)
{
    uint32_t *moves = walk->states[from].moves;
    if (from == DEAD) {
        return DEAD;
    }
    if (!moves) {
        moves = malloc(256 * sizeof(*moves));
        if (!moves) {
            fail(walk, ST_EXHAUSTED);
            return DEAD;
        }
        memset(moves, 0xff, 256 * sizeof(*moves));
        walk->states[from].moves = moves;
    }
    if (moves[byte] == UNKNOWN) {
        uint32_t to = make_move(walk, from, byte);
        if (to == DEAD && walk->status != ST_OK) {
            return DEAD; /* another time there may be memory */
        }
        moves[byte] = to;
    }
    return moves[byte];
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool prepare(struct grammar_walk *walk)
{
    uint32_t count = 0;
    walk->work = malloc(PLACES_MAX * sizeof(*walk->work));
    walk->pending = malloc(PLACES_MAX * sizeof(*walk->pending));
    walk->marks = calloc(MARKS, sizeof(*walk->marks));
    walk->frames = grow(walk, NULL, &walk->frame_capacity, FRAMES_MAX, sizeof(*walk->frames));
    walk->states = grow(walk, NULL, &walk->state_capacity, STATES_MAX, sizeof(*walk->states));
    if (!walk->work || !walk->pending || !walk->marks || !walk->frames || !walk->states) {
        return fail(walk, ST_EXHAUSTED);
    }
    walk->frames[0] = (struct frame){0};
    walk->frame_count = 1;
    walk->states[DEAD] = (struct walk_state){0};
    walk->state_count = 1;
    begin_places(walk);
    push(walk, &count, walk->grammar->rules[0], 0);
    walk->start = find_state(walk, count);
    return walk->status == ST_OK;
}

enum status grammar_walk_new(const struct grammar *grammar, struct grammar_walk **out,
                             struct error *err)
{
    *out = NULL;
    struct grammar_walk *walk = calloc(1, sizeof(*walk));
    if (!walk) {
        return error_set(err, ST_EXHAUSTED, "no memory for the states of a grammar");
    }
    walk->grammar = grammar;
    if (!prepare(walk)) {
        enum status status = grammar_walk_check(walk, err);
        grammar_walk_free(walk);
        return status;
    }
    *out = walk;
    return ST_OK;
}

void grammar_walk_free(struct grammar_walk *walk)
{
    if (!walk) {
        return;
    }
    for (uint32_t i = 0; i < walk->state_count; i++) {
        free(walk->states[i].places);
        free(walk->states[i].moves);
    }
    for (uint32_t i = 0; i < MASKS_KEPT; i++) {
        free(walk->masks[i].bits);
    }
    free(walk->states);
    free(walk->frames);
    free(walk->state_index.slots);
    free(walk->frame_index.slots);
    free(walk->work);
    free(walk->pending);
    free(walk->marks);
    free(walk);
}

enum status grammar_walk_check(const struct grammar_walk *walk, struct error *err)
{
    if (walk->status == ST_EXHAUSTED) {
        return error_set(err, ST_EXHAUSTED, "no memory for the states of a grammar");
    }
    return walk->status == ST_OK
               ? ST_OK
               : error_set(err, ST_TOO_LARGE,
                           "the grammar has more than %u states, or more than %u ways to go on",
                           STATES_MAX, PLACES_MAX);
}

struct grammar_state grammar_walk_begin(const struct grammar_walk *walk)
{
    return (struct grammar_state){walk->start};
}

bool grammar_state_advance(struct grammar_walk *walk, struct grammar_state *state,
                           struct span bytes)
{
    uint32_t at = state->at;
    for (size_t i = 0; i < bytes.len && at != DEAD; i++) {
        at = step(walk, at, bytes.ptr[i]);
    }
    if (at != DEAD) {
        state->at = at;
    }
    return at != DEAD;
}

bool grammar_state_accepts(struct grammar_walk *walk, struct grammar_state state, struct span bytes)
{
    return grammar_state_advance(walk, &state, bytes);
}

bool grammar_state_may_end(const struct grammar_walk *walk, struct grammar_state state)
{
    return walk->states[state.at].may_end;
}

bool grammar_state_must_end(struct grammar_walk *walk, struct grammar_state state)
{
    const struct walk_state *at = &walk->states[state.at];
    for (uint32_t i = 0; i < at->count; i++) {
        const struct move *move = &walk->grammar->moves[at->places[i].move];
        if (move->lo <= move->hi) {
            return false;
        }
    }
    return true;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* A node of the trie of all tokens, in the order of a walk over it. */
struct trie_node {
    uint8_t byte;
    uint16_t depth;         /* of its parent */
    uint32_t skip;          /* the first node behind its subtree */
    uint32_t tokens, count; /* those that end here: a range of vocabulary->tokens */
};

struct grammar_vocabulary {
    size_t token_count;
    struct trie_node *nodes;
    uint32_t node_count;
    uint32_t *tokens; /* sorted by their bytes */
};

struct entry {
    struct span bytes;
    uint32_t token;
};

static int by_bytes(const void *a, const void *b)
{
    return span_compare(((const struct entry *)a)->bytes, ((const struct entry *)b)->bytes);
}

static size_t common(struct span a, struct span b)
{
    size_t len = 0;
    while (len < a.len && len < b.len && a.ptr[len] == b.ptr[len]) {
        len++;
    }
    return len;
}

static void close_nodes(struct grammar_vocabulary *out, const uint32_t *open, size_t from,
                        size_t to)
{
    for (size_t i = from; i < to; i++) {
        out->nodes[open[i]].skip = out->node_count;
    }
}

/* |entries| are sorted; nodes has room. */
static void fill_trie(struct grammar_vocabulary *out, const struct entry *entries, size_t count)
{
    uint32_t open[GRAMMAR_TOKEN_MAX];
    struct span last = {0};
    for (size_t i = 0; i < count; i++) {
        struct span bytes = entries[i].bytes;
        size_t shared = common(last, bytes);
        out->tokens[i] = entries[i].token;
        close_nodes(out, open, shared, last.len);
        for (size_t at = shared; at < bytes.len; at++) {
            open[at] = out->node_count;
            out->nodes[out->node_count++] =
                (struct trie_node){.byte = bytes.ptr[at], .depth = (uint16_t)at};
        }
        struct trie_node *end = &out->nodes[open[bytes.len - 1]];
        end->tokens = end->count ? end->tokens : (uint32_t)i;
        end->count++;
        last = bytes;
    }
    close_nodes(out, open, 0, last.len);
}

static bool make_trie(struct grammar_vocabulary *out, const struct span *tokens, size_t count)
{
    struct entry *entries = malloc((count + 1) * sizeof(*entries));
    size_t used = 0, bytes = 0;
    if (!entries) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (tokens[i].len > 0 && tokens[i].len <= GRAMMAR_TOKEN_MAX) {
            entries[used++] = (struct entry){tokens[i], (uint32_t)i};
            bytes += tokens[i].len;
        }
    }
    qsort(entries, used, sizeof(*entries), by_bytes);
    out->nodes = malloc((bytes + 1) * sizeof(*out->nodes));
    out->tokens = malloc((used + 1) * sizeof(*out->tokens));
    bool is_made = bytes < UINT32_MAX && out->nodes && out->tokens;
    if (is_made) {
        fill_trie(out, entries, used);
        struct trie_node *nodes = realloc(out->nodes, (out->node_count + 1) * sizeof(*nodes));
        out->nodes = nodes ? nodes : out->nodes;
    }
    free(entries);
    return is_made;
}

enum status grammar_vocabulary_new(const struct span *tokens, size_t count,
                                   struct grammar_vocabulary **out, struct error *err)
{
    *out = NULL;
    struct grammar_vocabulary *vocabulary = calloc(1, sizeof(*vocabulary));
    if (vocabulary && count < UINT32_MAX) {
        vocabulary->token_count = count;
        if (make_trie(vocabulary, tokens, count)) {
            *out = vocabulary;
            return ST_OK;
        }
    }
    grammar_vocabulary_free(vocabulary);
    return error_set(err, ST_EXHAUSTED, "no memory for the texts of a vocabulary");
}

void grammar_vocabulary_free(struct grammar_vocabulary *vocabulary)
{
    if (vocabulary) {
        free(vocabulary->nodes);
        free(vocabulary->tokens);
        free(vocabulary);
    }
}

static void make_mask(struct grammar_walk *walk, struct grammar_state state,
                      const struct grammar_vocabulary *vocabulary, uint64_t *bits)
{
    uint32_t states[GRAMMAR_TOKEN_MAX + 1];
    states[0] = state.at;
    for (uint32_t i = 0; i < vocabulary->node_count;) {
        const struct trie_node *node = &vocabulary->nodes[i];
        uint32_t at = states[node->depth], to;
        const uint32_t *moves = walk->states[at].moves;
        to = moves && moves[node->byte] != UNKNOWN ? moves[node->byte] : step(walk, at, node->byte);
        if (to == DEAD) {
            i = node->skip;
            continue;
        }
        states[node->depth + 1] = to;
        for (uint32_t k = node->tokens; k < node->tokens + node->count; k++) {
            uint32_t token = vocabulary->tokens[k];
            bits[token / 64] |= UINT64_C(1) << (token % 64);
        }
        i++;
    }
}

static void keep_mask(struct kept_mask *kept, struct grammar_state state,
                      const struct grammar_vocabulary *vocabulary, const uint64_t *bits,
                      size_t size)
{
    uint64_t *copy = realloc(kept->bits, size ? size : 1);
    if (copy) {
        memcpy(copy, bits, size);
        *kept = (struct kept_mask){vocabulary, state.at, copy};
    } else {
        kept->vocabulary = NULL; /* it is made again another time */
    }
}

enum status grammar_mask(struct grammar_walk *walk, struct grammar_state state,
                         const struct grammar_vocabulary *vocabulary, uint64_t *bits,
                         struct error *err)
{
    struct kept_mask *kept = &walk->masks[state.at % MASKS_KEPT];
    size_t size = (vocabulary->token_count + 63) / 64 * sizeof(*bits);
    if (kept->vocabulary == vocabulary && kept->state == state.at) {
        memcpy(bits, kept->bits, size);
        return grammar_walk_check(walk, err);
    }
    memset(bits, 0, size);
    make_mask(walk, state, vocabulary, bits);
    TRY(grammar_walk_check(walk, err));
    keep_mask(kept, state, vocabulary, bits, size);
    return ST_OK;
}
