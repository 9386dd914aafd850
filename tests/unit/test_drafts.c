/* SPDX-License-Identifier: MIT */
/* Guesses at the next tokens of an answer: where they come from, and how many are worth a call. */
#include "config.h"

#include "server/language/drafts.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static void expect_guess(const struct drafts *drafts, const uint32_t *ids, uint32_t count)
{
    assert_int_equal(drafts->count, count);
    assert_memory_equal(drafts->ids, ids, count * sizeof(*ids));
}

/* ---- where they come from -------------------------------------------------------------------- */

static void what_followed_is_guessed(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3};
    const uint32_t next[] = {4, 5, 6, 7, 8, 9, 2};
    drafts_init(&drafts, NULL, 0);
    drafts_find(&drafts, tokens, COUNT(tokens), DRAFTS_MAX);
    expect_guess(&drafts, next, DRAFTS_MAX);
    assert_int_equal(drafts.match, 2);
    assert_false(drafts.is_said);
    drafts_find(&drafts, tokens, COUNT(tokens), 3);
    expect_guess(&drafts, next, 3);
    drafts_find(&drafts, tokens, COUNT(tokens), 0);
    assert_int_equal(drafts.count, 0);
}

/* One token may be the same by chance. */
static void a_token_is_no_match(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint32_t once[] = {1, 2, 3, 4, 9, 3}, none[] = {1, 2, 3}, one[] = {7};
    drafts_init(&drafts, NULL, 0);
    drafts_find(&drafts, once, COUNT(once), DRAFTS_MAX);
    assert_int_equal(drafts.count, 0);
    drafts_find(&drafts, none, COUNT(none), DRAFTS_MAX);
    assert_int_equal(drafts.count, 0);
    drafts_find(&drafts, one, 1, DRAFTS_MAX);
    assert_int_equal(drafts.count, 0);
    assert_int_equal(drafts_choose(&drafts, (uint64_t[]){0, 10, 10}, 2), 0);
}

/* The longest match counts, and the last of those that are as long. */
static void the_longest_match_counts(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint32_t tokens[] = {5, 1, 2, 3, 70, 6, 2, 3, 80, 2, 3, 90, 5, 1, 2, 3};
    const uint32_t last[] = {9, 2, 3, 80, 8, 2, 3, 90, 7, 2, 3};
    drafts_init(&drafts, NULL, 0);
    drafts_find(&drafts, tokens, COUNT(tokens), 1);
    expect_guess(&drafts, (uint32_t[]){70}, 1);
    assert_int_equal(drafts.match, 4);
    drafts_find(&drafts, last, COUNT(last), 1);
    expect_guess(&drafts, (uint32_t[]){90}, 1);
}

/* A repetition at the end is guessed to go on. */
static void repetition_goes_on(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint32_t same[] = {4, 4, 4, 4, 4}, pair[] = {1, 2, 1, 2, 1, 2};
    const uint32_t fours[] = {4, 4, 4, 4, 4, 4, 4}, pairs[] = {1, 2, 1, 2, 1, 2, 1};
    drafts_init(&drafts, NULL, 0);
    drafts_find(&drafts, same, COUNT(same), DRAFTS_MAX);
    expect_guess(&drafts, fours, DRAFTS_MAX);
    drafts_find(&drafts, pair, COUNT(pair), DRAFTS_MAX);
    expect_guess(&drafts, pairs, DRAFTS_MAX);
}

/* The client's text comes first, and is followed from where the answer is in it. */
static void the_text_of_the_client_is_followed(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint32_t said[] = {10, 11, 12, 10, 11, 13, 10, 11, 14};
    uint32_t tokens[] = {3, 10, 50, 3, 10};
    drafts_init(&drafts, said, COUNT(said));
    drafts_find(&drafts, tokens, COUNT(tokens), 2);
    expect_guess(&drafts, (uint32_t[]){11, 12}, 2);
    assert_true(drafts.is_said);
    drafts_find(&drafts, tokens, COUNT(tokens), 2); /* looking moves nothing */
    expect_guess(&drafts, (uint32_t[]){11, 12}, 2);
    drafts_note(&drafts, 2, false);
    const uint32_t on[] = {3, 10, 11, 12, 10};
    drafts_find(&drafts, on, COUNT(on), 2);
    expect_guess(&drafts, (uint32_t[]){11, 13}, 2);
    drafts_note(&drafts, 1, true); /* something else came instead of 13 */
    const uint32_t away[] = {10, 11, 60, 61};
    drafts_find(&drafts, away, COUNT(away), 2);
    assert_int_equal(drafts.count, 0);
    const uint32_t back[] = {11, 60, 61, 13};
    drafts_find(&drafts, back, COUNT(back), 7);
    expect_guess(&drafts, (uint32_t[]){10, 11, 14}, 3); /* the text ends there */
    const uint32_t end[] = {10, 11, 14};
    drafts_find(&drafts, end, COUNT(end), 7);
    assert_int_equal(drafts.count, 0);
}

/* The answer may go back in the text. */
static void the_client_may_have_said_it_before(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint32_t said[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint32_t late[] = {5, 6}, early[] = {1, 2};
    drafts_init(&drafts, said, COUNT(said));
    drafts_find(&drafts, late, COUNT(late), 1);
    expect_guess(&drafts, (uint32_t[]){7}, 1);
    drafts_find(&drafts, early, COUNT(early), 1);
    expect_guess(&drafts, (uint32_t[]){3}, 1);
}

/* A search of a long text ends, whatever is in it; near matches are found. */
static void long_texts_are_looked_at_in_part(void **state)
{
    (void)state;
    enum { LONG = 1 << 18 };
    struct drafts drafts;
    uint32_t *text = calloc(LONG, sizeof(*text));
    assert_non_null(text);
    memcpy(text, (uint32_t[]){1, 2, 3}, 3 * sizeof(*text));
    memcpy(text + LONG - 2, (uint32_t[]){1, 2}, 2 * sizeof(*text));
    drafts_init(&drafts, NULL, 0);
    drafts_find(&drafts, text, LONG, 1);
    assert_int_equal(drafts.count, 0);
    memcpy(text + LONG - 9, (uint32_t[]){1, 2, 4}, 3 * sizeof(*text));
    drafts_find(&drafts, text, LONG, 1);
    expect_guess(&drafts, (uint32_t[]){4}, 1);
    text[LONG - 60] = 5;
    text[LONG - 59] = 6;
    const uint32_t early[] = {2}, late[] = {5};
    drafts_init(&drafts, text, LONG);
    drafts_find(&drafts, late, 1, 1);
    assert_int_equal(drafts.count, 0);
    drafts_find(&drafts, early, 1, 1);
    expect_guess(&drafts, (uint32_t[]){3}, 1);
    drafts.said_at = LONG - 100;
    drafts_find(&drafts, late, 1, 1);
    expect_guess(&drafts, (uint32_t[]){6}, 1);
    drafts_find(&drafts, early, 1, 1); /* the one behind comes first */
    expect_guess(&drafts, (uint32_t[]){4}, 1);
    free(text);
}

/* ---- how many are worth it ------------------------------------------------------------------- */

static void guess(struct drafts *drafts)
{
    static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2};
    drafts_find(drafts, tokens, COUNT(tokens), DRAFTS_MAX);
    assert_int_equal(drafts->count, DRAFTS_MAX);
}

/* Calls that cost as much for each token are never worth it; guesses that cost nothing are always
 * made. */
static void the_times_of_calls_decide(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint64_t each[] = {0, 10, 20, 30, 40, 50, 60, 70, 80};
    const uint64_t free[] = {0, 10, 10, 10, 10, 10, 10, 10, 10};
    const uint64_t step[] = {0, 10, 11, 12, 13, 60, 70, 80, 90};
    drafts_init(&drafts, NULL, 0);
    guess(&drafts);
    assert_int_equal(drafts_choose(&drafts, each, 8), 0);
    assert_int_equal(drafts_choose(&drafts, free, 8), 7);
    assert_int_equal(drafts_choose(&drafts, free, 3), 2);
    assert_int_equal(drafts_choose(&drafts, free, 1), 0);
    for (unsigned i = 0; i < 100; i++) {
        drafts_note(&drafts, 7, false);
    }
    assert_int_equal(drafts_choose(&drafts, step, 8), 3);
}

/* Guesses that are wrong become none, and are looked at again as soon as they are right. */
static void rates_follow_what_happens(void **state)
{
    (void)state;
    struct drafts drafts;
    const uint64_t real[] = {0, 100, 123, 135, 141, 165, 185, 205, 222};
    drafts_init(&drafts, NULL, 0);
    guess(&drafts);
    assert_true(drafts_choose(&drafts, real, 8) > 0);
    for (unsigned i = 0; i < 30; i++) {
        drafts_note(&drafts, 0, true);
    }
    assert_int_equal(drafts_choose(&drafts, real, 8), 0);
    for (unsigned i = 0; i < 30; i++) {
        drafts_note(&drafts, 1, false); /* without any call */
    }
    assert_int_equal(drafts_choose(&drafts, real, 8), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_followed_is_guessed),
        cmocka_unit_test(a_token_is_no_match),
        cmocka_unit_test(the_longest_match_counts),
        cmocka_unit_test(repetition_goes_on),
        cmocka_unit_test(the_text_of_the_client_is_followed),
        cmocka_unit_test(the_client_may_have_said_it_before),
        cmocka_unit_test(long_texts_are_looked_at_in_part),
        cmocka_unit_test(the_times_of_calls_decide),
        cmocka_unit_test(rates_follow_what_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
