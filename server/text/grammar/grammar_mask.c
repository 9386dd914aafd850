/* SPDX-License-Identifier: MIT */
/*
 * The tokens of a vocabulary that may come next: a walk over the trie of all tokens.
 *
 * Within a string of JSON almost all of them may, and the walk would visit the whole trie. So each
 * node knows which kinds of characters are below it, and how many at most follow each other. If
 * such characters lead a state only to itself, or along a chain of states, it allows all tokens
 * below the node, which are a range of the sorted vocabulary. If the chain ends, as for a string
 * with a greatest length, it allows the tokens of the range that have few enough characters.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar_walk_priv.h"

#define DEAD GRAMMAR_DEAD
#define UNKNOWN GRAMMAR_UNKNOWN

/* States of a chain that are looked at, such as the chain of a string with a greatest length.
 * Longer runs of characters are walked. */
#define CHAIN_MAX 20

/* The moves of a state by kinds of characters are found out, 600 of them, if they decide on at
 * least so many nodes. */
#define LEARN_NODES_MIN 128
#define LEARN_LOOKS 256 /* that takes as long as so many looks, if the moves are known */

/* ---- kinds of characters --------------------------------------------------------------------- */

/* Kinds that grammars treat differently. Signs that they name are kinds of their own. */
static const char signs[] = " \t\n\r\"\\/'-_.,:";

enum kind {
    KIND_LOWER,
    KIND_UPPER,
    KIND_DIGIT,
    KIND_CONTROL,
    KIND_BRACKET,
    KIND_MARK,
    KIND_SIGN,                                /* the first of |signs| */
    KIND_TWO = KIND_SIGN + sizeof(signs) - 1, /* characters of two bytes in UTF-8; a part of one */
    KIND_THREE,
    KIND_FOUR,
    KIND_BROKEN, /* bytes that are not UTF-8; no state is free for them */
    KINDS
};

_Static_assert(KINDS <= 32, "kinds are bits of a uint32_t");

#define BIT(kind) (UINT32_C(1) << (kind))

static unsigned kind_of_ascii(uint8_t byte)
{
    const char *sign = byte ? strchr(signs, byte) : NULL;
    if (sign) {
        return KIND_SIGN + (unsigned)(sign - signs);
    }
    if (byte >= 'a' && byte <= 'z') {
        return KIND_LOWER;
    }
    if (byte >= 'A' && byte <= 'Z') {
        return KIND_UPPER;
    }
    if (byte >= '0' && byte <= '9') {
        return KIND_DIGIT;
    }
    return byte < ' ' ? KIND_CONTROL : byte && strchr("<>(){}[]", byte) ? KIND_BRACKET : KIND_MARK;
}

/* The character at |at| of |text|, which has at least one more byte: its bytes, fewer if the text
 * ends within it. */
static unsigned kind_at(struct span text, size_t at, size_t *out_len)
{
    uint8_t lead = text.ptr[at];
    size_t len = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    size_t left = text.len - at;
    *out_len = len < left ? len : left;
    if (len == 1) {
        return kind_of_ascii(lead);
    }
    if (len == 0 || lead > 0xf4) {
        return KIND_BROKEN;
    }
    for (size_t i = 1; i < *out_len; i++) {
        uint8_t byte = text.ptr[at + i], lo = 0x80, hi = 0xbf;
        if (i == 1) {
            lo = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : lo;
            hi = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : hi;
        }
        if (byte < lo || byte > hi) {
            return KIND_BROKEN;
        }
    }
    return KIND_TWO + (unsigned)len - 2;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* A node of the trie of all tokens, in the order of a walk over it. */
struct trie_node {
    uint32_t skip;   /* the first node behind its subtree */
    uint32_t tokens; /* the first of vocabulary->tokens that ends here or below; the next node's
                        first is behind those that end here */
    uint32_t kinds;  /* of characters below it; KIND_BROKEN, too, within a character */
    uint16_t depth;  /* of its parent */
    uint8_t byte;
    uint8_t height; /* characters below it, one behind the other; UINT8_MAX: or more */
    uint8_t chars;  /* up to its own; UINT8_MAX: or more */
};

struct grammar_vocabulary {
    size_t token_count;
    struct trie_node *nodes; /* one more is behind them */
    uint32_t node_count;
    uint32_t *tokens; /* sorted by their bytes */
    uint8_t *chars;   /* of each of them, in that order; UINT8_MAX: or more */
};

struct entry {
    struct span bytes;
    uint32_t token;
};

static int by_bytes(const void *a, const void *b)
{
    return span_compare(((const struct entry *)a)->bytes, ((const struct entry *)b)->bytes);
}

static size_t common(struct span a, struct span b)
{
    size_t len = 0;
    while (len < a.len && len < b.len && a.ptr[len] == b.ptr[len]) {
        len++;
    }
    return len;
}

static void close_nodes(struct grammar_vocabulary *out, const uint32_t *open, size_t from,
                        size_t to)
{
    for (size_t i = from; i < to; i++) {
        out->nodes[open[i]].skip = out->node_count;
    }
}

static void add_below(struct trie_node *node, uint32_t kinds, size_t height)
{
    node->kinds |= kinds;
    height = height < UINT8_MAX ? height : UINT8_MAX;
    node->height = node->height > height ? node->height : (uint8_t)height;
}

/* Counts the characters up to each of the nodes |open| of a token. */
static uint8_t count_chars(struct grammar_vocabulary *out, const uint32_t *open,
                           const uint8_t *starts, size_t len)
{
    uint8_t chars = 0;
    for (size_t at = 0; at < len; at++) {
        chars += starts[at] && chars < UINT8_MAX;
        out->nodes[open[at]].chars = chars;
    }
    return chars;
}

/* Tells the nodes |open| of a token what is below them. Returns its characters. */
static uint8_t note_kinds(struct grammar_vocabulary *out, const uint32_t *open, struct span bytes)
{
    uint8_t starts[GRAMMAR_TOKEN_MAX]; /* the kind of the character that begins there + 1 */
    size_t len;
    memset(starts, 0, bytes.len);
    for (size_t at = 0; at < bytes.len; at += len ? len : 1) {
        starts[at] = (uint8_t)(kind_at(bytes, at, &len) + 1);
        if (starts[at] == KIND_BROKEN + 1) {
            len = bytes.len; /* later bytes are of no interest */
        }
    }
    uint32_t kinds = 0;
    size_t height = 0;
    for (size_t at = bytes.len; at-- > 1;) { /* node at - 1 has byte |at| below it */
        if (starts[at]) {
            kinds |= BIT(starts[at] - 1);
            add_below(&out->nodes[open[at - 1]], kinds, ++height);
        } else {
            add_below(&out->nodes[open[at - 1]], BIT(KIND_BROKEN), UINT8_MAX);
        }
    }
    return count_chars(out, open, starts, bytes.len);
}

/* |entries| are sorted; nodes has room. */
static void fill_trie(struct grammar_vocabulary *out, const struct entry *entries, size_t count)
{
    uint32_t open[GRAMMAR_TOKEN_MAX];
    struct span last = {0};
    for (size_t i = 0; i < count; i++) {
        struct span bytes = entries[i].bytes;
        size_t shared = common(last, bytes);
        out->tokens[i] = entries[i].token;
        close_nodes(out, open, shared, last.len);
        for (size_t at = shared; at < bytes.len; at++) {
            open[at] = out->node_count;
            out->nodes[out->node_count++] = (struct trie_node){
                .byte = bytes.ptr[at], .depth = (uint16_t)at, .tokens = (uint32_t)i};
        }
        out->chars[i] = note_kinds(out, open, bytes);
        last = bytes;
    }
    close_nodes(out, open, 0, last.len);
    out->nodes[out->node_count] = (struct trie_node){.tokens = (uint32_t)count};
}

static bool make_trie(struct grammar_vocabulary *out, const struct span *tokens, size_t count)
{
    struct entry *entries = malloc((count + 1) * sizeof(*entries));
    size_t used = 0, bytes = 0;
    if (!entries) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (tokens[i].len > 0 && tokens[i].len <= GRAMMAR_TOKEN_MAX) {
            entries[used++] = (struct entry){tokens[i], (uint32_t)i};
            bytes += tokens[i].len;
        }
    }
    qsort(entries, used, sizeof(*entries), by_bytes);
    out->nodes = malloc((bytes + 1) * sizeof(*out->nodes));
    out->tokens = malloc((used + 1) * sizeof(*out->tokens));
    out->chars = malloc(used + 1);
    bool is_made = bytes < UINT32_MAX && out->nodes && out->tokens && out->chars;
    if (is_made) {
        fill_trie(out, entries, used);
        struct trie_node *nodes = realloc(out->nodes, (out->node_count + 1) * sizeof(*nodes));
        out->nodes = nodes ? nodes : out->nodes;
    }
    free(entries);
    return is_made;
}

enum status grammar_vocabulary_new(const struct span *tokens, size_t count,
                                   struct grammar_vocabulary **out, struct error *err)
{
    *out = NULL;
    struct grammar_vocabulary *vocabulary = calloc(1, sizeof(*vocabulary));
    if (vocabulary && count < UINT32_MAX) {
        vocabulary->token_count = count;
        if (make_trie(vocabulary, tokens, count)) {
            *out = vocabulary;
            return ST_OK;
        }
    }
    grammar_vocabulary_free(vocabulary);
    return error_no_memory(err, "the texts of a vocabulary");
}

void grammar_vocabulary_free(struct grammar_vocabulary *vocabulary)
{
    if (vocabulary) {
        free(vocabulary->nodes);
        free(vocabulary->tokens);
        free(vocabulary->chars);
        free(vocabulary);
    }
}

/* ---- states that are free -------------------------------------------------------------------- */

/* The work of this call is done. Whoever has asked for a move since then does not know it. */
static bool is_spent(const struct grammar_walk *walk)
{
    return walk->looked > walk->looked_max;
}

static uint32_t step(struct grammar_walk *walk, uint32_t at, uint8_t byte)
{
    const uint32_t *moves = walk->states[at].moves;
    if (moves && moves[byte] != UNKNOWN) {
        return moves[byte];
    }
    return is_spent(walk) ? DEAD : grammar_walk_step(walk, at, byte);
}

/* Where most characters of ASCII lead that may come, if that is more than half of them. */
static uint32_t find_main_next(struct grammar_walk *walk, uint32_t at)
{
    uint32_t next = DEAD, votes = 0;
    for (uint8_t byte = 0; byte < 0x80; byte++) {
        uint32_t to = step(walk, at, byte);
        if (to != DEAD && votes == 0) {
            next = to;
        }
        votes += to == DEAD ? 0 : to == next ? 1 : UINT32_MAX;
    }
    return next;
}

/* Does a byte lo..hi and |more| bytes that continue a character always lead to |next|? */
static bool leads_to(struct grammar_walk *walk, uint32_t at, uint8_t lo, uint8_t hi, int more,
                     uint32_t next)
{
    uint32_t last = UNKNOWN;
    for (unsigned byte = lo; byte <= hi; byte++) {
        uint32_t to = step(walk, at, (uint8_t)byte);
        if (to == DEAD || (more == 0 && to != next)) {
            return false;
        }
        if (more > 0 && to != last && !leads_to(walk, to, 0x80, 0xbf, more - 1, next)) {
            return false;
        }
        last = to;
    }
    return true;
}

static bool two_lead_to(struct grammar_walk *walk, uint32_t at, uint32_t next)
{
    return leads_to(walk, at, 0xc2, 0xdf, 1, next);
}

static bool three_lead_to(struct grammar_walk *walk, uint32_t at, uint32_t next)
{
    return leads_to(walk, step(walk, at, 0xe0), 0xa0, 0xbf, 1, next) &&
           leads_to(walk, at, 0xe1, 0xec, 2, next) &&
           leads_to(walk, step(walk, at, 0xed), 0x80, 0x9f, 1, next) &&
           leads_to(walk, at, 0xee, 0xef, 2, next);
}

static bool four_lead_to(struct grammar_walk *walk, uint32_t at, uint32_t next)
{
    return leads_to(walk, step(walk, at, 0xf0), 0x90, 0xbf, 2, next) &&
           leads_to(walk, at, 0xf1, 0xf3, 3, next) &&
           leads_to(walk, step(walk, at, 0xf4), 0x80, 0x8f, 2, next);
}

static bool are_dead(struct grammar_walk *walk, uint32_t at, uint8_t lo, uint8_t hi)
{
    for (unsigned byte = lo; byte <= hi; byte++) {
        if (step(walk, at, (uint8_t)byte) != DEAD) {
            return false;
        }
    }
    return true;
}

static uint32_t find_dead(struct grammar_walk *walk, uint32_t at)
{
    uint32_t kinds = BIT(KIND_TWO) - 1;
    for (uint8_t byte = 0; byte < 0x80; byte++) {
        kinds &= step(walk, at, byte) == DEAD ? ~UINT32_C(0) : ~BIT(kind_of_ascii(byte));
    }
    kinds |= are_dead(walk, at, 0xc2, 0xdf) ? BIT(KIND_TWO) : 0;
    kinds |= are_dead(walk, at, 0xe0, 0xef) ? BIT(KIND_THREE) : 0;
    return kinds | (are_dead(walk, at, 0xf0, 0xf4) ? BIT(KIND_FOUR) : 0);
}

static void learn(struct grammar_walk *walk, uint32_t at)
{
    uint32_t next = find_main_next(walk, at), kinds = 0;
    if (next != DEAD) {
        kinds = BIT(KIND_TWO) - 1;
        for (uint8_t byte = 0; byte < 0x80; byte++) {
            kinds &= step(walk, at, byte) == next ? ~UINT32_C(0) : ~BIT(kind_of_ascii(byte));
        }
        kinds |= two_lead_to(walk, at, next) ? BIT(KIND_TWO) : 0;
        kinds |= three_lead_to(walk, at, next) ? BIT(KIND_THREE) : 0;
        kinds |= four_lead_to(walk, at, next) ? BIT(KIND_FOUR) : 0;
    }
    uint32_t dead = find_dead(walk, at);
    if (is_spent(walk)) {
        return; /* another time */
    }
    walk->looked += LEARN_LOOKS;
    struct walk_state *state = &walk->states[at];
    state->dead_kinds = dead;
    state->free_next = next;
    state->free_kinds = kinds;
    state->knows_free = true;
}

/* True: in the state |from| all tokens below |node| may come that have at most |*out_chars|
 * characters behind the node's own. False: the nodes below have to be walked. */
static bool is_free(struct grammar_walk *walk, uint32_t from, const struct trie_node *node,
                    bool may_learn, unsigned *out_chars)
{
    uint32_t at = from;
    *out_chars = UINT8_MAX;
    for (unsigned i = 0; i < node->height; i++) {
        if (!walk->states[at].knows_free) {
            if (!may_learn || i > CHAIN_MAX) {
                return false;
            }
            learn(walk, at);
        }
        if (!walk->states[at].knows_free) {
            return false;
        }
        const struct walk_state *state = &walk->states[at];
        if (node->kinds & ~state->free_kinds) {
            *out_chars = i;
            return (node->kinds & ~state->dead_kinds) == 0 && node->chars + i < UINT8_MAX;
        }
        if (state->free_next == at) {
            return true;
        }
        at = state->free_next;
    }
    return node->height < UINT8_MAX;
}

/* ---- masks ----------------------------------------------------------------------------------- */

static void allow(const struct grammar_vocabulary *vocabulary, uint32_t from, uint32_t to,
                  uint64_t *bits)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t token = vocabulary->tokens[i];
        bits[token / 64] |= UINT64_C(1) << (token % 64);
    }
}

/* Allows the tokens with at most |chars| characters. */
static void allow_short(const struct grammar_vocabulary *vocabulary, uint32_t from, uint32_t to,
                        unsigned chars, uint64_t *bits)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t token = vocabulary->tokens[i];
        bits[token / 64] |= (uint64_t)(vocabulary->chars[i] <= chars) << (token % 64);
    }
}

/* False: the work of this call is done. */
static bool go_on(struct grammar_walk *walk, struct kept_mask *mask)
{
    const struct grammar_vocabulary *vocabulary = mask->vocabulary;
    while (mask->next_node < vocabulary->node_count) {
        const struct trie_node *node = &vocabulary->nodes[mask->next_node];
        uint32_t to = step(walk, mask->path[node->depth], node->byte);
        uint32_t below = node->skip - mask->next_node - 1;
        unsigned chars = UINT8_MAX;
        bool is_whole =
            to != DEAD && below > 0 && is_free(walk, to, node, below >= LEARN_NODES_MIN, &chars);
        if (is_spent(walk)) {
            return false; /* the node is looked at again */
        }
        uint32_t next = is_whole || to == DEAD ? node->skip : mask->next_node + 1;
        mask->path[node->depth + 1] = to;
        if (is_whole && chars < UINT8_MAX) {
            allow_short(vocabulary, node->tokens, vocabulary->nodes[next].tokens,
                        node->chars + chars, mask->bits);
        } else if (to != DEAD) {
            allow(vocabulary, node->tokens, vocabulary->nodes[next].tokens, mask->bits);
        }
        mask->next_node = next;
    }
    return true;
}

static enum status begin_mask(struct grammar_walk *walk, struct kept_mask *mask,
                              struct grammar_state state,
                              const struct grammar_vocabulary *vocabulary, size_t size,
                              struct error *err)
{
    uint64_t *bits = realloc(mask->bits, size ? size : 1);
    if (!bits) {
        return error_no_memory(err, "the tokens that may come next");
    }
    memset(bits, 0, size);
    walk->mask_bytes = GRAMMAR_MASKS_KEPT * size;
    mask->bits = bits;
    mask->vocabulary = vocabulary;
    mask->state = mask->path[0] = state.at;
    mask->next_node = 0;
    return ST_OK;
}

enum status grammar_mask_within(struct grammar_walk *walk, struct grammar_state state,
                                const struct grammar_vocabulary *vocabulary, uint64_t *bits,
                                uint64_t work_max, struct error *err)
{
    struct kept_mask *mask = &walk->masks[state.at % GRAMMAR_MASKS_KEPT];
    size_t size = (vocabulary->token_count + 63) / 64 * sizeof(*bits);
    TRY(grammar_walk_check(walk, err));
    if (mask->vocabulary != vocabulary || mask->state != state.at) {
        TRY(begin_mask(walk, mask, state, vocabulary, size, err));
    }
    uint64_t left = UINT64_MAX - walk->looked;
    walk->looked_max = walk->looked + (work_max < left ? work_max : left);
    bool is_made = go_on(walk, mask);
    if (walk->status != ST_OK) {
        mask->vocabulary = NULL; /* moves are missing that there are */
        return grammar_walk_check(walk, err);
    }
    if (!is_made) {
        return error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY));
    }
    memcpy(bits, mask->bits, size);
    return ST_OK;
}

enum status grammar_mask(struct grammar_walk *walk, struct grammar_state state,
                         const struct grammar_vocabulary *vocabulary, uint64_t *bits,
                         struct error *err)
{
    return grammar_mask_within(walk, state, vocabulary, bits, UINT64_MAX, err);
}
