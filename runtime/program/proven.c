/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/proven.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/digest.h"
#include "runtime/code/fingerprint.h"
#include "runtime/program/method.h"
#include "runtime/pte/files.h"
#include "runtime/pte/kept.h"
#include "runtime/pte/packed.h"

/* The first word of a file; the number changes with the format. */
#define MAGIC 0x3145564f52505444u

enum { ROWS_FINAL = 1, TOKENS_FINAL = 2, FLAGS = 3 };

/* Everything behind the digest. No member leaves a gap. */
struct content {
    uint64_t rows, first_rows, measured_rows, measure_count, tokens, flags;
    uint64_t tokens_ns[RT_PROVEN_TOKENS_MAX + 1];
    char why_rows[ERROR_TEXT_MAX], why_tokens[ERROR_TEXT_MAX];
};

struct record {
    uint64_t magic;
    uint64_t digest[2]; /* of the file's name and the content */
    struct content content;
};

_Static_assert(ERROR_TEXT_MAX % sizeof(uint64_t) == 0, "records have no gaps");

#define SMALL_BYTES_MAX 4096

/* ---- names ----------------------------------------------------------------------------------- */

static void add_data_files(struct digest *digest, const struct rt_files *files)
{
    for (uint32_t i = 0; i < files->data_count; i++) {
        const struct rt_file_digest *of_file = &files->data[i].digest;
        if (of_file->is_known) {
            digest_add(digest, span_of(of_file->words, sizeof(of_file->words)));
        }
    }
}

/* Constants that a card adds, such as the scale of pixels, are not in rt_fingerprint(), which says
 * of constants that were computed only how. Larger ones come from the program's files. */
static void add_small_constants(struct digest *digest, const struct rt_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct rt_value *v = &graph->values[i];
        if (v->kind == RT_TENSOR && v->is_constant && v->buffer && v->bytes.ptr &&
            v->bytes.len <= SMALL_BYTES_MAX) {
            digest_add_number(digest, i);
            digest_add(digest, v->bytes);
        }
    }
}

enum status rt_proven_find(const struct rt_method *method, const uint64_t *settings, uint32_t count,
                           uint64_t *out_key, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_files *files = method->files;
    struct digest digest;
    uint64_t of_graph[2], all[2];
    if (!files || !files->packed || !rt_packed_path(files->packed)) {
        return error_set(err, ST_NOT_FOUND, "there is no folder for packed weights");
    }
    digest_init(&digest);
    digest_add_text(&digest, method->name);
    for (uint32_t i = 0; i < method->code.block_count; i++) {
        rt_fingerprint(&method->code.blocks[i]->graph, of_graph);
        digest_add(&digest, span_of(of_graph, sizeof(of_graph)));
        add_small_constants(&digest, &method->code.blocks[i]->graph);
    }
    add_data_files(&digest, files);
    digest_add(&digest, span_of(settings, count * sizeof(*settings)));
    digest_end(&digest, all);
    *out_key = all[0];
    return ST_OK;
}

/* FOLDER/PROGRAM-MACHINE-KEY.proven */
static enum status name_file(const struct rt_method *method, uint64_t key, char path[PATH_MAX],
                             struct error *err)
{
    const char *packed = rt_packed_path(method->files->packed);
    must(packed);
    int stem = (int)(strlen(packed) - strlen(RT_KEPT_PACKED));
    int len = snprintf(path, PATH_MAX, "%.*s-%016" PRIx64 RT_KEPT_PROVEN, stem, packed, key);
    return len < PATH_MAX ? ST_OK
                          : error_set(err, ST_UNAVAILABLE, "%.160s: the name is too long", packed);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_text(const char text[ERROR_TEXT_MAX])
{
    const char *end = memchr(text, '\0', ERROR_TEXT_MAX);
    for (const char *at = text; end && at < end; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            return false;
        }
    }
    return end != NULL;
}

/* Texts that are not there are empty. */
static bool has_texts(const struct content *content)
{
    return is_text(content->why_rows) && is_text(content->why_tokens) &&
           (content->why_rows[0] != '\0') == ((content->flags & ROWS_FINAL) != 0) &&
           (content->why_tokens[0] != '\0') == ((content->flags & TOKENS_FINAL) != 0);
}

static void digest_record(const struct record *record, const char *path, uint64_t out[2])
{
    struct digest digest;
    digest_init(&digest);
    digest_add_text(&digest, strrchr(path, '/') + 1);
    digest_add(&digest, span_of(&record->content, sizeof(record->content)));
    digest_end(&digest, out);
}

static const char *find_fault(const struct record *record, const char *path)
{
    const struct content *content = &record->content;
    uint64_t expected[2];
    digest_record(record, path, expected);
    if (record->magic != MAGIC) {
        return "it has another format";
    }
    if (memcmp(record->digest, expected, sizeof(expected)) != 0) {
        return "it is damaged, or was made for another program";
    }
    bool are_rows = content->rows >= 1 && content->rows <= RT_PROVEN_ROWS_MAX &&
                    content->first_rows >= 1 && content->first_rows <= content->rows &&
                    content->measured_rows >= 1 && content->measured_rows <= content->rows &&
                    content->measure_count <= RT_PROVEN_MEASURES_MAX;
    bool are_tokens = content->tokens >= 1 && content->tokens <= RT_PROVEN_TOKENS_MAX;
    if (!are_rows || !are_tokens || content->flags > FLAGS || !has_texts(content)) {
        return "a value is out of bounds";
    }
    return NULL;
}

static enum status read_record(const char *path, struct record *record, struct error *err)
{
    struct stat st;
    const char *fault = NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return error_set(err, ST_NOT_FOUND, "%.160s: there is no such file", path);
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        fault = strerror(errno);
    } else if (!S_ISREG(st.st_mode) || !rt_kept_is_private(&st)) {
        fault = "expected a file that only its owner can write to";
    } else if (st.st_size != (off_t)sizeof(*record) ||
               pread(fd, record, sizeof(*record), 0) != (ssize_t)sizeof(*record)) {
        fault = "it has another size";
    } else {
        fault = find_fault(record, path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return fault ? error_set(err, ST_CORRUPT, "%.160s: %s", path, fault) : ST_OK;
}

enum status rt_proven_read(const struct rt_method *method, uint64_t key,
                           struct rt_proven *out_proven, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    char path[PATH_MAX];
    struct record record;
    const struct content *content = &record.content;
    TRY(name_file(method, key, path, err));
    TRY(read_record(path, &record, err));
    *out_proven = (struct rt_proven){
        .rows = (int64_t)content->rows,
        .first_rows = (int64_t)content->first_rows,
        .measured_rows = (int64_t)content->measured_rows,
        .measure_count = (int64_t)content->measure_count,
        .tokens = (int64_t)content->tokens,
        .are_rows_final = content->flags & ROWS_FINAL,
        .are_tokens_final = content->flags & TOKENS_FINAL,
    };
    memcpy(out_proven->tokens_ns, content->tokens_ns, sizeof(content->tokens_ns));
    error_set(&out_proven->why_rows, ST_UNSUPPORTED, "%s", content->why_rows);
    error_set(&out_proven->why_tokens, ST_UNSUPPORTED, "%s", content->why_tokens);
    return ST_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Names in a program may hold anything. */
static void put_text(char out[ERROR_TEXT_MAX], const struct error *why)
{
    snprintf(out, ERROR_TEXT_MAX, "%s", why->text[0] ? why->text : "no reason was given");
    for (char *at = out; *at; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    }
}

static void fill_record(struct record *record, const struct rt_proven *proven, const char *path)
{
    struct content *content = &record->content;
    memset(record, 0, sizeof(*record));
    record->magic = MAGIC;
    content->rows = (uint64_t)proven->rows;
    content->first_rows = (uint64_t)proven->first_rows;
    content->measured_rows = (uint64_t)proven->measured_rows;
    content->measure_count = (uint64_t)proven->measure_count;
    content->tokens = (uint64_t)proven->tokens;
    content->flags =
        (proven->are_rows_final ? ROWS_FINAL : 0) | (proven->are_tokens_final ? TOKENS_FINAL : 0);
    memcpy(content->tokens_ns, proven->tokens_ns, sizeof(content->tokens_ns));
    if (proven->are_rows_final) {
        put_text(content->why_rows, &proven->why_rows);
    }
    if (proven->are_tokens_final) {
        put_text(content->why_tokens, &proven->why_tokens);
    }
    digest_record(record, path, record->digest);
}

enum status rt_proven_write(const struct rt_method *method, uint64_t key,
                            const struct rt_proven *proven, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    char path[PATH_MAX], new_path[PATH_MAX];
    struct record record;
    TRY(name_file(method, key, path, err));
    fill_record(&record, proven, path);
    must(!find_fault(&record, path));
    if (!rt_kept_name_new(path, new_path, sizeof(new_path))) {
        return error_set(err, ST_UNAVAILABLE, "%.160s: the name is too long", path);
    }
    int fd = rt_kept_open_new(new_path);
    if (fd < 0) {
        return error_set(err, ST_UNAVAILABLE, "%.160s: %s", new_path, strerror(errno));
    }
    ssize_t put = pwrite(fd, &record, sizeof(record), 0);
    if (put != (ssize_t)sizeof(record) || !rt_kept_settle(fd, new_path, path)) {
        error_set(err, ST_UNAVAILABLE, "%.160s: %s", new_path,
                  put >= 0 && put < (ssize_t)sizeof(record) ? "the disk is full" : strerror(errno));
        unlink(new_path);
        close(fd);
        return err->code;
    }
    return ST_OK;
}
