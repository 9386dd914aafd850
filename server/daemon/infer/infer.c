/* SPDX-License-Identifier: MIT */
/*
 * From a body to one call or several, and from these to an answer: the parts that all codecs share.
 * Tensors are decoded directly into the memory that the device reads, or bound in place in the
 * body; results are sent from the memory that the device wrote.
 */
#include "config.h"

#include "server/daemon/infer/infer.h"

#include <stdio.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "protocol/grpc.h"
#include "protocol/number.h"
#include "runtime/call/invocation.h"
#include "runtime/sched/job.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_priv.h"
#include "server/daemon/infer/infer_profile.h"
#include "server/daemon/infer/infer_sequence.h"
#include "server/daemon/infer/infer_shared.h"
#include "server/daemon/serving/serving.h"
#include "server/model/repository.h"

#define ARENA_BYTES_MAX (4 << 20)

enum status infer_init(struct infer *infer, struct infer_env *env, struct error *err)
{
    must(env->params != NULL && env->owner != NULL);
    const struct params *params = env->params;
    *infer = (struct infer){.magic = INFER_MAGIC, .env = env, .work.params = params};
    list_init(&infer->seat.link);
    arena_init(&infer->arena, ARENA_BYTES_MAX);
    arena_init(&infer->turned, params->answer_bytes_max);
    body_init(&infer->inflated, NULL, params->body_bytes_max);
    buf_init(&infer->deflated, params->answer_bytes_max);
    enum status status = hal_pool_member_new(&infer->pool, err);
    if (status == ST_OK) {
        status = hal_pool_member_new(&infer->run_pool, err);
    }
    if (status == ST_OK) {
        status = hal_pool_member_new(&infer->answer_pool, err);
    }
    if (status != ST_OK) {
        hal_pool_free(infer->pool);
        hal_pool_free(infer->run_pool);
    }
    return status;
}

void infer_fini(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    infer_reset(infer);
    must(!infer->share && !infer->running && list_is_empty(&infer->seat.link));
    arena_fini(&infer->arena);
    arena_fini(&infer->turned);
    body_fini(&infer->inflated);
    buf_fini(&infer->deflated);
    hal_pool_free(infer->pool);
    hal_pool_free(infer->run_pool);
    hal_pool_free(infer->answer_pool);
}

/* Drops what the call holds, the model excepted. */
static void reset_call(struct infer *infer, struct infer_call *call)
{
    rt_invocation_free(call->invocation);
    infer_sequence_close(infer, call);
    *call = (struct infer_call){0};
}

/* Memory that a request makes us allocate counts from a minimum on, which every request has. */
static enum status count_heap(struct infer *infer, size_t bytes, struct error *err)
{
    if (bytes <= INFER_KEEP_BYTES || bytes <= infer->charged_bytes) {
        return ST_OK;
    }
    if (!hal_pool_try_charge(infer->pool, bytes - infer->charged_bytes)) {
        return error_set(err, ST_EXHAUSTED, "no memory now for so large a request");
    }
    infer->charged_bytes = bytes;
    return ST_OK;
}

static enum status count_arena(struct infer *infer, struct error *err)
{
    return count_heap(infer, infer->arena.used_bytes, err);
}

/* Steps of pipelines get their memory one by one; all of it is counted before the first step. */
static enum status count_steps(struct infer *infer, struct error *err)
{
    return count_heap(infer, infer->arena.used_bytes + infer->steps_bytes, err);
}

static void join_pools(struct infer *infer)
{
    const struct serving *serving = infer->serving;
    OBJ_CHECK(serving, SERVING_MAGIC);
    must(infer->ops->life.is_apart || infer->call.model);
    if (!infer->share) {
        infer->share = infer->ops->life.is_apart ? serving->lists : infer->call.model->pool;
        hal_pool_join(infer->pool, infer->share);
        hal_pool_join(infer->answer_pool, serving->answers);
    }
}

static void shrink_answer(struct infer *infer, size_t bytes)
{
    must(bytes <= infer->answer_bytes);
    if (bytes < infer->answer_bytes) {
        hal_pool_discharge(infer->answer_pool, infer->answer_bytes - bytes);
        infer->answer_bytes = bytes;
    }
}

static void leave_pools(struct infer *infer)
{
    must(infer->share || (infer->charged_bytes == 0 && infer->answer_bytes == 0));
    if (infer->share) {
        hal_pool_discharge(infer->pool, infer->charged_bytes);
        infer->charged_bytes = 0;
        shrink_answer(infer, 0);
        hal_pool_leave(infer->pool);
        hal_pool_leave(infer->answer_pool);
        infer->share = NULL;
    }
    if (infer->running) {
        hal_pool_leave(infer->run_pool);
        infer->running = NULL;
    }
}

void infer_drop_own(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    if (infer->own) {
        infer->ops->life.free(infer);
        infer->own = NULL;
    }
}

bool infer_leave(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return !infer->own || !infer->ops->life.leave || infer->ops->life.leave(infer);
}

void infer_reset(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct model *model = infer->call.model;
    infer_drop_own(infer);
    reset_call(infer, &infer->call);
    infer_profile_end(infer);
    infer_shared_drop(infer);
    infer->ops = NULL;
    infer->is_in_stream = false;
    infer->is_short = infer->was_alone = infer->is_unfit = infer->has_shared_outputs = false;
    infer->body = NULL;
    infer->bound_bytes = infer->steps_bytes = 0;
    infer->cut_texts = 0;
    infer_media_reset(&infer->media);
    infer->id = span_str("");
    infer->encoded = (struct oip_encoded){0};
    infer->coding = CODING_IDENTITY;
    infer->content_type = NULL;
    body_reset(&infer->inflated);
    leave_pools(infer);
    model_unref(model); /* its pool has lost this member */
    model_unref(infer->newest);
    infer->newest = NULL;
    buf_fini(&infer->deflated);
    arena_fini(&infer->turned);
    if (infer->arena.used_bytes > INFER_KEEP_BYTES) {
        arena_fini(&infer->arena);
    } else {
        arena_reset(&infer->arena);
    }
}

void infer_drop_model(struct infer_call *call)
{
    model_unref(call->model);
    call->model = NULL;
}

/* A model that left the index before its reference was taken is looked for again. */
static enum status find_present(struct repository *repository, const char *name, uint32_t version,
                                struct model **out_model, struct error *err)
{
    TRY(repository_find(repository, name, version, out_model, err));
    while (model_state(*out_model) == MODEL_UNLOADING) {
        model_unref(*out_model);
        TRY(repository_find(repository, name, version, out_model, err));
    }
    return ST_OK;
}

enum status infer_find_model(struct infer *infer, struct infer_call *call, const char *name,
                             uint32_t version, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->serving != NULL);
    struct model *model;
    infer_drop_model(call);
    TRY(find_present(&infer->serving->repository, name, version, &model, err));
    if (model_state(model) == MODEL_UNKNOWN) {
        snprintf(infer->absent, sizeof(infer->absent), "%s", model->origin->name);
        model_unref(model);
        return error_set(err, ST_WOULD_LOAD, "model '%s' is not loaded yet", infer->absent);
    }
    if (model_verify_ready(model, err) != ST_OK) {
        model_unref(model);
        return err->code;
    }
    call->model = model;
    return ST_OK;
}

/* The error of a step that begins again is none. That of one that waits for memory is told if it
 * has waited for too long. */
enum outcome infer_end_step(struct infer *infer, enum status status, struct error *err)
{
    bool is_short = infer->is_short && status == ST_EXHAUSTED;
    enum outcome outcome = status == ST_OK               ? OUTCOME_DONE
                           : status == ST_WOULD_BE_HEAVY ? OUTCOME_HEAVY
                           : status == ST_WOULD_PLAN     ? OUTCOME_PLAN
                           : status == ST_WOULD_LOAD     ? OUTCOME_LOAD
                           : is_short                    ? OUTCOME_WAIT_MEMORY
                                                         : OUTCOME_FAILED;
    infer->is_short = false;
    infer->was_alone &= outcome != OUTCOME_DONE;
    must(outcome < OUTCOME_WAIT_MEMORY || err->code == status);
    if (outcome == OUTCOME_HEAVY || outcome == OUTCOME_PLAN || outcome == OUTCOME_LOAD) {
        err->code = ST_OK;
    }
    return outcome;
}

bool infer_is_long(const struct infer *infer, enum infer_step step)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer->ops->life.is_long && infer->ops->life.is_long(infer, step);
}

unsigned infer_text_weight(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer->ops->life.is_long ? INFER_TEXT_WEIGHT : 1;
}

void infer_count(const struct infer *infer, int http_status, uint64_t now_ns)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    INFER_OP(infer, life.count)(infer, http_status, now_ns);
}

/* ---- before the body ------------------------------------------------------------------------- */

/* X-Request-Timeout-Ms, or grpc-timeout, which has been checked; a number too large to hold is no
 * limit. */
static bool read_timeout(const struct head *head, uint64_t *out_us, struct error *err)
{
    *out_us = 0;
    if (grpc_read_timeout(head_value(head, HTTP_GRPC_TIMEOUT), out_us)) {
        return true;
    }
    if (!head_has(head, HTTP_X_REQUEST_TIMEOUT_MS)) {
        return true;
    }
    struct span text = head_value(head, HTTP_X_REQUEST_TIMEOUT_MS);
    const uint8_t *at = text.ptr, *end = text.ptr + text.len;
    uint64_t ms = 0;
    enum number_result result = number_parse_u64(&at, end, &ms);
    if (head->counts[HTTP_X_REQUEST_TIMEOUT_MS] > 1 || result != NUMBER_OK || at != end || !ms) {
        error_set(err, ST_INVALID, "X-Request-Timeout-Ms: expected a number from 1 on, got '%.*s'",
                  SPAN_FMT(text));
        return false;
    }
    if (!__builtin_mul_overflow(ms, 1000, &ms)) {
        *out_us = ms;
    }
    return true;
}

static int check_codings(const struct head *head, struct error *err)
{
    struct span name = head_value(head, HTTP_CONTENT_ENCODING);
    enum coding coding;
    if (head->counts[HTTP_CONTENT_ENCODING] > 1) {
        error_set(err, ST_UNSUPPORTED, "Content-Encoding: expected one, got %u",
                  (unsigned)head->counts[HTTP_CONTENT_ENCODING]);
        return 415;
    }
    if (!coding_find(name, &coding)) {
        error_set(err, ST_UNSUPPORTED, "Content-Encoding: expected gzip or deflate, got '%.*s'",
                  SPAN_FMT(name));
        return 415;
    }
    if (head->counts[HTTP_INFERENCE_HEADER_CONTENT_LENGTH] > 1) {
        error_set(err, ST_INVALID, "Inference-Header-Content-Length: given more than once");
        return 400;
    }
    return 200;
}

int infer_find_target(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    enum status status =
        infer_find_model(infer, &infer->call, infer->model_name, infer->version, err);
    if (status == ST_WOULD_LOAD) {
        err->code = ST_OK;
        return 200;
    }
    return status == ST_OK ? 200 : status == ST_NOT_FOUND ? 404 : 503;
}

int infer_find_any(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return serving_verify(infer->serving, err) == ST_OK ? 200 : 503;
}

int infer_begin(struct infer *infer, const struct infer_ops *ops, const struct codec *codec,
                bool is_starting, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->call.model == NULL);
    int status = is_starting ? 200 : ops->life.find(infer, err);
    if (status == 200) {
        status = check_codings(infer->head, err);
    }
    if (status == 200 && infer->call.model) {
        status = codec_form_check(infer, codec, &infer->call, err);
    }
    if (status != 200) {
        return status;
    }
    infer->ops = ops;
    infer->call.codec = codec;
    infer->priority = 0;
    infer->has_keep = false;
    return read_timeout(infer->head, &infer->timeout_us, err) ? 200 : 400;
}

/* Bytes of the memory for requests. */
static size_t body_bytes(const struct infer *infer)
{
    return body_pool_bytes(infer->received) + body_pool_bytes(&infer->inflated);
}

enum status infer_refuse_memory(struct infer *infer, size_t demand, bool can_wait,
                                struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(err->code == ST_EXHAUSTED);
    struct hal_pool_stats stats;
    if (infer->arena.refusal == ST_EXHAUSTED) {
        return err->code; /* it was the heap, not the memory for requests */
    }
    size_t size = hal_pool_size(infer->pool), bodies = body_bytes(infer);
    hal_pool_stats(infer->pool, &stats);
    if (!add_size(demand, bodies, &demand) || !add_size(demand, infer->steps_bytes, &demand)) {
        demand = SIZE_MAX;
    }
    bool is_alone =
        stats.used_bytes <= infer_held_bytes(infer) + infer->charged_bytes + infer->answer_bytes;
    bool may_fit = !is_alone || (can_wait && !infer->was_alone);
    infer->was_alone = is_alone;
    infer->is_short = demand <= size && may_fit;
    return infer->is_short
               ? err->code
               : error_set(err, ST_TOO_LARGE,
                           "the request needs at least %zu bytes at once, the memory for requests "
                           "has %zu",
                           demand, size);
}

enum status infer_count_answer(struct infer *infer, size_t bytes, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    size_t before = infer->answer_bytes, now = bytes > INFER_KEEP_BYTES ? bytes : 0;
    if (now <= before) {
        shrink_answer(infer, now);
        return ST_OK;
    }
    if (!hal_pool_try_charge(infer->answer_pool, now - before)) {
        error_set(err, ST_EXHAUSTED, "no memory now for an answer of %zu bytes", bytes);
        return infer_refuse_memory(infer, bytes, false, err);
    }
    infer->answer_bytes = now;
    return ST_OK;
}

static enum status check_memory(struct infer *infer, enum status status, bool can_wait,
                                struct error *err)
{
    size_t demand;
    if (status != ST_EXHAUSTED) {
        return status;
    }
    if (!add_size(INFER_OP(infer, life.demand)(infer), infer->media.wanted, &demand)) {
        demand = SIZE_MAX;
    }
    return infer_refuse_memory(infer, demand, can_wait, err);
}

static enum status settle(struct infer *infer, struct error *err)
{
    if (!infer->ops->life.is_apart && !infer->call.model) {
        TRY(infer_find_model(infer, &infer->call, infer->model_name, infer->version, err));
    }
    join_pools(infer);
    infer->inflated.pool = infer->pool;
    return check_memory(infer, body_settle(infer->received, infer->pool, err), true, err);
}

enum outcome infer_settle(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops != NULL);
    return infer_end_step(infer, settle(infer, err), err);
}

/* ---- PARSE ----------------------------------------------------------------------------------- */

/* Makes |in| without its coding infer->body, up to |max| bytes. */
static enum status inflate(struct infer *infer, enum coding coding, struct span in, size_t max,
                           struct error *err)
{
    infer->body = &infer->inflated;
    body_reset(&infer->inflated); /* an earlier attempt may have run out of memory */
    uint64_t work_max = work_piece_max(&infer->work, infer->work.place);
    infer->inflated.max_bytes = work_max && work_max < max ? (size_t)work_max : max;
    enum status status = coding_inflate(coding, in, &infer->inflated, err);
    if (status == ST_TOO_LARGE && infer->inflated.max_bytes < max) {
        body_reset(&infer->inflated);
        return work_add(&infer->work, work_max + 1, err);
    }
    return check_memory(infer, status, true, err);
}

static enum status remove_coding(struct infer *infer, struct error *err)
{
    enum coding coding;
    bool is_known = coding_find(head_value(infer->head, HTTP_CONTENT_ENCODING), &coding);
    must(is_known);
    if (coding == CODING_IDENTITY) {
        infer->body = infer->received;
        return ST_OK;
    }
    return inflate(infer, coding, body_span(infer->received), infer->env->params->body_bytes_max,
                   err);
}

enum status infer_take_message(struct infer *infer, size_t max, struct span *out, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct grpc_frame frame;
    enum coding coding;
    bool is_known = coding_find(head_value(infer->head, HTTP_GRPC_ENCODING), &coding);
    must(is_known);
    infer->body = infer->received;
    TRY(grpc_take_only(body_span(infer->received), &frame, err));
    *out = frame.message;
    if (!frame.is_compressed) {
        return ST_OK;
    }
    if (coding == CODING_IDENTITY) {
        return error_set(err, ST_INVALID, "a compressed message needs the field grpc-encoding");
    }
    TRY(inflate(infer, coding, frame.message, max, err));
    *out = body_span(&infer->inflated);
    return ST_OK;
}

/* Priorities begin with 1, the highest. */
void infer_take_parameters(struct infer *infer, const struct oip_parameters *parameters)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    uint64_t priority = parameters->priority, timeout_us = parameters->timeout_us;
    if (priority && (!infer->priority || priority < infer->priority)) {
        infer->priority = priority < UINT32_MAX ? (uint32_t)priority : UINT32_MAX;
    }
    if (timeout_us && (!infer->timeout_us || timeout_us < infer->timeout_us)) {
        infer->timeout_us = timeout_us;
    }
}

/* An earlier attempt may have found no file or no memory. */
static void begin_anew(struct infer *infer)
{
    if (infer->own) {
        infer_drop_own(infer);
        infer_shared_drop(infer);
        arena_reset(&infer->arena);
    }
}

/* The body is JSON, with or without tensors behind it, or a message. */
static enum status split_body(struct infer *infer, struct oip_body *out, struct error *err)
{
    if (infer->call.codec->is_message) {
        *out = (struct oip_body){.is_raw = false};
        return infer_take_message(infer, infer->env->params->body_bytes_max, &out->binary, err);
    }
    TRY(remove_coding(infer, err));
    struct span length = head_value(infer->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    bool has_length = head_has(infer->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    return oip_split_body(body_span(infer->body), has_length ? &length : NULL, out, err);
}

static enum status parse_body(struct infer *infer, struct error *err)
{
    struct oip_body parts;
    infer->steps_bytes = 0;
    infer->call_count = 0;
    begin_anew(infer);
    TRY(split_body(infer, &parts, err));
    TRY(INFER_OP(infer, life.parse)(infer, &parts, err));
    return count_arena(infer, err);
}

enum outcome infer_parse(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer_end_step(infer, parse_body(infer, err), err);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

/* A repeated DECODE may be for another generation of the model. */
void infer_run_in(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct hal_pool *running = infer->call.model->run_pool;
    if (infer->running != running) {
        if (infer->running) {
            hal_pool_leave(infer->run_pool);
        }
        hal_pool_join(infer->run_pool, running);
        infer->running = running;
    }
    rt_invocation_run_in(infer->call.invocation, infer->run_pool);
}

enum status infer_invoke(struct infer *infer, struct rt_method *method, struct error *err)
{
    must(infer->call.invocation == NULL); /* an earlier one was undone */
    struct rt_invocation **out = &infer->call.invocation;
    TRY(infer_has_runs(infer) /* one of many runs waits for memory before it begins */
            ? rt_invocation_new(method, infer->pool, out, err)
            : rt_invocation_new_small(method, infer->pool, out, err));
    infer_run_in(infer);
    return ST_OK;
}

enum status infer_input(struct infer *infer, struct infer_call *call, uint32_t index,
                        enum dtype dtype, const struct shape *shape, void **out_ptr,
                        struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(call->invocation != NULL);
    size_t bytes;
    TRY(shape_bytes(shape, dtype, &bytes, err));
    TRY(work_add(&infer->work, bytes, err));
    return rt_invocation_input(call->invocation, index, dtype, shape, out_ptr, err);
}

/* The loop makes only so many calls itself. */
static enum status check_calls(const struct infer *infer, struct error *err)
{
    return infer->call_count > INFER_CALLS_INLINE_MAX ? work_leave_loop(&infer->work, err) : ST_OK;
}

/* From here on inputs have memory of their own or keep the body's; nothing else borrows from the
 * body. */
static void drop_bodies(struct infer *infer)
{
    body_reset(infer->received);
    body_reset(&infer->inflated);
}

/* All inputs have been decoded, or |status| says why not. */
static enum status end_decode(struct infer *infer, enum status status, struct error *err)
{
    status = check_memory(infer, status, true, err);
    if (status == ST_OK) {
        status = count_arena(infer, err);
    }
    infer_media_stop(infer, status == ST_OK);
    infer->media.count = 0;
    infer->media.wanted = 0;
    infer->media.work = 0;
    if (status != ST_OK) {
        INFER_OP(infer, life.undo)(infer); /* nobody else frees the invocations of a list */
        infer->bound_bytes = 0;
        infer->cut_texts = 0;
        return status;
    }
    TRY(INFER_OP(infer, run.open_states)(infer, err));
    drop_bodies(infer);
    return ST_OK;
}

static enum status decode_body(struct infer *infer, struct error *err)
{
    TRY(check_calls(infer, err));
    enum status status = count_steps(infer, err);
    if (status == ST_OK) {
        status = INFER_OP(infer, life.decode)(infer, err);
    }
    if (status == ST_OK && infer_media_needs_threads(infer)) {
        return ST_OK; /* infer_end_media() does the rest */
    }
    if (status == ST_OK) {
        status = infer_media_read(infer, err);
    }
    return end_decode(infer, status, err);
}

enum outcome infer_decode(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    enum outcome outcome = infer_end_step(infer, decode_body(infer, err), err);
    bool has_files = outcome == OUTCOME_DONE && infer_media_needs_threads(infer);
    return has_files ? OUTCOME_FILES : outcome;
}

enum outcome infer_end_media(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer_end_step(infer, end_decode(infer, infer_media_end(infer, err), err), err);
}

/* ---- PREPARE, RUN ---------------------------------------------------------------------------- */

/* The loop uses plans that exist; a thread makes new ones. */
static enum status prepare(struct infer *infer, struct error *err)
{
    bool is_on_loop = infer->work.place == WORK_ON_LOOP;
    enum rt_prepare_mode mode = is_on_loop ? RT_PREPARE_CACHED : RT_PREPARE_ALL;
    must(infer->ops != NULL);
    TRY(check_calls(infer, err));
    enum status status = INFER_OP(infer, run.prepare)(infer, mode, err);
    bool can_wait = !infer->ops->run.is_prepared_once;
    status = check_memory(infer, status, can_wait, err);
    infer->is_short &= can_wait;
    return status;
}

enum outcome infer_prepare(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer_end_step(infer, prepare(infer, err), err);
}

void infer_explain(const struct infer_call *call, const struct error *why,
                   const struct rt_culprit *culprit, struct error *err)
{
    must(why->code != ST_OK);
    char element[RT_CULPRIT_TEXT_MAX], behind[RT_CULPRIT_TEXT_MAX + 2];
    *err = *why;
    if (culprit->is_known) {
        snprintf(behind, sizeof(behind), "%s: ", rt_culprit_print(culprit, element));
        call->codec->name_input(call, culprit->input, behind, err);
    }
}

static struct infer *infer_of(struct rt_sched_job *job)
{
    struct infer *infer;
    OBJ_CAST(infer, LIST_ENTRY(job, struct infer, job), INFER_MAGIC);
    return infer;
}

static bool start_job(struct rt_sched_job *job, bool may_run_inline)
{
    struct infer *infer = infer_of(job);
    enum hal_caller caller = may_run_inline ? HAL_CALLER_QUICK : HAL_CALLER_BUSY;
    must(infer->run_err != NULL);
    return INFER_OP(infer, run.start)(infer, caller, infer->run_err);
}

static bool cancel_job(struct rt_sched_job *job)
{
    struct infer *infer = infer_of(job);
    return INFER_OP(infer, run.cancel)(infer);
}

/* On a worker, or on the loop while it submits, cancels or looks at deadlines. */
static void end_job(struct rt_sched_job *job, enum status status)
{
    struct infer *infer = infer_of(job);
    if (job->batch_size > 1) {
        infer->run_err->code = ST_OK; /* an earlier attempt, alone, may have run out of memory */
    }
    infer->run_err = NULL;
    infer->env->note_run(infer, status);
}

static const struct rt_sched_job_ops job_ops = {
    .start = start_job,
    .start_batch = rt_job_start_batch,
    .fits = rt_job_fits,
    .cancel = cancel_job,
    .done = end_job,
};

enum status infer_submit(struct infer *infer, struct rt_sched_queue **out_queue, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops && infer->arrived_ns > 0);
    must(!infer->run_err); /* one run at a time */
    struct rt_sched_queue *queue = INFER_OP(infer, run.enter)(infer);
    infer->job.ops = &job_ops;
    infer->job.deadline_ns = infer_deadline_ns(infer);
    infer->job.priority = infer->priority;
    infer->job.bytes = infer_held_bytes(infer);
    infer->job.client = infer->client->id;
    infer->run_err = err;
    *out_queue = queue;
    /* Several runs follow each other: on the loop they would take more than a turn. */
    enum status status = rt_sched_submit(queue, &infer->job, !infer_has_runs(infer), err);
    if (status != ST_OK) {
        infer->run_err = NULL;
    }
    if (status != ST_OK && infer->call.model) {
        error_prefix(err, "model '%s': ", infer->call.model->name);
    }
    return status;
}

enum outcome infer_finish(struct infer *infer, enum status status, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops != NULL);
    if (status == ST_OK && infer->ops->run.count_run) {
        infer->ops->run.count_run(infer);
    }
    return infer_end_step(infer, INFER_OP(infer, run.finish)(infer, status, err), err);
}

bool infer_has_runs(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer->ops->run.sample != NULL;
}

bool infer_is_over(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops->run.is_over != NULL);
    return infer->ops->run.is_over(infer);
}

enum outcome infer_sample(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops->run.sample != NULL);
    struct infer_call *call = &infer->call;
    enum status status = infer->ops->run.sample(infer, err);
    if (status != ST_WOULD_BE_HEAVY) {
        rt_invocation_free(call->invocation);
        call->invocation = NULL;
    }
    infer->is_short = false; /* the results of the run are there: the step waits for no memory */
    return infer_end_step(infer, status, err);
}

size_t infer_calls_bytes(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops != NULL);
    const struct infer_life *life = &infer->ops->life;
    size_t own = life->own_bytes && infer->own ? life->own_bytes(infer) : 0;
    return INFER_OP(infer, life.held_bytes)(infer) + own;
}

size_t infer_held_bytes(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer_calls_bytes(infer) + infer->bound_bytes + body_bytes(infer);
}
