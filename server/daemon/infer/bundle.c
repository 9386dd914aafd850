/* SPDX-License-Identifier: MIT */
/* A list of calls from the order of its steps to its answer. */
#include "config.h"

#include "server/daemon/infer/bundle.h"

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/oracle.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_answer.h"
#include "server/daemon/infer/infer_sequence.h"
#include "server/daemon/infer/stats.h"
#include "server/daemon/serving/serving.h"
#include "server/http/http.h"

struct bundle *bundle_of(const struct infer *infer)
{
    struct bundle *bundle;
    OBJ_CAST(bundle, infer->own, BUNDLE_MAGIC);
    return bundle;
}

static void free_bundle(struct infer *infer)
{
    struct bundle *bundle = bundle_of(infer);
    rt_cascade_free(bundle->cascade);
    for (uint32_t i = 0; i < bundle->count; i++) {
        infer_sequence_close(infer, &bundle->calls[i].call);
        infer_drop_model(&bundle->calls[i].call);
    }
    bundle->magic = 0;
}

struct bundle_call *bundle_call_of(const struct bundle *bundle, uint32_t step)
{
    must(step < bundle->count && bundle->order[step] < bundle->count);
    return &bundle->calls[bundle->order[step]];
}

/* ---- DECODE, PREPARE ------------------------------------------------------------------------- */

/* One answer may have only so many spans. */
static enum status count_binary(const struct bundle_call *call, size_t *total, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; !call->is_silent && i < call->call.output_count; i++) {
        count += call->call.outputs[i].is_binary;
    }
    if (count > INFER_OUTPUTS_MAX - *total) {
        return error_set(err, ST_TOO_LARGE,
                         "expected at most %d binary outputs in all requests together",
                         INFER_OUTPUTS_MAX);
    }
    *total += count;
    return ST_OK;
}

/* Lack of memory, or more work than a light step may do, ends the step for the whole list; any
 * other error stays with its call. */
static enum status decode_call(struct infer *infer, struct bundle_call *call, size_t *binary_count)
{
    struct infer_call *inner = &call->call;
    if (call->err.code != ST_OK) {
        return ST_OK;
    }
    enum status status =
        rt_invocation_new(inner->model->method, infer->pool, &inner->invocation, &call->err);
    if (status == ST_OK) {
        status = inner->codec->decode(infer, inner, &call->err);
    }
    if (status == ST_OK) {
        status = count_binary(call, binary_count, &call->err);
    }
    return status == ST_EXHAUSTED || status == ST_WOULD_BE_HEAVY ? status : ST_OK;
}

/* The list has one ticket for each sequence, even if several of its calls belong to that sequence.
 */
static void add_ticket(struct bundle *bundle, struct rt_sequence *sequence)
{
    struct rt_sched_lane *lane = rt_sequence_lane(sequence);
    uint32_t i = 0;
    while (i < bundle->ticket_count && bundle->tickets[i].lane != lane) {
        i++;
    }
    bundle->tickets[i].lane = lane;
    bundle->ticket_count = i == bundle->ticket_count ? i + 1 : bundle->ticket_count;
}

/* True if no earlier call is the last one of its sequence. */
static enum status check_open(const struct bundle *bundle, uint32_t step, struct error *err)
{
    const struct rt_sequence *sequence = bundle_call_of(bundle, step)->call.sequence;
    for (uint32_t i = 0; i < step; i++) {
        const struct infer_call *before = &bundle_call_of(bundle, i)->call;
        if (before->sequence == sequence && before->is_sequence_end) {
            return error_set(
                err, ST_INVALID,
                "parameters.sequence_id: request [%u] is the last one of this sequence",
                bundle->order[i]);
        }
    }
    return ST_OK;
}

/* In the order in which the calls will run. */
static enum status open_sequences(struct infer *infer, struct error *err)
{
    struct bundle *bundle = bundle_of(infer);
    bundle->tickets = arena_array(&infer->arena, bundle->count, sizeof(*bundle->tickets));
    bundle->queues = arena_array(&infer->arena, bundle->count, sizeof(struct rt_sched_queue *));
    if (!bundle->tickets || !bundle->queues) {
        return arena_fail(&infer->arena, "the list", err);
    }
    for (uint32_t step = 0; step < bundle->count; step++) {
        struct bundle_call *call = bundle_call_of(bundle, step);
        if (call->err.code == ST_OK &&
            infer_sequence_open(infer, &call->call, &call->err) == ST_OK && call->call.sequence &&
            check_open(bundle, step, &call->err) == ST_OK) {
            add_ticket(bundle, call->call.sequence);
        }
    }
    return ST_OK;
}

/* The cascade owns the invocations from here on; invocations of failed calls are freed. */
static void fill_cascade(struct bundle *bundle)
{
    for (uint32_t step = 0; step < bundle->count; step++) {
        struct bundle_call *call = bundle_call_of(bundle, step);
        if (call->err.code != ST_OK) {
            rt_invocation_free(call->call.invocation);
            call->call.invocation = NULL;
            rt_cascade_fail_step(bundle->cascade, step, &call->err);
        } else {
            rt_cascade_set_step(bundle->cascade, step, call->call.invocation);
            bundle->queues[step] = call->call.model->queue;
        }
    }
}

static void undo(struct infer *infer)
{
    struct bundle *bundle = bundle_of(infer);
    for (uint32_t i = 0; i < bundle->count; i++) {
        struct infer_call *call = &bundle->calls[i].call;
        rt_invocation_free(call->invocation);
        call->invocation = NULL;
        call->output_count = 0;
    }
}

static enum status decode_list(struct infer *infer, struct error *err)
{
    struct bundle *bundle = bundle_of(infer);
    size_t binary_count = 0;
    TRY(bundle_make_edges(infer, err));
    for (uint32_t i = 0; i < bundle->count; i++) {
        struct bundle_call *call = &bundle->calls[i];
        if (decode_call(infer, call, &binary_count) != ST_OK) {
            *err = call->err;
            call->err.code = ST_OK;
            return bundle_prefix(i, ": ", err);
        }
    }
    return ST_OK;
}

static enum status open_states(struct infer *infer, struct error *err)
{
    struct bundle *bundle = bundle_of(infer);
    enum status status = open_sequences(infer, err);
    if (status == ST_OK) {
        bundle->cascade = rt_cascade_new(&bundle->layout, true);
        status = bundle->cascade ? ST_OK : error_no_memory(err, "a list of requests");
    }
    if (status != ST_OK) {
        undo(infer);
        return status;
    }
    fill_cascade(bundle);
    return ST_OK;
}

static enum status prepare_list(struct infer *infer, enum rt_prepare_mode mode, struct error *err)
{
    struct bundle *bundle = bundle_of(infer);
    struct error failure; /* calls that failed alone leave a text, too */
    uint32_t step;
    enum status status = rt_cascade_prepare(bundle->cascade, mode, &step, &failure);
    if (status != ST_OK && status != ST_WOULD_PLAN) {
        *err = failure;
        bundle->demand = rt_cascade_demand(bundle->cascade);
        rt_cascade_reset(bundle->cascade);
    }
    return status;
}

/* Of the calls that are decoded so far, as long as there is no cascade; see |measure|. */
static size_t sum_up(const struct bundle *bundle,
                     size_t (*measure)(const struct rt_invocation *invocation))
{
    size_t sum = 0;
    for (uint32_t i = 0; i < bundle->count; i++) {
        const struct rt_invocation *invocation = bundle->calls[i].call.invocation;
        if (invocation && !add_size(sum, measure(invocation), &sum)) {
            return SIZE_MAX;
        }
    }
    return sum;
}

/* The inputs of all calls are there before the first call runs. */
static size_t demand(const struct infer *infer)
{
    const struct bundle *bundle = infer->own;
    if (!bundle) {
        return 0;
    }
    return bundle->cascade ? bundle->demand : sum_up(bundle, rt_invocation_input_demand);
}

static size_t held_bytes(const struct infer *infer)
{
    const struct bundle *bundle = infer->own;
    if (!bundle) {
        return 0;
    }
    return bundle->cascade ? rt_cascade_bytes(bundle->cascade)
                           : sum_up(bundle, rt_invocation_bytes);
}

/* ---- RUN ------------------------------------------------------------------------------------- */

/* Calls of one model run as one, up to the number of rows that is best for the model. */
static void join_calls(struct bundle *bundle)
{
    for (uint32_t step = 0; step < bundle->count; step++) {
        const struct bundle_call *call = bundle_call_of(bundle, step);
        const struct model *model = call->call.model;
        if (call->err.code == ST_OK && model->rows_max > 1) {
            struct rt_sched_sizes sizes;
            rt_sched_queue_sizes(model->queue, &sizes);
            rt_cascade_join(bundle->cascade, step, sizes.rows_max);
        }
    }
}

static struct rt_sched_queue *enter(struct infer *infer)
{
    OBJ_CHECK(infer->serving, SERVING_MAGIC);
    join_calls(bundle_of(infer));
    infer->job.rows = 0;
    infer->job.returns = false;
    infer->job.since_ns = 0; /* of an earlier use of the request */
    infer->job.tickets = bundle_of(infer)->tickets;
    infer->job.ticket_count = bundle_of(infer)->ticket_count;
    return infer->serving->bundles;
}

/* For the scheduler the list was cut short if one of its calls was. */
static void on_cascade_done(struct rt_cascade *cascade, enum status status, void *arg)
{
    struct infer *infer = arg;
    for (uint32_t i = 0; i < bundle_of(infer)->count; i++) {
        if (rt_cascade_status(cascade, i) == ST_CANCELLED) {
            status = ST_CANCELLED;
        }
    }
    rt_sched_finished(&infer->job, status);
}

/* May a call of the list run as one with other calls? */
static bool joins(const struct bundle *bundle)
{
    for (uint32_t step = 0; step < bundle->count; step++) {
        if (bundle->queues[step] &&
            (rt_sched_queue_joins(bundle->queues[step]) ||
             rt_pipeline_joins(bundle_call_of(bundle, step)->call.model->method))) {
            return true;
        }
    }
    return false;
}

/* While nothing else waits or runs, the calls are submitted at once, and join only each other. */
static bool start_list(struct infer *infer, enum hal_caller caller, struct error *err)
{
    (void)err; /* it starts always */
    const struct bundle *bundle = bundle_of(infer);
    if (joins(bundle) && rt_sched_yield(&infer->job)) {
        rt_cascade_hand_over(bundle->cascade, &infer->job, bundle->queues);
    }
    rt_cascade_submit(bundle->cascade, NULL, 0, caller, on_cascade_done, infer);
    return true;
}

static bool cancel_list(struct infer *infer)
{
    rt_cascade_cancel(bundle_of(infer)->cascade);
    return false;
}

/* The reason why the call of |step| has no answer. */
static void explain(const struct infer *infer, uint32_t step, bool is_late)
{
    const struct bundle *bundle = bundle_of(infer);
    struct bundle_call *call = bundle_call_of(bundle, step);
    uint32_t cause = rt_cascade_cause(bundle->cascade, step);
    const struct bundle_call *first = bundle_call_of(bundle, cause);
    struct error why = first->err; /* known before the call was to run, or reported already */
    if (cause == step && call->err.code != ST_OK) {
        return;
    }
    if (cause == step) {
        infer_explain(&call->call, rt_cascade_error(bundle->cascade, step),
                      rt_cascade_culprit(bundle->cascade, step), &call->err);
        if (call->err.code == ST_UNAVAILABLE) {
            repository_verify_files(&infer->serving->repository);
        }
        if (is_late && call->err.code == ST_CANCELLED) {
            infer_fail_late(infer, &call->err);
        }
        error_prefix(&call->err, "model '%s': ", call->call.model->name);
        return;
    }
    error_set(&call->err, why.code,
              "takes a result that depends on request '%.*s', which failed: %s",
              SPAN_SHORT(first->id), why.text);
}

/* If the time is over before the list has begun, all of it is late. */
static enum status finish_list(struct infer *infer, enum status status, struct error *err)
{
    const struct bundle *bundle = bundle_of(infer);
    if (infer->job.started_ns == 0 && status != ST_OK) {
        return status == ST_TIMEOUT ? infer_fail_late(infer, err)
                                    : error_set(err, status, "%s", status_text(status));
    }
    for (uint32_t step = 0; step < bundle->count; step++) {
        const struct infer_call *call = &bundle_call_of(bundle, step)->call;
        if (rt_cascade_status(bundle->cascade, step) == ST_OK) {
            bundle_call_of(bundle, step)->call.sample_count = stats_sample_count(call);
            bundle_call_of(bundle, step)->call.joined = rt_cascade_joined(bundle->cascade, step);
            infer_sequence_end(call);
        } else {
            explain(infer, step, status == ST_TIMEOUT);
            const struct error *why = &bundle_call_of(bundle, step)->err;
            infer->env->note_failure(infer, why, bundle->order[step]);
        }
    }
    return ST_OK;
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static bool has_results(const struct bundle_call *call)
{
    return call->err.code == ST_OK && !call->is_silent;
}

static size_t encode_bytes(const struct infer *infer)
{
    const struct bundle *bundle = bundle_of(infer);
    size_t bytes = 0;
    for (uint32_t i = 0; i < bundle->count; i++) {
        const struct bundle_call *call = &bundle->calls[i];
        bytes += has_results(call) ? infer_text_bytes(infer, &call->call) : 0;
    }
    return bytes;
}

static size_t print_bytes(const struct infer *infer)
{
    const struct bundle *bundle = bundle_of(infer);
    size_t most = 0;
    for (uint32_t i = 0; i < bundle->count; i++) {
        const struct bundle_call *call = &bundle->calls[i];
        size_t bytes = has_results(call) ? infer_answer_work_bytes(&call->call) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* If its results cannot be stored the call has failed; others that took them have not. */
static void store_call(struct bundle_call *call)
{
    if (has_results(call) && call->call.codec->store) {
        enum status status = call->call.codec->store(&call->call, &call->err);
        must(status == ST_OK || call->err.code == status);
    }
}

static enum status print_call(struct infer *infer, struct bundle_call *call, struct error *err)
{
    store_call(call);
    struct buf *out = infer->out;
    buf_add_char(out, '{');
    if (call->has_id) {
        oip_print_id(out, call->id);
    }
    buf_printf(out, "\"status\":%d",
               call->err.code == ST_OK ? 200 : http_status_of(call->err.code));
    if (call->err.code != ST_OK) {
        buf_add_char(out, ',');
        oip_print_error_member(out, call->err.text);
    }
    if (has_results(call)) {
        buf_add_char(out, ',');
        TRY(call->call.codec->print(infer, &call->call, err));
    }
    buf_add_char(out, '}');
    return ST_OK;
}

static size_t tensor_count(const struct infer *infer)
{
    const struct bundle *bundle = bundle_of(infer);
    size_t count = 0;
    for (uint32_t i = 0; i < bundle->count; i++) {
        count += bundle->calls[i].call.output_count;
    }
    return count;
}

static enum status print(struct infer *infer, struct error *err)
{
    const struct bundle *bundle = bundle_of(infer);
    for (uint32_t i = 0; i < bundle->count; i++) {
        buf_add_char(infer->out, i ? ',' : '[');
        TRY(print_call(infer, &bundle->calls[i], err));
    }
    buf_add_char(infer->out, ']');
    return ST_OK;
}

static void print_tail(struct infer *infer)
{
    const struct bundle *bundle = bundle_of(infer);
    for (uint32_t i = 0; i < bundle->count; i++) {
        const struct bundle_call *call = &bundle->calls[i];
        if (has_results(call) && call->call.codec->print_tail) {
            call->call.codec->print_tail(infer, &call->call);
        }
    }
}

static void release(struct infer *infer)
{
    struct bundle *bundle = bundle_of(infer);
    rt_cascade_free(bundle->cascade);
    bundle->cascade = NULL;
}

static enum status hand_over(struct infer *infer, struct hal_pool *pool, struct error *err)
{
    return rt_cascade_move_results(bundle_of(infer)->cascade, pool, err);
}

/* Each call counts as a request to its model, with the times of the whole list. */
static void count(const struct infer *infer, int http_status, uint64_t now_ns)
{
    const struct bundle *bundle = infer->own;
    for (uint32_t i = 0; bundle && i < bundle->count; i++) {
        const struct bundle_call *call = &bundle->calls[i];
        if (call->call.model) {
            int status = http_status ? http_status : http_status_of(call->err.code);
            stats_add(call->call.model->stats, infer, &call->call, status, now_ns);
        }
    }
}

const struct infer_ops bundle_ops = {
    .life =
        {
            .is_apart = true,
            .find = infer_find_any,
            .parse = bundle_read,
            .decode = decode_list,
            .undo = undo,
            .demand = demand,
            .held_bytes = held_bytes,
            .count = count,
            .free = free_bundle,
        },
    .run =
        {
            .open_states = open_states,
            .prepare = prepare_list,
            .is_prepared_once = true,
            .enter = enter,
            .start = start_list,
            .cancel = cancel_list,
            .finish = finish_list,
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
