/* SPDX-License-Identifier: MIT */
/* A request that has a pattern is what the parser makes of it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/oip_pattern.h"
#include "tests/unit/unit.h"

static const struct oip_limits limits = {
    .inputs_max = 32,
    .outputs_max = 8,
    .parameters_max = 8,
    .name_bytes_max = 16,
    .tensor_bytes_max = 1 << 20,
};

/* A body in a block of exactly its size, and what the parser makes of it. */
struct parsed {
    uint8_t *bytes;
    struct oip_body body;
    struct arena arena;
    struct oip_request request;
    enum status status;
};

static void parse(struct parsed *p, const char *json, size_t binary_bytes)
{
    struct error err;
    size_t len = strlen(json);
    p->bytes = malloc(len + binary_bytes);
    assert_non_null(p->bytes);
    memcpy(p->bytes, json, len);
    memset(p->bytes + len, 1, binary_bytes);
    p->body = (struct oip_body){.json = span_of(p->bytes, len),
                                .binary = span_of(p->bytes + len, binary_bytes)};
    arena_init(&p->arena, 1 << 16);
    p->status = oip_parse_infer(&p->body, &limits, &p->arena, &p->request, NULL, &err);
}

static void drop(struct parsed *p)
{
    arena_fini(&p->arena);
    free(p->bytes);
}

static struct oip_pattern *learn(const char *json, size_t binary_bytes)
{
    struct parsed p;
    parse(&p, json, binary_bytes);
    assert_int_equal(p.status, ST_OK);
    struct oip_pattern *pattern = oip_pattern_new(NULL, &p.body, &p.request);
    drop(&p);
    return pattern;
}

static void compare_inputs(const struct oip_request_input *a, const struct oip_request_input *b)
{
    assert_true(span_equal(a->name, b->name));
    assert_true(a->data.ptr == b->data.ptr && a->data.len == b->data.len);
    assert_true(a->index == b->index && a->bytes == b->bytes && a->is_binary == b->is_binary);
    assert_true(a->type.is_bytes == b->type.is_bytes && a->type.dtype == b->type.dtype);
    assert_true(shape_equal(&a->shape, &b->shape));
}

static void compare(const struct oip_request *a, const struct oip_request *b)
{
    assert_true(a->has_id == b->has_id && (!a->has_id || span_equal(a->id, b->id)));
    assert_int_equal(a->input_count, b->input_count);
    assert_int_equal(a->outputs.count, b->outputs.count);
    assert_true(a->parameters.priority == b->parameters.priority &&
                a->parameters.binary_data_output == b->parameters.binary_data_output);
    for (size_t i = 0; i < a->input_count; i++) {
        compare_inputs(&a->inputs[i], &b->inputs[i]);
    }
    for (size_t i = 0; i < a->outputs.count; i++) {
        assert_true(span_equal(a->outputs.items[i].name, b->outputs.items[i].name));
        assert_int_equal(a->outputs.items[i].class_count, b->outputs.items[i].class_count);
        assert_int_equal(a->outputs.items[i].is_binary, b->outputs.items[i].is_binary);
    }
}

/* What matches parses, and to the same. */
static bool matches(struct oip_pattern *pattern, const char *json, size_t binary_bytes)
{
    struct parsed p;
    struct oip_request request;
    parse(&p, json, binary_bytes);
    bool is_match = oip_pattern_match(pattern, &p.body, &limits, &request);
    if (is_match) {
        assert_int_equal(p.status, ST_OK);
        compare(&request, &p.request);
    }
    drop(&p);
    return is_match;
}

static const char base[] =
    "{\"id\":\"a\",\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":[1,2]},"
    "{\"data\":[[3],[4]],\"datatype\":\"INT64\",\"name\":\"y\",\"shape\":[2,1]}],"
    "\"parameters\":{\"priority\":3},\"outputs\":[{\"name\":\"z\",\"parameters\":{"
    "\"classification\":2}}]}";

static void test_gaps(void **state)
{
    (void)state;
    static const char *const same[] = {
        base,
        "{\"id\":\"\",\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":["
        " 1.5e3 , -2 ]},{\"data\":[ 3, 4],\"datatype\":\"INT64\",\"name\":\"y\",\"shape\":[2,1]}],"
        "\"parameters\":{\"priority\":3},\"outputs\":[{\"name\":\"z\",\"parameters\":{"
        "\"classification\":2}}]}",
        "{\"id\":\"0123456789abcdef\",\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":"
        "\"FP32\",\"data\":[\"]\",[\"\\\"]\"]]},{\"data\":[12345],\"datatype\":\"INT64\",\"name\":"
        "\"y\",\"shape\":[2,1]}],\"parameters\":{\"priority\":3},\"outputs\":[{\"name\":\"z\","
        "\"parameters\":{\"classification\":2}}]}",
    };
    struct oip_pattern *pattern = learn(base, 0);
    assert_non_null(pattern);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        if (!matches(pattern, same[i], 0)) {
            fail_msg("no match: %s", same[i]);
        }
    }
    assert_false(matches(pattern, base, 1)); /* bytes that nobody wants */
    oip_pattern_free(pattern);
}

/* Whatever byte is cut, or is another one: what still matches is what the parser says. */
static void test_damage(void **state)
{
    (void)state;
    static const char others[] = "\"\\]}[{,:0x \n\x01\x80";
    struct oip_pattern *pattern = learn(base, 0);
    char text[sizeof(base) + 1];
    unsigned match_count = 0;
    assert_non_null(pattern);
    for (size_t i = 0; i < sizeof(base) - 1; i++) {
        memcpy(text, base, sizeof(base));
        text[i] = '\0';
        assert_false(matches(pattern, text, 0));
        memmove(text + i, base + i + 1, sizeof(base) - i - 1); /* a byte less */
        match_count += matches(pattern, text, 0);
        for (size_t k = 0; k < sizeof(others) - 1; k++) {
            memcpy(text, base, sizeof(base));
            text[i] = others[k];
            match_count += matches(pattern, text, 0);
            memmove(text + i + 1, base + i, sizeof(base) - i); /* a byte more */
            match_count += matches(pattern, text, 0);
        }
    }
    assert_true(match_count > 20);
    oip_pattern_free(pattern);
}

static void test_binary(void **state)
{
    (void)state;
    static const char json[] =
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\",\"parameters\":{"
        "\"binary_data_size\":8}},{\"name\":\"y\",\"shape\":[3],\"datatype\":\"INT8\"}],"
        "\"parameters\":{\"binary_data_output\":true}}";
    struct oip_pattern *pattern = learn(json, 11);
    assert_non_null(pattern);
    assert_true(matches(pattern, json, 11));
    assert_false(matches(pattern, json, 10));
    assert_false(matches(pattern, json, 12));
    oip_pattern_free(pattern);
}

/* Requests that borrow from elsewhere, or are long, have no pattern. */
static void test_rare(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"inputs\":[{\"name\":\"\\u0078\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}",
        "{\"id\":\"\\n\",\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":["
        "1]}]}",
        "{\"inputs\":[],\"parameters\":{\"other\":1}}",
        "{\"inputs\":[],\"parameters\":{\"sequence_id\":\"s\"}}",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":{"
        "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":4}}]}",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        if (learn(bodies[i], 0)) {
            fail_msg("it has a pattern: %s", bodies[i]);
        }
    }
    char text[20000];
    int len = snprintf(text, sizeof(text),
                       "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],"
                       "\"datatype\":\"FP32\",\"data\":[%9000d1]}]}",
                       0);
    assert_true(len > 9000);
    memset(strchr(text, '0'), ' ', 1);
    struct parsed p;
    parse(&p, text, 0);
    struct oip_pattern *pattern = oip_pattern_new(learn(base, 0), &p.body, &p.request);
    assert_null(pattern); /* and the old one is freed */
    drop(&p);
}

/* The memory of a pattern is that of the next, whatever its size. */
static void test_again(void **state)
{
    (void)state;
    static const char small[] = "{\"inputs\":[]}";
    struct parsed p;
    struct oip_pattern *pattern = learn(small, 0);
    for (int i = 0; i < 4; i++) {
        const char *json = i % 2 ? small : base;
        parse(&p, json, 0);
        pattern = oip_pattern_new(pattern, &p.body, &p.request);
        assert_non_null(pattern);
        drop(&p);
        assert_true(matches(pattern, json, 0));
        assert_false(matches(pattern, i % 2 ? base : small, 0));
    }
    oip_pattern_free(pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps), cmocka_unit_test(test_damage), cmocka_unit_test(test_binary),
        cmocka_unit_test(test_rare), cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
