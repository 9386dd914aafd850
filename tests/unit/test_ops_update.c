/* SPDX-License-Identifier: MIT */
/*
 * Operators that read their place from memory, and operators that write some rows of a buffer. A
 * place known to the plan and a place read by kernels give the same bytes. An update of memory with
 * older content writes only the stated rows.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

enum { OUTER = 2, ROWS = 7, WIDTH = 5, SIZE = OUTER * ROWS * WIDTH };

static struct rt_emit call;
static struct error err;
static float base[SIZE], part[SIZE], out[SIZE], other[SIZE];

static void fill(float *x, int n, float first)
{
    for (int i = 0; i < n; i++) {
        x[i] = first + (float)i;
    }
}

static struct rt_tensor tensor(uint8_t rank, const int64_t *dims, float *data)
{
    return call_tensor(&call, DT_F32, rank, dims, data);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void begin_slice(int64_t start, int64_t step, int64_t count, float *to)
{
    call_init(&call, rt_ops_slice, "slice");
    call_arg(&call, tensor(3, INTS(OUTER, ROWS, WIDTH), base));
    call_arg_int(&call, 1);
    call_arg_int(&call, start);
    call_arg_int(&call, start + (count - 1) * step + 1);
    call_arg_int(&call, step);
    call_out(&call, tensor(3, INTS(OUTER, count, WIDTH), to));
}

static void begin_narrow(int64_t start, int64_t count, float *to)
{
    call_init(&call, rt_ops_slice, "narrow");
    call_arg(&call, tensor(3, INTS(OUTER, ROWS, WIDTH), base));
    call_arg_int(&call, -2);
    call_arg_int(&call, start);
    call_arg_int(&call, count);
    call_out(&call, tensor(3, INTS(OUTER, count, WIDTH), to));
}

static void begin_select(int64_t dim, int64_t index, float *to)
{
    const int64_t sizes[] = {OUTER, ROWS, WIDTH};
    call_init(&call, rt_ops_slice, "select");
    call_arg(&call, tensor(3, sizes, base));
    call_arg_int(&call, dim);
    call_arg_int(&call, index);
    call_out(&call, tensor(2, INTS(dim == 0 ? ROWS : OUTER, dim == 2 ? ROWS : WIDTH), to));
}

static void run_reading(void)
{
    call.reads_places = true;
    assert_ok(err, call_run(&call, &err));
}

static void test_places_that_are_read(void **ctx)
{
    (void)ctx;
    fill(base, SIZE, 1);
    for (int64_t start = 0; start < 3; start++) {
        for (int64_t step = 1; step < 3; step++) {
            begin_slice(start, step, 3, out);
            assert_ok(err, call_run(&call, &err));
            begin_slice(start, step, 3, other);
            run_reading();
            assert_memory_equal(out, other, OUTER * 3 * WIDTH * sizeof(float));
            assert_true(out[WIDTH] == base[(start + step) * WIDTH]);
        }
        begin_narrow(start, 4, out);
        assert_ok(err, call_run(&call, &err));
        begin_narrow(start, 4, other);
        run_reading();
        assert_memory_equal(out, other, OUTER * 4 * WIDTH * sizeof(float));
    }
    for (int64_t dim = 0; dim < 3; dim++) {
        size_t bytes = SIZE / (dim == 0 ? OUTER : dim == 1 ? ROWS : WIDTH) * sizeof(float);
        begin_select(dim, 1, out);
        assert_ok(err, call_run(&call, &err));
        begin_select(dim, 1, other);
        run_reading();
        assert_memory_equal(out, other, bytes);
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

enum update { SLICE, SELECT, ROWS_FROM, ROWS_AT, PUT, UPDATES };

/* Writes rows [first, first + count) of dim 1, for all outer indices. */
static void begin_update(enum update which, int64_t first, int64_t count, float *to)
{
    static int64_t places[OUTER * ROWS];
    static const char *const names[] = {"slice_scatter", "select_scatter", "write_rows",
                                        "write_rows_at", "index_put"};
    static const struct rt_op *const families[] = {rt_ops_slice, rt_ops_slice, rt_ops_llm,
                                                   rt_ops_llm, rt_ops_index};
    bool is_cache = which == ROWS_FROM || which == ROWS_AT;
    const int64_t flat[] = {OUTER, ROWS, WIDTH}, cache[] = {OUTER, ROWS, 1, WIDTH};
    const int64_t rows[] = {OUTER, count, WIDTH}, values[] = {OUTER, count, 1, WIDTH};
    const int64_t row[] = {OUTER, WIDTH};

    for (int64_t i = 0; i < OUTER * count; i++) {
        places[i] = first + i % count;
    }
    call_init(&call, families[which], names[which]);
    call_arg(&call, is_cache ? tensor(4, cache, base) : tensor(3, flat, base));
    if (which == PUT) {
        struct rt_tensor at = call_tensor(&call, DT_I64, 1, &count, places);
        call_item(&call, NULL);
        call_item(&call, &at);
        call_arg_items(&call);
    }
    call_arg(&call, is_cache          ? tensor(4, values, part)
                    : which == SELECT ? tensor(2, row, part)
                                      : tensor(3, rows, part));
    if (which == SLICE || which == SELECT) {
        call_arg_int(&call, 1);
    }
    if (which == SLICE || which == SELECT || which == ROWS_FROM) {
        call_arg_int(&call, first);
    } else if (which == ROWS_AT) {
        call_arg(&call, call_tensor(&call, DT_I64, 2, INTS(OUTER, count), places));
    } else {
        call_arg_bool(&call, false);
    }
    if (which == SLICE) {
        call_arg_int(&call, first + count);
        call_arg_int(&call, 1);
    }
    call_out(&call, is_cache ? tensor(4, cache, to) : tensor(3, flat, to));
}

/* The expected row |row|: that of the part, that of argument 0, or the old content. */
static float expected(int outer, int64_t row, int w, int64_t first, int64_t count, int64_t stale,
                      int64_t stale_end)
{
    int64_t at = (outer * ROWS + row) * WIDTH + w;
    if (row >= first && row < first + count) {
        return part[(outer * count + row - first) * WIDTH + w];
    }
    return row >= stale && row < stale_end ? base[at] : -1;
}

static void check_update(enum update which, bool reads, int64_t first, int64_t count, int64_t stale,
                         int64_t stale_end)
{
    for (int i = 0; i < SIZE; i++) {
        out[i] = -1;
    }
    begin_update(which, first, count, out);
    call.reads_places = reads;
    call.has_update = true;
    call.update[RT_UPDATE_STALE] = stale;
    call.update[RT_UPDATE_STALE_END] = stale_end;
    assert_ok(err, call_run(&call, &err));
    assert_int_equal(call.update[RT_UPDATE_WRITTEN], first);
    assert_int_equal(call.update[RT_UPDATE_WRITTEN_END], first + count);
    for (int64_t i = 0; i < SIZE; i++) {
        int outer = (int)(i / (ROWS * WIDTH));
        assert_true(out[i] == expected(outer, i / WIDTH % ROWS, (int)(i % WIDTH), first, count,
                                       stale, stale_end));
    }
}

static void test_updates_write_only_the_stated_rows(void **ctx)
{
    (void)ctx;
    fill(base, SIZE, 1);
    fill(part, SIZE, 1000);
    for (int which = 0; which < UPDATES; which++) {
        for (int64_t first = 0; first < 5; first++) {
            int64_t count = which == SELECT ? 1 : 2;
            for (int64_t stale = 0; stale <= ROWS; stale++) {
                check_update((enum update)which, false, first, count, stale, ROWS);
                check_update((enum update)which, true, first, count, stale / 2, stale);
            }
        }
    }
}

/* Without words the whole output is written. In place only the rows are written. */
static void test_updates_of_all_and_in_place(void **ctx)
{
    (void)ctx;
    fill(part, SIZE, 1000);
    for (int which = 0; which < UPDATES; which++) {
        int64_t count = which == SELECT ? 1 : 2;
        fill(base, SIZE, 1);
        memset(out, 0xff, sizeof(out));
        begin_update((enum update)which, 3, count, out);
        assert_ok(err, call_run(&call, &err));
        begin_update((enum update)which, 3, count, base);
        call.outs[0].binding = call.tensors[0].binding;
        assert_ok(err, call_run(&call, &err));
        assert_memory_equal(out, base, sizeof(out));
        assert_true(out[3 * WIDTH] == 1000 && out[0] == 1 && out[SIZE - 1] == (float)SIZE);
    }
}

/* An update in place whose rows only the kernel knows logs what it overwrites of the rows that it
 * is asked for. The log brings them back. */
static void test_updates_in_place_are_logged(void **ctx)
{
    static const enum update logged[] = {ROWS_AT, PUT};
    (void)ctx;
    fill(part, SIZE, 1000);
    for (size_t k = 0; k < sizeof(logged) / sizeof(logged[0]); k++) {
        struct rt_log like, *log;
        fill(base, SIZE, 1);
        memcpy(other, base, sizeof(base));
        begin_update(logged[k], 3, 2, base);
        call.outs[0].binding = call.tensors[0].binding;
        call.has_update = true;
        assert_ok(err, call_run(&call, &err));
        assert_true(call.asked.tiles > 0);
        size_t bytes = rt_log_describe(&like, call.asked.tiles, (uint64_t)call.asked.entries,
                                       (uint64_t)call.asked.entry_bytes);
        log = calloc(1, bytes);
        assert_non_null(log);
        *log = like;
        fill(base, SIZE, 1);
        begin_update(logged[k], 3, 2, base);
        call.outs[0].binding = call.tensors[0].binding;
        call.has_update = true;
        call.update[RT_UPDATE_LOG] = (int64_t)(uintptr_t)log;
        call.update[RT_UPDATE_LOGGED] = 1;
        call.update[RT_UPDATE_LOGGED_END] = 4; /* row 4 is written, too */
        assert_ok(err, call_run(&call, &err));
        assert_true(base[3 * WIDTH] == 1000);
        for (uint32_t tile = 0; tile < log->tiles; tile++) {
            for (uint64_t i = rt_log_counts(log)[tile]; i-- > 0;) {
                const struct rt_log_entry *entry = rt_log_entry(log, tile, i);
                memcpy((char *)base + entry->offset, entry + 1, entry->bytes);
            }
        }
        for (int i = 0; i < SIZE; i++) {
            assert_true((base[i] == other[i]) == (i / WIDTH % ROWS != 4));
        }
        free(log);
    }
}

/* A place outside of the rows is a fault. The rows that the operator reports as written exist
 * nevertheless. */
static void test_places_outside_of_the_rows(void **state)
{
    static const int64_t wrong[] = {INT64_MAX, INT64_MIN, -1, 4};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        float cache[8] = {0}, row[2] = {1, 2};
        int64_t place = wrong[i];
        call_init(&call, rt_ops_llm, "write_rows_at");
        struct rt_tensor t = call_tensor(&call, DT_F32, 4, INTS(1, 4, 1, 2), cache);
        call_arg(&call, t);
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 1, 1, 2), row));
        call_arg(&call, call_tensor(&call, DT_I64, 2, INTS(1, 1), &place));
        call_out(&call, t);
        call.has_update = true;
        assert_int_equal(call_run(&call, &err), ST_INVALID);
        assert_true(call.update[RT_UPDATE_WRITTEN] >= 0);
        assert_true(call.update[RT_UPDATE_WRITTEN_END] <= 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_that_are_read),
        cmocka_unit_test(test_updates_write_only_the_stated_rows),
        cmocka_unit_test(test_updates_of_all_and_in_place),
        cmocka_unit_test(test_updates_in_place_are_logged),
        cmocka_unit_test(test_places_outside_of_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
