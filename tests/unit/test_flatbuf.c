/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include "runtime/pte/flatbuf.h"
#include "tests/unit/flatbuf_writer.h"

/* The fields of the root that the tests write; FAR is beyond the vtable. */
enum { SMALL, LARGE, TEXT, NUMBERS, TABLES, TAG, VALUE, SLOT_COUNT, FAR };
static const struct flatbuf_field small = {SMALL, "small"}, large = {LARGE, "large"},
                                  text = {TEXT, "text"}, numbers = {NUMBERS, "numbers"},
                                  tables = {TABLES, "tables"}, tag = {TAG, "tag"},
                                  beyond = {FAR, "beyond"};

struct fixture {
    struct writer writer;
    struct flatbuf fb;
    struct flatbuf_table root;
    size_t root_at, text_at, numbers_at, tables_at, child_at;
    struct error err;
};

static enum status reopen(struct fixture *f)
{
    enum status status = flatbuf_init(&f->fb, span_of(f->writer.bytes, f->writer.len), &f->err);
    return status == ST_OK ? flatbuf_root(&f->fb, &f->root, &f->err) : status;
}

static int setup(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    struct writer *w = &f->writer;
    memset(f, 0, sizeof(*f));
    writer_add_int(w, 0, 4);
    writer_add(w, "TEST", 4);
    f->root_at = writer_child(w, 0, "1844414");
    writer_put(w, writer_field(w, f->root_at, SMALL), 0xfe, 1);
    writer_put(w, writer_field(w, f->root_at, LARGE), 0x0123456789abcdef, 8);
    f->text_at = writer_string(w, writer_field(w, f->root_at, TEXT), "text");
    f->numbers_at =
        writer_numbers(w, writer_field(w, f->root_at, NUMBERS), (const int64_t[]){1, -2, 3}, 3, 4);
    f->tables_at = writer_vector(w, writer_field(w, f->root_at, TABLES), 2, 4);
    f->child_at = writer_child(w, f->tables_at, "4");
    writer_put(w, writer_field(w, f->child_at, 0), 42, 4);
    writer_link(w, f->tables_at + 4, f->child_at);
    writer_put(w, writer_field(w, f->root_at, TAG), 1, 1);
    writer_link(w, writer_field(w, f->root_at, VALUE), f->child_at);
    writer_pad(w, 4);
    assert_ok(f->err, reopen(f));
    *state = f;
    return 0;
}

static void test_reads_scalars_at_any_alignment(void **state)
{
    struct fixture *f = *state;
    uint8_t byte = 0;
    int8_t negative = 0;
    uint64_t number = 0;
    assert_int_not_equal(writer_field(&f->writer, f->root_at, LARGE) % 8, 0);
    assert_ok(f->err, flatbuf_u8(&f->fb, &f->root, small, &byte, &f->err));
    assert_ok(f->err, flatbuf_i8(&f->fb, &f->root, small, &negative, &f->err));
    assert_ok(f->err, flatbuf_u64(&f->fb, &f->root, large, &number, &f->err));
    assert_int_equal(byte, 0xfe);
    assert_int_equal(negative, -2);
    assert_true(number == 0x0123456789abcdef);
}

static void test_absent_fields_are_no_error(void **state)
{
    struct fixture *f = *state;
    struct flatbuf_table table;
    struct flatbuf_vector vector;
    struct span string;
    uint32_t number = 7;
    bool found = true;
    assert_ok(f->err, flatbuf_u32(&f->fb, &f->root, beyond, &number, &f->err));
    assert_ok(f->err, flatbuf_table(&f->fb, &f->root, beyond, &table, &found, &f->err));
    assert_ok(f->err, flatbuf_vector(&f->fb, &f->root, beyond, 4, &vector, &f->err));
    assert_ok(f->err, flatbuf_string(&f->fb, &f->root, beyond, &string, &f->err));
    assert_int_equal(number, 7);
    assert_false(found);
    assert_int_equal(vector.pos, 0);
    assert_null(string.ptr);
}

static void test_reads_vectors_strings_and_tables(void **state)
{
    struct fixture *f = *state;
    struct flatbuf_vector vector;
    struct flatbuf_table child;
    struct span string;
    uint32_t number = 0;
    uint8_t which;
    assert_ok(f->err, flatbuf_vector(&f->fb, &f->root, numbers, 4, &vector, &f->err));
    assert_int_equal(vector.count, 3);
    assert_int_equal(flatbuf_i32_at(&f->fb, vector, 1), -2);
    assert_ok(f->err, flatbuf_string(&f->fb, &f->root, text, &string, &f->err));
    assert_true(span_is(string, "text"));
    assert_ok(f->err, flatbuf_vector(&f->fb, &f->root, tables, 4, &vector, &f->err));
    assert_ok(f->err, flatbuf_table_at(&f->fb, vector, 1, &child, &f->err));
    assert_ok(f->err,
              flatbuf_u32(&f->fb, &child, (struct flatbuf_field){0, "n"}, &number, &f->err));
    assert_int_equal(number, 42);
    assert_ok(f->err, flatbuf_union(&f->fb, &f->root, tag, &which, &child, &f->err));
    assert_int_equal(which, 1);
}

static void test_root_offset(void **state)
{
    struct fixture *f = *state;
    const struct {
        uint32_t offset;
        const char *part;
    } cases[] = {
        {0, "is zero"},
        {1, "not a multiple of 4"},
        {(uint32_t)f->writer.len - 3, "beyond"},
        {(uint32_t)f->writer.len, "beyond"},
        {UINT32_MAX, "beyond"},
        {(uint32_t)f->writer.len - 4, "vtable"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        writer_put(&f->writer, 0, cases[i].offset, 4);
        assert_fails(f->err, reopen(f), ST_CORRUPT, cases[i].part);
    }
    f->writer.len = 3;
    assert_fails(f->err, reopen(f), ST_CORRUPT, "too few");
}

static void test_vtables(void **state)
{
    struct fixture *f = *state;
    struct writer *w = &f->writer;
    size_t vtable = f->root_at - load_le32(w->bytes + f->root_at);
    const struct {
        size_t at, width;
        uint64_t value;
        const char *part;
    } cases[] = {
        {f->root_at, 4, (uint64_t)INT32_MIN, "has its vtable at"},
        {f->root_at, 4, INT32_MAX, "has its vtable at"},
        {f->root_at, 4, (uint64_t)-1, "has its vtable at"},
        {vtable, 2, 0, "impossible length of 0"},
        {vtable, 2, 3, "impossible length of 3"},
        {vtable, 2, 5, "impossible length of 5"},
        {vtable, 2, 0xfffe, "impossible length of 65534"},
        {vtable + 2, 2, 3, "impossible length of 3"},
        {vtable + 2, 2, 0xffff, "impossible length of 65535"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct writer good = *w;
        writer_put(w, cases[i].at, cases[i].value, cases[i].width);
        assert_fails(f->err, reopen(f), ST_CORRUPT, cases[i].part);
        *w = good;
    }
}

static void test_fields_stay_in_their_table(void **state)
{
    struct fixture *f = *state;
    size_t vtable = f->root_at - load_le32(f->writer.bytes + f->root_at);
    uint64_t number;
    writer_put(&f->writer, vtable + 4 + 2 * LARGE, f->root.table_bytes - 7u, 2);
    assert_fails(f->err, flatbuf_u64(&f->fb, &f->root, large, &number, &f->err), ST_CORRUPT,
                 "large: the field is 8 bytes at");
    writer_put(&f->writer, vtable + 4 + 2 * LARGE, 3, 2);
    assert_fails(f->err, flatbuf_u64(&f->fb, &f->root, large, &number, &f->err), ST_CORRUPT,
                 "large: the field is 8 bytes at 3");
}

static void test_vectors_stay_in_the_buffer(void **state)
{
    struct fixture *f = *state;
    struct flatbuf_vector vector;
    size_t room = f->writer.len - f->numbers_at;
    writer_put(&f->writer, f->numbers_at - 4, room / 4, 4);
    assert_ok(f->err, flatbuf_vector(&f->fb, &f->root, numbers, 4, &vector, &f->err));
    const uint64_t counts[] = {room / 4 + 1, 0x40000000, 0x20000001, UINT32_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        writer_put(&f->writer, f->numbers_at - 4, counts[i], 4);
        assert_fails(f->err, flatbuf_vector(&f->fb, &f->root, numbers, 4, &vector, &f->err),
                     ST_CORRUPT, "numbers: ");
    }
}

static void test_strings_are_terminated(void **state)
{
    struct fixture *f = *state;
    struct span string;
    writer_put(&f->writer, f->text_at + 4, 'x', 1);
    assert_fails(f->err, flatbuf_string(&f->fb, &f->root, text, &string, &f->err), ST_CORRUPT,
                 "not terminated");
    /* A string up to the last byte leaves no room for the zero. */
    writer_put(&f->writer, f->text_at - 4, f->writer.len - f->text_at, 4);
    assert_fails(f->err, flatbuf_string(&f->fb, &f->root, text, &string, &f->err), ST_CORRUPT,
                 "not terminated");
}

static void test_unions_have_tag_and_table_or_neither(void **state)
{
    struct fixture *f = *state;
    struct flatbuf_table child;
    uint8_t which;
    size_t vtable = f->root_at - load_le32(f->writer.bytes + f->root_at);
    writer_put(&f->writer, writer_field(&f->writer, f->root_at, TAG), 0, 1);
    assert_fails(f->err, flatbuf_union(&f->fb, &f->root, tag, &which, &child, &f->err), ST_CORRUPT,
                 "tag is 0 but there is a table");
    writer_put(&f->writer, vtable + 4 + 2 * VALUE, 0, 2);
    assert_ok(f->err, flatbuf_union(&f->fb, &f->root, tag, &which, &child, &f->err));
    assert_int_equal(which, 0);
    writer_put(&f->writer, writer_field(&f->writer, f->root_at, TAG), 9, 1);
    assert_fails(f->err, flatbuf_union(&f->fb, &f->root, tag, &which, &child, &f->err), ST_CORRUPT,
                 "tag is 9 but there is no table");
}

static void test_empty_entries_of_a_vector(void **state)
{
    struct fixture *f = *state;
    struct flatbuf_vector vector;
    struct flatbuf_table child;
    writer_put(&f->writer, f->tables_at, 0, 4);
    assert_ok(f->err, flatbuf_vector(&f->fb, &f->root, tables, 4, &vector, &f->err));
    assert_fails(f->err, flatbuf_table_at(&f->fb, vector, 0, &child, &f->err), ST_CORRUPT,
                 "tables: the offset at byte");
}

/* The size of the buffer bounds the work, however often a table or vector is shared. */
static void test_budgets(void **state)
{
    struct fixture *f = *state;
    struct flatbuf_vector vector;
    struct flatbuf_table child;
    enum status status = ST_OK;
    size_t visits = 0;
    assert_ok(f->err, flatbuf_vector(&f->fb, &f->root, tables, 4, &vector, &f->err));
    for (; status == ST_OK && visits < f->writer.len; visits++) {
        status = flatbuf_table_at(&f->fb, vector, visits % 2, &child, &f->err);
    }
    assert_fails(f->err, status, ST_CORRUPT, "more tables than");
    assert_between(visits, 1, f->writer.len / 4);
    visits = 0;
    for (status = ST_OK; status == ST_OK && visits < 4 * f->writer.len; visits++) {
        status = flatbuf_vector(&f->fb, &f->root, numbers, 4, &vector, &f->err);
    }
    assert_fails(f->err, status, ST_CORRUPT, "more elements than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reads_scalars_at_any_alignment, setup),
        cmocka_unit_test_setup(test_absent_fields_are_no_error, setup),
        cmocka_unit_test_setup(test_reads_vectors_strings_and_tables, setup),
        cmocka_unit_test_setup(test_root_offset, setup),
        cmocka_unit_test_setup(test_vtables, setup),
        cmocka_unit_test_setup(test_fields_stay_in_their_table, setup),
        cmocka_unit_test_setup(test_vectors_stay_in_the_buffer, setup),
        cmocka_unit_test_setup(test_strings_are_terminated, setup),
        cmocka_unit_test_setup(test_unions_have_tag_and_table_or_neither, setup),
        cmocka_unit_test_setup(test_empty_entries_of_a_vector, setup),
        cmocka_unit_test_setup(test_budgets, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
