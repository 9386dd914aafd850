/* SPDX-License-Identifier: MIT */
/* Messages between a run of a plan and the host, through the end of the workspace: numbers that the
 * plan does not know (runtime/plan/numbers.h), and which rows of mutable buffers differ. */
#ifndef PTED_RUNTIME_CALL_MESSAGES_H
#define PTED_RUNTIME_CALL_MESSAGES_H

#include <string.h>

#include "runtime/emit/log.h"
#include "runtime/plan/plan.h"
#include "runtime/program/state_cells.h"

/* Call before the run: writes |words| into its |workspace|, and marks all rows of results as
 * different. */
void rt_messages_put(const struct rt_plan *plan, const int64_t *words, uint8_t *workspace);

/* Scalar |result|. */
static inline int64_t rt_messages_number(const struct rt_plan *plan, uint32_t result,
                                         const int64_t *words)
{
    uint32_t word = plan->results[result].word;
    return word == RT_NO_WORD ? plan->results[result].number : words[word];
}

/* Says that the memory of |result| differs from its base only in |stale|. */
void rt_messages_put_stale(const struct rt_plan *plan, uint32_t result, const struct rt_rows *stale,
                           uint8_t *workspace);

/* Returns the rows of |update| that the host knows; |words| are the run's. */
static inline struct rt_rows rt_messages_known(const struct rt_update *update, const int64_t *words)
{
    int64_t first = update->first.is_read ? words[update->first.word] : update->first.known;
    first = first < 0 ? 0 : first > update->rows ? update->rows : first;
    int64_t count = update->count < update->rows - first ? update->count : update->rows - first;
    return (struct rt_rows){update->rows, update->row_bytes, first, first + count};
}

/* Says that the kernel of |update| logs in |log| what it overwrites of rows |kept|. */
void rt_messages_put_log(const struct rt_plan_update *update, const struct rt_log *log,
                         const struct rt_rows *kept, uint8_t *workspace);

/*
 * Call after the run: the rows in which |result| differs from its base; 0 rows if no kernel kept
 * count.
 */
struct rt_rows rt_messages_written(const struct rt_plan *plan, uint32_t result,
                                   const uint8_t *workspace);

#endif
