/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_id.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/list.h"
#include "base/refs.h"
#include "hal/buffer.h"
#include "runtime/pte/file.h"
#include "runtime/pte/kept.h"

/* The first words of a file; the number changes with the format. */
#define MAGIC 0x324b43504445544cu
#define ROUNDS_MAX (1u << 16)
#define PARTS_MAX (1u << 20)
#define NAME_BUCKETS 1024
#define REFERENCES_MAX 64
#define REFERRED_MIN 4096                 /* bytes of a result; smaller ones are stored again */
#define WRITE_BYTES_MAX ((size_t)1 << 30) /* of one write(2) */

struct header {
    uint64_t magic;
    uint64_t table; /* its offset: rounds, parts, references, up to the end of the file */
    uint64_t round_count, part_count;
    uint64_t digest[2]; /* of the table */
    uint64_t reference_count;
    uint64_t unused;
};

_Static_assert(sizeof(struct header) == RT_PACKED_ALIGN, "parts begin behind it");

struct round {
    uint64_t fingerprint[2];
    uint64_t first, count; /* of parts */
};

struct part {
    uint64_t offset, bytes;
    uint64_t file; /* 0: this one; else reference |file| - 1 */
};

/* Another file of the folder, in which parts lie. */
struct reference {
    char name[112];
    uint64_t digest[2]; /* of its table: it is still the same file */
};

/* What tells that a result is one of the parts. */
struct part_name {
    uint64_t words[4];
    uint64_t next; /* the part + 1 before it in its bucket; 0: none */
};

struct rt_packed {
    enum rt_packed_state state;
    struct error error; /* BROKEN */
    char path[PATH_MAX], new_path[PATH_MAX];
    struct refs refs;          /* of its program, of buffers over the mapping */
    uint32_t taken;            /* rounds */
    struct rt_packed **others; /* owned, refs held: rt_packed_rely_on() */
    uint32_t other_count;
    uint64_t mapped_digest[2];  /* of the table of the file that is mapped */
    uint64_t written_digest[2]; /* of the one that was written; fixed before it is in |written| */
    /* READING, and as long as results are in use */
    struct pte_file file;
    const struct round *rounds; /* in the mapping, like |parts| */
    const struct part *parts;
    const struct reference *references;
    uint64_t round_count, reference_count;
    struct rt_packed *referred[REFERENCES_MAX]; /* among |others| */
    /* WRITING, and what was written */
    struct list link; /* of |written| */
    int fd;           /* -1: nothing has been written yet */
    uint64_t end;
    struct round *new_rounds;       /* owned */
    struct part *new_parts;         /* owned */
    struct part_name *new_names;    /* owned; of the parts */
    uint64_t buckets[NAME_BUCKETS]; /* of names: the newest part + 1 in each; 0: none */
    struct reference new_references[REFERENCES_MAX];
    uint64_t new_round_count, new_part_count, new_reference_count;
};

/* Those of loaded programs whose files were written by this process. Their parts do not change any
 * more. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list written = {&written, &written};

/* ---- names ----------------------------------------------------------------------------------- */

static void give_up(struct rt_packed *packed, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The file cannot be used. The part that was written is removed. */
static void give_up(struct rt_packed *packed, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    error_set(&packed->error, ST_UNAVAILABLE, "packed weights: %s", text);
    packed->state = RT_PACKED_BROKEN;
    if (packed->fd >= 0) {
        close(packed->fd);
        unlink(packed->new_path);
        packed->fd = -1;
    }
}

static bool make_folder(struct rt_packed *packed, const char *folder)
{
    struct stat st;
    if (mkdir(folder, S_IRWXU) < 0 && errno != EEXIST) {
        give_up(packed, "%.160s: %s", folder, strerror(errno));
    } else if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode)) {
        give_up(packed, "%.160s: expected a folder", folder);
    } else if (!rt_kept_is_private(&st)) {
        give_up(packed, "%.160s: expected a folder that only its owner can write to", folder);
    }
    return packed->state != RT_PACKED_BROKEN;
}

/* FOLDER/PROGRAM-MACHINE.packed */
static bool name_file(struct rt_packed *packed, const char *folder, const uint64_t program[2],
                      const char *machine)
{
    struct span id = build_id();
    struct digest digest;
    uint64_t of_machine[2];
    if (id.len == 0) {
        give_up(packed, "this program was linked without --build-id");
        return false;
    }
    digest_init(&digest);
    digest_add(&digest, id);
    digest_add_text(&digest, machine);
    digest_end(&digest, of_machine);
    int len = snprintf(packed->path, sizeof(packed->path),
                       "%s/%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 RT_KEPT_PACKED, folder,
                       program[0], program[1], of_machine[0]);
    if (len < 0 || (size_t)len >= sizeof(packed->path) ||
        !rt_kept_name_new(packed->path, packed->new_path, sizeof(packed->new_path))) {
        give_up(packed, "%.160s: the name is too long", folder);
        return false;
    }
    return true;
}

static void unref(void *arg)
{
    struct rt_packed *packed = arg;
    if (refs_drop(&packed->refs)) {
        pte_file_unmap(&packed->file);
        free(packed);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Of a table that has been found to lie in memory. */
static void digest_table(const struct header *header, const struct round *rounds,
                         const struct part *parts, const struct reference *references,
                         uint64_t out[2])
{
    struct digest digest;
    digest_init(&digest);
    digest_add(&digest, span_of(rounds, (size_t)header->round_count * sizeof(*rounds)));
    digest_add(&digest, span_of(parts, (size_t)header->part_count * sizeof(*parts)));
    digest_add(&digest, span_of(references, (size_t)header->reference_count * sizeof(*references)));
    digest_end(&digest, out);
}

/* Maps the file |packed|->path, if it is private and has this format. */
static bool map_file(struct rt_packed *packed, struct header *out_header)
{
    struct error ignored;
    struct stat st;
    if (pte_file_open(packed->path, PTE_FILE_GUARDED, &packed->file, &ignored) != ST_OK) {
        return false;
    }
    struct span bytes = packed->file.bytes;
    if (fstat(packed->file.fd, &st) == 0 && rt_kept_is_private(&st) &&
        bytes.len >= sizeof(*out_header)) {
        memcpy(out_header, bytes.ptr, sizeof(*out_header));
        memcpy(packed->mapped_digest, out_header->digest, sizeof(packed->mapped_digest));
        return out_header->magic == MAGIC;
    }
    return false;
}

/* FOLDER/|name| in the folder of |packed|. */
static bool name_beside(const struct rt_packed *packed, const char *name, char out[PATH_MAX])
{
    const char *slash = strrchr(packed->path, '/');
    int len = snprintf(out, PATH_MAX, "%.*s/%s", (int)(slash - packed->path), packed->path, name);
    return len >= 0 && len < PATH_MAX && !strchr(name, '/') && ends_with(name, RT_KEPT_PACKED);
}

/* The file of a reference becomes one of |packed|->others. NULL: it is not there any more. */
static struct rt_packed *open_reference(struct rt_packed *packed, const struct reference *reference)
{
    struct header header;
    struct rt_packed *other = calloc(1, sizeof(*other));
    if (!other) {
        return NULL;
    }
    refs_init(&other->refs);
    list_init(&other->link);
    other->fd = other->file.fd = -1;
    other->state = RT_PACKED_DONE;
    bool is_there = memchr(reference->name, 0, sizeof(reference->name)) &&
                    name_beside(packed, reference->name, other->path) && map_file(other, &header) &&
                    memcmp(header.digest, reference->digest, sizeof(header.digest)) == 0 &&
                    rt_packed_rely_on(packed, other);
    unref(other); /* the list has one */
    return is_there ? other : NULL;
}

static bool open_references(struct rt_packed *packed)
{
    for (uint64_t i = 0; i < packed->reference_count; i++) {
        packed->referred[i] = open_reference(packed, &packed->references[i]);
        if (!packed->referred[i]) {
            return false;
        }
    }
    return true;
}

/* Does each part lie in its file? |end|: of the parts in this one. */
static bool parts_are_there(const struct rt_packed *packed, uint64_t part_count, uint64_t end)
{
    for (uint64_t i = 0; i < part_count; i++) {
        const struct part *part = &packed->parts[i];
        if (part->offset % RT_PACKED_ALIGN || part->file > packed->reference_count) {
            return false;
        }
        uint64_t size = part->file ? packed->referred[part->file - 1]->file.bytes.len : end;
        if (!in_range(part->offset, part->bytes, size)) {
            return false;
        }
    }
    for (uint64_t i = 0; i < packed->round_count; i++) {
        if (!in_range(packed->rounds[i].first, packed->rounds[i].count, part_count)) {
            return false;
        }
    }
    return true;
}

/* Is the mapping a whole file? Then its table can be used. */
static bool read_table(struct rt_packed *packed, const struct header *header)
{
    struct span bytes = packed->file.bytes;
    uint64_t digest[2];
    if (header->table % RT_PACKED_ALIGN || header->round_count > ROUNDS_MAX ||
        header->part_count > PARTS_MAX || header->reference_count > REFERENCES_MAX) {
        return false;
    }
    uint64_t size = header->round_count * sizeof(struct round) +
                    header->part_count * sizeof(struct part) +
                    header->reference_count * sizeof(struct reference);
    if (!in_range(header->table, size, bytes.len)) {
        return false;
    }
    packed->rounds = (const void *)(bytes.ptr + header->table);
    packed->parts = (const void *)(packed->rounds + header->round_count);
    packed->references = (const void *)(packed->parts + header->part_count);
    packed->round_count = header->round_count;
    packed->reference_count = header->reference_count;
    digest_table(header, packed->rounds, packed->parts, packed->references, digest);
    return memcmp(digest, header->digest, sizeof(digest)) == 0 && open_references(packed) &&
           parts_are_there(packed, header->part_count, header->table);
}

static void drop_others(struct rt_packed *packed)
{
    while (packed->other_count > 0) {
        unref(packed->others[--packed->other_count]);
    }
}

/* A file that is not there, or damaged, is written anew. */
static void open_file(struct rt_packed *packed)
{
    struct header header;
    if (map_file(packed, &header) && read_table(packed, &header)) {
        packed->state = RT_PACKED_READING;
    } else {
        drop_others(packed);
        pte_file_unmap(&packed->file);
    }
}

enum status rt_packed_open(const char *folder, const uint64_t program[2], const char *machine,
                           struct rt_packed **out_packed, struct error *err)
{
    struct rt_packed *packed = calloc(1, sizeof(*packed));
    if (!packed) {
        return error_no_memory(err, "packed weights");
    }
    refs_init(&packed->refs);
    list_init(&packed->link);
    packed->fd = packed->file.fd = -1;
    packed->state = RT_PACKED_WRITING;
    if (make_folder(packed, folder) && name_file(packed, folder, program, machine)) {
        open_file(packed);
    }
    *out_packed = packed;
    return ST_OK;
}

void rt_packed_free(struct rt_packed *packed)
{
    if (!packed) {
        return;
    }
    if (packed->fd >= 0) {
        give_up(packed, "loading has not ended");
    }
    pthread_mutex_lock(&mutex);
    list_remove(&packed->link);
    pthread_mutex_unlock(&mutex);
    drop_others(packed);
    free(packed->others);
    free(packed->new_rounds);
    free(packed->new_parts);
    free(packed->new_names);
    unref(packed);
}

/* ---- the mapping ----------------------------------------------------------------------------- */

bool rt_packed_import(struct rt_packed *packed, struct hal_device *device, struct span bytes,
                      struct hal_buffer **out_buffer)
{
    struct error ignored;
    /* The buffer is read-only, so no command writes to it. */
    union {
        const uint8_t *from;
        void *to;
    } cast = {.from = bytes.ptr};
    struct rt_packed *owner = rt_packed_source(packed, bytes);
    must(owner != NULL);
    refs_take(&owner->refs);
    if (hal_buffer_import(device, cast.to, bytes.len, true, unref, owner, out_buffer, &ignored) !=
        ST_OK) {
        unref(owner);
        return false;
    }
    return true;
}

static bool has(const struct rt_packed *packed, struct span bytes)
{
    struct span file = packed->file.bytes;
    return file.len > 0 && bytes.ptr >= file.ptr && bytes.ptr < file.ptr + file.len;
}

struct rt_packed *rt_packed_source(struct rt_packed *packed, struct span bytes)
{
    struct rt_packed *source = has(packed, bytes) ? packed : NULL;
    for (uint32_t i = 0; i < packed->other_count && !source; i++) {
        source = has(packed->others[i], bytes) ? packed->others[i] : NULL;
    }
    return source;
}

bool rt_packed_rely_on(struct rt_packed *packed, struct rt_packed *other)
{
    for (uint32_t i = 0; i < packed->other_count; i++) {
        if (packed->others[i] == other) {
            return true;
        }
    }
    if (packed == other) {
        return true;
    }
    struct rt_packed **others =
        realloc(packed->others, (packed->other_count + 1) * sizeof(*others));
    if (!others) {
        return false;
    }
    packed->others = others;
    refs_take(&other->refs);
    others[packed->other_count++] = other;
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool open_new(struct rt_packed *packed)
{
    if (packed->fd < 0) {
        packed->fd = rt_kept_open_new(packed->new_path);
        packed->end = sizeof(struct header);
    }
    if (packed->fd < 0) {
        give_up(packed, "%.160s: %s", packed->new_path, strerror(errno));
    }
    return packed->fd >= 0;
}

static bool write_at(struct rt_packed *packed, uint64_t offset, struct span bytes)
{
    while (bytes.len > 0) {
        size_t step = bytes.len < WRITE_BYTES_MAX ? bytes.len : WRITE_BYTES_MAX;
        ssize_t put = pwrite(packed->fd, bytes.ptr, step, (off_t)offset);
        if (put > 0) {
            bytes = span_of(bytes.ptr + put, bytes.len - (size_t)put);
            offset += (uint64_t)put;
        } else if (put == 0 || errno != EINTR) {
            give_up(packed, "%.160s: %s", packed->new_path, strerror(put == 0 ? ENOSPC : errno));
            return false;
        }
    }
    return true;
}

static bool grow(struct rt_packed *packed, uint32_t parts)
{
    uint64_t rounds = packed->new_round_count + 1, all = packed->new_part_count + parts;
    if (rounds > ROUNDS_MAX || all > PARTS_MAX) {
        give_up(packed, "more than %u rounds or %u results", ROUNDS_MAX, PARTS_MAX);
        return false;
    }
    struct round *new_rounds = realloc(packed->new_rounds, (size_t)rounds * sizeof(*new_rounds));
    packed->new_rounds = new_rounds ? new_rounds : packed->new_rounds;
    struct part *new_parts = realloc(packed->new_parts, (size_t)(all + 1) * sizeof(*new_parts));
    packed->new_parts = new_parts ? new_parts : packed->new_parts;
    struct part_name *new_names =
        realloc(packed->new_names, (size_t)(all + 1) * sizeof(*new_names));
    packed->new_names = new_names ? new_names : packed->new_names;
    if (!new_rounds || !new_parts || !new_names) {
        give_up(packed, "out of memory");
        return false;
    }
    return true;
}

static uint64_t *bucket_of(struct rt_packed *packed, const struct rt_packed_result *result)
{
    return &packed->buckets[(result->name[0] ^ result->name[0] >> 32) % NAME_BUCKETS];
}

/* The part that |result| is already, or NULL. */
static const struct part *find_part(struct rt_packed *packed, const struct rt_packed_result *result)
{
    uint64_t at = result->has_name ? *bucket_of(packed, result) : 0;
    for (; at > 0; at = packed->new_names[at - 1].next) {
        if (memcmp(packed->new_names[at - 1].words, result->name, sizeof(result->name)) == 0) {
            return &packed->new_parts[at - 1];
        }
    }
    return NULL;
}

/* ---- parts in other files -------------------------------------------------------------------- */

/* The file of |other| whose table has |digest|, as a reference. False: it is in another folder. */
static bool refer(const struct rt_packed *packed, const struct rt_packed *other,
                  const uint64_t digest[2], struct reference *out)
{
    size_t folder = (size_t)(strrchr(packed->path, '/') - packed->path) + 1;
    const char *name = other->path + folder;
    if (strncmp(packed->path, other->path, folder) != 0 || strchr(name, '/') ||
        strlen(name) >= sizeof(out->name)) {
        return false;
    }
    *out = (struct reference){.digest = {digest[0], digest[1]}};
    memcpy(out->name, name, strlen(name));
    return true;
}

/* A file that this process has written for a loaded program. */
static bool find_written(struct rt_packed *packed, const struct rt_packed_result *result,
                         struct reference *out, uint64_t *out_offset)
{
    bool is_found = false;
    pthread_mutex_lock(&mutex);
    for (struct list *at = written.next; at != &written && !is_found; at = at->next) {
        struct rt_packed *other = LIST_ENTRY(at, struct rt_packed, link);
        const struct part *part = find_part(other, result);
        is_found = part && refer(packed, other, other->written_digest, out);
        if (is_found) {
            *out_offset = part->offset;
        }
        if (is_found && part->file) {
            *out = other->new_references[part->file - 1];
        }
    }
    pthread_mutex_unlock(&mutex);
    return is_found;
}

/* A file that is mapped. */
static bool find_mapped(struct rt_packed *packed, const struct rt_packed_result *result,
                        struct reference *out, uint64_t *out_offset)
{
    struct rt_packed *source = rt_packed_source(packed, result->bytes);
    if (!source || source == packed || !refer(packed, source, source->mapped_digest, out)) {
        return false;
    }
    *out_offset = (uint64_t)(result->bytes.ptr - source->file.bytes.ptr);
    return *out_offset % RT_PACKED_ALIGN == 0;
}

/* The number of a reference, counted from 1; 0: there are too many. */
static uint64_t add_reference(struct rt_packed *packed, const struct reference *reference)
{
    uint64_t i = 0;
    while (i < packed->new_reference_count &&
           memcmp(&packed->new_references[i], reference, sizeof(*reference)) != 0) {
        i++;
    }
    if (i == REFERENCES_MAX) {
        return 0;
    }
    packed->new_references[i] = *reference;
    packed->new_reference_count += i == packed->new_reference_count;
    return i + 1;
}

/* True: another file has |result|, and |*out| says where. */
static bool find_elsewhere(struct rt_packed *packed, const struct rt_packed_result *result,
                           struct part *out)
{
    struct reference reference;
    uint64_t offset;
    if (result->bytes.len < REFERRED_MIN || (!find_mapped(packed, result, &reference, &offset) &&
                                             !find_written(packed, result, &reference, &offset))) {
        return false;
    }
    *out = (struct part){offset, result->bytes.len, add_reference(packed, &reference)};
    return out->file > 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_result(struct rt_packed *packed, const struct rt_packed_result *result,
                         struct part *out)
{
    *out = (struct part){packed->end, result->bytes.len, 0};
    if (!write_at(packed, packed->end, result->bytes)) {
        return false;
    }
    packed->end += align_up(result->bytes.len, RT_PACKED_ALIGN);
    return true;
}

static bool put_result(struct rt_packed *packed, const struct rt_packed_result *result)
{
    const struct part *same = find_part(packed, result);
    uint64_t index = packed->new_part_count++;
    struct part *part = &packed->new_parts[index];
    if (same) {
        *part = *same;
        return true;
    }
    if (!find_elsewhere(packed, result, part) && !write_result(packed, result, part)) {
        return false;
    }
    if (result->has_name) {
        struct part_name *name = &packed->new_names[index];
        memcpy(name->words, result->name, sizeof(name->words));
        name->next = *bucket_of(packed, result);
        *bucket_of(packed, result) = index + 1;
    }
    return true;
}

void rt_packed_put(struct rt_packed *packed, const uint64_t fingerprint[2],
                   const struct rt_packed_result *results, uint32_t count)
{
    if (packed->state != RT_PACKED_WRITING || !open_new(packed) || !grow(packed, count)) {
        return;
    }
    packed->new_rounds[packed->new_round_count++] =
        (struct round){{fingerprint[0], fingerprint[1]}, packed->new_part_count, count};
    for (uint32_t i = 0; i < count && put_result(packed, &results[i]); i++) {
    }
}

static struct span part_of(const struct rt_packed *packed, const struct round *round, uint64_t i)
{
    const struct part *part = &packed->parts[round->first + i];
    const struct rt_packed *file = part->file ? packed->referred[part->file - 1] : packed;
    return span_of(file->file.bytes.ptr + part->offset, (size_t)part->bytes);
}

/* The file is for other constants: a new one begins with the rounds that were right. */
static void turn_to_writing(struct rt_packed *packed)
{
    packed->state = RT_PACKED_WRITING;
    for (uint32_t r = 0; r < packed->taken; r++) {
        const struct round *round = &packed->rounds[r];
        struct rt_packed_result *results = calloc((size_t)round->count + 1, sizeof(*results));
        if (!results) {
            give_up(packed, "out of memory");
            return;
        }
        for (uint64_t i = 0; i < round->count; i++) {
            const struct part *part = &packed->parts[round->first + i];
            results[i] = (struct rt_packed_result){
                .bytes = part_of(packed, round, i),
                .has_name = true,
                .name = {part->offset, 1 + part->file, part->bytes}, /* no recipe is so */
            };
        }
        rt_packed_put(packed, round->fingerprint, results, (uint32_t)round->count);
        free(results);
    }
    memset(packed->buckets, 0, sizeof(packed->buckets)); /* those names are nobody else's */
}

bool rt_packed_take(struct rt_packed *packed, const uint64_t fingerprint[2], const size_t *bytes,
                    uint32_t count, struct span *out_results)
{
    if (packed->state != RT_PACKED_READING) {
        return false;
    }
    const struct round *round = &packed->rounds[packed->taken];
    bool is_same = packed->taken < packed->round_count && round->count == count &&
                   memcmp(round->fingerprint, fingerprint, sizeof(round->fingerprint)) == 0;
    for (uint32_t i = 0; is_same && i < count; i++) {
        out_results[i] = part_of(packed, round, i);
        is_same = out_results[i].len == bytes[i];
    }
    if (!is_same) {
        turn_to_writing(packed);
        return false;
    }
    packed->taken++;
    return true;
}

/* The table, and then the head, which makes the file whole. */
static bool write_table(struct rt_packed *packed)
{
    struct header header = {.magic = MAGIC,
                            .table = packed->end,
                            .round_count = packed->new_round_count,
                            .part_count = packed->new_part_count,
                            .reference_count = packed->new_reference_count};
    size_t rounds = (size_t)packed->new_round_count * sizeof(struct round);
    size_t parts = (size_t)packed->new_part_count * sizeof(struct part);
    size_t references = (size_t)packed->new_reference_count * sizeof(struct reference);
    digest_table(&header, packed->new_rounds, packed->new_parts, packed->new_references,
                 header.digest);
    memcpy(packed->written_digest, header.digest, sizeof(packed->written_digest));
    return write_at(packed, packed->end, span_of(packed->new_rounds, rounds)) &&
           write_at(packed, packed->end + rounds, span_of(packed->new_parts, parts)) &&
           write_at(packed, packed->end + rounds + parts,
                    span_of(packed->new_references, references)) &&
           write_at(packed, 0, span_of(&header, sizeof(header)));
}

void rt_packed_abandon(struct rt_packed *packed, const char *why)
{
    must(packed->state == RT_PACKED_WRITING);
    give_up(packed, "%s", why);
}

void rt_packed_settle(struct rt_packed *packed)
{
    bool is_written = packed->state == RT_PACKED_WRITING && packed->fd >= 0;
    if (is_written && write_table(packed)) {
        if (!rt_kept_settle(packed->fd, packed->new_path, packed->path)) {
            give_up(packed, "%.160s: %s", packed->path, strerror(errno));
        } else {
            packed->fd = -1;
            pthread_mutex_lock(&mutex);
            list_push_back(&written, &packed->link);
            pthread_mutex_unlock(&mutex);
        }
    }
    if (packed->state != RT_PACKED_BROKEN) {
        packed->state = RT_PACKED_DONE;
    }
}

/* ---- what it is ------------------------------------------------------------------------------ */

enum rt_packed_state rt_packed_state(const struct rt_packed *packed)
{
    return packed->state;
}

const char *rt_packed_path(const struct rt_packed *packed)
{
    return packed->state == RT_PACKED_DONE ? packed->path : NULL;
}

uint32_t rt_packed_taken(const struct rt_packed *packed)
{
    return packed->taken;
}

const struct error *rt_packed_error(const struct rt_packed *packed)
{
    return &packed->error;
}

enum status rt_packed_verify(const struct rt_packed *packed, struct error *err)
{
    if (packed->taken > 0) {
        TRY(pte_file_verify(&packed->file, err));
    }
    for (uint32_t i = 0; i < packed->other_count; i++) {
        TRY(pte_file_verify(&packed->others[i]->file, err));
    }
    return ST_OK;
}
