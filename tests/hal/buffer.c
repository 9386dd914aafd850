/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include <stdlib.h>
#include <time.h>

#include "hal/pages.h"

typedef enum status new_f(struct hal_device *device, size_t size, struct hal_buffer **out_buffer,
                          struct error *err);

static void check_new(new_f *make)
{
    static const size_t sizes[] = {1, 63, 64, 4097, 65535, 65536, 1000003, 5000001};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct error err;
        struct hal_buffer *buffer = NULL;
        assert_ok(err, make(cts.device, sizes[i], &buffer, &err));
        assert_int_equal(hal_buffer_size(buffer), sizes[i]);
        assert_ptr_equal(hal_buffer_device(buffer), cts.device);
        uint8_t *host = hal_buffer_map(buffer);
        assert_int_equal((uintptr_t)host % cts.props->buffer_align, 0);
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(host[k], 0);
        }
        memset(host, 0xa5, sizes[i]); /* so that the next one would notice old contents */
        hal_buffer_unref(buffer);
    }
}

static void test_zeroed_and_aligned(void **state)
{
    (void)state;
    check_new(hal_buffer_new);
    check_new(hal_buffer_new_constant);
}

/* Constants that are made together are zeroed and aligned, too, and none reaches into another. */
static void test_constants(void **state)
{
    enum { COUNT = 7 };
    static const size_t sizes[COUNT] = {5000001, 64, 65536, 0, 1000003, 2 << 20, 70000};
    struct error err;
    struct hal_buffer *buffers[COUNT];
    (void)state;
    assert_ok(err, hal_buffer_new_constants(cts.device, sizes, COUNT, buffers, &err));
    for (size_t i = 0; i < COUNT; i++) {
        const uint8_t *host = hal_buffer_map(buffers[i]);
        assert_int_equal(hal_buffer_size(buffers[i]), sizes[i]);
        assert_int_equal((uintptr_t)host % cts.props->buffer_align, 0);
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(host[k], 0);
        }
        if (sizes[i] > 0) {
            memset(hal_buffer_map(buffers[i]), (int)i + 1, sizes[i]);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        size_t at = i * 3 % COUNT; /* not in their order */
        const uint8_t *host = hal_buffer_map(buffers[at]);
        for (size_t k = 0; k < sizes[at]; k++) {
            assert_int_equal(host[k], at + 1);
        }
        hal_buffer_unref(buffers[at]);
    }
    assert_ok(err, hal_buffer_new_constants(cts.device, sizes, 0, buffers, &err));
}

static struct hal_buffer *new_sparse(size_t size)
{
    struct error err;
    struct hal_buffer *buffer;
    assert_ok(err, hal_buffer_new_sparse(cts.device, size, &buffer, &err));
    return buffer;
}

static void assert_bytes(struct hal_buffer *buffer, size_t first, size_t end, int want)
{
    const uint8_t *host = hal_buffer_map(buffer);
    for (size_t i = first; i < end; i++) {
        assert_int_equal(host[i], want);
    }
}

/* Buffers that have pages of another do not see what one of them writes, and keep the pages that
 * they have when the others are gone. */
static void test_pages(void **state)
{
    enum { SIZE = 1 << 20 };
    struct error err;
    struct hal_pages *pages;
    struct hal_buffer *from = new_sparse(SIZE), *a = new_sparse(SIZE), *b = new_sparse(SIZE);
    size_t page = hal_buffer_page_bytes(from);
    (void)state;
    if (page == 0) {
        assert_fails(err, hal_pages_new(cts.device, SIZE, &pages, &err), ST_UNSUPPORTED, "share");
    } else {
        memset(hal_buffer_map(from), 1, 8 * page);
        assert_ok(err, hal_pages_new(cts.device, 8 * page, &pages, &err));
        assert_ok(err, hal_pages_take(pages, 0, from, 4 * page, 4 * page, &err));
        assert_ok(err, hal_pages_take(pages, 4 * page, from, 0, 4 * page, &err));
        assert_bytes(from, 0, 8 * page, 1);
        assert_bytes(from, 8 * page, 9 * page, 0);
        assert_ok(err, hal_pages_map(pages, page, a, 2 * page, 3 * page, &err));
        assert_ok(err, hal_pages_map(pages, 0, b, 0, 8 * page, &err));
        assert_bytes(a, 0, 2 * page, 0);
        assert_bytes(a, 2 * page, 5 * page, 1);
        memset((char *)hal_buffer_map(a) + 3 * page + 100, 2, 200);
        assert_bytes(a, 3 * page, 3 * page + 100, 1);
        assert_bytes(a, 3 * page + 100, 3 * page + 300, 2);
        assert_bytes(from, 0, 8 * page, 1);
        hal_buffer_unref(from);
        hal_pages_unref(pages);
        assert_bytes(b, 0, 8 * page, 1);
        assert_bytes(b, 8 * page, SIZE, 0);
        from = new_sparse(SIZE);
    }
    hal_buffer_unref(from);
    hal_buffer_unref(a);
    hal_buffer_unref(b);
}

/* There is a bound of parts that are pages, and a buffer that is freed gives its own back. */
static void test_too_many_pages(void **state)
{
    struct error err = {0};
    struct hal_pages *pages;
    struct hal_buffer *from = new_sparse(1 << 20);
    size_t page = hal_buffer_page_bytes(from);
    (void)state;
    size_t bytes = 65536 * page; /* of every second page */
    for (int round = 0; page > 0 && round < 2; round++) {
        struct hal_buffer *many = new_sparse(bytes);
        size_t count = 0;
        assert_ok(err, hal_pages_new(cts.device, page, &pages, &err));
        assert_ok(err, hal_pages_take(pages, 0, from, 0, page, &err));
        while (2 * page * (count + 1) <= bytes &&
               hal_pages_map(pages, 0, many, 2 * page * count, page, &err) == ST_OK) {
            count++;
        }
        assert_true(count > 10000 && count < 30000);
        assert_int_equal(err.code, ST_EXHAUSTED);
        hal_buffer_unref(many);
        hal_pages_unref(pages);
        err = (struct error){0};
    }
    hal_buffer_unref(from);
}

static void test_of_no_bytes(void **state)
{
    (void)state;
    struct hal_buffer *buffer = cts_buffer_new(0);
    assert_int_equal(hal_buffer_size(buffer), 0);
    assert_null(hal_buffer_map(buffer));
    hal_buffer_unref(buffer);
    hal_buffer_unref(NULL);
}

static void test_too_large(void **state)
{
    struct error err;
    struct hal_buffer *buffer;
    (void)state;
    assert_fails(err, hal_buffer_new(cts.device, SIZE_MAX, &buffer, &err), ST_TOO_LARGE, "bytes");
    if (cts.props->is_host) {
        assert_fails(err, hal_buffer_new(cts.device, PTRDIFF_MAX - 4095, &buffer, &err),
                     ST_EXHAUSTED, "no memory");
        const size_t sizes[] = {100000, PTRDIFF_MAX - 4095, PTRDIFF_MAX - 4095};
        struct hal_buffer *buffers[3];
        for (size_t count = 2; count <= 3; count++) {
            assert_fails(err, hal_buffer_new_constants(cts.device, sizes, count, buffers, &err),
                         ST_EXHAUSTED, "no memory");
        }
    }
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* For at most ten seconds. */
static void wait_for_release(atomic_int *released)
{
    for (int i = 0; i < 10000 && atomic_load(released) == 0; i++) {
        nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(atomic_load(released), 1);
}

static void test_import(void **state)
{
    struct error err;
    struct hal_buffer *buffer;
    atomic_int released = 0;
    void *memory = NULL;
    (void)state;
    assert_int_equal(posix_memalign(&memory, 4096, 8192), 0);
    enum status status =
        hal_buffer_import(cts.device, memory, 8192, false, count, &released, &buffer, &err);
    if (status == ST_UNSUPPORTED && !cts.props->is_host) {
        free(memory);
        skip();
    }
    assert_int_equal(status, ST_OK);
    assert_ptr_equal(hal_buffer_map(buffer), memory);
    hal_buffer_ref(buffer);
    hal_buffer_unref(buffer);
    assert_int_equal(released, 0);

    struct hal_command *command = cts_command_new(0);
    const struct hal_binding from = {.buffer = buffer, .length = 4096};
    const struct hal_binding to = {.buffer = buffer, .offset = 4096, .length = 4096};
    ((uint8_t *)memory)[4095] = 0x5a;
    assert_ok(err, hal_command_copy(command, from, to, &err));
    cts_command_end(command);
    hal_buffer_unref(buffer);
    assert_int_equal(released, 0); /* the command buffer holds it */
    cts_run(command, NULL, 0);
    assert_int_equal(((uint8_t *)memory)[8191], 0x5a);
    hal_command_unref(command);
    wait_for_release(&released); /* the submission lets its command buffer go after the signal */
    free(memory);
}

static void test_import_releases_once(void **state)
{
    struct error err;
    struct hal_buffer *buffer;
    atomic_int released = 0;
    _Alignas(4096) static uint8_t memory[4096];
    (void)state;
    if (hal_buffer_import(cts.device, memory, sizeof(memory), true, count, &released, &buffer,
                          &err) != ST_OK) {
        skip();
    }
    hal_buffer_ref(buffer);
    hal_buffer_unref(buffer);
    hal_buffer_unref(buffer);
    assert_int_equal(released, 1);
    assert_fails(
        err, hal_buffer_import(cts.device, memory + 1, 64, true, count, &released, &buffer, &err),
        ST_UNSUPPORTED, "aligned");
    assert_int_equal(released, 1);
}

int cts_buffer(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_and_aligned),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_too_many_pages),
        cmocka_unit_test(test_of_no_bytes),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_import),
        cmocka_unit_test(test_import_releases_once),
    };
    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
