/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/ptd.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/list.h"
#include "runtime/pte/container.h"
#include "runtime/pte/decode.h"
#include "runtime/pte/file.h"
#include "runtime/pte/limits.h"
#include "runtime/pte/pte_priv.h"
#include "runtime/pte/recheck.h"
#include "runtime/pte/schema.h"

/* Byte positions, from ExecuTorch's extension/flat_tensor/serialize/flat_tensor_header.h. */
enum {
    AT_IDENTIFIER = 4,
    AT_HEADER = 8,
    AT_HEADER_BYTES = 12,
    AT_FLATBUFFER = 16,
    AT_FLATBUFFER_BYTES = 24,
    AT_SEGMENT_BASE = 32,
    AT_SEGMENT_BYTES = 40,
    HEADER_END = 48,
};
#define HEADER_BYTES_MIN 40
#define ROOT_VTABLE_BYTES_MAX                                                                      \
    10 /* three fields; before 0.7 there were five, under the same names */

#define PTD_FILE_MAGIC 0x97df11e5u

struct ptd_file {
    uint32_t magic;
    struct pte_file file;
    struct arena arena;
    struct pte_names names;
    struct list link; /* of |files|; in no list: its bytes came from memory */
    uint32_t uses;    /* guarded by |mutex|, like the descriptor of |file| */
    pthread_mutex_t digest_lock;
    struct rt_file_digest digest;
};

/* The files that are mapped. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list files = {&files, &files};

/* Where the tables end and the segments are. The tables are counted from byte 0. */
static enum status parse_header(struct span file, struct span *out_flatbuffer,
                                struct span *out_segments, struct error *err)
{
    if (file.len < AT_HEADER || memcmp(file.ptr + AT_IDENTIFIER, "FT01", 4) != 0) {
        return error_set(err, ST_CORRUPT,
                         "not a .ptd file: expected the identifier \"FT01\" at byte 4");
    }
    TRY(pte_check_end(file, HEADER_END, false, err));
    uint32_t header_bytes = load_le32(file.ptr + AT_HEADER_BYTES);
    if (memcmp(file.ptr + AT_HEADER, "FH01", 4) != 0 &&
        pte_is_other_version(file.ptr + AT_HEADER, "FH")) {
        return error_set(err, ST_UNSUPPORTED,
                         "unsupported header version: \"%.4s\" at byte 8, expected \"FH01\"",
                         (const char *)file.ptr + AT_HEADER);
    }
    if (memcmp(file.ptr + AT_HEADER, "FH01", 4) != 0 || header_bytes < HEADER_BYTES_MIN) {
        return error_set(err, ST_CORRUPT,
                         "header: expected \"FH01\" at byte 8 and a length of at least %d",
                         HEADER_BYTES_MIN);
    }
    uint64_t offset = load_le64(file.ptr + AT_FLATBUFFER);
    uint64_t size = load_le64(file.ptr + AT_FLATBUFFER_BYTES);
    uint64_t base = load_le64(file.ptr + AT_SEGMENT_BASE);
    uint64_t segment_bytes = load_le64(file.ptr + AT_SEGMENT_BYTES);
    uint64_t tables_end, segments_end;
    bool is_sane = size != 0 && !__builtin_add_overflow(offset, size, &tables_end) &&
                   !__builtin_add_overflow(base, segment_bytes, &segments_end);
    if (!is_sane || (segment_bytes != 0 && base < tables_end)) {
        return error_set(err, ST_CORRUPT,
                         "header: segments of %" PRIu64 " bytes at %" PRIu64
                         ", expected behind tables of %" PRIu64 " bytes at %" PRIu64,
                         segment_bytes, base, size, offset);
    }
    TRY(pte_check_end(file, segments_end > tables_end ? segments_end : tables_end, true, err));
    *out_flatbuffer = span_of(file.ptr, (size_t)tables_end);
    *out_segments =
        segment_bytes ? span_of(file.ptr + base, (size_t)segment_bytes) : span_of(NULL, 0);
    return ST_OK;
}

static enum status decode(struct ptd_file *file, struct error *err)
{
    struct pte_decoder decoder = {.arena = &file->arena};
    struct span flatbuffer, segments;
    struct flatbuf_table root;
    uint32_t version = 0;
    TRY(parse_header(file->file.bytes, &flatbuffer, &segments, err));
    TRY(flatbuf_init(&decoder.fb, flatbuffer, err));
    uint64_t max = flatbuffer.len * (uint64_t)PTE_DECODED_PER_BYTE + PTE_DECODED_MIN;
    arena_init(&file->arena, max < PTE_DECODED_MAX ? (size_t)max : (size_t)PTE_DECODED_MAX);
    TRY(flatbuf_root(&decoder.fb, &root, err));
    if (root.vtable_bytes > ROOT_VTABLE_BYTES_MAX) {
        return error_set(err, ST_UNSUPPORTED,
                         "a .ptd file of another schema (ExecuTorch before 0.7?): export it again");
    }
    TRY(flatbuf_u32(&decoder.fb, &root, flat_version, &version, err));
    if (version != 0) {
        return error_set(err, ST_UNSUPPORTED, "version: %" PRIu32 ", expected 0", version);
    }
    TRY(pte_decode_segments(&decoder, &root, flat_segments, segments, err));
    return pte_decode_names(&decoder, &root, flat_named_data, &file->names, err);
}

/* Takes over |from|, also in failure. */
static enum status parse_ptd(struct pte_file *from, struct ptd_file **out_file, struct error *err)
{
    struct ptd_file *file = calloc(1, sizeof(*file));
    if (!file) {
        pte_file_unmap(from);
        return error_no_memory(err, "a data file");
    }
    file->magic = PTD_FILE_MAGIC;
    file->file = *from;
    file->uses = 1;
    list_init(&file->link);
    must(pthread_mutex_init(&file->digest_lock, NULL) == 0);
    if (decode(file, err) != ST_OK) {
        ptd_free(file);
        return err->code;
    }
    *out_file = file;
    return ST_OK;
}

/* One more use of the file that |from| is, which is unmapped then; NULL: nobody has it. */
static struct ptd_file *find_open(struct pte_file *from)
{
    struct ptd_file *found = NULL;
    pthread_mutex_lock(&mutex);
    for (struct list *at = files.next; at != &files && !found; at = at->next) {
        struct ptd_file *file = LIST_ENTRY(at, struct ptd_file, link);
        if (pte_file_is_same(&file->file, from)) {
            if (file->file.fd < 0) {
                pte_file_recall(&file->file, from);
            }
            found = file;
            found->uses++;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (found) {
        pte_file_unmap(from);
    }
    return found;
}

enum status ptd_open(const char *path, enum pte_file_use use, struct ptd_file **out_file,
                     struct error *err)
{
    struct error local = {0};
    struct pte_file file;
    err = err ? err : &local;
    TRY(pte_file_open(path, use, &file, err));
    *out_file = find_open(&file);
    if (*out_file) {
        return ST_OK;
    }
    if (parse_ptd(&file, out_file, err) != ST_OK) {
        return error_prefix(err, "%.160s: ", path);
    }
    pthread_mutex_lock(&mutex);
    list_push_back(&files, &(*out_file)->link);
    pthread_mutex_unlock(&mutex);
    return ST_OK;
}

enum status ptd_parse(struct span bytes, struct ptd_file **out_file, struct error *err)
{
    struct error local = {0};
    struct pte_file file;
    pte_file_borrow(&file, bytes);
    return parse_ptd(&file, out_file, err ? err : &local);
}

static void free_file(struct ptd_file *file)
{
    file->magic = 0;
    arena_fini(&file->arena);
    rt_recheck_free(file->digest.recheck);
    pthread_mutex_destroy(&file->digest_lock);
    pte_file_unmap(&file->file);
    free(file);
}

void ptd_free(struct ptd_file *file)
{
    if (!file) {
        return;
    }
    OBJ_CHECK(file, PTD_FILE_MAGIC);
    pthread_mutex_lock(&mutex);
    must(file->uses > 0);
    bool is_last = --file->uses == 0;
    if (is_last) {
        list_remove(&file->link);
    }
    pthread_mutex_unlock(&mutex);
    if (is_last) {
        free_file(file);
    }
}

void ptd_forget(struct ptd_file *file)
{
    OBJ_CHECK(file, PTD_FILE_MAGIC);
    pthread_mutex_lock(&mutex);
    if (file->uses == 1) {
        pte_file_forget(&file->file);
    }
    pthread_mutex_unlock(&mutex);
}

const struct pte_names *ptd_names(const struct ptd_file *file)
{
    OBJ_CHECK(file, PTD_FILE_MAGIC);
    return &file->names;
}

struct pte_file *ptd_file_of(struct ptd_file *file)
{
    OBJ_CHECK(file, PTD_FILE_MAGIC);
    return &file->file;
}

struct rt_file_digest *ptd_lock_digest(struct ptd_file *file)
{
    OBJ_CHECK(file, PTD_FILE_MAGIC);
    pthread_mutex_lock(&file->digest_lock);
    return &file->digest;
}

void ptd_unlock_digest(struct ptd_file *file)
{
    OBJ_CHECK(file, PTD_FILE_MAGIC);
    pthread_mutex_unlock(&file->digest_lock);
}
