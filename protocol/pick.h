/* SPDX-License-Identifier: MIT */
/*
 * Selects one result of a method as the input of another call. This is the value of "output" in a
 * promise (POST /v2/batch) and in a pipeline's document:
 *
 *     2               a number: the raw index
 *     "boxes.0"       a string: the name or the alias (runtime/program/names.h)
 *     ["boxes", 0]    a list: the keys and positions that lead to it in the structure of the
 * results
 *
 * Any thread.
 */
#ifndef PTED_PROTOCOL_PICK_H
#define PTED_PROTOCOL_PICK_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "protocol/sip.h"

struct json;

enum pick_kind {
    PICK_ONLY, /* not given: the method's only result */
    PICK_INDEX,
    PICK_NAME,
    PICK_PATH
};

/* By |kind|. Texts borrow from the document, or lie in the arena. */
struct pick {
    enum pick_kind kind;
    uint64_t index;
    struct span name;
    const struct sip_path_key *path;
    uint32_t depth; /* of |path| */
};

/* Reads the value that comes next. ST_TOO_LARGE: a text longer than |text_bytes_max|, a path deeper
 * than a structure can be, or a full arena. ST_EXHAUSTED: the heap refused the arena memory. */
MUST_CHECK enum status pick_read(struct json *in, size_t text_bytes_max, struct arena *arena,
                                 struct pick *out, struct error *err);

/* Finds the raw index that |pick|'s path leads to. The text of ST_INVALID says how far the path
 * leads and what is found there. */
MUST_CHECK enum status pick_follow(const struct pick *pick, const struct sip_tree *tree,
                                   uint32_t *out_index, struct error *err);

/* Takes a leaf of the results and the leaf of the inputs that it becomes, by raw index. */
typedef enum status pick_pair_f(void *user, uint32_t result, uint32_t input, struct error *err);

struct pick_structure {
    const struct sip *to; /* the structure of the call that takes the results ... */
    uint32_t node;        /* ... whose inputs take them here */
    pick_pair_f *pair;    /* told about each leaf; may refuse it */
    void *user;
};

/* Do the first |depth| keys of |pick|'s path lead to a structure as |wanted|: with the same lists,
 * dicts and keys? Keyword arguments do not count among positional ones. The text of ST_INVALID says
 * where the two differ. */
MUST_CHECK enum status pick_compare(const struct pick *pick, uint32_t depth,
                                    const struct sip_tree *tree,
                                    const struct pick_structure *wanted, struct error *err);

#endif
