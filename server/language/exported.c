/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/exported.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/folder.h"
#include "protocol/pytree.h"
#include "server/process/document.h"

#define BYTES_MAX (8 << 20)
#define VALUES_MAX (1 << 14)
#define STRUCTURE_BYTES_MAX (16 << 20)
#define ROWS_MAX (1 << 20)

/* Names of the argument that holds the cache; the first one is that of transformers 5.24. */
static const char *const cache_names[] = {"cache", "past_key_values"};

/* ---- the structure of the inputs and results ------------------------------------------------- */

/* The member of |tree|, a dict, that is the cache, or SIP_NO_NODE. */
static uint32_t find_cache(const struct sip_tree *tree)
{
    uint32_t found = SIP_NO_NODE;
    for (size_t i = 0; i < sizeof(cache_names) / sizeof(cache_names[0]); i++) {
        if (found == SIP_NO_NODE && tree->nodes[0].kind == SIP_DICT) {
            found = sip_find_name(tree, 0, span_str(cache_names[i]));
        }
    }
    return found;
}

/* The leaves below a node: they are numbered depth-first, so without gaps. */
struct leaves {
    uint32_t first, count;
};

/* By node, in the arena; NULL: no memory. Members lie behind the node that has them. */
static struct leaves *count_leaves(const struct sip_tree *tree, struct arena *arena)
{
    struct leaves *leaves = arena_array(arena, tree->count, sizeof(*leaves));
    for (uint32_t i = tree->count; leaves && i-- > 0;) {
        const struct sip_node *node = &tree->nodes[i];
        if (node->kind == SIP_LEAF) {
            leaves[i] = (struct leaves){.first = (uint32_t)node->raw_index, .count = 1};
        }
        if (node->parent != SIP_NO_NODE && leaves[i].count > 0) {
            struct leaves *all = &leaves[node->parent];
            all->first =
                all->count == 0 || leaves[i].first < all->first ? leaves[i].first : all->first;
            all->count += leaves[i].count;
        }
    }
    return leaves;
}

/* The cache among the results, which may be a sequence: then its last member of so many leaves. */
static struct leaves find_results(const struct sip_tree *tree, const struct leaves *leaves,
                                  uint32_t count)
{
    uint32_t named = find_cache(tree);
    struct leaves found = {0};
    for (uint32_t i = 0; named == SIP_NO_NODE && i < tree->nodes[0].count; i++) {
        uint32_t member = tree->nodes[0].first + i;
        if (tree->nodes[member].kind == SIP_SEQUENCE && leaves[member].count == count) {
            found = leaves[member];
        }
    }
    return named == SIP_NO_NODE ? found : leaves[named];
}

static enum status pair(const struct sip *sip, struct arena *arena, struct exported *out,
                        struct error *err)
{
    const struct leaves *inputs = count_leaves(&sip->inputs, arena);
    const struct leaves *results = count_leaves(&sip->results, arena);
    uint32_t cache = find_cache(&sip->inputs);
    if (!inputs || !results) {
        return arena_fail(arena, "the structure", err);
    }
    if (cache == SIP_NO_NODE) {
        return ST_OK;
    }
    struct leaves from = inputs[cache];
    if (from.count > EXPORTED_CARRIES_MAX) {
        return error_set(err, ST_TOO_LARGE, "more than %d tensors in a cache",
                         EXPORTED_CARRIES_MAX);
    }
    struct leaves to = find_results(&sip->results, results, from.count);
    if (from.count == 0 || to.count != from.count) {
        return ST_OK; /* it begins a cache */
    }
    for (uint32_t i = 0; i < from.count; i++) {
        out->items[i] = (struct rt_carry){.input = from.first + i, .result = to.first + i};
    }
    out->carries.count = from.count;
    out->carries.result_count = sip->results.leaf_count;
    out->is_found = true;
    return ST_OK;
}

/* The sizes of a static cache are in the description of its class, a JSON text within this text. 0:
 * there is none, or there are several, as of layers with windows. */
static int64_t find_rows(const char *text)
{
    static const char key[] = "max_cache_len\\\":";
    int64_t rows = 0;
    for (const char *at = text; (at = strstr(at, key)) != NULL;) {
        at += strlen(key);
        long found = strtol(at, NULL, 10);
        if (found < 1 || found > ROWS_MAX || (rows > 0 && found != rows)) {
            return 0;
        }
        rows = found;
    }
    return rows;
}

static enum status read_structure(const char *in, const char *out_spec, struct exported *out,
                                  struct error *err)
{
    struct arena arena;
    struct sip sip;
    const struct pytree_source source = {.inputs = span_str(in), .results = span_str(out_spec)};
    arena_init(&arena, STRUCTURE_BYTES_MAX);
    enum status status = pytree_parse(&source, &arena, &sip, err);
    if (status == ST_OK) {
        status = pair(&sip, &arena, out, err);
    }
    arena_fini(&arena);
    out->carries.rows = find_rows(in);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum status read_component(const struct document *document, const struct cJSON *component,
                                  const char *name, struct exported *out, struct error *err)
{
    const struct cJSON *file = document_find(component, "file");
    const struct cJSON *metadata = document_find(component, "metadata");
    const struct cJSON *in = document_find(metadata, "in_spec");
    const struct cJSON *results = document_find(metadata, "out_spec");
    const char *file_text, *in_text, *result_text;
    if (!file || !in || !results || document_type(in) == JSON_NULL ||
        document_type(results) == JSON_NULL) {
        return ST_OK;
    }
    TRY(document_text(document, file, &file_text, err));
    if (strcmp(file_text, name) != 0) {
        return ST_OK;
    }
    TRY(document_text(document, in, &in_text, err));
    TRY(document_text(document, results, &result_text, err));
    return read_structure(in_text, result_text, out, err);
}

static enum status read_components(const struct document *document, const char *name,
                                   struct exported *out, struct error *err)
{
    const struct cJSON *components = document_find(document->root, "components");
    const struct cJSON *component = components ? document_first(components) : NULL;
    for (; component && !out->is_found; component = document_next(component)) {
        TRY(read_component(document, component, name, out, err));
    }
    return ST_OK;
}

enum status exported_read(const char *path, struct exported *out, struct error *err)
{
    const struct document_limits limits = {BYTES_MAX, VALUES_MAX};
    struct document document;
    char file[PATH_MAX];
    out->is_found = false;
    out->carries = (struct rt_carries){.items = out->items};
    if (!folder_beside(path, EXPORTED_JSON, file, sizeof(file)) || access(file, F_OK) != 0) {
        return ST_OK;
    }
    enum status status = document_open(file, &limits, &document, err);
    if (status == ST_OK) {
        status = read_components(&document, folder_name(path), out, err);
        document_close(&document);
    }
    return status == ST_OK ? ST_OK : error_prefix(err, EXPORTED_JSON " is left out: ");
}
