/* SPDX-License-Identifier: MIT */
/*
 * Texts that keep to several parts at one time: a pattern and lengths, a look-ahead and what stands
 * behind it.
 *
 * A part without rules becomes moves, as a grammar does, and those become a graph in which each
 * byte leads to one state. A state is a set of threads. A thread has a place in the moves, and what
 * is due: for each other part that the rest of the text has to match, a state of its graph. States
 * from which no text ends are left out, so that a model that follows the graph can always end.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar_priv.h"

#define DUES_MAX 8 /* of one thread */
#define THREADS_MAX 2048
#define STATES_MAX (1u << 16)
#define SLOTS (2 * STATES_MAX)
#define EDGES_MAX GRAMMAR_NODES_MAX
#define WORK_MAX (1u << 25) /* of all meets of one grammar, some 4 ns each */
#define WORK_OF_THREAD 4    /* a thread that goes on, beside one that is looked at */
#define WORK_BYTES_MAX (48u << 20)
#define NOWHERE UINT32_MAX

/* What the rest of the text has to match: |look| of builder->looks, from |state| on. */
struct due {
    uint32_t look, state;
};

struct thread {
    uint32_t move;
    uint32_t due_count;
    struct due dues[DUES_MAX]; /* sorted */
};

struct state {
    const struct thread *threads; /* sorted */
    uint32_t thread_count;
    struct graph_edge *edges;
    uint32_t edge_count;
    bool may_end, is_any, is_kept;
};

struct meet {
    struct grammar_builder *builder;
    struct arena arena; /* of the work */
    struct grammar *moves;
    uint32_t any; /* the move that repeats any byte behind a look-ahead; NOWHERE: none */
    struct state *states;
    uint32_t state_count;
    uint32_t *slots; /* numbers of states + 1 */
    struct thread *set;
    uint32_t set_count;
    uint32_t edge_count;
    bool is_at_begin; /* of the text */
};

static bool fail(struct meet *meet, enum status code)
{
    if (code == ST_EXHAUSTED) {
        grammar_refuse(meet->builder, code, "no memory for a grammar");
    } else {
        grammar_refuse(meet->builder, code,
                       "what has to hold of one text at one time, such as a pattern and lengths, "
                       "has more than %u states, or takes too long to put together",
                       STATES_MAX);
    }
    return false;
}

/* ---- what is due ----------------------------------------------------------------------------- */

static uint32_t follow(const struct graph *graph, uint32_t state, uint8_t byte)
{
    const struct graph_state *at = &graph->states[state];
    for (uint32_t i = 0; i < at->edge_count; i++) {
        if (byte >= at->edges[i].lo && byte <= at->edges[i].hi) {
            return at->edges[i].to;
        }
    }
    return NOWHERE;
}

/* Adds that the rest matches, or does not match, a graph from |state| on. False: it cannot. */
static bool owe(struct meet *meet, struct thread *thread, uint32_t look, uint32_t state)
{
    const struct grammar_look *to = &meet->builder->looks[look];
    bool never = state == NOWHERE, always = !never && to->graph->states[state].is_any;
    if (never || always) {
        return to->is_negative ? never : always;
    }
    uint32_t at = 0;
    while (at < thread->due_count &&
           (thread->dues[at].look < look ||
            (thread->dues[at].look == look && thread->dues[at].state < state))) {
        at++;
    }
    if (at < thread->due_count && thread->dues[at].look == look &&
        thread->dues[at].state == state) {
        return true;
    }
    if (thread->due_count == DUES_MAX) {
        return fail(meet, ST_TOO_LARGE);
    }
    memmove(&thread->dues[at + 1], &thread->dues[at],
            (thread->due_count - at) * sizeof(thread->dues[0]));
    thread->dues[at] = (struct due){look, state};
    thread->due_count++;
    return true;
}

/* May the text end where this is due? */
static bool is_paid(const struct meet *meet, const struct thread *thread)
{
    for (uint32_t i = 0; i < thread->due_count; i++) {
        const struct grammar_look *look = &meet->builder->looks[thread->dues[i].look];
        if (look->graph->states[thread->dues[i].state].may_end == look->is_negative) {
            return false;
        }
    }
    return true;
}

/* ---- sets of threads ------------------------------------------------------------------------- */

static int by_thread(const void *a, const void *b)
{
    const struct thread *one = a, *two = b;
    if (one->move != two->move) {
        return one->move < two->move ? -1 : 1;
    }
    if (one->due_count != two->due_count) {
        return one->due_count < two->due_count ? -1 : 1;
    }
    return memcmp(one->dues, two->dues, one->due_count * sizeof(one->dues[0]));
}

static bool add(struct meet *meet, const struct thread *thread)
{
    for (uint32_t i = 0; i < meet->set_count; i++) {
        if (by_thread(&meet->set[i], thread) == 0) {
            return true;
        }
    }
    meet->builder->work += meet->set_count / 4 + WORK_OF_THREAD;
    if (meet->set_count == THREADS_MAX || meet->builder->work > WORK_MAX) {
        return fail(meet, ST_TOO_LARGE);
    }
    meet->set[meet->set_count++] = *thread;
    return true;
}

/* Goes on from each thread of the set by what takes no byte; the set gets longer meanwhile. */
static bool close_set(struct meet *meet)
{
    bool is_good = true;
    for (uint32_t i = 0; i < meet->set_count && is_good; i++) {
        struct thread thread = meet->set[i];
        const struct move *move = &meet->moves->moves[thread.move];
        thread.move = move->next;
        if (move->kind == MOVE_SPLIT) {
            is_good = add(meet, &thread);
            thread.move = move->other;
        } else if (move->kind == MOVE_LOOK) {
            if (!owe(meet, &thread, move->other, 0)) {
                is_good = meet->builder->status == ST_OK;
                continue;
            }
        } else if (move->kind != MOVE_BEGIN || !meet->is_at_begin) {
            continue;
        }
        is_good = is_good && add(meet, &thread);
    }
    return is_good;
}

/* Leaves the threads that wait for a byte, or have ended, in their order. */
static void tidy_set(struct meet *meet)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < meet->set_count; i++) {
        const struct move *move = &meet->moves->moves[meet->set[i].move];
        if (move->kind == MOVE_BYTE || move->kind == MOVE_RETURN) {
            meet->set[count++] = meet->set[i];
        }
        if (meet->set[i].move == meet->any && meet->set[i].due_count == 0) {
            meet->set[0] = meet->set[i]; /* whatever comes, it matches */
            meet->set_count = 1;
            return;
        }
    }
    meet->set_count = count;
    qsort(meet->set, count, sizeof(*meet->set), by_thread);
}

/* ---- states ---------------------------------------------------------------------------------- */

static uint32_t hash_set(const struct meet *meet)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < meet->set_count; i++) {
        const struct thread *thread = &meet->set[i];
        hash = (hash ^ thread->move) * 0x9e3779b1u;
        for (uint32_t k = 0; k < thread->due_count; k++) {
            hash = (hash ^ (thread->dues[k].look << 20) ^ thread->dues[k].state) * 0x9e3779b1u;
        }
        hash ^= hash >> 15;
    }
    return hash;
}

static bool is_set(const struct meet *meet, const struct state *state)
{
    bool is_same = state->thread_count == meet->set_count;
    for (uint32_t i = 0; i < meet->set_count && is_same; i++) {
        is_same = by_thread(&state->threads[i], &meet->set[i]) == 0;
    }
    return is_same;
}

/* Makes a state of the set; false: no room. */
static bool keep_set(struct meet *meet)
{
    struct state *state = &meet->states[meet->state_count];
    if (meet->state_count == STATES_MAX) {
        return fail(meet, ST_TOO_LARGE);
    }
    size_t size = meet->set_count * sizeof(*meet->set);
    struct thread *threads = arena_alloc(&meet->arena, size);
    if (!threads) {
        return fail(meet, ST_TOO_LARGE);
    }
    memcpy(threads, meet->set, size);
    *state = (struct state){.threads = threads, .thread_count = meet->set_count};
    for (uint32_t i = 0; i < meet->set_count; i++) {
        state->may_end |=
            meet->moves->moves[threads[i].move].kind == MOVE_RETURN && is_paid(meet, &threads[i]);
        state->is_any |= threads[i].move == meet->any && threads[i].due_count == 0;
    }
    state->may_end |= state->is_any;
    meet->state_count++;
    return true;
}

/* The state of the set, NOWHERE if it is empty. False: no room. */
static bool find_state(struct meet *meet, uint32_t *out)
{
    *out = NOWHERE;
    if (!close_set(meet)) {
        return false;
    }
    tidy_set(meet);
    if (meet->set_count == 0) {
        return true;
    }
    uint32_t at = hash_set(meet) & (SLOTS - 1);
    for (uint32_t item; (item = meet->slots[at]) != 0; at = (at + 1) & (SLOTS - 1)) {
        if (is_set(meet, &meet->states[item - 1])) {
            *out = item - 1;
            return true;
        }
    }
    *out = meet->state_count;
    meet->slots[at] = meet->state_count + 1;
    return keep_set(meet);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Marks the bytes at which something begins that the state treats differently. */
static void mark_begins(const struct meet *meet, const struct state *state, bool begins[257])
{
    memset(begins, 0, 257);
    begins[0] = true;
    for (uint32_t i = 0; i < state->thread_count; i++) {
        const struct thread *thread = &state->threads[i];
        const struct move *move = &meet->moves->moves[thread->move];
        begins[move->kind == MOVE_BYTE ? move->lo : 0] = true;
        begins[move->kind == MOVE_BYTE ? move->hi + 1 : 0] = true;
        for (uint32_t k = 0; k < thread->due_count; k++) {
            const struct graph *graph = meet->builder->looks[thread->dues[k].look].graph;
            const struct graph_state *due = &graph->states[thread->dues[k].state];
            for (uint32_t e = 0; e < due->edge_count; e++) {
                begins[due->edges[e].lo] = begins[due->edges[e].hi + 1] = true;
            }
        }
    }
}

/* Fills the set with the threads behind |byte|; false: no room. */
static bool step(struct meet *meet, const struct state *state, uint8_t byte)
{
    meet->set_count = 0;
    for (uint32_t i = 0; i < state->thread_count; i++) {
        const struct thread *from = &state->threads[i];
        const struct move *move = &meet->moves->moves[from->move];
        struct thread to = {.move = move->next};
        bool lives = move->kind == MOVE_BYTE && byte >= move->lo && byte <= move->hi;
        for (uint32_t k = 0; k < from->due_count && lives; k++) {
            const struct due *due = &from->dues[k];
            const struct graph *graph = meet->builder->looks[due->look].graph;
            lives = owe(meet, &to, due->look, follow(graph, due->state, byte));
        }
        meet->builder->work++;
        if (meet->builder->status != ST_OK || (lives && !add(meet, &to))) {
            return false;
        }
    }
    return true;
}

/* Appends an edge, or widens the last one. */
static void put_edge(struct graph_edge *edges, uint32_t *count, struct graph_edge edge)
{
    if (*count > 0 && edges[*count - 1].to == edge.to && edges[*count - 1].hi + 1 == edge.lo) {
        edges[*count - 1].hi = edge.hi;
    } else {
        edges[(*count)++] = edge;
    }
}

static bool make_edges(struct meet *meet, uint32_t number)
{
    bool begins[257];
    struct graph_edge edges[256];
    uint32_t count = 0;
    mark_begins(meet, &meet->states[number], begins);
    for (unsigned lo = 0, hi; lo < 256; lo = hi + 1) {
        uint32_t to;
        for (hi = lo; !begins[hi + 1] && hi < 255; hi++) {
        }
        if (!step(meet, &meet->states[number], (uint8_t)lo) || !find_state(meet, &to)) {
            return false;
        }
        if (to != NOWHERE) {
            put_edge(edges, &count, (struct graph_edge){(uint8_t)lo, (uint8_t)hi, to});
        }
    }
    struct graph_edge *kept = arena_alloc(&meet->arena, (count + 1) * sizeof(*kept));
    meet->edge_count += count;
    if (!kept || meet->edge_count > EDGES_MAX) {
        return fail(meet, ST_TOO_LARGE);
    }
    memcpy(kept, edges, count * sizeof(*kept));
    meet->states[number].edges = kept;
    meet->states[number].edge_count = count;
    return true;
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Marks the states from which a text can end, backwards from those where it ends. False: no
 * memory. */
static bool mark_kept(struct meet *meet)
{
    uint32_t *firsts = calloc(meet->state_count + 1, sizeof(*firsts)), count = 0;
    uint32_t *nexts = calloc(meet->edge_count + 1, sizeof(*nexts));
    uint32_t *froms = calloc(meet->edge_count + 1, sizeof(*froms));
    uint32_t *stack = calloc(meet->state_count + 1, sizeof(*stack));
    bool is_good = firsts && nexts && froms && stack;
    for (uint32_t i = 0, edge = 1; i < meet->state_count && is_good; i++) {
        for (uint32_t k = 0; k < meet->states[i].edge_count; k++, edge++) {
            uint32_t to = meet->states[i].edges[k].to;
            froms[edge] = i;
            nexts[edge] = firsts[to];
            firsts[to] = edge;
        }
        if (meet->states[i].may_end) {
            meet->states[i].is_kept = true;
            stack[count++] = i;
        }
    }
    while (is_good && count > 0) {
        uint32_t at = stack[--count];
        for (uint32_t edge = firsts[at]; edge; edge = nexts[edge]) {
            if (!meet->states[froms[edge]].is_kept) {
                meet->states[froms[edge]].is_kept = true;
                stack[count++] = froms[edge];
            }
        }
    }
    free(firsts);
    free(nexts);
    free(froms);
    free(stack);
    return is_good || fail(meet, ST_EXHAUSTED);
}

/* The edges of |state| to states that are kept, by their new numbers. */
static bool copy_edges(struct meet *meet, const struct state *state, const uint32_t *numbers,
                       struct graph_state *out)
{
    struct arena *arena = &meet->builder->arena;
    struct graph_edge *edges = arena_alloc(arena, (state->edge_count + 1) * sizeof(*edges));
    if (!edges) {
        return fail(meet, ST_TOO_LARGE);
    }
    *out = (struct graph_state){.edges = edges, .may_end = state->may_end, .is_any = state->is_any};
    for (uint32_t i = 0; i < state->edge_count; i++) {
        struct graph_edge edge = state->edges[i];
        if (meet->states[edge.to].is_kept) {
            edge.to = numbers[edge.to];
            edges[out->edge_count++] = edge;
        }
    }
    return true;
}

/* The graph of the states that are kept; the first state is always there. */
static const struct graph *finish_graph(struct meet *meet)
{
    struct arena *arena = &meet->builder->arena;
    uint32_t *numbers = arena_alloc(&meet->arena, (meet->state_count + 1) * sizeof(*numbers));
    struct graph *graph = arena_alloc(arena, sizeof(*graph));
    struct graph_state *states = arena_alloc(arena, (meet->state_count + 1) * sizeof(*states));
    if (!numbers || !graph || !states || !mark_kept(meet)) {
        fail(meet, ST_TOO_LARGE);
        return NULL;
    }
    *graph = (struct graph){.states = states};
    for (uint32_t i = 0; i < meet->state_count; i++) {
        numbers[i] = i == 0 || meet->states[i].is_kept ? graph->count++ : NOWHERE;
    }
    for (uint32_t i = 0; i < meet->state_count; i++) {
        if (numbers[i] != NOWHERE &&
            !copy_edges(meet, &meet->states[i], numbers, &states[numbers[i]])) {
            return NULL;
        }
    }
    return graph;
}

/* The move that repeats any byte up to the end, which only grammar_rest() makes. */
static uint32_t find_any(const struct grammar *moves)
{
    for (uint32_t i = 0; i < moves->move_count; i++) {
        const struct move *move = &moves->moves[i], *loop = &moves->moves[move->next];
        if (move->kind == MOVE_BYTE && move->lo == 0 && move->hi == UINT8_MAX &&
            loop->kind == MOVE_SPLIT && loop->next == i && loop->other == 0) {
            return i;
        }
    }
    return NOWHERE;
}

static bool make_states(struct meet *meet, uint32_t start, const uint32_t *dues, size_t due_count)
{
    struct thread thread = {.move = start};
    uint32_t first;
    bool lives = true;
    for (size_t i = 0; i < due_count && lives; i++) {
        lives = owe(meet, &thread, dues[i], 0);
    }
    meet->is_at_begin = true;
    meet->set_count = 0;
    if (meet->builder->status != ST_OK || (lives && !add(meet, &thread)) ||
        !find_state(meet, &first) || (first == NOWHERE && !keep_set(meet))) {
        return false;
    }
    meet->is_at_begin = false;
    for (uint32_t i = 0; i < meet->state_count; i++) {
        if (!make_edges(meet, i)) {
            return false;
        }
    }
    return true;
}

static const struct graph *graph_of(struct grammar_builder *builder, const struct part *part,
                                    const uint32_t *dues, size_t due_count)
{
    struct grammar moves = {0};
    struct meet meet = {.builder = builder, .moves = &moves};
    const struct graph *graph = NULL;
    uint32_t start;
    arena_init(&meet.arena, WORK_BYTES_MAX);
    if (part && grammar_compile(builder, part, &moves, &start)) {
        meet.any = find_any(&moves);
        meet.states = calloc(STATES_MAX, sizeof(*meet.states));
        meet.slots = calloc(SLOTS, sizeof(*meet.slots));
        meet.set = calloc(THREADS_MAX, sizeof(*meet.set));
        if (!meet.states || !meet.slots || !meet.set) {
            fail(&meet, ST_EXHAUSTED);
        } else if (make_states(&meet, start, dues, due_count)) {
            graph = finish_graph(&meet);
        }
    }
    free(meet.states);
    free(meet.slots);
    free(meet.set);
    free(moves.moves);
    arena_fini(&meet.arena);
    return graph;
}

/* ---- parts ----------------------------------------------------------------------------------- */

const struct part *grammar_rest(struct grammar_builder *builder)
{
    return grammar_repeat(builder, grammar_bytes(builder, 0, UINT8_MAX), 0, UINT32_MAX);
}

/* The number of a new look; UINT32_MAX: failed. */
static uint32_t add_look(struct grammar_builder *builder, const struct part *part, bool is_negative)
{
    const struct graph *graph =
        part && part->kind == PART_GRAPH ? part->graph : graph_of(builder, part, NULL, 0);
    if (!graph || builder->look_count == GRAMMAR_LOOKS_MAX) {
        grammar_refuse(builder, ST_TOO_LARGE, "more than %d parts that look ahead or meet",
                       GRAMMAR_LOOKS_MAX);
        return NOWHERE;
    }
    builder->looks[builder->look_count] = (struct grammar_look){graph, is_negative};
    return builder->look_count++;
}

const struct part *grammar_look(struct grammar_builder *builder, const struct part *part,
                                bool is_negative)
{
    uint32_t look = add_look(builder, part, is_negative);
    return look == NOWHERE ? NULL
                           : grammar_part(builder, (struct part){.kind = PART_LOOK, .min = look});
}

/* Copies of |one|, in which a character ends without going on: where it ends, the next copy begins.
 * Copy |count - 1| goes on with itself, if there is no end. */
static void copy_states(const struct graph *one, uint32_t min, uint32_t count, bool has_end,
                        struct graph_state *out, struct graph_edge *edges)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = i + 1 < count ? (i + 1) * one->count : i * one->count;
        for (uint32_t k = 0; k < one->count; k++) {
            const struct graph_state *from = &one->states[k];
            struct graph_state *to = &out[i * one->count + k];
            *to = (struct graph_state){.edges = edges, .may_end = k == 0 && i >= min};
            for (uint32_t e = 0; e < from->edge_count && (i + 1 < count || !has_end); e++) {
                edges[e] = from->edges[e];
                edges[e].to =
                    one->states[edges[e].to].may_end ? next : i * one->count + edges[e].to;
                to->edge_count++;
            }
            edges += to->edge_count;
        }
    }
}

const struct part *grammar_counted(struct grammar_builder *builder, const struct part *character,
                                   uint32_t min, uint32_t max)
{
    const struct graph *one = graph_of(builder, character, NULL, 0);
    uint64_t count = (max == UINT32_MAX ? min : (uint64_t)max) + 1, edges = 0;
    if (!one) {
        return NULL;
    }
    for (uint32_t i = 0; i < one->count; i++) {
        edges += one->states[i].edge_count;
    }
    if (count * edges > EDGES_MAX) {
        return grammar_refuse(builder, ST_TOO_LARGE,
                              "a string of up to %u characters with a pattern or a format is too "
                              "long",
                              max == UINT32_MAX ? min : max);
    }
    struct graph *graph = arena_alloc(&builder->arena, sizeof(*graph));
    struct graph_state *states = arena_alloc(&builder->arena, count * one->count * sizeof(*states));
    struct graph_edge *all = arena_alloc(&builder->arena, (count * edges + 1) * sizeof(*all));
    if (!graph || !states || !all) {
        return grammar_refuse(builder, ST_TOO_LARGE, "a grammar takes too much memory");
    }
    copy_states(one, min, (uint32_t)count, max != UINT32_MAX, states, all);
    *graph = (struct graph){.states = states, .count = (uint32_t)(count * one->count)};
    return grammar_part(builder, (struct part){.kind = PART_GRAPH, .graph = graph});
}

/* Each part becomes a graph first: a state of the texts that keep to all is a state of each. */
const struct part *grammar_meet(struct grammar_builder *builder, const struct part *const *parts,
                                size_t count)
{
    uint32_t dues[DUES_MAX];
    must(count > 0 && count <= DUES_MAX);
    for (size_t i = 0; i < count && count > 1; i++) {
        dues[i] = add_look(builder, parts[i], false);
        if (dues[i] == NOWHERE) {
            return NULL;
        }
    }
    const struct graph *graph = count > 1 ? graph_of(builder, grammar_rest(builder), dues, count)
                                          : graph_of(builder, parts[0], NULL, 0);
    if (!graph) {
        return NULL;
    }
    if (graph->states[0].edge_count == 0) {
        return graph->states[0].may_end ? grammar_empty(builder) : grammar_never(builder);
    }
    return grammar_part(builder, (struct part){.kind = PART_GRAPH, .graph = graph});
}
