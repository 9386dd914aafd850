/* SPDX-License-Identifier: MIT */
/* Memory that the host may not see, contents that are final, and which side a dispatch runs on. */
#include "config.h"

#include "tests/hal/cts.h"

#include <stdlib.h>

#define PAGE 4096

/* ---- transient slots ------------------------------------------------------------------------- */

enum { WORDS = 3000 };

static void add_dispatch(struct hal_command *command, const struct hal_kernel *kernel, size_t first,
                         size_t count, uint64_t cost, uint32_t writes)
{
    const struct hal_binding binding = cts_slot(0, first * 4, count * 4);
    const struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {(uint32_t)count, 1, 1},
        .constants = (const uint32_t[]){3, 5},
        .constants_bytes = kernel == &cts_number ? 8 : 0,
        .bindings = &binding,
        .binding_count = 1,
        .writes = writes,
        .cost = cost,
    };
    cts_dispatch(command, &dispatch);
}

/* A copy to where it does not overlap. */
static void add_copy(struct hal_command *command, uint32_t *model, size_t first, size_t count)
{
    struct error err;
    size_t to = first >= count ? first - count : first + count;
    if (to + count <= WORDS) {
        assert_ok(err, hal_command_copy(command, cts_slot(0, first * 4, count * 4),
                                        cts_slot(0, to * 4, count * 4), &err));
        memcpy(model + to, model + first, count * 4);
    }
}

/* One random command on a random range; |model| is what it does. */
static void add_random(struct hal_command *command, uint64_t *random, uint32_t *model)
{
    size_t first = cts_random(random) % WORDS, count = 1 + cts_random(random) % (WORDS - first);
    uint64_t cost = cts_random(random) % 3 ? 0 : 100000000;
    uint32_t writes = cts_random(random) % 2;
    switch (cts_random(random) % 5) {
    case 0:
        add_dispatch(command, &cts_number, first, count, cost, writes);
        for (size_t i = 0; i < count; i++) {
            model[first + i] = (uint32_t)i * 3 + 5;
        }
        break;
    case 1:
        add_dispatch(command, &cts_increment, first, count, cost, writes);
        for (size_t i = 0; i < count; i++) {
            model[first + i]++;
        }
        break;
    case 2:
    case 3:
        add_dispatch(command, &cts_twice, first, count, cost, writes);
        for (size_t i = 0; i < count; i++) {
            model[first + i] *= 2;
        }
        break;
    default:
        add_copy(command, model, first, count);
    }
    cts_barrier(command);
}

/* Whatever runs where, commands on memory that only they touch do what they do one by one. */
static void test_transient_slots(void **state)
{
    struct error err;
    static uint32_t model[WORDS];
    uint64_t random = 99;
    struct hal_pool *pool;
    (void)state;
    assert_ok(err, hal_pool_new(cts.device, 1 << 20, &pool, &err));
    struct hal_buffer *result = cts_buffer_new(sizeof(model));
    for (int turn = 0; turn < 40; turn++) {
        struct hal_buffer *memory;
        struct hal_command *command = cts_command_new(2);
        hal_command_set_transient(command, 0);
        add_dispatch(command, &cts_number, 0, WORDS, 0, 1);
        cts_barrier(command);
        for (uint32_t i = 0; i < WORDS; i++) {
            model[i] = i * 3 + 5;
        }
        for (int i = 0; i < turn; i++) {
            add_random(command, &random, model);
        }
        assert_ok(err, hal_command_copy(command, cts_slot(0, 0, sizeof(model)),
                                        cts_slot(1, 0, sizeof(model)), &err));
        cts_command_end(command);
        assert_ok(err, hal_pool_reserve_transient(pool, sizeof(model), &memory, &err));
        assert_int_equal(hal_buffer_map(memory) != NULL, cts.props->host_visible);
        const struct hal_binding slots[] = {cts_all_of(memory), cts_all_of(result)};
        cts_run(command, slots, 2);
        cts_run(command, slots, 2);
        assert_memory_equal(hal_buffer_map(result), model, sizeof(model));
        hal_buffer_unref(memory);
        hal_command_unref(command);
    }
    hal_buffer_unref(result);
    hal_pool_free(pool);
}

/* ---- many submissions that use transient memory at once -------------------------------------- */

enum { CROWD = 24, CROWD_WORDS = 70000 }; /* more than a quarter of a megabyte: several sizes */

struct member {
    struct hal_command *command;
    struct hal_buffer *memory, *result;
    size_t words;
};

/* The numbers of |member|, made in transient memory, twice incremented, and copied to its result.
 */
static void make_member(struct member *member, struct hal_pool *pool, size_t words)
{
    struct error err;
    *member = (struct member){.words = words};
    assert_ok(err, hal_pool_reserve_transient(pool, words * 4, &member->memory, &err));
    member->result = cts_buffer_new(words * 4);
    member->command = cts_command_new(2);
    hal_command_set_transient(member->command, 0);
    add_dispatch(member->command, &cts_number, 0, words, 1000000, 1);
    cts_barrier(member->command);
    add_dispatch(member->command, &cts_increment, 0, words, 1000000, 1);
    cts_barrier(member->command);
    add_dispatch(member->command, &cts_increment, 0, words, 1000000, 1);
    cts_barrier(member->command);
    assert_ok(err, hal_command_copy(member->command, cts_slot(0, 0, words * 4),
                                    cts_slot(1, 0, words * 4), &err));
    cts_command_end(member->command);
}

static void check_member(struct member *member)
{
    uint32_t *numbers = hal_buffer_map(member->result);
    for (size_t i = 0; i < member->words; i++) {
        assert_int_equal(numbers[i], i * 3 + 5 + 2);
    }
    memset(numbers, 0, member->words * 4);
}

static void run_crowd(struct member *crowd, enum hal_caller caller)
{
    struct hal_semaphore *done[CROWD];
    for (size_t i = 0; i < CROWD; i++) {
        const struct hal_binding slots[] = {cts_all_of(crowd[i].memory),
                                            cts_all_of(crowd[i].result)};
        done[i] = cts_semaphore_new();
        const struct hal_submission submission = {
            .command = crowd[i].command,
            .slots = slots,
            .slot_count = 2,
            .signal = {{done[i], 1}},
            .signal_count = 1,
            .caller = caller,
            .share = (uint32_t)i % 3, /* so that a worker leaves one for another */
        };
        cts_submit(&submission);
        hal_device_trim(cts.device, SIZE_MAX);
    }
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(done[i]);
        check_member(&crowd[i]);
    }
}

/* No two of them use the same bytes, and memory that went back to the system is fit for use. */
static void test_transient_crowd(void **state)
{
    struct error err;
    struct member crowd[CROWD];
    struct hal_pool *pool;
    (void)state;
    assert_ok(err, hal_pool_new(cts.device, (size_t)CROWD * CROWD_WORDS * 8, &pool, &err));
    for (size_t i = 0; i < CROWD; i++) {
        make_member(&crowd[i], pool, i % 4 ? CROWD_WORDS / (i % 4) : 100);
    }
    for (enum hal_caller caller = HAL_CALLER_BUSY; caller <= HAL_CALLER_WAITS; caller++) {
        run_crowd(crowd, caller);
        for (int i = 0; i < 4; i++) {
            hal_device_trim(cts.device, SIZE_MAX);
        }
    }
    for (size_t i = 0; i < CROWD; i++) {
        hal_command_unref(crowd[i].command);
        hal_buffer_unref(crowd[i].memory);
        hal_buffer_unref(crowd[i].result);
    }
    hal_pool_free(pool);
}

/* A submission that keeps its slots leaves in them what it has computed. */
static void test_keeps_slots(void **state)
{
    struct error err;
    struct member member;
    struct hal_pool *pool;
    (void)state;
    if (!cts.props->host_visible) {
        skip();
    }
    assert_ok(err, hal_pool_new(cts.device, 1 << 20, &pool, &err));
    make_member(&member, pool, 1000);
    for (enum hal_caller caller = HAL_CALLER_BUSY; caller <= HAL_CALLER_WAITS; caller++) {
        struct hal_semaphore *done = cts_semaphore_new();
        const struct hal_binding slots[] = {cts_all_of(member.memory), cts_all_of(member.result)};
        const struct hal_submission submission = {
            .command = member.command,
            .slots = slots,
            .slot_count = 2,
            .signal = {{done, 1}},
            .signal_count = 1,
            .caller = caller,
            .keeps_slots = true,
        };
        memset(hal_buffer_map(member.memory), 0xff, member.words * 4);
        cts_submit(&submission);
        assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(done);
        assert_memory_equal(hal_buffer_map(member.memory), hal_buffer_map(member.result),
                            member.words * 4);
        check_member(&member);
    }
    hal_command_unref(member.command);
    hal_buffer_unref(member.memory);
    hal_buffer_unref(member.result);
    hal_pool_free(pool);
}

/* ---- zones ----------------------------------------------------------------------------------- */

static void test_two_rings(void **state)
{
    struct error err;
    struct hal_pool *pool;
    struct hal_buffer *shared, *transient;
    (void)state;
    assert_ok(err, hal_pool_new(cts.device, 4096, &pool, &err));
    assert_ok(err, hal_pool_reserve(pool, 4096, &shared, &err));
    enum status status = hal_pool_reserve_transient(pool, 4096, &transient, &err);
    assert_int_equal(status, cts.props->host_visible ? ST_EXHAUSTED : ST_OK);
    if (status == ST_OK) {
        hal_buffer_unref(transient);
    }
    hal_buffer_unref(shared);
    assert_ok(err, hal_pool_reserve_transient(pool, 4096, &transient, &err));
    hal_buffer_unref(transient);
    hal_pool_free(pool);
}

/* ---- final contents -------------------------------------------------------------------------- */

/* |length| bytes of |from|, which has |bytes| at |offset|, come out right; twice, as from a copy.
 */
static void check_reads(struct hal_buffer *from, const uint8_t *bytes, size_t offset, size_t length)
{
    struct error err;
    struct hal_buffer *to = cts_buffer_new(2 * length);
    const struct hal_binding source = {.buffer = from, .offset = offset, .length = length};
    struct hal_command *command = cts_command_new(0);
    for (size_t i = 0; i < 2; i++) {
        const struct hal_binding target = {
            .buffer = to, .offset = align_up(i * length, 1), .length = length};
        assert_ok(err, hal_command_copy(command, source, target, &err));
    }
    cts_command_end(command);
    cts_run(command, NULL, 0);
    const uint8_t *host = hal_buffer_map(to);
    assert_memory_equal(host, bytes + offset, length);
    assert_memory_equal(host + length, bytes + offset, length);
    hal_command_unref(command);
    hal_buffer_unref(to);
}

static void fill_random(uint8_t *bytes, size_t size)
{
    uint64_t random = 3;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)cts_random(&random);
    }
}

/* More than a staging ring holds, and ranges within it. */
static void test_frozen(void **state)
{
    const size_t size = ((size_t)5 << 20) + 12345;
    (void)state;
    struct hal_buffer *buffer = cts_buffer_new(size);
    fill_random(hal_buffer_map(buffer), size);
    hal_buffer_freeze(buffer);
    check_reads(buffer, hal_buffer_map(buffer), 0, size);
    check_reads(buffer, hal_buffer_map(buffer), 64, 1000);
    check_reads(buffer, hal_buffer_map(buffer), size - 100, 100);
    check_reads(buffer, hal_buffer_map(buffer), 64, 1000);
    hal_buffer_unref(buffer);
}

/* A file's size is no multiple of anything. */
static void test_final_import(void **state)
{
    struct error err;
    struct hal_buffer *buffer;
    uint8_t *memory = aligned_alloc(PAGE, 3 * PAGE);
    (void)state;
    assert_non_null(memory);
    fill_random(memory, 3 * PAGE);
    enum status status = hal_buffer_import_final(cts.device, memory, 2 * PAGE + 77, &buffer, &err);
    if (status == ST_UNSUPPORTED) { /* the caller has to copy then */
        free(memory);
        skip();
    }
    assert_int_equal(status, ST_OK);
    assert_ptr_equal(hal_buffer_map(buffer), memory);
    check_reads(buffer, memory, 0, 2 * PAGE + 77);
    check_reads(buffer, memory, 4, 4);
    hal_buffer_unref(buffer);
    free(memory);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void count_label(void *arg, const char *label, enum hal_placement placement)
{
    uint32_t *counts = arg;
    assert_non_null(label);
    counts[placement]++;
}

static struct hal_command_stats stats_of(const struct hal_kernel *const *kernels, uint64_t cost)
{
    uint32_t listed[HAL_PLACEMENTS] = {0};
    struct hal_command *command = cts_command_new(1);
    hal_command_set_transient(command, 0);
    for (uint32_t i = 0; kernels[i]; i++) {
        add_dispatch(command, kernels[i], 0, WORDS, cost, 1);
        cts_barrier(command);
    }
    cts_command_end(command);
    struct hal_command_stats stats = {0};
    hal_command_add_stats(command, &stats);
    hal_command_list_hosted(command, count_label, listed);
    assert_int_equal(listed[HAL_PLACEMENT_DEVICE], 0);
    assert_int_equal(listed[HAL_PLACEMENT_NO_FORM], stats.dispatches[HAL_PLACEMENT_NO_FORM]);
    assert_int_equal(listed[HAL_PLACEMENT_CHEAPER], stats.dispatches[HAL_PLACEMENT_CHEAPER]);
    hal_command_unref(command);
    return stats;
}

/* Of a device that has the host at its side: it does not bounce for nothing. */
static void test_places(void **state)
{
    static const struct hal_kernel *const ours[] = {&cts_number, &cts_increment, NULL};
    static const struct hal_kernel *const mixed[] = {&cts_number, &cts_twice,     &cts_increment,
                                                     &cts_twice,  &cts_increment, NULL};
    (void)state;
    struct hal_command_stats stats = stats_of(ours, 0);
    assert_int_equal(stats.dispatches[HAL_PLACEMENT_DEVICE], 2);
    assert_int_equal(stats.barriers, 2);
    if (cts.props->is_host) {
        return;
    }
    assert_int_equal(stats.device_stages, 1);
    assert_int_equal(stats.host_stages, 0);
    stats = stats_of(mixed, 1000);
    assert_int_equal(stats.dispatches[HAL_PLACEMENT_NO_FORM], 2);
    assert_int_equal(stats.dispatches[HAL_PLACEMENT_CHEAPER], 3);
    assert_int_equal(stats.device_stages + stats.host_stages, 1);
    stats = stats_of(mixed, 1000000000);
    assert_int_equal(stats.dispatches[HAL_PLACEMENT_DEVICE], 3);
    assert_int_equal(stats.dispatches[HAL_PLACEMENT_NO_FORM], 2);
    assert_int_equal(stats.device_stages, 3);
    assert_int_equal(stats.host_stages, 2);
    assert_int_equal(stats.transfers, cts.props->host_visible ? 0 : 4);
}

int cts_memory(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transient_slots), cmocka_unit_test(test_transient_crowd),
        cmocka_unit_test(test_keeps_slots),     cmocka_unit_test(test_two_rings),
        cmocka_unit_test(test_frozen),          cmocka_unit_test(test_final_import),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
