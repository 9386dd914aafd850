/* SPDX-License-Identifier: MIT */
/* The memory of a walk over the automaton of a grammar. */
#ifndef PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_WALK_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_WALK_PRIV_H

#include "server/text/grammar/grammar_priv.h"

#define GRAMMAR_STATES_MAX 32768
#define GRAMMAR_MASKS_KEPT 8
#define GRAMMAR_DEAD 0 /* the state that no text leaves */
#define GRAMMAR_UNKNOWN UINT32_MAX

/* A rule that is open: where it goes on, and the rule around it. Frame 0: none. */
struct frame {
    uint32_t next, outer, depth;
};

struct place {
    uint32_t move, frame;
};

/* Finds an entry of walk->pending quickly. A mark of another round counts for nothing. */
struct mark {
    struct place place;
    uint32_t round;
};

struct walk_state {
    struct place *places; /* owned, sorted; moves by bytes only */
    uint32_t count;
    bool may_end;
    bool knows_free;     /* the four below are known */
    uint32_t free_kinds; /* a bit for each kind of character that always leads to |free_next| */
    uint32_t dead_kinds; /* a bit for each kind that has no allowed character */
    uint32_t free_next;
    uint32_t *moves; /* owned, of 256 bytes; NULL: none is known */
};

/* Open addressing: numbers of items + 1. */
struct index {
    uint32_t *slots;
    uint32_t size, count; /* size is a power of two */
};

/* A mask that was made, or a part of it. Within a string the state is the same after each
 * character. */
struct kept_mask {
    const struct grammar_vocabulary *vocabulary; /* borrowed; NULL: none */
    uint32_t state;
    uint32_t next_node;                   /* of the vocabulary, where it goes on */
    uint32_t path[GRAMMAR_TOKEN_MAX + 1]; /* the states behind the nodes above that one */
    uint64_t *bits;                       /* owned */
};

struct grammar_walk {
    const struct grammar *grammar; /* borrowed */
    struct walk_state *states;     /* state 0 is GRAMMAR_DEAD */
    uint32_t state_count;
    size_t state_capacity;
    struct frame *frames;
    uint32_t frame_count;
    size_t frame_capacity;
    struct index state_index, frame_index;
    struct place *work; /* of a state that is being made */
    uint32_t work_count;
    struct place *pending;
    struct mark *marks;
    struct kept_mask masks[GRAMMAR_MASKS_KEPT]; /* by the state's number */
    uint32_t round;
    uint32_t place_count; /* of all states */
    uint32_t table_count; /* of moves */
    size_t mask_bytes;
    uint64_t looked;     /* places that were looked at for new moves */
    uint64_t looked_max; /* then grammar_mask_within() makes no more */
    uint32_t start;
    enum status status; /* why a state could not be made */
};

/* Returns where |byte| leads; may move walk->states. GRAMMAR_DEAD, too, when the walk fails. */
uint32_t grammar_walk_step(struct grammar_walk *walk, uint32_t from, uint8_t byte);

#endif
