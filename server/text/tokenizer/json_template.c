/* SPDX-License-Identifier: MIT */
/* The post-processor of tokenizer.json: the tokens around a text, and between two. */
#include "config.h"

#include <string.h>

#include "server/text/tokenizer/json_reader.h"

static enum status make_items(struct json_reader *in, size_t count, struct template *template,
                              struct template_item **out)
{
    *out = arena_array(&in->tokenizer->arena, count ? count : 1, sizeof(**out));
    if (!*out) {
        return arena_fail(&in->tokenizer->arena, "the post-processor", in->err);
    }
    *template = (struct template){*out, count};
    return ST_OK;
}

static size_t count_of(const struct cJSON *list)
{
    size_t count = 0;
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        count++;
    }
    return count;
}

static enum status read_id(struct json_reader *in, const struct cJSON *value, uint32_t *out)
{
    uint64_t id;
    TRY(document_u64(in->document, value, UINT32_MAX - 1, &id, in->err));
    if (tokenizer_text(in->tokenizer, (uint32_t)id).len == 0) {
        return document_fail(in->document, value, in->err, ST_CORRUPT,
                             "there is no token with id %u", (unsigned)id);
    }
    *out = (uint32_t)id;
    return ST_OK;
}

/* The ids of a special token, from the member "special_tokens". */
static enum status read_special(struct json_reader *in, const struct cJSON *template,
                                const struct cJSON *piece, struct template_item *out)
{
    const struct cJSON *all = json_reader_find(in, template, "special_tokens");
    const struct cJSON *name = json_reader_find(in, piece, "id");
    const char *text;
    if (!name) {
        return document_fail(in->document, piece, in->err, ST_CORRUPT, "expected a member \"id\"");
    }
    TRY(document_text(in->document, name, &text, in->err));
    const struct cJSON *special = all ? json_reader_find(in, all, text) : NULL;
    const struct cJSON *list = special ? json_reader_find(in, special, "ids") : NULL;
    if (!list) {
        return document_fail(in->document, name, in->err, ST_CORRUPT,
                             "'%.40s' is not among the special tokens", text);
    }
    TRY(document_need(in->document, list, JSON_ARRAY, in->err));
    size_t count = count_of(list);
    uint32_t *ids = arena_array(&in->tokenizer->arena, count ? count : 1, sizeof(*ids));
    if (!ids) {
        return arena_fail(&in->tokenizer->arena, "the post-processor", in->err);
    }
    out->kind = TEMPLATE_IDS;
    out->ids = ids;
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        TRY(read_id(in, at, &ids[out->id_count++]));
    }
    return ST_OK;
}

static enum status read_piece(struct json_reader *in, const struct cJSON *template,
                              const struct cJSON *value, struct template_item *out)
{
    static const char *const sequences[] = {"A", "B", NULL};
    const struct cJSON *special = json_reader_find(in, value, "SpecialToken");
    const struct cJSON *piece = special ? special : json_reader_find(in, value, "Sequence");
    uint64_t type_id = 0;
    if (!piece) {
        return document_fail(in->document, value, in->err, ST_UNSUPPORTED,
                             "expected a Sequence or a SpecialToken");
    }
    const struct cJSON *member = json_reader_find(in, piece, "type_id");
    TRY(member ? document_u64(in->document, member, 255, &type_id, in->err) : ST_OK);
    out->type_id = (uint32_t)type_id;
    if (special) {
        return read_special(in, template, piece, out);
    }
    size_t which;
    TRY(json_reader_choice(in, piece, "id", sequences, 0, &which));
    out->kind = which ? TEMPLATE_SECOND : TEMPLATE_FIRST;
    return ST_OK;
}

static enum status read_pieces(struct json_reader *in, const struct cJSON *template,
                               const char *name, struct template *out)
{
    struct template_item *items;
    const struct cJSON *list = json_reader_find(in, template, name);
    if (!list) {
        return ST_OK;
    }
    TRY(document_need(in->document, list, JSON_ARRAY, in->err));
    TRY(make_items(in, count_of(list), out, &items));
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        TRY(read_piece(in, template, at, items++));
    }
    return ST_OK;
}

/* Two templates, one around the other, are in no file that is known. */
static enum status need_first(struct json_reader *in, const struct cJSON *value)
{
    return in->tokenizer->single.count
               ? document_fail(in->document, value, in->err, ST_UNSUPPORTED, "a second template")
               : ST_OK;
}

static enum status read_template(struct json_reader *in, const struct cJSON *value)
{
    TRY(need_first(in, value));
    TRY(read_pieces(in, value, "single", &in->tokenizer->single));
    return read_pieces(in, value, "pair", &in->tokenizer->pair);
}

/* ["[SEP]", 102] */
static enum status read_token(struct json_reader *in, const struct cJSON *value, const char *name,
                              struct template_item *out)
{
    const struct cJSON *member = json_reader_find(in, value, name);
    uint32_t *id = arena_array(&in->tokenizer->arena, 1, sizeof(*id));
    if (!member || document_type(member) != JSON_ARRAY || count_of(member) != 2) {
        return document_fail(in->document, value, in->err, ST_CORRUPT,
                             "expected \"%s\" as a token and its id", name);
    }
    if (!id) {
        return arena_fail(&in->tokenizer->arena, "the post-processor", in->err);
    }
    *out = (struct template_item){.kind = TEMPLATE_IDS, .ids = id, .id_count = 1};
    return read_id(in, document_next(document_first(member)), id);
}

static enum status read_classic(struct json_reader *in, const struct cJSON *value, bool is_roberta)
{
    static const struct template_item first = {.kind = TEMPLATE_FIRST};
    struct template_item *items, cls, sep;
    const uint32_t type_id = is_roberta ? 0 : 1;
    const struct template_item second = {.kind = TEMPLATE_SECOND, .type_id = type_id};
    TRY(need_first(in, value));
    TRY(read_token(in, value, "cls", &cls));
    TRY(read_token(in, value, "sep", &sep));
    TRY(make_items(in, 3, &in->tokenizer->single, &items));
    items[0] = cls;
    items[1] = first;
    items[2] = sep;
    TRY(make_items(in, is_roberta ? 6 : 5, &in->tokenizer->pair, &items));
    *items++ = cls;
    *items++ = first;
    *items++ = sep;
    if (is_roberta) {
        *items++ = sep;
    }
    *items++ = second;
    *items = sep;
    items->type_id = type_id;
    return ST_OK;
}

static enum status read_bert(struct json_reader *in, const struct cJSON *value)
{
    return read_classic(in, value, false);
}

static enum status read_roberta(struct json_reader *in, const struct cJSON *value)
{
    return read_classic(in, value, true);
}

/* Changes offsets, which nobody here asks for. */
static enum status read_byte_level(struct json_reader *in, const struct cJSON *value)
{
    (void)in;
    (void)value;
    return ST_OK;
}

enum status json_reader_post_processor(struct json_reader *in)
{
    static const struct json_kind kinds[] = {
        {"TemplateProcessing", read_template},
        {"BertProcessing", read_bert},
        {"RobertaProcessing", read_roberta},
        {"ByteLevel", read_byte_level},
        {NULL, NULL},
    };
    const struct cJSON *value = json_reader_find(in, in->document->root, "post_processor");
    return value ? json_reader_chain(in, value, "processors", kinds) : ST_OK;
}
