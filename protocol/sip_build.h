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
    enum sip_kind kind;
    uint32_t member_count;
    struct sip_key key; /* may be set until sip_build_tree() */
    int64_t raw_index;
    size_t offset; /* in the text that it came from, for the caller's errors */
};

/* A value of |kind| behind the last member of |parent|, or a root where that is NULL. NULL when
 * the arena is full. */
struct sip_value *sip_value_new(struct arena *arena, struct sip_value *parent, enum sip_kind kind);

/* Lays out |root|, at most SIP_DEPTH_MAX deep, as a tree. A key that its parent has twice is
 * ST_INVALID, and *out_twice is the value with it. */
MUST_CHECK enum status sip_build_tree(struct arena *arena, const struct sip_value *root,
                                      struct sip_tree *out, const struct sip_value **out_twice,
                                      struct error *err);

/* What is at the end of a path of keys: SIP_LEAF, or a SIP_SEQUENCE or SIP_DICT without members. */
struct sip_step {
    bool is_name;
    struct sip_key key;
};

struct sip_assignment {
    const struct sip_step *path;
    uint32_t depth; /* of |path|; 0: the value is the root */
    enum sip_kind kind;
    int64_t raw_index;
};

/* The tree that has exactly these values; none at all is SIP_NOTHING. ST_INVALID when two are at
 * one place, when one is inside another, and when positions and names meet under one parent. */
MUST_CHECK enum status sip_assign(const struct sip_assignment *assignments, uint32_t count,
                                  struct arena *arena, struct sip_tree *out, struct error *err);

#endif
