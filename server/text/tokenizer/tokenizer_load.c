/* SPDX-License-Identifier: MIT */
/* Tokenizers are found, read and finished; the parsers of each format are in files of their own. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/digest.h"
#include "base/folder.h"
#include "server/process/file.h"
#include "server/text/tokenizer/decode.h"
#include "server/text/tokenizer/tokenizer_priv.h"

#define PATH_BYTES_MAX 4096

enum status tokenizer_copy(struct tokenizer *tokenizer, struct span text, struct span *out,
                           struct error *err)
{
    char *copy = arena_strdup(&tokenizer->arena, text.ptr, text.len);
    if (!copy) {
        return arena_fail(&tokenizer->arena, "a tokenizer", err);
    }
    *out = span_of(copy, text.len);
    return ST_OK;
}

/* JSON begins with a brace. A list of ranks begins with base64, a blank and a number. The fields of
 * SentencePiece's message have numbers below 16, so its first byte is a control character. */
static enum status parse_any(struct tokenizer *tokenizer, struct span file,
                             enum tokenizer_pattern pattern, struct error *err)
{
    size_t at = 0;
    while (at < file.len && strchr(" \t\r\n", file.ptr[at]) && file.ptr[at]) {
        at++;
    }
    if (at == file.len) {
        return error_set(err, ST_CORRUPT, "the file is empty");
    }
    if (file.ptr[at] == '{') {
        return tokenizer_parse_json(tokenizer, file, err);
    }
    if (file.ptr[0] == 0x0a || file.ptr[0] == 0x12 || file.ptr[0] == 0x1a) {
        return tokenizer_parse_sentencepiece(tokenizer, file, err);
    }
    return tokenizer_parse_ranks(tokenizer, file, pattern, err);
}

static void note_digest(struct tokenizer *tokenizer, struct span file,
                        enum tokenizer_pattern pattern)
{
    struct digest digest;
    digest_init(&digest);
    digest_add_number(&digest, pattern);
    digest_add(&digest, file);
    digest_end(&digest, tokenizer->digest);
}

/* Steps behind a fused token need it whole, unless they only cut its beginning. */
static void find_holding(struct tokenizer *tokenizer)
{
    bool needs_whole = false;
    for (size_t i = tokenizer->decode_count; i-- > 0;) {
        struct decode_step *step = &tokenizer->decode[i];
        if (step->kind == DECODE_FUSE || step->kind == DECODE_BYTE_LEVEL) {
            step->holds = needs_whole;
            needs_whole = false;
        } else if (step->kind != DECODE_STRIP || step->stop > 0) {
            needs_whole = true;
        }
    }
    bool is_held = false;
    for (size_t i = 0; i < tokenizer->decode_count; i++) {
        struct decode_step *step = &tokenizer->decode[i];
        if (step->kind == DECODE_FUSE || step->kind == DECODE_BYTE_LEVEL) {
            is_held = step->holds;
        } else if (step->kind == DECODE_STRIP) {
            step->holds = is_held; /* each of its inputs is a whole token */
        }
    }
}

/* A list of pieces may have the text of a special token at another id, too. The library goes by
 * texts when it leaves special tokens out. */
static void mark_repeated(struct tokenizer *tokenizer)
{
    const struct vocab *vocab = &tokenizer->vocab;
    for (uint32_t id = 0; vocab->has_repeated && id < vocab->size; id++) {
        uint32_t found = vocab_has(vocab, id) ? vocab_find(vocab, vocab_text(vocab, id)) : id;
        tokenizer->flags[id] |= tokenizer->flags[found] & TOKEN_SPECIAL;
    }
}

static enum status finish(struct tokenizer *tokenizer, struct error *err)
{
    struct vocab *extra = &tokenizer->extra;
    tokenizer->size = tokenizer->vocab.size > extra->size ? tokenizer->vocab.size : extra->size;
    if (tokenizer->size == 0) {
        return error_set(err, ST_CORRUPT, "the vocabulary is empty");
    }
    tokenizer->flags = calloc(tokenizer->size, 1);
    if (!tokenizer->flags) {
        return error_no_memory(err, "the vocabulary");
    }
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        const struct added_token *added = &tokenizer->added[i];
        must(added->id < tokenizer->size);
        tokenizer->flags[added->id] |=
            (uint8_t)(TOKEN_ADDED | (added->is_special ? TOKEN_SPECIAL : 0));
    }
    for (uint32_t id = 0; tokenizer->model.piece_types && id < tokenizer->vocab.size; id++) {
        uint8_t type = tokenizer->model.piece_types[id];
        tokenizer->flags[id] |= type == PIECE_CONTROL || type == PIECE_UNKNOWN ? TOKEN_SPECIAL : 0;
    }
    mark_repeated(tokenizer);
    find_holding(tokenizer);
    return added_finish(tokenizer, err);
}

enum status tokenizer_parse(struct span file, enum tokenizer_pattern pattern,
                            struct tokenizer **out, struct error *err)
{
    TRY(unicode_load(err));
    struct tokenizer *tokenizer = tokenizer_new(err);
    if (!tokenizer) {
        return ST_EXHAUSTED;
    }
    enum status status = parse_any(tokenizer, file, pattern, err);
    status = status == ST_OK ? finish(tokenizer, err) : status;
    if (status == ST_INVALID) {
        status = err->code = ST_CORRUPT; /* so documents call it that somebody wrote by hand */
    }
    if (status != ST_OK) {
        tokenizer_free(tokenizer);
        return status;
    }
    note_digest(tokenizer, file, pattern);
    *out = tokenizer;
    return ST_OK;
}

/* The first name in the folder that ends in ".tiktoken", by order of bytes. */
static bool find_ranks(const char *folder, char *path, size_t size)
{
    static const char suffix[] = ".tiktoken";
    char best[256] = "";
    DIR *dir = folder_open(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);
        if (len > strlen(suffix) && strcmp(entry->d_name + len - strlen(suffix), suffix) == 0 &&
            (!best[0] || strcmp(entry->d_name, best) < 0)) {
            snprintf(best, sizeof(best), "%s", entry->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    snprintf(path, size, "%s/%s", folder, best);
    return best[0] != '\0';
}

static enum status find_file(const char *path, char *out, size_t size, struct error *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
    struct stat about;
    if (stat(path, &about) != 0) {
        return error_set(err, status_of_errno(errno), "%s: %s", path, strerror(errno));
    }
    if ((size_t)snprintf(out, size, "%s", path) >= size) {
        return error_set(err, ST_INVALID, "the path of the tokenizer has more than %zu bytes",
                         size - 1);
    }
    for (size_t i = 0; S_ISDIR(about.st_mode) && i < 2; i++) {
        if ((size_t)snprintf(out, size, "%s/%s", path, names[i]) < size && stat(out, &about) == 0) {
            return ST_OK;
        }
        about.st_mode = S_IFDIR;
    }
    if (S_ISDIR(about.st_mode) && !find_ranks(path, out, size)) {
        return error_set(err, ST_NOT_FOUND,
                         "%s: no tokenizer.json, tokenizer.model or *.tiktoken in the folder",
                         path);
    }
    return ST_OK;
}

static enum status read_and_parse(const char *path, enum tokenizer_pattern pattern,
                                  struct tokenizer **out, struct error *err)
{
    struct buf file;
    struct stat about;
    buf_init(&file, TOKENIZER_FILE_MAX);
    if (stat(path, &about) == 0 && about.st_size > 0 &&
        (uint64_t)about.st_size < TOKENIZER_FILE_MAX) {
        (void)buf_reserve(&file, (size_t)about.st_size);
    }
    enum status status = file_read(path, &file, err);
    status = status == ST_OK ? tokenizer_parse(buf_span(&file), pattern, out, err) : status;
    buf_fini(&file);
    return status;
}

enum status tokenizer_load_pattern(const char *path, enum tokenizer_pattern pattern,
                                   struct tokenizer **out, struct error *err)
{
    char file[PATH_BYTES_MAX];
    TRY(find_file(path, file, sizeof(file), err));
    enum status status = read_and_parse(file, pattern, out, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", file);
}

enum status tokenizer_load(const char *path, struct tokenizer **out, struct error *err)
{
    return tokenizer_load_pattern(path, TOKENIZER_PATTERN_AUTO, out, err);
}
