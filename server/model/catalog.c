/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/catalog.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/check.h"
#include "base/folder.h"
#include "server/model/card/beside.h"
#include "server/model/card/card.h"
#include "server/process/fetch.h"
#include "server/process/log.h"
#include "server/process/model_name.h"

#define SUFFIX ".pte"
#define FILES_MAX 65536
#define ARENA_BYTES_MAX (64 << 20)

struct lister {
    struct catalog *catalog;
    const struct options *options;
    const struct catalog_folders *folders;
    const char *entry;               /* of the folder that is read: the name of a file or folder */
    char folder[PATH_MAX];           /* that of the last program, with a slash ... */
    uint64_t data, beside, exported; /* ... and the hashes of files in it: see struct origin_id */
    bool has_folder;
};

struct params catalog_params(const struct options *options, const struct card *card,
                             struct span name)
{
    struct params params = options->params;
    card_put_params(card, options, &params);
    for (uint32_t i = 0; i < options->setting_count; i++) {
        const struct option_setting *setting = &options->settings[i];
        if (span_equal(name, span_of(setting->name, setting->name_len))) {
            options_apply(setting, &params);
        }
    }
    return params;
}

enum status catalog_place(const struct options *options, const char *path, char *out, size_t size,
                          struct error *err)
{
    if (fetch_is_url(path)) {
        struct fetch fetch = fetch_of(options);
        return fetch_path(&fetch, path, out, size, err);
    }
    int len = snprintf(out, size, "%s", path);
    return len >= 0 && (size_t)len < size
               ? ST_OK
               : error_set(err, ST_INVALID, "%.160s...: the path is too long", path);
}

/* ---- how large ------------------------------------------------------------------------------- */

static uint64_t bytes_at(const char *path)
{
    struct origin_file file;
    return origin_file_read(path, &file) == 0 ? file.bytes : 0;
}

/* The files that were said to hold the weights of a program. */
struct said_data {
    uint32_t count;
    uint64_t bytes, hash; /* of all of them */
};

static struct said_data find_said_data(const struct options *options, const char *name)
{
    struct said_data said = {0};
    for (uint32_t i = 0; i < options->data_count; i++) {
        const struct option_model *data = &options->data[i];
        char path[PATH_MAX];
        struct error ignored;
        if (!span_equal(span_str(name), span_of(data->name, data->name_len))) {
            continue;
        }
        said.count++;
        if (catalog_place(options, data->path, path, sizeof(path), &ignored) == ST_OK) {
            said.bytes += bytes_at(path);
            said.hash += origin_hash_at(path);
        }
    }
    return said;
}

/* Of the files that hold the weights of the program |file|, as far as names tell. */
static uint64_t data_bytes(const struct options *options, const struct catalog_file *file)
{
    uint64_t bytes = find_said_data(options, file->name).bytes;
    char path[PATH_MAX];
    size_t len = strlen(file->path), suffix = strlen(SUFFIX);
    bool has_stem = len > suffix && strcmp(file->path + len - suffix, SUFFIX) == 0;
    if (bytes == 0 && has_stem &&
        snprintf(path, sizeof(path), "%.*s.ptd", (int)(len - suffix), file->path) < PATH_MAX) {
        bytes = bytes_at(path);
    }
    return bytes;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* The card that was named, which must be there, or the one beside the program, which may be. */
static enum status find_card(const struct lister *lister, struct catalog_file *file,
                             struct error *err)
{
    struct arena *arena = &lister->catalog->arena;
    const char *named = options_find_card(lister->options, span_str(file->name));
    char beside[PATH_MAX];
    bool has_path = named || card_path_of(file->path, beside, sizeof(beside));
    const char *path = named ? named : beside;
    int missing = has_path ? origin_file_read(path, &file->id.card) : ENOENT;
    if (missing && !named) {
        return ST_OK;
    }
    file->card_path = arena_strdup(arena, path, strlen(path));
    return file->card_path ? ST_OK : arena_fail(arena, "the list of model files", err);
}

/* The files beside the program. Programs of one folder mostly follow each other. */
static void hash_beside(struct lister *lister, struct catalog_file *file)
{
    const char *slash = strrchr(file->path, '/');
    size_t len = slash ? (size_t)(slash + 1 - file->path) : 0;
    if (len >= PATH_MAX) {
        return;
    }
    if (!lister->has_folder || strlen(lister->folder) != len ||
        memcmp(lister->folder, file->path, len) != 0) {
        memcpy(lister->folder, file->path, len);
        lister->folder[len] = '\0';
        lister->data = origin_hash_data(lister->folder);
        lister->beside = origin_hash_beside(file->path);
        lister->exported = origin_hash_exported(file->path);
        lister->has_folder = true;
    }
    file->id.beside = lister->beside;
    file->id.exported = lister->exported;
    file->id.words = origin_hash_words(
        file->path, options_find_tokenizer(lister->options, span_str(file->name)));
    const struct said_data said = find_said_data(lister->options, file->name);
    file->id.data = said.count > 0 ? said.hash : lister->data;
}

static enum status add(struct lister *lister, struct span name, uint32_t version, const char *path,
                       bool is_named, struct error *err)
{
    struct catalog *catalog = lister->catalog;
    OBJ_CHECK(catalog, CATALOG_MAGIC);
    if (catalog->count == FILES_MAX ||
        !ARRAY_ROOM(catalog->files, catalog->capacity, catalog->count + 1)) {
        return error_set(err, ST_EXHAUSTED, "models: no room for more than %u files",
                         catalog->count);
    }
    struct catalog_file file = {
        .name = arena_strdup(&catalog->arena, name.ptr, name.len),
        .path = arena_strdup(&catalog->arena, path, strlen(path)),
        .version = version,
        .is_named = is_named,
    };
    if (!file.name || !file.path) {
        return arena_fail(&catalog->arena, "the list of model files", err);
    }
    file.is_renamed = !is_named && !span_begins(span_str(lister->entry), file.name);
    file.error_number = origin_file_read(path, &file.id.program);
    if (!file.error_number) {
        hash_beside(lister, &file);
    }
    file.bytes = file.id.program.bytes;
    TRY(find_card(lister, &file, err));
    if (lister->options->params.model_bytes_max) {
        file.bytes += data_bytes(lister->options, &file);
    }
    catalog->files[catalog->count++] = file;
    return ST_OK;
}

/* A folder that has not one program now, although it had one at the start, is a file that is
 * missing, as one that is named itself. */
static enum status add_named(struct lister *lister, const struct option_model *model,
                             struct error *err)
{
    struct span name = options_model_name(model);
    char place[PATH_MAX], path[PATH_MAX];
    TRY(model_name_verify(name, err));
    TRY(catalog_place(lister->options, model->path, place, sizeof(place), err));
    if (beside_find_program(place, path, sizeof(path), err) != ST_OK && err->code != ST_NOT_FOUND) {
        return err->code;
    }
    return add(lister, name, 1, path, true, err);
}

/* ---- a folder -------------------------------------------------------------------------------- */

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int compare(const void *left, const void *right)
{
    const struct catalog_file *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    order = order != 0 ? order : (a->version < b->version) - (a->version > b->version);
    order = order != 0 ? order : a->is_renamed - b->is_renamed;
    return order != 0 ? order : strcmp(a->path, b->path);
}

/* Of the versions from the |first|th file on, the highest stay. */
static void keep_highest(struct lister *lister, uint32_t first)
{
    struct catalog *catalog = lister->catalog;
    uint32_t count = catalog->count - first;
    if (count == 0) {
        return;
    }
    struct params params =
        catalog_params(lister->options, NULL, span_str(catalog->files[first].name));
    if (params.version_count_max && count > params.version_count_max) {
        qsort(&catalog->files[first], count, sizeof(catalog->files[0]), compare);
        catalog->count = first + (uint32_t)params.version_count_max;
    }
}

/* |folder|/model.pte, or |folder|/VERSION/model.pte. */
static enum status scan_model(struct lister *lister, const char *folder, struct span name,
                              struct error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/model" SUFFIX, folder) >= PATH_MAX) {
        return ST_OK;
    }
    errno = 0;
    if (is_regular(path)) {
        return add(lister, name, 1, path, false, err);
    }
    bool is_closed = errno == EACCES; /* not to be entered, but its names may be read */
    DIR *dir = folder_open(folder);
    if (is_closed || (!dir && errno != ENOENT && errno != ENOTDIR)) {
        log_line(LOG_WARNING, "skipped %s: %s", folder, strerror(is_closed ? EACCES : errno));
    }
    enum status status = ST_OK;
    uint32_t first = lister->catalog->count;
    const char *listed = options_find_versions(lister->options, name);
    for (struct dirent *entry; dir && status == ST_OK && (entry = readdir(dir)) != NULL;) {
        uint32_t version;
        int len = snprintf(path, sizeof(path), "%s/%s/model" SUFFIX, folder, entry->d_name);
        if (len < PATH_MAX && model_name_parse_version(span_str(entry->d_name), &version) &&
            is_regular(path) && (!listed || options_lists_version(listed, version))) {
            status = add(lister, name, version, path, false, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    keep_highest(lister, first);
    return status;
}

static enum status scan_entry(struct lister *lister, const char *root, const char *name,
                              struct error *err)
{
    lister->entry = name;
    char path[PATH_MAX], text[MODEL_NAME_MAX + 1];
    if (name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", root, name) >= PATH_MAX) {
        return ST_OK;
    }
    size_t len = strlen(name), suffix = strlen(SUFFIX);
    if (len > suffix && strcmp(name + len - suffix, SUFFIX) == 0 && is_regular(path)) {
        return add(lister, model_name_of_file(name, text), 1, path, false, err);
    }
    return scan_model(lister, path, model_name_of_file(name, text), err);
}

static enum status scan(struct lister *lister, const char *root, struct error *err)
{
    DIR *dir = folder_open(root);
    const struct catalog_folders *folders = lister->folders;
    if (!dir && errno == ENOENT && folders->may_be_away(folders->owner, root)) {
        if (folders->are_told) {
            log_line(LOG_WARNING, "folder of models %s: %s; its models are loaded when it comes",
                     root, strerror(ENOENT));
        }
        return ST_OK;
    }
    if (!dir) {
        return error_set(err, status_of_errno(errno), "folder of models %s: %s", root,
                         strerror(errno));
    }
    enum status status = ST_OK;
    uint32_t first = lister->catalog->count;
    for (struct dirent *entry; status == ST_OK && (entry = readdir(dir)) != NULL;) {
        status = scan_entry(lister, root, entry->d_name, err);
    }
    closedir(dir);
    if (status == ST_OK && lister->catalog->count == first && folders->are_told) {
        log_line(LOG_WARNING,
                 "no .pte file in %s: expected NAME.pte, NAME/model.pte or NAME/VERSION/model.pte",
                 root);
    }
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Of files in folders that got their name here, those stay whose name no other file has. */
static void drop_namesakes(struct lister *lister)
{
    struct catalog *catalog = lister->catalog;
    uint32_t count = 0;
    for (uint32_t i = 0; i < catalog->count; i++) {
        const struct catalog_file *file = &catalog->files[i];
        const struct catalog_file *before = count > 0 ? &catalog->files[count - 1] : NULL;
        bool is_namesake = before && file->is_renamed && file->version == before->version &&
                           strcmp(file->name, before->name) == 0;
        if (is_namesake) {
            log_line(LOG_WARNING, "skipped %s: model '%s' is in %s", file->path, file->name,
                     before->path);
            continue;
        }
        if (file->is_renamed && lister->folders->are_told) {
            log_line(LOG_INFO, "%s: its model is called '%s'", file->path, file->name);
        }
        catalog->files[count++] = *file;
    }
    catalog->count = count;
}

enum status catalog_list(struct catalog *catalog, const struct options *options,
                         const struct catalog_folders *folders, struct error *err)
{
    struct lister lister = {.catalog = catalog, .options = options, .folders = folders};
    *catalog = (struct catalog){.magic = CATALOG_MAGIC};
    arena_init(&catalog->arena, ARENA_BYTES_MAX);
    for (uint32_t i = 0; i < options->model_count; i++) {
        TRY(add_named(&lister, &options->models[i], err));
    }
    for (uint32_t i = 0; i < options->folder_count; i++) {
        TRY(scan(&lister, options->folders[i], err));
    }
    if (catalog->count) {
        qsort(catalog->files, catalog->count, sizeof(catalog->files[0]), compare);
    }
    drop_namesakes(&lister);
    return ST_OK;
}

void catalog_fini(struct catalog *catalog)
{
    OBJ_CHECK(catalog, CATALOG_MAGIC);
    free(catalog->files);
    arena_fini(&catalog->arena);
    catalog->files = NULL;
    catalog->magic = 0;
}
