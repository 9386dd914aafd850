/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/pick.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json_priv.h"

#define PATH_BYTES_MAX 120
#define NODE_BYTES_MAX 1024

/* ---- reading --------------------------------------------------------------------------------- */

static enum status read_text(struct json *in, size_t bytes_max, struct arena *arena,
                             struct span *out, struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    if (text.bytes > bytes_max) {
        return json_fail(in, err, ST_TOO_LARGE, "expected at most %zu bytes of text, got %zu",
                         bytes_max, text.bytes);
    }
    return json_string_take(&text, arena, "the request", out, err);
}

/* A key of a dict, or a position in a list. */
static enum status read_path_member(struct json *in, size_t bytes_max, struct arena *arena,
                                    struct sip_path_key *out, struct error *err)
{
    if (json_peek(in) != JSON_NUMBER) {
        out->is_name = true;
        return read_text(in, bytes_max, arena, &out->key.name, err);
    }
    TRY(json_read_i64(in, &out->key.position, err));
    return out->key.position >= 0
               ? ST_OK
               : json_fail(in, err, ST_INVALID, "expected 0 or more, got %" PRId64,
                           out->key.position);
}

static enum status read_path(struct json *in, size_t bytes_max, struct arena *arena,
                             struct pick *out, struct error *err)
{
    struct sip_path_key keys[SIP_DEPTH_MAX];
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            break;
        }
        if (out->depth == SIP_DEPTH_MAX) {
            return json_fail(in, err, ST_TOO_LARGE, "expected a path of at most %d steps",
                             SIP_DEPTH_MAX);
        }
        keys[out->depth] = (struct sip_path_key){.is_name = false};
        TRY(read_path_member(in, bytes_max, arena, &keys[out->depth], err));
        out->depth++;
    }
    struct sip_path_key *copy = arena_array(arena, (size_t)out->depth + 1, sizeof(*copy));
    if (!copy) {
        return arena_fail(arena, "the request", err);
    }
    memcpy(copy, keys, out->depth * sizeof(*copy));
    out->path = copy;
    return ST_OK;
}

enum status pick_read(struct json *in, size_t text_bytes_max, struct arena *arena, struct pick *out,
                      struct error *err)
{
    char next[JSON_NEXT_TEXT_MAX];
    const char *got = json_next_text(in, next);
    *out = (struct pick){.kind = PICK_PATH};
    switch (json_peek(in)) {
    case JSON_NUMBER:
        out->kind = PICK_INDEX;
        return json_read_u64(in, &out->index, err);
    case JSON_STRING:
        out->kind = PICK_NAME;
        return read_text(in, text_bytes_max, arena, &out->name, err);
    case JSON_ARRAY:
        return read_path(in, text_bytes_max, arena, out, err);
    default:
        TRY(json_skip(in, err)); /* the message says where it is */
        return json_fail(in, err, ST_INVALID,
                         "expected an output's number, its name or its path, got %s", got);
    }
}

/* ---- following a path ------------------------------------------------------------------------ */

/* The member of |node| that |key| selects, or SIP_NO_NODE. A number also selects an integer key.
 */
static uint32_t find_member(const struct sip_tree *tree, uint32_t node,
                            const struct sip_path_key *key)
{
    switch (tree->nodes[node].kind) {
    case SIP_SEQUENCE:
        return key->is_name ? SIP_NO_NODE : sip_find_position(tree, node, key->key.position);
    case SIP_DICT:
        if (!key->is_name) {
            char digits[24];
            snprintf(digits, sizeof(digits), "%" PRId64, key->key.position);
            return sip_find_name(tree, node, span_str(digits));
        }
        return sip_find_name(tree, node, key->key.name);
    default:
        return SIP_NO_NODE;
    }
}

/* Names the kind of value at |node|, for messages. */
static void print_node(const struct sip_tree *tree, uint32_t node, struct buf *out)
{
    const struct sip_node *n = &tree->nodes[node];
    switch (n->kind) {
    case SIP_LEAF:
        buf_add_str(out, "one value");
        break;
    case SIP_SEQUENCE:
        buf_printf(out, "a list of %" PRIu64, sip_length(tree, node));
        break;
    case SIP_DICT:
        buf_add_str(out, "a dict of ");
        sip_print_keys(tree, node, out);
        break;
    case SIP_NOTHING:
        buf_add_str(out, "nothing");
        break;
    }
}

/* Reports a path whose first |depth| keys lead to |node|, and which then ends or leads nowhere. */
static enum status refuse(const struct pick *pick, uint32_t depth, const struct sip_tree *tree,
                          uint32_t node, struct error *err)
{
    struct buf before, there;
    bool is_short = depth == pick->depth;
    buf_init(&before, PATH_BYTES_MAX);
    buf_init(&there, NODE_BYTES_MAX);
    buf_add_str(&before, "result");
    sip_print_path(tree, 0, node, &before);
    print_node(tree, node, &there);
    if (is_short) {
        error_set(err, ST_INVALID, "%.*s is %.*s, expected a path to one value",
                  SPAN_FMT(buf_span(&before)), SPAN_FMT(buf_span(&there)));
    } else {
        struct buf step;
        buf_init(&step, PATH_BYTES_MAX);
        sip_print_key(pick->path[depth].is_name ? SIP_DICT : SIP_SEQUENCE, &pick->path[depth].key,
                      &step);
        error_set(err, ST_INVALID, "there is no %.*s: %.*s is %.*s", SPAN_FMT(buf_span(&step)),
                  SPAN_FMT(buf_span(&before)), SPAN_FMT(buf_span(&there)));
        buf_fini(&step);
    }
    buf_fini(&before);
    buf_fini(&there);
    return ST_INVALID;
}

/* The node that the first |depth| keys lead to. */
static enum status find_node(const struct pick *pick, uint32_t depth, const struct sip_tree *tree,
                             uint32_t *out_node, struct error *err)
{
    uint32_t node = 0;
    must(depth <= pick->depth);
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t member = find_member(tree, node, &pick->path[i]);
        if (member == SIP_NO_NODE) {
            return refuse(pick, i, tree, node, err);
        }
        node = member;
    }
    *out_node = node;
    return ST_OK;
}

enum status pick_follow(const struct pick *pick, const struct sip_tree *tree, uint32_t *out_index,
                        struct error *err)
{
    uint32_t node;
    TRY(find_node(pick, pick->depth, tree, &node, err));
    if (tree->nodes[node].kind != SIP_LEAF) {
        return refuse(pick, pick->depth, tree, node, err);
    }
    *out_index = (uint32_t)tree->nodes[node].raw_index;
    return ST_OK;
}

/* ---- whole structures ------------------------------------------------------------------------ */

static bool is_below(const struct sip_tree *tree, uint32_t node, uint32_t above)
{
    while (node != above && node != SIP_NO_NODE) {
        node = tree->nodes[node].parent;
    }
    return node == above;
}

/* Members of |node|, without the keyword arguments at the end of the positional ones. */
static uint32_t member_count(const struct sip *to, uint32_t node)
{
    return to->inputs.nodes[node].count - (to->has_kwargs && node == 0);
}

static bool are_like(const struct sip_tree *tree, uint32_t node, const struct sip *to,
                     uint32_t wanted)
{
    const struct sip_node *a = &tree->nodes[node], *b = &to->inputs.nodes[wanted];
    bool is_like = a->kind == b->kind && a->count == member_count(to, wanted);
    for (uint32_t i = 0; is_like && i < a->count; i++) {
        const struct sip_key *left = &tree->nodes[a->first + i].key;
        const struct sip_key *right = &to->inputs.nodes[b->first + i].key;
        is_like = a->kind == SIP_DICT ? span_equal(left->name, right->name)
                                      : left->position == right->position;
    }
    return is_like;
}

/* "result["parts"] is a list of 3, args[0] is a list of 2" */
static enum status refuse_other(const struct sip_tree *tree, uint32_t node, const struct sip *to,
                                uint32_t wanted, struct error *err)
{
    struct buf text;
    buf_init(&text, 2 * NODE_BYTES_MAX);
    buf_add_str(&text, "result");
    sip_print_path(tree, 0, node, &text);
    buf_add_str(&text, " is ");
    print_node(tree, node, &text);
    buf_add_str(&text, ", ");
    sip_print_argument(to, wanted, &text);
    buf_add_str(&text, " is ");
    print_node(&to->inputs, wanted, &text);
    error_set(err, ST_INVALID, "%.*s", SPAN_FMT(buf_span(&text)));
    buf_fini(&text);
    return ST_INVALID;
}

enum status pick_compare(const struct pick *pick, uint32_t depth, const struct sip_tree *tree,
                         const struct pick_structure *wanted, struct error *err)
{
    const struct sip *to = wanted->to;
    uint32_t node, from, at = wanted->node;
    TRY(find_node(pick, depth, tree, &node, err));
    from = node;
    /* Depth-first through both: members of structures that are alike stand in the same order. */
    while (are_like(tree, node, to, at)) {
        if (tree->nodes[node].kind == SIP_LEAF) {
            TRY(wanted->pair(wanted->user, (uint32_t)tree->nodes[node].raw_index,
                             (uint32_t)to->inputs.nodes[at].raw_index, err));
        }
        node = sip_next(tree, node);
        if (!is_below(tree, node, from)) {
            return ST_OK;
        }
        at = sip_next(&to->inputs, at);
    }
    return refuse_other(tree, node, to, at, err);
}
