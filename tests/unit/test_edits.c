/* SPDX-License-Identifier: MIT */
/* States of calls of several blocks, and files that are not as they should be. */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/program/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/program/method.h"
#include "runtime/program/program.h"
#include "runtime/program/state_cells.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct error err;
};

/* |model| may be NULL. */
static void open_world(struct world *w, const char *model)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    const struct rt_load_options options = {.device = w->device, .poison_workspaces = true};
    w->program = model ? load_model(model, &options) : NULL;
}

static void close_world(struct world *w)
{
    rt_program_unref(w->program);
    close_two_workers(w->device, w->pool);
}

/* A call of |method| with |state| and its tensors, ready to submit. */
static struct rt_invocation *prepare(struct world *w, const char *method, struct rt_state *state,
                                     const struct input *inputs, uint32_t count)
{
    struct rt_method *m = rt_program_find_method(w->program, span_str(method));
    assert_non_null(m);
    struct rt_invocation *inv = begin_call(m, w->pool, state, inputs, count);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

/* ---- rows that several blocks write ---------------------------------------------------------- */

enum { EDIT_ROWS = 8, EDIT_WIDTH = 3 };

/* Makes one call of "edits": |x| to row |at|, 2 |x| to row |next|. It returns the rows twice. */
static enum status edit(struct world *w, struct rt_state *state, int64_t at, int64_t next, float x,
                        float out[EDIT_ROWS][EDIT_WIDTH])
{
    const bool is_sum = true;
    const float row[EDIT_WIDTH] = {x, x, x};
    const struct input inputs[] = {{DT_F32, {.rank = 2, .dims = {1, EDIT_WIDTH}}, row},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &at},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &next},
                                   {DT_BOOL, {.rank = 0}, &is_sum}};
    struct rt_invocation *inv = prepare(w, "forward", state, inputs, 4);
    enum status status = submit_and_wait(inv, false);
    if (status == ST_OK) {
        memcpy(out, rt_invocation_result(inv, 1)->bytes.ptr, EDIT_ROWS * EDIT_WIDTH * sizeof(x));
    }
    rt_invocation_free(inv);
    return status;
}

static void edit_rows(float rows[EDIT_ROWS][EDIT_WIDTH], int64_t at, int64_t next, float x)
{
    for (int i = 0; i < EDIT_WIDTH; i++) {
        rows[at][i] = 2 * x;
        rows[next][i] = 4 * x;
    }
}

/* Writes |x| to row 0 alone, where the state has it. */
static void put_first(struct world *w, struct rt_state *state, float x)
{
    const int64_t at = 0;
    const float row[EDIT_WIDTH] = {x, x, x};
    const struct input inputs[] = {{DT_F32, {.rank = 2, .dims = {1, EDIT_WIDTH}}, row},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &at}};
    struct rt_invocation *inv = prepare(w, "put", state, inputs, 2);
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    rt_invocation_free(inv);
}

/* A block writes a row in place that no call has written before, and a later one writes the same
 * buffer to new memory: both rows are there. */
static void test_a_row_in_place_reaches_new_memory(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, "edits");
    for (int64_t at = 1; at < EDIT_ROWS; at++) {
        float want[EDIT_ROWS][EDIT_WIDTH] = {0}, got[EDIT_ROWS][EDIT_WIDTH];
        struct rt_state *state;
        assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
        put_first(&w, state, 1);
        assert_int_equal(edit(&w, state, at, 0, 3, got), ST_OK);
        edit_rows(want, at, 0, 3);
        assert_memory_equal(got, want, sizeof(want));
        rt_state_unref(state);
    }
    close_world(&w);
}

/* The buffer keeps the rows that index_put_ does not write, so that it needs no second memory. */
static void test_index_put_in_place_writes_rows(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, "edits");
    assert_non_null(rt_program_find_method(w.program, span_str("forward")));
    const struct rt_state_cells *cells = rt_program_state_cells(w.program);
    assert_int_equal(cells->count, 2);
    for (uint32_t i = 0; i < cells->count; i++) {
        assert_true(cells->items[i].is_written);
        assert_false(cells->items[i].is_replaced);
    }
    close_world(&w);
}

/* The same for many calls of one state, one of which fails in its second block. */
static void test_blocks_write_in_place_and_beside(void **unused)
{
    struct world w;
    struct rt_state *state;
    float want[EDIT_ROWS][EDIT_WIDTH] = {0}, got[EDIT_ROWS][EDIT_WIDTH];
    (void)unused;
    open_world(&w, "edits");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int64_t i = 0; i < 40; i++) {
        int64_t at = i * 5 % 8, next = i == 10 ? 9 : i * i % 8;
        enum status status = edit(&w, state, at, next, (float)(i + 1), got);
        assert_int_equal(status, i == 10 ? ST_INVALID : ST_OK);
        if (i != 10) {
            edit_rows(want, at, next, (float)(i + 1));
            assert_memory_equal(got, want, sizeof(want));
        }
    }
    rt_state_unref(state);
    close_world(&w);
}

/* ---- what calls are charged ------------------------------------------------------------------ */

enum { PAGE_WIDTH = 32 };

/* A state's account: the most that it was asked for, and what the last call has left. */
struct purse {
    struct rt_state_account account;
    size_t most, bytes;
};

static struct purse *purse_of(const struct rt_state_account *account)
{
    return LIST_ENTRY((struct rt_state_account *)(uintptr_t)account, struct purse, account);
}

static enum status charge(const struct rt_state_account *account, size_t bytes, struct error *err)
{
    struct purse *purse = purse_of(account);
    (void)err;
    purse->most = bytes > purse->most ? bytes : purse->most;
    return ST_OK;
}

/* No call has more than it was charged for. */
static void settle(const struct rt_state_account *account, size_t bytes)
{
    struct purse *purse = purse_of(account);
    assert_true(bytes <= purse->most);
    purse->bytes = bytes;
}

/* Writes a row of "pages" (begin), or 20 rows in 20 blocks (fill). */
static void turn_pages(struct world *w, const char *method, struct rt_state *state, int64_t at)
{
    const bool is_sum = false;
    const float row[PAGE_WIDTH] = {1};
    const struct input inputs[] = {{DT_F32, {.rank = 4, .dims = {1, 1, 1, PAGE_WIDTH}}, row},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &at},
                                   {DT_BOOL, {.rank = 0}, &is_sum}};
    struct rt_invocation *inv = prepare(w, method, state, inputs, method[0] == 'f' ? 3 : 2);
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    rt_invocation_free(inv);
}

/* Blocks that write rows of one buffer are charged for what they have written together. */
static void test_many_blocks_are_charged_once(void **unused)
{
    struct world w;
    struct rt_state *state;
    struct purse purse = {.account = {charge, settle}};
    (void)unused;
    open_world(&w, "edits");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    size_t least = rt_state_bytes(state), page = (size_t)sysconf(_SC_PAGESIZE);
    rt_state_set_account(state, &purse.account);
    turn_pages(&w, "begin", state, 9);
    for (int64_t at = 0; at < 1000; at += 200) {
        purse.most = 0;
        turn_pages(&w, "fill", state, at);
        assert_true(purse.bytes > least && purse.most <= purse.bytes + page);
    }
    rt_state_set_account(state, NULL);
    rt_state_unref(state);
    close_world(&w);
}

/* A buffer that has all its memory from the beginning: settle() looks at its logs. */
static void test_logs_are_charged(void **unused)
{
    struct world w;
    struct rt_state *state;
    struct purse purse = {.account = {charge, settle}};
    (void)unused;
    open_world(&w, "edits");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    size_t least = rt_state_bytes(state);
    rt_state_set_account(state, &purse.account);
    put_first(&w, state, 1);
    assert_int_equal(purse.bytes, least);
    put_first(&w, state, 2);
    assert_true(purse.bytes > least);
    rt_state_set_account(state, NULL);
    rt_state_unref(state);
    close_world(&w);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes the bytes to a new file |path|, mkstemp()'s template. */
static void write_file(char *path, const char *bytes, size_t len)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    close(fd);
}

static size_t read_model(const char *model, char *bytes, size_t max)
{
    char source[1024];
    const char *top = getenv("top_srcdir");
    snprintf(source, sizeof(source), "%s/tests/models/%s.pte", top ? top : ".", model);
    FILE *file = fopen(source, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, max, file);
    fclose(file);
    assert_true(len < max);
    return len;
}

static void set_times(const char *path, struct timespec time)
{
    const struct timespec times[2] = {time, time};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A call whose file seems to have changed fails when everything has run: the rows are as before. */
static void test_a_changed_file_changes_no_state(void **unused)
{
    static char bytes[1 << 20];
    char path[] = "/tmp/pted-test-state-XXXXXX";
    struct world w;
    struct rt_state *state;
    struct stat st;
    float want[EDIT_ROWS][EDIT_WIDTH] = {0}, got[EDIT_ROWS][EDIT_WIDTH];
    (void)unused;
    open_world(&w, NULL);
    write_file(path, bytes, read_model("edits", bytes, sizeof(bytes)));
    assert_int_equal(stat(path, &st), 0);
    const struct rt_load_options options = {.device = w.device, .poison_workspaces = true};
    assert_ok(w.err, rt_load_program(path, &options, &w.program, &w.err));
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int64_t i = 0; i < 12; i++) {
        int64_t at = i % 8, next = i * i % 8;
        bool is_changed = i % 3 == 2;
        set_times(path, is_changed ? (struct timespec){.tv_sec = 1} : st.st_mtim);
        assert_int_equal(edit(&w, state, at, next, (float)(i + 1), got),
                         is_changed ? ST_UNAVAILABLE : ST_OK);
        if (!is_changed) {
            edit_rows(want, at, next, (float)(i + 1));
            assert_memory_equal(got, want, sizeof(want));
        }
    }
    rt_state_unref(state);
    unlink(path);
    close_world(&w);
}

/* Loads a copy of the model in which |from| has the name |to|, which is as long. */
static void load_renamed(struct world *w, const char *model, const char *from, const char *to)
{
    static char bytes[1 << 20];
    char path[] = "/tmp/pted-test-state-XXXXXX";
    size_t name = strlen(from), len = read_model(model, bytes, sizeof(bytes));
    assert_int_equal(strlen(to), name);
    for (size_t i = 0; i + name <= len; i++) {
        if (memcmp(bytes + i, from, name) == 0) {
            memcpy(bytes + i, to, name);
        }
    }
    write_file(path, bytes, len);
    const struct rt_load_options options = {.device = w->device};
    assert_ok(w->err, rt_load_program(path, &options, &w->program, &w->err));
    unlink(path);
}

/* The file tells them apart by place, and cells go by name. */
static void test_buffers_of_one_name(void **unused)
{
    static const char *const names[] = {"layers.0.w_cache", "layers.0.k_cache"};
    struct world w;
    (void)unused;
    open_world(&w, NULL);
    for (int i = 0; i < 2; i++) {
        load_renamed(&w, "prefill/shared", "layers.0.v_cache", names[i]);
        const struct error *failure = rt_method_failure(rt_program_method(w.program, 0));
        assert_true(i == 0 ? failure == NULL : failure && failure->code == ST_UNSUPPORTED);
        assert_true(i == 0 || strstr(failure->text, "two mutable buffers have the name "
                                                    "'net.layers.0.k_cache'"));
        rt_program_unref(w.program);
        w.program = NULL;
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_in_place_reaches_new_memory),
        cmocka_unit_test(test_index_put_in_place_writes_rows),
        cmocka_unit_test(test_blocks_write_in_place_and_beside),
        cmocka_unit_test(test_a_changed_file_changes_no_state),
        cmocka_unit_test(test_buffers_of_one_name),
        cmocka_unit_test(test_many_blocks_are_charged_once),
        cmocka_unit_test(test_logs_are_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
