/* SPDX-License-Identifier: MIT */
/*
 * Details of tokenizers that no trained file in tests/text has: the files are made here, and the
 * expected tokens and texts are those of sentencepiece 0.2.3 and tokenizers 0.23.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/text/tokenizer/tokenizer.h"
#include "tests/unit/unit.h"

#define FILE_MAX 4096
#define TEXT_MAX 256

/* ---- SentencePiece --------------------------------------------------------------------------- */

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4 };

struct piece {
    const char *text;
    float score;
    uint8_t type;
};

static void put_message(struct buf *out, uint8_t field, struct span bytes)
{
    assert_true(bytes.len < 128); /* one byte of length */
    buf_add_char(out, (char)(field << 3 | 2));
    buf_add_char(out, (char)bytes.len);
    buf_add(out, bytes.ptr, bytes.len);
}

static void put_piece(struct buf *out, const struct piece *piece)
{
    struct buf message;
    uint8_t score[5] = {2 << 3 | 5}, type[2] = {3 << 3, piece->type};
    uint32_t bits;
    memcpy(&bits, &piece->score, sizeof(bits));
    for (unsigned i = 0; i < 4; i++) {
        score[1 + i] = (uint8_t)(bits >> 8 * i);
    }
    buf_init(&message, FILE_MAX);
    put_message(&message, 1, span_str(piece->text));
    buf_add(&message, score, sizeof(score));
    buf_add(&message, type, sizeof(type));
    put_message(out, 1, buf_span(&message));
    buf_fini(&message);
}

/* Unigram, without a blank in front of the text and without changes of blanks. */
static struct tokenizer *make_unigram(const struct piece *pieces, size_t count)
{
    struct tokenizer *tokenizer;
    struct error err;
    struct buf file;
    buf_init(&file, FILE_MAX);
    for (size_t i = 0; i < count; i++) {
        put_piece(&file, &pieces[i]);
    }
    put_message(&file, 2, span_of("\x18\x01", 2));
    put_message(&file, 3, span_of("\x18\x00\x20\x00", 4));
    assert_false(buf_failed(&file));
    assert_ok(err, tokenizer_parse(buf_span(&file), TOKENIZER_PATTERN_AUTO, &tokenizer, &err));
    buf_fini(&file);
    return tokenizer;
}

static void check_encode(const struct tokenizer *tokenizer, const char *text, size_t count,
                         const uint32_t *want)
{
    struct token_list list;
    struct error err;
    token_list_init(&list);
    assert_ok(err, tokenizer_encode(tokenizer, span_str(text), 0, SIZE_MAX, &list, &err));
    assert_int_equal(list.count, count);
    assert_memory_equal(list.ids, want, count * sizeof(*want));
    token_list_fini(&list);
}

/* A user-defined piece scores 0.1 for each byte but the first, whatever the file says: with scores
 * below zero "ab" wins against "a" and "b". */
static void test_user_defined_pieces_win_where_all_scores_are_negative(void **state)
{
    static const struct piece pieces[] = {
        {"<unk>", 0, UNKNOWN}, {"<s>", 0, CONTROL},  {"</s>", 0, CONTROL},   {"a", -1, NORMAL},
        {"b", -1, NORMAL},     {"c", -1.5F, NORMAL}, {"ab", 0, USER_DEFINED}};
    (void)state;
    struct tokenizer *tokenizer = make_unigram(pieces, sizeof(pieces) / sizeof(pieces[0]));
    check_encode(tokenizer, "abc", 2, (const uint32_t[]){6, 5});
    check_encode(tokenizer, "cab", 2, (const uint32_t[]){5, 6});
    check_encode(tokenizer, "aab", 2, (const uint32_t[]){3, 6});
    check_encode(tokenizer, "ba", 2, (const uint32_t[]){4, 3});
    tokenizer_free(tokenizer);
}

/* 0.5 for the six bytes of two blanks, so they win against a token that joins them to a word. In
 * 0.2.1 they had -0.1, and lost. */
static void test_user_defined_pieces_score_by_their_bytes(void **state)
{
    static const struct piece pieces[] = {{"<unk>", 0, UNKNOWN},
                                          {"foo", -1, NORMAL},
                                          {"bar", -2, NORMAL},
                                          {"\xe2\x96\x81\xe2\x96\x81"
                                           "bar",
                                           -1.8F, NORMAL},
                                          {"\xe2\x96\x81", -3, NORMAL},
                                          {"\xe2\x96\x81\xe2\x96\x81", -9, USER_DEFINED}};
    (void)state;
    struct tokenizer *tokenizer = make_unigram(pieces, sizeof(pieces) / sizeof(pieces[0]));
    check_encode(tokenizer, "foo  bar", 3, (const uint32_t[]){1, 5, 2});
    check_encode(tokenizer, "foo bar", 3, (const uint32_t[]){1, 4, 2});
    tokenizer_free(tokenizer);
}

/* In 0.2.1 the largest score counted for each byte of a user-defined piece; here 3.9 for "ab". */
static void test_scores_above_zero_do_not_help_user_defined_pieces(void **state)
{
    static const struct piece pieces[] = {{"<unk>", 0, UNKNOWN},   {"a", 2, NORMAL},
                                          {"b", 0.25F, NORMAL},    {"bc", 1.5F, NORMAL},
                                          {"ab", 0, USER_DEFINED}, {"c", 1, NORMAL}};
    (void)state;
    struct tokenizer *tokenizer = make_unigram(pieces, sizeof(pieces) / sizeof(pieces[0]));
    check_encode(tokenizer, "abc", 2, (const uint32_t[]){1, 3});
    check_encode(tokenizer, "ab", 2, (const uint32_t[]){1, 2});
    tokenizer_free(tokenizer);
}

/* ---- lists with a token twice ---------------------------------------------------------------- */

static const char repeated[] =
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"single_word\":false,"
    "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}],"
    "\"normalizer\":null,\"pre_tokenizer\":null,\"post_processor\":null,"
    "\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,"
    "\"byte_fallback\":false,\"vocab\":[[\"<unk>\",0.0],[\"<s>\",0.0],[\"a\",-1.0],"
    "[\"<s>\",-2.0],[\"b\",-1.0],[\"a\",-3.0]]}}";

static void check_decode(const struct tokenizer *tokenizer, bool skips, size_t count,
                         const uint32_t *ids, const char *want)
{
    struct error err;
    struct buf text;
    buf_init(&text, TEXT_MAX);
    assert_ok(err, tokenizer_decode(tokenizer, ids, count, skips, &text, &err));
    buf_add_char(&text, '\0');
    assert_string_equal((const char *)text.ptr, want);
    buf_fini(&text);
}

static void test_a_special_token_that_a_list_repeats_is_special_at_each_id(void **state)
{
    struct tokenizer *tokenizer;
    struct error err;
    (void)state;
    assert_ok(err, tokenizer_parse(span_str(repeated), TOKENIZER_PATTERN_AUTO, &tokenizer, &err));
    check_decode(tokenizer, true, 3, (const uint32_t[]){2, 1, 4}, "ab");
    check_decode(tokenizer, true, 3, (const uint32_t[]){2, 3, 4}, "ab");
    check_decode(tokenizer, false, 3, (const uint32_t[]){2, 3, 4}, "a<s>b");
    check_decode(tokenizer, true, 2, (const uint32_t[]){5, 4}, "ab");
    assert_true(tokenizer_is_special(tokenizer, 3));
    assert_false(tokenizer_is_special(tokenizer, 5));
    check_encode(tokenizer, "ab", 2, (const uint32_t[]){5, 4});
    tokenizer_free(tokenizer);
}

/* ---- long words ------------------------------------------------------------------------------ */

#define LETTERS 3
#define MERGES 40
#define NAME_MAX_BYTES 64
#define SYMBOLS_MAX 1000

/* Byte pair encoding of random merges, of which many make a token that an earlier merge needs. */
struct merges {
    char names[LETTERS + MERGES][NAME_MAX_BYTES];
    uint32_t pairs[MERGES][2];
    uint32_t count;
};

static uint32_t seed;

static uint32_t below(uint32_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * limit >> 32);
}

static bool has_name(const struct merges *merges, const char *name)
{
    for (uint32_t i = 0; i < LETTERS + merges->count; i++) {
        if (strcmp(merges->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void make_merges(struct merges *merges)
{
    *merges = (struct merges){.names = {"a", "b", "c"}};
    for (unsigned tries = 0; tries < 4 * MERGES && merges->count < MERGES; tries++) {
        char name[2 * NAME_MAX_BYTES];
        uint32_t left = below(LETTERS + merges->count), right = below(LETTERS + merges->count);
        snprintf(name, sizeof(name), "%s%s", merges->names[left], merges->names[right]);
        if (strlen(name) < NAME_MAX_BYTES && !has_name(merges, name)) {
            memcpy(merges->names[LETTERS + merges->count], name, strlen(name) + 1);
            merges->pairs[merges->count][0] = left;
            merges->pairs[merges->count++][1] = right;
        }
    }
    for (uint32_t i = merges->count - 1; i > 0; i--) { /* ranks at random */
        uint32_t other = below(i + 1);
        for (unsigned side = 0; side < 2; side++) {
            uint32_t kept = merges->pairs[i][side];
            merges->pairs[i][side] = merges->pairs[other][side];
            merges->pairs[other][side] = kept;
        }
    }
}

static uint32_t joined(const struct merges *merges, uint32_t rank)
{
    char name[2 * NAME_MAX_BYTES];
    snprintf(name, sizeof(name), "%s%s", merges->names[merges->pairs[rank][0]],
             merges->names[merges->pairs[rank][1]]);
    for (uint32_t i = 0;; i++) {
        assert_true(i < LETTERS + merges->count);
        if (strcmp(merges->names[i], name) == 0) {
            return i;
        }
    }
}

static struct tokenizer *load_merges(const struct merges *merges)
{
    struct tokenizer *tokenizer;
    struct error err;
    struct buf file;
    buf_init(&file, (size_t)16 * FILE_MAX);
    buf_add_str(&file, "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,"
                       "\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":null,"
                       "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (uint32_t i = 0; i < LETTERS + merges->count; i++) {
        buf_printf(&file, "%s\"%s\":%u", i ? "," : "", merges->names[i], i);
    }
    buf_add_str(&file, "},\"merges\":[");
    for (uint32_t i = 0; i < merges->count; i++) {
        buf_printf(&file, "%s[\"%s\",\"%s\"]", i ? "," : "", merges->names[merges->pairs[i][0]],
                   merges->names[merges->pairs[i][1]]);
    }
    buf_add_str(&file, "]}}");
    assert_ok(err, tokenizer_parse(buf_span(&file), TOKENIZER_PATTERN_AUTO, &tokenizer, &err));
    buf_fini(&file);
    return tokenizer;
}

/* The definition: the lowest rank, and of equal ranks the leftmost, until there is none. */
static size_t join_all(const struct merges *merges, uint32_t *ids, size_t count)
{
    while (true) {
        uint32_t best = merges->count;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            for (uint32_t rank = 0; rank < best; rank++) {
                if (merges->pairs[rank][0] == ids[i] && merges->pairs[rank][1] == ids[i + 1]) {
                    best = rank;
                    at = i;
                }
            }
        }
        if (best == merges->count) {
            return count;
        }
        ids[at] = joined(merges, best);
        count--;
        memmove(ids + at + 1, ids + at + 2, (count - at - 1) * sizeof(*ids));
    }
}

static void test_long_words_are_joined_as_defined(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        seed = round;
        struct merges merges;
        char text[SYMBOLS_MAX + 1];
        uint32_t ids[SYMBOLS_MAX];
        make_merges(&merges);
        struct tokenizer *tokenizer = load_merges(&merges);
        size_t count = 2 + below(300);
        uint32_t letters = 1 + below(LETTERS);
        for (size_t i = 0; i < count; i++) {
            ids[i] = below(letters);
            text[i] = (char)('a' + (int)ids[i]);
        }
        text[count] = '\0';
        count = join_all(&merges, ids, count);
        check_encode(tokenizer, text, count, ids);
        tokenizer_free(tokenizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_defined_pieces_win_where_all_scores_are_negative),
        cmocka_unit_test(test_user_defined_pieces_score_by_their_bytes),
        cmocka_unit_test(test_scores_above_zero_do_not_help_user_defined_pieces),
        cmocka_unit_test(test_a_special_token_that_a_list_repeats_is_special_at_each_id),
        cmocka_unit_test(test_long_words_are_joined_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
