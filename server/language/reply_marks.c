/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_marks.h"

#include <inttypes.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "server/language/words.h"

static void print_f32(struct buf *out, float value)
{
    uint8_t text[NUMBER_TEXT_MAX];
    /* A client expects a number. No token is that improbable. */
    size_t len = number_print_f32(text, value > -9999 ? value : -9999, NUMBER_NAN_NULL);
    buf_add(out, text, len);
}

static void word_of(const struct words *words, uint32_t id, struct buf *word)
{
    struct error ignored;
    buf_reset(word);
    (void)!words_bytes(words, id, word, &ignored); /* then it is shorter, or empty */
}

/* Of all tokens: a character may be made of several. */
static void words_of(const struct words *words, const struct sampler_mark *marks, uint32_t count,
                     struct buf *text)
{
    struct error ignored;
    for (uint32_t i = 0; i < count; i++) {
        (void)!words_bytes(words, marks[i].chosen.id, text, &ignored);
    }
}

static void print_word(const struct reply *reply, uint32_t id, struct buf *word, struct buf *out)
{
    word_of(reply->words, id, word);
    json_print_string(out, buf_span(word));
}

/* ---- chats ----------------------------------------------------------------------------------- */

void reply_marks_print_token(const struct words *words, const struct sampler_choice *choice,
                             struct buf *word, struct buf *out)
{
    buf_add_str(out, "\"token\":");
    word_of(words, choice->id, word);
    json_print_string(out, buf_span(word));
    buf_add_str(out, ",\"logprob\":");
    print_f32(out, choice->logprob);
    buf_add_str(out, ",\"bytes\":[");
    for (size_t i = 0; i < word->len; i++) {
        buf_printf(out, "%s%u", i ? "," : "", word->ptr[i]);
    }
    buf_add_char(out, ']');
}

void reply_marks_print_list(const struct reply *reply, const struct reply_piece *piece,
                            struct buf *out)
{
    struct buf text, *word = &text;
    buf_init(word, REPLY_WORD_BYTES_MAX);
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < piece->mark_count; i++) {
        const struct sampler_mark *mark = &piece->marks[i];
        buf_add_str(out, i ? ",{" : "{");
        reply_marks_print_token(reply->words, &mark->chosen, word, out);
        buf_add_str(out, ",\"top_logprobs\":[");
        for (uint32_t j = 0; j < mark->top_count; j++) {
            buf_add_str(out, j ? ",{" : "{");
            reply_marks_print_token(reply->words, &mark->top[j], word, out);
            buf_add_char(out, '}');
        }
        buf_add_str(out, "]}");
    }
    buf_add_char(out, ']');
    buf_fini(word);
}

static void print_chat(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    buf_add_str(out, "{\"content\":");
    reply_marks_print_list(reply, piece, out);
    buf_add_str(out, ",\"refusal\":null}");
}

void reply_marks_print_chunk(const struct reply *reply, const struct sampler_mark *marks,
                             uint32_t count, struct buf *out)
{
    struct buf word;
    buf_init(&word, (size_t)count * REPLY_WORD_BYTES_MAX);
    buf_add_str(out, "{\"token_ids\":[");
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s%" PRIu32, i ? "," : "", marks[i].chosen.id);
    }
    buf_add_str(out, "],\"logprobs\":[");
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? "," : "");
        print_f32(out, marks[i].chosen.logprob);
    }
    buf_add_str(out, "],\"text\":");
    words_of(reply->words, marks, count, &word);
    json_print_string(out, buf_span(&word));
    buf_add_char(out, '}');
    buf_fini(&word);
}

/* ---- completions ----------------------------------------------------------------------------- */

/* A token of the list. |mark| is NULL of the first one of a prompt: nothing stands before it. */
struct item {
    uint32_t id;
    uint32_t offset;
    const struct sampler_mark *mark;
};

/* The prompt is part of the text if it is echoed. */
static uint32_t prompt_items(const struct reply *reply, const struct reply_piece *piece)
{
    return reply->ask->echoes && piece->prompt ? piece->prompt_count : 0;
}

static struct item item_at(const struct reply *reply, const struct reply_piece *piece, uint32_t i)
{
    uint32_t prompt = prompt_items(reply, piece);
    const struct sampler_mark *mark = i >= prompt ? &piece->marks[i - prompt]
                                      : i > 0     ? &piece->prompt_marks[i - 1]
                                                  : NULL;
    return i < prompt ? (struct item){piece->prompt[i], piece->prompt_offsets[i], mark}
                      : (struct item){mark->chosen.id, mark->offset, mark};
}

/* Is the text of |id| that of one of the first |count|? Each text has one member. */
static bool is_repeated(const struct reply *reply, const struct sampler_mark *mark, uint32_t count,
                        uint32_t id, struct buf *word, struct buf *other)
{
    word_of(reply->words, id, word);
    for (uint32_t i = 0; i < count; i++) {
        word_of(reply->words, mark->top[i].id, other);
        if (span_equal(buf_span(word), buf_span(other))) {
            return true;
        }
    }
    return false;
}

/* The most probable tokens, and the chosen one, if it is none of them. */
static void print_tops(const struct reply *reply, const struct sampler_mark *mark, struct buf *word,
                       struct buf *out)
{
    struct buf other;
    const char *before = "";
    uint32_t tops =
        mark->top_count < reply->ask->top_count ? mark->top_count : reply->ask->top_count;
    buf_init(&other, REPLY_WORD_BYTES_MAX);
    buf_add_char(out, '{');
    for (uint32_t i = 0; i <= tops; i++) {
        const struct sampler_choice *choice = i < tops ? &mark->top[i] : &mark->chosen;
        if (!is_repeated(reply, mark, i, choice->id, word, &other)) {
            buf_add_str(out, before);
            json_print_string(out, buf_span(word));
            buf_add_char(out, ':');
            print_f32(out, choice->logprob);
            before = ",";
        }
    }
    buf_add_char(out, '}');
    buf_fini(&other);
}

static void print_text_words(const struct reply *reply, const struct reply_piece *piece,
                             uint32_t count, struct buf *word, struct buf *out)
{
    buf_add_str(out, "{\"tokens\":[");
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? "," : "");
        print_word(reply, item_at(reply, piece, i).id, word, out);
    }
}

static void print_text_logprobs(const struct reply *reply, const struct reply_piece *piece,
                                uint32_t count, struct buf *word, struct buf *out)
{
    buf_add_str(out, "],\"token_logprobs\":[");
    for (uint32_t i = 0; i < count; i++) {
        const struct sampler_mark *mark = item_at(reply, piece, i).mark;
        buf_add_str(out, i ? "," : "");
        if (mark) {
            print_f32(out, mark->chosen.logprob);
        } else {
            buf_add_str(out, "null");
        }
    }
    buf_add_str(out, "],\"top_logprobs\":[");
    for (uint32_t i = 0; i < count; i++) {
        const struct sampler_mark *mark = item_at(reply, piece, i).mark;
        buf_add_str(out, i ? "," : "");
        if (mark) {
            print_tops(reply, mark, word, out);
        } else {
            buf_add_str(out, "null");
        }
    }
}

/* Offsets count characters, as clients index strings. */
static void print_text_offsets(const struct reply *reply, const struct reply_piece *piece,
                               uint32_t count, struct buf *out)
{
    buf_add_str(out, "],\"text_offset\":[");
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s%" PRIu32, i ? "," : "", item_at(reply, piece, i).offset);
    }
    buf_add_str(out, "]}");
}

static void print_text(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    struct buf word;
    uint32_t count = prompt_items(reply, piece) + piece->mark_count;
    buf_init(&word, REPLY_WORD_BYTES_MAX);
    print_text_words(reply, piece, count, &word, out);
    print_text_logprobs(reply, piece, count, &word, out);
    print_text_offsets(reply, piece, count, out);
    buf_fini(&word);
}

void reply_marks_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    buf_add_str(out, ",\"logprobs\":");
    if (!reply->ask->wants_logprobs) {
        buf_add_str(out, "null");
        return;
    }
    (reply->ask->form == ASK_CHAT ? print_chat : print_text)(reply, piece, out);
}

/* ---- a list of its own ----------------------------------------------------------------------- */

static void print_ranked(const struct reply *reply, const struct sampler_choice *choice,
                         uint32_t rank, struct buf *word, struct buf *out)
{
    buf_printf(out, "\"%u\":{\"logprob\":", choice->id);
    print_f32(out, choice->logprob);
    buf_printf(out, ",\"rank\":%u,\"decoded_token\":", rank);
    print_word(reply, choice->id, word, out);
    buf_add_char(out, '}');
}

/* The token of the prompt, then the most probable others. */
static void print_ranks(const struct reply *reply, const struct sampler_mark *mark,
                        struct buf *word, struct buf *out)
{
    uint32_t tops = mark->top_count < reply->ask->prompt_top_count ? mark->top_count
                                                                   : reply->ask->prompt_top_count;
    buf_add_str(out, ",{");
    print_ranked(reply, &mark->chosen, mark->rank, word, out);
    for (uint32_t i = 0; i < tops; i++) {
        if (mark->top[i].id != mark->chosen.id) {
            buf_add_char(out, ',');
            print_ranked(reply, &mark->top[i], i + 1, word, out);
        }
    }
    buf_add_char(out, '}');
}

void reply_marks_print_prompt(const struct reply *reply, const struct reply_piece *piece,
                              struct buf *out)
{
    struct buf word;
    if (!reply->ask->wants_prompt_logprobs) {
        return;
    }
    buf_init(&word, REPLY_WORD_BYTES_MAX);
    buf_add_str(out, ",\"prompt_logprobs\":[null");
    for (uint32_t i = 1; i < piece->prompt_count; i++) {
        print_ranks(reply, &piece->prompt_marks[i - 1], &word, out);
    }
    buf_add_char(out, ']');
    buf_fini(&word);
}
