/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/turns.h"

#include "base/check.h"
#include "server/daemon/loop/turn_watch.h"

static struct turns *turns_of(void *data)
{
    struct turns *turns;
    OBJ_CAST(turns, data, TURNS_MAGIC);
    return turns;
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct turns *turns = turns_of(prepare->data);
    turns->number++;
    uint64_t ns = turn_watch_end(turns->watch);
    if (ns > 0) {
        histogram_add(&turns->lengths, &histogram_times, ns);
    }
}

bool turns_has_time(struct turns *turns)
{
    OBJ_CHECK(turns, TURNS_MAGIC);
    if (turns->watch->begin_ns == 0) {
        turn_watch_enter(turns->watch, TURN_OTHER);
    }
    return uv_hrtime() - turns->watch->begin_ns < TURNS_NS;
}

static void run_jobs(struct turns *turns)
{
    while (turns->jobs) {
        struct turn_job *job = turns->jobs;
        turns->jobs = job->next;
        if (!turns->jobs) {
            turns->last = &turns->jobs;
        }
        turns->ops->go_on_job(job);
        if (!turns_has_time(turns)) {
            return;
        }
    }
}

static void run_readers(struct turns *turns)
{
    while (!list_is_empty(&turns->readers)) {
        struct turn_reader *reader = LIST_ENTRY(turns->readers.next, struct turn_reader, link);
        list_remove(&reader->link);
        turns->first = reader;
        turns->ops->go_on_reader(reader);
        if (!turns_has_time(turns)) {
            return;
        }
    }
}

/* At least one of each, so that both rows move whatever else the turn has done. */
static void on_idle(uv_idle_t *idle)
{
    struct turns *turns = turns_of(idle->data);
    turn_watch_enter(turns->watch, TURN_COLLECT);
    must(!turns->first); /* only while a reader goes on */
    run_jobs(turns);
    run_readers(turns);
    turns->first = NULL;
    if (!turns->jobs && list_is_empty(&turns->readers)) {
        uv_idle_stop(idle);
    }
}

void turns_init(struct turns *turns, uv_loop_t *uv, struct turn_watch *watch,
                const struct turns_ops *ops)
{
    *turns = (struct turns){.magic = TURNS_MAGIC, .watch = watch, .ops = ops};
    list_init(&turns->readers);
    turns->last = &turns->jobs;
    uv_prepare_init(uv, &turns->prepare);
    uv_idle_init(uv, &turns->idle);
    turns->prepare.data = turns->idle.data = turns;
    uv_prepare_start(&turns->prepare, on_prepare);
}

bool turns_may_begin(struct turns *turns, struct turn_reader *reader, bool may_now)
{
    OBJ_CHECK(turns, TURNS_MAGIC);
    if (may_now && turns->first == reader) {
        turns->first = NULL; /* with one message */
        return true;
    }
    if (may_now && list_is_empty(&turns->readers) && turns_has_time(turns)) {
        return true;
    }
    if (list_is_empty(&reader->link)) {
        list_push_back(&turns->readers, &reader->link);
        uv_idle_start(&turns->idle, on_idle);
    }
    return false;
}

static void put_all(struct turns *turns, struct turn_job *first)
{
    must(*turns->last == NULL); /* the end of the row */
    *turns->last = first;
    for (struct turn_job *job = first; job; job = job->next) {
        turns->last = &job->next;
    }
}

void turns_put(struct turns *turns, struct turn_job *job)
{
    OBJ_CHECK(turns, TURNS_MAGIC);
    job->next = NULL;
    put_all(turns, job);
    uv_idle_start(&turns->idle, on_idle);
}

void turns_add_all(struct turns *turns, struct turn_job *first)
{
    OBJ_CHECK(turns, TURNS_MAGIC);
    put_all(turns, first);
    if (turns_has_time(turns)) {
        run_jobs(turns);
    }
    if (turns->jobs) {
        uv_idle_start(&turns->idle, on_idle);
    }
}

void turns_add(struct turns *turns, struct turn_job *job)
{
    OBJ_CHECK(turns, TURNS_MAGIC);
    job->next = NULL;
    turns_add_all(turns, job);
}

void turns_end(struct turns *turns)
{
    OBJ_CHECK(turns, TURNS_MAGIC);
    while (turns->jobs) {
        run_jobs(turns);
    }
}
