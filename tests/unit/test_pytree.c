/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/json.h"
#include "protocol/pytree.h"
#include "protocol/sig.h"
#include "tests/unit/sig_support.h"

#define LEAF "{\"type\": null, \"context\": null, \"children_spec\": []}"
#define SPEC(type, context, children)                                                              \
    "{\"type\": \"" type "\", \"context\": " context ", \"children_spec\": [" children "]}"
#define TUPLE(children) SPEC("builtins.tuple", "\"null\"", children)
#define DICT(keys, children) SPEC("builtins.dict", "\"[" keys "]\"", children)
#define ARGUMENTS(args, kwargs) "[1, " TUPLE(TUPLE(args) ", " kwargs) "]"
#define NO_KWARGS DICT("", "")

static enum status parse_spans(struct sig_fixture *f, struct span inputs, struct span results)
{
    const struct pytree_source source = {inputs, results};
    f->err.text[0] = '\0';
    enum status status = pytree_parse(&source, &f->arena, &f->sip, &f->err);
    assert_true(status == ST_OK || f->err.text[0]);
    return status;
}

static enum status parse(struct sig_fixture *f, const char *inputs, const char *results)
{
    struct span exact_inputs = exact_copy(span_str(inputs));
    struct span exact_results = exact_copy(span_str(results));
    enum status status = parse_spans(f, exact_inputs, exact_results);
    if (status == ST_OK) {
        buf_reset(&f->out);
        sip_mangle(&f->sip, &f->out);
    }
    exact_free(exact_inputs);
    exact_free(exact_results);
    return status;
}

static void check(struct sig_fixture *f, const char *inputs, const char *results, const char *sip)
{
    assert_ok(f->err, parse(f, inputs, results));
    if (!span_is(buf_span(&f->out), sip)) {
        fail_msg("%s\n%s\ngave %.*s, expected %s", inputs, results, SPAN_FMT(buf_span(&f->out)),
                 sip);
    }
}

static void check_vector(const struct vector *vector, void *user)
{
    assert_true(vector->is_valid);
    check(user, vector_text(vector, "encoded_inp_str"), vector_text(vector, "encoded_out_str"),
          vector_text(vector, "sip"));
}

static void test_vectors(void **state)
{
    vectors_check("pytree", check_vector, *state);
}

/* The tuple of arguments and keyword arguments becomes what a caller writes. */
static void test_arguments(void **state)
{
    struct sig_fixture *f = *state;
    check(f, "", "", "I1!R1!");
    check(f, ARGUMENTS("", NO_KWARGS), "[1, " LEAF "]", "I1!R3!_0");
    check(f, ARGUMENTS(LEAF, NO_KWARGS), "", "I8!S5!k0_0R1!");
    assert_false(f->sip.has_kwargs);
    check(f, ARGUMENTS("", DICT("\\\"z\\\", \\\"a\\\"", LEAF ", " LEAF)), "",
          "I17!D13!K2!a_1K2!z_0R1!");
    assert_false(f->sip.has_kwargs);
    check(f, ARGUMENTS(LEAF, DICT("\\\"mask\\\"", LEAF)), "", "I24!S20!k0_0k1D10!K5!mask_1R1!");
    assert_true(f->sip.has_kwargs);
    check(f, ARGUMENTS(DICT("", ""), NO_KWARGS), "", "I9!S6!k0D1!R1!");
    /* Without that tuple the structure is used unchanged. */
    check(f, "[1, " TUPLE(LEAF ", " LEAF) "]", "", "I12!S9!k0_0k1_1R1!");
    check(f, "[1, " LEAF "]", "[1, " TUPLE("") "]", "I3!_0R4!S1!");
}

static void check_result(struct sig_fixture *f, const char *spec, const char *sip)
{
    struct buf text;
    buf_init(&text, SIG_TEXT_BYTES_MAX);
    buf_printf(&text, "[1, %s]", spec);
    buf_add(&text, "", 1);
    check(f, "", (const char *)text.ptr, sip);
    buf_fini(&text);
}

static void test_types(void **state)
{
    struct sig_fixture *f = *state;
    static const char *const sequences[] = {
        SPEC("builtins.list", "\"null\"", LEAF),
        SPEC("collections.namedtuple", "\"module.Pair\"", LEAF),
        SPEC("collections.deque", "\"null\"", LEAF),
        SPEC("torch.Size", "\"null\"", LEAF),
        SPEC("module.Unknown", "\"what it likes\"", LEAF),
        SPEC("module.Unknown", "null", LEAF),
        SPEC("module.Fields", "\"[[\\\"a\\\", \\\"b\\\"], []]\"", LEAF), /* not as many */
        SPEC("module.Fields", "\"[[\\\"a\\\"]] 5\"", LEAF),
        SPEC("module.Fields", "\"[] 1\"", LEAF),
    };
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
        check_result(f, sequences[i], "I1!R8!S5!k0_0");
    }
    check_result(f, DICT("12", LEAF), "I1!R11!D8!K3!12_0");
    check_result(f, DICT("-1", LEAF), "I1!R11!D8!K3!-1_0");
    check_result(f, DICT("\\\"\\\\u00e9\\\"", LEAF), "I1!R11!D8!K3!\xc3\xa9_0");
    check_result(f, SPEC("collections.OrderedDict", "\"[\\\"z\\\", \\\"a\\\"]\"", LEAF "," LEAF),
                 "I1!R17!D13!K2!a_1K2!z_0");
    check_result(f,
                 SPEC("collections.defaultdict",
                      "{\"default_factory_module\": \"builtins\", \"dict_context\": [\"k\"]}",
                      LEAF),
                 "I1!R10!D7!K2!k_0");
    check_result(f,
                 SPEC("collections.defaultdict", "\"{\\\"dict_context\\\": [\\\"k\\\"]}\"", LEAF),
                 "I1!R10!D7!K2!k_0");
    check_result(f,
                 SPEC("module.Fields", "\"[[\\\"b\\\", \\\"a\\\"], [\\\"c\\\"]]\"", LEAF "," LEAF),
                 "I1!R17!D13!K2!a_1K2!b_0");
    /* The members of a spec may come in any order. */
    check_result(f,
                 "{\"children_spec\": [" LEAF "], \"more\": [{}], \"context\": \"[\\\"k\\\"]\", "
                 "\"type\": \"builtins.dict\"}",
                 "I1!R10!D7!K2!k_0");
}

static void test_json_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"place", "expected a node"},
        {"[]", "expected another element"},
        {"[] 1", "expected another element"},
        {"[1]", "expected another element"},
        {"[1] " LEAF, "expected another element"},
        {"[2, " LEAF "]", "[0]: expected version 1"},
        {"[1, null]", "[1]: expected an object, got null"},
        {"[1, " LEAF ", 1]", "expected the end of the array"},
        {"[1, " LEAF "] 1", "byte"},
        {"[1, " LEAF, "byte"},
        {"[1, {}]", "expected the members type, context and children_spec"},
        {"[1, {\"type\": null, \"children_spec\": []}]", "expected the members"},
        {"[1, {\"type\": null, \"context\": null, \"children_spec\": [" LEAF "]}]",
         "a leaf has no children, got 1"},
        {"[1, " SPEC("builtins.dict", "\"null\"", "") "]", "the context: expected an array"},
        {"[1, " SPEC("builtins.dict", "null", "") "]", "the context: expected an array"},
        {"[1, " DICT("\\\"a\\\"", "") "]", "more keys than the 0 children"},
        {"[1, " DICT("", LEAF) "]", "fewer keys than the 1 children"},
        {"[1, " DICT("1.5", LEAF) "]", "expected an integer, got 1.5"},
        {"[1, " DICT("null", LEAF) "]", "expected a string, got null"},
        {"[1, " DICT("\\\"a\\\", \\\"a\\\"", LEAF "," LEAF) "]", "a dict has the key 'a' twice"},
        {"[1, " DICT("1, \\\"1\\\"", LEAF "," LEAF) "]", "a dict has the key '1' twice"},
        {"[1, " SPEC("collections.defaultdict", "{}", "") "]", "expected a member dict_context"},
        {"[1, {\"type\": 5, \"context\": null, \"children_spec\": []}]", "expected a string"},
    };
    struct sig_fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_fails(f->err, parse(f, "", cases[i].text), ST_INVALID, cases[i].why);
    }
}

static void test_compact(void **state)
{
    struct sig_fixture *f = *state;
    check(f, "T2#1#1($,$)", "$", "I12!S9!k0_0k1_1R3!_0");
    check(f, "T2#1#1(T1#1($),D1#1('mask':$))", "L0()", "I24!S20!k0_0k1D10!K5!mask_1R4!S1!");
    assert_true(f->sip.has_kwargs);
    check(f, "T2#2#0(T2#1#1($,$),D0())", "D2#1#1('z':$,'a':$)",
          "I12!S9!k0_0k1_1R17!D13!K2!a_1K2!z_0");
    check(f, "", "D3#1#1#1(7:$,-7:$,'':$)", "I1!R23!D19!K1!_2K3!-7_1K2!7_0");
    check(f, "", "N2#1#2($,C(module.Type)2#1#1($,$))", "I1!R22!S18!k0_0k1S9!k0_1k1_2");
    check(f, "", "D1#1('a:,)(#':$)", "I1!R16!D12!K7!a:,)(#_0");
}

static void test_compact_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"X", "byte 0: expected a node ($, T, L, N, D, C)"},
        {"$$", "byte 1: expected the end"},
        {"T", "byte 1: expected a number"},
        {"T1", "byte 2: expected '#'"},
        {"T1#1", "byte 4: expected '('"},
        {"T1#1#1($)", "byte 4: expected '('"},
        {"T1#1(", "byte 5: expected a node"},
        {"T1#1($", "byte 6: expected ')'"},
        {"T2#1#1($)", "byte 8: expected ','"},
        {"T1#1($,$)", "byte 6: expected ')'"},
        {"T1#2($)", "byte 6: got a leaf, expected 2 of them"},
        {"T1#1(L2#1#1($,$))", "byte 16: got a node of 2 leaves, expected 1"},
        {"T4294967296", "the number does not fit 32 bits"},
        {"T4294967295#1", "byte 13: expected '#'"},
        {"D1#1($)", "byte 5: expected a key"},
        {"D1#1(-:$)", "byte 6: expected a key"},
        {"D1#1('a':)", "byte 9: expected a node"},
        {"D1#1('a)", "byte 6: expected ''' before the end"},
        {"D1#1('a'$)", "byte 8: expected ':'"},
        {"D2#1#1('a':$,'a':$)", "results: byte 13: a dict has the key 'a' twice"},
        {"C1#1($)", "byte 1: expected '('"},
        {"C(x", "byte 2: expected ')' before the end"},
    };
    struct sig_fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_fails(f->err, parse(f, "", cases[i].text), ST_INVALID, cases[i].why);
    }
}

/* |levels| nested lists, in both encodings. */
static void add_nested(struct buf *json, struct buf *compact, int levels)
{
    buf_add_str(json, "[1, ");
    for (int i = 0; i < levels; i++) {
        buf_add_str(json, "{\"type\": \"builtins.list\", \"context\": \"null\", "
                          "\"children_spec\": [");
        buf_add_str(compact, "L1#1(");
    }
    buf_add_str(json, LEAF);
    buf_add_str(compact, "$");
    for (int i = 0; i < levels; i++) {
        buf_add_str(json, "]}");
        buf_add_str(compact, ")");
    }
    buf_add_str(json, "]");
}

static void test_depth(void **state)
{
    struct sig_fixture *f = *state;
    const int levels[] = {SIP_DEPTH_MAX, SIP_DEPTH_MAX + 1, SIP_DEPTH_MAX + 2, 5000};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct buf json, compact;
        enum status want = levels[i] <= SIP_DEPTH_MAX ? ST_OK : ST_INVALID;
        buf_init(&json, SIG_TEXT_BYTES_MAX);
        buf_init(&compact, SIG_TEXT_BYTES_MAX);
        add_nested(&json, &compact, levels[i]);
        assert_int_equal(parse_spans(f, span_of("", 0), buf_span(&json)), want);
        assert_true(want == ST_OK || strstr(f->err.text, "nested deeper than 64"));
        assert_int_equal(parse_spans(f, span_of("", 0), buf_span(&compact)), want);
        assert_true(want == ST_OK || strstr(f->err.text, "nested deeper than 64"));
        buf_fini(&json);
        buf_fini(&compact);
    }
}

static void test_method(void **state)
{
    struct sig_fixture *f = *state;
    const struct pytree_source source = {span_str("T2#1#1($,$)"), span_str("$")};
    assert_ok(f->err, pytree_parse_method(&source, 2, 1, &f->arena, &f->sip, &f->err));
    assert_fails(f->err, pytree_parse_method(&source, 3, 1, &f->arena, &f->sip, &f->err),
                 ST_INVALID, "has 2 inputs and 1 results, the method 3 and 1");
    assert_fails(f->err, pytree_parse_method(&source, 2, 0, &f->arena, &f->sip, &f->err),
                 ST_INVALID, "the method 2 and 0");
}

static void check_positional(struct sig_fixture *f, uint32_t inputs, uint32_t results,
                             const char *sip)
{
    assert_ok(f->err, pytree_positional(inputs, results, &f->arena, &f->sip, &f->err));
    buf_reset(&f->out);
    sip_mangle(&f->sip, &f->out);
    assert_true(span_is(buf_span(&f->out), sip));
}

static void test_positional(void **state)
{
    struct sig_fixture *f = *state;
    check_positional(f, 0, 0, "I1!R1!");
    check_positional(f, 1, 1, "I8!S5!k0_0R3!_0");
    check_positional(f, 2, 2, "I12!S9!k0_0k1_1R12!S9!k0_0k1_1");
}

/* One random structure in both encodings. The test recurses; the tested code does not. */
struct twins {
    struct buf json, compact;
};

static uint32_t add_random(struct twins *twins, int depth);

static uint32_t add_random_members(struct twins *twins, uint32_t count, bool is_dict, int depth)
{
    uint32_t leaves[4], total = 0;
    struct twins inner;
    buf_init(&inner.json, SIG_TEXT_BYTES_MAX);
    buf_init(&inner.compact, SIG_TEXT_BYTES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(&inner.json, i ? ", " : "");
        buf_add_str(&inner.compact, i ? "," : "");
        if (is_dict) {
            buf_printf(&inner.compact, i & 1 ? "%u:" : "'k%u':", 9 - i);
        }
        leaves[i] = add_random(&inner, depth - 1);
        total += leaves[i];
    }
    buf_printf(&twins->compact, "%u", count);
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(&twins->compact, "#%u", leaves[i]);
    }
    buf_add_char(&twins->compact, '(');
    buf_add(&twins->compact, inner.compact.ptr, inner.compact.len);
    buf_add_char(&twins->compact, ')');
    buf_add_str(&twins->json, "\"children_spec\": [");
    buf_add(&twins->json, inner.json.ptr, inner.json.len);
    buf_add_str(&twins->json, "]}");
    buf_fini(&inner.json);
    buf_fini(&inner.compact);
    return total;
}

/* Returns the number of leaves. */
static uint32_t add_random(struct twins *twins, int depth)
{
    static const char *const types[] = {"builtins.tuple", "builtins.list",
                                        "collections.namedtuple"};
    uint32_t kind = depth > 0 ? random_below(5) : 4, count = random_below(5);
    if (kind == 4) {
        buf_add_str(&twins->json, LEAF);
        buf_add_char(&twins->compact, '$');
        return 1;
    }
    if (kind < 3) {
        buf_printf(&twins->json, "{\"type\": \"%s\", \"context\": \"null\", ", types[kind]);
        buf_add_char(&twins->compact, "TLN"[kind]);
        return add_random_members(twins, count, false, depth);
    }
    buf_add_str(&twins->json, "{\"type\": \"builtins.dict\", \"context\": \"[");
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(&twins->json, i & 1 ? "%s%u" : "%s\\\"k%u\\\"", i ? ", " : "", 9 - i);
    }
    buf_add_str(&twins->json, "]\", ");
    buf_add_char(&twins->compact, 'D');
    return add_random_members(twins, count, true, depth);
}

static void check_damaged(struct sig_fixture *f, struct buf *text)
{
    damage(text);
    struct span exact = exact_copy(buf_span(text));
    if (parse_spans(f, span_of("", 0), exact) == ST_OK) {
        struct sip again;
        buf_reset(&f->out);
        sip_mangle(&f->sip, &f->out);
        assert_ok(f->err, sip_parse(buf_span(&f->out), &f->arena, &again, &f->err));
    }
    exact_free(exact);
}

static void test_random(void **state)
{
    struct sig_fixture *f = *state;
    struct twins twins;
    buf_init(&twins.json, SIG_TEXT_BYTES_MAX);
    buf_init(&twins.compact, SIG_TEXT_BYTES_MAX);
    for (int round = 0; round < RANDOM_ROUNDS / 4; round++) {
        arena_reset(&f->arena);
        buf_reset(&twins.json);
        buf_reset(&twins.compact);
        buf_add_str(&twins.json, "[1, ");
        uint32_t leaves = add_random(&twins, 4);
        buf_add_str(&twins.json, "]");
        assert_ok(f->err, parse_spans(f, span_of("", 0), buf_span(&twins.json)));
        assert_int_equal(f->sip.results.leaf_count, leaves);
        buf_reset(&f->out);
        sip_mangle(&f->sip, &f->out);
        struct span first = exact_copy(buf_span(&f->out));
        assert_ok(f->err, parse_spans(f, span_of("", 0), buf_span(&twins.compact)));
        buf_reset(&f->out);
        sip_mangle(&f->sip, &f->out);
        assert_true(span_equal(first, buf_span(&f->out)));
        exact_free(first);
        check_damaged(f, &twins.json);
        check_damaged(f, &twins.compact);
    }
    buf_fini(&twins.json);
    buf_fini(&twins.compact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_vectors, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_arguments, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_types, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_json_refused, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_compact, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_compact_refused, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_depth, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_method, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_positional, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_random, sig_set_up, sig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
