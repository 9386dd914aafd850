/* SPDX-License-Identifier: MIT */
/* States of sequences, on the programs of tests/models that have mutable buffers. */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/program/state.h"

#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/list.h"
#include "hal/buffer.h"
#include "hal/cpu/pages.h"
#include "hal/device.h"
#include "hal/pages.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/emit/log.h"
#include "runtime/program/method.h"
#include "runtime/program/program.h"
#include "runtime/program/state_cells.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define POOL_BYTES ((size_t)1 << 20)

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct error err;
};

static void open_world(struct world *w, const char *model)
{
    const struct hal_device_options two = {.workers = 2};
    *w = (struct world){0};
    assert_ok(w->err, hal_device_open("cpu", &two, &w->device, &w->err));
    assert_ok(w->err, hal_pool_new(w->device, POOL_BYTES, &w->pool, &w->err));
    const struct rt_load_options options = {.device = w->device, .poison_workspaces = true};
    w->program = load_model(model, &options);
}

static void close_world(struct world *w)
{
    rt_program_unref(w->program);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
}

/* A call of |method| with |state| (or NULL) and its tensors, ready to submit. */
static struct rt_invocation *prepare(struct world *w, const char *method, struct rt_state *state,
                                     const struct input *inputs, uint32_t count)
{
    struct rt_method *m = rt_program_find_method(w->program, span_str(method));
    assert_non_null(m);
    struct rt_invocation *inv = begin_call(m, w->pool, state, inputs, count);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

static struct input vector(const float *data, int64_t n)
{
    return (struct input){DT_F32, {.rank = 1, .dims = {n}}, data};
}

/* Makes one step of "running". Returns the count, and the first element of the mean in
 * |out_mean|. */
static int64_t step(struct world *w, struct rt_state *state, float x, bool is_cancelled,
                    float *out_mean)
{
    const float data[] = {x, x, x};
    const struct input input = vector(data, 3);
    struct rt_invocation *inv = prepare(w, "forward", state, &input, 1);
    int64_t count = -1;
    enum status status = submit_and_wait(inv, is_cancelled);
    if (status == ST_OK) {
        memcpy(out_mean, rt_invocation_result(inv, 0)->bytes.ptr, sizeof(*out_mean));
        memcpy(&count, rt_invocation_result(inv, 1)->bytes.ptr, sizeof(count));
    } else {
        assert_true(is_cancelled && status == ST_CANCELLED);
    }
    rt_invocation_free(inv);
    return count;
}

static void test_a_call_without_a_state_sees_initial_contents(void **unused)
{
    struct world w;
    float mean;
    (void)unused;
    open_world(&w, "running");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(step(&w, NULL, 8, false, &mean), 1);
        assert_true(mean == 4 * 0.75f + 8 * 0.25f);
    }
    close_world(&w);
}

static void test_states_advance_apart(void **unused)
{
    struct world w;
    struct rt_state *a, *b;
    float mean_a = 4, mean_b = 4, got;
    (void)unused;
    open_world(&w, "running");
    /* An i64 and three floats, both generations. */
    assert_int_equal(rt_program_state_bytes(w.program), 2 * (8 + 12));
    assert_ok(w.err, rt_state_new(w.program, &a, &w.err));
    assert_ok(w.err, rt_state_new(w.program, &b, &w.err));
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(step(&w, a, (float)i, false, &got), i);
        mean_a = mean_a * 0.75f + (float)i * 0.25f;
        assert_true(got == mean_a);
        if (i % 2) {
            assert_int_equal(step(&w, b, -3, false, &got), (i + 1) / 2);
            mean_b = mean_b * 0.75f + -3 * 0.25f;
            assert_true(got == mean_b);
        }
    }
    rt_state_unref(a);
    rt_state_unref(b);
    close_world(&w);
}

/* A cancelled call has run completely or not at all: count and mean belong to one generation. */
static void test_a_cancelled_call_changes_nothing(void **unused)
{
    struct world w;
    struct rt_state *state;
    float mean = 4, got;
    int64_t calls = 0;
    (void)unused;
    open_world(&w, "running");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int i = 0; i < 200; i++) {
        int64_t count = step(&w, state, (float)i, i % 3 == 1, &got);
        if (count >= 0) {
            mean = mean * 0.75f + (float)i * 0.25f;
            assert_int_equal(count, ++calls);
            assert_true(got == mean);
        }
    }
    assert_true(calls >= 133);
    rt_state_unref(state);
    close_world(&w);
}

/* Two calls are prepared before one of them runs. The second reads the writes of the first. */
static void test_prepared_calls_use_the_state_of_their_start(void **unused)
{
    const float data[] = {0, 0, 0};
    const struct input input = vector(data, 3);
    struct rt_state *state;
    struct world w;
    (void)unused;
    open_world(&w, "running");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int64_t round = 0; round < 3; round++) {
        struct rt_invocation *first = prepare(&w, "forward", state, &input, 1);
        struct rt_invocation *second = prepare(&w, "forward", state, &input, 1);
        int64_t count;
        assert_int_equal(submit_and_wait(first, false), ST_OK);
        assert_int_equal(submit_and_wait(second, false), ST_OK);
        memcpy(&count, rt_invocation_result(second, 1)->bytes.ptr, sizeof(count));
        assert_int_equal(count, 2 * round + 2);
        rt_invocation_free(first);
        rt_invocation_free(second);
    }
    rt_state_unref(state);
    close_world(&w);
}

static void enter(struct world *w, struct rt_state *state, int64_t row, float x)
{
    const int64_t rows[] = {row, 3};
    const float data[] = {x, x, x, 0, 0, 0};
    const struct input inputs[] = {{DT_I64, {.rank = 1, .dims = {2}}, rows},
                                   {DT_F32, {.rank = 2, .dims = {2, 3}}, data}};
    struct rt_invocation *inv = prepare(w, "enter", state, inputs, 2);
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    rt_invocation_free(inv);
}

static float total(struct world *w, struct rt_state *state)
{
    const float one = 1;
    const struct input input = {DT_F32, {.rank = 0}, &one};
    struct rt_invocation *inv = prepare(w, "total", state, &input, 1);
    float sum;
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    memcpy(&sum, rt_invocation_result(inv, 0)->bytes.ptr, sizeof(sum));
    rt_invocation_free(inv);
    return sum;
}

static void test_methods_share_a_buffer(void **unused)
{
    struct world w;
    struct rt_state *a, *b;
    (void)unused;
    open_world(&w, "ledger");
    assert_int_equal(rt_program_state_bytes(w.program), 2 * 4 * 3 * sizeof(float));
    assert_ok(w.err, rt_state_new(w.program, &a, &w.err));
    assert_ok(w.err, rt_state_new(w.program, &b, &w.err));
    enter(&w, a, 0, 5);
    enter(&w, a, 1, 7);
    enter(&w, b, 0, 100);
    enter(&w, a, 1, 2);
    assert_true(total(&w, a) == 7);
    assert_true(total(&w, b) == 100);
    assert_true(total(&w, NULL) == 0);
    rt_state_unref(b);
    rt_state_unref(a);
    close_world(&w);
}

/* Makes one call of "tally" with |x| in all rows. Returns its status, the element at |at| and the
 * count. */
static enum status tally(struct world *w, struct rt_state *state, float x, int64_t at,
                         float *out_element, int64_t *out_count)
{
    const bool is_sum = true;
    float rows[12];
    for (int i = 0; i < 12; i++) {
        rows[i] = x;
    }
    const struct input inputs[] = {{DT_F32, {.rank = 2, .dims = {3, 4}}, rows},
                                   {DT_BOOL, {.rank = 0}, &is_sum},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &at}};
    struct rt_invocation *inv = prepare(w, "forward", state, inputs, 3);
    enum status status = submit_and_wait(inv, false);
    if (status == ST_OK) {
        memcpy(out_element, rt_invocation_result(inv, 0)->bytes.ptr, sizeof(*out_element));
        memcpy(out_count, rt_invocation_result(inv, 1)->bytes.ptr, sizeof(*out_count));
    }
    rt_invocation_free(inv);
    return status;
}

/* A loop, a condition, and then an index out of range: the buffers keep their old content. */
static void test_a_call_of_many_steps_fails_whole(void **unused)
{
    struct world w;
    struct rt_state *state;
    float element, want = 0;
    int64_t count;
    (void)unused;
    open_world(&w, "tally");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int64_t i = 1; i <= 4; i++) {
        assert_int_equal(tally(&w, state, 0.5f, 9, &element, &count), ST_INVALID);
        assert_int_equal(tally(&w, state, 0.5f, 2, &element, &count), ST_OK);
        want += 3 * 0.5f * (want + 1);
        assert_true(element == want);
        assert_int_equal(count, i);
    }
    assert_int_equal(tally(&w, NULL, 0.5f, 2, &element, &count), ST_OK);
    assert_true(element == 1.5f && count == 1);
    rt_state_unref(state);
    close_world(&w);
}

/* ---- rows of a cache ------------------------------------------------------------------------- */

enum { CACHES = 2, CACHE_ROWS = 8, CACHE_WIDTH = 3 };

/* The expected content of "scroll". */
struct cache {
    float rows[CACHES][CACHE_ROWS][CACHE_WIDTH];
};

/* Makes a step of "scroll": writes |n| rows of |x| from row |first| on, and returns the sums of the
 * cache's rows. */
static enum status scroll(struct world *w, struct rt_state *state, int64_t first, int64_t n,
                          float x, bool is_cancelled, float sums[CACHES][CACHE_WIDTH])
{
    const float rows[4] = {x, x, x, x};
    const struct input inputs[] = {
        {DT_F32, {.rank = 1, .dims = {n}}, rows},
        {DT_I64, {.rank = 1, .dims = {1}}, &first},
    };
    struct rt_invocation *inv = prepare(w, "forward", state, inputs, 2);
    enum status status = submit_and_wait(inv, is_cancelled);
    if (status == ST_OK) {
        const struct rt_result *result = rt_invocation_result(inv, 0);
        memcpy(sums, result->bytes.ptr, result->bytes.len);
    }
    rt_invocation_free(inv);
    return status;
}

/* The second cache gets twice |x|. To row r the model adds row r of a table: 3r, 3r + 1, 3r + 2. */
static void write_rows(struct cache *cache, int64_t first, int64_t n, float x)
{
    for (int c = 0; c < CACHES; c++) {
        for (int64_t r = first; r < first + n; r++) {
            for (int i = 0; i < CACHE_WIDTH; i++) {
                cache->rows[c][r][i] = x * (float)(c + 1) + (float)(3 * r + i);
            }
        }
    }
}

static void assert_sums(struct cache *cache, float sums[CACHES][CACHE_WIDTH])
{
    for (int c = 0; c < CACHES; c++) {
        for (int i = 0; i < CACHE_WIDTH; i++) {
            float want = 0;
            for (int r = 0; r < CACHE_ROWS; r++) {
                want += cache->rows[c][r][i];
            }
            assert_true(sums[c][i] == want);
        }
    }
}

/* Calls that succeed, fail and are cancelled, on two sequences in turns, compared with a copy on
 * the host. */
static void test_rows_survive_failures_and_cancellation(void **unused)
{
    struct world w;
    struct rt_state *states[2];
    struct cache caches[2] = {0};
    float sums[CACHES][CACHE_WIDTH];
    uint32_t random = 1;
    int successes = 0, failures = 0;
    (void)unused;
    open_world(&w, "scroll");
    assert_ok(w.err, rt_state_new(w.program, &states[0], &w.err));
    assert_ok(w.err, rt_state_new(w.program, &states[1], &w.err));
    for (int i = 0; i < 400; i++) {
        random = random * 1664525 + 1013904223;
        uint32_t which = random >> 31;
        int64_t n = 1 + (random >> 20) % 4, first = (random >> 10) % 8;
        float x = (float)(random >> 5 & 15);
        bool is_cancelled = (random >> 28) % 8 == 0;
        enum status status = scroll(&w, states[which], first, n, x, is_cancelled, sums);
        if (status == ST_OK) {
            write_rows(&caches[which], first, n, x);
            assert_sums(&caches[which], sums);
            successes++;
        } else if (first + n > CACHE_ROWS) {
            assert_true(status == ST_INVALID || is_cancelled);
            failures++;
        } else {
            assert_true(is_cancelled && status == ST_CANCELLED);
        }
    }
    assert_true(successes > 200 && failures > 20);
    rt_state_unref(states[0]);
    rt_state_unref(states[1]);
    close_world(&w);
}

/* Steps that write to different places share a plan. */
static void test_positions_share_a_plan(void **unused)
{
    struct world w;
    struct rt_state *state;
    float sums[CACHES][CACHE_WIDTH];
    (void)unused;
    open_world(&w, "scroll");
    struct rt_method *method = rt_program_default_method(w.program);
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    assert_int_equal(scroll(&w, state, 0, 1, 1, false, sums), ST_OK);
    uint64_t plans = rt_method_plan_stats(method).count;
    for (int64_t at = 1; at < CACHE_ROWS; at++) {
        assert_int_equal(scroll(&w, state, at, 1, 1, false, sums), ST_OK);
    }
    assert_int_equal(rt_method_plan_stats(method).count, plans);
    assert_int_equal(scroll(&w, state, 3, 2, 1, false, sums), ST_OK);
    assert_true(rt_method_plan_stats(method).count > plans); /* another size is another plan */
    rt_state_unref(state);
    close_world(&w);
}

static uint32_t find_cell(const struct rt_state *state, size_t bytes)
{
    uint32_t cell = 0;
    while (state->cells->items[cell].tensor.byte_count != bytes) {
        cell++;
    }
    return cell;
}

/* A step writes its rows where the state has them: there is one copy of the cache, and a mark in a
 * row that no step writes stays in place. */
static void test_a_step_writes_in_place(void **unused)
{
    struct world w;
    struct rt_state *state;
    float sums[CACHES][CACHE_WIDTH];
    const float mark = -77;
    (void)unused;
    open_world(&w, "scroll");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    uint32_t cell = find_cell(state, sizeof(struct cache));
    assert_int_equal(scroll(&w, state, 0, 1, 1, false, sums), ST_OK);
    struct hal_buffer *current = state->current[cell];
    float *row = (float *)hal_buffer_map(current) + 7 * CACHE_WIDTH;
    *row = mark;
    for (int64_t i = 1; i < 4; i++) {
        assert_int_equal(scroll(&w, state, i, 2, 1, false, sums), ST_OK);
        assert_ptr_equal(state->current[cell], current);
        assert_null(state->spare[cell]);
    }
    assert_true(*row == mark);
    assert_true(row[-5 * CACHE_WIDTH] == 1 + 6); /* row 2 */
    rt_state_unref(state);
    close_world(&w);
}

static void log_bytes(struct rt_state *state, uint32_t cell, size_t offset, size_t bytes)
{
    struct error err = {0};
    struct rt_log like;
    size_t all = rt_log_describe(&like, 1, 1, bytes);
    assert_ok(err, rt_state_reserve_log(state, all, &err));
    struct rt_log *log = rt_state_log(state, cell, &like, all);
    rt_log_put(log, 0, (char *)hal_buffer_map(state->current[cell]) + offset, offset, bytes);
}

/* What a call has overwritten comes back, also if it was overwritten twice or with logs in several
 * pieces of memory; rows that nothing had written are zeros again. */
static void test_overwritten_rows_come_back(void **unused)
{
    enum { ROW = CACHE_WIDTH * sizeof(float), ONE = CACHE_ROWS * ROW };
    struct world w;
    struct rt_state *state;
    struct cache before;
    float sums[CACHES][CACHE_WIDTH];
    (void)unused;
    open_world(&w, "scroll");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    uint32_t cell = find_cell(state, sizeof(struct cache));
    assert_int_equal(scroll(&w, state, 2, 3, 1, false, sums), ST_OK);
    for (int round = 0; round < 3; round++) {
        struct hal_buffer *target;
        uint8_t *content = hal_buffer_map(state->current[cell]);
        memcpy(&before, content, sizeof(before));
        rt_state_enter(state);
        assert_ok(w.err, rt_state_open(state, cell, true, &target, &w.err));
        assert_ptr_equal(target, state->current[cell]);
        log_bytes(state, cell, 2 * ROW, 2 * ROW);
        memset(content, 1, 4 * ROW);
        log_bytes(state, cell, 3 * ROW, ROW);
        memset(content + 3 * ROW, 2, ROW);
        log_bytes(state, cell, ONE + 2 * ROW, 3 * ROW);
        memset(content + ONE, 3, ONE);
        rt_state_leave(state, round == 2);
        if (round < 2) {
            assert_memory_equal(content, &before, sizeof(before));
        }
    }
    const uint8_t *content = hal_buffer_map(state->current[cell]);
    assert_true(content[ONE] == 3 && content[2 * ROW] == 1 && content[3 * ROW] == 2);
    rt_state_unref(state);
    close_world(&w);
}

/* Marks row 7, which no step has written, in the memory that holds |state| now. */
static void mark_last_row(struct rt_state *state, uint32_t cell, float mark)
{
    ((float *)hal_buffer_map(state->current[cell]))[7 * CACHE_WIDTH] = mark;
}

static float last_row(const struct rt_state *state, uint32_t cell)
{
    return ((const float *)hal_buffer_map(state->current[cell]))[7 * CACHE_WIDTH];
}

/* New memory is zeros, as the caches are before the first step: only rows that steps have written
 * are copied to it. So the first step of a state that shares the content of another does not copy a
 * mark in a row that no step has written. */
static void test_new_memory_gets_only_written_rows(void **unused)
{
    struct world w;
    struct rt_state *state, *other;
    struct cache want = {0};
    float sums[CACHES][CACHE_WIDTH];
    (void)unused;
    open_world(&w, "scroll");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    uint32_t cell = find_cell(state, sizeof(struct cache));
    assert_true(state->cells->items[cell].begins_zero);
    assert_int_equal(rt_state_touched_bytes(state), 0);
    assert_int_equal(scroll(&w, state, 0, 2, 1, false, sums), ST_OK);
    write_rows(&want, 0, 2, 1);
    size_t touched = rt_state_touched_bytes(state), rows = sizeof(want) / CACHE_ROWS * 2;
    assert_true(touched >= rows && touched < sizeof(want));
    mark_last_row(state, cell, -77);
    assert_ok(w.err, rt_state_new(w.program, &other, &w.err));
    rt_state_share(other, state, RT_STATE_ALL_ROWS);
    for (int64_t i = 2; i < 6; i++) {
        assert_int_equal(scroll(&w, other, i, 1, 3, false, sums), ST_OK);
        write_rows(&want, i, 1, 3);
        assert_memory_equal(hal_buffer_map(other->current[cell]), &want, sizeof(want));
    }
    assert_true(last_row(state, cell) == -77);
    rt_state_unref(other);
    rt_state_unref(state);
    close_world(&w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { NOTE_ROWS = 2048, NOTE_BYTES = 32 * sizeof(float), NOTE_OUTER = 2 };

/* What pted takes for the size of a page here: all multiples of the system's are good for it. */
static size_t page_bytes;

long __real_sysconf(int name);
long __wrap_sysconf(int name);

long __wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE && page_bytes ? (long)page_bytes : __real_sysconf(name);
}

/* A state's account, which gives up to |max| bytes. */
struct purse {
    struct rt_state_account account;
    size_t bytes, max;
};

static enum status charge(const struct rt_state_account *account, size_t bytes, struct error *err)
{
    struct purse *purse =
        LIST_ENTRY((struct rt_state_account *)(uintptr_t)account, struct purse, account);
    if (bytes > purse->max) {
        return error_set(err, ST_EXHAUSTED, "the purse is empty");
    }
    purse->bytes = bytes > purse->bytes ? bytes : purse->bytes;
    return ST_OK;
}

static void settle(const struct rt_state_account *account, size_t bytes)
{
    struct purse *purse =
        LIST_ENTRY((struct rt_state_account *)(uintptr_t)account, struct purse, account);
    assert_true(bytes <= purse->bytes);
    purse->bytes = bytes;
}

/* A call that writes |x| to the beginning of |n| rows of "notebook" from |first| on, by one of its
 * methods. */
static struct rt_invocation *prepare_note(struct world *w, const char *method,
                                          struct rt_state *state, int64_t first, int64_t n, float x)
{
    static float rows[512 * 32];
    static int64_t places[512];
    bool is_put = method[0] == 'p';
    for (int64_t i = 0; i < n; i++) {
        places[i] = first + i;
        rows[32 * i] = x;
    }
    const struct input inputs[] = {
        {DT_F32, {.rank = 2, .dims = {n, 32}}, rows},
        {DT_I64, {.rank = 1, .dims = {is_put ? n : 1}}, places},
    };
    return prepare(w, method, state, inputs, 2);
}

static enum status note(struct world *w, const char *method, struct rt_state *state, int64_t first,
                        int64_t n)
{
    struct rt_invocation *inv = prepare_note(w, method, state, first, n, 1);
    enum status status = submit_and_wait(inv, false);
    rt_invocation_free(inv);
    return status;
}

static size_t pages_of(int64_t rows)
{
    return NOTE_OUTER * align_up((size_t)rows * NOTE_BYTES, page_bytes);
}

/* A state has pages for the rows that calls have written. A call that may not have more fails and
 * changes nothing; what a failed call has taken goes back. */
static void test_a_state_has_pages_for_its_rows(void **unused)
{
    static const char *const methods[] = {"forward", "put"};
    struct world w;
    (void)unused;
    open_world(&w, "notebook");
    assert_int_equal(rt_program_state_bytes_least(w.program), 0);
    assert_int_equal(rt_program_state_bytes(w.program), NOTE_OUTER * NOTE_ROWS * NOTE_BYTES);
    for (int k = 0; k < 2; k++) {
        struct purse purse = {.account = {charge, settle}, .max = SIZE_MAX};
        struct rt_state *state, *part;
        assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
        rt_state_set_account(state, &purse.account);
        for (int64_t at = 0; at < 500; at += 100) {
            assert_int_equal(note(&w, methods[k], state, at, 100), ST_OK);
            size_t bytes = pages_of(at + 100), logs = rt_state_log_bytes(state);
            assert_int_equal(rt_state_bytes(state), bytes + logs);
            assert_int_equal(purse.bytes, bytes + logs);
            assert_true(k == 1 || logs == 0);
        }
        purse.max = purse.bytes;
        assert_int_equal(note(&w, methods[k], state, 500, 512), ST_EXHAUSTED);
        assert_int_equal(rt_state_bytes(state) - rt_state_log_bytes(state), pages_of(500));
        purse.max = SIZE_MAX;
        assert_int_equal(note(&w, methods[k], state, 500, 512), ST_OK);
        assert_int_equal(rt_state_trim(state), pages_of(1012));
        assert_ok(w.err, rt_state_new(w.program, &part, &w.err));
        rt_state_share(part, state, 100);
        assert_int_equal(rt_state_bytes(part), 0); /* the other one has paid for it */
        assert_int_equal(note(&w, "forward", part, 100, 20), ST_OK);
        assert_int_equal(rt_state_bytes(part), pages_of(120));
        rt_state_unref(part);
        assert_ok(w.err, rt_state_new(w.program, &part, &w.err));
        rt_state_share(part, state, 100);
        assert_int_equal(rt_state_trim(part), pages_of(100)); /* it may be kept for longer */
        rt_state_unref(part);
        rt_state_set_account(state, NULL);
        rt_state_unref(state);
    }
    close_world(&w);
}

/* ---- pages that states have in common -------------------------------------------------------- */

static int64_t rows_a_page(void)
{
    return (int64_t)(page_bytes / NOTE_BYTES);
}

/* Fewer pages than four have nothing in common, and of the largest ones "notebook" has no more. */
static void skip_if_pages_are_large(void)
{
    if (page_bytes > (size_t)16 << 10) {
        skip();
    }
}

/* A sequence, and what the host expects in the first number of each of its rows. */
struct notes {
    struct world *w;
    struct rt_state *state;
    float want[NOTE_ROWS];
};

static void open_notes(struct notes *notes, struct world *w, struct notes *from, int64_t rows)
{
    *notes = (struct notes){.w = w};
    assert_ok(w->err, rt_state_new(w->program, &notes->state, &w->err));
    if (from) {
        rt_state_share(notes->state, from->state, rows);
        memcpy(notes->want, from->want, (size_t)(rows < NOTE_ROWS ? rows : NOTE_ROWS) * 4);
    }
}

static void put_notes(struct notes *notes, const char *method, int64_t first, int64_t n, float x)
{
    struct rt_invocation *inv = prepare_note(notes->w, method, notes->state, first, n, x);
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    rt_invocation_free(inv);
    for (int64_t i = first; i < first + n; i++) {
        notes->want[i] = x;
    }
}

static void assert_notes(const struct notes *notes, int64_t rows)
{
    const float *got = hal_buffer_map(notes->state->current[0]);
    for (int64_t i = 0; i < rows; i++) { /* the second block has twice as much */
        assert_true(got[32 * i] == notes->want[i]);
        assert_true(got[32 * (NOTE_ROWS + i)] == 2 * notes->want[i]);
    }
}

static size_t own_pages(const struct notes *notes)
{
    size_t bytes = rt_state_bytes(notes->state) - rt_state_log_bytes(notes->state);
    assert_int_equal(bytes % (NOTE_OUTER * page_bytes), 0);
    return bytes / (NOTE_OUTER * page_bytes);
}

/* Two states have the rows that a third one has written: what one writes, behind them or among
 * them, the others do not see. Each pays for its own pages; the third one still for what it wrote.
 */
static void test_states_have_pages_in_common(void **unused)
{
    static const char *const methods[] = {"forward", "put"};
    struct world w;
    (void)unused;
    skip_if_pages_are_large();
    open_world(&w, "notebook");
    for (int k = 0; k < 2; k++) {
        static struct notes from, a, b, c;
        const int64_t rows = rows_a_page(), whole = 900 / rows, middle = (whole + 1) / 2;
        const int64_t kept = whole * rows + 7; /* the last page is not whole */
        open_notes(&from, &w, NULL, 0);
        put_notes(&from, methods[k], 0, 500, 1);
        put_notes(&from, methods[k], 500, 500, 2);
        assert_int_equal(rt_state_trim(from.state), pages_of(1000));
        assert_int_equal(rt_state_lent_bytes(from.state), 0);
        open_notes(&a, &w, &from, kept);
        open_notes(&b, &w, &from, kept);
        assert_int_equal(own_pages(&a), 1);
        assert_int_equal(own_pages(&b), 1);
        assert_int_equal(rt_state_lent_bytes(from.state), pages_of(whole * rows));
        put_notes(&a, methods[k], kept, 2 * rows, 3);
        put_notes(&b, methods[k], kept, rows, 4);
        assert_int_equal(own_pages(&a), 3);
        assert_int_equal(own_pages(&b), 2);
        put_notes(&b, methods[k], middle * rows + 1, 1, 5); /* its own from there on */
        assert_int_equal(own_pages(&b), whole + 2 - middle);
        assert_notes(&from, 1000);
        assert_notes(&a, kept + 2 * rows);
        assert_notes(&b, kept + rows);
        assert_int_equal(rt_state_trim(from.state), pages_of(1000));
        rt_state_retire(from.state);
        assert_int_equal(rt_state_lent_bytes(from.state), pages_of(whole * rows));
        rt_state_unref(a.state);
        open_notes(&c, &w, &b, RT_STATE_ALL_ROWS); /* has pages of both */
        memcpy(c.want, b.want, sizeof(c.want));
        put_notes(&c, methods[k], kept + rows, 1, 6);
        assert_notes(&c, kept + rows + 1);
        assert_int_equal(own_pages(&c), 1);
        rt_state_unref(b.state);
        assert_int_equal(rt_state_lent_bytes(from.state), pages_of(whole * rows));
        assert_notes(&c, kept + rows + 1);
        rt_state_unref(c.state);
        assert_int_equal(rt_state_lent_bytes(from.state), 0);
        rt_state_unref(from.state);
    }
    close_world(&w);
}

/* ---- larger pages ---------------------------------------------------------------------------- */

/* What a state told its device of rows that have content: of the last block. */
static struct {
    size_t offset, size, old;
    int count;
} compacted;

void __real_hal_buffer_compact(struct hal_buffer *buffer, size_t offset, size_t size, size_t old);
void __wrap_hal_buffer_compact(struct hal_buffer *buffer, size_t offset, size_t size, size_t old);

void __wrap_hal_buffer_compact(struct hal_buffer *buffer, size_t offset, size_t size, size_t old)
{
    __real_hal_buffer_compact(buffer, offset, size, old);
    compacted.offset = offset;
    compacted.size = size;
    compacted.old = old;
    compacted.count++;
}

static void assert_compacted(int64_t first, int64_t end, int64_t old)
{
    assert_int_equal(compacted.count, NOTE_OUTER);
    assert_int_equal(compacted.offset, ((NOTE_OUTER - 1) * NOTE_ROWS + first) * NOTE_BYTES);
    assert_int_equal(compacted.size, (end - first) * NOTE_BYTES);
    assert_int_equal(compacted.old, (old - first) * NOTE_BYTES);
    compacted.count = 0;
}

/* A state tells its device which rows have content, and since when: all behind the pages that it
 * has in common with others. */
static void test_a_state_tells_which_rows_have_content(void **unused)
{
    static struct notes from, other;
    struct world w;
    (void)unused;
    open_world(&w, "notebook");
    compacted.count = 0;
    open_notes(&from, &w, NULL, 0);
    put_notes(&from, "forward", 0, 400, 1);
    assert_compacted(0, 400, 0);
    put_notes(&from, "forward", 400, 1, 1);
    assert_compacted(0, 401, 400);
    int64_t kept = 10 * rows_a_page();
    if (kept < 400) { /* else so few rows are shared as a whole */
        open_notes(&other, &w, &from, kept);
        put_notes(&other, "forward", kept, 3, 2);
        assert_compacted(kept, kept + 3, kept);
        assert_notes(&other, kept + 3);
        rt_state_unref(other.state);
    }
    rt_state_unref(from.state);
    open_notes(&from, &w, NULL, 0);
    put_notes(&from, "forward", 8, 100, 1); /* nobody has written the rows before */
    put_notes(&from, "forward", 108, 1, 1);
    assert_int_equal(compacted.count, 0);
    rt_state_unref(from.state);
    close_world(&w);
}

/* A call that fails has changed nothing in pages that others have, either, and gives back what it
 * has taken behind them. */
static void test_a_failed_call_in_common_pages(void **unused)
{
    static const char *const methods[] = {"forward", "put"};
    static struct notes from, a, b;
    struct world w;
    (void)unused;
    open_world(&w, "notebook");
    open_notes(&from, &w, NULL, 0);
    put_notes(&from, "forward", 0, 400, 1);
    open_notes(&a, &w, &from, RT_STATE_ALL_ROWS);
    open_notes(&b, &w, &from, RT_STATE_ALL_ROWS);
    memcpy(a.want, from.want, sizeof(a.want));
    memcpy(b.want, from.want, sizeof(b.want));
    for (int round = 0; round < 40; round++) {
        int64_t first = round % 2 == 0 ? 100 + round : 390 + round;
        struct rt_invocation *inv =
            prepare_note(&w, methods[round / 2 % 2], a.state, first, 200, 9);
        enum status status = submit_and_wait(inv, round % 4 < 3);
        rt_invocation_free(inv);
        for (int64_t i = first; status == ST_OK && i < first + 200; i++) {
            a.want[i] = 9;
        }
        assert_notes(&a, NOTE_ROWS);
        assert_notes(&b, NOTE_ROWS);
        assert_notes(&from, NOTE_ROWS);
    }
    rt_state_unref(a.state);
    rt_state_unref(from.state);
    assert_notes(&b, NOTE_ROWS);
    rt_state_unref(b.state);
    close_world(&w);
}

/* Each state goes on where the last one ended, as the turns of a chat do. Pages that are on top of
 * each other have an end; then the first ones remain in common. */
static void test_turns_have_pages_of_all_before(void **unused)
{
    enum { TURNS = 20, STEP = 96, FIRST = 320 };
    static struct notes turns[TURNS + 1];
    struct world w;
    size_t bytes = 0;
    (void)unused;
    skip_if_pages_are_large();
    open_world(&w, "notebook");
    open_notes(&turns[0], &w, NULL, 0);
    put_notes(&turns[0], "forward", 0, FIRST, 1);
    bytes = rt_state_trim(turns[0].state);
    for (int i = 1; i <= TURNS; i++) {
        struct notes *turn = &turns[i];
        int64_t at = FIRST + (i - 1) * 2 * STEP;
        open_notes(turn, &w, &turns[i - 1], RT_STATE_ALL_ROWS);
        memcpy(turn->want, turns[i - 1].want, sizeof(turn->want));
        put_notes(turn, "forward", at > 1900 ? 1900 : at, at > 1900 ? 1 : 2 * STEP, (float)(i + 1));
        assert_true(own_pages(turn) * NOTE_OUTER * page_bytes <= pages_of(NOTE_ROWS - FIRST));
        bytes += rt_state_trim(turn->state);
        assert_notes(turn, NOTE_ROWS);
    }
    assert_true(bytes < TURNS * pages_of(NOTE_ROWS) / 3);
    for (int i = 0; i <= TURNS; i++) {
        assert_notes(&turns[i], NOTE_ROWS);
        rt_state_unref(turns[i].state);
    }
    close_world(&w);
}

/* What other chats have in the pages that a cut stack leaves is not content of the next turn: one
 * chat and another begin with the same rows, and pages have the rows of both. */
static void test_a_cut_stack_has_no_rows_of_others(void **unused)
{
    enum { TURNS = 10, STEP = 160, FIRST = 320, LONG = 640 };
    static struct notes from, other, turns[TURNS];
    struct world w;
    (void)unused;
    open_world(&w, "notebook");
    open_notes(&from, &w, NULL, 0);
    put_notes(&from, "forward", 0, FIRST, 1);
    put_notes(&from, "forward", FIRST, LONG - FIRST, 77); /* what the other chat has said */
    (void)rt_state_trim(from.state);
    open_notes(&other, &w, &from, RT_STATE_ALL_ROWS); /* it goes on: all rows become pages */
    for (int i = 0; i < TURNS; i++) {
        int64_t at = FIRST + i * STEP;
        open_notes(&turns[i], &w, i > 0 ? &turns[i - 1] : &from, at);
        put_notes(&turns[i], "forward", at, STEP, (float)(i + 2));
        (void)rt_state_trim(turns[i].state);
        assert_notes(&turns[i], at + STEP);
    }
    assert_notes(&other, LONG);
    for (int i = 0; i < TURNS; i++) {
        assert_notes(&turns[i], FIRST + (i + 1) * STEP);
        rt_state_unref(turns[i].state);
    }
    rt_state_unref(other.state);
    rt_state_unref(from.state);
    close_world(&w);
}

/* A buffer that has all parts of pages that there may be, but |left|. */
static struct hal_buffer *use_parts(struct world *w, size_t left)
{
    struct hal_buffer *from, *many;
    struct hal_pages *pages;
    const size_t page = page_bytes, parts = HAL_CPU_PAGES_PARTS_MAX - left;
    assert_ok(w->err, hal_buffer_new_sparse(w->device, 1 << 20, &from, &w->err));
    assert_ok(w->err, hal_buffer_new_sparse(w->device, 2 * page * parts, &many, &w->err));
    assert_int_equal(hal_buffer_page_bytes(from), page);
    assert_ok(w->err, hal_pages_new(w->device, page, &pages, &w->err));
    assert_ok(w->err, hal_pages_take(pages, 0, from, 0, page, &w->err));
    hal_buffer_unref(from);
    for (size_t i = 0; i < parts; i++) {
        assert_ok(w->err, hal_pages_map(pages, 0, many, 2 * page * i, page, &w->err));
    }
    hal_pages_unref(pages);
    return many;
}

/* Rows that could not move are shared as a whole. Blocks that did move before count, for they take
 * memory; where nothing has moved there are no pages. */
static void test_rows_that_cannot_become_pages(void **unused)
{
    static struct notes from, other;
    struct world w;
    (void)unused;
    skip_if_pages_are_large();
    open_world(&w, "notebook");
    for (size_t left = 0; left < NOTE_OUTER; left++) {
        open_notes(&from, &w, NULL, 0);
        put_notes(&from, "forward", 0, 512, 1);
        size_t bytes = rt_state_trim(from.state);
        struct hal_buffer *many = use_parts(&w, left);
        open_notes(&other, &w, &from, RT_STATE_ALL_ROWS);
        memcpy(other.want, from.want, sizeof(other.want));
        assert_int_equal(from.state->made_bytes, left > 0 ? bytes : 0);
        assert_int_equal(from.state->pages != NULL, left > 0);
        put_notes(&other, "forward", 10, 20, 2);
        assert_notes(&other, NOTE_ROWS);
        assert_notes(&from, NOTE_ROWS);
        hal_buffer_unref(many);
        rt_state_unref(from.state);
        rt_state_unref(other.state);
    }
    close_world(&w);
}

/* One block, with places that only the device knows, some of them wrong. */
static void test_entries_survive_faults(void **unused)
{
    struct world w;
    struct rt_state *state;
    float rows[4] = {0};
    (void)unused;
    open_world(&w, "ledger");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int64_t i = 0; i < 40; i++) {
        const int64_t at[] = {i % 7 == 6 ? 4 : i % 4, i * i % 4};
        const float x = (float)i, data[] = {x, x, x, x + 1, x + 1, x + 1};
        const struct input inputs[] = {{DT_I64, {.rank = 1, .dims = {2}}, at},
                                       {DT_F32, {.rank = 2, .dims = {2, 3}}, data}};
        struct rt_invocation *inv = prepare(&w, "enter", state, inputs, 2);
        assert_int_equal(submit_and_wait(inv, false), at[0] == 4 ? ST_INVALID : ST_OK);
        rt_invocation_free(inv);
        assert_null(state->spare[0]);
        if (at[0] < 4) {
            rows[at[0]] = x;
            rows[at[1]] = x + 1;
        }
        assert_true(total(&w, state) == rows[0] + rows[1] + rows[2] + rows[3]);
    }
    rt_state_unref(state);
    close_world(&w);
}

static void test_a_program_without_buffers(void **unused)
{
    struct world w;
    struct rt_state *state;
    (void)unused;
    open_world(&w, "add");
    assert_int_equal(rt_program_state_bytes(w.program), 0);
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    rt_program_unref(w.program);
    w.program = NULL;
    rt_state_unref(state); /* the state kept the program alive */
    close_world(&w);
}

/* Each goes on by itself from the content that they share, whichever call fails. */
static void test_shared_content(void **unused)
{
    struct world w;
    struct rt_state *from, *a, *b;
    float got;
    (void)unused;
    open_world(&w, "running");
    assert_ok(w.err, rt_state_new(w.program, &from, &w.err));
    assert_ok(w.err, rt_state_new(w.program, &a, &w.err));
    assert_ok(w.err, rt_state_new(w.program, &b, &w.err));
    assert_int_equal(rt_state_trim(from), 0); /* still the program's own content */
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(step(&w, from, 8, false, &got), i);
    }
    assert_int_equal(rt_state_trim(from), 8 + 12);
    float mean = got;
    rt_state_share(a, from, RT_STATE_ALL_ROWS);
    rt_state_share(b, from, RT_STATE_ALL_ROWS);
    (void)step(&w, b, 100, true, &got);
    for (int i = 4; i <= 6; i++) {
        assert_int_equal(step(&w, a, -1, false, &got), i);
    }
    rt_state_unref(b); /* has perhaps had a call */
    assert_ok(w.err, rt_state_new(w.program, &b, &w.err));
    rt_state_share(b, from, RT_STATE_ALL_ROWS);
    rt_state_unref(from);
    assert_int_equal(step(&w, b, 16, false, &got), 4);
    assert_true(got == mean * 0.75f + 16 * 0.25f);
    assert_int_equal(rt_state_trim(a), 8 + 12);
    rt_state_unref(a);
    assert_int_equal(step(&w, b, 16, false, &got), 5);
    rt_state_unref(b);
    close_world(&w);
}

#define VOCAB 448

/* A step of the language model; the logits of the last token go to |out|. */
static void feed(struct world *w, struct rt_state *state, const int64_t *ids, int64_t count,
                 int64_t position, float *out)
{
    const struct input inputs[] = {
        {DT_I64, {.rank = 2, .dims = {1, count}}, ids},
        {DT_I64, {.rank = 1, .dims = {1}}, &position},
    };
    struct rt_invocation *inv = prepare(w, "forward", state, inputs, 2);
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    const struct rt_result *result = rt_invocation_result(inv, 0);
    assert_int_equal(result->bytes.len, count * VOCAB * sizeof(float));
    memcpy(out, result->bytes.ptr + (count - 1) * VOCAB * sizeof(float), VOCAB * sizeof(float));
    rt_invocation_free(inv);
}

/* Rows that a longer sequence has left behind the rows in use change no bit. */
static void test_positions_need_no_later_rows(void **unused)
{
    struct world w;
    struct rt_state *longer, *shared, *fresh;
    static const int64_t ids[16] = {1, 40, 300, 7, 250, 33, 120, 90, 2, 17, 80, 444, 5, 60, 9, 3};
    static float left[VOCAB], right[VOCAB];
    (void)unused;
    open_world(&w, "chat/model");
    assert_true(rt_method_is_positional(rt_program_method(w.program, 0)));
    assert_ok(w.err, rt_state_new(w.program, &longer, &w.err));
    feed(&w, longer, ids, 12, 0, left);
    assert_true(rt_state_wrote(longer, 0, 12));
    assert_false(rt_state_wrote(longer, 0, 11));
    for (int i = 0; i < 4; i++) {
        feed(&w, longer, ids + 12 + i, 1, 12 + i, left);
        assert_true(rt_state_wrote(longer, 12 + i, 13 + i));
    }
    (void)rt_state_trim(longer);
    for (int64_t at = 3; at < 12; at += 4) {
        assert_ok(w.err, rt_state_new(w.program, &shared, &w.err));
        assert_ok(w.err, rt_state_new(w.program, &fresh, &w.err));
        rt_state_share(shared, longer, RT_STATE_ALL_ROWS);
        feed(&w, fresh, ids, 12, 0, right); /* rows of the same bits */
        feed(&w, shared, ids + 4, 3, at, left);
        feed(&w, fresh, ids + 4, 3, at, right);
        assert_memory_equal(left, right, sizeof(left));
        feed(&w, shared, ids + 9, 1, at + 3, left);
        feed(&w, fresh, ids + 9, 1, at + 3, right);
        assert_memory_equal(left, right, sizeof(left));
        rt_state_unref(shared);
        rt_state_unref(fresh);
    }
    rt_state_unref(longer);
    close_world(&w);
    open_world(&w, "llm/model"); /* it reads its position several times */
    assert_true(rt_method_is_positional(rt_program_method(w.program, 0)));
    close_world(&w);
    open_world(&w, "running"); /* a count and a mean */
    assert_false(rt_method_is_positional(rt_program_method(w.program, 0)));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_content),
        cmocka_unit_test(test_positions_need_no_later_rows),
        cmocka_unit_test(test_a_call_without_a_state_sees_initial_contents),
        cmocka_unit_test(test_states_advance_apart),
        cmocka_unit_test(test_a_cancelled_call_changes_nothing),
        cmocka_unit_test(test_prepared_calls_use_the_state_of_their_start),
        cmocka_unit_test(test_methods_share_a_buffer),
        cmocka_unit_test(test_a_call_of_many_steps_fails_whole),
        cmocka_unit_test(test_rows_survive_failures_and_cancellation),
        cmocka_unit_test(test_positions_share_a_plan),
        cmocka_unit_test(test_a_step_writes_in_place),
        cmocka_unit_test(test_overwritten_rows_come_back),
        cmocka_unit_test(test_a_state_has_pages_for_its_rows),
        cmocka_unit_test(test_states_have_pages_in_common),
        cmocka_unit_test(test_a_state_tells_which_rows_have_content),
        cmocka_unit_test(test_a_failed_call_in_common_pages),
        cmocka_unit_test(test_turns_have_pages_of_all_before),
        cmocka_unit_test(test_a_cut_stack_has_no_rows_of_others),
        cmocka_unit_test(test_rows_that_cannot_become_pages),
        cmocka_unit_test(test_new_memory_gets_only_written_rows),
        cmocka_unit_test(test_entries_survive_faults),
        cmocka_unit_test(test_a_program_without_buffers),
    };
    int failed = 0;
    const size_t largest = (size_t)64 << 10; /* of Linux, on aarch64 */
    for (page_bytes = (size_t)sysconf(_SC_PAGESIZE); page_bytes <= largest; page_bytes *= 4) {
        print_message("# pages of %zu bytes\n", page_bytes);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
