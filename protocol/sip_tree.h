/* SPDX-License-Identifier: MIT */
/*
 * A structure of values: sequences and dicts with raw indices at the leaves.
 *
 * The nodes lie in one array. The root is nodes[0]; the members of a node lie side by side behind
 * it, ordered by their keys (positions by number, names by bytes), so that a member is found by
 * bisection and two trees with the same meaning are equal. Positions may have gaps, which stand for
 * null. A tree is immutable once built, and lives in the arena that it was built in.
 *
 * No function here recurses; nesting is limited to SIP_DEPTH_MAX all the same, because readers of
 * such values elsewhere do. Any thread.
 */
#ifndef PTED_PROTOCOL_SIP_TREE_H
#define PTED_PROTOCOL_SIP_TREE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

#define SIP_DEPTH_MAX 64 /* sequences and dicts inside each other */
#define SIP_NO_NODE UINT32_MAX

enum sip_kind {
    SIP_NOTHING, /* only as a root: a function without inputs or results */
    SIP_LEAF,
    SIP_SEQUENCE,
    SIP_DICT,
};

/* The place in its parent: a position in a sequence, a name in a dict. */
struct sip_key {
    int64_t position;
    struct span name; /* any bytes */
};

/* A key that says itself which of the two it is. */
struct sip_path_key {
    bool is_name;
    struct sip_key key;
};

struct sip_node {
    enum sip_kind kind;
    uint32_t parent;       /* SIP_NO_NODE at the root */
    uint32_t first, count; /* members: nodes[first..first+count) */
    struct sip_key key;    /* by the kind of the parent */
    int64_t raw_index;     /* of a leaf */
    size_t content_bytes;  /* of the members in a signature */
};

struct sip_tree {
    const struct sip_node *nodes;
    uint32_t count; /* at least 1 */
    uint32_t leaf_count;
};

/* Returns the length of a sequence as an array: its last position + 1, or 0 if it is empty. */
uint64_t sip_length(const struct sip_tree *tree, uint32_t sequence);

/* Returns a member of a sequence or dict, or SIP_NO_NODE. */
uint32_t sip_find_position(const struct sip_tree *tree, uint32_t sequence, int64_t position);
uint32_t sip_find_name(const struct sip_tree *tree, uint32_t dict, struct span name);

/* Returns the node behind |node| in depth-first order, or SIP_NO_NODE behind the last one. */
uint32_t sip_next(const struct sip_tree *tree, uint32_t node);

/*
 * Learns the values of a tree in depth-first order: a leaf by leaf(), a sequence or dict by open(),
 * its members, and close(). A callback that fails ends the walk. SIP_NOTHING tells nothing.
 */
typedef enum status sip_visit_f(void *user, const struct sip_node *node, struct error *err);

struct sip_visitor {
    sip_visit_f *leaf, *open, *close;
};

MUST_CHECK enum status sip_visit(const struct sip_tree *tree, const struct sip_visitor *visitor,
                                 void *user, struct error *err);

/* Prints in Python's notation, with leaves as r0, r1: [{"bar": r1, "foo": r0}, None, r2]. */
void sip_print(const struct sip_tree *tree, struct buf *out);

/* Prints one key of a path below a sequence or dict: [0], ["bar"]; b"..." for a name that is no
 * text. */
void sip_print_key(enum sip_kind parent, const struct sip_key *key, struct buf *out);

/* Prints where |node| is below |from|, which holds it: [0]["bar"]. The root is node 0. */
void sip_print_path(const struct sip_tree *tree, uint32_t from, uint32_t node, struct buf *out);

/* Prints for messages the keys of dict |node| in quotes; of many keys the first ones and a
 * count. */
void sip_print_keys(const struct sip_tree *tree, uint32_t node, struct buf *out);

#endif
