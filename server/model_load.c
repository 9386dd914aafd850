/* SPDX-License-Identifier: MIT */
/* From options to models: named files, found files, then queues for them. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <uv.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/pte/files.h"
#include "runtime/sched/sched.h"
#include "server/log.h"
#include "server/model_log.h"
#include "server/model_priv.h"
#include "server/pipelines.h"
#include "server/route.h"
#include "server/stats.h"

#define SUFFIX ".pte"
/* Rows to try if no option gives the number. */
#define ROWS_MAX_UNASKED 32

/* ---- one file -------------------------------------------------------------------------------- */

/* Why no method of the program can be called; ST_OK if one can. */
static enum status check_callable(const struct rt_program *program, struct error *err)
{
    const struct error *failure = NULL;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        failure = rt_method_failure(rt_program_method(program, i));
        if (!failure) {
            return ST_OK;
        }
    }
    bool is_memory = failure && failure->code == ST_EXHAUSTED; /* the file is not to blame */
    return error_set(err, is_memory ? ST_EXHAUSTED : ST_CORRUPT, "%s",
                     failure ? failure->text : "the program has no methods");
}

/* The runtime's text begins with the path. It is cut off here: clients, who see the rest, need not
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

/* The data files given for |name|. */
static enum status data_paths_of(const struct options *options, struct span name,
                                 const char *paths[RT_DATA_FILES_MAX], uint32_t *out_count,
                                 struct error *err)
{
    *out_count = 0;
    for (uint32_t i = 0; i < options->data_count; i++) {
        const struct option_model *data = &options->data[i];
        if (!span_equal(name, span_of(data->name, data->name_len))) {
            continue;
        }
        if (*out_count == RT_DATA_FILES_MAX) {
            return error_set(err, ST_TOO_LARGE, "more than %d data files", RT_DATA_FILES_MAX);
        }
        paths[(*out_count)++] = data->path;
    }
    return ST_OK;
}

/* For messages: the origin of the models from |first| on, and their loading time. */
static void note_origin(struct models *models, uint32_t first, const char *path, uint64_t load_ns)
{
    const char *copy = arena_strdup(&models->arena, path, strlen(path));
    for (uint32_t i = first; i < models->item_count; i++) {
        models->items[i].path = copy;
        models->items[i].load_ns = load_ns;
    }
}

static enum status load(struct models *models, struct span name, uint32_t version, const char *path,
                        struct error *err)
{
    const char *data[RT_DATA_FILES_MAX];
    struct rt_load_options options = {.device = models->device, .data_paths = data};
    struct rt_program *program;
    uint64_t begin_ns = uv_hrtime();
    TRY(data_paths_of(models->options, name, data, &options.data_count, err));
    if (rt_load_program(path, &options, &program, err) != ST_OK) {
        return forget_path(err, path);
    }
    enum status status = check_callable(program, err);
    uint32_t first = models->item_count;
    if (status == ST_OK) {
        status = models_add_program(models, name, version, program, err);
    }
    note_origin(models, first, path, uv_hrtime() - begin_ns);
    rt_program_unref(program);
    return status;
}

/* A file that the user named: it loads, or the daemon does not start. */
static enum status load_named(struct models *models, struct span name, const char *path,
                              struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return error_set(err, status_of_errno(errno), "model file %s: %s", path, strerror(errno));
    }
    if (!model_name_is_valid(name)) {
        struct model *model;
        return models_add(models, name, name, 1, &model, err); /* sets the reason */
    }
    enum status status = load(models, name, 1, path, err);
    if (status == ST_OK) {
        return ST_OK;
    }
    bool is_readable = status != ST_NOT_FOUND && status != ST_UNAVAILABLE && status != ST_EXHAUSTED;
    if (is_readable) {
        err->code = ST_CORRUPT; /* whatever is wrong, this file is to blame */
    }
    return error_prefix(err, "model file %s: ", path);
}

/* A file that was found: the others are served without it, and its reason is kept. */
static enum status load_found(struct models *models, struct span name, uint32_t version,
                              const char *path, struct error *err)
{
    models->found_count++;
    if (!model_name_is_valid(name)) {
        log_line(LOG_WARNING, "skipped %s: not a valid model name", path);
        return ST_OK;
    }
    uint32_t count = models->item_count;
    if (load(models, name, version, path, err) == ST_OK) {
        return ST_OK;
    }
    log_line(LOG_ERROR, "model file %s: %s", path, err->text);
    struct error failure = *err;
    while (models->item_count > count) {
        rt_program_unref(models->items[--models->item_count].program);
    }
    struct model *model;
    TRY(models_add(models, name, name, version, &model, err));
    model_fail(model, &failure);
    note_origin(models, models->item_count - 1, path, 0);
    return ST_OK;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* |root|/|name|/model.pte, or |root|/|name|/VERSION/model.pte. */
static enum status scan_model(struct models *models, const char *root, const char *name,
                              struct error *err)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/%s", root, name) >= PATH_MAX ||
        snprintf(path, sizeof(path), "%s/%s/model" SUFFIX, root, name) >= PATH_MAX) {
        return ST_OK;
    }
    if (is_regular(path)) {
        return load_found(models, span_str(name), 1, path, err);
    }
    DIR *dir = opendir(folder);
    enum status status = ST_OK;
    for (struct dirent *entry; dir && status == ST_OK && (entry = readdir(dir)) != NULL;) {
        uint32_t version;
        int len = snprintf(path, sizeof(path), "%s/%s/%s/model" SUFFIX, root, name, entry->d_name);
        if (len < PATH_MAX && route_parse_version(span_str(entry->d_name), &version) &&
            is_regular(path)) {
            status = load_found(models, span_str(name), version, path, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return status;
}

static enum status scan_entry(struct models *models, const char *root, const char *name,
                              struct error *err)
{
    char path[PATH_MAX];
    if (name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", root, name) >= PATH_MAX) {
        return ST_OK;
    }
    size_t len = strlen(name), suffix = strlen(SUFFIX);
    if (len > suffix && strcmp(name + len - suffix, SUFFIX) == 0 && is_regular(path)) {
        return load_found(models, span_of(name, len - suffix), 1, path, err);
    }
    return scan_model(models, root, name, err);
}

static enum status scan(struct models *models, const char *root, struct error *err)
{
    DIR *dir = opendir(root);
    if (!dir) {
        return error_set(err, status_of_errno(errno), "--models %s: %s", root, strerror(errno));
    }
    enum status status = ST_OK;
    uint32_t found_before = models->found_count;
    for (struct dirent *entry; status == ST_OK && (entry = readdir(dir)) != NULL;) {
        status = scan_entry(models, root, entry->d_name, err);
    }
    closedir(dir);
    if (status == ST_OK && models->found_count == found_before) {
        log_line(LOG_WARNING,
                 "no .pte file in %s: expected NAME.pte, NAME/model.pte or NAME/VERSION/model.pte",
                 root);
    }
    return status;
}

/* ---- queues and settings --------------------------------------------------------------------- */

/* Is |name| the name of the model or of its file? */
static bool is_meant(const struct model *model, struct span name)
{
    return span_is(name, model->name) || span_is(name, model->file) ||
           (model->alias && span_is(name, model->alias));
}

static struct params params_of(const struct model *model, const struct options *options)
{
    struct params params = options->params;
    for (uint32_t i = 0; i < options->setting_count; i++) {
        const struct option_setting *setting = &options->settings[i];
        if (is_meant(model, span_of(setting->name, setting->name_len))) {
            options_apply(setting, &params);
        }
    }
    return params;
}

/* How many of the wanted rows the model's form takes. */
static void open_batches(struct model *model)
{
    int64_t given = (int64_t)model->params.max_batch, asked = given ? given : ROWS_MAX_UNASKED;
    int64_t rows = 1;
    model->rows_form = model->rows_max = 1;
    if (asked == 1) {
        error_set(&model->why_alone, ST_UNSUPPORTED, "batches are off");
    } else if (rt_batch_open(model->method, &rows, &model->why_alone) == ST_OK) {
        model->rows_form = rows < asked ? rows : asked;
        error_set(&model->why_alone, ST_UNSUPPORTED, "it has not been tried yet");
    }
    model->batch_size_max = rt_batch_size_max(model->method);
    if (model->batch_size_max == 0 && rows > 1) {
        model->batch_size_max = 1; /* exported for one sample; its operators decide */
    }
}

/* Once the table is complete and sorted. */
static enum status open_queues(struct models *models, const struct options *options,
                               struct error *err)
{
    for (uint32_t i = 0; i < models->item_count; i++) {
        struct model *model = &models->items[i];
        model->params = params_of(model, options);
        if (!model_is_ready(model)) {
            continue;
        }
        open_batches(model);
        const struct params *params = &model->params;
        const struct rt_sched_queue_options queue = {
            .waiting_max = (uint32_t)params->queue_count_max,
            .waiting_bytes_max = (size_t)params->queue_bytes_max,
            .running_max = (uint32_t)params->running_count_max,
            .rows_max = model->rows_max,
            .weight = (uint32_t)params->weight,
        };
        rt_method_set_weight(model->method, (uint32_t)params->weight);
        TRY(rt_sched_queue_new(models->sched, &queue, &model->queue, err));
        TRY(hal_pool_share(models->pool, &model->pool, err));
        model->stats = calloc(1, sizeof(*model->stats));
        if (!model->stats) {
            return error_set(err, ST_EXHAUSTED, "model statistics: out of memory");
        }
    }
    return ST_OK;
}

static bool has_file(const struct model *model)
{
    return model->path != NULL;
}

/* A setting or data file for an unknown model is a mistake and is refused. */
static enum status check_data(const struct models *models, const struct option_model *data,
                              struct error *err)
{
    struct span name = span_of(data->name, data->name_len);
    for (uint32_t i = 0; i < models->item_count; i++) {
        if (has_file(&models->items[i]) && span_is(name, models->items[i].file)) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "--data %s: no model file is served as '%.*s'", data->name,
                     SPAN_SHORT(name));
}

static enum status check_setting(const struct models *models, const struct option_setting *setting,
                                 struct error *err)
{
    struct span name = span_of(setting->name, setting->name_len);
    for (uint32_t i = 0; i < models->item_count; i++) {
        if (is_meant(&models->items[i], name)) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "--set %s: no model '%.*s'", setting->name, SPAN_SHORT(name));
}

static enum status check_names(const struct models *models, const struct options *options,
                               struct error *err)
{
    for (uint32_t i = 0; i < options->data_count; i++) {
        TRY(check_data(models, &options->data[i], err));
    }
    for (uint32_t i = 0; i < options->setting_count; i++) {
        TRY(check_setting(models, &options->settings[i], err));
    }
    return ST_OK;
}

/* "dir/name.pte" is called "name". */
static struct span name_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct span name = span_str(slash ? slash + 1 : path);
    size_t suffix = strlen(SUFFIX);
    if (name.len > suffix && memcmp(name.ptr + name.len - suffix, SUFFIX, suffix) == 0) {
        name.len -= suffix;
    }
    return name;
}

enum status models_load(struct models *models, const struct options *options, struct error *err)
{
    models->options = options;
    for (uint32_t i = 0; i < options->model_count; i++) {
        const struct option_model *model = &options->models[i];
        struct span name =
            model->name ? span_of(model->name, model->name_len) : name_of_path(model->path);
        TRY(load_named(models, name, model->path, err));
    }
    for (uint32_t i = 0; i < options->folder_count; i++) {
        TRY(scan(models, options->folders[i], err));
    }
    models->options = NULL;
    for (uint32_t i = 0; i < options->pipeline_count; i++) {
        TRY(pipelines_load(models, options->pipelines[i], err));
    }
    TRY(check_names(models, options, err));
    TRY(models_sort(models, err));
    TRY(open_queues(models, options, err));
    for (uint32_t i = 0; i < models->item_count; i++) {
        model_log(&models->items[i], models->device);
    }
    return ST_OK;
}
