/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/infer/work.h"

#include "base/check.h"
#include "server/process/options.h"

static uint64_t limit(const struct work *work, enum work_place place)
{
    const struct params *params = work->params;
    return place == WORK_ON_LOOP     ? params->inline_bytes_max
           : place == WORK_ON_THREAD ? params->light_bytes_max
                                     : UINT64_MAX;
}

enum work_place work_place(const struct work *work, uint64_t known, bool is_long)
{
    must(work->params != NULL);
    uint64_t bytes = known > work->found ? known : work->found;
    if (bytes > limit(work, WORK_ON_THREAD)) {
        return WORK_HEAVY;
    }
    return bytes > limit(work, WORK_ON_LOOP) || is_long ? WORK_ON_THREAD : WORK_ON_LOOP;
}

void work_begin(struct work *work, enum work_place place)
{
    must(place <= WORK_HEAVY);
    work->place = place;
    work->bytes = work->reserved = 0;
}

static enum status refuse(struct error *err)
{
    return error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY));
}

enum status work_add(struct work *work, uint64_t bytes, struct error *err)
{
    must(work->bytes <= limit(work, work->place));
    if (bytes > limit(work, work->place) - work->bytes) {
        work->found = bytes < UINT64_MAX - work->bytes ? work->bytes + bytes : UINT64_MAX;
        return refuse(err);
    }
    work->bytes += bytes;
    return ST_OK;
}

enum status work_leave_loop(const struct work *work, struct error *err)
{
    return work->place == WORK_ON_LOOP ? refuse(err) : ST_OK;
}

uint64_t work_piece_max(const struct work *work, enum work_place place)
{
    return place == WORK_HEAVY ? 0 : work->params->light_bytes_max;
}

void work_move_on(struct work *work)
{
    uint64_t least = work->place == WORK_HEAVY ? 0 : limit(work, work->place) + 1;
    work->found = work->found > least ? work->found : least;
}

void work_reset(struct work *work)
{
    work->found = 0;
}
