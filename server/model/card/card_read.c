/* SPDX-License-Identifier: MIT */
/* From documents to cards. A member takes the place of the same member of an earlier document. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "server/model/card/card.h"
#include "server/model/card/card_priv.h"
#include "server/model/card/card_steps.h"
#include "server/process/nearest.h"
#include "server/process/setting.h"

#define WORDS_MAX 128

struct reader {
    struct card *card;
    const struct document *in;
    const char *path;
};

/* A value is as it should be, or |err| says what is wrong with it. */
typedef enum status read_f(const struct reader *r, struct card_method *method,
                           const struct cJSON *value, struct error *err);

static enum status exhausted(const struct reader *r, struct error *err)
{
    return arena_fail(&r->card->arena, "the card", err);
}

static struct card_place place_of(const struct reader *r, const struct cJSON *value)
{
    return (struct card_place){.document = r->in, .value = value, .path = r->path};
}

static uint32_t count_items(const struct cJSON *list)
{
    uint32_t count = 0;
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        count++;
    }
    return count;
}

static enum status check_count(const struct reader *r, const struct cJSON *list, uint32_t max,
                               uint32_t *out_count, struct error *err)
{
    *out_count = count_items(list);
    return *out_count <= max
               ? ST_OK
               : document_fail(r->in, list, err, ST_TOO_LARGE,
                               "expected at most %u entries, got %u", max, *out_count);
}

static enum status read_text(const struct reader *r, const struct cJSON *value, const char **out,
                             struct error *err)
{
    const char *text;
    TRY(document_text(r->in, value, &text, err));
    *out = arena_strdup(&r->card->arena, text, strlen(text));
    return *out ? ST_OK : exhausted(r, err);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static enum status read_label_path(const struct reader *r, const struct cJSON *value,
                                   struct card_labels *out, struct error *err)
{
    const char *text;
    TRY(document_text(r->in, value, &text, err));
    if (!*text) {
        return document_fail(r->in, value, err, ST_INVALID, "expected a path, got an empty text");
    }
    const char *path = card_path_beside(r->card, r->path, text);
    if (!path) {
        return exhausted(r, err);
    }
    out->path = path;
    return ST_OK;
}

static enum status read_label_list(const struct reader *r, const struct cJSON *list,
                                   struct card_labels *out, struct error *err)
{
    uint32_t i = 0;
    TRY(check_count(r, list, CARD_LABELS_MAX, &out->count, err));
    struct span *items = arena_array(&r->card->arena, (size_t)out->count + 1, sizeof(*items));
    if (!items) {
        return exhausted(r, err);
    }
    if (out->count == 0) {
        return document_fail(r->in, list, err, ST_INVALID, "expected labels, got an empty list");
    }
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        const char *text;
        TRY(read_text(r, at, &text, err));
        items[i++] = span_str(text);
    }
    out->items = items;
    return ST_OK;
}

static enum status take_labels(const struct reader *r, const struct cJSON *value,
                               struct card_labels *out, struct error *err)
{
    *out = (struct card_labels){.place = place_of(r, value)};
    enum json_type type = document_type(value);
    return type == JSON_ARRAY    ? read_label_list(r, value, out, err)
           : type == JSON_STRING ? read_label_path(r, value, out, err)
                                 : document_fail(r->in, value, err, ST_INVALID,
                                                 "expected a list of labels or the path of a "
                                                 "file, got %s",
                                                 json_type_text(type));
}

static enum status read_labels(const struct reader *r, struct card_method *method,
                               const struct cJSON *value, struct error *err)
{
    (void)method;
    return take_labels(r, value, &r->card->labels, err);
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static enum status read_name(const struct reader *r, const struct cJSON *value, enum rt_side side,
                             const char **out, struct error *err)
{
    TRY(read_text(r, value, out, err));
    return rt_name_is_valid(span_str(*out), side)
               ? ST_OK
               : document_fail(r->in, value, err, ST_INVALID,
                               "expected a name of 1 to %d of A-Z a-z 0-9 _ - . :, and not one "
                               "like %s_0",
                               RT_NAME_BYTES_MAX, side == RT_INPUT ? "input" : "output");
}

static enum status refuse_io_member(const struct reader *r, const struct cJSON *member,
                                    enum rt_side side, struct error *err)
{
    char media[CARD_MEDIA_TEXT_MAX], names[sizeof("name, description, ") + CARD_MEDIA_TEXT_MAX];
    snprintf(names, sizeof(names), "name, description, %s", card_list_media(" or ", false, media));
    return document_refuse_member(
        r->in, member, side == RT_RESULT ? "name, description, labels, steps or answer" : names,
        err);
}

static enum status read_io_member(const struct reader *r, const struct cJSON *member,
                                  enum rt_side side, struct card_io *io, struct error *err)
{
    if (document_is(member, "name")) {
        return read_name(r, member, side, &io->name, err);
    }
    if (document_is(member, "description")) {
        return read_text(r, member, &io->description, err);
    }
    if (document_is(member, "labels") && side == RT_RESULT) {
        return take_labels(r, member, &io->labels, err);
    }
    if (document_is(member, "steps") && side == RT_RESULT) {
        return card_read_steps(r->card, r->in, r->path, member, io, err);
    }
    if (document_is(member, "answer") && side == RT_RESULT) {
        return card_read_answer(r->card, r->in, r->path, member, io, err);
    }
    const struct card_medium *kind =
        side == RT_INPUT ? card_find_medium(document_key(member)) : NULL;
    if (kind) {
        return card_read_media(r->card, r->in, r->path, member, kind, &io->media, err);
    }
    return refuse_io_member(r, member, side, err);
}

/* A name, null, or an object. */
static enum status read_io(const struct reader *r, const struct cJSON *value, enum rt_side side,
                           struct card_io *io, struct error *err)
{
    enum json_type type = document_type(value);
    io->place = place_of(r, value);
    if (type == JSON_NULL) {
        return ST_OK;
    }
    if (type == JSON_STRING) {
        return read_name(r, value, side, &io->name, err);
    }
    if (type != JSON_OBJECT) {
        return document_fail(r->in, value, err, ST_INVALID,
                             "expected a name, an object or null, got %s", json_type_text(type));
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_io_member(r, at, side, io, err));
    }
    return ST_OK;
}

static enum status read_ios(const struct reader *r, const struct cJSON *value, enum rt_side side,
                            struct card_ios *out, struct error *err)
{
    enum json_type type = document_type(value);
    uint32_t i = 0;
    if (type != JSON_ARRAY && type != JSON_OBJECT) {
        return document_fail(r->in, value, err, ST_INVALID, "expected a list or an object, got %s",
                             json_type_text(type));
    }
    *out = (struct card_ios){.place = place_of(r, value)};
    TRY(check_count(r, value, CARD_IOS_MAX, &out->count, err));
    out->items = arena_array(&r->card->arena, (size_t)out->count + 1, sizeof(*out->items));
    if (!out->items) {
        return exhausted(r, err);
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at), i++) {
        const char *key = type == JSON_OBJECT ? document_key(at) : NULL;
        out->items[i].index = i;
        out->items[i].present = key ? arena_strdup(&r->card->arena, key, strlen(key)) : NULL;
        if (key && !out->items[i].present) {
            return exhausted(r, err);
        }
        TRY(read_io(r, at, side, &out->items[i], err));
    }
    return ST_OK;
}

static enum status read_inputs(const struct reader *r, struct card_method *method,
                               const struct cJSON *value, struct error *err)
{
    return read_ios(r, value, RT_INPUT, &method->ios[RT_INPUT], err);
}

static enum status read_outputs(const struct reader *r, struct card_method *method,
                                const struct cJSON *value, struct error *err)
{
    return read_ios(r, value, RT_RESULT, &method->ios[RT_RESULT], err);
}

/* ---- methods --------------------------------------------------------------------------------- */

static enum status read_description(const struct reader *r, struct card_method *method,
                                    const struct cJSON *value, struct error *err)
{
    return read_text(r, value, &method->description, err);
}

static enum status read_call(const struct reader *r, const struct cJSON *value,
                             struct card_warm_up *out, struct error *err)
{
    const struct cJSON *shapes = NULL;
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        shapes = document_is(at, "shapes") ? at : shapes;
        if (!document_is(at, "shapes") && !document_is(at, "args") && !document_is(at, "kwargs")) {
            return document_refuse_member(r->in, at, "shapes, or args and kwargs", err);
        }
    }
    out->is_shapes = shapes != NULL;
    if (shapes && count_items(value) > 1) {
        return document_fail(r->in, value, err, ST_INVALID,
                             "expected shapes or args and kwargs, got both");
    }
    if (shapes) {
        TRY(document_need(r->in, shapes, JSON_OBJECT, err));
    }
    struct span text = document_raw(r->in, shapes ? shapes : value);
    const char *copy = arena_strdup(&r->card->arena, text.ptr, text.len);
    out->text = span_of(copy, text.len);
    out->place = place_of(r, value);
    return copy ? ST_OK : exhausted(r, err);
}

static enum status read_warm_up(const struct reader *r, struct card_method *method,
                                const struct cJSON *value, struct error *err)
{
    struct card_warm_ups *out = &method->warm_ups;
    uint32_t i = 0;
    TRY(document_need(r->in, value, JSON_ARRAY, err));
    *out = (struct card_warm_ups){.place = place_of(r, value)};
    TRY(check_count(r, value, CARD_WARM_UPS_MAX, &out->count, err));
    out->items = arena_array(&r->card->arena, (size_t)out->count + 1, sizeof(*out->items));
    if (!out->items) {
        return exhausted(r, err);
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_call(r, at, &out->items[i++], err));
    }
    return ST_OK;
}

static enum status read_pooling(const struct reader *r, const struct cJSON *value,
                                enum card_pooling *out, struct error *err)
{
    static const char *const names[] = {NULL, "mean", "cls", "last", "splade", "none"};
    TABLE_ENDS_WITH(names, CARD_NONE);
    const char *text;
    TRY(document_text(r->in, value, &text, err));
    for (unsigned i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum card_pooling)i;
            return ST_OK;
        }
    }
    return document_fail(r->in, value, err, ST_INVALID, "expected mean, cls, last, splade or none");
}

static enum status read_embedding_member(const struct reader *r, const struct cJSON *value,
                                         struct card_embedding *out, struct error *err)
{
    if (document_is(value, "pooling")) {
        return read_pooling(r, value, &out->pooling, err);
    }
    if (document_is(value, "normalize")) {
        bool normalizes;
        TRY(document_bool(r->in, value, &normalizes, err));
        out->is_not_normalized = !normalizes;
        return ST_OK;
    }
    if (document_is(value, "max_tokens")) {
        TRY(document_u64(r->in, value, CARD_TOKENS_MAX, &out->max_tokens, err));
        return out->max_tokens > 0
                   ? ST_OK
                   : document_fail(r->in, value, err, ST_INVALID, "expected at least 1");
    }
    if (document_is(value, "prefix")) {
        return read_text(r, value, &out->prefix, err);
    }
    return document_refuse_member(r->in, value, "pooling, normalize, max_tokens or prefix", err);
}

static enum status read_embedding(const struct reader *r, struct card_method *method,
                                  const struct cJSON *value, struct error *err)
{
    method->embedding = (struct card_embedding){.is_said = true, .place = place_of(r, value)};
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_embedding_member(r, at, &method->embedding, err));
    }
    return ST_OK;
}

static enum status read_generation(const struct reader *r, struct card_method *method,
                                   const struct cJSON *value, struct error *err)
{
    return card_read_generation(r->card, r->in, value, &method->generation, err);
}

static enum status read_cache(const struct reader *r, struct card_method *method,
                              const struct cJSON *value, struct error *err)
{
    const char *text;
    (void)method;
    TRY(document_text(r->in, value, &text, err));
    r->card->has_int8_cache = strcmp(text, "int8") == 0;
    return r->card->has_int8_cache || strcmp(text, "float") == 0
               ? ST_OK
               : document_fail(r->in, value, err, ST_INVALID, "expected float or int8, got '%.64s'",
                               text);
}

static enum status add_method(const struct reader *r, const struct cJSON *value,
                              struct card_method **out, struct error *err)
{
    struct card *card = r->card;
    const char *name = document_key(value);
    for (uint32_t i = 1; i < card->method_count; i++) {
        if (strcmp(card->methods[i].name, name) == 0) {
            *out = &card->methods[i];
            (*out)->place = place_of(r, value);
            return ST_OK;
        }
    }
    if (card->method_count > CARD_METHODS_MAX) {
        return document_fail(r->in, value, err, ST_TOO_LARGE, "expected at most %d methods",
                             CARD_METHODS_MAX);
    }
    *out = &card->methods[card->method_count];
    **out = (struct card_method){.name = arena_strdup(&card->arena, name, strlen(name)),
                                 .place = place_of(r, value)};
    if (!(*out)->name) {
        return exhausted(r, err);
    }
    card->method_count++;
    return ST_OK;
}

static enum status read_methods(const struct reader *r, struct card_method *method,
                                const struct cJSON *value, struct error *err);

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    read_f *read;
    bool is_of_method;
} members[] = {
#define METHOD_MEMBER(name, ...) {#name, read_##name, true},
#define MEMBER(name, ...) {#name, read_##name, false},
#include "server/model/card/card.def"
};
#define MEMBER_COUNT (sizeof(members) / sizeof(members[0]))

/* Words that other servers have here. */
static const struct {
    const char *name, *why;
} refused[] = {
    {"device", "a model has no device of its own: all models of a daemon run on that of --device"},
    {"instances", "there are no instances: all calls share one copy of the weights, and "
                  "running_count_max limits how many run at once"},
};

static enum status refuse_unknown(const struct reader *r, const struct cJSON *member,
                                  bool is_of_method, struct error *err)
{
    const char *words[WORDS_MAX];
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (document_is(member, refused[i].name)) {
            return document_fail(r->in, member, err, ST_INVALID, "%s", refused[i].why);
        }
    }
    for (size_t i = 0; i < MEMBER_COUNT && count < WORDS_MAX; i++) {
        if (members[i].is_of_method || !is_of_method) {
            words[count++] = members[i].name;
        }
    }
    for (uint32_t i = 0; i < setting_count && !is_of_method && count < WORDS_MAX; i++) {
        if (setting_is_of_card(&settings[i])) {
            words[count++] = settings[i].member;
        }
    }
    const char *near = nearest_word(document_key(member), words, count);
    return document_fail(r->in, member, err, ST_INVALID,
                         "expected a member of %s, got an unknown one%s%s%s",
                         is_of_method ? "a method" : "a card", near ? "; did you mean '" : "",
                         near ? near : "", near ? "'?" : "");
}

static enum status read_methods(const struct reader *r, struct card_method *method,
                                const struct cJSON *value, struct error *err)
{
    (void)method;
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        struct card_method *added = NULL;
        TRY(document_need(r->in, at, JSON_OBJECT, err));
        TRY(add_method(r, at, &added, err));
        for (const struct cJSON *member = document_first(at); member;
             member = document_next(member)) {
            size_t i = 0;
            while (i < MEMBER_COUNT &&
                   !(members[i].is_of_method && document_is(member, members[i].name))) {
                i++;
            }
            TRY(i < MEMBER_COUNT ? members[i].read(r, added, member, err)
                                 : refuse_unknown(r, member, true, err));
        }
    }
    return ST_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static enum status read_param(const struct reader *r, const struct setting *setting,
                              const struct cJSON *value, struct error *err)
{
    struct card *card = r->card;
    char room[SETTING_NUMBER_BYTES];
    const char *text;
    uint64_t number;
    struct error why;
    if (!setting_is_of_card(setting)) {
        return document_fail(r->in, value, err, ST_INVALID,
                             "a card is about one version; pted.json can say this of the model");
    }
    TRY(setting_read(setting, r->in, value, room, &text, err));
    if (setting_parse(setting, text, &number, &why) != ST_OK) {
        return document_fail(r->in, value, err, ST_INVALID, "%s", why.text);
    }
    if (!card->params) {
        card->params = arena_array(&card->arena, setting_count, sizeof(*card->params));
    }
    if (!card->params) {
        return exhausted(r, err);
    }
    must(card->param_count < setting_count); /* keys do not repeat */
    card->params[card->param_count++] =
        (struct card_param){.offset = setting->offset, .value = number};
    return ST_OK;
}

/* ---- documents ------------------------------------------------------------------------------- */

static enum status read_member(const struct reader *r, const struct cJSON *member,
                               struct error *err)
{
    const struct setting *setting = setting_find_of_model(document_key(member));
    const char *ignored;
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (document_is(member, members[i].name)) {
            return members[i].read(r, &r->card->methods[0], member, err);
        }
    }
    if (document_is(member, "$schema")) {
        return document_text(r->in, member, &ignored, err);
    }
    return setting ? read_param(r, setting, member, err) : refuse_unknown(r, member, false, err);
}

static enum status read_object(const struct reader *r, const struct cJSON *object, bool is_file,
                               struct error *err)
{
    TRY(document_need(r->in, object, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(object); at; at = document_next(at)) {
        if (is_file || card_has_member(at)) {
            TRY(read_member(r, at, err));
        }
    }
    return ST_OK;
}

/* Of the members that are derived. */
static bool has_said(const struct card *card, const struct cJSON *member)
{
    const struct card_method *method = &card->methods[0];
    return document_is(member, "description")  ? method->description != NULL
           : document_is(member, "generation") ? false /* its members count one by one */
           : document_is(member, "inputs")     ? method->ios[RT_INPUT].place.value != NULL
                                               : method->ios[RT_RESULT].place.value != NULL;
}

enum status card_read_derived(struct card *card, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    const struct reader r = {.card = card, .in = &card->derived, .path = "the derived card"};
    TRY(document_need(r.in, r.in->root, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(r.in->root); at; at = document_next(at)) {
        if (!has_said(card, at) && read_member(&r, at, err) != ST_OK) {
            return card_put_in_front(r.path, err);
        }
    }
    return ST_OK;
}

enum status card_read_file(struct card *card, const char *path, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    must(!card->own.root && !card->path && !card->is_settled);
    const struct document_limits limits = {.bytes_max = CARD_BYTES_MAX,
                                           .values_max = CARD_VALUES_MAX};
    card->path = arena_strdup(&card->arena, path, strlen(path));
    if (!card->path) {
        return arena_fail(&card->arena, "the card", err);
    }
    const struct reader r = {.card = card, .in = &card->own, .path = card->path};
    enum status status = document_open(path, &limits, &card->own, err);
    if (status == ST_OK) {
        status = read_object(&r, card->own.root, true, err);
    }
    if (status != ST_OK) {
        status = card_put_in_front(path, err);
    }
    return status == ST_NOT_FOUND && !card->own.root ? error_prefix(err, "card ") : status;
}

enum status card_read_members(struct card *card, const struct document *document,
                              const struct cJSON *object, const char *path, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    must(!card->members && !card->is_settled);
    struct span text = document_raw(document, object);
    const struct reader r = {.card = card, .in = document, .path = path};
    card->members = arena_strdup(&card->arena, text.ptr, text.len);
    if (!card->members) {
        return arena_fail(&card->arena, "the card", err);
    }
    return read_object(&r, object, false, err) == ST_OK ? ST_OK : card_put_in_front(path, err);
}

/* "labels" with a path is a setting of the model, like --labels. */
bool card_has_member(const struct cJSON *member)
{
    if (document_is(member, "labels")) {
        return document_type(member) != JSON_STRING;
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (document_is(member, members[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (document_is(member, refused[i].name)) {
            return true;
        }
    }
    return false;
}

enum status card_verify_members(const struct document *document, const struct cJSON *object,
                                struct error *err)
{
    struct card *card = card_new();
    if (!card) {
        return error_no_memory(err, "the card");
    }
    const struct reader r = {.card = card, .in = document, .path = ""};
    enum status status = read_object(&r, object, false, err);
    card_free(card);
    return status;
}
