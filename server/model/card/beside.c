/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/card/beside.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/folder.h"
#include "server/process/yaml.h"

#define SUFFIX ".pte"
#define PROGRAM "model" SUFFIX

static const char *const names[BESIDE_FILES] = {
    [BESIDE_METADATA] = "metadata.yaml",
    [BESIDE_CONFIG] = "config.json",
    [BESIDE_PREPROCESSOR] = "preprocessor_config.json",
    [BESIDE_PROCESSOR] = "processor_config.json",
    [BESIDE_GENERATION] = "generation_config.json",
};

const char *beside_name(enum beside_file file)
{
    return names[file];
}

bool beside_path(const char *path, enum beside_file file, char *out, size_t size)
{
    return folder_beside(path, names[file], out, size);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void open_file(struct beside *beside, const char *path, enum beside_file file)
{
    const struct document_limits limits = {.bytes_max = BESIDE_BYTES_MAX,
                                           .values_max = BESIDE_VALUES_MAX};
    char at[PATH_MAX];
    struct error err = {.code = ST_OK};
    if (!beside_path(path, file, at, sizeof(at)) || access(at, F_OK) != 0) {
        return;
    }
    enum status status = file == BESIDE_METADATA
                             ? yaml_open(at, &limits, &beside->files[file], &err)
                             : document_open(at, &limits, &beside->files[file], &err);
    if (status != ST_OK) {
        beside->files[file].root = NULL;
        error_set(&beside->notes[file], status, "%s is left out: %s", names[file], err.text);
    }
}

bool beside_has_any(const char *path)
{
    for (int file = 0; file < BESIDE_FILES; file++) {
        char at[PATH_MAX];
        if (beside_path(path, (enum beside_file)file, at, sizeof(at)) && access(at, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

void beside_open(struct beside *beside, const char *path)
{
    *beside = (struct beside){.notes = {{.code = ST_OK}}};
    for (int file = 0; file < BESIDE_FILES; file++) {
        open_file(beside, path, (enum beside_file)file);
    }
}

void beside_close(struct beside *beside)
{
    for (int file = 0; file < BESIDE_FILES; file++) {
        if (beside->files[file].root) {
            document_close(&beside->files[file]);
            beside->files[file].root = NULL;
        }
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

static enum status join(const char *folder, const char *name, char *out, size_t size,
                        struct error *err)
{
    size_t len = strlen(folder);
    const char *slash = len > 0 && folder[len - 1] == '/' ? "" : "/";
    int written = snprintf(out, size, "%s%s%s", folder, slash, name);
    return written >= 0 && (size_t)written < size
               ? ST_OK
               : error_set(err, ST_INVALID, "%.160s...: the path is too long", folder);
}

/* transformers' exporter writes several programs, of which this one takes every step of a chat. */
static bool find_decode(const char *folder, char *out, size_t size)
{
    struct error ignored;
    struct stat about;
    return join(folder, "export.json", out, size, &ignored) == ST_OK && stat(out, &about) == 0 &&
           join(folder, "decode" SUFFIX, out, size, &ignored) == ST_OK && stat(out, &about) == 0;
}

/* The path of the only program in |folder|; "" if there are several or none. */
static enum status find_only(const char *folder, char *out, size_t size, struct error *err)
{
    DIR *dir = folder_open(folder);
    enum status status = ST_OK;
    uint32_t count = 0;
    out[0] = '\0';
    for (struct dirent *entry; dir && status == ST_OK && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.' && ends_with(entry->d_name, SUFFIX)) {
            status = ++count == 1 ? join(folder, entry->d_name, out, size, err) : ST_OK;
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (status == ST_OK && count != 1) {
        status = error_set(err, ST_NOT_FOUND,
                           "%.200s: a folder with %s, expected " PROGRAM " or one .pte file in it; "
                           "--models %.200s serves what is in it",
                           folder, count ? "several programs" : "no program", folder);
    }
    return status;
}

enum status beside_find_program(const char *path, char *out, size_t size, struct error *err)
{
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        int len = snprintf(out, size, "%s", path);
        return len >= 0 && (size_t)len < size
                   ? ST_OK
                   : error_set(err, ST_INVALID, "%.160s...: the path is too long", path);
    }
    TRY(join(path, PROGRAM, out, size, err));
    if (stat(out, &about) == 0 || find_decode(path, out, size)) {
        return ST_OK;
    }
    enum status status = find_only(path, out, size, err);
    if (status == ST_NOT_FOUND) {
        struct error ignored;
        enum status joined = join(path, PROGRAM, out, size, &ignored);
        must(joined == ST_OK); /* as it was above */
    }
    return status;
}
