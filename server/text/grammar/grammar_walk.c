/* SPDX-License-Identifier: MIT */
/*
 * A walk over the automaton of a grammar. A state of the walk is a set of places, each a move with
 * the rules that are open around it. Sets and open rules are kept once each, so a state is a number
 * and its moves by bytes are looked up in a table that is filled when it is asked.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "server/text/grammar/grammar_walk_priv.h"

#define PLACES_MAX 4096           /* of one state */
#define PLACES_ALL_MAX (4u << 20) /* of all states */
#define MARKS (4 * PLACES_MAX)    /* a power of two */
#define FRAMES_MAX (1u << 18)
#define LOOKS_OF_TABLE 32 /* a new table of moves takes as long as so many places */

#define DEAD GRAMMAR_DEAD
#define UNKNOWN GRAMMAR_UNKNOWN

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

static bool has_room_for_frame(struct grammar_walk *walk)
{
    if (walk->frame_count == FRAMES_MAX) {
        return fail(walk, ST_TOO_LARGE);
    }
    return ARRAY_ROOM(walk->frames, walk->frame_capacity, walk->frame_count + 1) ||
           fail(walk, ST_EXHAUSTED);
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
    if (!has_room_for_frame(walk)) {
        return UNKNOWN;
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

/* Enters a rule. A place that would nest too deep is left out: the text has to end before. */
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
    uint32_t i = 0;
    walk->work_count = 0;
    for (; i < count && is_good; i++) {
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
    walk->looked += i;
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
    if (walk->state_count == GRAMMAR_STATES_MAX ||
        walk->place_count > PLACES_ALL_MAX - state.count) {
        fail(walk, ST_TOO_LARGE);
        return DEAD;
    }
    if (!ARRAY_ROOM(walk->states, walk->state_capacity, walk->state_count + 1)) {
        fail(walk, ST_EXHAUSTED);
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

/* The bytes that a state treats alike. */
struct byte_range {
    uint8_t lo, hi;
};

/* Narrows |range|, which has |byte|, to the bytes that |move| treats like |byte|. */
static bool narrow(struct byte_range *range, const struct move *move, uint8_t byte)
{
    bool takes = move->lo <= byte && byte <= move->hi;
    if (move->lo > move->hi) {
        return false; /* it takes no byte */
    }
    if (takes) {
        range->lo = move->lo > range->lo ? move->lo : range->lo;
        range->hi = move->hi < range->hi ? move->hi : range->hi;
    } else if (move->hi < byte) {
        range->lo = move->hi >= range->lo ? (uint8_t)(move->hi + 1) : range->lo;
    } else {
        range->hi = move->lo <= range->hi ? (uint8_t)(move->lo - 1) : range->hi;
    }
    return takes;
}

static uint32_t make_move(struct grammar_walk *walk, uint32_t from, uint8_t byte,
                          struct byte_range *out_range)
{
    const struct walk_state *state = &walk->states[from];
    uint32_t count = 0;
    *out_range = (struct byte_range){0, UINT8_MAX};
    walk->looked += state->count;
    begin_places(walk);
    for (uint32_t i = 0; i < state->count; i++) {
        const struct move *move = &walk->grammar->moves[state->places[i].move];
        if (narrow(out_range, move, byte) &&
            !push(walk, &count, move->next, state->places[i].frame)) {
            return DEAD;
        }
    }
    return find_state(walk, count);
}

uint32_t grammar_walk_step(struct grammar_walk *walk, uint32_t from, uint8_t byte)
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
        walk->table_count++;
        walk->looked += LOOKS_OF_TABLE;
    }
    if (moves[byte] == UNKNOWN) {
        struct byte_range range;
        uint32_t to = make_move(walk, from, byte, &range);
        if (to == DEAD && walk->status != ST_OK) {
            return DEAD; /* another time there may be memory */
        }
        for (unsigned alike = range.lo; alike <= range.hi; alike++) {
            moves[alike] = to;
        }
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
    bool has_room = ARRAY_ROOM(walk->frames, walk->frame_capacity, 1) &&
                    ARRAY_ROOM(walk->states, walk->state_capacity, 1);
    if (!walk->work || !walk->pending || !walk->marks || !has_room) {
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
        return error_no_memory(err, "the states of a grammar");
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
    for (uint32_t i = 0; i < GRAMMAR_MASKS_KEPT; i++) {
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

size_t grammar_walk_bytes(const struct grammar_walk *walk)
{
    return sizeof(*walk) + 2 * PLACES_MAX * sizeof(struct place) + MARKS * sizeof(struct mark) +
           walk->state_capacity * sizeof(struct walk_state) +
           walk->place_count * sizeof(struct place) + walk->table_count * 256 * sizeof(uint32_t) +
           walk->frame_capacity * sizeof(struct frame) +
           (walk->state_index.size + walk->frame_index.size) * sizeof(uint32_t) + walk->mask_bytes;
}

enum status grammar_walk_check(const struct grammar_walk *walk, struct error *err)
{
    if (walk->status == ST_EXHAUSTED) {
        return error_no_memory(err, "the states of a grammar");
    }
    return walk->status == ST_OK
               ? ST_OK
               : error_set(err, ST_TOO_LARGE,
                           "the grammar has more than %u states, or more than %u ways to go on",
                           GRAMMAR_STATES_MAX, PLACES_MAX);
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
        at = grammar_walk_step(walk, at, bytes.ptr[i]);
    }
    if (at != DEAD) {
        state->at = at;
    }
    return at != DEAD;
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
