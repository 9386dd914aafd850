/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/thinking.h"

#include <string.h>

#include "base/check.h"
#include "server/language/tools.h"
#include "server/language/words.h"

/* Around a token in the rows: the byte that stands before it in text as well, and its end. */
#define TOKEN_BEGIN "\xff"
#define TOKEN_END '\xfe'
#define TOKEN(text) TOKEN_BEGIN text "\xfe"

/* Of a header of a channel, without its markers. */
#define HEADER_BYTES_MAX 256

struct thinking_family {
    const char *name, *sign, *open, *close;
    bool has_channels;
};

static const struct thinking_family families[] = {
#define THINKING(name, sign, open, close, has_channels) {#name, sign, open, close, has_channels},
#include "server/language/thinking.def"
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* ---- families -------------------------------------------------------------------------------- */

const struct thinking_family *thinking_family_find(struct span source)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        size_t len = strlen(families[i].sign);
        if (source.len >= len && memmem(source.ptr, source.len, families[i].sign, len)) {
            return &families[i];
        }
    }
    return NULL;
}

static const struct thinking_family *find_named(const char *name)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i].name, name) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

static const char names[] =
#define THINKING(name, sign, open, close, has_channels) #name ", "
#include "server/language/thinking.def"
    "none or the markers";

/* ---- the rules of a model -------------------------------------------------------------------- */

static void add_bytes(struct thinking_marker *marker, struct span bytes)
{
    must(marker->len + bytes.len <= THINKING_MARKER_MAX);
    memcpy(marker->bytes + marker->len, bytes.ptr, bytes.len);
    marker->len += bytes.len;
}

/* |text| becomes a part of |marker|: as a token, if the vocabulary has one. */
static void add_token(struct thinking_rules *rules, const struct words *words, struct span text,
                      struct thinking_marker *marker)
{
    uint32_t id;
    if (text.len <= 1 || !words_find(words, text, &id)) {
        add_bytes(marker, text);
        return;
    }
    add_bytes(marker, span_str(TOKEN_BEGIN));
    add_bytes(marker, text);
    if (!thinking_rules_find(rules, id)) {
        must(rules->token_count < THINKING_TOKENS_MAX);
        struct thinking_token *token = &rules->tokens[rules->token_count++];
        *token = (struct thinking_token){.id = id, .is_special = words_is_special(words, id)};
        add_bytes(&token->marker, span_str(TOKEN_BEGIN));
        add_bytes(&token->marker, text);
    }
}

/* |text| of a row: tokens, and text between them. */
static void make_marker(struct thinking_rules *rules, const struct words *words, const char *text,
                        struct thinking_marker *marker)
{
    *marker = (struct thinking_marker){.len = 0};
    while (*text) {
        bool is_token = *text == TOKEN_BEGIN[0];
        const char *begin = text + is_token;
        size_t len = strcspn(begin, is_token ? "\xfe" : TOKEN_BEGIN);
        if (is_token) {
            add_token(rules, words, span_of(begin, len), marker);
        } else {
            add_bytes(marker, span_of(begin, len));
        }
        text = begin + len + (is_token && begin[len] == TOKEN_END);
    }
}

static void take_family(struct thinking_rules *rules, const struct words *words,
                        const struct thinking_family *family)
{
    rules->thinks = true;
    rules->has_channels = family->has_channels;
    make_marker(rules, words, family->open, &rules->open);
    make_marker(rules, words, family->close, &rules->close);
    if (family->has_channels) {
        make_marker(rules, words, TOKEN("<|start|>"), &rules->start);
        make_marker(rules, words, TOKEN("<|channel|>"), &rules->channel);
        make_marker(rules, words, TOKEN("<|message|>"), &rules->message);
    }
}

/* A marker of a card is one token, or text. */
static void take_said(struct thinking_rules *rules, const struct words *words,
                      const struct thinking_said *said)
{
    size_t open_len = strlen(said->open), close_len = strlen(said->close);
    must(open_len > 0 && open_len < THINKING_MARKER_MAX);
    must(close_len > 0 && close_len < THINKING_MARKER_MAX);
    rules->thinks = true;
    add_token(rules, words, span_of(said->open, open_len), &rules->open);
    add_token(rules, words, span_of(said->close, close_len), &rules->close);
}

enum status thinking_rules_init(struct thinking_rules *rules, const struct words *words,
                                const struct thinking_family *family,
                                const struct thinking_said *said, struct error *err)
{
    *rules = (struct thinking_rules){.thinks = false};
    if (said && said->open) {
        take_said(rules, words, said);
        return ST_OK;
    }
    if (said && said->name) {
        family = find_named(said->name);
        if (!family && strcmp(said->name, "none") != 0) {
            return error_set(err, ST_INVALID,
                             "generation.thinking of the card: expected %s, got "
                             "\"%s\"",
                             names, said->name);
        }
    }
    if (family) {
        take_family(rules, words, family);
    }
    return ST_OK;
}

const struct thinking_token *thinking_rules_find(const struct thinking_rules *rules, uint32_t id)
{
    for (uint32_t i = 0; i < rules->token_count; i++) {
        if (rules->tokens[i].id == id) {
            return &rules->tokens[i];
        }
    }
    return NULL;
}

/* ---- prompts --------------------------------------------------------------------------------- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Does |text| end with |marker|, as a prompt has it? |*out_before|: what stands before it. */
static bool has_at_end(struct span text, const struct thinking_marker *marker,
                       struct span *out_before)
{
    size_t end = marker->len;
    while (text.len > 0 && is_blank(text.ptr[text.len - 1])) {
        text.len--;
    }
    while (end > 0) {
        uint8_t c = marker->bytes[--end];
        if (c == THINKING_TOKEN_BYTE) {
            continue;
        }
        if (text.len == 0 || text.ptr[text.len - 1] != c) {
            return false;
        }
        text.len--;
    }
    *out_before = text;
    return true;
}

enum thinking_start thinking_start_of(const struct thinking_rules *rules, struct span prompt)
{
    struct span before;
    if (has_at_end(prompt, &rules->open, &before)) {
        return THINKING_IS_OPEN;
    }
    return has_at_end(prompt, &rules->close, &before) ? THINKING_IS_OVER : THINKING_MAY_COME;
}

/* ---- life ------------------------------------------------------------------------------------ */

void thinking_init(struct thinking *thinking, const struct thinking_rules *rules, size_t bytes_max)
{
    *thinking = (struct thinking){.rules = rules && rules->thinks ? rules : NULL};
    buf_init(&thinking->held, bytes_max);
    buf_init(&thinking->blanks, bytes_max);
    buf_init(&thinking->text, bytes_max);
}

void thinking_fini(struct thinking *thinking)
{
    buf_fini(&thinking->held);
    buf_fini(&thinking->blanks);
    buf_fini(&thinking->text);
}

void thinking_restart(struct thinking *thinking, enum thinking_start start)
{
    buf_reset(&thinking->held);
    buf_reset(&thinking->blanks);
    buf_reset(&thinking->text);
    thinking->place = start == THINKING_IS_OPEN   ? THINKING_INSIDE
                      : start == THINKING_IS_OVER ? THINKING_BEHIND
                                                  : THINKING_BEFORE;
    thinking->may_open = true;
    thinking->skips_blanks = start == THINKING_IS_OVER;
    thinking->has_header = false;
    thinking->marker_count = 0;
}

size_t thinking_bytes(const struct thinking *thinking)
{
    return thinking->held.capacity + thinking->blanks.capacity + thinking->text.capacity;
}

bool thinking_failed(const struct thinking *thinking)
{
    return buf_failed(&thinking->held) || buf_failed(&thinking->blanks) ||
           buf_failed(&thinking->text);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void flush_blanks(struct thinking *thinking, struct buf *out)
{
    buf_add(out, thinking->blanks.ptr, thinking->blanks.len);
    buf_reset(&thinking->blanks);
}

/* A byte of a thought, or of the answer. */
static void put(struct thinking *thinking, uint8_t c, struct buf *out)
{
    bool is_inside = thinking->place == THINKING_INSIDE;
    struct buf *to = is_inside ? &thinking->text : out;
    if (is_blank(c)) {
        bool is_dropped = is_inside ? to->len == 0 : thinking->skips_blanks;
        bool is_held = is_inside || thinking->place == THINKING_BEFORE;
        if (!is_dropped) {
            buf_add_char(is_held ? &thinking->blanks : to, (char)c);
        }
        return;
    }
    flush_blanks(thinking, to);
    buf_add_char(to, (char)c);
    if (!is_inside) {
        thinking->place = THINKING_BEHIND;
        thinking->skips_blanks = false;
    }
}

static void open_thought(struct thinking *thinking)
{
    buf_reset(&thinking->blanks);
    thinking->place = THINKING_INSIDE;
    if (thinking->text.len > 0) {
        buf_add_str(&thinking->blanks, "\n\n"); /* between two thoughts */
    }
}

static void close_thought(struct thinking *thinking)
{
    buf_reset(&thinking->blanks);
    thinking->place = THINKING_BEHIND;
    thinking->skips_blanks = true;
}

/* ---- markers --------------------------------------------------------------------------------- */

enum match { NO_MATCH, PART_MATCH, FULL_MATCH };

/* Does |marker| stand at the beginning of |text|, or the part of it that |text| has room for? */
static enum match match(const struct thinking_marker *marker, struct span text)
{
    size_t len = marker->len < text.len ? marker->len : text.len;
    if (marker->len == 0 || memcmp(marker->bytes, text.ptr, len) != 0) {
        return NO_MATCH;
    }
    return len == marker->len ? FULL_MATCH : PART_MATCH;
}

static bool is_token(const struct thinking_marker *marker)
{
    return marker->bytes[0] == THINKING_TOKEN_BYTE;
}

/* The marker that may come here; NULL: none. */
static const struct thinking_marker *expected(const struct thinking *thinking)
{
    const struct thinking_rules *rules = thinking->rules;
    if (thinking->place == THINKING_INSIDE) {
        return &rules->close;
    }
    bool is_early = thinking->place == THINKING_BEFORE || is_token(&rules->open);
    return thinking->may_open && is_early && !rules->has_channels ? &rules->open : NULL;
}

/* A token that is no marker here: the length of its text. */
static size_t take_token(struct thinking *thinking, struct span text, struct buf *out)
{
    const struct thinking_rules *rules = thinking->rules;
    for (uint32_t i = 0; i < rules->token_count; i++) {
        const struct thinking_token *token = &rules->tokens[i];
        if (match(&token->marker, text) != FULL_MATCH) {
            continue;
        }
        thinking->marker_count += token->is_special;
        for (size_t j = 1; j < token->marker.len && !token->is_special; j++) {
            put(thinking, token->marker.bytes[j], out);
        }
        return token->marker.len;
    }
    return 1;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* The channel of a header, "analysis", behind the token of channels. */
static bool is_analysis(const struct thinking_rules *rules, struct span header)
{
    static const char name[] = "analysis";
    const uint8_t *at = memmem(header.ptr, header.len, rules->channel.bytes, rules->channel.len);
    if (!at) {
        return false;
    }
    at += rules->channel.len;
    size_t left = (size_t)(header.ptr + header.len - at);
    return left >= sizeof(name) - 1 && memcmp(at, name, sizeof(name) - 1) == 0;
}

/* A prompt ends with the beginning of a header, which may go on with a tool's name. */
static enum match match_recipient(const struct thinking *thinking, struct span text)
{
    static const struct thinking_marker recipient = {.bytes = " to=", .len = 4};
    return thinking->place == THINKING_BEFORE && thinking->marker_count == 0
               ? match(&recipient, text)
               : NO_MATCH;
}

static enum match match_header(const struct thinking *thinking, struct span text, size_t *out_len)
{
    const struct thinking_rules *rules = thinking->rules;
    const enum match begins[] = {match(&rules->start, text), match(&rules->channel, text),
                                 match_recipient(thinking, text)};
    enum match begin = NO_MATCH;
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        begin = begins[i] > begin ? begins[i] : begin;
    }
    if (begin != FULL_MATCH) {
        return begin;
    }
    size_t len = text.len < HEADER_BYTES_MAX ? text.len : HEADER_BYTES_MAX;
    const uint8_t *end = memmem(text.ptr, len, rules->message.bytes, rules->message.len);
    if (!end) {
        return len < HEADER_BYTES_MAX ? PART_MATCH : NO_MATCH;
    }
    *out_len = (size_t)(end - text.ptr) + rules->message.len;
    return FULL_MATCH;
}

static void put_text(struct thinking *thinking, struct span text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        put(thinking, text.ptr[i], out);
    }
}

/* The name of the tool that a header calls, "to=functions.f"; empty: none. */
static struct span recipient_of(struct span header)
{
    static const char mark[] = "to=functions.";
    const uint8_t *at = memmem(header.ptr, header.len, mark, sizeof(mark) - 1);
    const uint8_t *begin = at ? at + sizeof(mark) - 1 : NULL, *end = header.ptr + header.len;
    if (!at) {
        return span_str("");
    }
    at = begin;
    while (at < end && !is_blank(*at) && *at != '<' && *at != THINKING_TOKEN_BYTE) {
        at++;
    }
    return span_of(begin, (size_t)(at - begin));
}

/* A header begins another part of the answer. */
static void take_header(struct thinking *thinking, struct span header, struct buf *out)
{
    struct span recipient = recipient_of(header);
    if (thinking->place == THINKING_INSIDE) {
        close_thought(thinking);
    }
    if (recipient.len > 0 && thinking->keeps_calls) {
        thinking->has_header = true;
        put_text(thinking, span_str(TOOLS_RECIPIENT), out);
        put_text(thinking, recipient, out);
        put_text(thinking, span_str("<|message|>"), out);
    } else if (is_analysis(thinking->rules, header)) {
        open_thought(thinking);
    } else {
        thinking->has_header = true;
    }
}

/* ---- an answer ------------------------------------------------------------------------------- */

/* Takes the next marker, token or byte of |text|, and gives its length; 0: more has to come.
 * |is_end|: no more comes. */
static size_t take(struct thinking *thinking, struct span text, bool is_end, struct buf *out)
{
    const struct thinking_rules *rules = thinking->rules;
    size_t header_len = 0;
    enum match header = rules->has_channels ? match_header(thinking, text, &header_len) : NO_MATCH;
    if (header == FULL_MATCH) {
        thinking->marker_count++;
        take_header(thinking, span_of(text.ptr, header_len), out);
        return header_len;
    }
    const struct thinking_marker *marker = expected(thinking);
    enum match found = marker ? match(marker, text) : NO_MATCH;
    if (found == FULL_MATCH) {
        thinking->marker_count++;
        (thinking->place == THINKING_INSIDE ? close_thought : open_thought)(thinking);
        return marker->len;
    }
    if (!is_end && (header == PART_MATCH || found == PART_MATCH)) {
        return 0;
    }
    if (text.ptr[0] == THINKING_TOKEN_BYTE) {
        return take_token(thinking, text, out);
    }
    bool is_before = thinking->place == THINKING_BEFORE;
    put(thinking, text.ptr[0], out);
    /* A model that writes no header has begun the answer. */
    thinking->has_header |= is_before && thinking->place == THINKING_BEHIND;
    return 1;
}

static void take_all(struct thinking *thinking, bool is_end, struct buf *out)
{
    struct buf *held = &thinking->held;
    size_t at = 0, len = 1;
    while (at < held->len && len > 0) {
        len = take(thinking, span_of(held->ptr + at, held->len - at), is_end, out);
        at += len;
    }
    if (at > 0) {
        memmove(held->ptr, held->ptr + at, held->len - at);
        held->len -= at;
    }
}

void thinking_push(struct thinking *thinking, struct span text, struct buf *out)
{
    if (!thinking->rules) {
        buf_add(out, text.ptr, text.len);
        return;
    }
    buf_add(&thinking->held, text.ptr, text.len);
    take_all(thinking, false, out);
}

void thinking_close(struct thinking *thinking, struct buf *out)
{
    if (thinking->rules && thinking->place == THINKING_INSIDE) {
        take_all(thinking, true, out);
        close_thought(thinking);
    }
}

void thinking_end(struct thinking *thinking, struct buf *out)
{
    if (!thinking->rules) {
        return;
    }
    take_all(thinking, true, out);
    if (thinking->place == THINKING_BEFORE) {
        flush_blanks(thinking, out);
    }
}

bool thinking_is_apart(const struct thinking *thinking)
{
    return thinking->rules && (thinking->place == THINKING_INSIDE || thinking->held.len > 0 ||
                               (thinking->rules->has_channels && !thinking->has_header));
}

bool thinking_find_open(const struct thinking *thinking, uint32_t *out_id)
{
    const struct thinking_rules *rules = thinking->rules;
    if (!rules || rules->has_channels || thinking->place != THINKING_BEFORE ||
        !thinking->may_open || !is_token(&rules->open)) {
        return false;
    }
    for (uint32_t i = 0; i < rules->token_count; i++) {
        if (match(&rules->tokens[i].marker, span_of(rules->open.bytes, rules->open.len)) ==
            FULL_MATCH) {
            *out_id = rules->tokens[i].id;
            return true;
        }
    }
    return false;
}
