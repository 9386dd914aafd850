/* SPDX-License-Identifier: MIT */
/* Names of inputs and results: examples of the rule, and properties that hold for every file. */
#include "config.h"

#include "runtime/program/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/sip_build.h"
#include "runtime/program/method.h"
#include "tests/unit/unit.h"

#define LEAVES_MAX 96
#define ROUNDS 4000

/* One leaf of a structure: its path and its expected name; NULL: its alias. */
struct leaf {
    struct sip_path_key path[4];
    uint32_t depth;
    const char *name;
};

/* A key that is not a C string: SPAN("a\0b"). */
#define SPAN(text)                                                                                 \
    {                                                                                              \
        .is_name = true, .key = {.name = {(const uint8_t *)(text), sizeof(text) - 1} }             \
    }
#define KEY(text)                                                                                  \
    {                                                                                              \
        .is_name = true, .key = {.name = {(const uint8_t *)(text), sizeof(text) - 1} }             \
    }
#define AT(n)                                                                                      \
    {                                                                                              \
        .key = {.position = (n) }                                                                  \
    }

/* ---- a method that is nothing but a structure ------------------------------------------------ */

struct fixture {
    struct rt_method method;
    struct arena arena;
    struct sip structure;
    struct error err;
};

static void build(struct fixture *f, const struct leaf *leaves, uint32_t count,
                  struct sip_tree *out)
{
    struct sip_assignment assignments[LEAVES_MAX];
    assert_true(count <= LEAVES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        assignments[i] = (struct sip_assignment){
            .path = leaves[i].path, .depth = leaves[i].depth, .kind = SIP_LEAF, .raw_index = i};
    }
    assert_ok(f->err, sip_assign(assignments, count, &f->arena, out, &f->err));
}

static void has_no_calls(struct rt_method *method)
{
    (void)method;
}

static const struct rt_callable kind = {.fini = has_no_calls};

/* |has_kwargs|: the last element of the inputs is the dict of the keyword arguments. */
static void open_method(struct fixture *f, const struct leaf *inputs, uint32_t input_count,
                        bool has_kwargs, const struct leaf *results, uint32_t result_count,
                        const char *const *const hints[2])
{
    *f = (struct fixture){.method = {.name = "m", .callable = &kind}};
    arena_init(&f->arena, 64 << 20);
    rt_method_init(&f->method);
    f->method.input_count = input_count;
    f->method.result_count = result_count;
    build(f, inputs, input_count, &f->structure.inputs);
    build(f, results, result_count, &f->structure.results);
    f->structure.has_kwargs = has_kwargs;
    struct rt_method *method = &f->method;
    assert_ok(f->err, rt_names_allocate(&method->inputs, input_count, RT_INPUT, &f->err));
    assert_ok(f->err, rt_names_allocate(&method->results, result_count, RT_RESULT, &f->err));
    for (uint32_t i = 0; i < input_count; i++) {
        method->inputs[i].kind = RT_IO_TENSOR;
    }
    assert_ok(f->err, rt_signature_make_structure(method, &f->structure, &f->err));
    assert_ok(f->err, rt_names_settle(method, hints, &f->err));
}

static void close_method(struct fixture *f)
{
    rt_method_fini(&f->method);
    arena_fini(&f->arena);
}

static void check_names(const struct rt_io *ios, const struct leaf *leaves, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(ios[i].name, leaves[i].name ? leaves[i].name : ios[i].alias);
    }
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the rule -------------------------------------------------------------------------------- */

static const struct leaf one_result[] = {{.depth = 0}};

static void test_examples(void **state)
{
    static const struct leaf inputs[] = {
        {{AT(0)}, 1, NULL},
        {{AT(1), AT(0)}, 2, NULL},
        {{AT(1), AT(1)}, 2, NULL},
        {{AT(2), KEY("image")}, 2, "image"},
        {{AT(2), KEY("sizes"), AT(1)}, 3, "sizes.1"},
        {{AT(3), KEY("mask")}, 2, "mask"},
        {{AT(3), KEY("features"), KEY("image")}, 3, "features.image"},
        {{AT(3), KEY("states"), AT(0)}, 3, "states.0"},
        {{AT(3), KEY("states"), AT(1), KEY("k")}, 4, "states.1.k"},
    };
    static const struct leaf results[] = {
        {{KEY("logits")}, 1, "logits"},        {{KEY("boxes"), AT(0)}, 2, "boxes.0"},
        {{KEY("boxes"), AT(1)}, 2, "boxes.1"}, {{KEY("0")}, 1, "0"},
        {{KEY("a:b-c_D")}, 1, "a:b-c_D"},
    };
    struct fixture f;
    (void)state;
    open_method(&f, inputs, COUNT(inputs), true, results, COUNT(results), NULL);
    check_names(f.method.inputs, inputs, COUNT(inputs));
    check_names(f.method.results, results, COUNT(results));
    assert_string_equal(f.method.inputs[3].path, "args[2][\"image\"]");
    assert_string_equal(f.method.inputs[3].label, "input 'image'");
    assert_string_equal(f.method.inputs[8].path, "kwargs[\"states\"][1][\"k\"]");
    assert_string_equal(f.method.inputs[2].label, "input 'input_2'");
    assert_string_equal(f.method.results[1].label, "result 'boxes.0'");
    close_method(&f);
}

/* All arguments are keywords; and a tuple of a dict and a tensor. */
static void test_other_roots(void **state)
{
    static const struct leaf inputs[] = {{{KEY("b")}, 1, "b"}, {{KEY("a")}, 1, "a"}};
    static const struct leaf results[] = {{{AT(0), KEY("x")}, 2, "x"}, {{AT(1)}, 1, NULL}};
    struct fixture f;
    (void)state;
    open_method(&f, inputs, 2, false, results, 2, NULL);
    check_names(f.method.inputs, inputs, 2);
    check_names(f.method.results, results, 2);
    assert_string_equal(f.method.inputs[0].path, "kwargs[\"b\"]");
    close_method(&f);
    open_method(&f, NULL, 0, false, one_result, 1, NULL);
    check_names(f.method.results, one_result, 1);
    close_method(&f);
}

static void test_equal_names(void **state)
{
    static const struct leaf inputs[] = {
        {{AT(0), KEY("image")}, 2, "0.image"},
        {{AT(1), KEY("image")}, 2, "1.image"},
        {{AT(1), KEY("size")}, 2, "size"},
        {{AT(2), KEY("image")}, 2, "image"}, /* kwargs["image"] is a whole path */
    };
    static const struct leaf results[] = {
        {{AT(0), KEY("boxes")}, 2, "0.boxes"},
        {{AT(1), KEY("boxes")}, 2, NULL}, /* 1.boxes is the name of another leaf */
        {{AT(1), KEY("1.boxes")}, 2, NULL},
        {{AT(2), KEY("a.b")}, 2, "2.a.b"},
        {{AT(3), KEY("a"), KEY("b")}, 3, "3.a.b"},
        {{AT(4), KEY("c.d")}, 2, NULL}, /* equal paths from the root */
        {{AT(4), KEY("c"), KEY("d")}, 3, NULL},
    };
    struct fixture f;
    (void)state;
    open_method(&f, inputs, COUNT(inputs), true, results, COUNT(results), NULL);
    check_names(f.method.inputs, inputs, COUNT(inputs));
    check_names(f.method.results, results, COUNT(results));
    close_method(&f);
}

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_odd_keys(void **state)
{
    static const struct leaf inputs[] = {
        {{KEY("")}, 1, NULL},
        {{KEY("two words")}, 1, NULL},
        {{SPAN("nul\0here")}, 1, NULL},
        {{KEY("\x1b[2J")}, 1, NULL},
        {{KEY("\xff\xfe")}, 1, NULL},
        {{KEY("gr\xc3\xb6\xc3\x9f"
              "e")},
         1,
         NULL},
        {{KEY("../../up")}, 1, NULL},
        {{KEY("a/b")}, 1, NULL},
        {{KEY(".hidden")}, 1, NULL},
        {{KEY("end.")}, 1, NULL},
        {{KEY("a..b")}, 1, NULL},
        {{KEY("-x")}, 1, NULL},
        {{KEY("a=1")}, 1, NULL},
        {{KEY("quo\"te")}, 1, NULL},
        {{KEY("input_3")}, 1, NULL},
        {{KEY("input_15")}, 1, NULL},
        {{KEY("input_99")}, 1, NULL},
        {{KEY("input_007")}, 1, NULL},
        {{KEY("input_")}, 1, "input_"},
        {{KEY("input_1a")}, 1, "input_1a"},
        {{KEY("output_1")}, 1, "output_1"},
        {{KEY(A64 A64)}, 1, A64 A64},
        {{KEY(A64 A64 "a")}, 1, NULL},
        {{KEY("d"), KEY("")}, 2, NULL},
        {{KEY("d"), KEY("e"), KEY("")}, 3, NULL},
    };
    struct fixture f;
    (void)state;
    open_method(&f, inputs, COUNT(inputs), false, one_result, 1, NULL);
    check_names(f.method.inputs, inputs, COUNT(inputs));
    close_method(&f);
}

/* A leaf that the structure does not name may get its name from a hint. */
static void test_hints(void **state)
{
    static const struct leaf inputs[] = {
        {{AT(0)}, 1, "image"},
        {{AT(1)}, 1, NULL},
        {{AT(2)}, 1, NULL},
        {{AT(3)}, 1, NULL},
        {{AT(4)}, 1, NULL},
        {{AT(5)}, 1, "free"},
        {{AT(6), KEY("own")}, 2, "own"},
    };
    static const char *const names[] = {"image",   "twice", "twice", "input_0",
                                        "no name", "free",  "x"};
    const char *const *const hints[2] = {names, NULL};
    struct fixture f;
    (void)state;
    open_method(&f, inputs, COUNT(inputs), false, one_result, 1, hints);
    check_names(f.method.inputs, inputs, COUNT(inputs));
    close_method(&f);
}

/* ---- finding and listing --------------------------------------------------------------------- */

static uint32_t count_called(const struct rt_io *ios, uint32_t count, const char *name)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += rt_io_is_called(&ios[i], span_str(name));
    }
    return found;
}

static void test_called(void **state)
{
    static const struct leaf inputs[] = {{{KEY("b")}, 1, "b"}, {{KEY("input_0")}, 1, NULL}};
    struct fixture f;
    (void)state;
    open_method(&f, inputs, 2, false, one_result, 1, NULL);
    assert_true(rt_io_is_called(&f.method.inputs[0], span_str("b")));
    assert_true(rt_io_is_called(&f.method.inputs[0], span_str("input_0")));
    assert_false(rt_io_is_called(&f.method.inputs[1], span_str("input_0")));
    assert_true(rt_io_is_called(&f.method.inputs[1], span_str("input_1")));
    assert_int_equal(count_called(f.method.inputs, 2, "a"), 0);
    assert_int_equal(count_called(f.method.inputs, 2, ""), 0);
    close_method(&f);
}

static void test_list(void **state)
{
    static const struct leaf inputs[] = {
        {{KEY("a")}, 1, NULL}, {{KEY("b")}, 1, NULL}, {{KEY("c")}, 1, NULL}};
    static const struct leaf longs[] = {
        {{KEY(A64 A64)}, 1, NULL}, {{KEY(A64)}, 1, NULL}, {{KEY("c")}, 1, NULL}};
    struct fixture f;
    char text[NAMES_TEXT_MAX];
    (void)state;
    open_method(&f, inputs, 3, false, one_result, 1, NULL);
    assert_string_equal(rt_names_print(&f.method, RT_INPUT, text), "one of a, b and c");
    f.method.inputs[1].kind = RT_IO_NONE;
    assert_string_equal(rt_names_print(&f.method, RT_INPUT, text), "one of a and c");
    f.method.inputs[0].kind = RT_IO_NONE;
    assert_string_equal(rt_names_print(&f.method, RT_INPUT, text), "c");
    assert_string_equal(rt_names_print(&f.method, RT_RESULT, text), "none");
    close_method(&f);
    open_method(&f, longs, 3, false, one_result, 1, NULL);
    assert_string_equal(rt_names_print(&f.method, RT_INPUT, text), "one of " A64 A64 " and 2 more");
    close_method(&f);
}

/* ---- whatever a file says -------------------------------------------------------------------- */

static uint32_t random_below(uint32_t limit)
{
    static uint64_t seed = 0x9e3779b97f4a7c15u;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % limit;
}

static const struct sip_path_key pool[] = {
    KEY("a"),        KEY("b"),       KEY("a.b"), KEY("0"),   KEY("0.a"),    KEY("1"),
    KEY("input_0"),  KEY("input_1"), KEY(""),    KEY("."),   KEY("input_"), KEY("x y"),
    KEY("output_0"), KEY("\xff"),    KEY("a.0"), KEY("1.a"), SPAN("\0"),    KEY("b.a"),
};

/* Paths of one to three keys: a key or a position, then keys. */
static uint32_t make_random(struct leaf *leaves)
{
    uint32_t count = 1 + random_below(12);
    bool is_dict = random_below(2);
    for (uint32_t i = 0; i < count; i++) {
        struct sip_path_key first =
            is_dict ? pool[random_below(COUNT(pool))] : (struct sip_path_key)AT(random_below(4));
        leaves[i] = (struct leaf){.path = {first}, .depth = 1 + random_below(3)};
        for (uint32_t d = 1; d < leaves[i].depth; d++) {
            leaves[i].path[d] = pool[random_below(COUNT(pool))];
        }
    }
    return count;
}

/* Returns whether the last element of the root is a dict. */
static bool ends_in_dict(const struct leaf *leaves, uint32_t count)
{
    int64_t last = -1;
    bool is_dict = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!leaves[i].path[0].is_name && leaves[i].path[0].key.position > last) {
            last = leaves[i].path[0].key.position;
            is_dict = leaves[i].depth > 1;
        }
    }
    return is_dict;
}

/* Keeps only leaves that can exist together: the first leaf, and each later one that fits the
 * earlier ones. */
static uint32_t keep_fitting(struct fixture *f, struct leaf *leaves, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct sip_assignment assignments[LEAVES_MAX];
        struct sip_tree tree;
        struct leaf moved = leaves[kept];
        leaves[kept] = leaves[i];
        leaves[i] = moved;
        for (uint32_t k = 0; k <= kept; k++) {
            assignments[k] = (struct sip_assignment){leaves[k].path, leaves[k].depth, SIP_LEAF, k};
        }
        kept += sip_assign(assignments, kept + 1, &f->arena, &tree, &f->err) == ST_OK;
    }
    return kept;
}

static void check_all(const struct rt_io *ios, uint32_t count, enum rt_side side)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(ios[i].name == ios[i].alias || rt_name_is_valid(span_str(ios[i].name), side));
        assert_int_equal(count_called(ios, count, ios[i].name), 1);
        assert_int_equal(count_called(ios, count, ios[i].alias), 1);
        assert_true(strlen(ios[i].label) > 0 && strlen(ios[i].path) > 0);
    }
}

static void test_random_structures(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct leaf leaves[LEAVES_MAX];
        struct fixture f = {0};
        arena_init(&f.arena, 64 << 20);
        uint32_t count = keep_fitting(&f, leaves, make_random(leaves));
        arena_fini(&f.arena);
        bool has_kwargs = ends_in_dict(leaves, count) && random_below(2);
        open_method(&f, leaves, count, has_kwargs, leaves, count, NULL);
        check_all(f.method.inputs, count, RT_INPUT);
        check_all(f.method.results, count, RT_RESULT);
        close_method(&f);
    }
}

/* The deepest structure. Its name would exceed the maximal length. */
static void test_deep(void **state)
{
    struct sip_path_key path[SIP_DEPTH_MAX];
    struct fixture f;
    (void)state;
    open_method(&f, NULL, 0, false, one_result, 1, NULL);
    for (int i = 0; i < SIP_DEPTH_MAX; i++) {
        path[i] = (struct sip_path_key)KEY("k");
    }
    const struct sip_assignment leaf = {path, SIP_DEPTH_MAX, SIP_LEAF, 0};
    assert_ok(f.err, sip_assign(&leaf, 1, &f.arena, &f.structure.results, &f.err));
    assert_ok(f.err, rt_signature_make_structure(&f.method, &f.structure, &f.err));
    assert_ok(f.err, rt_names_settle(&f.method, NULL, &f.err));
    assert_int_equal(strlen(f.method.results[0].name), 2 * SIP_DEPTH_MAX - 1);
    close_method(&f);
}

/* Names from elsewhere: all or nothing. */
static void test_given(void **state)
{
    static const struct leaf inputs[] = {
        {{AT(0)}, 1, NULL}, {{AT(1)}, 1, NULL}, {{AT(2), KEY("mask")}, 2, "mask"}};
    static const char *const bad[][3] = {
        {"a", "a", NULL},        {"mask", NULL, NULL}, {NULL, "a b", NULL},
        {NULL, "input_7", NULL}, {"", NULL, NULL},     {NULL, NULL, "-mask"},
    };
    const char *const swapped[] = {"mask", NULL, "image"}, *const same[] = {NULL, NULL, "image"};
    struct fixture f;
    uint32_t index;
    (void)state;
    open_method(&f, inputs, COUNT(inputs), true, one_result, 1, NULL);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(rt_names_give(&f.method, RT_INPUT, bad[i], &index, &f.err), ST_INVALID);
        assert_non_null(bad[i][index]);
        check_names(f.method.inputs, inputs, COUNT(inputs));
    }
    assert_ok(f.err, rt_names_give(&f.method, RT_INPUT, swapped, &index, &f.err));
    assert_string_equal(f.method.inputs[0].name, "mask");
    assert_string_equal(f.method.inputs[0].label, "input 'mask'");
    assert_string_equal(f.method.inputs[0].path, "args[0]");
    assert_string_equal(f.method.inputs[1].name, "input_1");
    assert_string_equal(f.method.inputs[2].name, "image");
    assert_ok(f.err, rt_names_give(&f.method, RT_INPUT, same, &index, &f.err));
    f.method.inputs[1].kind = RT_IO_NONE;
    const char *const none[] = {NULL, "x", NULL};
    assert_int_equal(rt_names_give(&f.method, RT_INPUT, none, &index, &f.err), ST_INVALID);
    const char *const result[] = {"scores"};
    f.method.results[0].kind = RT_IO_TENSOR;
    assert_ok(f.err, rt_names_give(&f.method, RT_RESULT, result, &index, &f.err));
    assert_string_equal(f.method.results[0].label, "result 'scores'");
    close_method(&f);
}

/* A name is the key of its value in a dict; of a result at several places, in the first one. */
static void test_keys(void **state)
{
    static const struct leaf inputs[] = {
        {{AT(0)}, 1, NULL},          {{AT(1), KEY("b")}, 2, "b"},
        {{AT(1), KEY("c")}, 2, "c"}, {{AT(2), KEY("f"), KEY("g"), KEY("x")}, 4, "f.g.x"},
        {{AT(2), KEY("k")}, 2, "k"},
    };
    static const struct {
        const char *names[COUNT(inputs)], *readable;
        uint32_t wrong;
    } rows[] = {
        {{"p", NULL, "a", "f.g.y", "e"},
         "[r0, {\"a\": r2, \"b\": r1}, {\"e\": r4, \"f\": {\"g\": {\"y\": r3}}}] -> r0",
         0},
        {{NULL, "c", "b", "f.y", "f.k"},
         "[r0, {\"b\": r2, \"c\": r1}, {\"f\": {\"g\": {\"f.y\": r3}}, \"f.k\": r4}] -> r0",
         0},
        {{"f"}, NULL, 0},
        {{NULL, NULL, "f"}, NULL, 2},
        {{NULL, NULL, NULL, "p", "f"}, NULL, 4},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f;
        uint32_t wrong = 0;
        open_method(&f, inputs, COUNT(inputs), true, one_result, 1, NULL);
        enum status status = rt_names_give(&f.method, RT_INPUT, rows[i].names, &wrong, &f.err);
        if (rows[i].readable) {
            assert_ok(f.err, status);
            assert_string_equal(f.method.signature.readable_sip, rows[i].readable);
            assert_true(f.method.signature.structure.has_kwargs);
        } else {
            assert_int_equal(status, ST_INVALID);
            assert_int_equal(wrong, rows[i].wrong);
            check_names(f.method.inputs, inputs, COUNT(inputs));
        }
        close_method(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),    cmocka_unit_test(test_other_roots),
        cmocka_unit_test(test_equal_names), cmocka_unit_test(test_odd_keys),
        cmocka_unit_test(test_hints),       cmocka_unit_test(test_called),
        cmocka_unit_test(test_list),        cmocka_unit_test(test_random_structures),
        cmocka_unit_test(test_deep),        cmocka_unit_test(test_given),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
