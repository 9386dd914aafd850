/* SPDX-License-Identifier: MIT */
/*
 * Reads trees. Members are neighbours, so a depth-first walk needs no stack: it goes up to the
 * parent, and on to the next node of the array.
 */
#include "config.h"

#include "protocol/sip_tree.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"

#define GAP_SHOWN_MAX 4 /* positions without a value that are printed one by one */
#define KEYS_BYTES_MAX 120

uint64_t sip_length(const struct sip_tree *tree, uint32_t sequence)
{
    const struct sip_node *node = &tree->nodes[sequence];
    must(node->kind == SIP_SEQUENCE);
    return node->count ? (uint64_t)tree->nodes[node->first + node->count - 1].key.position + 1 : 0;
}

uint32_t sip_find_position(const struct sip_tree *tree, uint32_t sequence, int64_t position)
{
    const struct sip_node *node = &tree->nodes[sequence];
    uint32_t low = node->first, high = node->first + node->count;
    must(node->kind == SIP_SEQUENCE);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tree->nodes[middle].key.position < position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_found = low < node->first + node->count && tree->nodes[low].key.position == position;
    return is_found ? low : SIP_NO_NODE;
}

uint32_t sip_find_name(const struct sip_tree *tree, uint32_t dict, struct span name)
{
    const struct sip_node *node = &tree->nodes[dict];
    uint32_t low = node->first, high = node->first + node->count;
    must(node->kind == SIP_DICT);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = span_compare(tree->nodes[middle].key.name, name);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return SIP_NO_NODE;
}

static bool is_last(const struct sip_tree *tree, uint32_t node)
{
    const struct sip_node *parent = &tree->nodes[tree->nodes[node].parent];
    return node == parent->first + parent->count - 1;
}

uint32_t sip_next(const struct sip_tree *tree, uint32_t node)
{
    if (tree->nodes[node].count) {
        return tree->nodes[node].first;
    }
    while (tree->nodes[node].parent != SIP_NO_NODE) {
        if (!is_last(tree, node)) {
            return node + 1;
        }
        node = tree->nodes[node].parent;
    }
    return SIP_NO_NODE;
}

enum status sip_visit(const struct sip_tree *tree, const struct sip_visitor *visitor, void *user,
                      struct error *err)
{
    uint32_t at = 0;
    if (tree->nodes[0].kind == SIP_NOTHING) {
        return ST_OK;
    }
    while (true) {
        const struct sip_node *node = &tree->nodes[at];
        if (node->kind == SIP_LEAF) {
            TRY(visitor->leaf(user, node, err));
        } else {
            TRY(visitor->open(user, node, err));
            if (node->count) {
                at = node->first;
                continue;
            }
            TRY(visitor->close(user, node, err));
        }
        while (tree->nodes[at].parent != SIP_NO_NODE && is_last(tree, at)) {
            at = tree->nodes[at].parent;
            TRY(visitor->close(user, &tree->nodes[at], err));
        }
        if (tree->nodes[at].parent == SIP_NO_NODE) {
            return ST_OK;
        }
        at++;
    }
}

struct printer {
    const struct sip_tree *tree;
    struct buf *out;
};

/* Prints a name as Python does: as text if it is valid UTF-8, otherwise as bytes. */
static void print_name(struct span name, struct buf *out)
{
    if (json_is_utf8(name)) {
        json_print_string(out, name);
        return;
    }
    buf_add_str(out, "b\"");
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        bool is_plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        buf_printf(out, is_plain ? "%c" : "\\x%02x", c);
    }
    buf_add_char(out, '"');
}

static void print_gap(int64_t count, struct buf *out)
{
    if (count > GAP_SHOWN_MAX) {
        buf_printf(out, "*[None] * %" PRId64 ", ", count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        buf_add_str(out, "None, ");
    }
}

/* Prints the separator before a value, then its name or the positions left out before it. */
static void print_key(const struct printer *printer, const struct sip_node *node)
{
    if (node->parent == SIP_NO_NODE) {
        return;
    }
    const struct sip_node *parent = &printer->tree->nodes[node->parent];
    bool is_first = node == &printer->tree->nodes[parent->first];
    buf_add_str(printer->out, is_first ? "" : ", ");
    if (parent->kind == SIP_DICT) {
        print_name(node->key.name, printer->out);
        buf_add_str(printer->out, ": ");
    } else {
        print_gap(node->key.position - (is_first ? 0 : node[-1].key.position + 1), printer->out);
    }
}

static enum status print_leaf(void *user, const struct sip_node *node, struct error *err)
{
    const struct printer *printer = user;
    (void)err;
    print_key(printer, node);
    buf_printf(printer->out, "r%" PRId64, node->raw_index);
    return ST_OK;
}

static enum status print_open(void *user, const struct sip_node *node, struct error *err)
{
    const struct printer *printer = user;
    (void)err;
    print_key(printer, node);
    buf_add_char(printer->out, node->kind == SIP_DICT ? '{' : '[');
    return ST_OK;
}

static enum status print_close(void *user, const struct sip_node *node, struct error *err)
{
    const struct printer *printer = user;
    (void)err;
    buf_add_char(printer->out, node->kind == SIP_DICT ? '}' : ']');
    return ST_OK;
}

void sip_print(const struct sip_tree *tree, struct buf *out)
{
    static const struct sip_visitor visitor = {print_leaf, print_open, print_close};
    struct printer printer = {tree, out};
    if (tree->nodes[0].kind == SIP_NOTHING) {
        buf_add_str(out, "()");
    }
    must(sip_visit(tree, &visitor, &printer, NULL) == ST_OK);
}

void sip_print_key(enum sip_kind parent, const struct sip_key *key, struct buf *out)
{
    buf_add_char(out, '[');
    if (parent == SIP_DICT) {
        print_name(key->name, out);
    } else {
        buf_printf(out, "%" PRId64, key->position);
    }
    buf_add_char(out, ']');
}

void sip_print_path(const struct sip_tree *tree, uint32_t from, uint32_t node, struct buf *out)
{
    uint32_t above[SIP_DEPTH_MAX];
    size_t depth = 0;
    for (uint32_t at = node; at != from; at = tree->nodes[at].parent) {
        must(depth < SIP_DEPTH_MAX && tree->nodes[at].parent != SIP_NO_NODE);
        above[depth++] = at;
    }
    while (depth > 0) {
        const struct sip_node *step = &tree->nodes[above[--depth]];
        sip_print_key(tree->nodes[step->parent].kind, &step->key, out);
    }
}

void sip_print_keys(const struct sip_tree *tree, uint32_t node, struct buf *out)
{
    const struct sip_node *dict = &tree->nodes[node];
    size_t begin = out->len;
    for (uint32_t i = 0; i < dict->count; i++) {
        if (out->len - begin > KEYS_BYTES_MAX) {
            buf_printf(out, " and %" PRIu32 " more", dict->count - i);
            return;
        }
        buf_add_str(out, i ? ", " : "");
        json_print_string(out, tree->nodes[dict->first + i].key.name);
    }
}
