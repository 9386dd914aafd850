/* SPDX-License-Identifier: MIT */
/* Strings that end an answer, and the text that may be sent before they are complete. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/language/stops.h"

#define TEXTS_MAX 3

static struct span texts[TEXTS_MAX];
static struct stops stops;

static void begin(const char *const list[], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = span_str(list[i]);
    }
    stops_init(&stops, texts, count, 1000);
}

static void add(const char *text)
{
    buf_add_str(&stops.text, text);
    stops_look(&stops);
}

/* What may be sent, and what is held back. */
static void check(const char *ready, const char *held, bool is_stopped)
{
    assert_int_equal(stops.ready_bytes, strlen(ready));
    assert_int_equal(stops.text.len, strlen(ready) + strlen(held));
    assert_memory_equal(stops.text.ptr, ready, strlen(ready));
    assert_memory_equal(stops.text.ptr + strlen(ready), held, strlen(held));
    assert_int_equal(stops.is_stopped, is_stopped);
}

static void a_beginning_is_held_back_until_it_is_none(void **state)
{
    (void)state;
    begin((const char *const[]){"END"}, 1);
    add("an E");
    check("an ", "E", false);
    add("N");
    check("an ", "EN", false);
    add("o");
    check("an ENo", "", false);
    stops_fini(&stops);
}

static void a_string_that_is_complete_ends_the_text(void **state)
{
    (void)state;
    begin((const char *const[]){"END"}, 1);
    add("some E");
    add("ND and more");
    check("some ", "", true);
    stops_restart(&stops);
    add("another");
    check("another", "", false);
    stops_fini(&stops);
}

static void the_one_that_begins_first_counts(void **state)
{
    (void)state;
    begin((const char *const[]){"cd", "bcx", "abcd"}, 3);
    add("xabcd");
    check("x", "", true);
    stops_restart(&stops);
    add("xbcd"); /* "bcx" has only begun */
    check("xb", "", true);
    stops_fini(&stops);
}

/* "aab" begins anew within "aaab". */
static void a_string_may_begin_within_its_beginning(void **state)
{
    (void)state;
    begin((const char *const[]){"aab"}, 1);
    add("aa");
    check("", "aa", false);
    add("a");
    check("a", "aa", false);
    add("b");
    check("a", "", true);
    stops_fini(&stops);
}

static void at_the_end_nothing_is_held_back(void **state)
{
    (void)state;
    begin((const char *const[]){"END"}, 1);
    add("an EN");
    stops_end(&stops);
    check("an EN", "", false);
    stops_fini(&stops);
}

static void without_strings_all_text_is_ready(void **state)
{
    (void)state;
    begin(NULL, 0);
    add("text");
    check("text", "", false);
    stops_fini(&stops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_beginning_is_held_back_until_it_is_none),
        cmocka_unit_test(a_string_that_is_complete_ends_the_text),
        cmocka_unit_test(the_one_that_begins_first_counts),
        cmocka_unit_test(a_string_may_begin_within_its_beginning),
        cmocka_unit_test(at_the_end_nothing_is_held_back),
        cmocka_unit_test(without_strings_all_text_is_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
