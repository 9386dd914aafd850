/* SPDX-License-Identifier: MIT */
/* From options to models: named files, found files, pipelines. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <uv.h>

#include "base/check.h"
#include "base/precision.h"
#include "hal/device.h"
#include "runtime/load/load.h"
#include "runtime/pte/files.h"
#include "server/model/model_log.h"
#include "server/model/pipelines.h"
#include "server/model/repository_priv.h"
#include "server/process/log.h"

#define SUFFIX ".pte"

struct loader {
    struct repository_draft *draft;
    const struct options *options;
    uint32_t found_count; /* .pte files found in folders */
};

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
    return error_set(err, ST_CORRUPT, "%s", failure ? failure->text : "the program has no methods");
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

/* The precision for the file served as |name|. */
static enum precision precision_of(const struct options *options, struct span name)
{
    struct params params = options->params;
    for (uint32_t i = 0; i < options->setting_count; i++) {
        const struct option_setting *setting = &options->settings[i];
        if (span_equal(name, span_of(setting->name, setting->name_len))) {
            options_apply(setting, &params);
        }
    }
    return (enum precision)params.precision;
}

/* The models of the file at |path|. On error some of them may be in the draft. */
static enum status load(struct loader *loader, struct span name, uint32_t version, const char *path,
                        struct error *err)
{
    OBJ_CHECK(loader->draft, REPOSITORY_DRAFT_MAGIC);
    const char *data[RT_DATA_FILES_MAX];
    struct rt_load_options options = {.device = loader->draft->repository->device,
                                      .data_paths = data,
                                      .precision = precision_of(loader->options, name)};
    struct rt_program *program;
    struct origin *origin;
    uint64_t begin_ns = uv_hrtime();
    TRY(data_paths_of(loader->options, name, data, &options.data_count, err));
    if (rt_load_program(path, &options, &program, err) != ST_OK) {
        return forget_path(err, path);
    }
    enum status status = check_callable(program, err);
    if (status == ST_OK) {
        status = origin_new(name, version, path, &origin, err);
    }
    if (status == ST_OK) {
        status = repository_draft_add_program(loader->draft, origin, program, err);
        origin->load_ns = uv_hrtime() - begin_ns;
        origin_unref(origin);
    }
    rt_program_unref(program);
    return status;
}

/* A model that stands for a file which did not load. */
static enum status add_failed(struct loader *loader, struct span name, uint32_t version,
                              const char *path, const struct error *why, struct error *err)
{
    must(why->code != ST_OK);
    struct origin *origin;
    struct model *model;
    TRY(origin_new(name, version, path, &origin, err));
    enum status status = repository_draft_add(loader->draft, origin, name, &model, err);
    if (status == ST_OK) {
        model_fail(model, why);
    }
    origin_unref(origin);
    return status;
}

/* A file that the user named: it loads, or the daemon does not start. */
static enum status load_named(struct loader *loader, struct span name, const char *path,
                              struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return error_set(err, status_of_errno(errno), "model file %s: %s", path, strerror(errno));
    }
    TRY(model_name_verify(name, err));
    enum status status = load(loader, name, 1, path, err);
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
static enum status load_found(struct loader *loader, struct span name, uint32_t version,
                              const char *path, struct error *err)
{
    loader->found_count++;
    if (!model_name_is_valid(name)) {
        log_line(LOG_WARNING, "skipped %s: not a valid model name", path);
        return ST_OK;
    }
    uint32_t count = loader->draft->count;
    if (load(loader, name, version, path, err) == ST_OK) {
        return ST_OK;
    }
    log_line(LOG_ERROR, "model file %s: %s", path, err->text);
    struct error failure = *err;
    repository_draft_cut(loader->draft, count);
    return add_failed(loader, name, version, path, &failure, err);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* |root|/|name|/model.pte, or |root|/|name|/VERSION/model.pte. */
static enum status scan_model(struct loader *loader, const char *root, const char *name,
                              struct error *err)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/%s", root, name) >= PATH_MAX ||
        snprintf(path, sizeof(path), "%s/%s/model" SUFFIX, root, name) >= PATH_MAX) {
        return ST_OK;
    }
    if (is_regular(path)) {
        return load_found(loader, span_str(name), 1, path, err);
    }
    DIR *dir = opendir(folder);
    enum status status = ST_OK;
    for (struct dirent *entry; dir && status == ST_OK && (entry = readdir(dir)) != NULL;) {
        uint32_t version;
        int len = snprintf(path, sizeof(path), "%s/%s/%s/model" SUFFIX, root, name, entry->d_name);
        if (len < PATH_MAX && model_name_parse_version(span_str(entry->d_name), &version) &&
            is_regular(path)) {
            status = load_found(loader, span_str(name), version, path, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return status;
}

static enum status scan_entry(struct loader *loader, const char *root, const char *name,
                              struct error *err)
{
    char path[PATH_MAX];
    if (name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", root, name) >= PATH_MAX) {
        return ST_OK;
    }
    size_t len = strlen(name), suffix = strlen(SUFFIX);
    if (len > suffix && strcmp(name + len - suffix, SUFFIX) == 0 && is_regular(path)) {
        return load_found(loader, span_of(name, len - suffix), 1, path, err);
    }
    return scan_model(loader, root, name, err);
}

static enum status scan(struct loader *loader, const char *root, struct error *err)
{
    DIR *dir = opendir(root);
    if (!dir) {
        return error_set(err, status_of_errno(errno), "--models %s: %s", root, strerror(errno));
    }
    enum status status = ST_OK;
    uint32_t found_before = loader->found_count;
    for (struct dirent *entry; status == ST_OK && (entry = readdir(dir)) != NULL;) {
        status = scan_entry(loader, root, entry->d_name, err);
    }
    closedir(dir);
    if (status == ST_OK && loader->found_count == found_before) {
        log_line(LOG_WARNING,
                 "no .pte file in %s: expected NAME.pte, NAME/model.pte or NAME/VERSION/model.pte",
                 root);
    }
    return status;
}

/* ---- settings -------------------------------------------------------------------------------- */

/* A setting or data file for an unknown model is a mistake and is refused. */
static enum status check_file(const struct repository_draft *draft, const char *option,
                              const char *value, uint32_t name_len, struct error *err)
{
    struct span name = span_of(value, name_len);
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct origin *origin = draft->models[i]->origin;
        if (origin->path && span_is(name, origin->name)) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "%s %s: no model file is served as '%.*s'", option, value,
                     SPAN_SHORT(name));
}

static enum status check_setting(const struct repository_draft *draft,
                                 const struct option_setting *setting, struct error *err)
{
    struct span name = span_of(setting->name, setting->name_len);
    if (setting->is_of_file) {
        return check_file(draft, "--set", setting->name, setting->name_len, err);
    }
    for (uint32_t i = 0; i < draft->count; i++) {
        if (repository_is_meant(draft->models[i], name)) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "--set %s: no model '%.*s'", setting->name, SPAN_SHORT(name));
}

static enum status check_names(const struct repository_draft *draft, const struct options *options,
                               struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    for (uint32_t i = 0; i < options->data_count; i++) {
        const struct option_model *data = &options->data[i];
        TRY(check_file(draft, "--data", data->name, data->name_len, err));
    }
    for (uint32_t i = 0; i < options->setting_count; i++) {
        TRY(check_setting(draft, &options->settings[i], err));
    }
    return ST_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

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

static enum status load_all(struct loader *loader, struct error *err)
{
    const struct options *options = loader->options;
    for (uint32_t i = 0; i < options->model_count; i++) {
        const struct option_model *model = &options->models[i];
        struct span name =
            model->name ? span_of(model->name, model->name_len) : name_of_path(model->path);
        TRY(load_named(loader, name, model->path, err));
    }
    for (uint32_t i = 0; i < options->folder_count; i++) {
        TRY(scan(loader, options->folders[i], err));
    }
    for (uint32_t i = 0; i < options->pipeline_count; i++) {
        TRY(pipelines_load(loader->draft, options->pipelines[i], err));
    }
    TRY(check_names(loader->draft, options, err));
    return repository_draft_publish(loader->draft, err);
}

enum status repository_load(struct repository *repository, const struct options *options,
                            struct error *err)
{
    struct repository_draft draft;
    struct loader loader = {.draft = &draft, .options = options};
    enum status status = repository_draft_init(&draft, repository, options, err);
    if (status == ST_OK) {
        status = load_all(&loader, err);
    }
    repository_draft_fini(&draft);
    struct repository_index *index = repository_ref_index(repository);
    for (uint32_t i = 0; status == ST_OK && i < index->count; i++) {
        model_log(index->models[i], repository->device);
    }
    repository_unref_index(index);
    return status;
}
