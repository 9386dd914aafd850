/* SPDX-License-Identifier: MIT */
/* The options of one model: its file, data, labels, card, tokenizer and versions. */
#include "config.h"

#include "server/process/model_name.h"
#include "server/process/options_priv.h"

#include <string.h>


struct span options_model_name(const struct option_model *model)
{
    return span_of(model->name, model->name_len);
}

static enum status no_room_for_models(struct error *err)
{
    return error_set(err, ST_INVALID, "more than %d models; use --models DIR", OPTIONS_MODELS_MAX);
}

/* A model takes the place of the one with its name that a source before its own has given. */
enum status options_add_model(struct options *options, struct option_model model, struct error *err)
{
    model.source = options->source;
    for (uint32_t i = 0; i < options->model_count; i++) {
        struct option_model *old = &options->models[i];
        if (old->source != model.source &&
            span_equal(options_model_name(old), options_model_name(&model))) {
            *old = model;
            return ST_OK;
        }
    }
    if (options->model_count == OPTIONS_MODELS_MAX) {
        return no_room_for_models(err);
    }
    options->models[options->model_count++] = model;
    return ST_OK;
}

enum status options_add_path(struct options *options, struct option_model model, struct error *err)
{
    return options_add_model(options, model, err);
}

enum status options_add_file(struct options *options, const char *path, struct error *err)
{
    if (options->file_name_count == OPTIONS_MODELS_MAX) {
        return no_room_for_models(err);
    }
    struct span name =
        model_name_of_file(path, options->file_names[options->file_name_count++]);
    struct option_model model = {
        .name = (const char *)name.ptr, .name_len = (uint32_t)name.len, .path = path};
    return options_add_model(options, model, err);
}

/* Drops the data files of the model that sources before this one have given. */
static void drop_data(struct options *options, const struct option_model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->data_count; i++) {
        const struct option_model *data = &options->data[i];
        if (data->source == options->source ||
            !span_equal(options_model_name(data), options_model_name(model))) {
            options->data[count++] = *data;
        }
    }
    options->data_count = count;
}

enum status options_add_data(struct options *options, struct option_model data, struct error *err)
{
    data.source = options->source;
    drop_data(options, &data);
    if (options->data_count == OPTIONS_DATA_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_DATA_MAX);
    }
    options->data[options->data_count++] = data;
    return ST_OK;
}

/* Takes the first number and the comma behind it off |*list|. False: it does not begin with one. */
static bool take_version(const char **list, uint32_t *out_version)
{
    const char *p = *list;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9' && value <= UINT32_MAX; p++) {
        value = value * 10 + (uint64_t)(*p - '0');
    }
    bool is_good = value > 0 && value <= UINT32_MAX && (*p == '\0' || (*p == ',' && p[1]));
    *list = p + (*p == ',');
    *out_version = (uint32_t)value;
    return is_good;
}

/* The last option for |name| counts. */
static const char *find_last(const struct option_model *items, uint32_t count, struct span name)
{
    const char *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        found = span_equal(options_model_name(&items[i]), name) ? items[i].path : found;
    }
    return found;
}

const char *options_find_versions(const struct options *options, struct span name)
{
    return find_last(options->versions, options->versions_count, name);
}

const struct option_model *options_find_labels(const struct options *options, struct span name)
{
    const struct option_model *found = NULL;
    for (uint32_t i = 0; i < options->labels_count; i++) {
        bool is_it = span_equal(options_model_name(&options->labels[i]), name);
        found = is_it ? &options->labels[i] : found;
    }
    return found;
}

const char *options_find_card(const struct options *options, struct span name)
{
    return find_last(options->cards, options->card_count, name);
}

/* Where the document has members of a card. */
const struct cJSON *options_find_members(const struct options *options, struct span name)
{
    for (uint32_t i = 0; i < options->member_count; i++) {
        const struct option_members *members = &options->members[i];
        if (span_equal(span_of(members->name, members->name_len), name)) {
            return members->value;
        }
    }
    return NULL;
}

enum status options_add_members(struct options *options, struct option_members members,
                                struct error *err)
{
    if (options->member_count == OPTIONS_MODELS_MAX) {
        return error_set(err, ST_INVALID, "more than %d models with members of a card",
                         OPTIONS_MODELS_MAX);
    }
    options->members[options->member_count++] = members;
    return ST_OK;
}

enum status options_add_card(struct options *options, struct option_model card, struct error *err)
{
    if (options->card_count == OPTIONS_CARDS_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_CARDS_MAX);
    }
    options->cards[options->card_count++] = card;
    return ST_OK;
}

enum status options_add_labels(struct options *options, struct option_model labels,
                               struct error *err)
{
    if (options->labels_count == OPTIONS_LABELS_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_LABELS_MAX);
    }
    labels.source = options->source;
    options->labels[options->labels_count++] = labels;
    return ST_OK;
}

const char *options_find_tokenizer(const struct options *options, struct span name)
{
    return find_last(options->tokenizers, options->tokenizer_count, name);
}

enum status options_add_tokenizer(struct options *options, struct option_model tokenizer,
                                  struct error *err)
{
    if (options->tokenizer_count == OPTIONS_LABELS_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_LABELS_MAX);
    }
    options->tokenizers[options->tokenizer_count++] = tokenizer;
    return ST_OK;
}

bool options_next_version(const char **list, uint32_t *out_version)
{
    return **list && take_version(list, out_version);
}

bool options_lists_version(const char *list, uint32_t version)
{
    uint32_t listed = 0;
    while (options_next_version(&list, &listed)) {
        if (listed == version) {
            return true;
        }
    }
    return false;
}

enum status options_add_versions(struct options *options, struct option_model versions,
                                 struct error *err)
{
    uint32_t version;
    const char *list = versions.path;
    do {
        if (!take_version(&list, &version)) {
            return error_set(err, ST_INVALID,
                             "expected versions from 1 to 4294967295 with commas between them, got "
                             "'%.64s'",
                             versions.path);
        }
    } while (*list);
    if (options->versions_count == OPTIONS_VERSIONS_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_VERSIONS_MAX);
    }
    options->versions[options->versions_count++] = versions;
    return ST_OK;
}
