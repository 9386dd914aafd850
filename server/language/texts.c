/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/texts.h"

#include <string.h>

#include "base/check.h"
#include "base/utf8.h"
#include "server/language/words.h"
#include "server/text/tokenizer/tokenizer.h"

enum status texts_refuse_length(size_t count, uint32_t max, struct error *err)
{
    return error_set(err, ST_INVALID, "it has %zu tokens%s, the model takes at most %u", count,
                     count > WORDS_COUNT_MAX ? " or more" : "", max);
}

/* The tokens of each text by itself, and where they are among all. */
struct parts {
    struct token_list lists[2];
    size_t begins[2], keeps[2];
    uint32_t count;
};

/* Where |part| begins in |all|, not before |from|; false: its tokens are not there. */
static bool find_part(const struct token_list *all, const struct token_list *part, size_t from,
                      size_t *out)
{
    for (size_t at = from; in_range(at, part->count, all->count); at++) {
        if (part->count == 0 ||
            memcmp(all->ids + at, part->ids, part->count * sizeof(part->ids[0])) == 0) {
            *out = at;
            return true;
        }
    }
    return false;
}

/* Shares |room| tokens between the texts: first the longer one is cut. */
static void share(struct parts *parts, size_t room)
{
    size_t a = parts->lists[0].count, b = parts->lists[1].count;
    if (parts->count == 1) {
        parts->keeps[0] = a < room ? a : room;
        return;
    }
    bool is_swapped = a > b;
    size_t low = is_swapped ? b : a, high = low > room || low > room - low ? low : room - low;
    if (low + high > room) {
        low = room / 2;
        high = low + room % 2;
    }
    parts->keeps[0] = is_swapped ? high : low;
    parts->keeps[1] = is_swapped ? low : high;
    for (uint32_t i = 0; i < 2; i++) {
        size_t count = parts->lists[i].count;
        parts->keeps[i] = parts->keeps[i] < count ? parts->keeps[i] : count;
    }
}

/* Moves what is kept together, within |all|. */
static void drop_ends(struct token_list *all, const struct parts *parts, size_t *second)
{
    size_t to = parts->begins[0] + parts->keeps[0], dropped_before = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        size_t from = parts->begins[i] + parts->lists[i].count;
        size_t end = i + 1 < parts->count ? parts->begins[i + 1] + parts->keeps[i + 1] : all->count;
        memmove(all->ids + to, all->ids + from, (end - from) * sizeof(all->ids[0]));
        to += end - from;
        dropped_before += i + 1 < parts->count ? parts->lists[i].count - parts->keeps[i] : 0;
    }
    *second = *second == all->count ? to : *second - dropped_before;
    all->count = to;
}

static enum status cut(const struct words *words, const struct texts *texts, struct parts *parts,
                       struct token_list *all, size_t *second, struct error *err)
{
    size_t own = 0, from = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        size_t ignored;
        TRY(words_encode_texts(words, &texts->items[i], 1, true, &parts->lists[i], &ignored, err));
        if (!find_part(all, &parts->lists[i], from, &parts->begins[i])) {
            return error_set(err, ST_UNSUPPORTED, "the tokenizer does not say how to cut a text");
        }
        own += parts->lists[i].count;
        from = parts->begins[i] + parts->lists[i].count;
    }
    size_t around = all->count - own;
    if (around >= texts->max) {
        return texts_refuse_length(all->count, texts->max, err);
    }
    share(parts, texts->max - around);
    drop_ends(all, parts, second);
    return ST_OK;
}

static enum status cut_texts(const struct words *words, const struct texts *texts,
                             struct token_list *all, size_t *second, struct error *err)
{
    struct parts parts = {.count = texts->count};
    token_list_init(&parts.lists[0]);
    token_list_init(&parts.lists[1]);
    enum status status = cut(words, texts, &parts, all, second, err);
    token_list_fini(&parts.lists[1]);
    token_list_fini(&parts.lists[0]);
    return status;
}

static enum status keep(const struct token_list *list, size_t second, bool is_cut,
                        struct arena *arena, struct texts_ids *out, struct error *err)
{
    uint32_t *copy = arena_array(arena, list->count, sizeof(*copy));
    if (!copy) {
        return arena_fail(arena, "the tokens", err);
    }
    memcpy(copy, list->ids, list->count * sizeof(*copy));
    *out = (struct texts_ids){copy, (uint32_t)list->count, (uint32_t)second, is_cut};
    return ST_OK;
}

/* Drops the bytes that |max| tokens cannot have, see words_verify_bytes(). */
static enum status bound(const struct words *words, struct texts *texts, struct error *err)
{
    size_t most = words_bytes_max(words, texts->max);
    must(texts->count <= 2);
    for (uint32_t i = 0; i < texts->count; i++) {
        struct span *text = &texts->items[i];
        if (!texts->cuts) {
            TRY(words_verify_bytes(words, *text, texts->max, err));
        }
        text->len = text->len > most ? utf8_floor(text->ptr, most) : text->len;
    }
    return ST_OK;
}

enum status texts_encode(const struct words *words, const struct texts *whole, struct arena *arena,
                         struct texts_ids *out, struct error *err)
{
    struct token_list list;
    struct texts texts = *whole;
    size_t second = 0;
    TRY(bound(words, &texts, err));
    token_list_init(&list);
    enum status status =
        words_encode_texts(words, texts.items, texts.count, false, &list, &second, err);
    if (status == ST_TOO_LARGE) {
        status = texts_refuse_length(WORDS_COUNT_MAX + 1, texts.max, err);
    }
    bool is_cut = status == ST_OK && list.count > texts.max;
    if (is_cut) {
        status = texts.cuts ? cut_texts(words, &texts, &list, &second, err)
                            : texts_refuse_length(list.count, texts.max, err);
    }
    if (status == ST_OK && list.count == 0) {
        status = error_set(err, ST_INVALID, "it has no tokens, expected at least one");
    }
    status = status == ST_OK ? keep(&list, second, is_cut, arena, out, err) : status;
    token_list_fini(&list);
    return status;
}
