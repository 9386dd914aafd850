/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>

#include "protocol/sig.h"
#include "protocol/sip.h"
#include "protocol/sip_build.h"
#include "tests/unit/sig_support.h"

#define ASSIGNMENTS_MAX 16
#define PATH_MAX_STEPS 8

static enum status parse(struct sig_fixture *f, struct span text)
{
    f->err.text[0] = '\0';
    return sip_parse(text, &f->arena, &f->sip, &f->err);
}

static void parse_ok(struct sig_fixture *f, const char *text)
{
    assert_ok(f->err, parse(f, span_str(text)));
}

static bool mangles_to(struct sig_fixture *f, struct span want)
{
    buf_reset(&f->out);
    sip_mangle(&f->sip, &f->out);
    return span_equal(buf_span(&f->out), want);
}

static uint32_t count_leaves(const struct sip_tree *tree)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i != SIP_NO_NODE; i = sip_next(tree, i)) {
        count += tree->nodes[i].kind == SIP_LEAF;
    }
    return count;
}

/* The leaf at a vector's path of keys. */
static void check_path(const struct sip_tree *tree, const cJSON *want, const char *id)
{
    const cJSON *key;
    uint32_t node = 0;
    cJSON_ArrayForEach(key, cJSON_GetArrayItem(want, 1))
    {
        node = cJSON_IsNumber(key) ? sip_find_position(tree, node, (int64_t)key->valuedouble)
                                   : sip_find_name(tree, node, span_str(key->valuestring));
        if (node == SIP_NO_NODE) {
            fail_msg("%s: a path leads nowhere", id);
        }
    }
    assert_int_equal(tree->nodes[node].kind, SIP_LEAF);
    assert_int_equal(tree->nodes[node].raw_index,
                     (int64_t)cJSON_GetArrayItem(want, 0)->valuedouble);
}

static void check_paths(const struct sip_tree *tree, const cJSON *paths, const char *id)
{
    const cJSON *want;
    assert_int_equal(tree->leaf_count, cJSON_GetArraySize(paths));
    assert_int_equal(count_leaves(tree), tree->leaf_count);
    cJSON_ArrayForEach(want, paths)
    {
        check_path(tree, want, id);
    }
}

static void check_vector(const struct vector *vector, void *user)
{
    struct sig_fixture *f = user;
    const cJSON *paths = cJSON_GetObjectItem(vector->json, "index_paths");
    enum status status = parse(f, vector->text);
    vector_check_status(vector, status, &f->err);
    if (!vector->is_valid) {
        assert_ptr_equal(strstr(f->err.text, "byte "), f->err.text);
        return;
    }
    check_paths(&f->sip.inputs, cJSON_GetObjectItem(paths, "inputs"), vector->id);
    check_paths(&f->sip.results, cJSON_GetObjectItem(paths, "results"), vector->id);
    if (vector->canonical.ptr && !mangles_to(f, vector->canonical)) {
        fail_msg("%s: mangled to %.*s", vector->id, SPAN_FMT(buf_span(&f->out)));
    }
}

static void test_vectors(void **state)
{
    vectors_check("sip", check_vector, *state);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"I5!_0_1R1!", "byte 5: expected the end, got '_'"},
        {"I3!k0R1!", "byte 3: expected a value (_, S, D), got 'k'"},
        {"I5!S2!_R1!", "byte 7: expected digits for '_', got the end"},
        {"I6!S3!_0R1!", "byte 6: expected a position 'k' in a sequence, got '_'"},
        {"I6!S3!k0R1!", "byte 8: expected a tag (_, a-z, A-Z), got the end"},
        {"I10!S7!K2!a_0R1!", "byte 7: expected a position 'k' in a sequence, got 'K'"},
        {"I8!D5!k0_0R1!", "byte 6: expected a name 'K' in a dict, got 'k'"},
        {"I9!S6!k-1_0R1!", "byte 6: a position is not negative, got -1"},
        {"I9!S6!k0_-1R1!", "byte 8: a raw index is not negative, got -1"},
        {"I4!_-1R1!", "byte 3: a raw index is not negative, got -1"},
        {"I8!S5!k0d0R1!", "byte 8: expected a value (_, S, D), got 'd'"},
        {"I17!S13!k0_0k1_1k0_2R1!", "byte 16: the key is there twice"},
        {"I17!D13!K2!a_0K2!a_1R1!", "byte 14: the key is there twice"},
        {"I1!R11!S8!k0S1!_0", "byte 15: expected a position 'k' in a sequence, got '_'"},
    };
    struct sig_fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct span text = exact_copy(span_str(cases[i].text));
        assert_fails(f->err, parse(f, text), ST_INVALID, cases[i].why);
        exact_free(text);
    }
}

static void test_depth(void **state)
{
    struct sig_fixture *f = *state;
    struct buf text, path;
    buf_init(&text, SIG_TEXT_BYTES_MAX);
    buf_init(&path, SIG_TEXT_BYTES_MAX);
    add_nested_sip(&text, SIP_DEPTH_MAX);
    assert_ok(f->err, parse(f, buf_span(&text)));
    assert_true(mangles_to(f, buf_span(&text)));
    sip_print_path(&f->sip.inputs, 0, f->sip.inputs.count - 1, &path);
    assert_int_equal(path.len, 3 * SIP_DEPTH_MAX);
    buf_reset(&text);
    add_nested_sip(&text, SIP_DEPTH_MAX + 1);
    assert_fails(f->err, parse(f, buf_span(&text)), ST_INVALID, "nested deeper than 64");

    struct sip_path_key keys[SIP_DEPTH_MAX + 1] = {{.is_name = false}};
    struct sip_assignment assignment = {keys, SIP_DEPTH_MAX, SIP_LEAF, 0};
    assert_ok(f->err, sip_assign(&assignment, 1, &f->arena, &f->sip.results, &f->err));
    assignment.kind = SIP_DICT;
    assert_fails(f->err, sip_assign(&assignment, 1, &f->arena, &f->sip.results, &f->err),
                 ST_INVALID, "nested deeper than 64");
    buf_fini(&text);
    buf_fini(&path);
}

static void test_print(void **state)
{
    static const struct {
        const char *text, *readable;
    } cases[] = {
        {"I31!S27!k0D17!K4!bar_1K4!foo_0k1_2R3!_0", "[{\"bar\": r1, \"foo\": r0}, r2] -> r0"},
        {"I1!R1!", "() -> ()"},
        {"I4!S1!R4!D1!", "[] -> {}"},
        {"I12!S9!k1_0k3_1R3!_0", "[None, r0, None, r1] -> r0"},
        {"I22!S18!k2_0k9000000000_1R1!", "[None, None, r0, *[None] * 8999999997, r1] -> ()"},
        {"I27!S23!k9223372036854775807_0R1!", "[*[None] * 9223372036854775807, r0] -> ()"},
        {"I25!D21!K2!\"_0K3!\xc3\xa9_1K3!\xff\n_2R1!",
         "{\"\\\"\": r0, \"\xc3\xa9\": r1, b\"\\xff\\x0a\": r2} -> ()"},
    };
    struct sig_fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parse_ok(f, cases[i].text);
        buf_reset(&f->out);
        sip_print_signature(&f->sip, &f->out);
        if (!span_is(buf_span(&f->out), cases[i].readable)) {
            fail_msg("%s prints %.*s", cases[i].text, SPAN_FMT(buf_span(&f->out)));
        }
    }
}

static enum status note_leaf(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    buf_printf(user, "%d", (int)node->raw_index);
    return ST_OK;
}

static enum status note_open(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    buf_add_char(user, node->kind == SIP_DICT ? '{' : '[');
    return ST_OK;
}

static enum status note_close(void *user, const struct sip_node *node, struct error *err)
{
    buf_add_char(user, node->kind == SIP_DICT ? '}' : ']');
    return node->kind == SIP_DICT && node->count == 0 ? error_set(err, ST_CANCELLED, "empty")
                                                      : ST_OK;
}

static void test_visit(void **state)
{
    static const struct sip_visitor visitor = {note_leaf, note_open, note_close};
    struct sig_fixture *f = *state;
    parse_ok(f, "I31!S27!k1_2k0D17!K4!foo_0K4!bar_1R15!S11!k0D1!k1S1!");
    assert_ok(f->err, sip_visit(&f->sip.inputs, &visitor, &f->out, &f->err));
    assert_true(span_is(buf_span(&f->out), "[{10}2]"));
    buf_reset(&f->out);
    assert_fails(f->err, sip_visit(&f->sip.results, &visitor, &f->out, &f->err), ST_CANCELLED,
                 "empty");
    assert_true(span_is(buf_span(&f->out), "[{}"));
}

static void test_find(void **state)
{
    struct sig_fixture *f = *state;
    parse_ok(f, "I12!S9!k1_0k5_1R17!D13!K2!b_0K2!a_1");
    const struct sip_tree *inputs = &f->sip.inputs, *results = &f->sip.results;
    assert_int_equal(sip_length(inputs, 0), 6);
    assert_int_equal(inputs->nodes[sip_find_position(inputs, 0, 5)].raw_index, 1);
    assert_int_equal(sip_find_position(inputs, 0, 0), SIP_NO_NODE);
    assert_int_equal(sip_find_position(inputs, 0, 3), SIP_NO_NODE);
    assert_int_equal(sip_find_position(inputs, 0, 6), SIP_NO_NODE);
    assert_int_equal(results->nodes[sip_find_name(results, 0, span_str("b"))].raw_index, 0);
    assert_int_equal(sip_find_name(results, 0, span_str("")), SIP_NO_NODE);
    assert_int_equal(sip_find_name(results, 0, span_str("aa")), SIP_NO_NODE);
    parse_ok(f, "I4!S1!R4!D1!");
    assert_int_equal(sip_length(&f->sip.inputs, 0), 0);
    assert_int_equal(sip_find_position(&f->sip.inputs, 0, 0), SIP_NO_NODE);
    assert_int_equal(sip_find_name(&f->sip.results, 0, span_str("")), SIP_NO_NODE);
}

static void test_bind(void **state)
{
    static const struct {
        const char *text;
        uint32_t inputs, results;
        const char *why; /* NULL: it fits */
    } cases[] = {
        {"I12!S9!k0_1k1_0R3!_0", 2, 1, NULL},
        {"I1!R12!S9!k0_1k1_1", 0, 4, NULL}, /* a result is used twice, others are hidden */
        {"I12!S9!k0_1k1_0R3!_0", 3, 1, "raw input 2 is nowhere in the structure"},
        {"I1!R1!", 1, 0, "raw input 0 is nowhere in the structure"},
        {"I12!S9!k0_1k1_0R3!_0", 1, 1, "inputs[0]: raw index 1, the function has 1 inputs"},
        {"I12!S9!k0_0k1_0R3!_0", 1, 1, "raw input 0 is at inputs[0] and inputs[1]"},
        {"I1!R10!D7!K2!a_3", 0, 3, "results[\"a\"]: raw index 3, the function has 3 results"},
        {"I21!_9223372036854775807R1!", 1, 0, "inputs: raw index 9223372036854775807, "},
    };
    struct sig_fixture *f = *state;
    const uint32_t *leaves;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parse_ok(f, cases[i].text);
        enum status status =
            sip_bind(&f->sip, cases[i].inputs, cases[i].results, &f->arena, &leaves, &f->err);
        if (cases[i].why) {
            assert_fails(f->err, status, ST_INVALID, cases[i].why);
            continue;
        }
        assert_int_equal(status, ST_OK);
        for (uint32_t raw = 0; raw < cases[i].inputs; raw++) {
            assert_int_equal(f->sip.inputs.nodes[leaves[raw]].raw_index, raw);
        }
    }
}

static struct sip_path_key name_key(const char *name)
{
    return (struct sip_path_key){.is_name = true, .key = {.name = span_str(name)}};
}

static struct sip_path_key position_key(int64_t position)
{
    return (struct sip_path_key){.key = {.position = position}};
}

static enum status assign(struct sig_fixture *f, const struct sip_assignment *assignments,
                          uint32_t count)
{
    f->err.text[0] = '\0';
    return sip_assign(assignments, count, &f->arena, &f->sip.inputs, &f->err);
}

/* The order of the assignments does not matter. The keys get the order of the ABI. */
static void test_assign(void **state)
{
    struct sig_fixture *f = *state;
    const struct sip_path_key bar[] = {position_key(0), name_key("bar")};
    const struct sip_path_key foo[] = {position_key(0), name_key("foo")};
    const struct sip_path_key one[] = {position_key(1)}, ten[] = {position_key(10)};
    const struct sip_assignment assignments[] = {
        {ten, 1, SIP_DICT, 0},
        {one, 1, SIP_LEAF, 2},
        {foo, 2, SIP_LEAF, 0},
        {bar, 2, SIP_LEAF, 1},
    };
    assert_ok(f->err, assign(f, NULL, 0));
    assert_ok(f->err, sip_assign(assignments + 1, 0, &f->arena, &f->sip.results, &f->err));
    assert_true(mangles_to(f, span_str("I1!R1!")));
    assert_ok(f->err, assign(f, assignments, 4));
    assert_true(mangles_to(f, span_str("I37!S33!k0D17!K4!bar_1K4!foo_0k1_2k10D1!R1!")));
    const struct sip_assignment root = {NULL, 0, SIP_LEAF, 7};
    assert_ok(f->err, assign(f, &root, 1));
    assert_true(mangles_to(f, span_str("I3!_7R1!")));
}

static void test_assign_refused(void **state)
{
    struct sig_fixture *f = *state;
    const struct sip_path_key a[] = {name_key("a"), position_key(0)};
    const struct sip_path_key b[] = {name_key("a"), name_key("b")};
    const struct sip_path_key negative[] = {position_key(-1)};
    const struct sip_assignment twice[] = {{a, 2, SIP_LEAF, 0}, {a, 2, SIP_LEAF, 1}};
    const struct sip_assignment inside[] = {{a, 2, SIP_LEAF, 0}, {a, 1, SIP_LEAF, 1}};
    const struct sip_assignment below_root[] = {{a, 2, SIP_LEAF, 0}, {NULL, 0, SIP_LEAF, 1}};
    const struct sip_assignment mixed[] = {{b, 2, SIP_LEAF, 0}, {a, 2, SIP_LEAF, 1}};
    const struct sip_assignment wrong_key = {negative, 1, SIP_LEAF, 0};
    const struct sip_assignment wrong_index = {a, 1, SIP_LEAF, -1};
    assert_fails(f->err, assign(f, twice, 2), ST_INVALID, "[\"a\"][0]: lies at or inside another");
    assert_fails(f->err, assign(f, inside, 2), ST_INVALID, "[\"a\"][0]: lies at or inside another");
    assert_fails(f->err, assign(f, below_root, 2), ST_INVALID, "lies at or inside another");
    assert_fails(f->err, assign(f, mixed, 2), ST_INVALID,
                 "[\"a\"][\"b\"]: a name beside a position");
    assert_fails(f->err, assign(f, &wrong_key, 1), ST_INVALID, "[-1]: a position is negative");
    assert_fails(f->err, assign(f, &wrong_index, 1), ST_INVALID, "raw index -1 is negative");
}

/* Many members in the worst order cost as much as sorting, and memory is bounded. */
static void test_wide(void **state)
{
    enum { MEMBERS = 100000 };
    struct sig_fixture *f = *state;
    struct buf content, text;
    struct arena small;
    buf_init(&content, SIG_TEXT_BYTES_MAX);
    buf_init(&text, SIG_TEXT_BYTES_MAX);
    for (int64_t i = MEMBERS; i > 0; i--) {
        sig_add_integer(&content, 'k', i - 1);
        sig_add_integer(&content, '_', i - 1);
    }
    sig_add_head(&text, 'I', sig_span_bytes(content.len));
    sig_add_span(&text, 'S', buf_span(&content));
    buf_add_str(&text, "R1!");
    assert_ok(f->err, parse(f, buf_span(&text)));
    assert_int_equal(f->sip.inputs.leaf_count, MEMBERS);
    assert_int_equal(sip_length(&f->sip.inputs, 0), MEMBERS);
    uint32_t node = sip_find_position(&f->sip.inputs, 0, 70000);
    assert_int_equal(f->sip.inputs.nodes[node].raw_index, 70000);
    arena_init(&small, 100000);
    assert_fails(f->err, sip_parse(buf_span(&text), &small, &f->sip, &f->err), ST_TOO_LARGE,
                 "bytes of memory");
    arena_fini(&small);
    buf_fini(&content);
    buf_fini(&text);
}

struct random_paths {
    struct sip_assignment assignments[ASSIGNMENTS_MAX];
    struct sip_path_key keys[ASSIGNMENTS_MAX][PATH_MAX_STEPS];
    uint8_t names[ASSIGNMENTS_MAX][PATH_MAX_STEPS][4];
};

/* Keys of one level are all names or all positions, so that few of them conflict. */
static void make_random_path(struct random_paths *paths, uint32_t i)
{
    static const char alphabet[] = "aK!_0\xc3\0";
    const uint32_t named_levels = 0x5a; /* bits */
    uint32_t depth = random_below(PATH_MAX_STEPS / 2) + 1;
    for (uint32_t d = 0; d < depth; d++) {
        struct sip_path_key *key = &paths->keys[i][d];
        *key = (struct sip_path_key){.is_name = named_levels >> d & 1};
        if (key->is_name) {
            size_t len = random_below(sizeof(paths->names[i][d]) + 1);
            for (size_t c = 0; c < len; c++) {
                paths->names[i][d][c] = (uint8_t)alphabet[random_below(sizeof(alphabet) - 1)];
            }
            key->key.name = span_of(paths->names[i][d], len);
        } else {
            key->key.position = random_below(8) ? random_below(12) : INT64_MAX - random_below(3);
        }
    }
    enum sip_kind kind = random_below(6) ? SIP_LEAF : random_below(2) ? SIP_SEQUENCE : SIP_DICT;
    paths->assignments[i] = (struct sip_assignment){paths->keys[i], depth, kind,
                                                    kind == SIP_LEAF ? random_below(1000) : 0};
}

static void shuffle(struct sip_assignment *assignments, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = random_below(i);
        struct sip_assignment moved = assignments[i - 1];
        assignments[i - 1] = assignments[j];
        assignments[j] = moved;
    }
}

static const struct sip_node *find(const struct sip_tree *tree, const struct sip_assignment *at)
{
    uint32_t node = 0;
    for (uint32_t d = 0; d < at->depth && node != SIP_NO_NODE; d++) {
        node = at->path[d].is_name ? sip_find_name(tree, node, at->path[d].key.name)
                                   : sip_find_position(tree, node, at->path[d].key.position);
    }
    return node == SIP_NO_NODE ? NULL : &tree->nodes[node];
}

/* After mangling and parsing, the assigned leaves are there, and mangling gives the same text
 * again. */
static void check_fixpoint(struct sig_fixture *f, const struct random_paths *paths, uint32_t count)
{
    buf_reset(&f->out);
    sip_mangle(&f->sip, &f->out);
    struct span text = exact_copy(buf_span(&f->out));
    assert_ok(f->err, parse(f, text));
    assert_true(mangles_to(f, text));
    for (uint32_t i = 0; i < count; i++) {
        const struct sip_node *node = find(&f->sip.inputs, &paths->assignments[i]);
        assert_non_null(node);
        assert_int_equal(node->kind, paths->assignments[i].kind);
        assert_int_equal(node->raw_index, paths->assignments[i].raw_index);
    }
    exact_free(text);
}

static void check_damaged(struct sig_fixture *f)
{
    damage(&f->out);
    struct span text = exact_copy(buf_span(&f->out));
    if (parse(f, text) == ST_OK) {
        buf_reset(&f->out);
        sip_print_signature(&f->sip, &f->out);
        assert_false(buf_failed(&f->out));
        mangles_to(f, text);
        struct span again = exact_copy(buf_span(&f->out));
        assert_ok(f->err, parse(f, again));
        assert_true(mangles_to(f, again));
        exact_free(again);
    } else {
        assert_ptr_equal(strstr(f->err.text, "byte "), f->err.text);
    }
    exact_free(text);
}

static void test_random(void **state)
{
    struct sig_fixture *f = *state;
    static struct random_paths paths;
    int built = 0;
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint32_t count = random_below(ASSIGNMENTS_MAX) + 1;
        arena_reset(&f->arena);
        for (uint32_t i = 0; i < count; i++) {
            make_random_path(&paths, i);
        }
        while (assign(f, paths.assignments, count) != ST_OK) {
            count--; /* two may conflict; one always fits */
        }
        built += count > 1;
        assert_ok(f->err, sip_assign(NULL, 0, &f->arena, &f->sip.results, &f->err));
        buf_reset(&f->out);
        sip_mangle(&f->sip, &f->out);
        struct span first = exact_copy(buf_span(&f->out));
        shuffle(paths.assignments, count);
        assert_ok(f->err, assign(f, paths.assignments, count));
        assert_true(mangles_to(f, first));
        exact_free(first);
        check_fixpoint(f, &paths, count);
        check_damaged(f);
    }
    assert_true(built > RANDOM_ROUNDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_vectors, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_refused, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_depth, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_print, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_visit, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_find, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_bind, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_assign, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_assign_refused, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_wide, sig_set_up, sig_tear_down),
        cmocka_unit_test_setup_teardown(test_random, sig_set_up, sig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
