/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/npy.h"

static struct buf file;

/* A version 1.0 file with this header and |bytes| zero bytes of elements. */
static struct span make(const char *head, size_t bytes)
{
    buf_reset(&file);
    size_t len = strlen(head);
    uint8_t fixed[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)len, (uint8_t)(len >> 8)};
    buf_add(&file, fixed, sizeof(fixed));
    buf_add_str(&file, head);
    memset(buf_reserve(&file, bytes + 1), 0, bytes);
    buf_commit(&file, bytes);
    return buf_span(&file);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct shape shapes[] = {
        {0}, {.rank = 1, .dims = {3}}, {.rank = 3, .dims = {2, 0, 4}}, {.rank = 2, .dims = {2, 5}}};
    for (int dtype = 0; dtype < DTYPE_COUNT && dtype_is_public((enum dtype)dtype); dtype++) {
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            struct error err;
            struct npy array;
            size_t bytes;
            assert_ok(err, shape_bytes(&shapes[i], (enum dtype)dtype, &bytes, &err));
            buf_reset(&file);
            npy_print_head(&file, (enum dtype)dtype, &shapes[i]);
            assert_int_equal(file.len % 64, 0);
            assert_int_equal(file.ptr[file.len - 1], '\n');
            memset(buf_reserve(&file, bytes + 1), 7, bytes);
            buf_commit(&file, bytes);
            assert_ok(err, npy_parse(buf_span(&file), &array, &err));
            assert_int_equal(array.dtype, dtype);
            assert_true(shape_equal(&array.shape, &shapes[i]));
            assert_int_equal(array.data.len, bytes);
        }
    }
}

static void heads_of_other_writers(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
        "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
        "{ 'shape' : ( 2 , 3 ) , 'descr' : '<f4' , 'fortran_order' : False }",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct error err;
        struct npy array;
        assert_ok(err, npy_parse(make(heads[i], 24), &array, &err));
        assert_int_equal(array.shape.rank, 2);
        assert_int_equal(array.shape.dims[1], 3);
    }
}

static void bad_heads(void **state)
{
    (void)state;
    static const struct {
        const char *head, *text;
    } cases[] = {
        {"", "dictionary"},
        {"{", "'key': value"},
        {"{}", "expected descr"},
        {"{'descr': '<f4', 'shape': (2,)}", "expected descr"},
        {"{'descr': '?f4', 'fortran_order': False, 'shape': (2,)}",
         "elements are '?f4', expected floats, integers or bools"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
         "elements are '|O', expected floats, integers or bools"},
        {"{'descr': '<U5', 'shape': (2,)}", "elements are '<U5', expected floats"},
        {"{'descr': '<c8', 'shape': (2,)}", "elements are '<c8', expected floats"},
        {"{'descr': '', 'shape': (2,)}", "elements are '', expected floats"},
        {"{'descr': 7}", "elements are 7}, expected floats"},
        {"{'descr': [('a', '<f4'), ('b', '<i8')], 'fortran_order': False, 'shape': (2,)}",
         "a structured array, of elements [('a', '<f4'), ('b', '<i8')]: save one of its fields"},
        {"{'descr': [('a\n', '<f4')]}", "of elements [('a: save"},
        {"{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4)}", ""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "expected 12 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,) 'x': 1}", "','"},
        {"{'other': '<f4'}", "unknown key"},
        {"{'descr: <f4}", "'key': value"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error err = {.text = ""};
        struct npy array;
        assert_int_not_equal(npy_parse(make(cases[i].head, 8), &array, &err), ST_OK);
        if (!strstr(err.text, cases[i].text)) {
            fail_msg("%s: text is '%s', expected '%s'", cases[i].head, err.text, cases[i].text);
        }
    }
}

/* Each prefix is copied to memory of exactly its size, so that a sanitizer finds a read beyond
 * it. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct span whole = make("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2), }\n", 16);
    for (size_t len = 0; len < whole.len; len++) {
        struct error err;
        struct npy array;
        uint8_t *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, whole.ptr, len);
        uint8_t *exact = realloc(copy, len ? len : 1);
        assert_non_null(exact);
        assert_int_not_equal(npy_parse(span_of(exact, len), &array, &err), ST_OK);
        free(exact);
    }
}

static void versions(void **state)
{
    (void)state;
    struct error err;
    struct npy array;
    const char *head = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
    make(head, 1);
    file.ptr[6] = 4;
    assert_fails(err, npy_parse(buf_span(&file), &array, &err), ST_INVALID, "1 to 3, got 4");
    file.ptr[6] = 0;
    assert_fails(err, npy_parse(buf_span(&file), &array, &err), ST_INVALID, "1 to 3, got 0");
    buf_reset(&file);
    uint8_t fixed[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, (uint8_t)strlen(head), 0, 0, 0};
    buf_add(&file, fixed, sizeof(fixed));
    buf_add_str(&file, head);
    buf_add_char(&file, 9);
    assert_ok(err, npy_parse(buf_span(&file), &array, &err));
    assert_int_equal(array.data.ptr[0], 9);
    file.ptr[11] = 0xff;
    assert_fails(err, npy_parse(buf_span(&file), &array, &err), ST_INVALID, "longer than");
}

/* [[0,1,2],[3,4,5]] in every order of dims and of bytes. */
static void orders_are_undone(void **state)
{
    (void)state;
    static const uint8_t rows[] = {0, 1, 2, 3, 4, 5}, columns[] = {0, 3, 1, 4, 2, 5};
    for (int which = 0; which < 4; which++) {
        bool is_fortran = which & 1, is_big = which & 2;
        struct error err;
        struct npy array;
        int16_t got[6];
        char head[128];
        snprintf(head, sizeof(head), "{'descr': '%ci2', 'fortran_order': %s, 'shape': (2, 3), }",
                 is_big ? '>' : '<', is_fortran ? "True" : "False");
        make(head, 12);
        for (size_t i = 0; i < 6; i++) {
            file.ptr[file.len - 12 + 2 * i + is_big] = (is_fortran ? columns : rows)[i];
        }
        assert_ok(err, npy_parse(buf_span(&file), &array, &err));
        npy_copy(&array, got);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(got[i], i);
        }
    }
}

static void arrays_without_elements_are_copied(void **state)
{
    (void)state;
    struct error err;
    struct npy array;
    make("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 0, 3), }", 0);
    assert_ok(err, npy_parse(buf_span(&file), &array, &err));
    npy_copy(&array, NULL);
}

static void archives_are_named(void **state)
{
    (void)state;
    struct error err;
    struct npy array;
    assert_fails(err, npy_parse(span_of("PK\3\4....", 8), &array, &err), ST_INVALID,
                 "an .npz archive holds several arrays");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(heads_of_other_writers),
        cmocka_unit_test(bad_heads),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(versions),
        cmocka_unit_test(orders_are_undone),
        cmocka_unit_test(arrays_without_elements_are_copied),
        cmocka_unit_test(archives_are_named),
    };
    buf_init(&file, 4096);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buf_fini(&file);
    return failed;
}
