/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/resource.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/conf/conf.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/proving.h"
#include "server/daemon/serving/reload.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/serving/trim.h"
#include "server/daemon/serving/waits.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/offload.h"

/* How long a retired model may lie unused. */
#define LOOK_MS 50
/* A file that is to be loaded waits so long for others to become unused, and looks so often. */
#define ROOM_MS 5000
#define ROOM_LOOK_MS 5
#define STOPPING "the daemon is stopping"

static struct changes *changes_of(void *data)
{
    struct changes *changes;
    OBJ_CAST(changes, data, CHANGES_MAGIC);
    return changes;
}

/* ---- models that were replaced --------------------------------------------------------------- */

/* Takes the retired models out that nobody uses, into changes->going. */
static void take_unused(struct changes *changes)
{
    must(!changes->going && changes->retired_count > 0);
    changes->going = calloc(changes->retired_count, sizeof(*changes->going));
    changes->going_count = 0;
    if (!changes->going) {
        return; /* the next look has memory, perhaps */
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < changes->retired_count; i++) {
        struct changes_retired *retired = &changes->retired[i];
        if (refs_is_only(&retired->model->refs)) {
            changes->going[changes->going_count++] = *retired;
        } else {
            changes->retired[kept++] = *retired;
        }
    }
    changes->retired_count = kept;
}

/* A thread: the memory of a large model takes milliseconds to go back. */
static void free_going(uv_work_t *work)
{
    struct changes *changes = changes_of(work->data);
    for (uint32_t i = 0; i < changes->going_count; i++) {
        model_unref(changes->going[i].model);
    }
}

static void end_going(struct changes *changes)
{
    for (uint32_t i = 0; i < changes->going_count; i++) {
        servings_let_go(changes->uses.servings, changes->going[i].serving);
    }
    free(changes->going);
    changes->going = NULL;
    changes->going_count = 0;
}

static void on_timer(uv_timer_t *timer);

/* A look that is due already stays so: changes without a pause would put it off for ever. */
static void watch_retired(struct changes *changes)
{
    bool is_due = uv_is_active((const uv_handle_t *)&changes->timer);
    if (changes->retired_count > 0 && !changes->going && !is_due &&
        !changes->uses.loop->is_closing) {
        uv_timer_start(&changes->timer, on_timer, LOOK_MS, 0);
    }
}

static void begin_next(struct changes *changes);

/* Models have gone, or may have become unused: a change that waits for that tries again. */
static void use_room(struct changes *changes)
{
    if (changes->awaits_room) {
        changes->awaits_room = false;
        begin_next(changes);
    }
}

static void on_going_freed(uv_work_t *work, int uv_status)
{
    struct changes *changes = changes_of(work->data);
    must(uv_status == 0 && changes->going);
    offload_end(changes->uses.loop->offload, OFFLOAD_LONG);
    end_going(changes);
    trim_note_use(changes->uses.trim);
    if (changes->awaits_room && changes->retired_count > 0) {
        uv_timer_start(&changes->timer, on_timer, 0, 0);
        return; /* models that have just been retired go first */
    }
    watch_retired(changes);
    use_room(changes);
}

static void on_timer(uv_timer_t *timer)
{
    struct changes *changes = changes_of(timer->data);
    turn_watch_enter(&changes->uses.loop->watch, TURN_MODELS);
    if (changes->going) {
        return; /* on_going_freed() looks again */
    }
    if (changes->uses.servings->current->sequences) {
        repository_forget_generations(&changes->uses.servings->current->repository,
                                      changes->uses.servings->current->sequences);
    }
    if (changes->retired_count > 0) {
        take_unused(changes);
    }
    if (changes->going_count > 0) {
        changes->going_work.data = changes;
        offload_begin(changes->uses.loop->offload, OFFLOAD_LONG, &changes->going_work, free_going,
                      on_going_freed);
        return;
    }
    end_going(changes);
    watch_retired(changes);
    use_room(changes);
}

void changes_drop_retired(struct changes *changes)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    if (changes->retired_count == 0 || changes->going) {
        return;
    }
    if (changes->uses.servings->current->sequences) {
        repository_forget_generations(&changes->uses.servings->current->repository, NULL);
    }
    take_unused(changes);
    free_going(&(uv_work_t){.data = changes});
    end_going(changes);
}

/* Takes the references over. */
static void retire(struct changes *changes, struct model **models, uint32_t count,
                   struct serving *serving)
{
    bool has_room = ARRAY_ROOM(changes->retired, changes->retired_capacity,
                               (size_t)changes->retired_count + count);
    for (uint32_t i = 0; i < count; i++) {
        if (has_room) {
            servings_hold(changes->uses.servings);
            changes->retired[changes->retired_count++] =
                (struct changes_retired){models[i], serving};
        } else {
            model_unref(models[i]); /* frees it here, or its last call does */
        }
    }
    watch_retired(changes);
}

/* Models were unloaded. */
static void unload(struct changes *changes, struct repository_removed *removed)
{
    retire(changes, removed->models, removed->count, changes->uses.servings->current);
    free(removed->models);
}

/* Counts the models that |update| has taken out of service. */
static void count_unloads(struct changes *changes, const struct update *update)
{
    struct repository_index *index =
        repository_ref_index(&changes->uses.servings->current->repository);
    enum changes_unload why = update->kind == UPDATE_UNLOAD ? CHANGES_ORDERED : CHANGES_GONE;
    for (uint32_t i = 0; i < update->retired_count; i++) {
        const struct model *model = update->retired[i];
        const struct model *twin = repository_index_twin(index, model);
        counter_add(&changes->counts.unloads[why],
                    model->program && (!twin || !model_is_ready(twin)));
    }
    repository_unref_index(index);
}

/* ---- models that nobody needs ---------------------------------------------------------------- */

/* The models change or will do so soon: a later look finds them as they are then. */
#define IDLE_PAUSE_NS 100000000u

/* Tells the operator of them, and counts those that went sooner or later by a request's word. */
static uint32_t report_idle(struct changes *changes, const struct repository_removed *removed)
{
    uint32_t asked_count = 0;
    for (uint32_t i = 0; i < removed->count; i++) {
        const struct model *model = removed->models[i];
        bool is_asked = model->origin->keep.is_asked;
        asked_count += is_asked;
        if (log_gate_admits(&changes->uses.loop->log, LOG_KIND_MODELS, SHARE_NOBODY)) {
            log_line(LOG_INFO, "model %s version %u: unloaded, it was idle%s", model->name,
                     model->version, is_asked ? " (keep_alive)" : "");
        }
    }
    return asked_count;
}

static uint64_t look_for_idle(struct changes *changes, uint64_t now_ns)
{
    struct serving *serving = changes->uses.servings->current;
    struct repository_removed removed;
    struct error err;
    uint64_t next_ns;
    if (changes->current || changes->awaits_room || changes->keeps_idle ||
        changes->uses.loop->is_starting || changes->uses.waits->told_count > 0) {
        return now_ns + IDLE_PAUSE_NS;
    }
    if (!serving->sequences || changes->uses.loop->is_draining) {
        return ALARM_NEVER;
    }
    if (repository_unload_idle(&serving->repository, serving->sequences, now_ns, &removed, &next_ns,
                               &err) != ST_OK) {
        log_line(LOG_ERROR, "idle models: %s", err.text);
        return now_ns + IDLE_PAUSE_NS;
    }
    if (removed.count > 0) {
        uint32_t asked_count = report_idle(changes, &removed);
        counter_add(&changes->counts.unloads[CHANGES_ASKED], asked_count);
        counter_add(&changes->counts.unloads[CHANGES_IDLE], removed.count - asked_count);
        unload(changes, &removed);
    }
    return next_ns;
}

uint64_t changes_unload_idle(struct changes *changes, uint64_t now_ns)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    if (now_ns >= changes->idle_due_ns) {
        changes->idle_due_ns = look_for_idle(changes, now_ns);
    }
    return changes->idle_due_ns;
}

void changes_watch_idle(struct changes *changes, uint64_t due_ns)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    if (due_ns < changes->idle_due_ns) {
        changes->idle_due_ns = due_ns;
        alarm_set(changes->uses.loop->alarm, due_ns);
    }
}

/* ---- one change after the other -------------------------------------------------------------- */

static struct change *new_change(void)
{
    struct change *change = calloc(1, sizeof(*change));
    if (change) {
        list_init(&change->link);
        list_init(&change->waiters);
    }
    return change;
}

static void free_change(struct changes *changes, struct change *change)
{
    if (change->is_load) {
        share_give(&changes->loads, change->client, 1);
    }
    update_fini(&change->update);
    list_remove(&change->link);
    conf_free(change->config);
    free(change);
}

static void append(struct changes *changes, struct change *change)
{
    list_push_back(&changes->waiting, &change->link);
    changes->waiting_count++;
    begin_next(changes);
}

static const char *verb_of(enum update_kind kind)
{
    return kind == UPDATE_UNLOAD ? "unload" : "load";
}

/* Tells the operator of the change, whoever asked for it. */
static void report(struct changes *changes, const struct change *change)
{
    const struct update *update = &change->update;
    struct repository *repository = &changes->uses.servings->current->repository;
    if (change->status != ST_OK && update->kind == UPDATE_SCAN) {
        log_line(LOG_ERROR, "looking for changed models: %s; nothing has changed",
                 change->err.text);
    } else if (change->status != ST_OK) {
        log_line(LOG_WARNING, "%s of model '%s': %s; nothing has changed", verb_of(update->kind),
                 update->name, change->err.text);
    } else {
        uint32_t ready = repository_ready_count(repository), count = repository_count(repository);
        log_line(LOG_NOTICE,
                 "model files: %u loaded, %u failed, %u gone, %u unchanged; serving %u of %u "
                 "models",
                 update->loaded_count, update->failed_count, update->gone_count, update->kept_count,
                 ready, count);
        notify_send(changes->uses.notify, "STATUS=serving %u of %u models", ready, count);
    }
}

/* A call has had a file loaded. Clients can do that often. */
static void report_load(struct changes *changes, const struct change *change)
{
    if (!log_gate_admits(&changes->uses.loop->log, LOG_KIND_MODELS, SHARE_NOBODY)) {
        return;
    }
    if (change->status == ST_OK) {
        log_line(LOG_INFO, "model %s: loaded for a call", change->update.name);
    } else {
        log_line(LOG_WARNING, "%s", change->err.text);
    }
}

static bool has_effect(const struct update *update)
{
    return update->kind != UPDATE_SCAN || update->loaded_count > 0 || update->gone_count > 0 ||
           update->failed_count > 0 || update->refusal_count > 0 || update->retries_failed;
}

static void publish(struct changes *changes, struct change *change)
{
    struct update *update = &change->update;
    struct serving *serving = changes->uses.servings->current;
    if (change->status == ST_OK && has_effect(update)) {
        change->status = update_publish(update, serving->sequences, &change->err);
    }
    if (change->status == ST_OK) {
        count_unloads(changes, update);
        retire(changes, update->retired, update->retired_count, serving);
        update->retired_count = 0;
        proving_begin(changes->uses.proving);
        changes_watch_idle(changes, uv_hrtime());
    }
    if (update->kind == UPDATE_START) {
        changes->uses.ops->end_start(changes->uses.owner, change->status, &change->err);
        if (change->status != ST_OK) { /* which clients need not know */
            change->status = error_set(&change->err, ST_UNAVAILABLE, STOPPING);
        }
        return;
    }
    if (change->is_reload && change->status == ST_OK) {
        update_fini(update); /* it borrows from the settings that are replaced */
        reload_adopt(changes->uses.reload, change->config);
        change->config = NULL;
    } else if (change->is_reload) {
        reload_refuse(changes->uses.reload, NULL);
    }
    counter_add(change->status == ST_OK ? &changes->counts.made : &changes->counts.refused, 1);
    if (update->kind == UPDATE_NEED) {
        report_load(changes, change);
    } else if (change->status != ST_OK || has_effect(update)) {
        report(changes, change);
    }
}

static void tell_waiters(struct changes *changes, struct change *change, enum status status,
                         const struct error *err)
{
    while (!list_is_empty(&change->waiters)) {
        struct waiter *waiter = LIST_ENTRY(change->waiters.next, struct waiter, change_link);
        changes_forget(changes, waiter);
        waiter->done(waiter, status, err);
    }
}

/* Tells those that wait, and is done with the change. */
static void finish(struct changes *changes, struct change *change)
{
    tell_waiters(changes, change, change->status, &change->err);
    free_change(changes, change);
}

static void prepare(uv_work_t *work)
{
    struct change *change = changes_of(work->data)->current;
    change->status = update_prepare(&change->update, &change->err);
}

/* The device was lost: models that were loaded for it are of no use. */
static void begin_again(struct changes *changes, struct change *change)
{
    const struct update update = {
        .kind = change->update.kind,
        .with_dependents = change->update.with_dependents,
        .retries_failed = change->update.retries_failed,
    };
    char name[sizeof(update.name)];
    snprintf(name, sizeof(name), "%s", change->update.name);
    update_fini(&change->update);
    change->update = update;
    snprintf(change->update.name, sizeof(name), "%s", name);
    list_push_front(&changes->waiting, &change->link);
    changes->waiting_count++;
}

/*
 * The limit of memory for models lacks some bytes: lists files that nobody uses. False: there are
 * none for now, and the change has waited long enough for them.
 */
static bool make_room(struct changes *changes, struct change *change)
{
    struct serving *serving = changes->uses.servings->current;
    struct repository_removed removed;
    struct error err;
    uint64_t now = uv_now(&changes->uses.loop->uv), bytes = change->update.short_bytes;
    change->wait_ms = change->wait_ms ? change->wait_ms : now;
    update_fini(&change->update); /* its draft holds all models */
    bool may_evict =
        changes->uses.waits->told_count == 0; /* else a model that was loaded for them */
    if (may_evict && repository_evict(&serving->repository, serving->sequences, bytes, &removed,
                                      &err) == ST_OK) {
        counter_add(&changes->counts.unloads[CHANGES_DISPLACED], removed.count);
        unload(changes, &removed);
        changes->awaits_room = true;
        uv_timer_start(&changes->timer, on_timer, 0, 0);
        return true;
    }
    if (now - change->wait_ms >= ROOM_MS) {
        return false;
    }
    changes->awaits_room = true;
    uv_timer_start(&changes->timer, on_timer, ROOM_LOOK_MS, 0);
    return true;
}

static void on_prepared(uv_work_t *work, int uv_status)
{
    struct changes *changes = changes_of(work->data);
    struct change *change = changes->current;
    struct serving *serving = changes->serving;
    must(uv_status == 0 && change);
    turn_watch_enter(&changes->uses.loop->watch, TURN_MODELS);
    offload_end(changes->uses.loop->offload, OFFLOAD_LONG);
    changes->current = NULL;
    changes->serving = NULL;
    if (changes->uses.loop->is_closing) {
        servings_let_go(changes->uses.servings, serving);
        free_change(changes, change); /* nobody is left who could wait for it */
        return;
    }
    if (serving != changes->uses.servings->current || changes->holds > 0) {
        begin_again(changes, change);
        servings_let_go(changes->uses.servings, serving);
    } else if (change->status == ST_EXHAUSTED && change->update.short_bytes &&
               make_room(changes, change)) {
        begin_again(changes, change);
        servings_let_go(changes->uses.servings, serving);
        return;
    } else {
        publish(changes, change);
        servings_let_go(changes->uses.servings, serving);
        finish(changes, change);
    }
    begin_next(changes);
    changes->uses.ops->end(changes->uses.owner);
}

/* The daemon stops: nothing changes any more. */
static void refuse_waiting(struct changes *changes)
{
    while (!list_is_empty(&changes->waiting)) {
        struct change *change = LIST_ENTRY(changes->waiting.next, struct change, link);
        list_remove(&change->link);
        changes->waiting_count--;
        change->status = error_set(&change->err, ST_UNAVAILABLE, STOPPING);
        finish(changes, change);
    }
}

static void begin_next(struct changes *changes)
{
    if (changes->current || list_is_empty(&changes->waiting) || changes->awaits_room ||
        changes->holds > 0) {
        return;
    }
    if (changes->uses.loop->is_draining || changes->uses.loop->is_closing) {
        refuse_waiting(changes);
        return;
    }
    struct change *change = LIST_ENTRY(changes->waiting.next, struct change, link);
    list_remove(&change->link);
    changes->waiting_count--;
    changes->current = change;
    changes->serving = servings_hold(changes->uses.servings);
    change->update.repository = &changes->serving->repository;
    change->update.options =
        change->config ? &change->config->options : changes->uses.reload->model_options;
    changes->work.data = changes;
    offload_begin(changes->uses.loop->offload, OFFLOAD_LONG, &changes->work, prepare, on_prepared);
}

void changes_hold(struct changes *changes)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    changes->holds++;
}

void changes_release(struct changes *changes)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    must(changes->holds > 0);
    changes->holds--;
    begin_next(changes);
}

void changes_keep_idle(struct changes *changes, bool keeps)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    changes->keeps_idle = keeps;
}

bool changes_is_busy(const struct changes *changes)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    return changes->current != NULL;
}

/* ---- asking for a change --------------------------------------------------------------------- */

enum status changes_start(struct changes *changes, struct error *err)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    struct change *change = new_change();
    if (!change) {
        return error_set(err, ST_EXHAUSTED, "no memory to load models");
    }
    change->update.kind = UPDATE_START;
    append(changes, change);
    return ST_OK;
}

/* A scan that waits sees everything that happens until it begins. */
static struct change *find_scan(struct changes *changes)
{
    for (struct list *l = changes->waiting.next; l != &changes->waiting; l = l->next) {
        struct change *change = LIST_ENTRY(l, struct change, link);
        if (change->update.kind == UPDATE_SCAN) {
            return change;
        }
    }
    return NULL;
}

static struct change *scan(struct changes *changes, bool retries_failed)
{
    struct change *change = find_scan(changes);
    if (change) {
        change->update.retries_failed |= retries_failed;
        return change;
    }
    change = new_change();
    if (!change) {
        log_line(LOG_ERROR, "looking for changed models: out of memory");
        return NULL;
    }
    change->update.kind = UPDATE_SCAN;
    change->update.retries_failed = retries_failed;
    list_push_back(&changes->waiting, &change->link);
    changes->waiting_count++;
    return change;
}

void changes_scan(struct changes *changes, bool retries_failed)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    scan(changes, retries_failed);
    begin_next(changes);
}

void changes_reload(struct changes *changes, struct conf *config)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    struct change *change = scan(changes, true);
    if (!change) {
        reload_refuse(changes->uses.reload, config);
        return;
    }
    change->is_reload = true;
    if (config) {
        conf_free(change->config); /* of a reload that has not begun */
        change->config = config;
    }
    begin_next(changes);
}

/* A change of |kind| of the model |name|, which waits. */
static enum status add_change(struct changes *changes, const struct changes_order *order,
                              struct change **out_change, struct error *err)
{
    if (changes->waiting_count >= CHANGES_WAITING_MAX) {
        return error_set(err, ST_EXHAUSTED, "%d changes of models wait already",
                         CHANGES_WAITING_MAX);
    }
    if (changes->uses.loop->is_draining) {
        return error_set(err, ST_UNAVAILABLE, STOPPING);
    }
    struct change *change = new_change();
    if (!change) {
        return error_set(err, ST_EXHAUSTED, "no memory to change models");
    }
    change->update.kind = order->kind;
    change->update.with_dependents = order->with_dependents;
    snprintf(change->update.name, sizeof(change->update.name), "%s", order->name);
    *out_change = change;
    return ST_OK;
}

enum status changes_begin(struct changes *changes, struct waiter *waiter,
                          const struct changes_order *order, struct error *err)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    must(list_is_empty(&waiter->change_link)); /* it waits for one change */
    struct change *change;
    TRY(add_change(changes, order, &change, err));
    list_push_back(&change->waiters, &waiter->change_link);
    append(changes, change);
    return ST_OK;
}

/* The change of that kind and name that is not yet made; or NULL. */
static struct change *find_change(struct changes *changes, enum update_kind kind, const char *name)
{
    struct change *current = changes->current;
    if (current && current->update.kind == kind && strcmp(current->update.name, name) == 0) {
        return current;
    }
    for (struct list *l = changes->waiting.next; l != &changes->waiting; l = l->next) {
        struct change *change = LIST_ENTRY(l, struct change, link);
        if (change->update.kind == kind && strcmp(change->update.name, name) == 0) {
            return change;
        }
    }
    return NULL;
}

/* A load of the file |name|, charged to |client|. */
static enum status add_load(struct changes *changes, uint64_t client, const char *name,
                            struct change **out_change, struct error *err)
{
    const struct changes_order order = {.kind = UPDATE_NEED, .name = name};
    enum share_taken taken = share_take(&changes->loads, client, 1);
    if (taken != SHARE_TAKEN) {
        return resource_refuse(RESOURCE_LOADS, &changes->loads, taken, client, err);
    }
    if (add_change(changes, &order, out_change, err) != ST_OK) {
        share_give(&changes->loads, client, 1);
        return err->code;
    }
    (*out_change)->is_load = true;
    (*out_change)->client = client;
    return ST_OK;
}

enum status changes_need(struct changes *changes, struct waiter *waiter, const char *name,
                         struct error *err)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    bool is_start = *name == '\0';
    struct change *change = find_change(changes, is_start ? UPDATE_START : UPDATE_NEED, name);
    bool is_new = !change && !is_start;
    if (!change && is_start) {
        return error_set(err, ST_UNAVAILABLE, STOPPING);
    }
    TRY(waits_begin(changes->uses.waits, waiter, err));
    if (is_new && add_load(changes, waiter->client, name, &change, err) != ST_OK) {
        waits_end(changes->uses.waits, waiter);
        return err->code;
    }
    list_push_back(&change->waiters, &waiter->change_link);
    if (is_new) {
        append(changes, change);
    }
    return ST_OK;
}

void changes_refuse_start(struct changes *changes)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    struct error err;
    struct change *change = find_change(changes, UPDATE_START, "");
    if (change) { /* which a thread may have; who waits is the loop's */
        tell_waiters(changes, change, error_set(&err, ST_UNAVAILABLE, STOPPING), &err);
    }
}

void changes_forget(struct changes *changes, struct waiter *waiter)
{
    OBJ_CHECK(changes, CHANGES_MAGIC);
    list_remove(&waiter->change_link);
    waits_end(changes->uses.waits, waiter);
}

/* ---- life ------------------------------------------------------------------------------------ */

void changes_init(struct changes *changes, const struct changes_uses *uses)
{
    *changes = (struct changes){.magic = CHANGES_MAGIC, .uses = *uses, .idle_due_ns = ALARM_NEVER};
    list_init(&changes->waiting);
    share_init(&changes->loads, CHANGES_LOADS_MAX,
               resource_kept(RESOURCE_LOADS, CHANGES_LOADS_MAX));
    uv_timer_init(&uses->loop->uv, &changes->timer);
    changes->timer.data = changes;
}

void changes_fini(struct changes *changes)
{
    if (changes->magic == 0) {
        return; /* the start failed before */
    }
    must(!changes->current && !changes->going);
    while (!list_is_empty(&changes->waiting)) {
        free_change(changes, LIST_ENTRY(changes->waiting.next, struct change, link));
    }
    for (uint32_t i = 0; i < changes->retired_count; i++) {
        model_unref(changes->retired[i].model);
        servings_let_go(changes->uses.servings, changes->retired[i].serving);
    }
    free(changes->retired);
    share_fini(&changes->loads);
    changes->magic = 0;
}
