/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/exported.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "protocol/pytree.h"
#include "server/process/document.h"

#define EXPORT_JSON "export.json"
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

/* Puts the leaves below |node|, in the order in which they are stored, at |out|; their number. */
static uint32_t list_leaves(const struct sip_tree *tree, uint32_t node, uint32_t *out, uint32_t max)
{
    uint32_t count = 0;
    int64_t first = INT64_MAX, last = -1;
    for (uint32_t i = 0; i < tree->count; i++) {
        uint32_t up = i;
        while (up != node && up != SIP_NO_NODE) {
            up = tree->nodes[up].parent;
        }
        if (up == node && tree->nodes[i].kind == SIP_LEAF) {
            first = tree->nodes[i].raw_index < first ? tree->nodes[i].raw_index : first;
            last = tree->nodes[i].raw_index > last ? tree->nodes[i].raw_index : last;
        }
    }
    for (int64_t leaf = first; leaf <= last && count < max; leaf++) { /* numbered depth-first */
        out[count++] = (uint32_t)leaf;
    }
    return count;
}

/* The same of the results, which may be a sequence: then its last member of so many leaves. */
static uint32_t list_results(const struct sip_tree *tree, uint32_t count,
                             uint32_t out[EXPORTED_CARRIES_MAX])
{
    uint32_t named = find_cache(tree), found = 0;
    for (uint32_t i = 0; named == SIP_NO_NODE && i < tree->nodes[0].count; i++) {
        uint32_t member = tree->nodes[0].first + i;
        bool is_cache = tree->nodes[member].kind == SIP_SEQUENCE &&
                        list_leaves(tree, member, out, EXPORTED_CARRIES_MAX) == count;
        found = is_cache ? member : found;
    }
    uint32_t node = named == SIP_NO_NODE ? found : named;
    return node == 0 ? 0 : list_leaves(tree, node, out, EXPORTED_CARRIES_MAX);
}

static enum status pair(const struct sip *sip, struct exported *out, struct error *err)
{
    uint32_t inputs[EXPORTED_CARRIES_MAX + 1], results[EXPORTED_CARRIES_MAX];
    uint32_t cache = find_cache(&sip->inputs);
    if (cache == SIP_NO_NODE) {
        return ST_OK;
    }
    uint32_t count = list_leaves(&sip->inputs, cache, inputs, EXPORTED_CARRIES_MAX + 1);
    if (count > EXPORTED_CARRIES_MAX) {
        return error_set(err, ST_TOO_LARGE, "more than %d tensors in a cache",
                         EXPORTED_CARRIES_MAX);
    }
    if (count == 0 || list_results(&sip->results, count, results) != count) {
        return ST_OK; /* it begins a cache */
    }
    for (uint32_t i = 0; i < count; i++) {
        out->items[i] = (struct rt_carry){.input = inputs[i], .result = results[i]};
    }
    out->carries.count = count;
    out->carries.result_count = sip->results.leaf_count;
    out->is_found = true;
    return ST_OK;
}

/* The sizes of a static cache are in the description of its class, a JSON text within this text. 0:
 * there is none, or there are several, as of layers with windows. */
static int64_t find_rows(const char *text)
{
    static const char key[] = "max_cache_len\\\": ";
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
        status = pair(&sip, out, err);
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
    const struct cJSON *in = metadata ? document_find(metadata, "in_spec") : NULL;
    const struct cJSON *results = metadata ? document_find(metadata, "out_spec") : NULL;
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

static bool is_object(const struct cJSON *value)
{
    return value && document_type(value) == JSON_OBJECT;
}

static enum status read_components(const struct document *document, const char *name,
                                   struct exported *out, struct error *err)
{
    const struct cJSON *components =
        is_object(document->root) ? document_find(document->root, "components") : NULL;
    if (!is_object(components)) {
        return ST_OK;
    }
    const struct cJSON *component = document_first(components);
    for (; component && !out->is_found; component = document_next(component)) {
        if (is_object(component)) {
            TRY(read_component(document, component, name, out, err));
        }
    }
    return ST_OK;
}

enum status exported_read(const char *path, struct exported *out, struct error *err)
{
    const struct document_limits limits = {BYTES_MAX, VALUES_MAX};
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    struct document document;
    char file[PATH_MAX];
    out->is_found = false;
    out->carries = (struct rt_carries){.items = out->items};
    int len = snprintf(file, sizeof(file), "%.*s" EXPORT_JSON, folder, path);
    if (len < 0 || len >= PATH_MAX || access(file, F_OK) != 0) {
        return ST_OK;
    }
    enum status status = document_open(file, &limits, &document, err);
    if (status == ST_OK) {
        status = read_components(&document, path + folder, out, err);
        document_close(&document);
    }
    return status == ST_OK ? ST_OK : error_prefix(err, EXPORT_JSON ": ");
}
