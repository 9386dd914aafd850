/* SPDX-License-Identifier: MIT */
/*
 * The text of structured signatures. Reading keeps a stack of the open spans. Writing is one walk
 * over the tree; the length of every span is computed before.
 */
#include "config.h"

#include "protocol/sip.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/sig.h"
#include "protocol/sip_build.h"

/* A sequence or dict that is being read. */
struct frame {
    struct sig_reader in;
    struct sip_value *value;
};

struct parse {
    struct sip_builder builder;
    uint32_t depth;
    struct frame frames[SIP_DEPTH_MAX];
};

static enum status read_key(struct sig_reader *in, enum sip_kind parent, struct sip_key *out,
                            struct error *err)
{
    struct sig_item item;
    TRY(sig_next(in, &item, err));
    if (item.tag != (parent == SIP_DICT ? 'K' : 'k')) {
        return sig_fail(in, item.text.ptr, err, "expected a %s, got '%c'",
                        parent == SIP_DICT ? "name 'K' in a dict" : "position 'k' in a sequence",
                        item.tag);
    }
    if (item.value < 0) {
        return sig_fail(in, item.text.ptr, err, "a position is not negative, got %" PRId64,
                        item.value);
    }
    *out = (struct sip_key){item.value, item.content};
    return ST_OK;
}

static enum status open_frame(struct parse *parse, const struct sig_reader *in,
                              const struct sig_item *item, struct sip_value *value,
                              struct error *err)
{
    if (parse->depth == SIP_DEPTH_MAX) {
        return sig_fail(in, item->text.ptr, err, "nested deeper than %d", SIP_DEPTH_MAX);
    }
    parse->frames[parse->depth++] = (struct frame){sig_inside(in, item), value};
    return ST_OK;
}

/* Reads a leaf, or opens a frame for a sequence or dict. */
static enum status read_value(struct parse *parse, struct sig_reader *in, struct sip_value *parent,
                              struct sip_value **out, struct error *err)
{
    struct sig_item item;
    TRY(sig_next(in, &item, err));
    if (item.tag != '_' && item.tag != 'S' && item.tag != 'D') {
        return sig_fail(in, item.text.ptr, err, "expected a value (_, S, D), got '%c'", item.tag);
    }
    if (item.value < 0) {
        return sig_fail(in, item.text.ptr, err, "a raw index is not negative, got %" PRId64,
                        item.value);
    }
    enum sip_kind kind = item.tag == '_' ? SIP_LEAF : item.tag == 'S' ? SIP_SEQUENCE : SIP_DICT;
    struct sip_value *value = sip_builder_add(&parse->builder, parent, kind);
    if (!value) {
        return arena_fail(parse->builder.arena, "the structure", err);
    }
    value->raw_index = item.value;
    *out = value;
    return kind == SIP_LEAF ? ST_OK : open_frame(parse, in, &item, value, err);
}

static enum status read_member(struct parse *parse, struct frame *frame, struct error *err)
{
    const uint8_t *where = frame->in.at;
    struct sip_value *member;
    struct sip_key key;
    TRY(read_key(&frame->in, frame->value->kind, &key, err));
    TRY(read_value(parse, &frame->in, frame->value, &member, err));
    member->key = key;
    member->offset = (size_t)(where - frame->in.start);
    return ST_OK;
}

static enum status read_root(struct parse *parse, struct sig_reader *in, struct sip_value **out,
                             struct error *err)
{
    if (sig_is_at_end(in)) {
        *out = sip_builder_add(&parse->builder, NULL, SIP_NOTHING);
        return *out ? ST_OK : arena_fail(parse->builder.arena, "the structure", err);
    }
    TRY(read_value(parse, in, NULL, out, err));
    return sig_end(in, err);
}

static enum status read_tree(struct sig_reader *in, struct arena *arena, struct sip_tree *out,
                             struct error *err)
{
    struct parse parse = {.depth = 0};
    const struct sip_value *twice = NULL;
    struct sip_value *root;
    sip_builder_init(&parse.builder, arena);
    TRY(read_root(&parse, in, &root, err));
    while (parse.depth > 0) {
        struct frame *frame = &parse.frames[parse.depth - 1];
        if (sig_is_at_end(&frame->in)) {
            parse.depth--;
        } else {
            TRY(read_member(&parse, frame, err));
        }
    }
    enum status status = sip_build(&parse.builder, root, out, &twice, err);
    return twice ? sig_fail(in, in->start + twice->offset, err, "the key is there twice") : status;
}

enum status sip_parse(struct span text, struct arena *arena, struct sip *out, struct error *err)
{
    struct sig_reader inputs, results;
    struct sip sip = {.has_kwargs = false};
    TRY(sig_split(text, &inputs, &results, err));
    TRY(read_tree(&inputs, arena, &sip.inputs, err));
    TRY(read_tree(&results, arena, &sip.results, err));
    *out = sip;
    return ST_OK;
}

static void mangle_node(const struct sip_tree *tree, const struct sip_node *node, struct buf *out)
{
    if (node->parent != SIP_NO_NODE) {
        if (tree->nodes[node->parent].kind == SIP_DICT) {
            sig_add_span(out, 'K', node->key.name);
        } else {
            sig_add_integer(out, 'k', node->key.position);
        }
    }
    if (node->kind == SIP_LEAF) {
        sig_add_integer(out, '_', node->raw_index);
    } else {
        sig_add_head(out, node->kind == SIP_DICT ? 'D' : 'S', node->content_bytes);
    }
}

static void mangle_tree(char tag, const struct sip_tree *tree, struct buf *out)
{
    const struct sip_node *root = &tree->nodes[0];
    if (root->kind == SIP_NOTHING) {
        sig_add_head(out, tag, 0);
        return;
    }
    sig_add_head(out, tag,
                 root->kind == SIP_LEAF ? sig_integer_bytes(root->raw_index)
                                        : sig_span_bytes(root->content_bytes));
    for (uint32_t i = 0; i != SIP_NO_NODE; i = sip_next(tree, i)) {
        mangle_node(tree, &tree->nodes[i], out);
    }
}

void sip_mangle(const struct sip *sip, struct buf *out)
{
    mangle_tree('I', &sip->inputs, out);
    mangle_tree('R', &sip->results, out);
}

void sip_print_signature(const struct sip *sip, struct buf *out)
{
    sip_print(&sip->inputs, out);
    buf_add_str(out, " -> ");
    sip_print(&sip->results, out);
}

uint32_t sip_kwargs(const struct sip *sip)
{
    const struct sip_node *root = &sip->inputs.nodes[0];
    if (sip->has_kwargs) {
        return root->first + root->count - 1;
    }
    return root->kind == SIP_DICT ? 0 : SIP_NO_NODE;
}

uint32_t sip_args(const struct sip *sip)
{
    return sip->inputs.nodes[0].kind == SIP_SEQUENCE ? 0 : SIP_NO_NODE;
}

void sip_print_argument(const struct sip *sip, uint32_t node, struct buf *out)
{
    const struct sip_tree *tree = &sip->inputs;
    uint32_t kwargs = sip_kwargs(sip), at = node;
    while (at != kwargs && at != 0) {
        at = tree->nodes[at].parent;
    }
    buf_add_str(out, at == kwargs ? "kwargs" : "args");
    sip_print_path(tree, at, node, out);
}

static enum status fail_range(const char *root, const struct sip_tree *tree, uint32_t leaf,
                              uint32_t count, struct error *err)
{
    struct buf path;
    buf_init(&path, ERROR_TEXT_MAX);
    sip_print_path(tree, 0, leaf, &path);
    error_set(err, ST_INVALID, "%s%.*s: raw index %" PRId64 ", the function has %" PRIu32 " %s",
              root, SPAN_FMT(buf_span(&path)), tree->nodes[leaf].raw_index, count, root);
    buf_fini(&path);
    return ST_INVALID;
}

static enum status fail_twice(const struct sip_tree *tree, uint32_t first, uint32_t second,
                              struct error *err)
{
    struct buf path;
    buf_init(&path, ERROR_TEXT_MAX);
    sip_print_path(tree, 0, first, &path);
    buf_add_str(&path, " and inputs");
    sip_print_path(tree, 0, second, &path);
    error_set(err, ST_INVALID, "raw input %" PRId64 " is at inputs%.*s",
              tree->nodes[first].raw_index, SPAN_FMT(buf_span(&path)));
    buf_fini(&path);
    return ST_INVALID;
}

static enum status bind_inputs(const struct sip_tree *tree, uint32_t count, uint32_t *leaves,
                               struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        leaves[i] = SIP_NO_NODE;
    }
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct sip_node *node = &tree->nodes[i];
        if (node->kind != SIP_LEAF) {
            continue;
        }
        if (node->raw_index >= (int64_t)count) {
            return fail_range("inputs", tree, i, count, err);
        }
        if (leaves[node->raw_index] != SIP_NO_NODE) {
            return fail_twice(tree, leaves[node->raw_index], i, err);
        }
        leaves[node->raw_index] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (leaves[i] == SIP_NO_NODE) {
            return error_set(err, ST_INVALID, "raw input %" PRIu32 " is nowhere in the structure",
                             i);
        }
    }
    return ST_OK;
}

enum status sip_bind(const struct sip *sip, uint32_t input_count, uint32_t result_count,
                     struct arena *arena, const uint32_t **out_leaves, struct error *err)
{
    uint32_t *leaves = arena_array(arena, input_count, sizeof(*leaves));
    if (!leaves) {
        return arena_fail(arena, "the structure", err);
    }
    TRY(bind_inputs(&sip->inputs, input_count, leaves, err));
    for (uint32_t i = 0; i < sip->results.count; i++) {
        const struct sip_node *node = &sip->results.nodes[i];
        if (node->kind == SIP_LEAF && node->raw_index >= (int64_t)result_count) {
            return fail_range("results", &sip->results, i, result_count, err);
        }
    }
    *out_leaves = leaves;
    return ST_OK;
}
