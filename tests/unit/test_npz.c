/* SPDX-License-Identifier: MIT */
/* Archives of numpy: what is written is read, and what is damaged in them is refused. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/npz.h"

#define PATH_TEMPLATE "/tmp/pted-npz-XXXXXX"

static char path[] = PATH_TEMPLATE;

static const float numbers[] = {1, 2, 3, 4, 5, 6};

static void write_two(void)
{
    struct error err;
    const struct npz_entry entries[] = {
        {"stem.0.conv.12", DT_F32, {.rank = 2, .dims = {2, 3}}, span_of(numbers, sizeof(numbers))},
        {"empty", DT_I64, {.rank = 1, .dims = {0}}, {0}},
    };
    assert_ok(err, npz_write("--output", path, entries, 2, &err));
}

static size_t load(uint8_t bytes[4096])
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, 4096, file);
    fclose(file);
    assert_true(len < 4096);
    return len;
}

static void store(const uint8_t *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static enum status read_it(struct error *err)
{
    struct npz npz;
    enum status status = npz_read(&npz, path, err);
    npz_fini(&npz);
    return status;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct error err;
    struct npz npz;
    write_two();
    assert_ok(err, npz_read(&npz, path, &err));
    assert_int_equal(npz.count, 2);
    const struct npz_array *first = npz_find(&npz, "stem.0.conv.12");
    assert_ptr_equal(first, &npz.items[0]);
    assert_int_equal(first->array.dtype, DT_F32);
    assert_int_equal(first->array.shape.rank, 2);
    assert_int_equal(first->array.data.len, sizeof(numbers));
    assert_memory_equal(first->array.data.ptr, numbers, sizeof(numbers));
    assert_int_equal(npz_find(&npz, "empty")->array.data.len, 0);
    assert_null(npz_find(&npz, "other"));
    npz_fini(&npz);
}

/* A file that ends anywhere is refused. */
static void cut_files(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    struct error err;
    write_two();
    size_t len = load(bytes);
    for (size_t cut = 0; cut < len; cut++) {
        store(bytes, cut);
        assert_int_equal(read_it(&err), ST_CORRUPT);
    }
}

/* Any byte may be another one: the file is refused, or has the same arrays. */
static void damaged_files(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    struct error err;
    write_two();
    size_t len = load(bytes), refused = 0;
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            store(bytes, len);
            refused += read_it(&err) != ST_OK;
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    assert_true(refused > sizeof(numbers) * 8); /* each bit of the numbers at least */
}

/* The sizes in the directory decide no allocation that the file cannot fill. */
static void sizes_that_cannot_be(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    struct error err;
    write_two();
    size_t len = load(bytes);
    uint8_t *entry = memmem(bytes, len, "PK\1\2", 4);
    assert_non_null(entry);
    entry[10] = 8; /* deflated */
    memcpy(entry + 24, "\xff\xff\xff\x7f", 4);
    store(bytes, len);
    assert_int_equal(read_it(&err), ST_CORRUPT);
    assert_non_null(strstr(err.text, "another size than the directory says"));
    memcpy(entry + 24, "\xff\xff\xff\xff", 4);
    entry[10] = 99;
    store(bytes, len);
    assert_int_equal(read_it(&err), ST_UNSUPPORTED);
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(cut_files),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(sizes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
