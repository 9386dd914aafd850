/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/timepoints.h"

#include "base/check.h"

void hal_status_fail(atomic_int *submission_status, enum status status)
{
    int ok = ST_OK;
    if (status != ST_OK) {
        atomic_compare_exchange_strong(submission_status, &ok, (int)status);
    }
}

/* True for the last count: the caller must then pass the submission on. */
static bool count_down(struct hal_timepoints *timepoints)
{
    unsigned before = atomic_fetch_sub_explicit(&timepoints->waits_left, 1, memory_order_acq_rel);
    must(before > 0);
    return before == 1;
}

static void on_wait(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct hal_timepoints *timepoints = ((struct hal_wait *)waiter)->owner;
    OBJ_CHECK(timepoints, HAL_TIMEPOINTS_MAGIC);
    hal_status_fail(timepoints->status, status);
    if (count_down(timepoints)) {
        timepoints->over(timepoints);
    }
}

void hal_timepoints_init(struct hal_timepoints *timepoints, const struct hal_submission *from,
                         atomic_int *status, hal_waits_over_f *over)
{
    must(from->wait_count <= HAL_TIMEPOINTS_MAX && from->signal_count <= HAL_TIMEPOINTS_MAX);
    must(over && atomic_load(status) == ST_OK);
    timepoints->magic = HAL_TIMEPOINTS_MAGIC;
    timepoints->over = over;
    timepoints->status = status;
    timepoints->wait_count = from->wait_count;
    timepoints->signal_count = from->signal_count;
    atomic_init(&timepoints->waits_left, from->wait_count + 1);
    for (uint32_t i = 0; i < from->wait_count; i++) {
        timepoints->waits[i] = (struct hal_wait){
            .waiter = {.value = from->wait[i].value, .fn = on_wait},
            .owner = timepoints,
            .semaphore = hal_semaphore_ref(from->wait[i].semaphore),
        };
    }
    for (uint32_t i = 0; i < from->signal_count; i++) {
        timepoints->signals[i] = from->signal[i];
        hal_semaphore_ref(from->signal[i].semaphore);
    }
}

/* |waits_left| has one count for this function, so no callback passes the submission on before. */
bool hal_timepoints_wait(struct hal_timepoints *timepoints)
{
    OBJ_CHECK(timepoints, HAL_TIMEPOINTS_MAGIC);
    for (uint32_t i = 0; i < timepoints->wait_count; i++) {
        hal_semaphore_on(timepoints->waits[i].semaphore, &timepoints->waits[i].waiter);
    }
    return count_down(timepoints);
}

void hal_timepoints_forget_waits(struct hal_timepoints *timepoints)
{
    OBJ_CHECK(timepoints, HAL_TIMEPOINTS_MAGIC);
    must(timepoints->wait_count == 0 || atomic_load(&timepoints->waits_left) == 0);
    for (uint32_t i = 0; i < timepoints->wait_count; i++) {
        hal_semaphore_unref(timepoints->waits[i].semaphore);
    }
    timepoints->wait_count = 0;
}

void hal_timepoint_give(const struct hal_timepoint *signal, enum status status)
{
    if (status == ST_OK) {
        hal_semaphore_signal(signal->semaphore, signal->value);
    } else {
        hal_semaphore_fail(signal->semaphore, status);
    }
}

void hal_timepoints_give(struct hal_timepoints *timepoints)
{
    OBJ_CHECK(timepoints, HAL_TIMEPOINTS_MAGIC);
    must(timepoints->wait_count == 0 || atomic_load(&timepoints->waits_left) == 0);
    timepoints->magic = 0;
    enum status status = (enum status)atomic_load(timepoints->status);
    for (uint32_t i = 0; i < timepoints->signal_count; i++) {
        hal_timepoint_give(&timepoints->signals[i], status);
        hal_semaphore_unref(timepoints->signals[i].semaphore);
    }
}
