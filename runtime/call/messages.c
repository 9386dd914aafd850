/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/messages.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/update.h"

static void put_rows(const struct rt_plan_update *update, int64_t first, int64_t end,
                     uint8_t *workspace)
{
    int64_t words[RT_UPDATE_WORDS] = {[RT_UPDATE_STALE] = first, [RT_UPDATE_STALE_END] = end};
    memcpy(workspace + update->offset, words, sizeof(words));
}

void rt_messages_put(const struct rt_plan *plan, const int64_t *words, uint8_t *workspace)
{
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    if (plan->word_count > 0) {
        memcpy(workspace + plan->words_offset, words, plan->word_count * sizeof(*words));
    }
    for (uint32_t i = 0; i < plan->update_count; i++) {
        put_rows(&plan->updates[i], 0, plan->results[plan->updates[i].result].rows, workspace);
    }
}

void rt_messages_put_stale(const struct rt_plan *plan, uint32_t result, const struct rt_rows *stale,
                           uint8_t *workspace)
{
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    const struct rt_plan_result *of = &plan->results[result];
    bool is_none = stale->rows == RT_ROWS_NONE;
    if (!is_none && (of->rows != stale->rows || of->row_bytes != stale->row_bytes)) {
        return; /* another method divides the buffer into other rows */
    }
    for (uint32_t i = of->first_update, n = 0; n < of->update_count; n++) {
        put_rows(&plan->updates[i], is_none ? 0 : stale->first, is_none ? 0 : stale->end,
                 workspace);
        i = plan->updates[i].next;
    }
}

void rt_messages_put_log(const struct rt_plan_update *update, const struct rt_log *log,
                         const struct rt_rows *kept, uint8_t *workspace)
{
    int64_t words[RT_UPDATE_WORDS] = {
        [RT_UPDATE_LOG] = (int64_t)(uintptr_t)log,
        [RT_UPDATE_LOGGED] = kept->first,
        [RT_UPDATE_LOGGED_END] = kept->end,
    };
    memcpy(workspace + update->offset, words, sizeof(words));
}

struct rt_rows rt_messages_written(const struct rt_plan *plan, uint32_t result,
                                   const uint8_t *workspace)
{
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    const struct rt_plan_result *of = &plan->results[result];
    struct rt_rows written = {of->rows, of->row_bytes, of->rows, 0};
    if (of->base == RT_NO_BASE) {
        return (struct rt_rows){0};
    }
    for (uint32_t i = of->first_update, n = 0; n < of->update_count; n++) {
        int64_t words[RT_UPDATE_WORDS];
        memcpy(words, workspace + plan->updates[i].offset, sizeof(words));
        i = plan->updates[i].next;
        if (words[RT_UPDATE_WRITTEN] < words[RT_UPDATE_WRITTEN_END]) {
            int64_t first = words[RT_UPDATE_WRITTEN], end = words[RT_UPDATE_WRITTEN_END];
            written.first = first < written.first ? first : written.first;
            written.end = end > written.end ? end : written.end;
        }
    }
    return written;
}
