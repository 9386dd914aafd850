/* SPDX-License-Identifier: MIT */
/*
 * The protocol has three compute phases: our decoding is its compute_input, our encoding its
 * compute_output. Numbers for which it has no name stand beside them, where its clients do not
 * look.
 */
#include "config.h"

#include "server/daemon/infer/stats.h"

#include <inttypes.h>
#include <time.h>

#include <uv.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/pool.h"
#include "protocol/json.h"
#include "runtime/call/invocation.h"
#include "runtime/program/held.h"
#include "runtime/program/program.h"
#include "runtime/sched/sched.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/serving/serving.h"
#include "server/http/http.h"
#include "server/model/model.h"

#define NS_PER_MS 1000000u

uint64_t stats_last_ms(const struct model_stats *stats)
{
    struct timespec now;
    uint64_t ns = model_stats_last_ns(stats), past_ns = uv_hrtime() - ns;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return ns ? now_ms - past_ns / 1000000 : 0;
}

static void add(struct model_stats_phase *phase, uint64_t ns)
{
    phase->count++;
    phase->ns += ns;
}

int64_t stats_sample_count(const struct infer_call *call)
{
    OBJ_CHECK(call->model, MODEL_MAGIC);
    must(call->invocation != NULL);
    bool has_samples = call->model->batch_size_max > 0;
    return has_samples ? rt_invocation_result(call->invocation, 0)->shape.dims[0] : 1;
}

static void add_time(struct histogram *histogram, uint64_t ns)
{
    histogram_add(histogram, &histogram_times, ns);
}

/* The last request of a batch has the times of the batch, because they ran as one. */
static void add_batch(struct model_stats *stats, const struct rt_sched_job *job, int64_t samples,
                      uint64_t input, uint64_t encode)
{
    int64_t index = samples < MODEL_STATS_BATCH_MAX ? samples - 1 : MODEL_STATS_BATCH_MAX - 1;
    must(job->finished_ns >= job->started_ns && job->started_ns >= job->queued_ns);
    struct model_stats_batch *batch = &stats->batches[index < 0 ? 0 : index];
    stats->execution_count++;
    batch->count++;
    histogram_add(&stats->rows, &histogram_rows, samples > 0 ? (uint64_t)samples : 0);
    batch->input += input;
    batch->compute += job->finished_ns - job->started_ns;
    batch->encode += encode;
}

/* Also a stream whose client left while an event was written: it has no end. */
static bool is_cancelled(const struct infer *infer, int status)
{
    return infer->is_left || (status == 200 && infer->encoded_ns == 0);
}

/* How long is the model needed after the request? */
static void note_need(const struct infer *infer, const struct infer_call *call, uint64_t now_ns)
{
    const struct keep_wish wish = {
        .is_given = infer->has_keep,
        .is_order = infer->client->is_operator,
        .ns = infer->keep_ns,
        .ns_max = call->model->params.keep_alive_max * NS_PER_MS,
    };
    keep_use(&call->model->origin->keep, &wish, now_ns);
    infer->env->note_idle(infer->env->owner, call->model->origin->keep.due_ns);
}

void stats_add(struct model_stats *stats, const struct infer *infer, const struct infer_call *call,
               int status, uint64_t now_ns)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(call->model && call->model->stats == stats);
    const struct rt_sched_job *job = &infer->job;
    if (infer->arrived_ns == 0) {
        return; /* the client went before it had sent all */
    }
    atomic_store_explicit(&stats->last_ns, now_ns, memory_order_relaxed);
    note_need(infer, call, now_ns);
    bool is_gone = is_cancelled(infer, status);
    status_counts_add(&stats->statuses, is_gone ? HTTP_GONE : status);
    if (status != 200 || is_gone) {
        add(&stats->failed, now_ns - infer->arrived_ns);
        if (is_gone) {
            add(&stats->cancelled, now_ns - infer->arrived_ns);
        }
        return;
    }
    uint64_t input = job->queued_ns - infer->arrived_ns - infer->waited_ns;
    uint64_t decode = infer_media_ns(&infer->media);
    uint64_t encode = infer->encoded_ns - job->finished_ns;
    int64_t samples = call->sample_count;
    stats->inference_count += (uint64_t)samples;
    add(&stats->ok, now_ns - infer->arrived_ns);
    add(&stats->input, input);
    add(&stats->queue, job->started_ns - job->queued_ns);
    add(&stats->batch_wait, job->joining_ns);
    add(&stats->compute, job->finished_ns - job->started_ns);
    add(&stats->encode, encode);
    add(&stats->write, now_ns - infer->encoded_ns);
    add_time(&stats->durations, now_ns - infer->arrived_ns);
    add_time(&stats->phases[MODEL_PHASE_PREPARE], input > decode ? input - decode : 0);
    if (decode) {
        add(&stats->decode, decode);
        add_time(&stats->phases[MODEL_PHASE_DECODE], decode);
    }
    add_time(&stats->phases[MODEL_PHASE_QUEUE], job->started_ns - job->queued_ns);
    add_time(&stats->phases[MODEL_PHASE_COMPUTE], job->finished_ns - job->started_ns);
    add_time(&stats->phases[MODEL_PHASE_ENCODE], encode);
    if (job->is_batch_end && call->joined >= 0) {
        samples = call->joined ? call->joined : samples;
        add_batch(stats, job, job->batch_size > 1 ? job->batch_rows : samples, input, encode);
    }
}

void stats_add_step(struct model_stats *stats, const struct rt_sched_job *job)
{
    must(job->batch_size > 0 && job->batch_rows >= 0);
    if (job->is_batch_end) {
        add_batch(stats, job, job->batch_rows > 0 ? job->batch_rows : 1, 0, 0);
    }
}

static void print_phase(struct buf *out, const char *before, const char *name,
                        const struct model_stats_phase *phase)
{
    buf_printf(out, "%s\"%s\":{\"count\":%" PRIu64 ",\"ns\":%" PRIu64 "}", before, name,
               phase->count, phase->ns);
}

static void print_batches(struct buf *out, const struct model_stats *stats)
{
    const char *before = "";
    for (uint32_t i = 0; i < MODEL_STATS_BATCH_MAX; i++) {
        const struct model_stats_batch *batch = &stats->batches[i];
        if (batch->count) {
            buf_printf(out, "%s{\"batch_size\":%u", before, i + 1);
            print_phase(out, ",", "compute_input",
                        &(struct model_stats_phase){batch->count, batch->input});
            print_phase(out, ",", "compute_infer",
                        &(struct model_stats_phase){batch->count, batch->compute});
            print_phase(out, ",", "compute_output",
                        &(struct model_stats_phase){batch->count, batch->encode});
            buf_add_str(out, "}");
            before = ",";
        }
    }
}

static void print_phases(struct buf *out, const struct model_stats *stats)
{
    static const struct model_stats_phase none;
    print_phase(out, "", "success", &stats->ok);
    print_phase(out, ",", "fail", &stats->failed);
    print_phase(out, ",", "cancel", &stats->cancelled);
    print_phase(out, ",", "queue", &stats->queue);
    print_phase(out, ",", "compute_input", &stats->input);
    print_phase(out, ",", "compute_infer", &stats->compute);
    print_phase(out, ",", "compute_output", &stats->encode);
    print_phase(out, ",", "cache_hit", &none);
    print_phase(out, ",", "cache_miss", &none);
    print_phase(out, ",", "write", &stats->write);
    print_phase(out, ",", "batch_wait", &stats->batch_wait);
    print_phase(out, ",", "decode", &stats->decode);
}

static void print_pool(struct buf *out, const char *name, const struct hal_pool_stats *pool)
{
    buf_printf(out, ",\"%s\":{\"held\":%zu,\"peak\":%zu}", name, pool->held_bytes,
               pool->held_peak_bytes);
}

void stats_print_memory(struct buf *out, const struct serving *serving, uint64_t evicted)
{
    OBJ_CHECK(serving, SERVING_MAGIC);
    struct hal_pool_stats transfers, running, lists, answers;
    if (!serving->transfers) {
        buf_add_str(out, "null"); /* the device was lost */
        return;
    }
    hal_pool_stats(serving->transfers, &transfers);
    hal_pool_stats(serving->running, &running);
    hal_pool_stats(serving->lists, &lists);
    hal_pool_stats(serving->answers, &answers);
    buf_printf(out, "{\"bytes\":%zu,\"used\":%zu,\"peak\":%zu,\"evicted\":%" PRIu64,
               transfers.size_bytes, transfers.used_bytes, transfers.used_peak_bytes, evicted);
    print_pool(out, "transfers", &transfers);
    print_pool(out, "running", &running);
    print_pool(out, "lists", &lists);
    print_pool(out, "answers", &answers);
    buf_printf(out, ",\"weights\":%" PRIu64 "}", rt_held_total());
}

/* The cost of the steps of a pipeline, in all its calls: not in the protocol. */
static void print_steps(struct buf *out, const struct model *model)
{
    for (uint32_t i = 0; i < model->step_count; i++) {
        const struct rt_step_counts counts = model_step_counts(model, i);
        buf_add_str(out, i ? ",{\"name\":" : ",\"steps\":[{\"name\":");
        json_print_string(out, span_str(counts.name));
        buf_add_str(out, ",\"model\":");
        json_print_string(out, span_str(counts.model));
        print_phase(out, ",", "success", &(struct model_stats_phase){counts.count, counts.ns});
        print_phase(out, ",", "fail",
                    &(struct model_stats_phase){counts.failed_count, counts.failed_ns});
        buf_printf(out, ",\"joined\":%" PRIu64 "%s", counts.joined_count,
                   i + 1 < model->step_count ? "}" : "}]");
    }
}

/* The number of rows that run as one, and the costs that were learnt for each number. */
static void print_sizes(struct buf *out, const struct model *model)
{
    struct rt_sched_sizes sizes;
    rt_sched_queue_sizes(model->queue, &sizes);
    buf_printf(out, ",\"batch_rows_max\":%" PRIi64 ",\"batch_rows_proven\":%" PRIi64,
               sizes.rows_max, model->rows_max);
    buf_printf(out, ",\"batch_trial_open\":%s", model->trial.is_open ? "true" : "false");
    if (model->rows_max == 1) {
        buf_add_str(out, ",\"batch_refusal\":");
        json_print_string(out, span_str(model->why_alone.text));
    }
    buf_add_str(out, ",\"batch_sizes\":[");
    for (uint32_t i = 0; i < sizes.count; i++) {
        const struct rt_sched_size *size = &sizes.sizes[i];
        buf_printf(out, "%s{\"rows\":%" PRIi64 ",\"ns_per_row\":%.0f,\"epochs\":%" PRIu64 "}",
                   i ? "," : "", size->rows, size->row_ns, size->epochs);
    }
    buf_add_char(out, ']');
}

void stats_print(struct buf *out, const struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(model->stats && model->pool && model->queue); /* it is READY */
    struct hal_pool_stats waiting;
    hal_pool_stats(model->pool, &waiting);
    const struct model_stats *stats = model->stats;
    const struct rt_input_stats inputs = rt_method_input_stats(model->method);
    const struct rt_sched_load load = rt_sched_load(model->queue);
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(model->name));
    buf_printf(out,
               ",\"version\":\"%s\",\"last_inference\":%" PRIu64 ",\"inference_count\":%" PRIu64
               ",\"execution_count\":%" PRIu64 ",\"inference_stats\":{",
               model->version_text, stats_last_ms(stats), stats->inference_count,
               stats->execution_count);
    print_phases(out, stats);
    buf_add_str(out, "},\"response_stats\":{},\"batch_stats\":[");
    print_batches(out, stats);
    buf_add_char(out, ']');
    print_sizes(out, model);
    print_steps(out, model);
    buf_printf(out,
               ",\"memory_usage\":[],\"inputs\":{\"in_place\":%" PRIu64 ",\"converted\":%" PRIu64
               "},\"load\":{\"waiting\":%u,\"waiting_bytes\":%zu,\"running\":%u}",
               inputs.in_place, inputs.converted, load.waiting, load.waiting_bytes, load.running);
    print_pool(out, "memory", &waiting);
    const struct rt_held_bytes held = rt_program_held(model->program);
    buf_printf(out,
               ",\"weights\":{\"own\":%" PRIu64 ",\"shared\":%" PRIu64 ",\"rest\":%" PRIu64 "}}",
               held.own, held.shared, held.rest);
}
