/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/trie.h"

#include <stdlib.h>

#include "base/array.h"

/* The first bytes as a number that sorts like them. */
static uint64_t key_of(struct span text)
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++) {
        key = key << 8 | (i < text.len ? text.ptr[i] : 0);
    }
    return key;
}

static int compare(const void *left, const void *right)
{
    const struct trie_entry *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    int order = span_compare(a->text, b->text);
    return order ? order : (a->value > b->value) - (a->value < b->value);
}

/* A range of sorted entries that share |depth| bytes. */
struct range {
    uint32_t low, high, depth;
};

struct builder {
    struct trie *trie;
    const struct trie_entry *entries;
    struct range *ranges; /* of each node */
    size_t node_capacity, label_capacity, range_capacity;
};

static enum status make_room(struct builder *builder, struct error *err)
{
    struct trie *trie = builder->trie;
    size_t count = (size_t)trie->node_count + 1;
    return ARRAY_ROOM(trie->nodes, builder->node_capacity, count) &&
                   ARRAY_ROOM(trie->labels, builder->label_capacity, count) &&
                   ARRAY_ROOM(builder->ranges, builder->range_capacity, count)
               ? ST_OK
               : error_no_memory(err, "the vocabulary");
}

static enum status add_node(struct builder *builder, uint8_t label, struct range range,
                            struct error *err)
{
    TRY(make_room(builder, err));
    struct trie *trie = builder->trie;
    trie->labels[trie->node_count] = label;
    trie->nodes[trie->node_count] = (struct trie_node){0, TRIE_NONE, 0};
    builder->ranges[trie->node_count++] = range;
    return ST_OK;
}

/* Gives the node its value and its children. */
static enum status expand(struct builder *builder, uint32_t node, struct error *err)
{
    struct range range = builder->ranges[node];
    const struct trie_entry *entries = builder->entries;
    while (range.low < range.high && entries[range.low].text.len == range.depth) {
        builder->trie->nodes[node].value = entries[range.low++].value;
    }
    builder->trie->nodes[node].first_child = builder->trie->node_count;
    while (range.low < range.high) {
        uint8_t label = entries[range.low].text.ptr[range.depth];
        uint32_t end = range.low + 1;
        while (end < range.high && entries[end].text.ptr[range.depth] == label) {
            end++;
        }
        TRY(add_node(builder, label, (struct range){range.low, end, range.depth + 1}, err));
        builder->trie->nodes[node].child_count++;
        range.low = end;
    }
    return ST_OK;
}

enum status trie_init(struct trie *trie, struct trie_entry *entries, size_t count,
                      struct error *err)
{
    *trie = (struct trie){0};
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].text.len > 0) {
            entries[kept] = entries[i];
            entries[kept].key = key_of(entries[i].text);
            trie->len_max =
                entries[i].text.len > trie->len_max ? (uint32_t)entries[i].text.len : trie->len_max;
            kept++;
        }
    }
    if (kept) {
        qsort(entries, kept, sizeof(*entries), compare);
    }
    struct builder builder = {.trie = trie, .entries = entries};
    enum status status = add_node(&builder, 0, (struct range){0, (uint32_t)kept, 0}, err);
    for (uint32_t node = 0; status == ST_OK && node < trie->node_count; node++) {
        status = expand(&builder, node, err);
    }
    free(builder.ranges);
    if (status != ST_OK) {
        trie_fini(trie);
        return status;
    }
    for (uint32_t i = 0; i < trie->nodes[0].child_count; i++) {
        trie->root_child[trie->labels[1 + i]] = 1 + i;
    }
    return ST_OK;
}

void trie_fini(struct trie *trie)
{
    free(trie->nodes);
    free(trie->labels);
    *trie = (struct trie){0};
}

size_t trie_longest(const struct trie *trie, struct span text, uint32_t *out_value)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < text.len; i++) {
        node = trie_step(trie, node, text.ptr[i]);
        if (!node) {
            break;
        }
        if (trie->nodes[node].value != TRIE_NONE) {
            longest = i + 1;
            *out_value = trie->nodes[node].value;
        }
    }
    return longest;
}
