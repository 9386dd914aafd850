/* SPDX-License-Identifier: MIT */
/*
 * The encoder's runs of a transcription: that of the present window, and that of the next one,
 * ahead of its time.
 *
 * A window is encoded ahead where its begin is known: with times it depends on the tokens of the
 * window before. There is one window ahead of a request at most, and only if the device has
 * several workers, and memory for as much again. Whatever else goes wrong, the window is encoded
 * in its turn, and what is wrong is told then.
 *
 * The job ends on a worker, the request on the loop. |state| says who is the last of both: who
 * finds there what the other one has left goes on in its place.
 */
#include "config.h"

#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/sched/job.h"
#include "server/daemon/generation/transcription_priv.h"
#include "server/daemon/serving/serving.h"
#include "server/language/transcriber.h"
#include "server/media/log_mel.h"

/* ---- features -------------------------------------------------------------------------------- */

/* The samples of the window at |window| that there are. */
static uint64_t count_samples(const struct transcription *t, uint64_t window)
{
    uint64_t left = t->sample_count - window, max = t->transcriber->window_samples;
    return left < max ? left : max;
}

static struct shape shape_of_input(const struct transcription *t, uint64_t window)
{
    const struct transcriber *transcriber = t->transcriber;
    uint64_t count = count_samples(t, window);
    bool is_whole = transcriber->is_window_fixed || count < 2;
    struct shape shape = {.rank = transcriber->input_rank};
    shape.dims[0] = 1;
    shape.dims[shape.rank - 1] = (int64_t)(is_whole ? transcriber->window_samples : count);
    if (transcriber->log_mel) {
        shape.dims[1] = transcriber->bands;
        shape.dims[2] = transcriber->frames;
    }
    return shape;
}

/* What the encoder hears of a window, of |shape|: its features, or its samples and then silence. */
static enum status put_features(const struct transcription *t, uint64_t window,
                                const struct shape *shape, float *out, struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    const float *samples = hal_buffer_map(t->sound);
    uint64_t count = count_samples(t, window), room = (uint64_t)shape->dims[shape->rank - 1];
    if (transcriber->log_mel) {
        return log_mel_compute(transcriber->log_mel, samples + window, count, transcriber->frames,
                               out, err);
    }
    memcpy(out, samples + window, (size_t)count * sizeof(float));
    memset(out + count, 0, (size_t)(room - count) * sizeof(float));
    return ST_OK;
}

enum status transcription_encode(struct infer *infer, struct transcription *t, struct error *err)
{
    struct shape shape = shape_of_input(t, t->window);
    void *memory;
    TRY(infer_invoke(infer, t->transcriber->encoder, err));
    TRY(infer_input(infer, &infer->call, 0, DT_F32, &shape, &memory, err));
    return put_features(t, t->window, &shape, memory, err);
}

/* ---- the job --------------------------------------------------------------------------------- */

static struct transcription_ahead *ahead_of(const struct infer *infer)
{
    return &transcription_of(infer)->ahead;
}

static struct infer *infer_of(struct rt_sched_job *job)
{
    struct infer *infer;
    OBJ_CAST(infer, job->call, INFER_MAGIC);
    return infer;
}

/* It does not wait for memory: then there is no result. */
static bool start(struct rt_sched_job *job, bool may_run_inline)
{
    struct rt_invocation *invocation = ahead_of(infer_of(job))->invocation;
    struct error err;
    (void)may_run_inline;
    if (rt_invocation_prepare(invocation, RT_PREPARE_ALL, &err) == ST_OK) {
        rt_invocation_submit(invocation, HAL_CALLER_BUSY, rt_job_end, job);
    } else {
        rt_sched_finished(job, err.code);
    }
    return true;
}

static bool cancel(struct rt_sched_job *job)
{
    return rt_batch_leave(ahead_of(infer_of(job))->invocation);
}

/* The memory of the run is given back at once; that of the result is the request's. */
static void end(struct rt_sched_job *job, enum status status)
{
    struct infer *infer = infer_of(job);
    struct transcription_ahead *ahead = ahead_of(infer);
    ahead->has_result = status == ST_OK;
    if (ahead->has_result) {
        ahead->shape = rt_invocation_result(ahead->invocation, 0)->shape;
    }
    rt_invocation_free(ahead->invocation);
    ahead->invocation = NULL;
    if (job->started_ns) {
        rt_sched_released(infer->serving->sched);
    }
    enum ahead_state before = atomic_exchange(&ahead->state, AHEAD_OVER);
    if (before == AHEAD_AWAITED) {
        rt_sched_finished(&infer->job, ST_OK);
    } else if (before == AHEAD_LEFT_OFF) {
        infer->env->note_left(infer);
    }
}

static const struct rt_sched_job_ops job_ops = {.start = start, .cancel = cancel, .done = end};

/* Memory for the result; later windows use it again. Others find room beside it. */
static bool find_room(struct infer *infer, struct transcription *t)
{
    struct error err;
    if (t->ahead.hidden) {
        return true;
    }
    if (!hal_pool_try_charge(infer->pool, t->hidden_bytes)) {
        return false;
    }
    enum status status = hal_pool_reserve(infer->pool, t->hidden_bytes, &t->ahead.hidden, &err);
    hal_pool_discharge(infer->pool, t->hidden_bytes);
    return status == ST_OK;
}

/* Makes the call, all but its memory to run. */
static enum status make_call(struct infer *infer, struct transcription *t, uint64_t window,
                             struct error *err)
{
    struct transcription_ahead *ahead = &t->ahead;
    struct shape shape = shape_of_input(t, window);
    void *memory;
    TRY(rt_invocation_new(t->transcriber->encoder, infer->pool, &ahead->invocation, err));
    rt_invocation_run_in(ahead->invocation, infer->run_pool);
    TRY(rt_invocation_input(ahead->invocation, 0, DT_F32, &shape, &memory, err));
    TRY(put_features(t, window, &shape, memory, err));
    TRY(rt_invocation_bind_result(ahead->invocation, 0, ahead->hidden, 0, err));
    TRY(rt_invocation_plan(ahead->invocation, RT_PREPARE_ALL, err));
    ahead->input_bytes = rt_invocation_bytes(ahead->invocation);
    return ST_OK;
}

static enum status submit(struct infer *infer, struct transcription_ahead *ahead, struct error *err)
{
    struct rt_sched_job *job = &ahead->job;
    job->ops = &job_ops;
    job->deadline_ns = RT_SCHED_NEVER; /* the request has one, and takes it along */
    job->priority = infer->priority;
    job->bytes = transcription_ahead_bytes(transcription_of(infer));
    job->client = infer->client->id;
    job->tickets = &ahead->ticket;
    job->ticket_count = 1;
    job->call = infer;
    ahead->ticket.lane = &ahead->lane;
    atomic_store(&ahead->state, AHEAD_RUNS);
    return rt_sched_submit(ahead->model->queue, job, false, err);
}

/* Begins the window behind the present one. */
static void begin_ahead(struct infer *infer, struct transcription *t)
{
    struct transcription_ahead *ahead = &t->ahead;
    uint64_t window = t->window + t->transcriber->window_samples;
    struct error err;
    if (!ahead->model || window >= t->sample_count || !find_room(infer, t)) {
        return;
    }
    enum status status = make_call(infer, t, window, &err);
    if (status == ST_OK) {
        status = submit(infer, ahead, &err);
    }
    if (status != ST_OK) {
        rt_invocation_free(ahead->invocation);
        ahead->invocation = NULL;
        atomic_store(&ahead->state, AHEAD_NONE);
    }
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The encoder as a model that is served beside its decoder; NULL: it is not. */
static struct model *find_encoder(struct infer *infer, const struct transcriber *transcriber)
{
    struct repository_index *index = repository_ref_index(&infer->serving->repository);
    struct model *found = NULL;
    struct error err;
    for (uint32_t i = 0; i < index->count && !found; i++) {
        struct model *model = index->models[i];
        if (model->method == transcriber->encoder && model_verify_ready(model, &err) == ST_OK) {
            found = model_ref(model);
        }
    }
    repository_unref_index(index);
    return found;
}

void transcription_open_ahead(struct infer *infer, struct transcription *t)
{
    bool is_known = !t->has_times && t->sample_count > t->transcriber->window_samples;
    rt_sched_lane_init(&t->ahead.lane);
    if (is_known && hal_device_props(infer->serving->device)->workers > 1) {
        t->ahead.model = find_encoder(infer, t->transcriber);
    }
}

size_t transcription_ahead_bytes(const struct transcription *t)
{
    return t->ahead.hidden ? t->hidden_bytes + t->ahead.input_bytes : 0;
}

/* The run has nothing to do but to follow the job in the lane. */
struct rt_sched_queue *transcription_await(struct infer *infer, struct transcription *t)
{
    struct rt_sched_job *job = &infer->job;
    job->rows = 0;
    job->returns = false;
    job->since_ns = 0;
    job->call = NULL;
    job->tickets = &t->ahead.wait;
    job->ticket_count = 1;
    t->ahead.wait.lane = &t->ahead.lane;
    return infer->call.model->queue;
}

/* The scheduler has ended the job, but perhaps not yet told. */
void transcription_take(struct infer *infer, struct transcription *t)
{
    enum ahead_state state = AHEAD_RUNS;
    if (!atomic_compare_exchange_strong(&t->ahead.state, &state, AHEAD_AWAITED)) {
        must(state == AHEAD_OVER);
        rt_sched_finished(&infer->job, ST_OK);
    }
}

/* The result becomes that of the present window. Without one the encoder runs after all. */
static void take_result(struct transcription *t)
{
    struct transcription_ahead *ahead = &t->ahead;
    must(atomic_load(&ahead->state) == AHEAD_OVER && !ahead->invocation);
    atomic_store(&ahead->state, AHEAD_NONE);
    t->is_taking = false;
    if (ahead->has_result) {
        struct hal_buffer *hidden = t->hidden;
        t->hidden = ahead->hidden;
        t->hidden_shape = ahead->shape;
        ahead->hidden = hidden;
        t->is_encoding = false;
    }
}

static enum status copy_result(struct transcription *t, const struct rt_result *result,
                               struct error *err)
{
    if (result->bytes.len > t->hidden_bytes) {
        return error_set(err, ST_TOO_LARGE, "the encoder gives %zu bytes, expected at most %zu",
                         result->bytes.len, t->hidden_bytes);
    }
    memcpy(hal_buffer_map(t->hidden), result->bytes.ptr, result->bytes.len);
    t->hidden_shape = result->shape;
    t->is_encoding = false;
    return ST_OK;
}

enum status transcription_keep_hidden(struct infer *infer, struct transcription *t,
                                      struct error *err)
{
    if (t->is_taking) {
        take_result(t);
    } else {
        TRY(copy_result(t, rt_invocation_result(infer->call.invocation, 0), err));
    }
    if (!t->is_encoding) {
        begin_ahead(infer, t);
    }
    return ST_OK;
}

bool transcription_leave(struct infer *infer)
{
    struct transcription_ahead *ahead = ahead_of(infer);
    enum ahead_state state = AHEAD_RUNS;
    if (atomic_load(&ahead->state) != AHEAD_RUNS) {
        return true; /* no run of the request is left that could have awaited it */
    }
    rt_sched_cancel(&ahead->job);
    return !atomic_compare_exchange_strong(&ahead->state, &state, AHEAD_LEFT_OFF);
}

void transcription_close_ahead(struct transcription *t)
{
    enum ahead_state state = atomic_load(&t->ahead.state);
    must(state == AHEAD_NONE || state == AHEAD_OVER);
    hal_buffer_unref(t->ahead.hidden);
    model_unref(t->ahead.model);
}
