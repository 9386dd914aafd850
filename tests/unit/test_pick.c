/* SPDX-License-Identifier: MIT */
/* The choice of a result: how a request writes it, and the result at the end of a path. */
#include "config.h"

#include "protocol/pick.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "protocol/json.h"
#include "protocol/sip.h"
#include "tests/unit/unit.h"

#define TEXT_BYTES_MAX 8

static enum status read(struct arena *arena, const char *text, struct pick *out, struct error *err)
{
    struct json in;
    json_init(&in, span_str(text));
    TRY(pick_read(&in, TEXT_BYTES_MAX, arena, out, err));
    return json_end(&in, err);
}

static void test_forms(void **state)
{
    struct arena arena;
    struct error err;
    struct pick pick;
    (void)state;
    arena_init(&arena, 1 << 16);
    assert_ok(err, read(&arena, "7", &pick, &err));
    assert_true(pick.kind == PICK_INDEX && pick.index == 7);
    assert_ok(err, read(&arena, "\"b\\u006fx.0\"", &pick, &err));
    assert_true(pick.kind == PICK_NAME && span_is(pick.name, "box.0"));
    assert_ok(err, read(&arena, "[\"a\", 12, \"\"]", &pick, &err));
    assert_true(pick.kind == PICK_PATH && pick.depth == 3);
    assert_true(pick.path[0].is_name && span_is(pick.path[0].key.name, "a"));
    assert_true(!pick.path[1].is_name && pick.path[1].key.position == 12);
    assert_true(pick.path[2].is_name && pick.path[2].key.name.len == 0);
    assert_ok(err, read(&arena, "[]", &pick, &err));
    assert_true(pick.kind == PICK_PATH && pick.depth == 0);
    arena_fini(&arena);
}

static void test_refused_forms(void **state)
{
    static const struct {
        const char *text, *error;
        enum status status;
    } refused[] = {
        {"null", "expected an output's number, its name or its path, got null", ST_INVALID},
        {"{}", "its path, got an object", ST_INVALID},
        {"-1", "0", ST_INVALID},
        {"1.5", "expected", ST_INVALID},
        {"\"123456789\"", "expected at most 8 bytes of text, got 9", ST_TOO_LARGE},
        {"[\"123456789\"]", "[0]: expected at most 8 bytes of text, got 9", ST_TOO_LARGE},
        {"[0, -1]", "[1]: expected 0 or more, got -1", ST_INVALID},
        {"[true]", "[0]: expected a string, got a boolean", ST_INVALID},
        {"[[0]]", "[0]: expected a string, got an array", ST_INVALID},
        {"[0", "expected", ST_INVALID},
    };
    struct arena arena;
    struct error err;
    struct pick pick;
    struct buf deep;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_fails(err, read(&arena, refused[i].text, &pick, &err), refused[i].status,
                     refused[i].error);
    }
    buf_init(&deep, 1024);
    buf_add_str(&deep, "[0");
    for (int i = 1; i <= SIP_DEPTH_MAX; i++) {
        buf_add_str(&deep, ",0");
    }
    buf_add(&deep, "]", 2);
    assert_fails(err, read(&arena, (const char *)deep.ptr, &pick, &err), ST_TOO_LARGE,
                 "at most 64 steps");
    buf_fini(&deep);
    arena_fini(&arena);
    arena_init(&arena, 16);
    assert_fails(err, read(&arena, "[1]", &pick, &err), ST_TOO_LARGE, "needs more than 16 bytes");
    arena_fini(&arena);
}

/* ---- paths ----------------------------------------------------------------------------------- */

#define NESTED "I1!R61!D57!K6!innerD7!K2!z_4K6!partsS18!k0_1k1S9!k0_2k1_3K6!total_0"

static const struct {
    const char *sip, *path;
    int64_t index;     /* -1: refused */
    const char *error; /* then */
} paths[] = {
    {NESTED, "[\"total\"]", 0, NULL},
    {NESTED, "[\"parts\", 0]", 1, NULL},
    {NESTED, "[\"parts\", 1, 1]", 3, NULL},
    {NESTED, "[\"inner\", \"z\"]", 4, NULL},
    {NESTED, "[]", -1,
     "result is a dict of \"inner\", \"parts\", \"total\", expected a path to one value"},
    {NESTED, "[\"parts\"]", -1, "result[\"parts\"] is a list of 2, expected a path to one value"},
    {NESTED, "[\"parts\", 2]", -1, "there is no [2]: result[\"parts\"] is a list of 2"},
    {NESTED, "[\"parts\", \"0\"]", -1, "there is no [\"0\"]: result[\"parts\"] is a list of 2"},
    {NESTED, "[\"part\"]", -1,
     "there is no [\"part\"]: result is a dict of \"inner\", \"parts\", \"total\""},
    {NESTED, "[0]", -1, "there is no [0]: result is a dict of"},
    {NESTED, "[\"total\", 0]", -1, "there is no [0]: result[\"total\"] is one value"},
    {"I1!R3!_0", "[]", 0, NULL},
    {"I1!R3!_0", "[0]", -1, "there is no [0]: result is one value"},
    {"I1!R1!", "[]", -1, "result is nothing, expected a path to one value"},
    {"I1!R18!D14!K2!7_0K3!08_1", "[7]", 0, NULL}, /* integer keys are stored as text */
    {"I1!R18!D14!K2!7_0K3!08_1", "[\"7\"]", 0, NULL},
    {"I1!R18!D14!K2!7_0K3!08_1", "[8]", -1, "there is no [8]"},
    {"I1!R12!S9!k0_1k2_0", "[2]", 0, NULL},
    {"I1!R12!S9!k0_1k2_0", "[1]", -1, "there is no [1]: result is a list of 3"},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct arena arena;
        struct error err;
        struct pick pick;
        struct sip sip;
        uint32_t index = UINT32_MAX;
        arena_init(&arena, 1 << 16);
        assert_ok(err, sip_parse(span_str(paths[i].sip), &arena, &sip, &err));
        assert_ok(err, read(&arena, paths[i].path, &pick, &err));
        if (paths[i].error) {
            assert_fails(err, pick_follow(&pick, &sip.results, &index, &err), ST_INVALID,
                         paths[i].error);
        } else {
            assert_ok(err, pick_follow(&pick, &sip.results, &index, &err));
            assert_int_equal(index, paths[i].index);
        }
        arena_fini(&arena);
    }
}

/* The description of a dict with many long keys fits into an error text. */
static void test_many_keys(void **state)
{
    struct arena arena;
    struct buf text, members;
    struct error err;
    struct sip sip;
    uint32_t index;
    (void)state;
    arena_init(&arena, 1 << 20);
    buf_init(&text, 1 << 20);
    buf_init(&members, 1 << 20);
    for (int i = 0; i < 100; i++) {
        buf_printf(&members, "K30!key number %18d_%d", i, i);
    }
    size_t dict = members.len + 1, bytes = (size_t)snprintf(NULL, 0, "D%zu!", dict) + members.len;
    buf_printf(&text, "I1!R%zu!D%zu!", bytes + 1, dict);
    buf_add(&text, members.ptr, members.len);
    assert_ok(err, sip_parse(buf_span(&text), &arena, &sip, &err));
    const struct pick pick = {.kind = PICK_PATH};
    assert_fails(err, pick_follow(&pick, &sip.results, &index, &err), ST_INVALID,
                 " more, expected a path to one value");
    buf_fini(&text);
    buf_fini(&members);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refused_forms),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
