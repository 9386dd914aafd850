/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "server/process/file.h"
#include "server/process/options.h"
#include "server/process/token.h"

#define FILE_BYTES_MAX (1 << 20)
#define NS_PER_S UINT64_C(1000000000)
#define RATE_MAX 1000000

/* ---- the words of a line --------------------------------------------------------------------- */

static struct span take_until(struct span *rest, const char *ends)
{
    size_t len = 0;
    while (len < rest->len && !strchr(ends, rest->ptr[len])) {
        len++;
    }
    struct span taken = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len, rest->len - len);
    return taken;
}

/* Empty at the end of the line. */
static struct span take_word(struct span *line)
{
    while (line->len && (line->ptr[0] == ' ' || line->ptr[0] == '\t')) {
        *line = span_of(line->ptr + 1, line->len - 1);
    }
    return take_until(line, " \t");
}

static enum status parse_hash(struct span word, uint8_t *out, struct error *err)
{
    static const char prefix[] = "sha256:";
    size_t len = sizeof(prefix) - 1;
    if (word.len < len || memcmp(word.ptr, prefix, len) != 0 ||
        !sha256_parse(span_of(word.ptr + len, word.len - len), out)) {
        return error_set(err, ST_INVALID, "expected sha256: and 64 hexadecimal digits");
    }
    return ST_OK;
}

/* "rate=100" */
static enum status parse_limit(struct span word, struct token *token, struct error *err)
{
    char text[32] = "";
    uint64_t value;
    struct span name = take_until(&word, "=");
    bool is_rate = span_is(name, "rate"), is_burst = span_is(name, "burst");
    if (word.len < 2 || word.len > sizeof(text) ||
        (!is_rate && !is_burst && !span_is(name, "running"))) {
        return error_set(err, ST_INVALID, "expected rate=N, burst=N or running=N, got '%.*s'",
                         (int)(name.len < 64 ? name.len : 64), name.ptr);
    }
    memcpy(text, word.ptr + 1, word.len - 1);
    if (options_parse_number(text, OPTION_COUNT, 1, RATE_MAX, &value, err) != ST_OK) {
        return error_prefix(err, "%.*s: ", SPAN_FMT(name));
    }
    token->interval_ns = is_rate ? NS_PER_S / value : token->interval_ns;
    token->burst = is_burst || (is_rate && !token->burst) ? value : token->burst;
    token->running_max = is_rate || is_burst ? token->running_max : value;
    return ST_OK;
}

static enum status parse_line(struct span line, struct token *token, char *name, struct error *err)
{
    *token = (struct token){0};
    TRY(token_parse_name(take_word(&line), name, err));
    TRY(token_parse_scopes(take_word(&line), &token->scopes, err));
    TRY(parse_hash(take_word(&line), token->hash, err));
    for (struct span word = take_word(&line); word.len; word = take_word(&line)) {
        TRY(parse_limit(word, token, err));
    }
    return ST_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The use of the token |name|; NULL without memory. */
static struct token_use *find_use(struct tokens *tokens, const char *name)
{
    struct token_use *use = atomic_load(&tokens->uses);
    while (use && strcmp(use->name, name) != 0) {
        use = atomic_load(&use->next);
    }
    if (use) {
        return use;
    }
    use = calloc(1, sizeof(*use));
    if (use) {
        struct token_use *last = atomic_load(&tokens->uses);
        memcpy(use->name, name, strlen(name) + 1);
        use->number = last ? last->number + 1 : 1;
        atomic_store(&use->next, last);
        atomic_store(&tokens->uses, use); /* it is complete: any thread may see it */
    }
    return use;
}

static enum status add(struct tokens *tokens, struct token *items, uint32_t *count,
                       struct span line, struct error *err)
{
    char name[TOKEN_NAME_MAX + 1];
    struct token token;
    TRY(parse_line(line, &token, name, err));
    if (*count == TOKENS_MAX) {
        return error_set(err, ST_INVALID, "expected at most %d tokens", TOKENS_MAX);
    }
    for (uint32_t i = 0; i < *count; i++) {
        if (sha256_equal(items[i].hash, token.hash)) {
            return error_set(err, ST_INVALID, "an earlier line has the same token: %s",
                             items[i].use->name);
        }
    }
    token.use = find_use(tokens, name);
    if (!token.use) {
        return error_no_memory(err, "the tokens");
    }
    items[(*count)++] = token;
    return ST_OK;
}

enum status tokens_parse(struct tokens *tokens, const char *path, struct span text,
                         struct error *err)
{
    TRY(sha256_load(err));
    struct token *items = calloc(TOKENS_MAX, sizeof(*items));
    enum status status = ST_OK;
    uint32_t count = 0;
    if (!items) {
        return error_no_memory(err, "%s", path);
    }
    for (unsigned number = 1; text.len && status == ST_OK; number++) {
        struct span line = take_until(&text, "\n"), words = line;
        text = text.len ? span_of(text.ptr + 1, text.len - 1) : text;
        if (line.len && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        words = line;
        struct span first = take_word(&words);
        if (first.len && first.ptr[0] != '#' && add(tokens, items, &count, line, err) != ST_OK) {
            status = error_prefix(err, "%s:%u: ", path, number);
        }
    }
    if (status != ST_OK) {
        free(items);
        return status;
    }
    free(tokens->items);
    tokens->items = items;
    tokens->count = count;
    tokens->are_needed = true;
    tokens->generation++;
    return ST_OK;
}

enum status tokens_read(struct tokens *tokens, const char *path, struct error *err)
{
    struct buf text;
    buf_init(&text, FILE_BYTES_MAX);
    enum status status = file_read(path, &text, err);
    status = status == ST_OK ? tokens_parse(tokens, path, buf_span(&text), err)
                             : error_prefix(err, "token file %s: ", path);
    buf_fini(&text);
    return status;
}

void tokens_fini(struct tokens *tokens)
{
    struct token_use *use = atomic_load(&tokens->uses);
    while (use) {
        struct token_use *next = atomic_load(&use->next);
        free(use);
        use = next;
    }
    free(tokens->items);
    *tokens = (struct tokens){0};
}

const struct token *tokens_find(const struct tokens *tokens, struct span text)
{
    uint8_t hash[SHA256_BYTES];
    const struct token *found = NULL;
    if (text.len > TOKEN_BYTES_MAX || !sha256(text, hash)) {
        return NULL;
    }
    for (uint32_t i = 0; i < tokens->count; i++) {
        found = sha256_equal(tokens->items[i].hash, hash) ? &tokens->items[i] : found;
    }
    return found;
}

/* In a time that does not depend on the bytes: a proxy may send requests of several clients over
 * one connection. */
static bool is_remembered(const struct token_memory *memory, struct span text)
{
    volatile uint8_t difference = 0;
    for (uint32_t i = 0; memory->len == text.len && i < memory->len; i++) {
        difference = (uint8_t)(difference | (memory->text[i] ^ text.ptr[i]));
    }
    return memory->len == text.len && difference == 0;
}

const struct token *tokens_find_again(const struct tokens *tokens, struct token_memory *memory,
                                      struct span text)
{
    if (memory->generation == tokens->generation && is_remembered(memory, text)) {
        must(memory->index < tokens->count);
        return &tokens->items[memory->index];
    }
    const struct token *token = tokens_find(tokens, text);
    memory->generation = 0;
    if (token && text.len <= sizeof(memory->text)) {
        memory->generation = tokens->generation;
        memory->index = (uint32_t)(token - tokens->items);
        memory->len = (uint32_t)text.len;
        memcpy(memory->text, text.ptr, text.len);
    }
    return token;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/*
 * The generic cell rate algorithm (ITU-T I.371): |due_ns| is when the next request would come at
 * the rate exactly; a request that comes earlier by less than the burst is admitted.
 */
static bool is_in_rate(const struct token *token, uint64_t now_ns, uint32_t *out_retry_s)
{
    struct token_use *use = token->use;
    uint64_t due_ns = use->due_ns > now_ns ? use->due_ns : now_ns;
    uint64_t early_ns = due_ns - now_ns, allowed_ns = token->interval_ns * (token->burst - 1);
    if (early_ns > allowed_ns) {
        *out_retry_s = (uint32_t)((early_ns - allowed_ns + NS_PER_S - 1) / NS_PER_S);
        return false;
    }
    use->due_ns = due_ns + token->interval_ns;
    return true;
}

bool token_admit(const struct token *token, uint64_t now_ns, uint32_t *out_retry_s,
                 struct error *err)
{
    must(token->use != NULL);
    struct token_use *use = token->use;
    *out_retry_s = 0;
    if (token->running_max && use->running >= token->running_max) {
        *out_retry_s = 1;
        error_set(err, ST_EXHAUSTED, "token %s: expected at most %llu requests at a time",
                  use->name, (unsigned long long)token->running_max);
    } else if (token->interval_ns && !is_in_rate(token, now_ns, out_retry_s)) {
        error_set(err, ST_EXHAUSTED, "token %s: expected at most %llu requests a second", use->name,
                  (unsigned long long)(NS_PER_S / token->interval_ns));
    } else {
        use->running++;
        counter_add(&use->admitted, 1);
        return true;
    }
    counter_add(&use->refused, 1);
    return false;
}

void token_release(struct token_use *use)
{
    must(use->running > 0);
    use->running--;
}
