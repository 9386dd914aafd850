/* SPDX-License-Identifier: MIT */
/* Prompts with a gap, with tokenizers of small vocabularies that were made by the libraries of
 * models (tests/text). */
#include "config.h"

#include "server/language/infill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/language/ask.h"
#include "server/language/infill_fit.h"
#include "server/language/words.h"
#include "tests/unit/unit.h"

#define IDS_MAX 64

static struct words *words;
static struct infill_rules rules;
static uint32_t ids[IDS_MAX];
static struct words_room room = {.ids = ids, .max = IDS_MAX};

static void open_tokenizer(const char *name, const struct infill_said *said)
{
    struct error err;
    char path[4096];
    words_free(words);
    words = NULL;
    snprintf(path, sizeof(path), "%s/tests/text/%s", getenv("top_srcdir"), name);
    assert_ok(err, words_load(path, &words, &err));
    assert_ok(err, infill_rules_init(&rules, words, said, &err));
}

static uint32_t id_of(const char *token)
{
    uint32_t id;
    assert_true(words_find(words, span_str(token), &id));
    return id;
}

static void encode(const char *before, const char *after)
{
    struct error err;
    const struct ask_prompt prompt = {.text = span_str(before)};
    assert_ok(err, infill_encode(&rules, words, &prompt, span_str(after), &room, &err));
    assert_true(room.count <= IDS_MAX);
}

/* The text of ids from |first| up to |end|, behind another one, which takes no blank away. */
static void expect_text(uint32_t first, uint32_t end, const char *text)
{
    struct error err;
    struct buf out, word;
    buf_init(&out, 256);
    buf_init(&word, 256);
    for (uint32_t i = first; i < end; i++) {
        buf_reset(&word);
        assert_ok(err, words_bytes(words, ids[i], &word, &err));
        buf_add(&out, word.ptr, word.len);
    }
    assert_int_equal(out.len, strlen(text));
    assert_memory_equal(out.ptr, text, out.len);
    buf_fini(&out);
    buf_fini(&word);
}

static uint32_t place_of(uint32_t id)
{
    uint32_t i = 0;
    while (i < room.count && ids[i] != id) {
        i++;
    }
    assert_true(i < room.count);
    return i;
}

static void no_blank_comes_before_the_rest(void **state)
{
    static const struct infill_said said = {.prefix = "<unk>", .suffix = "</s>", .middle = "<s>"};
    (void)state;
    open_tokenizer("llama2.json", &said);
    encode("the end", "the end");
    uint32_t suffix = place_of(id_of("</s>"));
    assert_int_equal(ids[0], id_of("<s>")); /* before any text of this tokenizer */
    assert_int_equal(ids[1], id_of("<unk>"));
    assert_int_equal(ids[room.count - 1], id_of("<s>"));
    expect_text(2, suffix, " the end");
    expect_text(suffix + 1, room.count - 1, "the end");
    encode("", " the");
    expect_text(place_of(id_of("</s>")) + 1, room.count - 1, " the");
}

static void the_suffix_comes_first_without_a_middle(void **state)
{
    static const struct infill_said said = {.prefix = "<unk>", .suffix = "</s>"};
    (void)state;
    open_tokenizer("llama2.json", &said);
    encode("the", "end");
    assert_int_equal(ids[1], id_of("</s>"));
    uint32_t prefix = place_of(id_of("<unk>"));
    expect_text(2, prefix, "end");
    expect_text(prefix + 1, room.count, " the");
}

static void texts_are_bounded(void **state)
{
    static const struct infill_said said = {.prefix = "<unk>", .suffix = "</s>", .middle = "<s>"};
    struct error err;
    struct words_room small = {.ids = ids, .max = 3};
    const struct ask_prompt prompt = {.text = span_str("the end of the end")};
    (void)state;
    open_tokenizer("llama2.json", &said);
    ids[3] = 12345;
    assert_ok(err, infill_encode(&rules, words, &prompt, span_str("the end"), &small, &err));
    assert_true(small.count > 3);
    assert_int_equal(ids[3], 12345);
}

/* Whatever comes, there is room for the answer. */
static void what_has_no_room_is_left_out(void **state)
{
    static const struct infill_said said = {.prefix = "<unk>", .suffix = "</s>", .middle = "<s>"};
    const struct ask_extra extras[] = {
        {.name = span_str("a"), .text = span_str("the end of the end")},
        {.text = span_str("the end")}};
    static char many[4096];
    (void)state;
    open_tokenizer("llama2.json", &said);
    for (size_t i = 0; i + 4 < sizeof(many); i += 4) {
        memcpy(many + i, "the ", 4);
    }
    const char *const texts[] = {"", "the end", many};
    for (size_t i = 0; i < 27; i++) {
        for (uint32_t max = 0; max <= IDS_MAX; max++) {
            struct words_room small = {.ids = ids, .max = max};
            struct error err;
            const struct infill_gap gap = {.before = span_str(texts[i % 3]),
                                           .after = span_str(texts[i / 3 % 3]),
                                           .begun = span_str(i < 18 ? "" : "the"),
                                           .extras = extras,
                                           .extra_count = i / 9 ? 2 : 0,
                                           .answer_max = i % 2 ? UINT32_MAX : 5};
            memset(ids, 0xee, sizeof(ids));
            if (infill_fit(&rules, words, &gap, &small, &err) == ST_OK) {
                assert_true(small.count > 3 && small.count < max);
            } else {
                assert_int_equal(err.code, ST_INVALID);
                assert_true(max < 16);
            }
            assert_true(max == IDS_MAX || ids[max] == 0xeeeeeeee);
        }
    }
}

static void the_nearest_texts_are_kept(void **state)
{
    static const struct infill_said said = {.prefix = "<unk>", .suffix = "</s>", .middle = "<s>"};
    const struct ask_extra extras[] = {{.text = span_str("end")}, {.text = span_str("the")}};
    struct error err;
    const struct infill_gap gap = {.before = span_str("the end of the"),
                                   .after = span_str("end"),
                                   .extras = extras,
                                   .extra_count = 2,
                                   .answer_max = 4};
    (void)state;
    open_tokenizer("llama2.json", &said);
    room.max = IDS_MAX;
    assert_ok(err, infill_fit(&rules, words, &gap, &room, &err));
    uint32_t prefix = place_of(id_of("<unk>"));
    expect_text(1, prefix, " end\n the\n");
    uint32_t all = room.count;
    room.max = all + 4 - 1;
    assert_ok(err, infill_fit(&rules, words, &gap, &room, &err));
    expect_text(1, place_of(id_of("<unk>")), " the\n");
    room.max = IDS_MAX;
}

static void a_vocabulary_has_none(void **state)
{
    struct error err;
    (void)state;
    open_tokenizer("llama2.json", NULL);
    assert_false(rules.is_known);
    assert_fails(err, infill_check(&rules, "suffix", "m", &err), ST_INVALID, "<|fim_prefix|>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_blank_comes_before_the_rest),
        cmocka_unit_test(the_suffix_comes_first_without_a_middle),
        cmocka_unit_test(texts_are_bounded),
        cmocka_unit_test(what_has_no_room_is_left_out),
        cmocka_unit_test(the_nearest_texts_are_kept),
        cmocka_unit_test(a_vocabulary_has_none),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    words_free(words);
    return rc;
}
