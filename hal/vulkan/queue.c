/* SPDX-License-Identifier: MIT */
/*
 * Moves submissions through their stages. A submission counts down its waits on the host; the
 * thread that completes the last wait begins the first stage. A GPU stage goes to the device's
 * queue, as a batch of the device's timeline. One thread waits for the oldest batch and then begins
 * the submission's next stage, or signals its completion. A host stage is a submission to the CPU
 * device, and the thread that completes it passes the submission on.
 *
 * Signals run callbacks, which may submit more work, so no lock is held meanwhile. Submissions with
 * nothing to run, for example after a failed wait, are also completed by that thread and not by
 * recursion.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/thread.h"
#include "hal/timepoints.h"
#include "hal/vulkan/inject.h"
#include "hal/vulkan/routine.h"

#define SUBMISSION_MAGIC 0x5b315c5cu

struct submission {
    uint32_t magic;   /* set while it is in flight */
    struct list link; /* in the running or the idle list */
    struct hal_vulkan_device *device;
    struct hal_command *command;      /* ref held */
    struct hal_vulkan_replay *replay; /* NULL: no stage has begun */
    uint32_t stage;                   /* the running one, or the number of stages */
    struct hal_semaphore *host;       /* owned: signalled by host stages; NULL: none yet */
    uint64_t host_value;
    struct hal_semaphore_waiter host_waiter;
    const atomic_bool *cancel;
    struct hal_fault_record *fault;
    struct hal_profile *profile; /* NULL: nothing is timed */
    uint64_t value;              /* of the timeline when its work is done; 0: nothing to wait for */
    atomic_int status;           /* the first failure */
    struct hal_timepoints timepoints;
    uint32_t slot_count;
    struct hal_binding slots[HAL_SLOTS_MAX + 1]; /* holds references, except the last */
    uint64_t addresses[HAL_SLOTS_MAX];
};

static void fail(struct submission *submission, enum status status)
{
    hal_status_fail(&submission->status, status);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void complete(struct submission *submission)
{
    if (submission->replay) {
        hal_vulkan_routine_put(submission->replay);
    }
    for (uint32_t i = 0; i < submission->slot_count; i++) {
        hal_buffer_unref(submission->slots[i].buffer);
    }
    hal_timepoints_forget_waits(&submission->timepoints);
    hal_timepoints_give(&submission->timepoints);
}

static void recycle(struct submission *submission)
{
    struct hal_vulkan_device *device = submission->device;
    hal_command_unref(submission->command);
    submission->magic = 0;
    pthread_mutex_lock(&device->queue_lock);
    must(device->in_flight > 0);
    list_push_front(&device->idle, &submission->link);
    device->completed++;
    if (--device->in_flight == 0) {
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->queue_lock);
}

VkResult hal_vulkan_queue_wait(struct hal_vulkan_device *device, uint64_t value)
{
    if (value == 0) {
        return VK_SUCCESS;
    }
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &device->timeline,
        .pValues = &value,
    };
    VkResult result = device->vkWaitSemaphores(device->handle, &info, UINT64_MAX);
    if (result == VK_SUCCESS) { /* only now: the device must be idle when a test declares it lost */
        result = hal_vulkan_inject(HAL_VULKAN_WAIT);
    }
    if (result != VK_SUCCESS) {
        atomic_store_explicit(&device->base.is_lost, true, memory_order_release);
    }
    return result;
}

/* The oldest submission on the queue; NULL if the thread has to end. */
static struct submission *next_running(struct hal_vulkan_device *device)
{
    struct submission *submission = NULL;
    pthread_mutex_lock(&device->queue_lock);
    while (list_is_empty(&device->running) && !device->stop) {
        pthread_cond_wait(&device->changed, &device->queue_lock);
    }
    if (!list_is_empty(&device->running)) {
        submission = LIST_ENTRY(device->running.next, struct submission, link);
        OBJ_CHECK(submission, SUBMISSION_MAGIC);
        list_remove(&submission->link);
    }
    pthread_mutex_unlock(&device->queue_lock);
    return submission;
}

/* The device has completed the GPU stage that the submission is in. */
static void end_stage(struct submission *submission)
{
    if (submission->profile) {
        fail(submission, hal_vulkan_profile_read(submission->replay, submission->command,
                                                 submission->stage, submission->profile, NULL));
    }
    submission->stage++;
}

static bool begin_stage(struct submission *submission);

static void *retire(void *arg)
{
    struct hal_vulkan_device *device = hal_vulkan_device_of(arg);
    struct submission *submission;
    while ((submission = next_running(device))) {
        if (hal_vulkan_queue_wait(device, submission->value) != VK_SUCCESS) {
            fail(submission, ST_UNAVAILABLE); /* the device is lost */
        } else if (submission->value != 0) {
            end_stage(submission);
        }
        if (!begin_stage(submission)) {
            complete(submission);
            recycle(submission);
        }
    }
    return NULL;
}

/* ---- submission ------------------------------------------------------------------------------ */

/* Call with the lock held: the queue must have the submissions in the order of their values. */
static VkResult put_on_queue(struct hal_vulkan_device *device, VkCommandBuffer commands,
                             uint64_t *out_value)
{
    must(commands); /* a host stage has none */
    uint64_t value = device->submitted + 1;
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &timeline,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &device->timeline,
    };
    if (hal_device_is_lost(&device->base)) {
        return VK_ERROR_DEVICE_LOST;
    }
    VkResult result = hal_vulkan_inject(HAL_VULKAN_SUBMIT);
    if (result == VK_SUCCESS) {
        result = device->vkQueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE);
    }
    if (result == VK_SUCCESS) {
        device->submitted = *out_value = value;
    } else if (result == VK_ERROR_DEVICE_LOST) {
        atomic_store_explicit(&device->base.is_lost, true, memory_order_release);
    }
    return result;
}

VkResult hal_vulkan_queue_put(struct hal_vulkan_device *device, VkCommandBuffer commands,
                              uint64_t *out_value)
{
    pthread_mutex_lock(&device->queue_lock);
    VkResult result = put_on_queue(device, commands, out_value);
    pthread_mutex_unlock(&device->queue_lock);
    return result;
}

/* Passes the submission to the thread, after those on the queue; |value| stays 0 if there is
 * nothing to wait for. */
static void hand_over(struct submission *submission, bool has_work)
{
    struct hal_vulkan_device *device = submission->device;
    pthread_mutex_lock(&device->queue_lock);
    device->completed += submission->stage > 0;
    submission->value = 0;
    VkResult result = VK_SUCCESS;
    if (has_work) {
        result = put_on_queue(device, submission->replay->commands[submission->stage],
                              &submission->value);
    }
    if (result != VK_SUCCESS) {
        fail(submission, hal_vulkan_error(NULL, result, "submitting"));
    }
    list_push_back(&device->running, &submission->link);
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->queue_lock);
}

/* Runs on the thread that completed a host stage; passes the submission on to the other thread. */
static void on_host_stage(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct submission *submission = LIST_ENTRY(waiter, struct submission, host_waiter);
    OBJ_CHECK(submission, SUBMISSION_MAGIC);
    if (status != ST_OK) {
        fail(submission, status);
        hal_semaphore_unref(submission->host); /* a failed semaphore stays failed */
        submission->host = NULL;
    }
    submission->stage++;
    hand_over(submission, false);
}

static enum status run_on_host(struct submission *submission, struct hal_command *command)
{
    if (!submission->host) {
        submission->host_value = 0;
        TRY(hal_semaphore_new(0, &submission->host, NULL));
    }
    /* The host's command buffer has one more slot, for the mirrors. */
    submission->slots[submission->slot_count] = submission->replay->mirrors;
    const struct hal_submission stage = {
        .command = command,
        .slots = submission->slots,
        .slot_count = submission->slot_count + 1,
        .signal = {{submission->host, ++submission->host_value}},
        .signal_count = 1,
        .cancel = submission->cancel,
        .fault = submission->fault,
        .profile = submission->profile,
    };
    TRY(hal_queue_submit(submission->device->host, &stage, NULL));
    submission->host_waiter.value = submission->host_value;
    submission->host_waiter.fn = on_host_stage;
    hal_semaphore_on(submission->host, &submission->host_waiter);
    return ST_OK;
}

static enum status begin(struct submission *submission, const struct hal_vulkan_stage *stage)
{
    if (submission->cancel && atomic_load_explicit(submission->cancel, memory_order_relaxed)) {
        return ST_CANCELLED;
    }
    if (!submission->replay) {
        TRY(hal_vulkan_routine_take(submission->command, submission->addresses,
                                    submission->profile != NULL, &submission->replay, NULL));
    }
    if (stage->host) {
        return run_on_host(submission, stage->host);
    }
    hand_over(submission, true);
    return ST_OK;
}

/* False: no stage is left to run. True: another thread owns the submission now. */
static bool begin_stage(struct submission *submission)
{
    const struct hal_vulkan_stage *stages;
    uint32_t count = hal_vulkan_routine_stages(submission->command, &stages);
    must(submission->stage <= count);
    if (atomic_load(&submission->status) != ST_OK || submission->stage == count) {
        return false;
    }
    enum status status = begin(submission, &stages[submission->stage]);
    fail(submission, status);
    return status == ST_OK;
}

/* All waits are over. A submission with nothing to run also goes to the thread, which signals. */
static void start_stages(struct submission *submission)
{
    if (!begin_stage(submission)) {
        hand_over(submission, false);
    }
}

static void on_waits_over(struct hal_timepoints *timepoints)
{
    struct submission *submission = LIST_ENTRY(timepoints, struct submission, timepoints);
    OBJ_CHECK(submission, SUBMISSION_MAGIC);
    start_stages(submission);
}

struct hal_progress hal_vulkan_queue_progress(struct hal_device *base)
{
    struct hal_vulkan_device *device = hal_vulkan_device_of(base);
    pthread_mutex_lock(&device->queue_lock);
    struct hal_progress progress = {device->in_flight > 0, device->completed};
    pthread_mutex_unlock(&device->queue_lock);
    progress.mark += hal_device_progress(device->host).mark;
    return progress;
}

static struct submission *take_submission(struct hal_vulkan_device *device)
{
    struct submission *submission = NULL;
    pthread_mutex_lock(&device->queue_lock);
    if (list_is_empty(&device->idle)) {
        submission = calloc(1, sizeof(*submission));
    } else {
        submission = LIST_ENTRY(device->idle.next, struct submission, link);
        list_remove(&submission->link);
        must(submission->magic == 0); /* not in flight */
    }
    device->in_flight += submission != NULL;
    pthread_mutex_unlock(&device->queue_lock);
    return submission;
}

static void fill(struct submission *submission, const struct hal_submission *from)
{
    must(from->slot_count <= HAL_SLOTS_MAX);
    submission->magic = SUBMISSION_MAGIC;
    submission->command = hal_command_ref(from->command);
    submission->replay = NULL;
    submission->stage = 0;
    submission->cancel = from->cancel;
    submission->fault = from->fault;
    submission->profile = submission->device->base.props.has_profile ? from->profile : NULL;
    submission->slot_count = from->slot_count;
    atomic_init(&submission->status, ST_OK);
    hal_timepoints_init(&submission->timepoints, from, &submission->status, on_waits_over);
    for (uint32_t i = 0; i < from->slot_count; i++) {
        const struct hal_binding *slot = &from->slots[i];
        submission->slots[i] = *slot;
        submission->slots[i].buffer = slot->buffer ? hal_buffer_ref(slot->buffer) : NULL;
        submission->addresses[i] =
            slot->buffer ? hal_vulkan_address(slot->buffer, slot->offset) : 0;
    }
}

enum status hal_vulkan_queue_submit(struct hal_device *base, const struct hal_submission *from,
                                    struct error *err)
{
    struct hal_vulkan_device *device = hal_vulkan_device_of(base);
    struct submission *submission = take_submission(device);
    if (!submission) {
        return error_no_memory(err, "another submission");
    }
    submission->device = device;
    fill(submission, from);
    if (hal_timepoints_wait(&submission->timepoints)) {
        start_stages(submission);
    }
    return ST_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status hal_vulkan_queue_init(struct hal_vulkan_device *device, struct error *err)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VkResult result = device->vkCreateSemaphore(device->handle, &info, NULL, &device->timeline);
    if (result != VK_SUCCESS) {
        return hal_vulkan_error(err, result, "creating a semaphore");
    }
    list_init(&device->running);
    list_init(&device->idle);
    must(pthread_mutex_init(&device->queue_lock, NULL) == 0);
    must(pthread_cond_init(&device->changed, NULL) == 0);
    if (hal_thread_start(&device->retirer, retire, device) != 0) {
        pthread_cond_destroy(&device->changed);
        pthread_mutex_destroy(&device->queue_lock);
        return error_set(err, ST_EXHAUSTED, "%s: cannot start a thread", device->base.props.name);
    }
    return ST_OK;
}

void hal_vulkan_queue_fini(struct hal_vulkan_device *device)
{
    pthread_mutex_lock(&device->queue_lock);
    while (device->in_flight) {
        pthread_cond_wait(&device->changed, &device->queue_lock);
    }
    device->stop = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->queue_lock);
    must(pthread_join(device->retirer, NULL) == 0);
    must(list_is_empty(&device->running));
    while (!list_is_empty(&device->idle)) {
        struct list *link = device->idle.next;
        list_remove(link);
        hal_semaphore_unref(LIST_ENTRY(link, struct submission, link)->host);
        free(LIST_ENTRY(link, struct submission, link));
    }
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->queue_lock);
}
