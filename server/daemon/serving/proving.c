/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/proving.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/siblings.h"
#include "runtime/call/speculation.h"
#include "runtime/sched/sched.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/serving/trim.h"
#include "server/language/generator.h"
#include "server/model/model_log.h"
#include "server/process/log.h"
#include "server/process/offload.h"

/* Time for one try of a model: the first one, so that all models have theirs soon, and later ones.
 * Measuring comes on top of it. */
#define FIRST_NS 50000000u
#define LATER_NS 250000000u
/* Steps of a large model take a tenth of a second, and few of them are tried. */
#define STEPS_NS 15000000000u
/* Rough work of a whole trial, if nobody has asked for a number of rows. */
#define WORK_NS 20000000000u
/* How long a try waits for an idle device, in all; it looks once in a ms. */
#define WAITS 200
#define LOOK_NS 1000000
/* Measurements of steps: if they say that joining is not worth it, other processes may have caused
 * that, and real runs do not correct it. */
#define MEASURES_MAX 3

static bool is_learning(const struct model *model)
{
    return model->params.max_batch == 0;
}

/* Steps follow each other, so their queue is never full: nothing could be learnt. */
static bool has_steps(const struct model *model)
{
    return rt_batch_has_states(model->method);
}

_Static_assert(DRAFTS_MAX + 1 == RT_SPECULATION_STEPS_MAX, "a call checks all guesses");
_Static_assert(RT_PROVEN_TOKENS_MAX == RT_SPECULATION_STEPS_MAX, "all tokens are kept");
_Static_assert(RT_PROVEN_ROWS_MAX == RT_BATCH_CALLS_MAX, "all rows are kept");

/* ---- on a thread of libuv -------------------------------------------------------------------- */

/* See struct rt_pace: calls come first. */
static bool may_run(void *arg)
{
    struct proving *proving = arg;
    const struct timespec look = {.tv_nsec = LOOK_NS};
    OBJ_CHECK(proving, PROVING_MAGIC);
    while (!atomic_load(&proving->is_stopped) && !proving->insists &&
           !rt_sched_is_idle(proving->serving->repository.sched)) {
        if (proving->waits_left == 0) {
            return false;
        }
        proving->waits_left--;
        nanosleep(&look, NULL);
    }
    return !atomic_load(&proving->is_stopped);
}

static struct rt_pace choose_pace(struct proving *proving)
{
    const struct model_trial *trial = &proving->trial;
    bool is_first = trial->tries == 0;
    struct rt_pace pace = {.may_run = may_run, .arg = proving};
    if (is_first || !proving->insists) { /* else it proves one number of rows */
        pace.budget_ns = has_steps(proving->model) ? STEPS_NS : is_first ? FIRST_NS : LATER_NS;
    }
    pace.work_ns = is_learning(proving->model) ? WORK_NS : 0;
    return pace;
}

/* Is a measurement wanted? The first rows that are proven are measured, and then all of them. */
static bool may_measure(const struct proving *proving)
{
    const struct model_trial *trial = &proving->trial;
    const struct rt_proven *proven = &trial->proven;
    if (!is_learning(proving->model) || trial->rows == 1) {
        return false;
    }
    if (proven->measured_rows < trial->rows) {
        return proven->measured_rows == 1 || proving->why_not.code != ST_TIMEOUT;
    }
    return has_steps(proving->model) && proven->first_rows < trial->rows &&
           proven->measure_count < MEASURES_MAX;
}

/* Chooses the number of rows to begin with: the given one, or the one that looks best. */
static void measure(struct proving *proving, struct hal_pool *pool, const struct rt_pace *pace)
{
    struct model_trial *trial = &proving->trial;
    struct rt_proven *proven = &trial->proven;
    struct error err;
    int64_t rows;
    if (may_measure(proving)) {
        enum status status =
            rt_batch_measure(proving->model->method, pool, pace, trial->rows, &rows, &err);
        if (status == ST_OK) {
            proven->first_rows = rows > proven->first_rows ? rows : proven->first_rows;
            proven->measured_rows = trial->rows;
            proven->measure_count += proven->measure_count < RT_PROVEN_MEASURES_MAX;
        }
        proving->measured_late = status == ST_TIMEOUT || (status == ST_OK && may_measure(proving));
    }
    bool is_given = !is_learning(proving->model) || proven->first_rows > trial->rows;
    trial->first_rows = is_given ? trial->rows : proven->first_rows;
}

/* How many rows may run as one. */
static void prove_rows(struct proving *proving, struct hal_pool *pool, const struct rt_pace *pace)
{
    const struct model *model = proving->model;
    struct rt_proven *proven = &proving->trial.proven;
    struct error *why_not = &proving->why_not;
    int64_t max = model->rows_form;
    if (proven->are_rows_final && proven->rows < max) {
        max = proven->rows;
    }
    int64_t rows = proven->rows < max ? proven->rows : max;
    why_not->code = rt_batch_prove(model->method, pool, pace, max, &rows, why_not);
    proving->trial.rows = rows;
    proven->rows = rows > proven->rows ? rows : proven->rows;
    if (why_not->code == ST_UNSUPPORTED) {
        proven->are_rows_final = true;
        proven->why_rows = *why_not;
    } else if (why_not->code == ST_OK && rows < model->rows_form) {
        *why_not = proven->why_rows;
    }
}

/* The times of calls with |tokens| tokens, which are proven. */
static enum status measure_tokens(struct proving *proving, struct hal_pool *pool,
                                  const struct rt_pace *pace, int64_t tokens)
{
    uint64_t ns[RT_SPECULATION_STEPS_MAX + 1] = {0};
    struct rt_proven *proven = &proving->trial.proven;
    if (tokens == 1 || proven->tokens_ns[tokens]) {
        return ST_OK;
    }
    TRY(rt_speculation_measure(proving->model->method, pool, pace, (uint32_t)tokens, ns,
                               &proving->why_one));
    memcpy(proven->tokens_ns, ns, sizeof(ns));
    return ST_OK;
}

/* How many tokens of one answer, at most |max|, may run as one call, and how long that takes. */
static void prove_tokens(struct proving *proving, struct hal_pool *pool, const struct rt_pace *pace,
                         int64_t max)
{
    struct rt_proven *proven = &proving->trial.proven;
    struct error *why_one = &proving->why_one;
    if (proven->are_tokens_final && proven->tokens < max) {
        max = proven->tokens;
    }
    int64_t tokens = proven->tokens < max ? proven->tokens : max;
    enum status status =
        rt_speculation_prove(proving->model->method, pool, pace, max, &tokens, why_one);
    proven->tokens = tokens > proven->tokens ? tokens : proven->tokens;
    if (status == ST_UNSUPPORTED) {
        proven->are_tokens_final = true;
        proven->why_tokens = *why_one;
    } else if (status == ST_OK && proven->are_tokens_final && tokens == proven->tokens) {
        *why_one = proven->why_tokens;
    }
    enum status measured = ST_OK;
    if (status != ST_TIMEOUT) {
        measured = measure_tokens(proving, pool, pace, tokens);
    }
    why_one->code = status == ST_TIMEOUT ? status : measured;
    proving->trial.tokens = measured == ST_OK ? tokens : 1;
}

static void prove_speculation(struct proving *proving, struct hal_pool *pool,
                              const struct rt_pace *pace)
{
    const struct generator *generator = proving->model->generator;
    int64_t guesses = (int64_t)proving->model->params.draft_tokens_max, rows = proving->trial.rows;
    (void)reason_set(&proving->why_one, guesses == 0 ? REASON_GUESSES_OFF : REASON_STEPS_ALONE);
    if (!generator || !generator_has_cache(generator) || guesses == 0) {
        return;
    }
    if (proving->why_not.code == ST_TIMEOUT) {
        proving->why_one = proving->why_not;
    } else if (rows > 1) {
        prove_tokens(proving, pool, pace, guesses < rows ? guesses + 1 : rows);
    }
}

/* A model whose steps may run as one with those of |model|; the caller owns a reference. Its own
 * trial has been on this thread before, so it has the form of a step. */
static struct model *find_sibling(struct repository *repository, const struct model *model)
{
    struct repository_index *index = repository_ref_index(repository);
    struct model *found = NULL;
    struct error err;
    for (uint32_t i = 0; !found && i < index->count; i++) {
        struct model *other = index->models[i];
        bool may_join = other != model && model_is_ready(other) && has_steps(other) &&
                        other->method != model->method && other->trial.first_rows > 1;
        if (may_join && rt_siblings_meet(model->method, other->method, &err) == ST_OK) {
            found = model_ref(other);
        }
    }
    repository_unref_index(index);
    return found;
}

static enum status try_mixed_rows(struct proving *proving, struct hal_pool *pool,
                                  const struct rt_pace *pace, struct error *err)
{
    struct model_trial *trial = &proving->trial;
    struct rt_method *method = proving->model->method, *other = proving->sibling->method;
    int64_t most = trial->first_rows, rows = trial->mixed_rows;
    enum status status = rt_siblings_prove(method, other, pool, pace, most, &rows, err);
    trial->mixed_rows = rows;
    if (status == ST_TIMEOUT || rows == 1) {
        return status;
    }
    return is_learning(proving->model)
               ? rt_siblings_measure(method, other, pool, pace, rows, &trial->mixed_rows, err)
               : ST_OK;
}

/* How many rows of this model and of its siblings may run as one, once that is known of its own
 * ones. Nothing of it is kept, since it depends on further programs. */
static void prove_mixed_rows(struct proving *proving, struct hal_pool *pool,
                             const struct rt_pace *pace)
{
    struct model_trial *trial = &proving->trial;
    struct error err;
    bool is_open = proving->why_not.code == ST_TIMEOUT || proving->measured_late;
    if (is_open || trial->are_mixed || !has_steps(proving->model) || trial->first_rows == 1) {
        return;
    }
    proving->sibling = find_sibling(&proving->serving->repository, proving->model);
    enum status status =
        proving->sibling ? try_mixed_rows(proving, pool, pace, &err) : ST_NOT_FOUND;
    proving->mixed_late = status == ST_TIMEOUT;
    trial->are_mixed = status != ST_TIMEOUT;
}

/* Begins with what earlier starts have proven, if that is kept. */
static void recall(struct proving *proving)
{
    struct model_trial *trial = &proving->trial;
    const struct model *model = proving->model;
    const uint64_t settings[] = {proving->ring_bytes, is_learning(model) ? WORK_NS : 0};
    struct error err;
    if (trial->tries > 0 ||
        rt_proven_find(model->method, settings, sizeof(settings) / sizeof(settings[0]), &trial->key,
                       &err) != ST_OK) {
        return;
    }
    trial->is_kept = true;
    enum status status = rt_proven_read(model->method, trial->key, &trial->proven, &err);
    trial->was_kept = status == ST_OK;
    if (status != ST_OK && status != ST_NOT_FOUND) {
        log_line(LOG_WARNING, "model %s: what was proven cannot be read and is tried again: %s",
                 model->name, err.text);
    }
}

static bool differ(const struct rt_proven *a, const struct rt_proven *b)
{
    return a->rows != b->rows || a->first_rows != b->first_rows ||
           a->measured_rows != b->measured_rows || a->measure_count != b->measure_count ||
           a->tokens != b->tokens || a->are_rows_final != b->are_rows_final ||
           a->are_tokens_final != b->are_tokens_final ||
           memcmp(a->tokens_ns, b->tokens_ns, sizeof(a->tokens_ns)) != 0;
}

/* Keeps what this try has added to |before|. */
static void keep(struct proving *proving, const struct rt_proven *before)
{
    struct model_trial *trial = &proving->trial;
    struct error err;
    if (!trial->is_kept || !differ(&trial->proven, before)) {
        return;
    }
    trial->was_kept = false;
    if (rt_proven_write(proving->model->method, trial->key, &trial->proven, &err) != ST_OK) {
        log_line(LOG_WARNING, "model %s: what is proven cannot be stored: %s", proving->model->name,
                 err.text);
    }
}

/* Carries the trial on: which numbers of rows give the same bits as each row alone. */
static void prove(uv_work_t *work)
{
    struct proving *proving;
    OBJ_CAST(proving, work->data, PROVING_MAGIC);
    OBJ_CHECK(proving->model, MODEL_MAGIC);
    must(proving->model->rows_form > 1); /* else there is nothing to try */
    recall(proving);
    const struct rt_pace pace = choose_pace(proving);
    const struct rt_proven before = proving->trial.proven;
    struct hal_pool *pool;
    proving->measured_late = proving->mixed_late = false;
    if (hal_pool_new(proving->serving->device, proving->ring_bytes, &pool, &proving->why_not) !=
        ST_OK) {
        proving->why_one = proving->why_not;
        return;
    }
    prove_rows(proving, pool, &pace);
    measure(proving, pool, &pace);
    prove_mixed_rows(proving, pool, &pace);
    prove_speculation(proving, pool, &pace);
    hal_pool_free(pool);
    keep(proving, &before);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

/*
 * Jobs of a model that run at a time. A batch spreads over the workers, and requests that do not
 * run yet make the next batch larger. So there are fewer jobs than workers, but two, so that one
 * runs while another is assembled. Steps of all sequences run together, and come back together.
 */
static uint32_t running_max(const struct model *model, const struct hal_device *device)
{
    uint32_t given = (uint32_t)model->params.running_count_max;
    return given ? given : has_steps(model) ? 1 : 1 + (hal_device_props(device)->workers + 3) / 4;
}

/* Guessed tokens are checked once everything about them is known. */
static void publish_speculation(const struct proving *proving)
{
    struct generator *generator = proving->model->generator;
    if (!generator) {
        return;
    }
    generator->why_one = proving->why_one;
    if (!proving->model->trial.is_open) {
        memcpy(generator->speculation_ns, proving->trial.proven.tokens_ns,
               sizeof(generator->speculation_ns));
        atomic_store(&generator->speculation_tokens, (uint32_t)proving->trial.tokens);
        atomic_store(&generator->never_guesses, proving->trial.tokens == 1);
    }
}

static void publish_rows(const struct proving *proving)
{
    struct model *model = proving->model;
    const struct model_trial *trial = &proving->trial;
    model->rows_max = trial->rows;
    if (trial->rows == 1) {
        model->why_alone = proving->why_not;
        return;
    }
    const struct rt_sched_join join = {
        .rows_max = trial->rows,
        .rows = trial->first_rows,
        .is_learning = is_learning(model) && !has_steps(model),
        .running_max = running_max(model, proving->serving->device),
        .delay_ns = model->params.max_delay_us * 1000,
    };
    rt_sched_queue_join(model->queue, &join);
}

/* Steps of siblings run as one from now on. */
static void publish_mixed_rows(struct proving *proving)
{
    const struct model *model = proving->model, *sibling = proving->sibling;
    int64_t rows = proving->trial.mixed_rows;
    struct error err;
    if (sibling && proving->trial.are_mixed && rows > 1) {
        if (rt_sched_queue_mix(model->queue, sibling->queue, rows, &err) == ST_OK) {
            log_line(LOG_INFO, "model %s: up to %" PRIi64 " steps run together with those of %s",
                     model->name, rows, sibling->name);
        } else {
            log_line(LOG_WARNING, "model %s: steps do not run together with those of %s: %s",
                     model->name, sibling->name, err.text);
        }
    }
    model_unref(proving->sibling);
    proving->sibling = NULL;
}

/* Does a line of the log say what the try has found? All but the tries in between have one, and the
 * first of those that have proven nothing. */
static bool is_news(const struct model_trial *trial)
{
    return !trial->is_open || trial->tries == 1 || trial->vain == 1;
}

static void publish(struct proving *proving, uint64_t now_ms)
{
    struct model *model = proving->model;
    struct model_trial *trial = &proving->trial;
    OBJ_CHECK(model, MODEL_MAGIC);
    must(trial->rows >= 1 && trial->rows <= model->rows_form);
    bool is_late = proving->why_not.code == ST_TIMEOUT || proving->why_one.code == ST_TIMEOUT ||
                   proving->measured_late || proving->mixed_late;
    bool has_rows = trial->rows > model->trial.rows;
    bool has_proven =
        differ(&trial->proven, &model->trial.proven) || trial->mixed_rows > model->trial.mixed_rows;
    bool is_measured = trial->first_rows != model->trial.first_rows;
    model_trial_note(trial, is_late, has_proven, now_ms);
    model->trial = *trial;
    model->trial_is_open = trial->is_open;
    model->trials_late = trial->late_count;
    if (has_rows || is_measured || trial->rows == 1) {
        publish_rows(proving);
    }
    publish_mixed_rows(proving);
    publish_speculation(proving);
    if (is_news(trial) && !atomic_load(&proving->is_stopped)) {
        bool are_all = proving->why_not.code == ST_OK;
        model_log_batches(model, are_all ? NULL : &proving->why_not);
    }
}

/* The next callable model whose trial goes on now, one that has not been tried at all first; the
 * caller owns a reference. |*out_due_ms|: when the trials of others go on; UINT64_MAX: never. */
static struct model *next_model(struct repository *repository, uint64_t now_ms,
                                uint64_t *out_due_ms)
{
    struct repository_index *index = repository_ref_index(repository);
    struct model *next = NULL;
    *out_due_ms = UINT64_MAX;
    for (uint32_t i = 0; i < index->count; i++) {
        struct model *model = index->models[i];
        if (!model_is_ready(model) || !model->trial.is_open) {
            continue;
        }
        if (model->trial.due_ms > now_ms) {
            *out_due_ms = model->trial.due_ms < *out_due_ms ? model->trial.due_ms : *out_due_ms;
        } else if (!next || model->trial.tries < next->trial.tries) {
            next = model;
        }
    }
    next = next ? model_ref(next) : NULL;
    repository_unref_index(index);
    return next;
}

static void on_proved(uv_work_t *work, int uv_status);
static void on_timer(uv_timer_t *timer);

/* Nothing is to be tried before |due_ms|. */
static void pause_until(struct proving *proving, uint64_t due_ms)
{
    struct serving *serving = proving->serving;
    proving->serving = NULL;
    servings_let_go(proving->uses.servings, serving);
    trim_note_use(proving->uses.trim); /* the device keeps memory of the first calls */
    if (due_ms != UINT64_MAX) {
        uint64_t now_ms = uv_now(&proving->uses.loop->uv);
        uv_timer_start(&proving->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
    }
}

static void prove_next(struct proving *proving)
{
    OBJ_CHECK(proving, PROVING_MAGIC);
    OBJ_CHECK(proving->serving, SERVING_MAGIC);
    bool is_wanted = !proving->uses.loop->is_draining &&
                     !proving->uses.loop->is_closing && /* nor has the serving been replaced */
                     proving->uses.servings->current == proving->serving;
    uint64_t due_ms = UINT64_MAX;
    model_unref(proving->model);
    proving->model = NULL;
    if (is_wanted) {
        proving->model =
            next_model(&proving->serving->repository, uv_now(&proving->uses.loop->uv), &due_ms);
    }
    if (!proving->model) {
        pause_until(proving, due_ms);
        return;
    }
    proving->trial = proving->model->trial;
    proving->insists = model_trial_insists(&proving->trial);
    proving->waits_left = WAITS;
    offload_begin(proving->uses.loop->offload, OFFLOAD_LONG, &proving->work, prove, on_proved);
}

static void on_proved(uv_work_t *work, int uv_status)
{
    struct proving *proving;
    OBJ_CAST(proving, work->data, PROVING_MAGIC);
    must(uv_status == 0 && proving->model);
    offload_end(proving->uses.loop->offload, OFFLOAD_LONG);
    publish(proving, uv_now(&proving->uses.loop->uv));
    prove_next(proving);
    if (!proving->serving) {
        proving_begin(proving); /* for the serving that has come in the meantime */
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct proving *proving;
    OBJ_CAST(proving, timer->data, PROVING_MAGIC);
    turn_watch_enter(&proving->uses.loop->watch, TURN_MODELS);
    proving_begin(proving);
}

void proving_init(struct proving *proving, const struct proving_uses *uses)
{
    *proving = (struct proving){.magic = PROVING_MAGIC, .uses = *uses};
    uv_timer_init(&uses->loop->uv, &proving->timer);
    proving->timer.data = proving->work.data = proving;
}

void proving_begin(struct proving *proving)
{
    OBJ_CHECK(proving, PROVING_MAGIC);
    if (!proving->serving && !atomic_load(&proving->is_stopped)) {
        uv_timer_stop(&proving->timer);
        proving->ring_bytes = (size_t)proving->uses.params->ring_bytes;
        proving->serving = servings_hold(proving->uses.servings);
        prove_next(proving);
    }
}

void proving_stop(struct proving *proving)
{
    OBJ_CHECK(proving, PROVING_MAGIC);
    atomic_store(&proving->is_stopped, true);
    uv_timer_stop(&proving->timer);
}
