/* SPDX-License-Identifier: MIT */
/* The document: from members to settings. A problem is reported with its place, and reading goes
 * on. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "server/daemon/conf/conf_priv.h"
#include "server/http/address.h"
#include "server/http/proxies.h"
#include "server/model/card/card.h"
#include "server/model/pipelines.h"
#include "server/process/fetch.h"
#include "server/process/model_name.h"
#include "server/process/nearest.h"
#include "server/process/setting.h"

#define WORDS_MAX 128
#define LABEL_BYTES_MAX 4400 /* a path, and a place */

struct reader {
    const struct document *in;
    struct options *options;
    struct arena *arena;
    struct conf_report *report;
};

/* ---- problems -------------------------------------------------------------------------------- */

static void refuse(const struct reader *r, const struct error *err)
{
    conf_refuse(r->options->config_file, err, r->report);
}

__attribute__((format(printf, 3, 4))) static void
complain(const struct reader *r, const struct cJSON *value, const char *fmt, ...)
{
    struct error what, err;
    va_list args;
    va_start(args, fmt);
    error_setv(&what, ST_INVALID, fmt, args);
    va_end(args);
    document_fail(r->in, value, &err, ST_INVALID, "%s", what.text);
    refuse(r, &err);
}

/* A member that is none of the |words|. */
static void refuse_member(const struct reader *r, const struct cJSON *member, const char *kind,
                          const char *const *words, uint32_t count)
{
    const char *near = nearest_word(document_key(member), words, count);
    complain(r, member, "expected %s, got an unknown member%s%s%s", kind,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The path as it is from here: relative ones are relative to the document's folder. */
static enum status place_path(const struct reader *r, const char **path, struct error *err)
{
    const char *document = r->options->config_file, *slash = strrchr(document, '/');
    if (**path == '/' || !slash || fetch_is_url(*path)) {
        return ST_OK;
    }
    size_t folder = (size_t)(slash + 1 - document), len = strlen(*path);
    char *placed = arena_alloc(r->arena, folder + len + 1);
    if (!placed) {
        return arena_fail(r->arena, "the paths of the document", err);
    }
    memcpy(placed, document, folder);
    memcpy(placed + folder, *path, len);
    *path = placed;
    return ST_OK;
}

static enum status read_text(const struct reader *r, const struct cJSON *value, bool is_path,
                             const char **out, struct error *err)
{
    TRY(document_text_filled(r->in, value, out, err));
    return is_path ? place_path(r, out, err) : ST_OK;
}

/* The value as the command line has it, maybe in |room|. */
static enum status read_value(const struct reader *r, const struct setting *setting,
                              const struct cJSON *value, char room[SETTING_NUMBER_BYTES],
                              const char **out, struct error *err)
{
    TRY(setting_read(setting, r->in, value, room, out, err));
    return option_is_path(setting->type) ? place_path(r, out, err) : ST_OK;
}

/* Checks the form of an address or a proxy. */
static enum status verify_form(const struct setting *setting, const char *text, struct error *err)
{
    if (setting->type != OPTION_TEXTS) {
        return ST_OK;
    }
    return strstr(setting->name, "listen")       ? address_verify(text, err)
           : strcmp(setting->name, "proxy") == 0 ? proxies_verify(text, err)
                                                 : ST_OK;
}

/* ---- settings -------------------------------------------------------------------------------- */

static void read_setting(const struct reader *r, const struct setting *setting,
                         const struct cJSON *value)
{
    char room[SETTING_NUMBER_BYTES];
    const char *text;
    struct error err;
    if (read_value(r, setting, value, room, &text, &err) != ST_OK) {
        refuse(r, &err);
    } else if (verify_form(setting, text, &err) != ST_OK ||
               setting_set(setting, r->options, text, &err) != ST_OK) {
        complain(r, value, "%s", err.text);
    }
}

/* Each problem costs a walk over the document. */
static bool is_over(const struct reader *r)
{
    return r->report->problem_count >= CONF_PROBLEMS_MAX;
}

static void read_list(const struct reader *r, const struct setting *setting,
                      const struct cJSON *list)
{
    struct error err;
    if (document_need(r->in, list, JSON_ARRAY, &err) != ST_OK) {
        refuse(r, &err);
        return;
    }
    for (const struct cJSON *at = document_first(list); at && !is_over(r); at = document_next(at)) {
        read_setting(r, setting, at);
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The text before the name of a model in messages: "pted.json:7:5: models." */
static const char *label_of(const struct reader *r, const struct cJSON *value)
{
    struct error err;
    struct buf text;
    buf_init(&text, LABEL_BYTES_MAX);
    error_set(&err, ST_INVALID, "models.");
    document_place(r->in, value, &err);
    document_print_error(&text, r->options->config_file, &err);
    const char *label = arena_strdup(r->arena, text.ptr, text.len);
    buf_fini(&text);
    return label ? label : "models.";
}

/* A text, or a list of them. */
static void read_texts(const struct reader *r, const struct setting_of_model *member,
                       struct option_model model, const struct cJSON *value)
{
    bool is_list = option_is_list(member->type), is_path = option_is_path(member->type);
    struct error err;
    if (is_list && document_need(r->in, value, JSON_ARRAY, &err) != ST_OK) {
        refuse(r, &err);
        return;
    }
    for (const struct cJSON *at = is_list ? document_first(value) : value; at && !is_over(r);
         at = is_list ? document_next(at) : NULL) {
        if (read_text(r, at, is_path, &model.path, &err) != ST_OK) {
            refuse(r, &err);
        } else if (member->add(r->options, model, &err) != ST_OK) {
            complain(r, at, "%s", err.text);
        }
    }
}

static void read_model_setting(const struct reader *r, const struct setting *setting,
                               const struct option_model *model, const struct cJSON *value)
{
    const struct option_setting named = {
        .name = model->name, .name_len = model->name_len, .label = model->label};
    char room[SETTING_NUMBER_BYTES];
    const char *text;
    struct error err;
    if (read_value(r, setting, value, room, &text, &err) != ST_OK) {
        refuse(r, &err);
    } else if (options_add_setting(r->options, named, setting, text, &err) != ST_OK) {
        complain(r, value, "%s", err.text);
    }
}

static const char *const card_words[] = {
#define MEMBER(name, ...) #name,
#include "server/model/card/card.def"
};

static void refuse_model_member(const struct reader *r, const struct cJSON *member)
{
    const char *words[WORDS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < setting_of_model_count && count < WORDS_MAX; i++) {
        words[count++] = settings_of_model[i].name;
    }
    for (size_t i = 0; i < sizeof(card_words) / sizeof(card_words[0]) && count < WORDS_MAX; i++) {
        words[count++] = card_words[i];
    }
    for (uint32_t i = 0; i < setting_count && count < WORDS_MAX; i++) {
        if (settings[i].is_of_model) {
            words[count++] = settings[i].member;
        }
    }
    refuse_member(r, member, "a setting of a model", words, count);
}

static const struct setting_of_model *find_member_of_model(const char *name)
{
    for (uint32_t i = 0; i < setting_of_model_count; i++) {
        if (strcmp(settings_of_model[i].name, name) == 0) {
            return &settings_of_model[i];
        }
    }
    return NULL;
}

static void read_model_member(const struct reader *r, const struct option_model *model,
                              const struct cJSON *member)
{
    const struct setting_of_model *other = find_member_of_model(document_key(member));
    const struct setting *setting = setting_find_of_model(document_key(member));
    if (card_has_member(member)) {
        return; /* read_card() */
    }
    if (other) {
        read_texts(r, other, *model, member);
    } else if (setting) {
        read_model_setting(r, setting, model, member);
    } else {
        refuse_model_member(r, member);
    }
}

/* Members that a card can have, too, are read again when the model is loaded. */
static void read_card(const struct reader *r, const struct option_model *model,
                      const struct cJSON *value)
{
    const struct option_members members = {
        .name = model->name, .name_len = model->name_len, .label = model->label, .value = value};
    bool has_any = false;
    struct error err;
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        has_any |= card_has_member(at);
    }
    if (!has_any) {
        return;
    }
    if (card_verify_members(r->in, value, &err) != ST_OK) {
        refuse(r, &err);
    } else if (options_add_members(r->options, members, &err) != ST_OK) {
        complain(r, value, "%s", err.text);
    }
}

static void read_model(const struct reader *r, const struct cJSON *value)
{
    const char *name = document_key(value);
    struct error err;
    if (model_name_verify(span_str(name), &err) != ST_OK) {
        complain(r, value, "%s", err.text);
        return;
    }
    struct option_model model = {.name = name, .name_len = (uint32_t)strlen(name)};
    enum json_type type = document_type(value);
    if (type == JSON_STRING) {
        read_texts(r, find_member_of_model("path"), model, value);
    } else if (type != JSON_OBJECT) {
        complain(r, value, "expected a path or an object, got %s", json_type_text(type));
    } else {
        const struct cJSON *at = document_first(value);
        model.label = at ? label_of(r, value) : NULL; /* it costs a walk over the document, too */
        for (; at && !is_over(r); at = document_next(at)) {
            read_model_member(r, &model, at);
        }
        read_card(r, &model, value);
    }
}

/* ---- the document ---------------------------------------------------------------------------- */

static void read_pipeline(const struct reader *r, const struct cJSON *value)
{
    struct error err;
    if (pipelines_verify(r->in, value, &err) != ST_OK) {
        refuse(r, &err);
    }
}

static void for_each_member(const struct reader *r, const struct cJSON *object,
                            void (*read)(const struct reader *r, const struct cJSON *member))
{
    struct error err;
    if (document_need(r->in, object, JSON_OBJECT, &err) != ST_OK) {
        refuse(r, &err);
        return;
    }
    for (const struct cJSON *at = document_first(object); at && !is_over(r);
         at = document_next(at)) {
        read(r, at);
    }
}

static void refuse_setting(const struct reader *r, const struct cJSON *member)
{
    const char *words[WORDS_MAX] = {"models", "pipelines"};
    uint32_t count = 2;
    for (uint32_t i = 0; i < setting_count && count < WORDS_MAX; i++) {
        if (settings[i].member) {
            words[count++] = settings[i].member;
        }
    }
    refuse_member(r, member, "a setting", words, count);
}

static void read_member(const struct reader *r, const struct cJSON *member)
{
    const struct setting *setting = setting_find_member(document_key(member));
    const char *ignored;
    struct error err;
    if (document_is(member, "models")) {
        for_each_member(r, member, read_model);
    } else if (document_is(member, "pipelines")) {
        for_each_member(r, member, read_pipeline);
        r->options->document_pipelines = member;
    } else if (document_is(member, "$schema")) {
        if (document_text(r->in, member, &ignored, &err) != ST_OK) {
            refuse(r, &err);
        }
    } else if (!setting) {
        refuse_setting(r, member);
    } else if (option_is_list(setting->type)) {
        read_list(r, setting, member);
    } else {
        read_setting(r, setting, member);
    }
}

void conf_read_document(struct conf *config, struct conf_report *report)
{
    OBJ_CHECK(config, CONF_MAGIC);
    const struct reader r = {.in = &config->document,
                             .options = &config->options,
                             .arena = &config->arena,
                             .report = report};
    config->options.source = OPTIONS_FROM_DOCUMENT;
    config->options.document = r.in;
    for_each_member(&r, config->document.root, read_member);
    if (is_over(&r)) {
        buf_printf(&report->lines, "%s: there may be more problems\n", config->options.config_file);
    }
}
