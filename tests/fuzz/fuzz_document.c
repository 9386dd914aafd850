/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a document. An accepted document has the values that the strict reader of requests
 * finds in it, without its comments. If only the strict reader accepts it, the reason must be one
 * of the rules of documents: no NUL, no words for numbers, no long numbers, and the limits.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/process/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct document_limits limits = {.bytes_max = 1 << 20, .values_max = 4096};

/* Checks the next value; the caller reads its members and elements. */
static void check_value(const struct document *document, const struct cJSON *value, struct json *in)
{
    struct error err = {0};
    struct json_string string;
    const char *text;
    uint64_t want, got;
    uint8_t bytes[1 << 13];
    must(json_peek(in) == document_type(value));
    struct json here = *in;
    switch (document_type(value)) {
    case JSON_STRING:
        must(json_read_string(in, &string, &err) == ST_OK);
        must(document_text(document, value, &text, &err) == ST_OK);
        must(strlen(text) == string.bytes);
        if (string.bytes <= sizeof(bytes)) {
            json_string_decode(&string, bytes);
            must(memcmp(bytes, text, string.bytes) == 0);
        }
        break;
    case JSON_NUMBER: {
        bool is_whole = json_read_u64(&here, &want, &err) == ST_OK;
        must(is_whole == (document_u64(document, value, UINT64_MAX, &got, &err) == ST_OK));
        must(!is_whole || want == got);
        must(json_skip(in, &err) == ST_OK);
        break;
    }
    case JSON_OBJECT:
        must(json_object(in, &err) == ST_OK);
        break;
    case JSON_ARRAY:
        must(json_array(in, &err) == ST_OK);
        break;
    default:
        must(json_skip(in, &err) == ST_OK);
    }
    must(document_fail(document, value, &err, ST_INVALID, "x") == ST_INVALID && err.text[0]);
}

static void check_key(const struct cJSON *member, const struct json_string *key)
{
    uint8_t bytes[1 << 13];
    must(strlen(document_key(member)) == key->bytes);
    if (key->bytes <= sizeof(bytes)) {
        json_string_decode(key, bytes);
        must(memcmp(bytes, document_key(member), key->bytes) == 0);
    }
}

/* Reads with both readers at the same time. */
static void compare(const struct document *document)
{
    static struct json in;
    const struct cJSON *next[DOCUMENT_DEPTH_MAX + 1];
    struct error err = {0};
    struct json_string key;
    json_init(&in, span_of(document->text.ptr, document->text.len - 1));
    check_value(document, document->root, &in);
    next[in.depth] = document_first(document->root);
    while (in.depth > 0) {
        unsigned depth = in.depth;
        bool is_object = in.levels[depth - 1].is_object;
        if ((is_object ? json_member(&in, &key, &err) : json_element(&in, &err)) != ST_OK) {
            must(err.code == ST_TOO_LARGE); /* more keys than that reader remembers */
            return;
        }
        const struct cJSON *value = next[depth];
        must((value == NULL) == in.is_closed);
        if (!value) {
            continue;
        }
        if (is_object) {
            check_key(value, &key);
        }
        next[depth] = document_next(value);
        check_value(document, value, &in);
        if (in.depth > depth) {
            next[in.depth] = document_first(value);
        }
    }
    must(json_end(&in, &err) == ST_OK);
}

static bool is_json(struct span text)
{
    static struct json in;
    struct error err;
    json_init(&in, text);
    return json_skip(&in, &err) == ST_OK && json_end(&in, &err) == ST_OK;
}

static bool is_only_documents_affair(const struct error *err)
{
    return err->code == ST_TOO_LARGE || strstr(err->text, "NUL") || strstr(err->text, "got 'N'") ||
           strstr(err->text, "got 'I'") || strstr(err->text, "malformed number");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct document document;
    struct error err = {0};
    enum status status = document_parse(span_of(data, size), &limits, &document, &err);
    if (status == ST_OK) {
        compare(&document);
        document_close(&document);
        return 0;
    }
    must(status == err.code && err.text[0] != '\0' && status != ST_INTERNAL);
    must(!is_json(span_of(data, size)) || is_only_documents_affair(&err));
    return 0;
}
