/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/queue.h"

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/device_priv.h"
#include "hal/profile.h"

static void check_slot(const struct hal_device *device, const struct hal_slot_need *need,
                       const struct hal_binding *slot)
{
    if (need->length == 0) {
        return;
    }
    OBJ_CHECK(slot->buffer, HAL_BUFFER_MAGIC);
    must(hal_buffer_is_usable(slot->buffer, device));
    must(slot->buffer->host || need->is_transient);
    must(slot->offset % device->props.offset_align == 0);
    must(in_range(slot->offset, slot->length, slot->buffer->size));
    must(slot->length >= need->length);
    must(!need->written || !slot->buffer->read_only);
}

enum status hal_queue_submit(struct hal_device *device, const struct hal_submission *submission,
                             struct error *err)
{
    const struct hal_command *command = submission->command;
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    must(command->ended && command->device == device);
    must(submission->slot_count == command->slot_count);
    must(submission->wait_count <= HAL_TIMEPOINTS_MAX);
    must(submission->signal_count <= HAL_TIMEPOINTS_MAX);
    for (uint32_t i = 0; i < command->slot_count; i++) {
        check_slot(device, &command->slots[i], &submission->slots[i]);
    }
    if (submission->profile && !command->whole) { /* the profile of a stage has kept the whole */
        TRY(hal_profile_keep(submission->profile, submission->command, err));
    }
    hal_device_ref(device); /* a completion inside submit() may drop the caller's reference */
    enum status status = device->ops->submit(device, submission, err);
    hal_device_unref(device);
    return status;
}

enum status hal_queue_run(struct hal_device *device, const struct hal_submission *submission,
                          struct error *err)
{
    struct hal_semaphore *semaphore;
    struct hal_submission own = *submission;
    must(submission->signal_count == 0);
    TRY(hal_semaphore_new(0, &semaphore, err));
    own.signal[0] = (struct hal_timepoint){semaphore, 1};
    own.signal_count = 1;
    enum status status = hal_queue_submit(device, &own, err);
    if (status == ST_OK) {
        status = hal_semaphore_wait(semaphore, 1, UINT64_MAX);
        if (status != ST_OK && (!own.fault || hal_fault_error(own.fault, err) == ST_OK)) {
            error_set(err, status, "%s", status_text(status));
        }
    }
    hal_semaphore_unref(semaphore);
    return status;
}
