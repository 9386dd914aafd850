/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>

#include "protocol/rawsig.h"
#include "tests/unit/sig_support.h"

#define TYPES_MAX 6
#define RANK_MAX 6

static enum status parse_version(struct sig_fixture *f, enum rawsig_version version,
                                 struct span text)
{
    f->err.text[0] = '\0';
    return rawsig_parse(text, version, &f->arena, &f->raw, &f->err);
}

static enum status parse(struct sig_fixture *f, struct span text)
{
    return parse_version(f, RAWSIG_1, text);
}

static bool mangles_to_version(struct sig_fixture *f, enum rawsig_version version, struct span want)
{
    buf_reset(&f->out);
    rawsig_mangle(&f->raw, version, &f->out);
    return span_equal(buf_span(&f->out), want);
}

static bool mangles_to(struct sig_fixture *f, struct span want)
{
    return mangles_to_version(f, RAWSIG_1, want);
}

static void check_type(const cJSON *want, const struct rawsig_type *type)
{
    static const char *const kinds[] = {
        [RAWSIG_BUFFER] = "buffer",
        [RAWSIG_SCALAR] = "scalar",
        [RAWSIG_REF] = "ref",
        [RAWSIG_UNRECOGNIZED] = "unrecognized",
    };
    const cJSON *dtype = cJSON_GetObjectItem(want, "dtype");
    const cJSON *dims = cJSON_GetObjectItem(want, "dims");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(want, "type")), kinds[type->kind]);
    if (dtype) {
        assert_string_equal(dtype->valuestring, dtype_infos[type->dtype].long_text);
    }
    assert_int_equal(cJSON_GetArraySize(dims), type->rank);
    for (uint32_t i = 0; i < type->rank; i++) {
        assert_int_equal((int64_t)cJSON_GetArrayItem(dims, (int)i)->valuedouble, type->dims[i]);
    }
}

static void check_types(const cJSON *want, const struct rawsig_type *types, uint32_t count)
{
    assert_int_equal(cJSON_GetArraySize(want), count);
    for (uint32_t i = 0; i < count; i++) {
        check_type(cJSON_GetArrayItem(want, (int)i), &types[i]);
    }
}

static void check_vector(const struct vector *vector, void *user)
{
    struct sig_fixture *f = user;
    const cJSON *meaning = cJSON_GetObjectItem(vector->json, "meaning");
    enum status status = parse(f, vector->text);
    vector_check_status(vector, status, &f->err);
    if (!vector->is_valid) {
        assert_ptr_equal(strstr(f->err.text, "byte "), f->err.text);
        return;
    }
    check_types(cJSON_GetObjectItem(meaning, "inputs"), f->raw.inputs, f->raw.input_count);
    check_types(cJSON_GetObjectItem(meaning, "results"), f->raw.results, f->raw.result_count);
    if (vector->canonical.ptr && !mangles_to(f, vector->canonical)) {
        fail_msg("%s: mangled to %.*s", vector->id, SPAN_FMT(buf_span(&f->out)));
    }
}

static void test_vectors(void **state)
{
    vectors_check("raw", check_vector, *state);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"I4!A1!R1!", "byte 3: expected a type (B, S, O, U), got 'A'"},
        {"I3!d1R1!", "byte 3: expected a type (B, S, O, U), got 'd'"},
        {"I7!B4!t-1R1!", "byte 6: expected an element type t0 to t11, got 't-1'"},
        {"I7!B4!t12R1!", "byte 6: expected an element type t0 to t11, got 't12'"},
        {"I7!S4!t-0R1!", "byte 6: expected an element type t0 to t11, got 't-0'"},
        {"I7!S4!t00R1!", "byte 6: expected an element type t0 to t11, got 't00'"},
        {"I8!B5!t1t1R1!", "byte 8: expected a dim 'd', got 't'"},
        {"I8!B5!d1t1R1!", "byte 8: expected a dim 'd', got 't'"},
        {"I8!S5!t1t1R1!", "byte 8: expected the end, got 't'"},
        {"I8!S5!t1d1R1!", "byte 8: expected the end, got 'd'"},
        {"I7!B4!d-2R1!", "byte 6: expected a dim of -1 (dynamic) or more, got -2"},
        {"I6!O3!_0R1!", "byte 6: expected the end, got '_'"},
        {"I6!U3!t0R1!", "byte 6: expected the end, got 't'"},
        {"I5!B2!dR1!", "byte 7: expected digits for 'd', got the end"},
        {"I1!R7!B3!d1", "byte 3: 'R' is longer than the 6 bytes that are left"},
    };
    struct sig_fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct span text = exact_copy(span_str(cases[i].text));
        assert_fails(f->err, parse(f, text), ST_INVALID, cases[i].why);
        exact_free(text);
    }
}

static void test_print(void **state)
{
    static const struct {
        const char *text, *readable;
    } cases[] = {
        {"I16!B8!d-1d128S3!t7R10!B7!d-1d10", "(float32[?,128], sint64) -> (float32[?,10])"},
        {"I1!R1!", "() -> ()"},
        {"I4!B1!R4!S1!", "(float32[]) -> (float32)"},
        {"I7!O1!U1!R6!S3!t3", "(ref, unrecognized) -> (bfloat16)"},
        {"I6!B3!d0R10!B7!t11d-1", "(float32[0]) -> (uint64[?])"},
    };
    struct sig_fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_ok(f->err, parse(f, span_str(cases[i].text)));
        buf_reset(&f->out);
        rawsig_print(&f->raw, RAWSIG_1, &f->out);
        assert_true(span_is(buf_span(&f->out), cases[i].readable));
    }
}

/* Texts that are accepted but are not the canonical spelling. */
static void test_canonical(void **state)
{
    struct sig_fixture *f = *state;
    assert_ok(f->err, parse(f, span_str("I6!B3!t0R6!S3!t0")));
    assert_true(mangles_to(f, span_str("I4!B1!R4!S1!")));
    assert_ok(f->err, parse(f, span_str("I015!B0009!d007d-01R01!")));
    assert_true(mangles_to(f, span_str("I9!B6!d7d-1R1!")));
}

/* The ABI has no bool: a bool is mangled as sint8, and printed text for people says bool. */
static void test_bool(void **state)
{
    struct sig_fixture *f = *state;
    const int64_t dims[] = {RAWSIG_DIM_DYNAMIC, 3};
    struct rawsig_type types[] = {
        {.kind = RAWSIG_BUFFER, .dtype = DT_BOOL, .rank = 2, .dims = dims},
        {.kind = RAWSIG_SCALAR, .dtype = DT_BOOL},
    };
    f->raw = (struct rawsig){types, types + 1, 1, 1};
    assert_true(mangles_to(f, span_str("I11!B8!t4d-1d3R6!S3!t4")));
    buf_reset(&f->out);
    rawsig_print(&f->raw, RAWSIG_1, &f->out);
    assert_true(span_is(buf_span(&f->out), "(bool[?,3]) -> (bool)"));
    assert_ok(f->err, parse(f, span_str("I1!R6!S3!t4")));
    assert_int_equal(f->raw.results[0].dtype, DT_I8);
}

static void test_memory(void **state)
{
    struct sig_fixture *f = *state;
    struct arena small;
    buf_reset(&f->out);
    for (int i = 0; i < 100; i++) {
        buf_add_str(&f->out, "U1!");
    }
    struct buf text;
    buf_init(&text, SIG_TEXT_BYTES_MAX);
    buf_printf(&text, "I301!%.*sR1!", SPAN_FMT(buf_span(&f->out)));
    assert_ok(f->err, parse(f, buf_span(&text)));
    assert_int_equal(f->raw.input_count, 100);
    arena_init(&small, 1024);
    assert_fails(f->err, rawsig_parse(buf_span(&text), RAWSIG_1, &small, &f->raw, &f->err),
                 ST_TOO_LARGE, "bytes of memory");
    arena_fini(&small);
    buf_fini(&text);
}

/* Version 1 refuses orders, and a signature with orders is mangled without them. */
static void test_versions(void **state)
{
    struct sig_fixture *f = *state;
    const char *two = "I24!B20!d1d3d8d8C9!a3a2a1a0R10!B7!d2d2c0";
    assert_fails(f->err, parse(f, span_str(two)), ST_INVALID, "expected a dim 'd', got 'C'");
    assert_ok(f->err, parse_version(f, RAWSIG_2, span_str(two)));
    assert_int_equal(f->raw.inputs[0].order, RAWSIG_PERMUTED);
    assert_int_equal(f->raw.results[0].order, RAWSIG_ROW_MAJOR);
    assert_true(mangles_to_version(f, RAWSIG_2, span_str(two)));
    assert_true(mangles_to(f, span_str("I12!B9!d1d3d8d8R8!B5!d2d2")));
    assert_ok(f->err, parse_version(f, RAWSIG_2, span_str("I12!B9!d1d3d8d8R1!")));
    assert_int_equal(f->raw.inputs[0].order, RAWSIG_ANY_ORDER);
}

static void make_random_type(struct rawsig_type *type, int64_t *dims, uint32_t *axes)
{
    *type = (struct rawsig_type){.kind = (enum rawsig_kind)random_below(4)};
    if (type->kind == RAWSIG_BUFFER || type->kind == RAWSIG_SCALAR) {
        type->dtype = (enum dtype)random_below(DT_BOOL);
    }
    type->rank = type->kind == RAWSIG_BUFFER ? random_below(RANK_MAX + 1) : 0;
    type->dims = dims;
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t big = (int64_t)random_below(UINT32_MAX) << random_below(32);
        dims[i] = random_below(4) ? big : RAWSIG_DIM_DYNAMIC;
        axes[i] = (i + 1) % type->rank; /* a permutation that has no short form */
    }
    type->order = type->rank < 2 ? RAWSIG_ANY_ORDER : (enum rawsig_order)random_below(4);
    type->order =
        type->rank == 2 && type->order == RAWSIG_CHANNELS_LAST ? RAWSIG_PERMUTED : type->order;
    type->axes = axes;
}

static bool types_equal(const struct rawsig_type *a, const struct rawsig_type *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].kind != b[i].kind || a[i].order != b[i].order || a[i].dtype != b[i].dtype ||
            a[i].rank != b[i].rank ||
            (a[i].rank && memcmp(a[i].dims, b[i].dims, a[i].rank * sizeof(int64_t)) != 0)) {
            return false;
        }
    }
    return true;
}

/* Mangle, parse, mangle: the structure and the text stay the same. Then the text is damaged. */
static void test_random(void **state)
{
    struct sig_fixture *f = *state;
    struct rawsig_type types[2 * TYPES_MAX];
    int64_t dims[2 * TYPES_MAX][RANK_MAX];
    uint32_t axes[2 * TYPES_MAX][RANK_MAX];
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        struct rawsig made = {types, types + TYPES_MAX, random_below(TYPES_MAX + 1),
                              random_below(TYPES_MAX + 1)};
        for (int i = 0; i < 2 * TYPES_MAX; i++) {
            make_random_type(&types[i], dims[i], axes[i]);
        }
        arena_reset(&f->arena);
        buf_reset(&f->out);
        rawsig_mangle(&made, RAWSIG_2, &f->out);
        struct span text = exact_copy(buf_span(&f->out));
        assert_ok(f->err, parse_version(f, RAWSIG_2, text));
        assert_int_equal(f->raw.input_count, made.input_count);
        assert_int_equal(f->raw.result_count, made.result_count);
        assert_true(types_equal(f->raw.inputs, made.inputs, made.input_count));
        assert_true(types_equal(f->raw.results, made.results, made.result_count));
        assert_true(mangles_to_version(f, RAWSIG_2, text));
        exact_free(text);

        damage(&f->out);
        text = exact_copy(buf_span(&f->out));
        if (parse_version(f, RAWSIG_2, text) == ST_OK) {
            assert_true(mangles_to_version(f, RAWSIG_2, text) || f->out.len < text.len);
            struct span again = exact_copy(buf_span(&f->out));
            assert_ok(f->err, parse_version(f, RAWSIG_2, again));
            assert_true(mangles_to_version(f, RAWSIG_2, again));
            exact_free(again);
        } else {
            assert_ptr_equal(strstr(f->err.text, "byte "), f->err.text);
        }
        exact_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_vectors, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_refused, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_print, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_canonical, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_bool, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_memory, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_versions, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_random, sig_set_up, sig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
