/* SPDX-License-Identifier: MIT */
/*
 * How a trial of a method goes on: rt_batch_prove(), rt_speculation_prove(), and what measures
 * after them. A trial takes as many tries as it needs. A try ends with ST_TIMEOUT when its time is
 * over or when the device is wanted for calls. The next try goes on with what the earlier tries
 * have proven. So the time decides when something is known, and not what.
 */
#ifndef PTED_RUNTIME_CALL_PACE_H
#define PTED_RUNTIME_CALL_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct rt_pace {
    /* Time for one try. It always goes on until it has proven one number of rows more. */
    uint64_t budget_ns;
    /* Rough time of all runs of a trial on one core, by the costs that their plans are recorded
     * with. It bounds the number of rows that are tried, to the same number on each run. 0: none.
     */
    uint64_t work_ns;
    /* Called before each run: may the trial take the device now? It may wait for that. False: the
     * try ends. NULL: yes, always. */
    bool (*may_run)(void *arg);
    void *arg;
};

#endif
