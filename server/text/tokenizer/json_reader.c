/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/json_reader.h"

#include <string.h>

const struct cJSON *json_reader_find(struct json_reader *in, const struct cJSON *object,
                                     const char *name)
{
    (void)in;
    if (document_type(object) != JSON_OBJECT) {
        return NULL;
    }
    for (const struct cJSON *member = document_first(object); member;
         member = document_next(member)) {
        if (document_is(member, name)) {
            return document_type(member) == JSON_NULL ? NULL : member;
        }
    }
    return NULL;
}

enum status json_reader_span(struct json_reader *in, const struct cJSON *value, struct span *out)
{
    const char *text;
    TRY(document_text(in->document, value, &text, in->err));
    return tokenizer_copy(in->tokenizer, span_str(text), out, in->err);
}

static enum status need_member(struct json_reader *in, const struct cJSON *object, const char *name,
                               const struct cJSON **out)
{
    *out = json_reader_find(in, object, name);
    return *out ? ST_OK
                : document_fail(in->document, object, in->err, ST_CORRUPT,
                                "expected a member \"%s\"", name);
}

enum status json_reader_text(struct json_reader *in, const struct cJSON *object, const char *name,
                             const char *otherwise, struct span *out)
{
    const struct cJSON *member = json_reader_find(in, object, name);
    if (!member && otherwise) {
        *out = span_str(otherwise); /* a literal */
        return ST_OK;
    }
    TRY(need_member(in, object, name, &member));
    return json_reader_span(in, member, out);
}

enum status json_reader_bool(struct json_reader *in, const struct cJSON *object, const char *name,
                             bool otherwise, bool *out)
{
    const struct cJSON *member = json_reader_find(in, object, name);
    *out = otherwise;
    return member ? document_bool(in->document, member, out, in->err) : ST_OK;
}

enum status json_reader_choice(struct json_reader *in, const struct cJSON *object, const char *name,
                               const char *const *names, size_t otherwise, size_t *out)
{
    const struct cJSON *member = json_reader_find(in, object, name);
    const char *text;
    *out = otherwise;
    if (!member) {
        return ST_OK;
    }
    TRY(document_text(in->document, member, &text, in->err));
    for (size_t i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return ST_OK;
        }
    }
    return document_fail(in->document, member, in->err, ST_UNSUPPORTED, "'%.40s' is not supported",
                         text);
}

enum status json_reader_pattern(struct json_reader *in, const struct cJSON *object,
                                struct pattern **out_pattern, struct span *out_literal)
{
    const struct cJSON *member, *text;
    const char *source;
    TRY(need_member(in, object, "pattern", &member));
    if (document_type(member) == JSON_STRING) {
        return json_reader_span(in, member, out_literal);
    }
    text = json_reader_find(in, member, "String");
    if (text) {
        return json_reader_span(in, text, out_literal);
    }
    TRY(need_member(in, member, "Regex", &text));
    TRY(document_text(in->document, text, &source, in->err));
    enum status status = pattern_new(span_str(source), PATTERN_LINES, out_pattern, in->err);
    return status == ST_OK ? ST_OK
                           : document_fail(in->document, text, in->err, status, "%s",
                                           in->err ? in->err->text : "");
}

enum status json_reader_chain(struct json_reader *in, const struct cJSON *value, const char *list,
                              const struct json_kind *kinds)
{
    const struct cJSON *member;
    const char *type;
    TRY(document_need(in->document, value, JSON_OBJECT, in->err));
    TRY(need_member(in, value, "type", &member));
    TRY(document_text(in->document, member, &type, in->err));
    if (strcmp(type, "Sequence") == 0) {
        TRY(need_member(in, value, list, &member));
        TRY(document_need(in->document, member, JSON_ARRAY, in->err));
        for (member = document_first(member); member; member = document_next(member)) {
            TRY(json_reader_chain(in, member, list, kinds));
        }
        return ST_OK;
    }
    for (; kinds->type; kinds++) {
        if (strcmp(kinds->type, type) == 0) {
            return kinds->read(in, value);
        }
    }
    return document_fail(in->document, member, in->err, ST_UNSUPPORTED, "'%.40s' is not supported",
                         type);
}
