/* SPDX-License-Identifier: MIT */
/*
 * A trie of byte strings, each with a number: which of them begin here? Built once from all
 * strings; then immutable. The children of a node lie side by side, so a step reads one or two
 * lines of the cache.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_TRIE_H
#define PTED_SERVER_TEXT_TOKENIZER_TRIE_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

#define TRIE_NONE UINT32_MAX

struct trie_node {
    uint32_t first_child;
    uint32_t value; /* TRIE_NONE: no string ends here */
    uint16_t child_count;
};

struct trie {
    struct trie_node *nodes; /* owned; nodes[0] is the root */
    uint8_t *labels;         /* owned; the byte that leads to the node */
    uint32_t node_count;
    uint32_t root_child[256]; /* 0: none */
    uint32_t len_max;         /* of the strings */
};

struct trie_entry {
    struct span text; /* borrowed while the trie is built */
    uint64_t key;     /* set by trie_init() */
    uint32_t value;
};

/* Sorts |entries|. Empty strings are left out; of equal ones the largest value counts. */
MUST_CHECK enum status trie_init(struct trie *trie, struct trie_entry *entries, size_t count,
                                 struct error *err);
void trie_fini(struct trie *trie);

/* Returns the node behind |node| by |byte|; 0: there is none. */
static inline uint32_t trie_step(const struct trie *trie, uint32_t node, uint8_t byte)
{
    if (node == 0) {
        return trie->root_child[byte];
    }
    uint32_t low = trie->nodes[node].first_child, high = low + trie->nodes[node].child_count;
    while (high - low > 8) {
        uint32_t middle = low + (high - low) / 2;
        if (trie->labels[middle] <= byte) {
            low = middle;
        } else {
            high = middle;
        }
    }
    for (; low < high; low++) {
        if (trie->labels[low] == byte) {
            return low;
        }
    }
    return 0;
}

/* Returns the longest string that |text| begins with; its length, or 0. */
size_t trie_longest(const struct trie *trie, struct span text, uint32_t *out_value);

#endif
