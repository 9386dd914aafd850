/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/infill.h"

#include <string.h>

#include "base/check.h"
#include "server/language/ask.h"
#include "server/language/words.h"
#include "server/text/tokenizer/tokenizer.h"

/* A sign that joins nothing: stands before a text that goes on, where a tokenizer puts a blank
 * before the first word. */
#define SIGN "\u263a"
#define SIGN_TOKENS_MAX 8

#define BAR(text) "<\uff5c" text "\uff5c>"

struct family {
    const char *name, *prefix, *suffix, *middle, *ends[INFILL_ENDS_MAX];
};

static const struct family families[] = {
#define INFILL(name, prefix, suffix, middle, ...) {#name, prefix, suffix, middle, {__VA_ARGS__}},
#include "server/language/infill.def"
};
#define FAMILY_COUNT (sizeof(families) / sizeof(families[0]))

static const char names[] = "one of "
#define INFILL(name, prefix, suffix, middle, ...) #name ", "
#include "server/language/infill.def"
                            "none, or the tokens";

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool find(const struct words *words, const char *text, uint32_t *out_id)
{
    return words_find(words, span_str(text), out_id);
}

/* Families have the same tokens for these, or none. */
static void take_files(struct infill_rules *rules, const struct words *words)
{
    static const char *const repositories[] = {"<|repo_name|>", "<repo_name>", "<reponame>"};
    static const char *const files[] = {"<|file_sep|>", "<|file_separator|>", "<file_sep>"};
    for (size_t i = 0; i < 3; i++) {
        rules->has_repository =
            rules->has_repository || find(words, repositories[i], &rules->repository);
        rules->has_file = rules->has_file || find(words, files[i], &rules->file);
    }
}

/* |rules| is set if the vocabulary has all tokens; else the first one that is missing. */
static const char *take(struct infill_rules *rules, const struct words *words,
                        const struct family *family)
{
    struct infill_rules found = {.is_known = true, .has_middle = family->middle != NULL};
    if (!find(words, family->prefix, &found.prefix)) {
        return family->prefix;
    }
    if (!find(words, family->suffix, &found.suffix)) {
        return family->suffix;
    }
    if (family->middle && !find(words, family->middle, &found.middle)) {
        return family->middle;
    }
    for (size_t i = 0; i < INFILL_ENDS_MAX && family->ends[i]; i++) {
        found.end_count += find(words, family->ends[i], &found.ends[found.end_count]);
    }
    take_files(&found, words);
    *rules = found;
    return NULL;
}

static enum status take_said(struct infill_rules *rules, const struct words *words,
                             const struct family *said, struct error *err)
{
    const char *missing = take(rules, words, said);
    return missing ? error_set(err, ST_INVALID,
                               "generation.infill of the card: the tokenizer has no token \"%s\"",
                               missing)
                   : ST_OK;
}

static enum status take_named(struct infill_rules *rules, const struct words *words,
                              const char *name, struct error *err)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        if (strcmp(name, families[i].name) == 0) {
            return take_said(rules, words, &families[i], err);
        }
    }
    return strcmp(name, "none") == 0
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "generation.infill of the card: expected %s, got \"%s\"", names, name);
}

enum status infill_rules_init(struct infill_rules *rules, const struct words *words,
                              const struct infill_said *said, struct error *err)
{
    *rules = (struct infill_rules){.is_known = false};
    if (said && said->prefix) {
        const struct family own = {
            .prefix = said->prefix, .suffix = said->suffix, .middle = said->middle};
        return take_said(rules, words, &own, err);
    }
    if (said && said->name) {
        return take_named(rules, words, said->name, err);
    }
    for (size_t i = 0; i < FAMILY_COUNT && !rules->is_known; i++) {
        (void)take(rules, words, &families[i]);
    }
    return ST_OK;
}

enum status infill_check(const struct infill_rules *rules, const char *member, const char *name,
                         struct error *err)
{
    return rules->is_known
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "%s: the tokenizer of model '%s' has no tokens for a gap, such as "
                           "<|fim_prefix|>, <|fim_suffix|> and <|fim_middle|>; if it has others, "
                           "infill in generation of the model's card names them",
                           member, name);
}

/* ---- prompts --------------------------------------------------------------------------------- */

static uint32_t left(const struct words_room *room)
{
    return room->count < room->max ? room->max - room->count : 0;
}

/* More ids than can be counted stay too many. */
static void add_count(struct words_room *room, uint32_t count)
{
    room->count = count > WORDS_COUNT_MAX || room->count > WORDS_COUNT_MAX ? WORDS_COUNT_MAX + 1
                                                                           : room->count + count;
}

static void add_ids(struct words_room *room, const uint32_t *ids, uint32_t count)
{
    uint32_t stored = count < left(room) ? count : left(room);
    if (stored > 0) {
        memcpy(room->ids + room->count, ids, stored * sizeof(*ids));
    }
    add_count(room, count);
}

static enum status add_text(struct words_room *room, const struct words *words, struct span text,
                            bool is_raw, struct error *err)
{
    struct words_room rest = {.ids = room->ids + (room->max - left(room)), .max = left(room)};
    TRY(words_encode(words, text, is_raw, &rest, err));
    add_count(room, rest.count);
    return ST_OK;
}

/* Does the tokenizer put a blank before a text? |sign| gets the ids of the sign. */
static enum status find_blank(const struct words *words, struct words_room *sign, bool *out,
                              struct error *err)
{
    uint8_t bytes[16];
    struct buf first;
    buf_init(&first, sizeof(bytes));
    TRY(words_encode(words, span_str(SIGN), true, sign, err));
    bool is_short = sign->count > 0 && sign->count <= sign->max;
    enum status status = is_short ? words_bytes(words, sign->ids[0], &first, err) : ST_OK;
    *out = is_short && first.len > 0 && first.ptr[0] == ' ';
    buf_fini(&first);
    return status;
}

/* The text behind the gap goes on within a line: without the blank that some tokenizers put before
 * a text, which is in no file. */
enum status infill_encode_rest(const struct words *words, struct span text, struct words_room *room,
                               struct error *err)
{
    uint32_t ids[SIGN_TOKENS_MAX];
    struct words_room sign = {.ids = ids, .max = SIGN_TOKENS_MAX};
    bool has_blank;
    TRY(find_blank(words, &sign, &has_blank, err));
    if (!has_blank || text.len == 0) {
        return add_text(room, words, text, true, err);
    }
    struct buf joined;
    struct token_list list;
    size_t second;
    buf_init(&joined, sizeof(SIGN) + text.len);
    buf_add_str(&joined, SIGN);
    buf_add(&joined, text.ptr, text.len);
    token_list_init(&list);
    struct span whole = buf_span(&joined);
    enum status status = buf_check(&joined, "the suffix", err);
    if (status == ST_OK) {
        status = words_encode_texts(words, &whole, 1, true, &list, &second, err);
    }
    bool begins = status == ST_OK && list.count >= sign.count &&
                  memcmp(list.ids, ids, sign.count * sizeof(ids[0])) == 0;
    if (begins) {
        add_ids(room, list.ids + sign.count, (uint32_t)(list.count - sign.count));
    }
    token_list_fini(&list);
    buf_fini(&joined);
    return status != ST_OK ? status : begins ? ST_OK : add_text(room, words, text, true, err);
}

static enum status add_before(struct words_room *room, const struct words *words,
                              const struct ask_prompt *before, struct error *err)
{
    if (before->ids) {
        add_ids(room, before->ids, before->id_count);
        return ST_OK;
    }
    return add_text(room, words, before->text, true, err);
}

enum status infill_encode(const struct infill_rules *rules, const struct words *words,
                          const struct ask_prompt *before, struct span after,
                          struct words_room *room, struct error *err)
{
    must(rules->is_known);
    room->count = 0;
    if (words_verify_bytes(words, before->text, room->max, err) != ST_OK) {
        return error_prefix(err, "the prompt: ");
    }
    if (words_verify_bytes(words, after, room->max, err) != ST_OK) {
        return error_prefix(err, "the suffix: ");
    }
    TRY(add_text(room, words, span_str(""), false, err));
    if (!rules->has_middle) {
        add_ids(room, &rules->suffix, 1);
        TRY(infill_encode_rest(words, after, room, err));
        add_ids(room, &rules->prefix, 1);
        return add_before(room, words, before, err);
    }
    add_ids(room, &rules->prefix, 1);
    TRY(add_before(room, words, before, err));
    add_ids(room, &rules->suffix, 1);
    TRY(infill_encode_rest(words, after, room, err));
    add_ids(room, &rules->middle, 1);
    return ST_OK;
}
