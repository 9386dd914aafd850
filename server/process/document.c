/* SPDX-License-Identifier: MIT */
/*
 * The tree of a document. cJSON's member valueint, which nobody else needs, says where in the text
 * a value begins: numbers are read from there, exactly, and errors say the place.
 */
#include "config.h"

#include "server/process/document.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/check.h"
#include "protocol/number.h"
#include "server/process/document_priv.h"
#include "server/process/file.h"

#define PATH_BYTES_MAX 160
#define KEY_BYTES_SHOWN 32
#define NUMBER_BYTES_SHOWN 24

/* ---- walking --------------------------------------------------------------------------------- */

/* From value to value in the order of the text. */
struct walk {
    struct cJSON *path[DOCUMENT_DEPTH_MAX + 1]; /* from the root to the current value */
    uint32_t depth;                             /* of the current value; 0: the root */
};

static bool walk_next(struct walk *walk)
{
    struct cJSON *here = walk->path[walk->depth];
    if (here->child) {
        must(walk->depth < DOCUMENT_DEPTH_MAX);
        walk->path[++walk->depth] = here->child;
        return true;
    }
    while (walk->depth > 0 && !walk->path[walk->depth]->next) {
        walk->depth--;
    }
    if (walk->depth == 0) {
        return false;
    }
    walk->path[walk->depth] = walk->path[walk->depth]->next;
    return true;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool is_plain_key(const char *key)
{
    return *key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_-")];
}

/* As .key, or as ["key"] if it could be taken for something else. */
static void print_key(struct buf *out, const char *key, bool is_first)
{
    size_t len = strnlen(key, KEY_BYTES_SHOWN);
    if (is_plain_key(key)) {
        buf_printf(out, "%s%.*s", is_first ? "" : ".", (int)len, key);
        return;
    }
    buf_add_char(out, '[');
    json_print_string(out, span_of(key, len));
    buf_add_char(out, ']');
}

static uint32_t index_of(const struct cJSON *list, const struct cJSON *item)
{
    uint32_t index = 0;
    for (const struct cJSON *at = list->child; at != item; at = at->next) {
        index++;
    }
    return index;
}

static void print_path(const struct walk *walk, struct buf *out)
{
    for (uint32_t i = 1; i <= walk->depth; i++) {
        const struct cJSON *list = walk->path[i - 1], *item = walk->path[i];
        if (cJSON_IsObject(list)) {
            print_key(out, item->string, i == 1);
        } else {
            buf_printf(out, "[%u]", index_of(list, item));
        }
    }
}

/* A tree does not know its way up: the way to |value| is looked for from the root. */
static void find_path(const struct document *document, const struct cJSON *value, struct buf *out)
{
    struct walk walk = {.path = {document->root}};
    while (walk.path[walk.depth] != value) {
        bool is_found = walk_next(&walk);
        must(is_found);
    }
    print_path(&walk, out);
}

enum status document_fail(const struct document *document, const struct cJSON *value,
                          struct error *err, enum status code, const char *fmt, ...)
{
    char what[ERROR_TEXT_MAX], path[PATH_BYTES_MAX + 1];
    struct buf out;
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    buf_init(&out, PATH_BYTES_MAX);
    find_path(document, value, &out);
    snprintf(path, sizeof(path), "%.*s", SPAN_FMT(buf_span(&out)));
    buf_fini(&out);
    return document_fail_at(buf_span(&document->text), (size_t)value->valueint, path, what, code,
                            err);
}

void document_place(const struct document *document, const struct cJSON *value, struct error *err)
{
    char what[ERROR_TEXT_MAX];
    snprintf(what, sizeof(what), "%s", err->text);
    document_fail_at(buf_span(&document->text), (size_t)value->valueint, "", what, err->code, err);
}

enum status document_refuse_member(const struct document *document, const struct cJSON *member,
                                   const char *expected, struct error *err)
{
    return document_fail(document, member, err, ST_INVALID, "unknown member, expected %s",
                         expected);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static int compare_members(const void *left, const void *right)
{
    const struct cJSON *a = *(const struct cJSON *const *)left;
    const struct cJSON *b = *(const struct cJSON *const *)right;
    int order = strcmp(a->string, b->string);
    return order ? order : (a->valueint > b->valueint) - (a->valueint < b->valueint);
}

/* Sorts, so that a hostile object of a million members takes no time to speak of. */
static enum status check_members(const struct document *document, const struct cJSON *object,
                                 struct error *err)
{
    size_t count = 0;
    for (const struct cJSON *member = object->child; member; member = member->next) {
        count++;
    }
    const struct cJSON **sorted = calloc(count + 1, sizeof(*sorted));
    if (!sorted) {
        return error_no_memory(err, "the document");
    }
    count = 0;
    for (const struct cJSON *member = object->child; member; member = member->next) {
        sorted[count++] = member;
    }
    qsort(sorted, count, sizeof(*sorted), compare_members);
    enum status status = ST_OK;
    for (size_t i = 1; i < count && status == ST_OK; i++) {
        if (strcmp(sorted[i - 1]->string, sorted[i]->string) == 0) {
            status = document_fail(document, sorted[i], err, ST_INVALID,
                                   "the key repeats in its object");
        }
    }
    free(sorted);
    return status;
}

/* Tells each value its place; false: cJSON saw other values than the scan. */
static bool set_places(struct document *document, const struct buf *places)
{
    struct walk walk = {.path = {document->root}};
    size_t offset = 0;
    do {
        uint32_t place;
        if (!in_range(offset, sizeof(place), places->len)) {
            return false;
        }
        memcpy(&place, places->ptr + offset, sizeof(place));
        walk.path[walk.depth]->valueint = (int)place;
        offset += sizeof(place);
    } while (walk_next(&walk));
    return offset == places->len;
}

static enum status check_objects(const struct document *document, struct error *err)
{
    struct walk walk = {.path = {document->root}};
    do {
        if (cJSON_IsObject(walk.path[walk.depth])) {
            TRY(check_members(document, walk.path[walk.depth], err));
        }
    } while (walk_next(&walk));
    return ST_OK;
}

/* The text is a document, so a failure of cJSON is lack of memory. */
static enum status build(struct document *document, const struct buf *places, struct error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of cJSON's variable for errors */
    const char *end;
    pthread_mutex_lock(&lock);
    document->root =
        cJSON_ParseWithLengthOpts((const char *)document->text.ptr, document->text.len, &end, true);
    pthread_mutex_unlock(&lock);
    if (!document->root) {
        return error_no_memory(err, "the document");
    }
    if (!set_places(document, places)) {
        return error_set(err, ST_INTERNAL, "cJSON %s reads the document differently",
                         cJSON_Version());
    }
    return check_objects(document, err);
}

static enum status scan_and_build(struct document *document, uint32_t values_max, struct error *err)
{
    struct buf places;
    buf_init(&places, (size_t)values_max * sizeof(uint32_t));
    enum status status = document_scan(&document->text, values_max, &places, err);
    if (status == ST_OK) {
        status = buf_failed(&places) ? error_no_memory(err, "the document")
                                     : build(document, &places, err);
    }
    buf_fini(&places);
    return status;
}

/* Makes a document of document->text, or closes it. */
static enum status make(struct document *document, const struct document_limits *limits,
                        struct error *err)
{
    document->text.max_bytes = limits->bytes_max + 1;
    buf_add_char(&document->text, '\0');
    enum status status = buf_failed(&document->text)
                             ? error_no_memory(err, "the document")
                             : scan_and_build(document, limits->values_max, err);
    if (status != ST_OK) {
        document_close(document);
    }
    return status;
}

enum status document_open(const char *path, const struct document_limits *limits,
                          struct document *out, struct error *err)
{
    *out = (struct document){.root = NULL};
    buf_init(&out->text, limits->bytes_max);
    enum status status = file_read(path, &out->text, err);
    if (status != ST_OK) {
        document_close(out);
        return status;
    }
    return make(out, limits, err);
}

enum status document_parse(struct span text, const struct document_limits *limits,
                           struct document *out, struct error *err)
{
    *out = (struct document){.root = NULL};
    if (text.len > limits->bytes_max) {
        return error_set(err, ST_TOO_LARGE, "more than %zu bytes", limits->bytes_max);
    }
    buf_init(&out->text, limits->bytes_max);
    buf_add(&out->text, text.ptr, text.len);
    return make(out, limits, err);
}

void document_close(struct document *document)
{
    cJSON_Delete(document->root);
    document->root = NULL;
    buf_fini(&document->text);
}

/* ---- values ---------------------------------------------------------------------------------- */

enum json_type document_type(const struct cJSON *value)
{
    switch (value->type & 0xff) {
    case cJSON_Object:
        return JSON_OBJECT;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_NULL:
        return JSON_NULL;
    default:
        return JSON_BOOL;
    }
}

const struct cJSON *document_first(const struct cJSON *value)
{
    return value->child;
}

const struct cJSON *document_next(const struct cJSON *value)
{
    return value->next;
}

const struct cJSON *document_find(const struct cJSON *value, const char *key)
{
    bool is_object = value && document_type(value) == JSON_OBJECT;
    const struct cJSON *member = is_object ? document_first(value) : NULL;
    while (member && strcmp(document_key(member), key) != 0) {
        member = member->next;
    }
    return member;
}

const char *document_key(const struct cJSON *member)
{
    must(member->string);
    return member->string;
}

bool document_is(const struct cJSON *member, const char *key)
{
    return strcmp(document_key(member), key) == 0;
}

/* Where the string at |at| ends. */
static const uint8_t *end_of_string(const uint8_t *at)
{
    for (at++; *at != '"'; at++) {
        at += *at == '\\';
    }
    return at + 1;
}

/* The text has been scanned, so brackets match and strings end. */
struct span document_raw(const struct document *document, const struct cJSON *value)
{
    must(cJSON_IsObject(value) || cJSON_IsArray(value));
    const uint8_t *first = document->text.ptr + value->valueint, *at = first;
    size_t depth = 0;
    do {
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at = *at == '"' ? end_of_string(at) : at + 1;
    } while (depth > 0);
    return span_of(first, (size_t)(at - first));
}

enum status document_need(const struct document *document, const struct cJSON *value,
                          enum json_type type, struct error *err)
{
    enum json_type got = document_type(value);
    return got == type ? ST_OK
                       : document_fail(document, value, err, ST_INVALID, "expected %s, got %s",
                                       json_type_text(type), json_type_text(got));
}

enum status document_text(const struct document *document, const struct cJSON *value,
                          const char **out, struct error *err)
{
    TRY(document_need(document, value, JSON_STRING, err));
    *out = value->valuestring;
    return ST_OK;
}

enum status document_text_filled(const struct document *document, const struct cJSON *value,
                                 const char **out, struct error *err)
{
    TRY(document_text(document, value, out, err));
    return **out ? ST_OK
                 : document_fail(document, value, err, ST_INVALID,
                                 "expected a text, got an empty one");
}

enum status document_bool(const struct document *document, const struct cJSON *value, bool *out,
                          struct error *err)
{
    TRY(document_need(document, value, JSON_BOOL, err));
    *out = cJSON_IsTrue(value);
    return ST_OK;
}

/* As it stands in the text, which is scanned: the end of the token is where no number goes on. */
static int number_bytes(const uint8_t *at)
{
    size_t len = strspn((const char *)at, "+-.0123456789eE");
    return (int)(len < NUMBER_BYTES_SHOWN ? len : NUMBER_BYTES_SHOWN);
}

enum status document_u64_from(const struct document *document, const struct cJSON *value,
                              uint64_t min, uint64_t max, uint64_t *out, struct error *err)
{
    enum json_type got = document_type(value);
    if (got != JSON_NUMBER) {
        return document_fail(document, value, err, ST_INVALID, "expected a whole number, got %s",
                             json_type_text(got));
    }
    const uint8_t *first = document->text.ptr + value->valueint, *at = first;
    const uint8_t *end = document->text.ptr + document->text.len;
    uint64_t number;
    if (number_parse_u64(&at, end, &number) != NUMBER_OK || number < min || number > max) {
        return document_fail(document, value, err, ST_INVALID,
                             "expected a whole number from %" PRIu64 " to %" PRIu64 ", got %.*s",
                             min, max, number_bytes(first), (const char *)first);
    }
    *out = number;
    return ST_OK;
}

enum status document_u64(const struct document *document, const struct cJSON *value, uint64_t max,
                         uint64_t *out, struct error *err)
{
    return document_u64_from(document, value, 0, max, out, err);
}

bool document_token_ids(const struct document *document, const struct cJSON *value,
                        uint32_t *out_ids, uint32_t max, uint32_t *out_count)
{
    bool is_list = document_type(value) == JSON_ARRAY;
    const struct cJSON *at = is_list ? document_first(value) : value;
    for (*out_count = 0; at; at = is_list ? document_next(at) : NULL) {
        struct error ignored;
        uint64_t id;
        if (*out_count == max ||
            document_u64(document, at, DOCUMENT_TOKEN_ID_MAX, &id, &ignored) != ST_OK) {
            return false;
        }
        out_ids[(*out_count)++] = (uint32_t)id;
    }
    return true;
}

enum status document_f64(const struct document *document, const struct cJSON *value, double *out,
                         struct error *err)
{
    TRY(document_need(document, value, JSON_NUMBER, err));
    const uint8_t *first = document->text.ptr + value->valueint, *at = first;
    const uint8_t *end = document->text.ptr + document->text.len;
    double number;
    if (number_parse_f64(&at, end, &number) != NUMBER_OK || !isfinite(number)) {
        return document_fail(document, value, err, ST_INVALID, "expected a number, got %.*s",
                             number_bytes(first), (const char *)first);
    }
    *out = number;
    return ST_OK;
}

enum status document_i64(const struct document *document, const struct cJSON *value, int64_t min,
                         int64_t max, int64_t *out, struct error *err)
{
    TRY(document_need(document, value, JSON_NUMBER, err));
    const uint8_t *first = document->text.ptr + value->valueint, *at = first;
    const uint8_t *end = document->text.ptr + document->text.len;
    int64_t number;
    if (number_parse_i64(&at, end, &number) != NUMBER_OK || number < min || number > max) {
        return document_fail(document, value, err, ST_INVALID,
                             "expected a whole number from %" PRId64 " to %" PRId64 ", got %.*s",
                             min, max, number_bytes(first), (const char *)first);
    }
    *out = number;
    return ST_OK;
}
