/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite that every HAL device passes. One program, one group of tests a header of
 * hal/; the device comes from the command line. A driver runs through it when the kernels in
 * kernels.c have a form for it.
 */
#ifndef PTED_TESTS_HAL_CTS_H
#define PTED_TESTS_HAL_CTS_H

#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "hal/semaphore.h"

struct cts {
    struct hal_device *device;
    const struct hal_device_props *props;
    const char *name;
    struct hal_device_options options;
};

extern struct cts cts;

/* Each runs its tests and returns how many failed. */
int cts_device(void);
int cts_buffer(void);
int cts_semaphore(void);
int cts_pool(void);
int cts_command(void);
int cts_queue(void);
int cts_memory(void);
int cts_fault(void);
int cts_profile(void);

/* Calls of malloc and its kin from this program and the library in it. */
size_t cts_mallocs(void);

/* The next number of a fixed sequence. */
uint64_t cts_random(uint64_t *state);

/* These stop the test when they fail. */
struct hal_buffer *cts_buffer_new(size_t size);
struct hal_command *cts_command_new(uint32_t slots);
void cts_command_end(struct hal_command *command);
void cts_dispatch(struct hal_command *command, const struct hal_dispatch *dispatch);
void cts_barrier(struct hal_command *command);
struct hal_semaphore *cts_semaphore_new(void);
void cts_submit(const struct hal_submission *submission);
/* Submits |command| with |slots| and waits until it is done. */
void cts_run(struct hal_command *command, const struct hal_binding *slots, uint32_t slot_count);
struct hal_binding cts_all_of(struct hal_buffer *buffer);
struct hal_binding cts_slot(uint16_t slot, size_t offset, size_t length);

/* out[tile] = tile's number * constants[0] + constants[1]; binding 0, u32. */
extern const struct hal_kernel cts_number;
/* out[tile] += 1; binding 0, u32. */
extern const struct hal_kernel cts_increment;
/* out[tile] *= 2; binding 0, u32. Has a form for the CPU alone. */
extern const struct hal_kernel cts_twice;
/* out[0] = a mix of constants[0] and the u64 of all further bindings; u64. */
extern const struct hal_kernel cts_mix;
uint64_t cts_mix_of(uint64_t seed, const uint64_t *values, size_t count);
/* out[tile] = 1 if nobody else wrote into the 4096 bytes of scratch meanwhile; u32. */
extern const struct hal_kernel cts_scratch;
#define CTS_SCRATCH_BYTES 4096
/* Has no form for any device. */
extern const struct hal_kernel cts_formless;

#endif
