/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/origin.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/folder.h"
#include "base/hash.h"
#include "server/language/exported.h"
#include "server/language/sidecar.h"
#include "server/model/card/beside.h"
#include "server/model/card/card.h"

#define ARENA_BYTES_MAX (32 << 20)
#define NS_PER_S 1000000000u

int origin_file_read(const char *path, struct origin_file *out_file)
{
    struct stat st;
    *out_file = (struct origin_file){0};
    if (stat(path, &st) < 0) {
        return errno;
    }
    *out_file = (struct origin_file){
        .device = st.st_dev,
        .inode = st.st_ino,
        .bytes = (uint64_t)st.st_size,
        .modified_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec,
        .is_readable = access(path, R_OK) == 0,
    };
    return 0;
}

static bool is_same_file(const struct origin_file *a, const struct origin_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified_ns == b->modified_ns && a->is_readable == b->is_readable;
}

bool origin_id_equal_alone(const struct origin_id *a, const struct origin_id *b)
{
    return is_same_file(&a->program, &b->program) && is_same_file(&a->card, &b->card) &&
           a->beside == b->beside && a->exported == b->exported;
}

bool origin_id_equal(const struct origin_id *a, const struct origin_id *b)
{
    return origin_id_equal_alone(a, b) && a->words == b->words && a->data == b->data;
}

/* ---- the files beside a program -------------------------------------------------------------- */

static uint64_t hash_file(const char *name, const struct origin_file *file)
{
    uint64_t hash = 0;
    for (const char *at = name; *at; at++) {
        hash = hash_mix(hash, (uint8_t)*at);
    }
    hash = hash_mix(hash_mix(hash_mix(hash, file->device), file->inode), file->bytes);
    return hash_mix(hash_mix(hash, file->modified_ns), file->is_readable);
}

uint64_t origin_hash_at(const char *path)
{
    struct origin_file file;
    return origin_file_read(path, &file) == 0 ? hash_file(path, &file) : 0;
}

uint64_t origin_hash_words(const char *program, const char *said)
{
    static const char *const names[] = {"tokenizer_config.json", "chat_template.jinja",
                                        "generation_config.json"};
    struct sidecars sidecars;
    struct error ignored;
    if (sidecar_init(&sidecars, program, said, &ignored) != ST_OK ||
        !sidecar_has_tokenizer(&sidecars)) {
        return 0;
    }
    uint64_t sum = origin_hash_at(sidecars.tokenizer);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_MAX];
        sidecar_find(&sidecars, names[i], path);
        sum += origin_hash_at(path);
    }
    return sum;
}

bool origin_is_in(const struct origin *origin, const char *folder)
{
    OBJ_CHECK(origin, ORIGIN_MAGIC);
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/') {
        len--;
    }
    return origin->path && strncmp(origin->path, folder, len) == 0 && origin->path[len] == '/';
}

uint64_t origin_hash_beside(const char *path)
{
    uint64_t sum = 0;
    for (int file = 0; file < BESIDE_FILES; file++) {
        char at[PATH_MAX];
        sum += beside_path(path, (enum beside_file)file, at, sizeof(at)) ? origin_hash_at(at) : 0;
    }
    return sum;
}

uint64_t origin_hash_exported(const char *path)
{
    char at[PATH_MAX];
    return folder_beside(path, EXPORTED_JSON, at, sizeof(at)) ? origin_hash_at(at) : 0;
}

uint64_t origin_hash_data(const char *folder)
{
    static const char suffix[] = ".ptd";
    uint64_t sum = 0; /* the order of the entries does not matter */
    DIR *dir = folder_open(*folder ? folder : ".");
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        size_t len = strlen(entry->d_name), end = strlen(suffix);
        if (entry->d_name[0] != '.' && len > end &&
            strcmp(entry->d_name + len - end, suffix) == 0) {
            char path[PATH_MAX];
            int size = snprintf(path, sizeof(path), "%s%s", folder, entry->d_name);
            sum += size < PATH_MAX ? origin_hash_at(path) : 0;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return sum;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status origin_new(struct span name, uint32_t version, const char *path,
                       struct origin **out_origin, struct error *err)
{
    struct origin *origin = calloc(1, sizeof(*origin));
    if (!origin) {
        return error_no_memory(err, "models");
    }
    origin->magic = ORIGIN_MAGIC;
    refs_init(&origin->refs);
    arena_init(&origin->arena, ARENA_BYTES_MAX);
    origin->version = version;
    origin->name = arena_strdup(&origin->arena, name.ptr, name.len);
    origin->path = path ? arena_strdup(&origin->arena, path, strlen(path)) : NULL;
    if (!origin->name || (path && !origin->path)) {
        origin_unref(origin);
        return error_no_memory(err, "models");
    }
    *out_origin = origin;
    return ST_OK;
}

struct origin *origin_ref(struct origin *origin)
{
    OBJ_CHECK(origin, ORIGIN_MAGIC);
    refs_take(&origin->refs);
    return origin;
}

void origin_unref(struct origin *origin)
{
    if (!origin) {
        return;
    }
    OBJ_CHECK(origin, ORIGIN_MAGIC);
    if (refs_drop(&origin->refs)) {
        origin->magic = 0;
        card_free(origin->card);
        arena_fini(&origin->arena);
        free(origin);
    }
}
