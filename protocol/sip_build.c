/* SPDX-License-Identifier: MIT */
/*
 * Builds trees. Values are first linked in the order in which they come, then laid out level by
 * level. The members of one value become neighbours and are sorted, so a repeated key is found as
 * two equal neighbours.
 */
#include "config.h"

#include "protocol/sip_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "protocol/sig.h"

void sip_builder_init(struct sip_builder *builder, struct arena *arena)
{
    *builder = (struct sip_builder){.arena = arena};
}

struct sip_value *sip_builder_add(struct sip_builder *builder, struct sip_value *parent,
                                  enum sip_kind kind)
{
    struct sip_value *value = arena_alloc(builder->arena, sizeof(*value));
    if (!value || builder->value_count == SIP_NO_NODE) {
        return NULL;
    }
    builder->value_count++;
    value->kind = kind;
    if (parent) {
        sip_value_append(parent, value);
    }
    return value;
}

void sip_value_append(struct sip_value *parent, struct sip_value *value)
{
    must(parent->kind == SIP_SEQUENCE || parent->kind == SIP_DICT);
    if (parent->last) {
        parent->last->next = value;
    } else {
        parent->first = value;
    }
    parent->last = value;
    parent->member_count++;
}

static int compare_positions(const void *a, const void *b)
{
    int64_t left = (*(const struct sip_value *const *)a)->key.position;
    int64_t right = (*(const struct sip_value *const *)b)->key.position;
    return (left > right) - (left < right);
}

static int compare_names(const void *a, const void *b)
{
    return span_compare((*(const struct sip_value *const *)a)->key.name,
                        (*(const struct sip_value *const *)b)->key.name);
}

/* Sorts the members of |value| by key. Returns a member whose key repeats an earlier one, or NULL.
 */
static const struct sip_value *sort_members(const struct sip_value *value,
                                            const struct sip_value **members)
{
    int (*compare)(const void *, const void *) =
        value->kind == SIP_DICT ? compare_names : compare_positions;
    uint32_t count = 0;
    for (const struct sip_value *member = value->first; member; member = member->next) {
        members[count++] = member;
    }
    must(count == value->member_count);
    qsort(members, count, sizeof(*members), compare);
    for (uint32_t i = 1; i < count; i++) {
        if (compare(&members[i - 1], &members[i]) == 0) {
            return members[i]->offset > members[i - 1]->offset ? members[i] : members[i - 1];
        }
    }
    return NULL;
}

/* Goes from the last node to the first: members come before the value that holds them. */
static void sum_content_bytes(struct sip_node *nodes, uint32_t count)
{
    for (uint32_t i = count - 1; i > 0; i--) {
        struct sip_node *node = &nodes[i], *parent = &nodes[node->parent];
        parent->content_bytes += parent->kind == SIP_DICT ? sig_span_bytes(node->key.name.len)
                                                          : sig_integer_bytes(node->key.position);
        parent->content_bytes += node->kind == SIP_LEAF ? sig_integer_bytes(node->raw_index)
                                                        : sig_span_bytes(node->content_bytes);
    }
}

enum status sip_build(const struct sip_builder *builder, const struct sip_value *root,
                      struct sip_tree *out, const struct sip_value **out_twice, struct error *err)
{
    uint32_t count = 1, leaf_count = 0, depth = 0, level_end = 1;
    struct sip_node *nodes = arena_array(builder->arena, builder->value_count, sizeof(*nodes));
    const struct sip_value **values =
        arena_array(builder->arena, builder->value_count, sizeof(*values));
    if (!nodes || !values) {
        return arena_fail(builder->arena, "the structure", err);
    }
    values[0] = root;
    nodes[0].parent = SIP_NO_NODE;
    for (uint32_t i = 0; i < count; i++) {
        if (i == level_end) {
            depth++;
            level_end = count;
        }
        if (depth >= SIP_DEPTH_MAX && values[i]->kind != SIP_LEAF) {
            return error_set(err, ST_INVALID, "nested deeper than %d", SIP_DEPTH_MAX);
        }
        const struct sip_value *twice = sort_members(values[i], values + count);
        if (twice) {
            *out_twice = twice;
            return error_set(err, ST_INVALID, "the key is there twice");
        }
        nodes[i].kind = values[i]->kind;
        nodes[i].key = values[i]->key;
        nodes[i].raw_index = values[i]->raw_index;
        nodes[i].first = count;
        nodes[i].count = values[i]->member_count;
        for (; count < nodes[i].first + nodes[i].count; count++) {
            nodes[count].parent = i;
        }
        leaf_count += nodes[i].kind == SIP_LEAF;
    }
    sum_content_bytes(nodes, count);
    *out = (struct sip_tree){nodes, count, leaf_count};
    return ST_OK;
}

enum status sip_rename(const struct sip_tree *tree, const struct span *keys, struct arena *arena,
                       struct sip_tree *out, uint32_t *out_node, struct error *err)
{
    struct sip_value **values = arena_array(arena, tree->count, sizeof(struct sip_value *));
    const struct sip_value *twice = NULL;
    struct sip_builder builder;
    sip_builder_init(&builder, arena);
    for (uint32_t i = 0; values && i < tree->count; i++) {
        const struct sip_node *node = &tree->nodes[i];
        values[i] = sip_builder_add(&builder, i ? values[node->parent] : NULL, node->kind);
        if (!values[i]) {
            return arena_fail(arena, "the structure", err);
        }
        values[i]->key = node->key;
        values[i]->key.name = keys[i].ptr ? keys[i] : node->key.name;
        values[i]->raw_index = node->raw_index;
        values[i]->offset = i + (keys[i].ptr ? tree->count : 0); /* so new keys repeat old ones */
    }
    if (!values) {
        return arena_fail(arena, "the structure", err);
    }
    enum status status = sip_build(&builder, values[0], out, &twice, err);
    *out_node = twice ? (uint32_t)(twice->offset % tree->count) : 0;
    return status;
}

static int compare_path_keys(const struct sip_path_key *a, const struct sip_path_key *b)
{
    if (a->is_name != b->is_name) {
        return a->is_name ? 1 : -1;
    }
    if (a->is_name) {
        return span_compare(a->key.name, b->key.name);
    }
    return (a->key.position > b->key.position) - (a->key.position < b->key.position);
}

/* The number of leading keys that two paths share. */
static uint32_t count_common(const struct sip_assignment *a, const struct sip_assignment *b)
{
    uint32_t common = 0, depth = a->depth < b->depth ? a->depth : b->depth;
    while (common < depth && compare_path_keys(&a->path[common], &b->path[common]) == 0) {
        common++;
    }
    return common;
}

/* Orders by path; a path sorts before its own continuations. */
static int compare_assignments(const void *left, const void *right)
{
    const struct sip_assignment *a = *(const struct sip_assignment *const *)left;
    const struct sip_assignment *b = *(const struct sip_assignment *const *)right;
    uint32_t common = count_common(a, b);
    if (common < a->depth && common < b->depth) {
        return compare_path_keys(&a->path[common], &b->path[common]);
    }
    return (a->depth > b->depth) - (a->depth < b->depth);
}

__attribute__((format(printf, 3, 4))) static enum status
fail_path(const struct sip_assignment *assignment, struct error *err, const char *fmt, ...)
{
    struct buf path;
    char what[ERROR_TEXT_MAX];
    va_list args;
    buf_init(&path, ERROR_TEXT_MAX);
    for (uint32_t i = 0; i < assignment->depth; i++) {
        const struct sip_path_key *key = &assignment->path[i];
        sip_print_key(key->is_name ? SIP_DICT : SIP_SEQUENCE, &key->key, &path);
    }
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    error_set(err, ST_INVALID, "%.*s: %s", SPAN_FMT(buf_span(&path)), what);
    buf_fini(&path);
    return ST_INVALID;
}

static enum status verify_assignment(const struct sip_assignment *assignment, struct error *err)
{
    bool is_leaf = assignment->kind == SIP_LEAF;
    if (assignment->depth > SIP_DEPTH_MAX - (is_leaf ? 0 : 1)) {
        return error_set(err, ST_INVALID, "nested deeper than %d", SIP_DEPTH_MAX);
    }
    if (is_leaf && assignment->raw_index < 0) {
        return fail_path(assignment, err, "raw index %lld is negative",
                         (long long)assignment->raw_index);
    }
    for (uint32_t i = 0; i < assignment->depth; i++) {
        if (!assignment->path[i].is_name && assignment->path[i].key.position < 0) {
            return fail_path(assignment, err, "a position is negative");
        }
    }
    return ST_OK;
}

/* |last| sorts directly before |next|. Can one tree hold both? */
static enum status verify_neighbours(const struct sip_assignment *last,
                                     const struct sip_assignment *next, struct error *err)
{
    uint32_t common = count_common(last, next);
    if (common == last->depth) {
        return fail_path(next, err, "lies at or inside another value");
    }
    if (last->path[common].is_name != next->path[common].is_name) {
        return fail_path(next, err, "a name beside a position");
    }
    return ST_OK;
}

/* The kind of value at |depth| on the path to |assignment|. */
static enum sip_kind kind_at(const struct sip_assignment *assignment, uint32_t depth)
{
    if (depth == assignment->depth) {
        return assignment->kind;
    }
    return assignment->path[depth].is_name ? SIP_DICT : SIP_SEQUENCE;
}

/* Adds |assignment|, and the values between open[common] and it. */
static bool add_branch(struct sip_builder *builder, const struct sip_assignment *assignment,
                       uint32_t common, struct sip_value **open)
{
    for (uint32_t depth = common + 1; depth <= assignment->depth; depth++) {
        struct sip_value *value =
            sip_builder_add(builder, open[depth - 1], kind_at(assignment, depth));
        if (!value) {
            return false;
        }
        value->key = assignment->path[depth - 1].key;
        value->raw_index = depth == assignment->depth ? assignment->raw_index : 0;
        open[depth] = value;
    }
    return true;
}

/* |sorted| are known to fit each other. */
static enum status build_sorted(const struct sip_assignment **sorted, uint32_t count,
                                struct arena *arena, struct sip_tree *out, struct error *err)
{
    struct sip_value *open[SIP_DEPTH_MAX + 1];
    const struct sip_value *twice;
    struct sip_builder builder;
    sip_builder_init(&builder, arena);
    open[0] = sip_builder_add(&builder, NULL, count ? kind_at(sorted[0], 0) : SIP_NOTHING);
    if (!open[0]) {
        return arena_fail(arena, "the structure", err);
    }
    open[0]->raw_index = count && sorted[0]->depth == 0 ? sorted[0]->raw_index : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t common = i ? count_common(sorted[i - 1], sorted[i]) : 0;
        if (!add_branch(&builder, sorted[i], common, open)) {
            return arena_fail(arena, "the structure", err);
        }
    }
    return sip_build(&builder, open[0], out, &twice, err);
}

enum status sip_assign(const struct sip_assignment *assignments, uint32_t count,
                       struct arena *arena, struct sip_tree *out, struct error *err)
{
    const struct sip_assignment **sorted = arena_array(arena, count, sizeof(*sorted));
    if (!sorted) {
        return arena_fail(arena, "the structure", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(verify_assignment(&assignments[i], err));
        sorted[i] = &assignments[i];
    }
    qsort(sorted, count, sizeof(*sorted), compare_assignments);
    for (uint32_t i = 1; i < count; i++) {
        TRY(verify_neighbours(sorted[i - 1], sorted[i], err));
    }
    return build_sorted(sorted, count, arena, out, err);
}
