/* SPDX-License-Identifier: MIT */
/*
 * Details of tokenizers that no trained file in tests/text has: the files are made here, and the
 * expected tokens and texts are those of sentencepiece 0.2.3 and tokenizers 0.23.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "server/text/tokenizer.h"
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

/* The bonus of a user-defined piece is its length times the largest score, but never below zero:
 * with scores below zero "ab" would otherwise lose against "a" and "b". */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_defined_pieces_win_where_all_scores_are_negative),
        cmocka_unit_test(test_a_special_token_that_a_list_repeats_is_special_at_each_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
