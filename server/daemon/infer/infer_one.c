/* SPDX-License-Identifier: MIT */
/* Requests for one model: a request is a call. */
#include "config.h"

#include "server/daemon/infer/infer_one.h"

#include "base/check.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/sched/job.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_answer.h"
#include "server/daemon/infer/infer_profile.h"
#include "server/daemon/infer/infer_sequence.h"
#include "server/daemon/infer/stats.h"
#include "server/daemon/serving/serving.h"

static enum status parse_one(struct infer *infer, const struct oip_body *parts, struct error *err)
{
    struct infer_call *call = &infer->call;
    OBJ_CHECK(call->model, MODEL_MAGIC);
    TRY(call->codec->parse(infer, call, parts, NULL, err));
    struct model *newest;
    if (infer_sequence_find_generation(infer, call, &newest)) {
        if (infer->newest) {
            model_unref(newest); /* a repeated attempt: the sequence is in yet another one now */
        } else {
            infer->newest = newest;
        }
        TRY(call->codec->parse(infer, call, parts, NULL, err));
    }
    infer_take_parameters(infer, call->parameters);
    infer->steps_bytes = rt_method_steps_bytes(call->model->method);
    infer->call_count = rt_method_call_count(call->model->method);
    return ST_OK;
}

/* The parts of the request that the answer repeats are kept when the body is freed. */
static enum status keep_id(struct infer *infer, struct error *err)
{
    struct oip_request *oip = &infer->call.oip;
    const char *copy = oip->has_id ? arena_strdup(&infer->arena, oip->id.ptr, oip->id.len) : "";
    if (!copy) {
        return arena_fail(&infer->arena, "the request", err);
    }
    oip->id = infer->id = span_of(copy, oip->id.len);
    return ST_OK;
}

static enum status decode_one(struct infer *infer, struct error *err)
{
    struct infer_call *call = &infer->call;
    OBJ_CHECK(call->model, MODEL_MAGIC);
    TRY(infer_invoke(infer, call->model->method, err));
    TRY(call->codec->decode(infer, call, err));
    return keep_id(infer, err);
}

static enum status open_states(struct infer *infer, struct error *err)
{
    TRY(infer_profile_begin(infer, err));
    return infer_sequence_open(infer, &infer->call, err);
}

static void undo(struct infer *infer)
{
    struct infer_call *call = &infer->call;
    rt_invocation_free(call->invocation);
    call->invocation = NULL;
    call->output_count = 0;
}

static enum status prepare_one(struct infer *infer, enum rt_prepare_mode mode, struct error *err)
{
    return rt_invocation_plan(infer->call.invocation, mode, err);
}

static size_t demand(const struct infer *infer)
{
    const struct rt_invocation *invocation = infer->call.invocation;
    return invocation ? rt_invocation_demand(invocation) : 0;
}

static size_t held_bytes(const struct infer *infer)
{
    const struct rt_invocation *invocation = infer->call.invocation;
    return invocation ? rt_invocation_bytes(invocation) : 0;
}

/* ---- RUN ------------------------------------------------------------------------------------- */

struct rt_sched_queue *infer_one_enter(struct infer *infer)
{
    const struct infer_call *call = &infer->call;
    OBJ_CHECK(call->model, MODEL_MAGIC);
    must(call->invocation && call->model->queue);
    bool may_join = call->model->rows_max > 1 && !infer->profile;
    infer->job.rows = may_join ? rt_batch_rows(call->invocation) : 0;
    infer->job.returns = false;
    infer->job.since_ns = 0;
    infer->job.call = call->invocation;
    infer->job.tickets = &infer->ticket;
    infer->job.ticket_count = call->sequence != NULL;
    if (call->sequence) {
        infer->ticket.lane = rt_sequence_lane(call->sequence);
    }
    return call->model->queue;
}

static bool start_one(struct infer *infer, enum hal_caller caller, struct error *err)
{
    struct rt_invocation *invocation = infer->call.invocation;
    err->code = ST_OK; /* an earlier attempt may have run out of memory */
    if (rt_invocation_prepare(invocation, RT_PREPARE_ALL, err) == ST_OK) {
        rt_invocation_hand_over(invocation, &infer->job);
        rt_invocation_submit(invocation, caller, rt_job_end, &infer->job);
        return true;
    }
    if (err->code == ST_EXHAUSTED) {
        return false;
    }
    rt_sched_finished(&infer->job, err->code);
    return true;
}

static bool cancel_one(struct infer *infer)
{
    must(infer->call.invocation != NULL);
    return rt_batch_leave(infer->call.invocation);
}

static enum status finish_one(struct infer *infer, enum status status, struct error *err)
{
    struct infer_call *call = &infer->call;
    bool is_refused = err->code == status; /* after start(), which has set the reason */
    if (status == ST_OK) {
        infer_sequence_end(call);
        return ST_OK;
    }
    if (status == ST_TIMEOUT) {
        infer_fail_late(infer, err);
    } else if (!is_refused) {
        infer_explain(call, rt_invocation_error(call->invocation),
                      rt_invocation_culprit(call->invocation), err);
        err->code = status;
    } else if (status == ST_EXHAUSTED) {
        infer_refuse_memory(infer, demand(infer), false, err);
    }
    return error_prefix(err, "model '%s': ", call->model->name);
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct infer *infer)
{
    return infer_text_bytes(infer, &infer->call);
}

static size_t print_bytes(const struct infer *infer)
{
    return infer_answer_work_bytes(&infer->call);
}

static size_t tensor_count(const struct infer *infer)
{
    return infer->call.output_count * (infer->call.codec->is_message ? 2 : 1);
}

static enum status print(struct infer *infer, struct error *err)
{
    struct infer_call *call = &infer->call;
    must(call->invocation != NULL);
    call->sample_count = stats_sample_count(call);
    if (call->codec->store) {
        TRY(call->codec->store(call, err));
    }
    if (call->codec->is_message) {
        return call->codec->print(infer, call, err);
    }
    buf_add_char(infer->out, '{');
    if (call->oip.has_id) {
        oip_print_id(infer->out, call->oip.id);
    }
    TRY(call->codec->print(infer, call, err));
    TRY(infer_profile_print(infer, err));
    buf_add_char(infer->out, '}');
    return ST_OK;
}

static void print_tail(struct infer *infer)
{
    const struct infer_call *call = &infer->call;
    if (call->codec->print_tail) {
        call->codec->print_tail(infer, call);
    }
}

static void release(struct infer *infer)
{
    rt_invocation_free(infer->call.invocation);
    infer->call.invocation = NULL;
}

static enum status hand_over(struct infer *infer, struct hal_pool *pool, struct error *err)
{
    must(infer->call.invocation != NULL);
    return rt_invocation_move_results(infer->call.invocation, pool, err);
}

void infer_one_count(const struct infer *infer, int http_status, uint64_t now_ns)
{
    const struct model *model = infer->call.model;
    if (model) { /* NULL: its file was not loaded */
        OBJ_CHECK(model, MODEL_MAGIC);
        stats_add(model->stats, infer, &infer->call, http_status ? http_status : 200, now_ns);
    }
}

const struct infer_ops infer_one_ops = {
    .life =
        {
            .find = infer_find_target,
            .parse = parse_one,
            .decode = decode_one,
            .undo = undo,
            .demand = demand,
            .held_bytes = held_bytes,
            .count = infer_one_count,
        },
    .run =
        {
            .open_states = open_states,
            .prepare = prepare_one,
            .enter = infer_one_enter,
            .start = start_one,
            .cancel = cancel_one,
            .finish = finish_one,
        },
    .print =
        {
            .encode_bytes = encode_bytes,
            .print_bytes = print_bytes,
            .tensor_count = tensor_count,
            .print = print,
            .print_tail = print_tail,
            .release = release,
            .hand_over = hand_over,
        },
};
