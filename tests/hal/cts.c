/* SPDX-License-Identifier: MIT */
/*
 * cts DEVICE [WORKERS]: 0 when every test passed, 77 when there is no such device here. The linker
 * sends the library's calls of malloc through the counters below.
 */
#include "config.h"

#include "tests/hal/cts.h"

#include <stdio.h>
#include <stdlib.h>

#define SKIP 77

struct cts cts;

static atomic_size_t mallocs;

/* clang-format off */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
/* clang-format on */

void *__wrap_malloc(size_t size)
{
    mallocs++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    mallocs++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    mallocs++;
    return __real_realloc(ptr, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    mallocs++;
    return __real_aligned_alloc(align, size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
    mallocs++;
    return __real_posix_memalign(out, align, size);
}

size_t cts_mallocs(void)
{
    return mallocs;
}

uint64_t cts_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct hal_buffer *cts_buffer_new(size_t size)
{
    struct error err;
    struct hal_buffer *buffer = NULL;
    assert_ok(err, hal_buffer_new(cts.device, size, &buffer, &err));
    return buffer;
}

struct hal_command *cts_command_new(uint32_t slots)
{
    struct error err;
    struct hal_command *command = NULL;
    assert_ok(err, hal_command_new(cts.device, slots, &command, &err));
    return command;
}

void cts_command_end(struct hal_command *command)
{
    struct error err;
    assert_ok(err, hal_command_end(command, &err));
}

void cts_dispatch(struct hal_command *command, const struct hal_dispatch *dispatch)
{
    struct error err;
    assert_ok(err, hal_command_dispatch(command, dispatch, &err));
}

void cts_barrier(struct hal_command *command)
{
    struct error err;
    assert_ok(err, hal_command_barrier(command, &err));
}

struct hal_semaphore *cts_semaphore_new(void)
{
    struct error err;
    struct hal_semaphore *semaphore = NULL;
    assert_ok(err, hal_semaphore_new(0, &semaphore, &err));
    return semaphore;
}

void cts_submit(const struct hal_submission *submission)
{
    struct error err;
    assert_ok(err, hal_queue_submit(cts.device, submission, &err));
}

void cts_run(struct hal_command *command, const struct hal_binding *slots, uint32_t slot_count)
{
    struct hal_semaphore *done = cts_semaphore_new();
    const struct hal_submission submission = {
        .command = command,
        .slots = slots,
        .slot_count = slot_count,
        .signal = {{done, 1}},
        .signal_count = 1,
    };
    cts_submit(&submission);
    assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_OK);
    hal_semaphore_unref(done);
}

struct hal_binding cts_all_of(struct hal_buffer *buffer)
{
    return (struct hal_binding){.buffer = buffer, .length = hal_buffer_size(buffer)};
}

struct hal_binding cts_slot(uint16_t slot, size_t offset, size_t length)
{
    return (struct hal_binding){.slot = slot, .offset = offset, .length = length};
}

int main(int argc, char **argv)
{
    struct error err;
    if (argc < 2) {
        fprintf(stderr, "usage: cts DEVICE [WORKERS]\n");
        return 2;
    }
    cts.name = argv[1];
    cts.options.workers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (hal_device_open(cts.name, &cts.options, &cts.device, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return err.code == ST_NOT_FOUND || err.code == ST_UNSUPPORTED ? SKIP : 1;
    }
    cts.props = hal_device_props(cts.device);
    printf("%s: %s\n", cts.props->name, cts.props->description);
    int failed = cts_device() + cts_buffer() + cts_semaphore() + cts_pool() + cts_command() +
                 cts_queue() + cts_memory() + cts_fault() + cts_profile();
    if (failed) {
        return 1; /* a failed test still holds its objects */
    }
    hal_device_unref(cts.device);
    return 0;
}
