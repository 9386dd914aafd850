/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/folder.h"
#include "hal/buffer.h"
#include "hal/command.h"
#include "runtime/pte/file.h"
#include "runtime/pte/file_digest.h"
#include "runtime/pte/packed.h"
#include "runtime/pte/recheck.h"
#include "runtime/pte/seen.h"

#define PATHS_BYTES_MAX (1 << 20)
#define SEARCHED_TEXT_MAX 160
#define KEY_SHOWN_MAX 100
#define DEFAULT_NAME "_default_external_constant.ptd"

/*
 * Binds a mapping to the device, which gets a copy of bytes that it cannot use in place. The const
 * is removed here and nowhere else: the buffer is read-only, and recording a write to it is an
 * invariant violation.
 */
static enum status import_bytes(struct rt_files *files, struct span bytes,
                                struct hal_buffer **out_buffer, struct error *err)
{
    union {
        const uint8_t *from;
        void *to;
    } cast = {.from = bytes.ptr};
    enum status status =
        hal_buffer_import_final(files->device, cast.to, bytes.len, out_buffer, err);
    if (status == ST_UNSUPPORTED) {
        TRY(hal_buffer_new_constant(files->device, bytes.len, out_buffer, err));
        memcpy(hal_buffer_map(*out_buffer), bytes.ptr, bytes.len);
        hal_buffer_freeze(*out_buffer);
        return ST_OK;
    }
    return status;
}

static enum status add_data(struct rt_files *files, const char *folder, const char *name,
                            struct error *err)
{
    size_t folder_len = strlen(folder), len = strlen(name);
    if (files->data_count == RT_DATA_FILES_MAX) {
        return error_set(err, ST_TOO_LARGE, "more than %d data files: name those that are meant",
                         RT_DATA_FILES_MAX);
    }
    char *path = arena_alloc(&files->arena, folder_len + len + 1);
    if (!path) {
        return error_no_memory(err, "the files of a program");
    }
    memcpy(path, folder, folder_len);
    memcpy(path + folder_len, name, len + 1);
    files->data[files->data_count++].path = path;
    return ST_OK;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* STEM.ptd, or STEM.anything.ptd. */
static bool is_named_after(const char *name, struct span stem)
{
    return ends_with(name, ".ptd") && strlen(name) > stem.len &&
           memcmp(name, stem.ptr, stem.len) == 0 && name[stem.len] == '.';
}

/* The place in the search order: 1 to 3 as in the header; 0: not searched. */
static int rank_of(const char *name, struct span stem, bool is_alone)
{
    if (is_named_after(name, stem)) {
        return 1;
    }
    if (strcmp(name, DEFAULT_NAME) == 0) {
        return 2;
    }
    return is_alone && ends_with(name, ".ptd") ? 3 : 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct listing {
    const char *names[RT_DATA_FILES_MAX]; /* of .ptd files */
    uint32_t count, programs;             /* programs: .pte files */
};

static enum status list_folder(struct rt_files *files, DIR *dir, struct listing *listing,
                               struct error *err)
{
    uint32_t seen = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (++seen > RT_FOLDER_ENTRIES_MAX) {
            return error_set(err, ST_TOO_LARGE,
                             "a folder of more than %d files is not searched: name the data files",
                             RT_FOLDER_ENTRIES_MAX);
        }
        listing->programs += ends_with(entry->d_name, ".pte");
        if (!ends_with(entry->d_name, ".ptd")) {
            continue;
        }
        if (listing->count == RT_DATA_FILES_MAX) {
            return error_set(err, ST_TOO_LARGE,
                             "more than %d data files in a folder: name those that are meant",
                             RT_DATA_FILES_MAX);
        }
        const char *name = arena_strdup(&files->arena, entry->d_name, strlen(entry->d_name));
        if (!name) {
            return error_no_memory(err, "the files of a program");
        }
        listing->names[listing->count++] = name;
    }
    qsort(listing->names, listing->count, sizeof(listing->names[0]), compare_names);
    return ST_OK;
}

static enum status add_found(struct rt_files *files, const char *folder, struct span stem,
                             const struct listing *listing, struct error *err)
{
    for (int rank = 1; rank <= 3; rank++) {
        for (uint32_t i = 0; i < listing->count; i++) {
            if (rank_of(listing->names[i], stem, listing->programs == 1) == rank) {
                TRY(add_data(files, folder, listing->names[i], err));
            }
        }
    }
    return ST_OK;
}

/* Called once: makes a list of data files from the folder. */
static enum status search(struct rt_files *files, struct error *err)
{
    const char *path = files->path, *slash = strrchr(path, '/');
    struct span stem = span_str(slash ? slash + 1 : path);
    const char *folder = slash ? arena_strdup(&files->arena, path, (size_t)(slash - path) + 1) : "";
    struct listing listing = {.count = 0};
    files->path = NULL;
    if (!folder) {
        return error_no_memory(err, "the files of a program");
    }
    stem.len -= ends_with((const char *)stem.ptr, ".pte") ? strlen(".pte") : 0;
    DIR *dir = folder_open(slash ? folder : ".");
    if (!dir) {
        return ST_OK; /* there is nothing to find: the error will say so */
    }
    enum status status = list_folder(files, dir, &listing, err);
    closedir(dir);
    return status == ST_OK ? add_found(files, folder, stem, &listing, err) : status;
}

/* ---- digests --------------------------------------------------------------------------------- */

/* Takes the digest that an earlier load has found, and has it checked in the background. */
static bool believe(struct rt_file_digest *digest, const struct pte_file *file, const char *folder)
{
    char record[PATH_MAX];
    if (rt_seen_find(file, folder, digest->words, record)) {
        digest->recheck = rt_recheck_start(file, digest->words, record);
    }
    digest->is_known = digest->recheck != NULL;
    return digest->is_known;
}

/* Reads the whole file: fingerprints of rounds have no bytes of constants that lie in it. */
static enum status compute(struct rt_file_digest *digest, struct hal_device *device,
                           struct hal_buffer *buffer, struct error *err)
{
    TRY(rt_file_digest(device, buffer, digest->words, err));
    digest->is_known = true;
    return ST_OK;
}

/* May a program whose packed weights are in |state| rely on it? What is written must not follow
 * from a digest that nobody has checked. */
static bool suffices(const struct rt_file_digest *digest, enum rt_packed_state state)
{
    struct error ignored;
    return digest->is_known &&
           (!digest->recheck ||
            (state == RT_PACKED_READING && rt_recheck_verify(digest->recheck, &ignored) == ST_OK));
}

static enum status find_digest(const struct rt_files *files, const struct rt_data_file *data,
                               struct rt_file_digest *digest, struct error *err)
{
    struct pte_file *file = ptd_file_of(data->ptd);
    enum rt_packed_state state = rt_packed_state(files->packed);
    if (suffices(digest, state)) {
        return ST_OK;
    }
    rt_recheck_free(digest->recheck);
    *digest = (struct rt_file_digest){.is_known = false};
    if (state == RT_PACKED_READING && believe(digest, file, files->packed_folder)) {
        return ST_OK;
    }
    TRY(compute(digest, files->device, data->buffer, err));
    rt_seen_keep(file, files->packed_folder, digest->words);
    return ST_OK;
}

/* The users of a data file share its digest. */
static enum status digest_data(const struct rt_files *files, struct rt_data_file *data,
                               struct error *err)
{
    if (rt_packed_state(files->packed) == RT_PACKED_BROKEN) {
        return ST_OK;
    }
    struct rt_file_digest *shared = ptd_lock_digest(data->ptd);
    enum status status = find_digest(files, data, shared, err);
    if (status == ST_OK) {
        data->digest = *shared;
        rt_recheck_ref(data->digest.recheck);
    }
    ptd_unlock_digest(data->ptd);
    return status;
}

/* Opens the packed weights of a program's file that an earlier load has read. False: it has to be
 * read. */
static bool open_believed(struct rt_files *files, const char *machine)
{
    struct error ignored;
    const struct pte_file *file = pte_file_of(files->pte);
    if (!believe(&files->digest, file, files->packed_folder)) {
        return false;
    }
    if (rt_packed_open(files->packed_folder, files->digest.words, machine, &files->packed,
                       &ignored) == ST_OK &&
        rt_packed_state(files->packed) == RT_PACKED_READING) {
        return true;
    }
    rt_packed_free(files->packed);
    files->packed = NULL;
    rt_recheck_free(files->digest.recheck);
    files->digest = (struct rt_file_digest){.is_known = false};
    return false;
}

static enum status open_packed(struct rt_files *files, const char *machine, struct error *err)
{
    if (open_believed(files, machine)) {
        return ST_OK;
    }
    TRY(compute(&files->digest, files->device, files->buffer, err));
    TRY(rt_packed_open(files->packed_folder, files->digest.words, machine, &files->packed, err));
    if (rt_packed_state(files->packed) != RT_PACKED_BROKEN) {
        rt_seen_keep(pte_file_of(files->pte), files->packed_folder, files->digest.words);
    }
    return ST_OK;
}

enum status rt_files_keep_packed(struct rt_files *files, const char *folder, const char *machine,
                                 struct error *err)
{
    must(!files->packed);
    files->packed_folder = arena_strdup(&files->arena, folder, strlen(folder));
    if (!files->packed_folder) {
        return error_no_memory(err, "the files of a program");
    }
    TRY(open_packed(files, machine, err));
    for (uint32_t i = 0; i < files->data_count; i++) {
        if (files->data[i].ptd) {
            TRY(digest_data(files, &files->data[i], err));
        }
    }
    return ST_OK;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static enum status open_data(struct rt_files *files, struct rt_data_file *data, struct error *err)
{
    struct ptd_file *ptd;
    TRY(ptd_open(data->path, files->use, &ptd, err));
    enum status status = import_bytes(files, ptd_file_of(ptd)->bytes, &data->buffer, err);
    if (status != ST_OK) {
        ptd_free(ptd);
        return status;
    }
    data->ptd = ptd;
    return files->packed ? digest_data(files, data, err) : ST_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* As many of the names as fit. */
static enum status not_found(const struct rt_files *files, struct span key, struct error *err)
{
    char text[SEARCHED_TEXT_MAX] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < files->data_count && len < sizeof(text); i++) {
        int added = snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "",
                             base_name(files->data[i].path));
        len += added > 0 ? (size_t)added : 0;
    }
    return error_set(err, ST_NOT_FOUND, "no data file has '%.*s': %s%s",
                     (int)(key.len < KEY_SHOWN_MAX ? key.len : KEY_SHOWN_MAX),
                     (const char *)key.ptr,
                     files->data_count ? "looked into " : "none is beside the program", text);
}

enum status rt_files_find(struct rt_files *files, struct span key,
                          const struct pte_named_data **out_data, struct error *err)
{
    const struct pte_named_data *found = pte_names_find(pte_named_data(files->pte), key);
    if (!found && files->path) {
        TRY(search(files, err));
    }
    for (uint32_t i = 0; i < files->data_count && !found; i++) {
        struct rt_data_file *data = &files->data[i];
        if (!data->ptd) {
            TRY(open_data(files, data, err));
        }
        found = pte_names_find(ptd_names(data->ptd), key);
    }
    if (!found) {
        return not_found(files, key, err);
    }
    *out_data = found;
    return ST_OK;
}

static enum status find_tensor(void *user, const char *key, const struct pte_named_data **out_data,
                               struct error *err)
{
    return rt_files_find(user, span_str(key), out_data, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum status open_program(struct rt_files *files, const struct rt_files_source *source,
                                struct error *err)
{
    return source->path ? pte_open(source->path, source->use, &files->pte, err)
                        : pte_parse(source->bytes, source->use, &files->pte, err);
}

enum status rt_files_open(struct rt_files *files, struct hal_device *device,
                          const struct rt_files_source *source, struct error *err)
{
    *files = (struct rt_files){.device = device, .use = source->use};
    arena_init(&files->arena, PATHS_BYTES_MAX);
    TRY(open_program(files, source, err));
    TRY(import_bytes(files, pte_file_of(files->pte)->bytes, &files->buffer, err));
    for (uint32_t i = 0; i < source->data_count; i++) {
        TRY(add_data(files, "", source->data_paths[i], err));
        TRY(open_data(files, &files->data[i], err));
    }
    if (source->data_count == 0 && source->path) {
        files->path = arena_strdup(&files->arena, source->path, strlen(source->path));
        if (!files->path) {
            return error_no_memory(err, "the files of a program");
        }
    }
    return pte_link(files->pte, find_tensor, files, err);
}

void rt_files_fini(struct rt_files *files)
{
    for (uint32_t i = 0; i < files->data_count; i++) {
        hal_buffer_unref(files->data[i].buffer);
        rt_recheck_free(files->data[i].digest.recheck);
        ptd_free(files->data[i].ptd);
    }
    hal_buffer_unref(files->buffer);
    rt_recheck_free(files->digest.recheck);
    rt_packed_free(files->packed);
    pte_free(files->pte);
    arena_fini(&files->arena);
}

static bool holds(struct span file, const uint8_t *bytes)
{
    return bytes >= file.ptr && bytes < file.ptr + file.len;
}

bool rt_files_are_own(const struct rt_files *files, struct span bytes)
{
    return files && files->pte && holds(pte_file_of(files->pte)->bytes, bytes.ptr);
}

static bool place_in(const struct pte_file *file, struct span bytes,
                     struct rt_file_place *out_place)
{
    if (file->number == 0 || !holds(file->bytes, bytes.ptr)) {
        return false;
    }
    *out_place = (struct rt_file_place){file->number, (uint64_t)(bytes.ptr - file->bytes.ptr)};
    return true;
}

bool rt_files_place(const struct rt_files *files, struct span bytes,
                    struct rt_file_place *out_place)
{
    bool is_found = files && files->pte && place_in(pte_file_of(files->pte), bytes, out_place);
    for (uint32_t i = 0; files && !is_found && i < files->data_count; i++) {
        const struct rt_data_file *data = &files->data[i];
        is_found = data->ptd && place_in(ptd_file_of(data->ptd), bytes, out_place);
    }
    return is_found;
}

bool rt_files_data_place(const struct rt_files *files, struct span bytes,
                         struct rt_data_place *out_place)
{
    for (uint32_t i = 0; files && i < files->data_count; i++) {
        const struct rt_data_file *data = &files->data[i];
        if (data->digest.is_known && holds(ptd_file_of(data->ptd)->bytes, bytes.ptr)) {
            *out_place = (struct rt_data_place){
                .file = {data->digest.words[0], data->digest.words[1]},
                .offset = (uint64_t)(bytes.ptr - ptd_file_of(data->ptd)->bytes.ptr),
            };
            return true;
        }
    }
    return false;
}

void rt_files_locate(const struct rt_files *files, const uint8_t *bytes,
                     struct hal_binding *out_binding)
{
    struct span file = pte_file_of(files->pte)->bytes;
    out_binding->buffer = files->buffer;
    for (uint32_t i = 0; i < files->data_count && !holds(file, bytes); i++) {
        if (files->data[i].ptd) {
            file = ptd_file_of(files->data[i].ptd)->bytes;
            out_binding->buffer = files->data[i].buffer;
        }
    }
    must(holds(file, bytes));
    out_binding->offset = (size_t)(bytes - file.ptr);
}

/* ---- changes of the files -------------------------------------------------------------------- */

void rt_files_note_use(struct rt_files *files, struct span bytes)
{
    if (bytes.len == 0) {
        return;
    }
    files->is_used |= holds(pte_file_of(files->pte)->bytes, bytes.ptr);
    for (uint32_t i = 0; i < files->data_count; i++) {
        struct rt_data_file *data = &files->data[i];
        data->is_used |= data->ptd && holds(ptd_file_of(data->ptd)->bytes, bytes.ptr);
    }
}

static enum status verify_digest(const struct rt_file_digest *digest, struct error *err)
{
    return digest->recheck ? rt_recheck_verify(digest->recheck, err) : ST_OK;
}

enum status rt_files_verify(const struct rt_files *files, struct error *err)
{
    if (files->pte) { /* a pipeline has no file */
        TRY(pte_file_verify(pte_file_of(files->pte), err));
    }
    TRY(verify_digest(&files->digest, err));
    for (uint32_t i = 0; i < files->data_count; i++) {
        const struct rt_data_file *data = &files->data[i];
        if (data->ptd && (data->is_used || !files->is_settled)) {
            TRY(pte_file_verify(ptd_file_of(data->ptd), err));
        }
        TRY(verify_digest(&data->digest, err));
    }
    return files->packed ? rt_packed_verify(files->packed, err) : ST_OK;
}

void rt_files_release(const struct rt_files *files)
{
    if (files->pte) {
        pte_file_release(pte_file_of(files->pte));
    }
    for (uint32_t i = 0; i < files->data_count; i++) {
        if (files->data[i].ptd) {
            pte_file_release(ptd_file_of(files->data[i].ptd));
        }
    }
}

/* Waits until each digest that was believed has been checked. */
static bool are_digests_right(struct rt_files *files)
{
    bool are_right = !files->digest.recheck || rt_recheck_wait(files->digest.recheck);
    for (uint32_t i = 0; are_right && i < files->data_count; i++) {
        struct rt_recheck *recheck = files->data[i].digest.recheck;
        are_right = !recheck || rt_recheck_wait(recheck);
    }
    return are_right;
}

enum status rt_files_settle(struct rt_files *files, struct error *err)
{
    if (files->packed && rt_packed_state(files->packed) == RT_PACKED_WRITING &&
        !are_digests_right(files)) { /* what is written follows from them */
        rt_packed_abandon(files->packed, "a file of the program has no certain digest");
    }
    TRY(rt_files_verify(files, err));
    if (files->packed) {
        rt_packed_settle(files->packed);
    }
    rt_files_release(files);
    if (!files->is_used) {
        pte_file_forget(pte_file_of(files->pte));
    }
    for (uint32_t i = 0; i < files->data_count; i++) {
        if (files->data[i].ptd && !files->data[i].is_used) {
            ptd_forget(files->data[i].ptd);
        }
    }
    files->is_settled = true;
    return ST_OK;
}
