/* SPDX-License-Identifier: MIT */
/*
 * Making a tree: as a text is read, value by value, or from index paths in any order. Any thread;
 * a builder belongs to one.
 */
#ifndef PTED_PROTOCOL_SIP_BUILD_H
#define PTED_PROTOCOL_SIP_BUILD_H

#include "protocol/sip_tree.h"

/* A value on its way into a tree; lives in the builder's arena. */
struct sip_value {
    struct sip_value *next;         /* the member behind it */
    struct sip_value *first, *last; /* members in the order in which they came */
    uint32_t member_count;
    enum sip_kind kind;
    struct sip_key key; /* the caller's to set, before sip_build() */
    int64_t raw_index;
    size_t offset; /* where the key is in the text, for the caller's errors */
};

struct sip_builder {
    struct arena *arena; /* borrowed; the tree is made in it too */
    uint32_t value_count;
};

void sip_builder_init(struct sip_builder *builder, struct arena *arena);

/* Adds a value of its own, or the last member of |parent|. NULL when the arena is full. */
struct sip_value *sip_builder_add(struct sip_builder *builder, struct sip_value *parent,
                                  enum sip_kind kind);

/* Makes |value|, which is no member yet, the last member of |parent|. */
void sip_value_append(struct sip_value *parent, struct sip_value *value);

/* Lays out |root| as a tree. ST_INVALID when it is deeper than SIP_DEPTH_MAX, and when a value has
 * two members of one key: then *out_twice is set to the later one. */
MUST_CHECK enum status sip_build(const struct sip_builder *builder, const struct sip_value *root,
                                 struct sip_tree *out, const struct sip_value **out_twice,
                                 struct error *err);

/*
 * |tree| with other keys in its dicts: |keys| by node, without text where a value keeps its own.
 * ST_INVALID: one of them is the key of another member, too; *out_node is the node that it was for.
 */
MUST_CHECK enum status sip_rename(const struct sip_tree *tree, const struct span *keys,
                                  struct arena *arena, struct sip_tree *out, uint32_t *out_node,
                                  struct error *err);

/* The end of a path of keys: SIP_LEAF, or a SIP_SEQUENCE or SIP_DICT without members. */
struct sip_assignment {
    const struct sip_path_key *path;
    uint32_t depth; /* of |path|; 0: the value is the root */
    enum sip_kind kind;
    int64_t raw_index;
};

/*
 * Builds the tree that has exactly these values; none at all is SIP_NOTHING. ST_INVALID when two
 * are at one place, when one is inside another, and when positions and names meet under one parent.
 */
MUST_CHECK enum status sip_assign(const struct sip_assignment *assignments, uint32_t count,
                                  struct arena *arena, struct sip_tree *out, struct error *err);

#endif
