/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "protocol/pick.h"
#include "protocol/sip_build.h"
#include "runtime/program/method.h"

#define ALIAS_BYTES 24 /* "output_4294967295" */
#define LABEL_BYTES_MAX 160

static const char *const alias_prefix[] = {[RT_INPUT] = "input_", [RT_RESULT] = "output_"};
TABLE_ENDS_WITH(alias_prefix, RT_RESULT);
static const char *const label_prefix[] = {[RT_INPUT] = "input", [RT_RESULT] = "result"};
TABLE_ENDS_WITH(label_prefix, RT_RESULT);

/* ---- what is a name -------------------------------------------------------------------------- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_byte(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

/* Digits after the prefix; 007 looks like an alias and is none. */
static bool is_like_alias(struct span name, enum rt_side side)
{
    size_t at = strlen(alias_prefix[side]);
    if (name.len <= at || memcmp(name.ptr, alias_prefix[side], at) != 0) {
        return false;
    }
    while (at < name.len && is_digit(name.ptr[at])) {
        at++;
    }
    return at == name.len;
}

bool rt_alias_index(struct span name, enum rt_side side, uint32_t *out_index)
{
    char alias[ALIAS_BYTES];
    uint64_t index = 0;
    if (!is_like_alias(name, side) || name.len >= ALIAS_BYTES) {
        return false;
    }
    for (size_t i = strlen(alias_prefix[side]); i < name.len && index <= UINT32_MAX; i++) {
        index = index * 10 + (name.ptr[i] - '0');
    }
    *out_index = (uint32_t)index;
    snprintf(alias, ALIAS_BYTES, "%s%u", alias_prefix[side], *out_index);
    return span_is(name, alias);
}

bool rt_name_is_valid(struct span name, enum rt_side side)
{
    uint8_t before = '.';
    if (name.len == 0 || name.len > RT_NAME_BYTES_MAX || name.ptr[0] == '-') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_byte(name.ptr[i]) || (before == '.' && name.ptr[i] == '.')) {
            return false;
        }
        before = name.ptr[i];
    }
    return before != '.' && !is_like_alias(name, side);
}

enum status rt_names_allocate(struct rt_io **out_ios, uint32_t count, enum rt_side side,
                              struct error *err)
{
    struct rt_io *ios = calloc(count ? count : 1, sizeof(*ios) + ALIAS_BYTES);
    if (!ios) {
        return error_no_memory(err, "%u %ss", count, label_prefix[side]);
    }
    char *aliases = (char *)(ios + count);
    for (uint32_t i = 0; i < count; i++) {
        char *alias = aliases + (size_t)i * ALIAS_BYTES;
        snprintf(alias, ALIAS_BYTES, "%s%u", alias_prefix[side], i);
        ios[i].name = ios[i].alias = alias;
    }
    *out_ios = ios;
    return ST_OK;
}

bool rt_io_is_called(const struct rt_io *io, struct span name)
{
    return span_is(name, io->name) || span_is(name, io->alias);
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The names that a value might get, best first; NULL: none. */
struct candidate {
    const char *brief, *whole;
    uint32_t index; /* raw */
};

/* One side of a method while its names are chosen. */
struct naming {
    struct arena *arena;
    enum rt_side side;
    struct rt_io *ios;
    uint32_t count;
    const struct sip *structure;
    const struct sip_tree *tree;
    struct candidate *candidates; /* owned; by raw index */
    struct candidate *sorted;     /* owned; candidates with a name, by name */
};

/* Copies the content of |buf| to the arena. */
static const char *keep(const struct naming *n, const struct buf *buf)
{
    return arena_strdup(n->arena, buf->ptr, buf->len);
}

/* The nodes from the root's member, or from that of the keyword arguments, down to a value. */
struct trail {
    uint32_t nodes[SIP_DEPTH_MAX];
    size_t first;     /* the rest of |nodes| is the trail */
    size_t first_key; /* the first of it that is a member of a dict, or SIP_DEPTH_MAX */
};

static void trace(const struct naming *n, uint32_t leaf, struct trail *out)
{
    uint32_t kwargs = n->side == RT_INPUT ? sip_kwargs(n->structure) : SIP_NO_NODE;
    uint32_t node = leaf, parent = n->tree->nodes[node].parent;
    out->first = out->first_key = SIP_DEPTH_MAX;
    while (node != kwargs && parent != SIP_NO_NODE) {
        must(out->first > 0);
        out->nodes[--out->first] = node;
        out->first_key = n->tree->nodes[parent].kind == SIP_DICT ? out->first : out->first_key;
        node = parent;
        parent = n->tree->nodes[node].parent;
    }
}

/* Prints the keys and positions of |depth| nodes with dots between them. */
static void print_dotted(const struct naming *n, const uint32_t *path, size_t depth,
                         struct buf *out)
{
    for (size_t i = 0; i < depth; i++) {
        const struct sip_node *node = &n->tree->nodes[path[i]];
        buf_add_str(out, i ? "." : "");
        if (n->tree->nodes[node->parent].kind == SIP_DICT) {
            buf_add(out, node->key.name.ptr, node->key.name.len);
        } else {
            buf_printf(out, "%lld", (long long)node->key.position);
        }
    }
}

/* The trail from |from| on as a name in the arena, or NULL if it is not a valid name. */
static enum status join(const struct naming *n, const struct trail *trail, size_t from,
                        const char **out, struct error *err)
{
    struct buf text;
    buf_init(&text, RT_NAME_BYTES_MAX);
    print_dotted(n, trail->nodes + from, SIP_DEPTH_MAX - from, &text);
    bool is_name = !buf_failed(&text) && rt_name_is_valid(buf_span(&text), n->side);
    bool lacks_memory = text.lacks_memory;
    *out = is_name ? keep(n, &text) : NULL;
    buf_fini(&text);
    return lacks_memory || (is_name && !*out) ? error_no_memory(err, "names") : ST_OK;
}

static enum status find_candidate(const struct naming *n, uint32_t leaf, struct candidate *out,
                                  struct error *err)
{
    struct trail trail;
    trace(n, leaf, &trail);
    if (trail.first_key == SIP_DEPTH_MAX) {
        return ST_OK;
    }
    TRY(join(n, &trail, trail.first_key, &out->brief, err));
    return join(n, &trail, trail.first, &out->whole, err);
}

/* A raw result may be at several leaves: the first one counts. */
static enum status find_candidates(struct naming *n, const char *const *hints, struct error *err)
{
    for (uint32_t i = 0; i != SIP_NO_NODE; i = sip_next(n->tree, i)) {
        const struct sip_node *node = &n->tree->nodes[i];
        if (node->kind == SIP_LEAF && !n->candidates[node->raw_index].brief) {
            TRY(find_candidate(n, i, &n->candidates[node->raw_index], err));
        }
    }
    for (uint32_t i = 0; hints && i < n->count; i++) {
        struct candidate *candidate = &n->candidates[i];
        if (!candidate->brief && hints[i] && rt_name_is_valid(span_str(hints[i]), n->side)) {
            candidate->brief = arena_strdup(n->arena, hints[i], strlen(hints[i]));
            candidate->whole = candidate->brief;
            if (!candidate->brief) {
                return error_no_memory(err, "names");
            }
        }
    }
    return ST_OK;
}

/* ---- names are unique ------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    return strcmp(left->brief, right->brief);
}

/* A name that several values want is given to none: each gets its next name, if it has one. */
static void part_equals(struct naming *n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->candidates[i].brief) {
            n->sorted[count] = n->candidates[i];
            n->sorted[count++].index = i;
        }
    }
    if (count > 0) {
        qsort(n->sorted, count, sizeof(n->sorted[0]), compare);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool is_same = (i > 0 && compare(&n->sorted[i - 1], &n->sorted[i]) == 0) ||
                       (i + 1 < count && compare(&n->sorted[i], &n->sorted[i + 1]) == 0);
        struct candidate *candidate = &n->candidates[n->sorted[i].index];
        if (is_same) {
            candidate->brief = candidate->whole;
            candidate->whole = NULL;
        }
    }
}

/* Names that several values want are replaced first by whole paths, then by nothing. */
static void choose_names(struct naming *n)
{
    part_equals(n);
    for (uint32_t i = 0; i < n->count; i++) {
        n->candidates[i].whole = NULL;
    }
    part_equals(n);
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->candidates[i].brief) {
            n->ios[i].name = n->candidates[i].brief;
        }
    }
}

/* ---- what messages say ----------------------------------------------------------------------- */

static enum status keep_label(const struct naming *n, struct buf *text, const char **out,
                              struct error *err)
{
    *out = text->lacks_memory ? NULL
                              : arena_strdup(n->arena, text->ptr, text->len); /* cut if too long */
    buf_reset(text);
    return *out ? ST_OK : error_no_memory(err, "names");
}

static enum status make_labels(const struct naming *n, struct error *err)
{
    struct buf text;
    enum status status = ST_OK;
    buf_init(&text, LABEL_BYTES_MAX);
    for (uint32_t i = 0; status == ST_OK && i < n->count; i++) {
        buf_printf(&text, "%s '%s'", label_prefix[n->side], n->ios[i].name);
        status = keep_label(n, &text, &n->ios[i].label, err);
        n->ios[i].path = n->ios[i].label;
    }
    for (uint32_t i = 0; status == ST_OK && n->side == RT_INPUT && i < n->tree->count; i++) {
        const struct sip_node *node = &n->tree->nodes[i];
        if (node->kind == SIP_LEAF) {
            sip_print_argument(n->structure, i, &text);
            status = keep_label(n, &text, &n->ios[node->raw_index].path, err);
        }
    }
    buf_fini(&text);
    return status;
}

static enum status settle(struct naming *n, const char *const *hints, struct error *err)
{
    size_t count = n->count ? n->count : 1;
    n->candidates = calloc(count, sizeof(n->candidates[0]));
    n->sorted = calloc(count, sizeof(n->sorted[0]));
    enum status status =
        n->candidates && n->sorted ? find_candidates(n, hints, err) : error_no_memory(err, "names");
    if (status == ST_OK) {
        choose_names(n);
        status = make_labels(n, err);
    }
    free(n->candidates);
    free(n->sorted);
    return status;
}

enum status rt_names_settle(struct rt_method *method, const char *const *const hints[2],
                            struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct sip *structure = &method->signature.structure;
    struct naming inputs = {
        .arena = &method->signature_arena,
        .side = RT_INPUT,
        .ios = method->inputs,
        .count = rt_method_input_count(method),
        .structure = structure,
        .tree = &structure->inputs,
    };
    struct naming results = inputs;
    results.side = RT_RESULT;
    results.ios = method->results;
    results.count = rt_method_result_count(method);
    results.tree = &structure->results;
    TRY(settle(&inputs, hints ? hints[RT_INPUT] : NULL, err));
    return settle(&results, hints ? hints[RT_RESULT] : NULL, err);
}

/* ---- names from elsewhere -------------------------------------------------------------------- */

/* Does a value keep the name that value |index| is to get, or get it, too? */
static enum status check_given(const struct rt_io *ios, uint32_t count, enum rt_side side,
                               const char *const *names, uint32_t index, struct error *err)
{
    const char *what = side == RT_INPUT ? "input" : "output";
    if (ios[index].kind == RT_IO_NONE) {
        return error_set(err, ST_INVALID, "%s is a None, which has no name", ios[index].alias);
    }
    if (!rt_name_is_valid(span_str(names[index]), side)) {
        return error_set(err, ST_INVALID,
                         "expected a name of 1 to %d of A-Z a-z 0-9 _ - . : that does not read "
                         "like %s_0, got '%.64s'",
                         RT_NAME_BYTES_MAX, what, names[index]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *other = names[i] ? names[i] : ios[i].name;
        if (i != index && strcmp(other, names[index]) == 0) {
            return error_set(err, ST_INVALID, "'%.64s' is the name of %s, too", names[index],
                             ios[i].alias);
        }
    }
    return ST_OK;
}

/* |name| without the keys and positions that lead to the dict of |leaf|: "b" of "a.b" in "a". */
static struct span key_of(const struct naming *n, uint32_t leaf, struct span name)
{
    struct trail trail;
    struct buf above;
    trace(n, leaf, &trail);
    buf_init(&above, RT_NAME_BYTES_MAX);
    size_t from = trail.first_key, depth = SIP_DEPTH_MAX - 1 - from;
    print_dotted(n, trail.nodes + from, depth, &above);
    bool is_below = depth > 0 && !buf_failed(&above) && name.len > above.len + 1 &&
                    memcmp(name.ptr, above.ptr, above.len) == 0 && name.ptr[above.len] == '.';
    size_t skipped = is_below ? above.len + 1 : 0;
    buf_fini(&above);
    return span_of(name.ptr + skipped, name.len - skipped);
}

/* A value in a dict has its name as its key. Of a result at several places the first one counts. */
static enum status rename_keys(const struct naming *n, const char *const *names,
                               struct sip_tree *out, uint32_t *out_index, struct error *err)
{
    struct span *keys = arena_array(n->arena, n->tree->count, sizeof(*keys));
    bool *is_done = arena_array(n->arena, n->count, sizeof(*is_done));
    uint32_t twice = 0;
    if (!keys || !is_done) {
        return error_no_memory(err, "names");
    }
    for (uint32_t i = 0; i != SIP_NO_NODE; i = sip_next(n->tree, i)) {
        const struct sip_node *node = &n->tree->nodes[i];
        const char *name =
            node->kind == SIP_LEAF && !is_done[node->raw_index] ? names[node->raw_index] : NULL;
        if (name && node->parent != SIP_NO_NODE && n->tree->nodes[node->parent].kind == SIP_DICT) {
            keys[i] = key_of(n, i, span_str(name));
        }
        if (name) {
            is_done[node->raw_index] = true;
        }
    }
    enum status status = sip_rename(n->tree, keys, n->arena, out, &twice, err);
    if (status != ST_INVALID) {
        return status;
    }
    *out_index = (uint32_t)n->tree->nodes[twice].raw_index;
    return error_set(err, ST_INVALID, "'%.*s' is the key of another value there",
                     SPAN_SHORT(keys[twice]));
}

/* "kwargs" of a call has keyword arguments and names, so a name must not be another's keyword. */
static enum status check_keywords(const struct naming *n, const struct sip *structure,
                                  const char *const *names, uint32_t *out_index, struct error *err)
{
    uint32_t kwargs = n->side == RT_INPUT ? sip_kwargs(structure) : SIP_NO_NODE;
    for (uint32_t i = 0; kwargs != SIP_NO_NODE && i < n->count; i++) {
        uint32_t node =
            names[i] ? sip_find_name(&structure->inputs, kwargs, span_str(names[i])) : SIP_NO_NODE;
        bool is_other = node != SIP_NO_NODE && (structure->inputs.nodes[node].kind != SIP_LEAF ||
                                                structure->inputs.nodes[node].raw_index != i);
        if (is_other) {
            *out_index = i;
            return error_set(err, ST_INVALID, "'%s' is the keyword of another argument", names[i]);
        }
    }
    return ST_OK;
}

/* The texts of |names| and the structure with them as keys, in the arena. */
static enum status prepare(const struct naming *n, const char *const *names,
                           const char ***out_names, struct sip *structure, uint32_t *out_index,
                           struct error *err)
{
    const char **copies = arena_array(n->arena, n->count, sizeof(*copies));
    if (!copies) {
        return error_no_memory(err, "names");
    }
    for (*out_index = 0; *out_index < n->count; (*out_index)++) {
        const char *name = names[*out_index];
        if (name) {
            TRY(check_given(n->ios, n->count, n->side, names, *out_index, err));
            copies[*out_index] = arena_strdup(n->arena, name, strlen(name));
        }
        if (name && !copies[*out_index]) {
            return error_no_memory(err, "names");
        }
    }
    *out_names = copies;
    TRY(rename_keys(n, copies, n->side == RT_INPUT ? &structure->inputs : &structure->results,
                    out_index, err));
    return check_keywords(n, structure, copies, out_index, err);
}

enum status rt_names_give(struct rt_method *method, enum rt_side side, const char *const *names,
                          uint32_t *out_index, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct sip *before = &method->signature.structure;
    struct sip structure = *before;
    const char **given = NULL;
    const struct naming n = {
        .arena = &method->signature_arena,
        .side = side,
        .ios = side == RT_INPUT ? method->inputs : method->results,
        .count = side == RT_INPUT ? method->input_count : method->result_count,
        .structure = before,
        .tree = side == RT_INPUT ? &before->inputs : &before->results,
    };
    TRY(prepare(&n, names, &given, &structure, out_index, err));
    for (uint32_t i = 0; i < n.count; i++) {
        n.ios[i].name = given[i] ? given[i] : n.ios[i].name;
    }
    TRY(rt_signature_rename(method, &structure, err));
    return make_labels(&n, err);
}

/* ---- a list of names ------------------------------------------------------------------------- */

/* A None has no name. */
static const char *name_at(const void *of, uint32_t index)
{
    const struct rt_io *io = (const struct rt_io *)of + index;
    return io->kind == RT_IO_NONE ? NULL : io->name;
}

const char *rt_names_print(const struct rt_method *method, enum rt_side side,
                           char text[NAMES_TEXT_MAX])
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return side == RT_INPUT
               ? names_print(name_at, method->inputs, rt_method_input_count(method), text)
               : names_print(name_at, method->results, rt_method_result_count(method), text);
}

/* ---- one of the results ---------------------------------------------------------------------- */

static bool is_meant(const struct rt_method *method, const struct pick *pick, uint32_t index)
{
    const struct rt_io *io = &method->results[index];
    return io->kind != RT_IO_NONE && (pick->kind == PICK_ONLY || rt_io_is_called(io, pick->name));
}

enum status rt_method_pick_result(const struct rt_method *method, const struct pick *pick,
                                  uint32_t *out_index, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    uint32_t all = rt_method_result_count(method), found = 0;
    char names[NAMES_TEXT_MAX];
    if (pick->kind == PICK_PATH) {
        return pick_follow(pick, &method->signature.structure.results, out_index, err);
    }
    if (pick->kind == PICK_INDEX) {
        *out_index = (uint32_t)pick->index;
        return pick->index < all ? ST_OK
                                 : error_set(err, ST_INVALID,
                                             "there is no output %llu, expected a number below %u",
                                             (unsigned long long)pick->index, all);
    }
    for (uint32_t i = 0; i < all; i++) {
        if (is_meant(method, pick, i)) {
            *out_index = i;
            found++;
        }
    }
    if (found == 1) {
        return ST_OK;
    }
    rt_names_print(method, RT_RESULT, names);
    return pick->kind == PICK_ONLY
               ? error_set(err, ST_INVALID, "no output is named, expected %s", names)
               : error_set(err, ST_INVALID, "there is no output '%.*s', expected %s",
                           SPAN_SHORT(pick->name), names);
}
