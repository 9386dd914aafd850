/* SPDX-License-Identifier: MIT */
/* Both ways to a library's functions: opened at run time, and linked in. */
#include "config.h"

#include <string.h>
#include <zlib.h>

#include "server/process/library.h"
#include "tests/unit/unit.h"

struct functions {
    const char *(*version)(void);
    uLong (*crc32)(uLong crc, const Bytef *bytes, uInt len);
};

#define checksum_of_zlib crc32

static const struct library_symbol linked[] = {
    LIBRARY_LINKED(zlibVersion, struct functions, version),
    LIBRARY_LINKED(checksum_of_zlib, struct functions, crc32),
};

static const struct library_symbol opened[] = {
    LIBRARY_OPENED(zlibVersion, struct functions, version),
    LIBRARY_OPENED(checksum_of_zlib, struct functions, crc32),
};

static struct functions functions;
static int prepared;

static enum status prepare(struct error *err)
{
    (void)err;
    prepared++;
    return functions.version ? ST_OK : ST_INTERNAL;
}

static enum status refuse(struct error *err)
{
    return error_set(err, ST_UNAVAILABLE, "it is too old");
}

static void clear(void)
{
    functions = (struct functions){NULL, NULL};
    prepared = 0;
}

/* The functions are those of the linker. Nothing of the library's name is opened. */
static void takes_linked_functions(void **state)
{
    (void)state;
    struct library library = {
        LIBRARY_INIT("libnone.so.0", "libnone0", linked, &functions, ST_UNSUPPORTED),
        .prepare = prepare};
    struct error err;
    clear();
    assert_ok(err, library_load(&library, &err));
    assert_ok(err, library_load(&library, &err));
    assert_int_equal(prepared, 1);
    assert_string_equal(functions.version(), zlibVersion());
    assert_true(functions.crc32(0, (const Bytef *)"pted", 4) == crc32(0, (const Bytef *)"pted", 4));
}

/* A row has the name behind a macro, which is what dlsym() knows. */
static void names_functions_behind_macros(void **state)
{
    (void)state;
    assert_string_equal(opened[1].name, "crc32");
    assert_string_equal(linked[1].name, "crc32");
    assert_null(opened[1].linked);
}

static void says_what_is_not_installed(void **state)
{
    (void)state;
    struct library library = {
        LIBRARY_INIT("libnone.so.0", "libnone0", opened, &functions, ST_UNSUPPORTED)};
    struct error err;
    clear();
    for (int i = 0; i < 2; i++) {
        assert_fails(err, library_load(&library, &err), ST_UNSUPPORTED,
                     "no libnone.so.0 (Debian: libnone0)");
    }
    assert_null(functions.version);
}

static void keeps_why_a_library_is_refused(void **state)
{
    (void)state;
    struct library library = {LIBRARY_INIT("zlib", "zlib1g", linked, &functions, ST_UNSUPPORTED),
                              .prepare = refuse};
    struct error err;
    clear();
    for (int i = 0; i < 2; i++) {
        assert_fails(err, library_load(&library, &err), ST_UNAVAILABLE, "it is too old");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_linked_functions),
        cmocka_unit_test(names_functions_behind_macros),
        cmocka_unit_test(says_what_is_not_installed),
        cmocka_unit_test(keeps_why_a_library_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
