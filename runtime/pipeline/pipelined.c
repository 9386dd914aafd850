/* SPDX-License-Identifier: MIT */
/* A call of a pipeline. Its inputs are inputs of its steps, by buffer identity; its results are
 * results of its steps; the cascade does the rest. */
#include "config.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/call/inside.h"
#include "runtime/pipeline/pipeline_priv.h"
#include "runtime/program/oracle.h"
#include "runtime/program/state_cells.h"
#include "runtime/sched/sched.h"

static struct rt_cascade *cascade_of(const struct rt_invocation *inv)
{
    return inv->own;
}

static void free_pipelined(struct rt_method *method)
{
    rt_invocation_free_kept(method);
    rt_pipeline_free(method->own);
}

static bool open_cascade(struct rt_invocation *inv)
{
    const struct rt_cascade_layout *layout = &rt_pipeline_of(inv->method)->layout;
    inv->own = rt_cascade_new(layout, false);
    inv->heap_bytes += rt_cascade_heap_bytes(layout);
    return inv->own != NULL;
}

static void close_cascade(struct rt_invocation *inv)
{
    rt_cascade_free(inv->own);
}

/* ---- what goes in ---------------------------------------------------------------------------- */

/*
 * A message of a step about such an input goes to the pipeline's caller, so it uses the pipeline's
 * name. Scalars are fixed by the exporter: the given value has been compared with the fixed one
 * already.
 */
static enum status pass_input(struct rt_invocation *inv, const struct rt_pipeline_input *input,
                              struct error *err)
{
    struct rt_invocation *to = rt_cascade_step(cascade_of(inv), input->step);
    const struct rt_bound_input *from = &inv->inputs[input->from];
    const struct rt_io *io = rt_method_input(inv->method, input->from);
    if (io->kind != RT_IO_TENSOR) {
        return ST_OK;
    }
    rt_invocation_say(to, input->input, rt_invocation_label(inv, input->from));
    struct rt_buffer_desc given = {
        .dtype = io->dtype,
        .shape = from->shape,
        .has_strides = true,
        .buffer = from->binding.buffer,
        .offset = from->binding.offset,
    };
    shape_order_strides(&from->shape, inv->orders & io->order_bit ? io->order : NULL,
                        given.strides);
    return rt_invocation_bind_input(to, input->input, &given, err);
}

static enum status pass_result(struct rt_invocation *inv, uint32_t index, struct error *err)
{
    const struct rt_pipeline_output *output = &rt_pipeline_of(inv->method)->outputs[index];
    const struct hal_binding *bound = &inv->bound[index];
    struct rt_invocation *step = rt_cascade_step(cascade_of(inv), output->step);
    if (inv->orders & rt_method_result(inv->method, index)->order_bit) {
        rt_invocation_prefer_order(step, output->output);
    }
    return bound->buffer
               ? rt_invocation_bind_result(step, output->output, bound->buffer, bound->offset, err)
               : ST_OK;
}

/* Without a state each step of the call begins with its initial contents. */
static void pass_state(struct rt_invocation *inv, struct rt_invocation *step)
{
    struct rt_state *part =
        inv->state ? rt_state_part(inv->state, rt_method_program(step->method)) : NULL;
    if (part) {
        rt_invocation_set_state(step, part);
    }
}

static enum status fill_cascade(struct rt_invocation *inv, struct error *err)
{
    const struct rt_pipeline *pipeline = rt_pipeline_of(inv->method);
    rt_cascade_share_cancel(cascade_of(inv), inv->cancel);
    for (uint32_t i = 0; i < pipeline->layout.step_count; i++) {
        struct rt_invocation *step;
        TRY(rt_invocation_new(pipeline->methods[i], inv->pool, &step, err));
        step->join_pool = inv->join_pool;
        pass_state(inv, step);
        rt_cascade_set_step(cascade_of(inv), i, step);
    }
    for (uint32_t i = 0; i < pipeline->turned_count; i++) {
        rt_invocation_prefer_order(rt_cascade_step(cascade_of(inv), pipeline->turned[i].step),
                                   pipeline->turned[i].output);
    }
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        TRY(pass_result(inv, i, err));
    }
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        if (pass_input(inv, &pipeline->inputs[i], err) != ST_OK) {
            error_prefix(err, "%s: ", rt_invocation_label(inv, pipeline->inputs[i].from));
            return rt_pipeline_prefix(pipeline, pipeline->inputs[i].step, err);
        }
    }
    return ST_OK;
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void describe_results(struct rt_invocation *inv)
{
    const struct rt_pipeline *pipeline = rt_pipeline_of(inv->method);
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        const struct rt_pipeline_output *output = &pipeline->outputs[i];
        const struct rt_invocation *step = rt_cascade_step(cascade_of(inv), output->step);
        inv->results[i] =
            step->phase >= RT_PHASE_PREPARED
                ? *rt_invocation_result(step, output->output)
                : (struct rt_result){.shape = rt_method_result(inv->method, i)->shape};
    }
}

static enum status prepare(struct rt_invocation *inv, enum rt_prepare_mode mode, struct error *err)
{
    uint32_t at;
    enum status status = ST_OK;
    if (!rt_cascade_step(cascade_of(inv), 0)) {
        status = fill_cascade(inv, err);
    }
    if (status == ST_OK) {
        status = rt_cascade_prepare(cascade_of(inv), mode, &at, err);
        if (status != ST_OK && status != ST_WOULD_PLAN) {
            rt_pipeline_prefix(rt_pipeline_of(inv->method), at, err);
        }
    }
    if (status != ST_OK) {
        rt_cascade_reset(cascade_of(inv));
        return status;
    }
    describe_results(inv);
    return ST_OK;
}

/* Translates a culprit among the inputs of step |at| to the pipeline's input, if it is one. */
static struct rt_culprit find_culprit(const struct rt_invocation *inv, uint32_t at)
{
    const struct rt_pipeline *pipeline = rt_pipeline_of(inv->method);
    struct rt_culprit culprit = *rt_cascade_culprit(cascade_of(inv), at);
    uint32_t i = 0;
    while (i < pipeline->input_count &&
           (pipeline->inputs[i].step != at || pipeline->inputs[i].input != culprit.input)) {
        i++;
    }
    culprit.is_known = culprit.is_known && i < pipeline->input_count;
    culprit.input = culprit.is_known ? pipeline->inputs[i].from : 0;
    return culprit;
}

/* Did something fail that the call had to wait for? Then none of its steps is to blame. */
static bool is_forsaken(const struct rt_invocation *inv)
{
    uint64_t value;
    for (uint32_t i = 0; i < inv->wait_count; i++) {
        if (hal_semaphore_query(inv->waits[i].semaphore, &value) != ST_OK) {
            return true;
        }
    }
    return false;
}

static void on_cascade_done(struct rt_cascade *cascade, enum status status, void *arg)
{
    struct rt_invocation *inv;
    OBJ_CAST(inv, arg, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_RUNNING && cascade_of(inv) == cascade);
    struct rt_pipeline *pipeline = rt_pipeline_of(inv->method);
    uint32_t failed = UINT32_MAX;
    if (status == ST_OK) {
        describe_results(inv);
    } else {
        failed = rt_cascade_failed_step(cascade);
        inv->error = *rt_cascade_error(cascade, failed);
        inv->culprit = find_culprit(inv, failed);
        rt_pipeline_prefix(pipeline, failed, &inv->error);
    }
    bool is_cut = status == ST_CANCELLED || is_forsaken(inv);
    rt_pipeline_count(pipeline, cascade, is_cut ? UINT32_MAX : failed);
    rt_cascade_keep(cascade, pipeline->output_steps);
    rt_invocation_end(inv, status);
}

static enum status place(struct rt_invocation *inv, struct error *err)
{
    (void)inv;
    (void)err;
    return ST_OK; /* prepare() has done so */
}

static void release(struct rt_invocation *inv)
{
    rt_cascade_reset(inv->own);
}

static enum status start_cascade(struct rt_invocation *inv, struct hal_semaphore *semaphore,
                                 enum hal_caller caller)
{
    (void)semaphore;
    if (inv->parent) {
        rt_cascade_hand_over(inv->own, inv->parent, rt_pipeline_of(inv->method)->queues);
    }
    rt_cascade_submit(inv->own, inv->waits, inv->wait_count, caller, on_cascade_done, inv);
    return ST_OK;
}

static bool find_result(const struct rt_invocation *inv, uint32_t index,
                        struct rt_buffer_desc *out_desc)
{
    const struct rt_pipeline_output *from = &rt_pipeline_of(inv->method)->outputs[index];
    return (rt_cascade_is_prepared(cascade_of(inv), from->step) || inv->phase == RT_PHASE_DONE) &&
           rt_invocation_find_result(rt_cascade_step(cascade_of(inv), from->step), from->output,
                                     out_desc);
}

static size_t planned_bytes(const struct rt_invocation *inv)
{
    return rt_cascade_bytes(inv->own);
}

static enum status move_cascade_results(struct rt_invocation *inv, struct hal_pool *pool,
                                        struct error *err)
{
    return rt_cascade_move_results(inv->own, pool, err);
}

void rt_invocation_hand_over(struct rt_invocation *inv, struct rt_sched_job *parent)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    if (rt_pipeline_joins(inv->method) && rt_sched_yield(parent)) {
        inv->parent = parent;
    }
}

struct rt_cascade *rt_invocation_cascade(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    return cascade_of(inv);
}

const struct rt_callable rt_pipelined_callable = {
    .platform = "pipeline",
    .why_alone = REASON_PIPELINE,
    .is_planned_in_place = true,
    .fini = free_pipelined,
    .measure = rt_pipeline_measure,
    .choose = rt_pipeline_choose,
    .open = open_cascade,
    .close = close_cascade,
    .plan = prepare,
    .place = place,
    .release = release,
    .start = start_cascade,
    .find_result = find_result,
    .bytes = planned_bytes,
    .move_results = move_cascade_results,
};
