/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/origin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "server/card/card.h"

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
    };
    return 0;
}

static bool is_same_file(const struct origin_file *a, const struct origin_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified_ns == b->modified_ns;
}

bool origin_id_equal(const struct origin_id *a, const struct origin_id *b)
{
    return is_same_file(&a->program, &b->program) && is_same_file(&a->card, &b->card);
}

enum status origin_new(struct span name, uint32_t version, const char *path,
                       struct origin **out_origin, struct error *err)
{
    struct origin *origin = calloc(1, sizeof(*origin));
    if (!origin) {
        return error_set(err, ST_EXHAUSTED, "models: out of memory");
    }
    origin->magic = ORIGIN_MAGIC;
    refs_init(&origin->refs);
    arena_init(&origin->arena, ARENA_BYTES_MAX);
    origin->version = version;
    origin->name = arena_strdup(&origin->arena, name.ptr, name.len);
    origin->path = path ? arena_strdup(&origin->arena, path, strlen(path)) : NULL;
    if (!origin->name || (path && !origin->path)) {
        origin_unref(origin);
        return error_set(err, ST_EXHAUSTED, "models: out of memory");
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
