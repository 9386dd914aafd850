/* SPDX-License-Identifier: MIT */
/*
 * A list or a dict of a call that is a structure of another request's results, {"$from": ...}. Each
 * of its leaves becomes a promise of its own, so nothing behind the parser knows structures: the
 * path of the structure is continued by what leads from it to the leaf.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/call_priv.h"
#include "protocol/json_priv.h"

static const char from_key[] = "$from";

bool call_is_promise(struct call_parser *p, uint32_t node)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    bool is_member = tree->nodes[node].kind == SIP_DICT &&
                     sip_find_name(tree, node, span_str(from_key)) != SIP_NO_NODE;
    return !is_member && json_peek(&p->in) == JSON_OBJECT &&
           json_begins_with(p->in.at, p->in.end, from_key);
}

/* The keys that lead from |node| to |leaf| behind those of |from|. */
static enum status continue_path(struct call_parser *p, const struct pick *from, uint32_t node,
                                 uint32_t leaf, struct pick *out)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    uint32_t depth = from->depth;
    for (uint32_t at = leaf; at != node; at = tree->nodes[at].parent) {
        depth++;
    }
    struct sip_path_key *path = arena_array(p->arena, (size_t)depth + 1, sizeof(*path));
    if (!path) {
        return arena_fail(p->arena, "the request", p->err);
    }
    if (from->depth > 0) {
        memcpy(path, from->path, from->depth * sizeof(*path));
    }
    *out = (struct pick){.kind = PICK_PATH, .path = path, .depth = depth};
    for (uint32_t at = leaf; at != node; at = tree->nodes[at].parent) {
        bool is_name = tree->nodes[tree->nodes[at].parent].kind == SIP_DICT;
        path[--depth] = (struct sip_path_key){is_name, tree->nodes[at].key};
    }
    return ST_OK;
}

/* Leaves for which the method takes nothing stay as they are. */
static enum status promise_leaf(struct call_parser *p, const struct oip_promise *said,
                                uint32_t node, uint32_t leaf, struct call_leaf **first)
{
    int64_t index = p->method->structure->inputs.nodes[leaf].raw_index;
    struct call_leaf *to = &p->leaves[index];
    if (p->method->inputs[index].kind == CALL_NONE) {
        return ST_OK;
    }
    TRY(call_check_once(p, leaf));
    *first = *first ? *first : to;
    *to = (struct call_leaf){.encoding = CALL_PROMISE, .promise = *said};
    return continue_path(p, &said->output, node, leaf, &to->promise.output);
}

/* Does |at| belong to |node|? Keyword arguments are not among the positional ones. */
static bool is_within(const struct call_parser *p, uint32_t at, uint32_t node)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    uint32_t kwargs = sip_kwargs(p->method->structure);
    while (at != SIP_NO_NODE && at != node && at != kwargs) {
        at = tree->nodes[at].parent;
    }
    return at == node;
}

static enum status read_object(struct call_parser *p, struct oip_promise *out)
{
    struct json_string key;
    p->in.indexed_depth = p->in.depth; /* its members are not part of the method's structure */
    TRY(json_object(&p->in, p->err));
    TRY(json_member(&p->in, &key, p->err));
    must(!p->in.is_closed && json_string_is(&key, from_key));
    TRY(oip_read_promise(&p->reader, out));
    TRY(json_member(&p->in, &key, p->err));
    if (!p->in.is_closed) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "unknown member, expected only \"$from\" for a list or an object");
    }
    p->in.indexed_depth = JSON_LEVELS_MAX;
    return ST_OK;
}

enum status call_read_promise(struct call_parser *p, uint32_t node)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    struct oip_promise said = {.has_type = false};
    struct call_leaf *first = NULL;
    must(tree->nodes[node].kind != SIP_LEAF);
    TRY(read_object(p, &said));
    if (said.output.kind == PICK_INDEX || said.output.kind == PICK_NAME) {
        return call_fail(p, node,
                         ".$from.output: expected the path of a list or an object, such "
                         "as [\"parts\"], or [] for all results");
    }
    for (uint32_t at = sip_next(tree, node); is_within(p, at, node); at = sip_next(tree, at)) {
        if (tree->nodes[at].kind == SIP_LEAF) {
            TRY(promise_leaf(p, &said, node, at, &first));
        }
    }
    if (!first) {
        return call_fail(p, node, ".$from: the method takes nothing here");
    }
    first->begins_structure = true;
    first->structure = node;
    return ST_OK;
}
