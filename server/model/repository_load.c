/* SPDX-License-Identifier: MIT */
/* From listed files to models in a draft; checks options that name models. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "base/precision.h"
#include "runtime/load/load.h"
#include "runtime/pte/files.h"
#include "server/language/exported.h"
#include "server/model/card/card.h"
#include "server/model/card/warm_up.h"
#include "server/model/catalog.h"
#include "server/model/intake/intake.h"
#include "server/model/model_log.h"
#include "server/model/repository_priv.h"
#include "server/model/update.h"
#include "server/process/file.h"
#include "server/process/log.h"

/* ---- one file -------------------------------------------------------------------------------- */

/* Why no method of the program can be called; ST_OK if one can. ST_UNSUPPORTED: no method is
 * damaged. */
static enum status check_callable(const struct rt_program *program, struct error *err)
{
    const struct error *found = NULL;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        const struct error *failure = rt_method_failure(rt_program_method(program, i));
        if (!failure) {
            return ST_OK;
        }
        found = !found || found->code == ST_UNSUPPORTED ? failure : found;
    }
    enum status code = found && found->code == ST_UNSUPPORTED ? ST_UNSUPPORTED : ST_CORRUPT;
    return error_set(err, code, "%s", found ? found->text : "the program has no methods");
}

/* The runtime's text begins with the path. It is cut off here: clients see the text and need not
 * know where our files are. */
#define ERROR_PATH_MAX 160

static enum status forget_path(struct error *err, const char *path)
{
    size_t len = strnlen(path, ERROR_PATH_MAX);
    if (strncmp(err->text, path, len) == 0 && strncmp(err->text + len, ": ", 2) == 0) {
        memmove(err->text, err->text + len + 2, strlen(err->text + len + 2) + 1);
    }
    return err->code;
}

/* The paths of data files. */
struct data_files {
    char paths[RT_DATA_FILES_MAX][PATH_MAX];
    const char *items[RT_DATA_FILES_MAX]; /* the first |count| of |paths| */
    uint32_t count;
};

/* The data files given for |name|. */
static enum status find_data(const struct options *options, struct span name,
                             struct data_files *files, struct error *err)
{
    files->count = 0;
    for (uint32_t i = 0; i < options->data_count; i++) {
        const struct option_model *data = &options->data[i];
        if (!span_equal(name, span_of(data->name, data->name_len))) {
            continue;
        }
        if (files->count == RT_DATA_FILES_MAX) {
            return error_set(err, ST_TOO_LARGE, "more than %d data files", RT_DATA_FILES_MAX);
        }
        char *path = files->paths[files->count];
        TRY(catalog_place(options, data->path, path, PATH_MAX, err));
        files->items[files->count++] = path;
    }
    return ST_OK;
}

static enum status new_origin(const struct catalog_file *file, struct origin **out_origin,
                              struct error *err)
{
    TRY(origin_new(span_str(file->name), file->version, file->path, out_origin, err));
    (*out_origin)->id = file->id;
    (*out_origin)->bytes = file->bytes;
    return ST_OK;
}

enum status repository_add_listed(struct repository_draft *draft, const struct catalog_file *file,
                                  struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct origin *origin;
    TRY(new_origin(file, &origin, err));
    origin->is_on_demand = true;
    enum status status = repository_draft_list(draft, origin, err);
    origin_unref(origin);
    return status;
}

/* ---- labels and cards ------------------------------------------------------------------------ */

#define LABELS_BYTES_MAX ((size_t)8 << 20)

static enum status read_labels(const struct options *options, struct origin *origin,
                               struct error *err)
{
    struct buf text;
    const struct option_model *said = options_find_labels(options, span_str(origin->name));
    if (!said) {
        return ST_OK;
    }
    origin->outranks_members = said->source > OPTIONS_FROM_DOCUMENT;
    origin->labels_path = arena_strdup(&origin->arena, said->path, strlen(said->path));
    if (!origin->labels_path) {
        return arena_fail(&origin->arena, "labels", err);
    }
    buf_init(&text, LABELS_BYTES_MAX);
    enum status status = file_read(said->path, &text, err);
    if (status == ST_OK) {
        status = card_take_lines(&origin->arena, buf_span(&text), &origin->labels,
                                 &origin->label_count, err);
    }
    buf_fini(&text);
    return status == ST_OK ? ST_OK : error_prefix(err, "labels %s: ", said->path);
}

/* What lies beside the program, over it the card file, and over that the members that the document
 * has for the model. */
static enum status read_card(const struct options *options, const struct catalog_file *file,
                             struct card *card, struct error *err)
{
    const struct cJSON *members = options_find_members(options, span_str(file->name));
    if (file->id.beside) {
        TRY(card_read_beside(card, file->path, err));
    }
    if (file->card_path) {
        TRY(card_read_file(card, file->card_path, err));
    }
    return members ? card_read_members(card, options->document, members, options->config_file, err)
                   : ST_OK;
}

/* NULL: nobody says anything. */
static enum status open_card(const struct options *options, const struct catalog_file *file,
                             struct card **out_card, struct error *err)
{
    *out_card = NULL;
    if (!file->card_path && !file->id.beside &&
        !options_find_members(options, span_str(file->name))) {
        return ST_OK;
    }
    *out_card = card_new();
    return *out_card ? read_card(options, file, *out_card, err) : error_no_memory(err, "the card");
}

static enum status apply_card(const char *name, struct card *card, struct rt_program *program,
                              struct hal_device *device, struct error *err)
{
    if (!card) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < card->note_count; i++) {
        log_line(LOG_WARNING, "model '%s': %s", name, card->notes[i].text);
    }
    TRY(card_apply(card, program, err));
    TRY(card_warm_up(card, program, device, err));
    card_settle(card);
    return ST_OK;
}

static enum status keep_tokenizer(const struct options *options, struct origin *origin,
                                  struct error *err)
{
    const char *path = options_find_tokenizer(options, span_str(origin->name));
    origin->tokenizer_path = path ? arena_strdup(&origin->arena, path, strlen(path)) : NULL;
    return !path || origin->tokenizer_path ? ST_OK : arena_fail(&origin->arena, "tokenizer", err);
}

/* |program| has been loaded from |file|. Takes |*card| over. */
static enum status add_program(struct repository_draft *draft, const struct catalog_file *file,
                               struct rt_program *program, struct card **card, uint64_t begin_ns,
                               struct error *err)
{
    struct origin *origin;
    TRY(check_callable(program, err));
    TRY(apply_card(file->name, *card, program, draft->repository->device, err));
    TRY(new_origin(file, &origin, err));
    origin->card = *card;
    *card = NULL;
    if (read_labels(draft->options, origin, err) != ST_OK ||
        keep_tokenizer(draft->options, origin, err) != ST_OK) {
        origin_unref(origin);
        return err->code;
    }
    origin->is_on_demand = !file->is_named && draft->options->params.model_bytes_max > 0;
    enum status status = repository_draft_add_program(draft, origin, program, err);
    origin->load_ns = uv_hrtime() - begin_ns;
    origin_unref(origin);
    return status;
}

/* A file of that name may be anybody's, so one that cannot be read is left out. */
static enum status read_exported(const struct catalog_file *file, struct exported *out,
                                 struct error *err)
{
    enum status status = exported_read(file->path, out, err);
    if (status == ST_OK || status == ST_EXHAUSTED) {
        return status;
    }
    log_line(LOG_WARNING, "model '%s': %s", file->name, err->text);
    *out = (struct exported){.is_found = false};
    return ST_OK;
}

static enum status load_with(struct repository_draft *draft, const struct catalog_file *file,
                             struct data_files *data, struct card **card, struct error *err)
{
    struct span name = span_str(file->name);
    uint64_t begin_ns = uv_hrtime();
    struct rt_program *program;
    TRY(find_data(draft->options, name, data, err));
    struct exported exported;
    TRY(read_exported(file, &exported, err));
    struct rt_load_options options = {
        .device = draft->repository->device,
        .composition = intake_composition(),
        .carries = exported.is_found ? &exported.carries : NULL,
        .data_paths = data->items,
        .data_count = data->count,
        .packed_folder = draft->options->packed_dir,
        .adapt = card_adapt,
        .adapt_arg = *card,
        .has_int8_caches = card_has_int8_cache(*card),
        .precision = (enum precision)catalog_params(draft->options, *card, name).precision};
    if (rt_load_program(file->path, &options, &program, err) != ST_OK) {
        return forget_path(err, file->path);
    }
    enum status status = add_program(draft, file, program, card, begin_ns, err);
    rt_program_unref(program);
    return status;
}

static enum status load_program(struct repository_draft *draft, const struct catalog_file *file,
                                struct data_files *data, struct error *err)
{
    struct card *card;
    enum status status = open_card(draft->options, file, &card, err);
    if (status == ST_OK) {
        status = load_with(draft, file, data, &card, err);
    }
    card_free(card);
    return status;
}

enum status repository_load_file(struct repository_draft *draft, const struct catalog_file *file,
                                 struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct data_files *data = malloc(sizeof(*data)); /* too large for the stack of a thread */
    if (!data) {
        return error_no_memory(err, "models");
    }
    enum status status = load_program(draft, file, data, err);
    free(data);
    return status;
}

static enum status add_failed(struct repository_draft *draft, struct origin *origin,
                              const struct error *why, struct error *err)
{
    must(why->code != ST_OK);
    struct model *model;
    enum status status = repository_draft_add(draft, origin, span_str(origin->name), &model, err);
    if (status == ST_OK) {
        model_fail(model, why);
    }
    origin_unref(origin);
    return status;
}

enum status repository_add_failed(struct repository_draft *draft, const struct catalog_file *file,
                                  const struct error *why, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct origin *origin;
    TRY(new_origin(file, &origin, err));
    return add_failed(draft, origin, why, err);
}

enum status repository_add_unloaded(struct repository_draft *draft, const char *name,
                                    uint32_t version, const char *path, const struct origin_id *id,
                                    struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct origin *origin;
    struct error why;
    TRY(origin_new(span_str(name), version, path, &origin, err));
    origin->id = *id;
    origin->is_unloaded = true;
    error_set(&why, ST_UNAVAILABLE, "unloaded");
    return add_failed(draft, origin, &why, err);
}

enum status repository_add_failed_pipeline(struct repository_draft *draft, const char *name,
                                           const struct error *why, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct origin *origin;
    TRY(origin_new(span_str(name), 1, NULL, &origin, err));
    return add_failed(draft, origin, why, err);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* A setting or data file for an unknown model is a mistake and is refused. */
static enum status check_file(const struct repository_draft *draft, const char *label,
                              const char *value, uint32_t name_len, struct error *err)
{
    struct span name = span_of(value, name_len);
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct origin *origin = draft->models[i]->origin;
        if (origin->path && span_is(name, origin->name)) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "%s%s: no model file is served as '%.*s'", label, value,
                     SPAN_SHORT(name));
}

static enum status check_setting(const struct repository_draft *draft,
                                 const struct option_setting *setting, struct error *err)
{
    struct span name = span_of(setting->name, setting->name_len);
    if (setting->is_of_file) {
        return check_file(draft, setting->label, setting->name, setting->name_len, err);
    }
    for (uint32_t i = 0; i < draft->count; i++) {
        if (repository_is_meant(draft->models[i], name)) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "%s%s: no model '%.*s'", setting->label, setting->name,
                     SPAN_SHORT(name));
}

static bool has_version(const struct repository_draft *draft, struct span name, uint32_t version)
{
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct origin *origin = draft->models[i]->origin;
        if (origin->path && span_is(name, origin->name) && origin->version == version) {
            return true;
        }
    }
    return false;
}

/* A version that is not there is no error: it may come. */
static void warn_of_versions(const struct repository_draft *draft,
                             const struct option_model *versions)
{
    struct span name = span_of(versions->name, versions->name_len);
    const char *list = versions->path;
    uint32_t version;
    while (options_next_version(&list, &version)) {
        if (!has_version(draft, name, version)) {
            log_line(LOG_WARNING, "%s%s: no model file is served as version %u of '%.*s'",
                     versions->label, versions->name, version, SPAN_SHORT(name));
        }
    }
}

enum status repository_check_names(const struct repository_draft *draft, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    const struct options *options = draft->options;
    for (uint32_t i = 0; i < options->data_count; i++) {
        const struct option_model *data = &options->data[i];
        TRY(check_file(draft, data->label, data->name, data->name_len, err));
    }
    for (uint32_t i = 0; i < options->labels_count; i++) {
        const struct option_model *labels = &options->labels[i];
        TRY(check_file(draft, labels->label, labels->name, labels->name_len, err));
    }
    for (uint32_t i = 0; i < options->card_count; i++) {
        const struct option_model *card = &options->cards[i];
        TRY(check_file(draft, card->label, card->name, card->name_len, err));
    }
    for (uint32_t i = 0; i < options->member_count; i++) {
        const struct option_members *members = &options->members[i];
        TRY(check_file(draft, members->label, members->name, members->name_len, err));
    }
    for (uint32_t i = 0; i < options->tokenizer_count; i++) {
        const struct option_model *tokenizer = &options->tokenizers[i];
        TRY(check_file(draft, tokenizer->label, tokenizer->name, tokenizer->name_len, err));
    }
    for (uint32_t i = 0; i < options->setting_count; i++) {
        TRY(check_setting(draft, &options->settings[i], err));
    }
    for (uint32_t i = 0; i < options->versions_count; i++) {
        warn_of_versions(draft, &options->versions[i]);
    }
    return ST_OK;
}

/* ---- the first models ------------------------------------------------------------------------ */

enum status repository_load(struct repository *repository, const struct options *options,
                            struct repository *before, struct error *err)
{
    struct update update = {
        .kind = UPDATE_START, .repository = repository, .options = options, .before = before};
    enum status status = update_prepare(&update, err);
    if (status == ST_OK) {
        status = update_publish(&update, NULL, err);
    }
    update_fini(&update);
    return status;
}
