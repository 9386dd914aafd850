/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/npz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "server/process/file.h"

#define LOCAL_BYTES 30 /* fixed parts of the three kinds of records */
#define CENTRAL_BYTES 46
#define END_BYTES 22
#define COMMENT_MAX 65535
#define STORED 0
#define DEFLATED 8
#define DEFLATE_RATIO_MAX 1032 /* of zlib's format: two bits for 258 bytes */
#define MADE_BY 20             /* version 2.0 */
#define EPOCH_DATE 33          /* 1 January 1980 */

static enum status corrupt(struct error *err, const char *what)
{
    return error_set(err, ST_CORRUPT, "no .npz archive: %s", what);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* An entry of the central directory. */
struct member {
    uint16_t flags, method;
    uint32_t crc, packed, size, local;
    struct span name;
};

struct directory {
    struct span file, rest; /* the entries that have not been read */
    uint32_t count;
    size_t bytes; /* of all arrays so far */
};

/* Is it the last record of a file, with the comment that it has behind it? A comment may have the
 * first bytes of such a record. */
static bool is_end(const uint8_t *at, size_t len)
{
    return memcmp(at, "PK\5\6", 4) == 0 && load_le16(at + 20) == len - END_BYTES;
}

static enum status find_end(struct span file, struct directory *out, struct error *err)
{
    size_t back = END_BYTES,
           most = file.len < END_BYTES + COMMENT_MAX ? file.len : END_BYTES + COMMENT_MAX;
    while (back <= most && !is_end(file.ptr + file.len - back, back)) {
        back++;
    }
    if (back > most) {
        return corrupt(err,
                       npy_is_one(file) ? "it is one array, an .npy file" : "it has no directory");
    }
    const uint8_t *end = file.ptr + file.len - back;
    uint32_t bytes = load_le32(end + 12), begin = load_le32(end + 16);
    out->count = load_le16(end + 10);
    if (begin == UINT32_MAX || bytes == UINT32_MAX) {
        return error_set(err, ST_UNSUPPORTED, "ZIP64: expected less than 4 GiB");
    }
    if (!in_range(begin, bytes, file.len)) {
        return corrupt(err, "the directory lies outside of the file");
    }
    out->file = file;
    out->rest = span_of(file.ptr + begin, bytes);
    return ST_OK;
}

static enum status next_member(struct directory *d, struct member *out, struct error *err)
{
    const uint8_t *at = d->rest.ptr;
    if (d->rest.len < CENTRAL_BYTES || memcmp(at, "PK\1\2", 4) != 0) {
        return corrupt(err, "an entry of the directory is cut");
    }
    size_t name = load_le16(at + 28);
    size_t bytes = CENTRAL_BYTES + name + load_le16(at + 30) + load_le16(at + 32);
    if (bytes > d->rest.len) {
        return corrupt(err, "an entry of the directory is cut");
    }
    *out = (struct member){
        .flags = load_le16(at + 8),
        .method = load_le16(at + 10),
        .crc = load_le32(at + 16),
        .packed = load_le32(at + 20),
        .size = load_le32(at + 24),
        .local = load_le32(at + 42),
        .name = span_of(at + CENTRAL_BYTES, name),
    };
    d->rest = span_of(at + bytes, d->rest.len - bytes);
    return ST_OK;
}

/* "stem.0" of "stem.0.npy". */
static enum status take_name(const struct npz *npz, struct span name, char **out, struct error *err)
{
    static const char tail[] = ".npy";
    size_t len = sizeof(tail) - 1;
    bool fits = name.len > len && name.len <= NPZ_NAME_MAX + len &&
                memcmp(name.ptr + name.len - len, tail, len) == 0;
    for (size_t i = 0; i < name.len; i++) {
        fits = fits && name.ptr[i] > ' ' && name.ptr[i] <= '~';
    }
    if (!fits) {
        return corrupt(err, "expected names of 1 to 256 characters of ASCII, and .npy");
    }
    *out = strndup((const char *)name.ptr, name.len - len);
    if (!*out) {
        return error_no_memory(err, "names");
    }
    if (npz_find(npz, *out)) {
        error_set(err, ST_CORRUPT, "no .npz archive: two arrays are called '%s'", *out);
        free(*out);
        return ST_CORRUPT;
    }
    return ST_OK;
}

static enum status inflate_to(struct span packed, void *to, size_t size, struct error *err)
{
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)packed.ptr,
        .avail_in = (uInt)packed.len,
        .next_out = to,
        .avail_out = (uInt)size,
    };
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return error_set(err, ST_EXHAUSTED, "no memory to inflate");
    }
    int rc = inflate(&stream, Z_FINISH);
    bool is_whole = rc == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return is_whole ? ST_OK : corrupt(err, "a deflated array is damaged");
}

/* The packed bytes, which lie behind a header of their own. */
static enum status find_packed(const struct directory *d, const struct member *m, struct span *out,
                               struct error *err)
{
    const uint8_t *at = d->file.ptr;
    at += in_range(m->local, LOCAL_BYTES, d->file.len) ? m->local : 0;
    if (!in_range(m->local, LOCAL_BYTES, d->file.len) || memcmp(at, "PK\3\4", 4) != 0) {
        return corrupt(err, "an array lies outside of the file");
    }
    size_t begin = (size_t)m->local + LOCAL_BYTES + load_le16(at + 26) + load_le16(at + 28);
    if (!in_range(begin, m->packed, d->file.len)) {
        return corrupt(err, "an array lies outside of the file");
    }
    *out = span_of(d->file.ptr + begin, m->packed);
    return ST_OK;
}

static enum status check_member(struct directory *d, const struct member *m, struct error *err)
{
    if (m->packed == UINT32_MAX || m->size == UINT32_MAX || m->local == UINT32_MAX) {
        return error_set(err, ST_UNSUPPORTED, "ZIP64: expected less than 4 GiB");
    }
    if (m->flags & 1) {
        return error_set(err, ST_UNSUPPORTED, "an array is encrypted");
    }
    if (m->method != STORED && m->method != DEFLATED) {
        return error_set(err, ST_UNSUPPORTED, "packed by method %u, expected stored or deflated",
                         m->method);
    }
    uint64_t most = m->method == STORED ? m->packed : (uint64_t)m->packed * DEFLATE_RATIO_MAX;
    if (m->size > most || (m->method == STORED && m->size != m->packed)) {
        return corrupt(err, "an array has another size than the directory says");
    }
    if (m->size > NPZ_BYTES_MAX - d->bytes) {
        return error_set(err, ST_TOO_LARGE, "the arrays take more than %zu bytes", NPZ_BYTES_MAX);
    }
    d->bytes += m->size;
    return ST_OK;
}

static enum status unpack(struct directory *d, const struct member *m, struct npz_array *to,
                          struct span *out, struct error *err)
{
    TRY(check_member(d, m, err));
    TRY(find_packed(d, m, out, err));
    if (m->method == DEFLATED) {
        to->inflated = malloc((size_t)m->size + 1);
        if (!to->inflated) {
            return error_no_memory(err, "%u bytes", m->size);
        }
        TRY(inflate_to(*out, to->inflated, m->size, err));
        *out = span_of(to->inflated, m->size);
    }
    return crc32_z(0, out->ptr, out->len) == m->crc ? ST_OK
                                                    : corrupt(err, "an array is damaged (CRC)");
}

static enum status read_member(struct npz *npz, struct directory *d, struct error *err)
{
    struct npz_array *item = &npz->items[npz->count];
    struct member m = {0};
    struct span bytes = {0};
    TRY(next_member(d, &m, err));
    TRY(take_name(npz, m.name, &item->name, err));
    npz->count++;
    if (unpack(d, &m, item, &bytes, err) != ST_OK || npy_parse(bytes, &item->array, err) != ST_OK) {
        err->code = err->code == ST_INVALID ? ST_CORRUPT : err->code;
        return error_prefix(err, "%s: ", item->name);
    }
    return ST_OK;
}

static enum status read_members(struct npz *npz, struct span file, struct error *err)
{
    struct directory d = {0};
    TRY(find_end(file, &d, err));
    if (d.count > d.rest.len / CENTRAL_BYTES) {
        return corrupt(err, "the directory is cut");
    }
    if (d.count > NPZ_ARRAYS_MAX) {
        return error_set(err, ST_TOO_LARGE, "%u arrays, expected at most %d", d.count,
                         NPZ_ARRAYS_MAX);
    }
    npz->items = calloc((size_t)d.count + 1, sizeof(*npz->items));
    if (!npz->items) {
        return error_no_memory(err, "%u arrays", d.count);
    }
    for (uint32_t i = 0; i < d.count; i++) {
        TRY(read_member(npz, &d, err));
    }
    return ST_OK;
}

static void init(struct npz *npz)
{
    *npz = (struct npz){0};
    buf_init(&npz->file, NPZ_BYTES_MAX);
}

enum status npz_read(struct npz *npz, const char *path, struct error *err)
{
    init(npz);
    TRY(file_read(path, &npz->file, err));
    return read_members(npz, buf_span(&npz->file), err);
}

enum status npz_parse(struct npz *npz, struct span file, struct error *err)
{
    init(npz);
    return read_members(npz, file, err);
}

void npz_fini(struct npz *npz)
{
    for (uint32_t i = 0; i < npz->count; i++) {
        free(npz->items[i].name);
        free(npz->items[i].inflated);
    }
    free(npz->items);
    buf_fini(&npz->file);
}

const struct npz_array *npz_find(const struct npz *npz, const char *name)
{
    for (uint32_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->items[i].name, name) == 0) {
            return &npz->items[i];
        }
    }
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_le16(struct buf *out, uint32_t value)
{
    const uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8)};
    buf_add(out, bytes, sizeof(bytes));
}

static void add_le32(struct buf *out, uint32_t value)
{
    add_le16(out, value);
    add_le16(out, value >> 16);
}

struct writer {
    FILE *file;
    struct buf head, directory;
    uint64_t at;
};

/* What a local header and an entry of the directory have in common. */
static void add_member(struct buf *out, const struct npz_entry *entry, uint32_t crc, uint32_t size)
{
    add_le16(out, 0);      /* flags */
    add_le16(out, STORED); /* method */
    add_le16(out, 0);      /* time */
    add_le16(out, EPOCH_DATE);
    add_le32(out, crc);
    add_le32(out, size);
    add_le32(out, size);
    add_le16(out, (uint32_t)strlen(entry->name) + 4);
    add_le16(out, 0); /* bytes of further fields */
}

static bool put(struct writer *w, struct span bytes)
{
    w->at += bytes.len;
    return bytes.len == 0 || fwrite(bytes.ptr, 1, bytes.len, w->file) == bytes.len;
}

static bool write_entry(struct writer *w, const struct npz_entry *entry)
{
    struct buf npy;
    buf_init(&npy, 1024);
    npy_print_head(&npy, entry->dtype, &entry->shape);
    uint64_t at = w->at, size = npy.len + entry->bytes.len;
    uint32_t crc =
        (uint32_t)crc32_z(crc32_z(0, npy.ptr, npy.len),
                          entry->bytes.ptr ? entry->bytes.ptr : npy.ptr, entry->bytes.len);
    buf_reset(&w->head);
    buf_add(&w->head, "PK\3\4", 4);
    add_le16(&w->head, MADE_BY);
    add_member(&w->head, entry, crc, (uint32_t)size);
    buf_printf(&w->head, "%s.npy", entry->name);
    buf_add(&w->directory, "PK\1\2", 4);
    add_le16(&w->directory, MADE_BY);
    add_le16(&w->directory, MADE_BY);
    add_member(&w->directory, entry, crc, (uint32_t)size);
    buf_add_fill(&w->directory, '\0', 10); /* comment, disk, attributes */
    add_le32(&w->directory, (uint32_t)at);
    buf_printf(&w->directory, "%s.npy", entry->name);
    bool is_well = at + size < UINT32_MAX - COMMENT_MAX && !buf_failed(&npy) &&
                   put(w, buf_span(&w->head)) && put(w, buf_span(&npy)) && put(w, entry->bytes);
    buf_fini(&npy);
    return is_well;
}

static bool write_end(struct writer *w, uint32_t count)
{
    uint32_t begin = (uint32_t)w->at, bytes = (uint32_t)w->directory.len;
    struct buf *end = &w->head;
    buf_reset(end);
    buf_add(end, "PK\5\6", 4);
    add_le32(end, 0); /* disks */
    add_le16(end, count);
    add_le16(end, count);
    add_le32(end, bytes);
    add_le32(end, begin);
    add_le16(end, 0); /* bytes of a comment */
    return !buf_failed(&w->directory) && !buf_failed(end) && put(w, buf_span(&w->directory)) &&
           put(w, buf_span(end));
}

enum status npz_write(const char *option, const char *path, const struct npz_entry *entries,
                      uint32_t count, struct error *err)
{
    struct writer w = {.file = fopen(path, "wb")};
    if (!w.file || count > NPZ_ARRAYS_MAX) {
        const char *why = w.file ? "too many arrays" : strerror(errno);
        error_set(err, ST_UNWRITTEN, "%s: %s: %s", option, path, why);
        return w.file ? (fclose(w.file), err->code) : err->code;
    }
    buf_init(&w.head, 4096);
    buf_init(&w.directory, (size_t)NPZ_ARRAYS_MAX * (CENTRAL_BYTES + NPZ_NAME_MAX + 4));
    bool is_well = true;
    for (uint32_t i = 0; is_well && i < count; i++) {
        is_well = write_entry(&w, &entries[i]);
    }
    is_well = is_well && write_end(&w, count);
    is_well = fclose(w.file) == 0 && is_well;
    int saved = errno;
    buf_fini(&w.directory);
    buf_fini(&w.head);
    if (!is_well) {
        remove(path);
    }
    return is_well ? ST_OK
                   : error_set(err, ST_UNWRITTEN, "%s: %s: %s", option, path,
                               w.at > UINT32_MAX - COMMENT_MAX ? "4 GiB or more" : strerror(saved));
}
