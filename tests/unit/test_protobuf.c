/* SPDX-License-Identifier: MIT */
/* The wire format of protocol buffers. Messages in hexadecimal are those that Python's package
 * protobuf 6.33 makes of the values named beside them. */
#include "config.h"

#include "protocol/protobuf.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define BYTES_MAX 512

struct message {
    uint8_t bytes[BYTES_MAX];
    size_t len;
};

static struct message from_hex(const char *hex)
{
    struct message out = {.len = strlen(hex) / 2};
    for (size_t i = 0; i < out.len; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out.bytes[i] = (uint8_t)byte;
    }
    return out;
}

static struct span span_of_message(const struct message *message)
{
    return span_of(message->bytes, message->len);
}

/* The n-th field of the message. */
static struct protobuf_field field_at(const struct message *message, unsigned n)
{
    struct protobuf in;
    struct protobuf_field field;
    protobuf_init(&in, span_of_message(message));
    for (unsigned i = 0; i <= n; i++) {
        assert_true(protobuf_next(&in, &field));
    }
    return field;
}

static void assert_numbers(struct protobuf_field field, enum protobuf_type type,
                           const uint64_t *expected, size_t count)
{
    struct protobuf in;
    uint8_t alone[10];
    uint64_t value;
    size_t i = 0;
    assert_true(protobuf_numbers(&field, type, alone, &in));
    while (protobuf_next_packed(&in, type, &value)) {
        assert_true(i < count && value == expected[i]);
        i++;
    }
    assert_false(in.is_wrong);
    assert_int_equal(i, count);
}

/* An InferTensorContents with all of its lists but that of int64. */
static const char lists[] =
    "0a02010012200001ffffffffffffffffff017f8001ac0280808080f8ffffffff01ffffffff072a1b00ffffffffffff"
    "ffffff018080808080808080800180808080800132080000c03f000000803a089a9999999999b93f420042026162";

static void test_read(void **state)
{
    static const uint64_t bools[] = {1, 0};
    static const uint64_t ints[] = {0,   1,   (uint64_t)-1,        127,
                                    128, 300, (uint64_t)INT32_MIN, INT32_MAX};
    static const uint64_t uints[] = {0, UINT64_MAX, 1ull << 63, 1ull << 35};
    static const uint64_t floats[] = {0x3fc00000, 0x80000000};
    static const uint64_t doubles[] = {0x3fb999999999999a};
    const struct message message = from_hex(lists);
    (void)state;
    assert_numbers(field_at(&message, 0), PROTOBUF_VARINT, bools, 2);
    assert_numbers(field_at(&message, 1), PROTOBUF_VARINT, ints, 8);
    assert_numbers(field_at(&message, 2), PROTOBUF_VARINT, uints, 4);
    assert_numbers(field_at(&message, 3), PROTOBUF_I32, floats, 2);
    assert_numbers(field_at(&message, 4), PROTOBUF_I64, doubles, 1);
    assert_int_equal(field_at(&message, 5).number, 8);
    assert_int_equal(field_at(&message, 5).bytes.len, 0);
    assert_true(span_is(field_at(&message, 6).bytes, "ab"));
}

/* A number that came alone is a list of one. */
static void test_alone(void **state)
{
    static const uint64_t big[] = {UINT64_MAX};
    static const struct protobuf_field fields[] = {
        {.number = 1, .type = PROTOBUF_VARINT, .value = UINT64_MAX},
        {.number = 1, .type = PROTOBUF_I64, .value = UINT64_MAX},
    };
    const uint64_t small[] = {UINT32_MAX};
    const struct protobuf_field word = {.number = 1, .type = PROTOBUF_I32, .value = UINT32_MAX};
    struct protobuf in;
    uint8_t alone[10];
    (void)state;
    assert_numbers(fields[0], PROTOBUF_VARINT, big, 1);
    assert_numbers(fields[1], PROTOBUF_I64, big, 1);
    assert_numbers(word, PROTOBUF_I32, small, 1);
    assert_false(protobuf_numbers(&word, PROTOBUF_VARINT, alone, &in));
}

static void test_scalars(void **state)
{
    struct message message = from_hex("2100000000000004c0"); /* a double, -2.5 */
    struct protobuf_field field = field_at(&message, 0);
    (void)state;
    assert_int_equal(field.number, 4);
    assert_true(protobuf_double(&field) == -2.5);
    message = from_hex("10f9ffffffffffffffff01"); /* an int64, -7 */
    assert_true((int64_t)field_at(&message, 0).value == -7);
    assert_int_equal(protobuf_zigzag(0), 0);
    assert_int_equal(protobuf_zigzag(1), -1);
    assert_int_equal(protobuf_zigzag(4294967294u), 2147483647);
    assert_true(protobuf_zigzag(UINT64_MAX) == INT64_MIN);
}

/* Groups are passed with all that is in them. */
static void test_groups(void **state)
{
    /* 1: {2: {} 3: 5} 4: 6 */
    const struct message message = from_hex("0b131418050c2006");
    const struct protobuf_field field = field_at(&message, 0);
    struct message deep = {.len = 2 * PROTOBUF_GROUPS_MAX};
    struct protobuf in;
    struct protobuf_field out;
    (void)state;
    assert_int_equal(field.number, 4);
    assert_int_equal(field.value, 6);
    memset(deep.bytes, 0x0b, PROTOBUF_GROUPS_MAX);
    memset(deep.bytes + PROTOBUF_GROUPS_MAX, 0x0c, PROTOBUF_GROUPS_MAX);
    protobuf_init(&in, span_of_message(&deep));
    assert_false(protobuf_next(&in, &out));
    assert_false(in.is_wrong);
    deep.len = 2 * (PROTOBUF_GROUPS_MAX + 1);
    memset(deep.bytes, 0x0b, PROTOBUF_GROUPS_MAX + 1);
    memset(deep.bytes + PROTOBUF_GROUPS_MAX + 1, 0x0c, PROTOBUF_GROUPS_MAX + 1);
    protobuf_init(&in, span_of_message(&deep));
    assert_false(protobuf_next(&in, &out));
    assert_true(in.is_wrong);
}

static void test_damage(void **state)
{
    static const char *const messages[] = {
        "80",                       /* a key is cut */
        "08",                       /* its number is missing */
        "08ffffffffffffffffffff01", /* a number of eleven bytes */
        "0a05616263",               /* three of five bytes */
        "0affffffffffffffffff01",   /* more bytes than there are addresses */
        "0d000000",                 /* three of four bytes */
        "0900000000000000",         /* seven of eight */
        "0001",                     /* field 0 */
        "808080801001",             /* field 2^29 */
        "0e",
        "0f",   /* types that are none */
        "0c",   /* the end of no group */
        "0b14", /* the end of another group */
        "0b",   /* no end */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        const struct message message = from_hex(messages[i]);
        struct protobuf in;
        struct protobuf_field field;
        protobuf_init(&in, span_of_message(&message));
        while (protobuf_next(&in, &field)) {
        }
        if (!in.is_wrong || in.at != in.end) {
            fail_msg("%s is taken", messages[i]);
        }
    }
}

static void assert_printed(const struct buf *out, const char *hex)
{
    const struct message expected = from_hex(hex);
    assert_false(buf_failed(out));
    assert_int_equal(out->len, expected.len);
    assert_memory_equal(out->ptr, expected.bytes, expected.len);
}

static void test_write(void **state)
{
    struct buf out;
    char text[201] = "";
    struct message entry_of_k = from_hex("1a017822d1010a016b12cb011ac801"); /* id = "x"; k = text */
    (void)state;
    memset(text, 'v', 200);
    memcpy(entry_of_k.bytes + entry_of_k.len, text, 200);
    entry_of_k.len += 200;
    buf_init(&out, 1000);
    protobuf_put_text(&out, 3, "x");
    size_t entry = protobuf_begin(&out, 4);
    protobuf_put_text(&out, 1, "k");
    size_t value = protobuf_begin(&out, 2);
    protobuf_put_text(&out, 3, text);
    protobuf_end(&out, value);
    protobuf_end(&out, entry);
    assert_int_equal(out.len, entry_of_k.len);
    assert_memory_equal(out.ptr, entry_of_k.bytes, out.len);
    buf_reset(&out);
    protobuf_put_number(&out, 5, (uint64_t)-3); /* -3 and 1e300 */
    protobuf_put_double(&out, 6, 1e300);
    assert_printed(&out, "28fdffffffffffffffff01319c7500883ce4377e");
    buf_reset(&out);
    protobuf_put_float(&out, 6, 1.5f);
    assert_printed(&out, "350000c03f");
    assert_int_equal(protobuf_varint_bytes(0), 1);
    assert_int_equal(protobuf_varint_bytes(127), 1);
    assert_int_equal(protobuf_varint_bytes(128), 2);
    assert_int_equal(protobuf_varint_bytes(UINT64_MAX), PROTOBUF_VARINT_BYTES_MAX);
    buf_fini(&out);
}

/* A message that has no room for its length fails, and nothing is written behind the end. */
static void test_full(void **state)
{
    char text[128];
    (void)state;
    memset(text, 'v', sizeof(text));
    for (size_t max = 0; max < 140; max++) {
        struct buf out;
        buf_init(&out, max);
        size_t begun = protobuf_begin(&out, 1);
        protobuf_put_bytes(&out, 2, span_of(text, sizeof(text)));
        protobuf_end(&out, begun);
        assert_true(buf_failed(&out) == (max < 134));
        buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),    cmocka_unit_test(test_alone),
        cmocka_unit_test(test_scalars), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_damage),  cmocka_unit_test(test_write),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
