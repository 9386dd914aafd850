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
#include "server/daemon/request/request.h"
#include "server/daemon/server.h"
#include "server/daemon/serving/serving.h"

static enum status parse(struct request *request, const struct oip_body *parts, struct error *err)
{
    struct infer *infer = &request->infer;
    struct infer_call *call = &infer->call;
    OBJ_CHECK(call->model, MODEL_MAGIC);
    TRY(call->codec->parse(request, call, parts, NULL, err));
    struct model *newest;
    if (infer_sequence_find_generation(request, call, &newest)) {
        if (infer->newest) {
            model_unref(newest); /* a repeated attempt: the sequence is in yet another one now */
        } else {
            infer->newest = newest;
        }
        TRY(call->codec->parse(request, call, parts, NULL, err));
    }
    infer_take_parameters(&request->infer, call->parameters);
    request->infer.steps_bytes = rt_method_steps_bytes(call->model->method);
    request->infer.call_count = rt_method_call_count(call->model->method);
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

static enum status decode(struct request *request, struct error *err)
{
    struct infer_call *call = &request->infer.call;
    struct infer *infer = &request->infer;
    OBJ_CHECK(call->model, MODEL_MAGIC);
    must(call->invocation == NULL); /* an earlier attempt was undone */
    TRY(rt_invocation_new(call->model->method, infer->pool, &call->invocation, err));
    infer_run_in(request, call->invocation);
    TRY(call->codec->decode(request, call, err));
    return keep_id(infer, err);
}

static enum status open_states(struct request *request, struct error *err)
{
    TRY(infer_profile_begin(request, err));
    return infer_sequence_open(request, &request->infer.call, err);
}

void infer_one_undo(struct request *request)
{
    struct infer_call *call = &request->infer.call;
    rt_invocation_free(call->invocation);
    call->invocation = NULL;
    call->output_count = 0;
}

enum status infer_one_prepare(struct request *request, enum rt_prepare_mode mode, struct error *err)
{
    return rt_invocation_plan(request->infer.call.invocation, mode, err);
}

size_t infer_one_demand(const struct request *request)
{
    const struct rt_invocation *invocation = request->infer.call.invocation;
    return invocation ? rt_invocation_demand(invocation) : 0;
}

size_t infer_one_held_bytes(const struct request *request)
{
    const struct rt_invocation *invocation = request->infer.call.invocation;
    return invocation ? rt_invocation_bytes(invocation) : 0;
}

/* ---- RUN ------------------------------------------------------------------------------------- */

struct rt_sched_queue *infer_one_enter(struct request *request)
{
    const struct infer_call *call = &request->infer.call;
    OBJ_CHECK(call->model, MODEL_MAGIC);
    must(call->invocation && call->model->queue);
    bool may_join = call->model->rows_max > 1 && !request->infer.profile;
    request->job.rows = may_join ? rt_batch_rows(call->invocation) : 0;
    request->job.returns = false;
    request->job.since_ns = 0;
    request->job.call = call->invocation;
    request->job.tickets = &request->infer.ticket;
    request->job.ticket_count = call->sequence != NULL;
    if (call->sequence) {
        request->infer.ticket.lane = rt_sequence_lane(call->sequence);
    }
    return call->model->queue;
}

bool infer_one_start(struct request *request, enum hal_caller caller)
{
    struct rt_invocation *invocation = request->infer.call.invocation;
    struct error *err = &request->err;
    err->code = ST_OK; /* an earlier attempt may have run out of memory */
    if (rt_invocation_prepare(invocation, RT_PREPARE_ALL, err) == ST_OK) {
        rt_invocation_hand_over(invocation, &request->job);
        rt_invocation_submit(invocation, caller, rt_job_end, &request->job);
        return true;
    }
    if (err->code == ST_EXHAUSTED) {
        return false;
    }
    rt_sched_finished(&request->job, err->code);
    return true;
}

bool infer_one_cancel(struct request *request)
{
    must(request->infer.call.invocation != NULL);
    return rt_batch_leave(request->infer.call.invocation);
}

enum status infer_one_finish(struct request *request, enum status status, struct error *err)
{
    struct infer_call *call = &request->infer.call;
    bool is_refused = err->code == status; /* after start(), which has set the reason */
    if (status == ST_OK) {
        infer_sequence_end(call);
        return ST_OK;
    }
    if (status == ST_TIMEOUT) {
        infer_fail_late(request, err);
    } else if (!is_refused) {
        infer_explain(call, rt_invocation_error(call->invocation),
                      rt_invocation_culprit(call->invocation), err);
        err->code = status;
    } else if (status == ST_EXHAUSTED) {
        infer_refuse_memory(request, infer_one_demand(request), err);
    }
    return error_prefix(err, "model '%s': ", call->model->name);
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct request *request)
{
    return infer_text_bytes(request, &request->infer.call);
}

static size_t print_bytes(const struct request *request)
{
    return infer_answer_work_bytes(&request->infer.call);
}

static enum status print(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    struct infer_call *call = &infer->call;
    struct oip_encoded *encoded = &infer->encoded;
    must(call->invocation != NULL);
    call->sample_count = stats_sample_count(call);
    if (call->codec->store) {
        TRY(call->codec->store(call, err));
    }
    encoded->spans = arena_array(&infer->arena, call->output_count + 1, sizeof(struct span));
    if (!encoded->spans) {
        return arena_fail(&infer->arena, "the answer", err);
    }
    oip_encode_begin(encoded);
    buf_add_char(&request->out, '{');
    if (call->oip.has_id) {
        oip_print_id(&request->out, call->oip.id);
    }
    TRY(call->codec->print(request, call, err));
    TRY(infer_profile_print(request, err));
    buf_add_char(&request->out, '}');
    oip_encode_end_json(&request->out, encoded);
    if (call->codec->print_tail) {
        call->codec->print_tail(request, call);
    }
    return oip_encode_end(&request->out, encoded, err);
}

static void release(struct request *request)
{
    rt_invocation_free(request->infer.call.invocation);
    request->infer.call.invocation = NULL;
}

static enum status hand_over(struct request *request, struct hal_pool *pool, struct error *err)
{
    must(request->infer.call.invocation != NULL);
    return rt_invocation_move_results(request->infer.call.invocation, pool, err);
}

void infer_one_count(const struct request *request, uint64_t now_ns)
{
    const struct model *model = request->infer.call.model;
    int status = request->http_status ? request->http_status : 200;
    if (model) { /* NULL: its file was not loaded */
        OBJ_CHECK(model, MODEL_MAGIC);
        stats_add(model->stats, request, &request->infer.call, status, now_ns);
    }
}

/* The model that the target names. */
static int find(struct request *request)
{
    enum status status = infer_find_model(request, &request->infer.call, request->match.model,
                                          request->match.version, &request->err);
    if (status == ST_WOULD_LOAD) {
        request->err.code = ST_OK; /* the body may come before that; see infer_settle() */
        return 200;
    }
    return status == ST_OK ? 200 : status == ST_NOT_FOUND ? 404 : 503;
}

const struct infer_ops infer_ops_one = {
    .find = find,
    .parse = parse,
    .decode = decode,
    .open_states = open_states,
    .undo = infer_one_undo,
    .prepare = infer_one_prepare,
    .demand = infer_one_demand,
    .held_bytes = infer_one_held_bytes,
    .enter = infer_one_enter,
    .start = infer_one_start,
    .cancel = infer_one_cancel,
    .finish = infer_one_finish,
    .encode_bytes = encode_bytes,
    .print_bytes = print_bytes,
    .print = print,
    .release = release,
    .hand_over = hand_over,
    .count = infer_one_count,
};
