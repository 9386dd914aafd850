/* SPDX-License-Identifier: MIT */
/*
 * Turns submissions into work for the workers, and finished work into signals. A submission counts
 * down the timepoints that it waits for. The thread that counts the last one, in a submit or a
 * signal, hands the submission to the workers. A submission with a failed wait goes to the workers,
 * too, so that a long chain of failures does not recurse deeply.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/device.h"
#include "hal/cpu/submission.h"

#define INLINE_COST_NS 30000 /* cheaper work costs less than a worker's wake-up and answer */
#define SLAB_SUBMISSIONS 32

struct hal_cpu_slab {
    struct hal_cpu_slab *next;
    struct hal_cpu_submission submissions[SLAB_SUBMISSIONS];
};

/* With the lock held, or before another thread knows the device. */
static bool add_slab(struct hal_cpu_device *device)
{
    struct hal_cpu_slab *slab = aligned_alloc(64, sizeof(*slab));
    if (!slab) {
        return false;
    }
    slab->next = device->slabs;
    device->slabs = slab;
    for (unsigned i = 0; i < SLAB_SUBMISSIONS; i++) {
        slab->submissions[i].magic = HAL_CPU_SUBMISSION_FREE_MAGIC;
        list_push_back(&device->free_submissions, &slab->submissions[i].link);
    }
    return true;
}

enum status hal_cpu_queue_init(struct hal_cpu_device *device, struct error *err)
{
    must(pthread_mutex_init(&device->lock, NULL) == 0);
    must(pthread_cond_init(&device->idle, NULL) == 0);
    hal_cpu_callers_init(&device->callers);
    list_init(&device->free_submissions);
    if (!add_slab(device)) {
        hal_cpu_queue_fini(device);
        return error_no_memory(err, "submissions");
    }
    return ST_OK;
}

void hal_cpu_queue_drain(struct hal_cpu_device *device)
{
    pthread_mutex_lock(&device->lock);
    while (device->in_flight) {
        pthread_cond_wait(&device->idle, &device->lock);
    }
    pthread_mutex_unlock(&device->lock);
}

void hal_cpu_queue_fini(struct hal_cpu_device *device)
{
    for (struct hal_cpu_slab *slab = device->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    must(device->in_flight == 0);
    hal_cpu_callers_fini(&device->callers);
    pthread_cond_destroy(&device->idle);
    pthread_mutex_destroy(&device->lock);
}

/* The workspace of |memory| for a submission of |routine|; NULL: it uses what it has brought. */
static uint8_t *take_workspace(const struct hal_cpu_routine *routine, bool keeps_slots,
                               struct hal_cpu_thread_memory *memory)
{
    return routine->workspace_bytes && !keeps_slots
               ? hal_cpu_workspace_take(memory, routine->workspace_bytes)
               : NULL;
}

void hal_cpu_submission_place(struct hal_cpu_submission *submission,
                              struct hal_cpu_thread_memory *memory)
{
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    const struct hal_cpu_routine *routine = submission->routine;
    if (submission->is_placed) {
        return;
    }
    submission->is_placed = true;
    uint8_t *workspace = submission->nothing_to_run
                             ? NULL
                             : take_workspace(routine, submission->keeps_slots, memory);
    if (workspace) {
        submission->slots[routine->workspace_slot] = workspace;
        submission->memory = memory;
    }
}

void hal_cpu_submission_complete(struct hal_cpu_submission *submission)
{
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    if (submission->memory) {
        hal_cpu_workspace_give(submission->memory);
    }
    for (uint32_t i = 0; i < submission->slot_count; i++) {
        hal_buffer_unref(submission->buffers[i]);
    }
    hal_timepoints_forget_waits(&submission->timepoints);
    hal_timepoints_give(&submission->timepoints);
}

void hal_cpu_submission_recycle(struct hal_cpu_submission *submission)
{
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    must(atomic_load(&submission->visitors) == 0 && submission->finished);
    struct hal_cpu_device *device = submission->device;
    hal_command_unref(submission->command);
    submission->magic = HAL_CPU_SUBMISSION_FREE_MAGIC;
    pthread_mutex_lock(&device->lock);
    must(device->in_flight > 0);
    list_push_front(&device->free_submissions, &submission->link);
    device->completed++;
    if (--device->in_flight == 0) {
        pthread_cond_broadcast(&device->idle);
    }
    pthread_mutex_unlock(&device->lock);
}

struct hal_progress hal_cpu_queue_progress(struct hal_device *base)
{
    OBJ_CHECK(base, HAL_DEVICE_MAGIC);
    struct hal_cpu_device *device = hal_cpu_device_of(base);
    pthread_mutex_lock(&device->lock);
    struct hal_progress progress = {device->in_flight > 0, device->completed};
    pthread_mutex_unlock(&device->lock);
    progress.mark += hal_cpu_workers_mark(device->workers);
    return progress;
}

/* The routine that this driver compiled |command| into. */
static const struct hal_cpu_routine *routine_of(const struct hal_command *command)
{
    const struct hal_cpu_routine *routine;
    OBJ_CAST(routine, command->compiled, HAL_CPU_ROUTINE_MAGIC);
    return routine;
}

static struct hal_cpu_submission *take_submission(struct hal_cpu_device *device)
{
    struct hal_cpu_submission *submission = NULL;
    pthread_mutex_lock(&device->lock);
    if (!list_is_empty(&device->free_submissions) || add_slab(device)) {
        struct list *link = device->free_submissions.next;
        list_remove(link);
        submission = LIST_ENTRY(link, struct hal_cpu_submission, link);
        OBJ_CHECK(submission, HAL_CPU_SUBMISSION_FREE_MAGIC);
        submission->magic = HAL_CPU_SUBMISSION_MAGIC;
        device->in_flight++;
    }
    pthread_mutex_unlock(&device->lock);
    return submission;
}

static uint8_t *slot_address(const struct hal_binding *slot)
{
    uint8_t *host = slot->buffer ? slot->buffer->host : NULL;
    return host ? host + slot->offset : NULL;
}

static void fill_slots(struct hal_cpu_submission *submission, const struct hal_submission *from)
{
    must(from->slot_count <= HAL_SLOTS_MAX + 1);
    submission->slot_count = from->slot_count;
    for (uint32_t i = 0; i < from->slot_count; i++) {
        struct hal_buffer *buffer = from->slots[i].buffer;
        submission->buffers[i] = buffer ? hal_buffer_ref(buffer) : NULL;
        submission->slots[i] = slot_address(&from->slots[i]);
    }
}

/* All waits are over. If one failed, there is nothing to run. */
static void settle(struct hal_cpu_submission *submission)
{
    submission->nothing_to_run =
        submission->routine->region_count == 0 || atomic_load(&submission->status) != ST_OK;
}

static void on_waits_over(struct hal_timepoints *timepoints)
{
    struct hal_cpu_submission *submission =
        LIST_ENTRY(timepoints, struct hal_cpu_submission, timepoints);
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    settle(submission);
    hal_cpu_workers_add(submission->device->workers, submission);
}

static bool waits_are_over(const struct hal_submission *submission)
{
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        uint64_t value;
        enum status status = hal_semaphore_query(submission->wait[i].semaphore, &value);
        if (status != ST_OK || value < submission->wait[i].value) {
            return false;
        }
    }
    return true;
}

/*
 * Runs the submission on the caller's thread; the caller holds everything that it refers to. False:
 * there is no memory for the thread.
 */
static bool run_inline(struct hal_cpu_device *device, const struct hal_submission *submission)
{
    const struct hal_cpu_routine *routine = routine_of(submission->command);
    uint8_t *slots[HAL_SLOTS_MAX + 1];
    struct hal_fault_record own_fault = {0};
    struct hal_cpu_run run = {
        .slots = slots,
        .cancel = submission->cancel,
        .fault = submission->fault ? submission->fault : &own_fault,
        .profile = submission->profile,
        .command = submission->command,
    };
    enum status status = ST_OK;
    struct hal_cpu_thread_memory *memory = NULL;
    uint8_t *workspace = NULL;

    /* For a quick call a workspace would cost more than it saves. */
    bool is_quick = submission->caller == HAL_CALLER_QUICK;
    if (routine->needs_scratch || (routine->workspace_bytes && !is_quick)) {
        memory = hal_cpu_callers_take(&device->callers);
    }
    if (routine->needs_scratch && !memory) {
        return false;
    }
    for (uint32_t i = 0; i < submission->slot_count; i++) {
        slots[i] = slot_address(&submission->slots[i]);
    }
    if (memory) {
        run.scratch = memory->scratch;
        workspace = take_workspace(routine, submission->keeps_slots, memory);
    }
    if (workspace) {
        slots[routine->workspace_slot] = workspace;
    }
    for (uint32_t i = 0; i < routine->region_count && status == ST_OK; i++) {
        status = hal_cpu_run_tiles(&routine->regions[i], 0, routine->regions[i].tiles, &run);
    }
    if (workspace) {
        hal_cpu_workspace_give(memory);
    }
    if (memory) {
        hal_cpu_callers_put(&device->callers, memory);
    }
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        hal_timepoint_give(&submission->signal[i], status);
    }
    return true;
}

/* Can the caller run it alone, and is that faster? */
static bool is_for_caller(const struct hal_submission *submission)
{
    const struct hal_cpu_routine *routine = routine_of(submission->command);
    switch (submission->caller) {
    case HAL_CALLER_BUSY:
        return false;
    case HAL_CALLER_QUICK:
        return submission->command->cost <= INLINE_COST_NS && waits_are_over(submission);
    case HAL_CALLER_WAITS:
        return routine->is_for_one && waits_are_over(submission);
    }
    unreachable();
}

/* Nothing is left to wait for: the workers run it, with the caller if the caller only waits. */
static void start_submission(struct hal_cpu_submission *submission, enum hal_caller caller)
{
    struct hal_cpu_device *device = submission->device;
    struct hal_cpu_thread_memory *memory =
        caller == HAL_CALLER_WAITS ? hal_cpu_callers_take(&device->callers) : NULL;
    if (!memory) {
        hal_cpu_workers_add(device->workers, submission);
        return;
    }
    hal_cpu_workers_serve(device->workers, submission, memory);
    hal_cpu_callers_put(&device->callers, memory);
}

enum status hal_cpu_queue_submit(struct hal_device *base, const struct hal_submission *from,
                                 struct error *err)
{
    OBJ_CHECK(base, HAL_DEVICE_MAGIC);
    struct hal_cpu_device *device = hal_cpu_device_of(base);
    if (is_for_caller(from) && run_inline(device, from)) {
        return ST_OK;
    }
    struct hal_cpu_submission *submission = take_submission(device);
    if (!submission) {
        return error_no_memory(err, "another submission");
    }
    submission->device = device;
    submission->share = from->share % HAL_SHARES;
    submission->weight = from->weight ? from->weight : 1;
    submission->command = hal_command_ref(from->command);
    submission->routine = routine_of(from->command);
    submission->cancel = from->cancel;
    submission->profile = from->profile;
    submission->fault = from->fault ? from->fault : &submission->own_fault;
    hal_fault_reset(&submission->own_fault);
    submission->keeps_slots = from->keeps_slots;
    submission->is_placed = false;
    submission->memory = NULL;
    submission->finished = false;
    atomic_init(&submission->is_complete, false);
    atomic_init(&submission->status, ST_OK);
    atomic_init(&submission->visitors, 0);
    fill_slots(submission, from);
    hal_timepoints_init(&submission->timepoints, from, &submission->status, on_waits_over);
    if (hal_timepoints_wait(&submission->timepoints)) {
        settle(submission);
        start_submission(submission, from->caller);
    }
    return ST_OK;
}
