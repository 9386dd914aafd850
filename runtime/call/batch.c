/* SPDX-License-Identifier: MIT */
/*
 * Joining makes one more call of the method. Its inputs are copied from the inputs of the parts,
 * and its results are copied to theirs. The thread that submits and the thread that completes make
 * the copies; these are the device's workers when there is so much to do that calls wait.
 *
 * Between the copies nothing of a part is in use. A part whose caller gives it up leaves and
 * belongs to its caller again. The last part stays, and cuts short what runs. A part that is
 * cancelled before its inputs have been copied leaves when they have been. Cancelling sets a flag
 * and then looks for the batch; joining names the batch and then looks for the flag.
 */
#include "config.h"

#include "runtime/call/batch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/call/siblings.h"
#include "runtime/call/steps.h"

/* APART: joining has failed, or the joined call has failed, and the parts run alone. */
enum phase { JOINING, TOGETHER, APART, OVER };

struct rt_batch_part {
    struct batch *batch;              /* always the same one */
    struct rt_invocation *invocation; /* the caller's; NULL once it has left */
    void *arg;
    int64_t rows;
    enum status status;
};

#define BATCH_MAGIC 0xba7c4e21u

struct batch {
    uint32_t magic;
    struct list link; /* in the method's list of free ones */
    pthread_mutex_t lock;
    enum phase phase;             /* changed under the lock, as is the list of parts that leave */
    uint32_t count, here;         /* number of parts, and of parts that have not left */
    int64_t rows;                 /* rows of all of them */
    struct rt_method *method;     /* borrowed from the parts; the last part does not leave */
    struct hal_pool *pool;        /* owned; a member of the parts' run pool while it is in use */
    struct rt_invocation *joined; /* owned; NULL while the parts run alone */
    rt_invocation_done_f *done;
    atomic_uint left;          /* parts that run alone */
    struct rt_steps_run steps; /* of calls with states; steps.steps NULL: of others */
    struct rt_batch_part parts[RT_BATCH_CALLS_MAX];
};

/* ---- life ------------------------------------------------------------------------------------ */

void rt_batch_destroy(struct list *link)
{
    struct batch *batch = LIST_ENTRY(link, struct batch, link);
    OBJ_CHECK(batch, BATCH_MAGIC);
    must(!batch->joined); /* no joined call runs */
    list_remove(link);
    hal_pool_free(batch->pool);
    pthread_mutex_destroy(&batch->lock);
    batch->magic = 0;
    free(batch);
}

static struct batch *new_batch(struct rt_method *method)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    struct error err;
    if (!batch || hal_pool_member_new(&batch->pool, &err) != ST_OK) {
        free(batch);
        return NULL;
    }
    list_init(&batch->link);
    must(pthread_mutex_init(&batch->lock, NULL) == 0);
    for (uint32_t i = 0; i < RT_BATCH_CALLS_MAX; i++) {
        batch->parts[i].batch = batch;
    }
    batch->method = method;
    batch->magic = BATCH_MAGIC;
    return batch;
}

/* A used batch or a new one; NULL without memory. Its joined call takes memory beside that of
 * |pool|'s other parties. */
static struct batch *take_batch(struct rt_method *method, struct hal_pool *pool)
{
    struct batch *batch = NULL;
    pthread_mutex_lock(&method->mutex);
    if (!list_is_empty(&method->batches)) {
        batch = LIST_ENTRY(method->batches.next, struct batch, link);
        list_remove(&batch->link);
    }
    pthread_mutex_unlock(&method->mutex);
    batch = batch ? batch : new_batch(method);
    if (batch) {
        hal_pool_join(batch->pool, pool);
    }
    return batch;
}

/* A thread that cancels a part may have found it already and may wait for the lock. It then finds
 * that the part is over, also if the batch has new parts by then. */
static void forget_parts(struct batch *batch)
{
    pthread_mutex_lock(&batch->lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct rt_batch_part *part = &batch->parts[i];
        if (part->invocation) {
            atomic_store(&part->invocation->part, NULL);
            part->invocation = NULL;
        }
    }
    pthread_mutex_unlock(&batch->lock);
}

/* There are as many as have been in use at the same time: as many as the device holds, which are
 * few. */
static void give_back(struct batch *batch)
{
    struct rt_method *method = batch->method;
    forget_parts(batch);
    hal_pool_leave(batch->pool);
    pthread_mutex_lock(&method->mutex);
    list_push_front(&method->batches, &batch->link);
    pthread_mutex_unlock(&method->mutex);
}

/* ---- what can be joined ---------------------------------------------------------------------- */

/* Is dim 0 of |id| the symbol |*symbol|? The first tensor decides which one that is. */
static bool has_rows(const struct rt_graph *graph, uint32_t id, uint32_t *symbol)
{
    const struct rt_value *v = &graph->values[id];
    if (v->kind != RT_TENSOR) {
        return true;
    }
    if (v->rank == 0 || rt_dim_is_const(v->dims[0]) ||
        graph->dims.exprs[v->dims[0].expr].kind != RT_EXPR_SYMBOL) {
        return false;
    }
    *symbol = *symbol ? *symbol : v->dims[0].expr;
    for (uint8_t d = 1; d < v->rank; d++) {
        if (v->dims[d].expr == *symbol) {
            return false; /* has as many columns as rows: they would change too */
        }
    }
    return v->dims[0].expr == *symbol;
}

/* The graph may have more inputs and outputs than the method: numbers for and of the host. */
static const char *label(const struct rt_io *ios, uint32_t count, uint32_t index)
{
    return index < count ? ios[index].label : "a value";
}

/* The rows that the entry of a method takes as it was exported; 1 if it has no symbol for them. If
 * only some of its inputs have the symbol, |*out_other| is one that does not. */
static int64_t own_rows(const struct rt_method *method, const char **out_other)
{
    const struct rt_graph *graph = &method->code.blocks[0]->graph;
    uint32_t symbol = 0;
    *out_other = NULL;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (!has_rows(graph, graph->inputs[i], &symbol)) {
            *out_other = symbol ? label(method->inputs, rt_method_input_count(method), i) : NULL;
            return 1;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (!has_rows(graph, graph->outputs[i], &symbol)) {
            *out_other = symbol ? label(method->results, rt_method_result_count(method), i) : NULL;
            return 1;
        }
    }
    return symbol ? graph->dims.exprs[symbol].hi : 1;
}

static enum status check_form(const struct rt_method *method, struct error *err)
{
    if (method->failure.code != ST_OK) {
        return reason_set(err, REASON_UNCALLABLE);
    }
    if (method->state_count > 0) {
        return reason_set(err, REASON_BUFFERS);
    }
    if (method->callable->why_alone != REASON_NONE) {
        return reason_set(err, method->callable->why_alone);
    }
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        if (io->kind != RT_IO_TENSOR && io->kind != RT_IO_NONE && !io->is_fixed) {
            return error_set(err, ST_UNSUPPORTED, "%s is a number that each call chooses",
                             io->label);
        }
    }
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_io *io = rt_method_result(method, i);
        if (io->kind != RT_IO_TENSOR) {
            return error_set(err, ST_UNSUPPORTED, "%s is no tensor", io->label);
        }
    }
    return ST_OK;
}

int64_t rt_batch_size_max(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const char *other;
    struct error err;
    if (check_form(method, &err) != ST_OK) {
        return 0;
    }
    int64_t rows = own_rows(method, &other);
    return rows > 1 ? rows : 0;
}

/* Makes |batched| the form of |method| for several rows. */
static enum status make_form(const struct rt_method *method, struct rt_block *batched,
                             struct error *err)
{
    const struct rt_block *one = method->code.blocks[0];
    uint32_t inputs = one->graph.input_count, outputs = one->graph.output_count;
    const char **labels = calloc((size_t)inputs + outputs + 1, sizeof(*labels));
    if (!labels) {
        return error_no_memory(err, "a form with several rows");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        labels[i] = label(method->inputs, rt_method_input_count(method), i);
    }
    for (uint32_t i = 0; i < outputs; i++) {
        labels[inputs + i] = label(method->results, rt_method_result_count(method), i);
    }
    enum status status = rt_block_batch(batched, one, RT_BATCH_CALLS_MAX, labels, err);
    free(labels);
    return status;
}

enum status rt_batch_open(struct rt_method *method, int64_t *out_rows_max, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const char *other;
    if (method->state_count > 0 && method->failure.code == ST_OK) {
        *out_rows_max = RT_STEPS_ROWS_MAX;
        return rt_steps_open(method, err);
    }
    TRY(check_form(method, err));
    *out_rows_max = own_rows(method, &other);
    if (*out_rows_max > 1) {
        return ST_OK;
    }
    if (other) {
        return error_set(err, ST_UNSUPPORTED, "dim 0 of %s is not the number of rows", other);
    }
    struct rt_block *batched = malloc(sizeof(*batched));
    if (!batched) {
        return error_no_memory(err, "a form with several rows");
    }
    if (make_form(method, batched, err) != ST_OK) {
        free(batched);
        return err->code;
    }
    method->batched = batched;
    *out_rows_max = RT_BATCH_CALLS_MAX;
    return ST_OK;
}

bool rt_batch_has_states(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->steps != NULL;
}

enum status rt_batch_joined_new(struct rt_method *method, struct hal_pool *pool,
                                struct rt_invocation **out_joined, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    TRY(rt_invocation_new(method, pool, out_joined, err));
    if (method->batched) {
        (*out_joined)->entry = method->batched;
    }
    return ST_OK;
}

static bool is_tensor(const struct rt_invocation *inv, uint32_t input)
{
    return rt_method_input(inv->method, input)->kind == RT_IO_TENSOR;
}

static bool is_same_row(const struct shape *a, const struct shape *b)
{
    return a->rank > 0 && a->rank == b->rank &&
           memcmp(a->dims + 1, b->dims + 1, (a->rank - 1u) * sizeof(a->dims[0])) == 0;
}

int64_t rt_batch_rows(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    int64_t rows = 0;
    if (inv->method->steps) {
        return rt_steps_rows(inv);
    }
    must(inv->plan);
    if (inv->method->state_count > 0) {
        return 0; /* several steps of one sequence, or steps that cannot be joined */
    }
    if (inv->conversion_count > 0 || inv->wait_count > 0 || inv->is_awaited) {
        return 0;
    }
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        const struct shape *shape = &inv->inputs[i].shape;
        if (!is_tensor(inv, i)) {
            continue;
        }
        if (!is_same_row(shape, &rt_method_input(inv->method, i)->shape)) {
            return 0;
        }
        rows = shape->dims[0];
    }
    return rows;
}

bool rt_batch_fits(const struct rt_invocation *a, const struct rt_invocation *b)
{
    OBJ_CHECK(a, INVOCATION_MAGIC);
    OBJ_CHECK(b, INVOCATION_MAGIC);
    if (a->method->steps) {
        return a->method == b->method || rt_siblings_are(a->method, b->method);
    }
    if (a->orders != b->orders) {
        return false;
    }
    for (uint32_t i = 0; i < rt_method_input_count(a->method); i++) {
        if (is_tensor(a, i) && !is_same_row(&a->inputs[i].shape, &b->inputs[i].shape)) {
            return false;
        }
    }
    return true;
}

/* ---- joining and splitting ------------------------------------------------------------------- */

static struct span bytes_of(const struct hal_binding *binding)
{
    const uint8_t *base = binding->buffer ? hal_buffer_map(binding->buffer) : NULL;
    return span_of(base ? base + binding->offset : NULL, binding->length);
}

static size_t input_bytes(const struct rt_invocation *inv, uint32_t index)
{
    const struct rt_io *io = rt_method_input(inv->method, index);
    return (size_t)shape_numel(&inv->inputs[index].shape) * dtype_bytes(io->dtype);
}

static enum status join_input(struct batch *batch, uint32_t index, struct error *err)
{
    struct shape shape = batch->parts[0].invocation->inputs[index].shape;
    size_t bytes = 0;
    shape.dims[0] = batch->rows;
    for (uint32_t i = 0; i < batch->count; i++) {
        bytes += input_bytes(batch->parts[i].invocation, index);
    }
    TRY(rt_invocation_reserve_input(batch->joined, index, &shape, bytes, err));
    uint8_t *at = hal_buffer_map(batch->joined->inputs[index].binding.buffer);
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct rt_invocation *part = batch->parts[i].invocation;
        bytes = input_bytes(part, index);
        if (bytes) {
            memcpy(at, bytes_of(&part->inputs[index].binding).ptr, bytes);
            at += bytes;
        }
    }
    return ST_OK;
}

static size_t row_bytes(const struct batch *batch, uint32_t result)
{
    return rt_invocation_result(batch->joined, result)->bytes.len / (size_t)batch->rows;
}

/* The rows of the results are where the parts expect them. */
static enum status check_results(const struct batch *batch, struct error *err)
{
    for (uint32_t r = 0; r < rt_method_result_count(batch->method); r++) {
        size_t row = row_bytes(batch, r);
        bool is_whole =
            row * (size_t)batch->rows == rt_invocation_result(batch->joined, r)->bytes.len;
        for (uint32_t i = 0; i < batch->count; i++) {
            const struct rt_batch_part *part = &batch->parts[i];
            is_whole = is_whole && rt_invocation_result(part->invocation, r)->bytes.len ==
                                       row * (size_t)part->rows;
        }
        if (!is_whole) {
            return error_set(err, ST_UNSUPPORTED, "%s cannot be split",
                             rt_method_result(batch->method, r)->label);
        }
    }
    return ST_OK;
}

static enum status join_steps(struct batch *batch, struct error *err)
{
    struct rt_steps_run *run = &batch->steps;
    run->count = batch->count;
    for (uint32_t i = 0; i < batch->count; i++) {
        run->parts[i] = batch->parts[i].invocation;
    }
    enum status status = rt_steps_join(run, batch->pool, &batch->joined, err);
    if (status != ST_OK) {
        rt_steps_abandon(run);
    }
    return status;
}

static enum status join(struct batch *batch, struct error *err)
{
    struct rt_invocation *first = batch->parts[0].invocation;
    batch->steps.steps = first->method->steps;
    if (batch->steps.steps) {
        return join_steps(batch, err);
    }
    TRY(rt_batch_joined_new(first->method, batch->pool, &batch->joined, err));
    batch->joined->orders = first->orders;
    for (uint32_t i = 0; i < rt_method_input_count(first->method); i++) {
        if (is_tensor(first, i)) {
            TRY(join_input(batch, i, err));
        }
    }
    TRY(rt_invocation_prepare(batch->joined, RT_PREPARE_ALL, err));
    return check_results(batch, err);
}

static void split(const struct batch *batch)
{
    for (uint32_t r = 0; r < rt_method_result_count(batch->method); r++) {
        const uint8_t *at = rt_invocation_result(batch->joined, r)->bytes.ptr;
        size_t row = row_bytes(batch, r);
        for (uint32_t i = 0; row && i < batch->count; i++) {
            const struct rt_batch_part *part = &batch->parts[i];
            size_t bytes = row * (size_t)part->rows;
            if (part->invocation) {
                const struct hal_binding *to = &part->invocation->bound[r];
                memcpy((uint8_t *)hal_buffer_map(to->buffer) + to->offset, at, bytes);
            }
            at += bytes;
        }
    }
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* The memory of its state is in use until the step is over: a part of several steps stays. */
static bool leave_steps(struct batch *batch)
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < batch->count; i++) {
        is_wanted |= !atomic_load(batch->parts[i].invocation->cancel);
    }
    if (!is_wanted) {
        rt_invocation_cancel(batch->joined);
    }
    return false;
}

/* Called with the lock held, in TOGETHER. False: |part| is the last one, so that the running call
 * has no user left, or it has to stay. */
static bool leave(struct rt_batch_part *part)
{
    struct batch *batch = part->batch;
    if (batch->steps.steps) {
        return leave_steps(batch);
    }
    if (batch->here == 1) {
        rt_invocation_cancel(batch->joined);
        return false;
    }
    batch->here--;
    atomic_store(&part->invocation->part, NULL);
    part->invocation = NULL;
    return true;
}

bool rt_batch_leave(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    atomic_store(inv->cancel, true);
    struct rt_batch_part *part = atomic_load(&inv->part);
    if (!part) {
        return false;
    }
    pthread_mutex_lock(&part->batch->lock);
    bool has_left = part->batch->phase == TOGETHER && part->invocation == inv && leave(part);
    pthread_mutex_unlock(&part->batch->lock);
    return has_left;
}

void rt_batch_cut(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    atomic_store(inv->cancel, true);
    struct rt_batch_part *part = atomic_load(&inv->part);
    if (part) {
        pthread_mutex_lock(&part->batch->lock);
        if (part->batch->phase == TOGETHER && part->invocation == inv) {
            rt_invocation_cancel(part->batch->joined);
        }
        pthread_mutex_unlock(&part->batch->lock);
    }
}

/* The inputs have been copied: parts that have been cancelled meanwhile need not wait. */
static void begin_together(struct batch *batch)
{
    struct rt_invocation *gone[RT_BATCH_CALLS_MAX];
    void *args[RT_BATCH_CALLS_MAX];
    uint32_t gone_count = 0;
    pthread_mutex_lock(&batch->lock);
    batch->phase = TOGETHER;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct rt_batch_part *part = &batch->parts[i];
        struct rt_invocation *inv = part->invocation;
        if (atomic_load(inv->cancel) && leave(part)) {
            gone[gone_count] = inv;
            args[gone_count++] = part->arg;
        }
    }
    pthread_mutex_unlock(&batch->lock);
    for (uint32_t i = 0; i < gone_count; i++) {
        batch->done(gone[i], ST_CANCELLED, args[i]);
    }
}

/* From now on no part leaves. */
static void end_together(struct batch *batch, enum phase phase)
{
    pthread_mutex_lock(&batch->lock);
    batch->phase = phase;
    pthread_mutex_unlock(&batch->lock);
}

static void free_joined(struct batch *batch)
{
    rt_invocation_free(batch->joined);
    batch->joined = NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Works on copies: the last part may release the method, and |batch| with it. */
static void tell(struct batch *batch)
{
    struct rt_batch_part parts[RT_BATCH_CALLS_MAX];
    rt_invocation_done_f *done = batch->done;
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->parts[i].invocation) {
            parts[count++] = batch->parts[i];
        }
    }
    give_back(batch);
    for (uint32_t i = 0; i < count; i++) {
        done(parts[i].invocation, parts[i].status, parts[i].arg);
    }
}

static void on_alone_done(struct rt_invocation *inv, enum status status, void *arg)
{
    (void)inv;
    struct rt_batch_part *part = arg;
    struct batch *batch = part->batch;
    OBJ_CHECK(batch, BATCH_MAGIC);
    must(batch->phase == APART);
    part->status = status;
    if (atomic_fetch_sub(&batch->left, 1) == 1) {
        tell(batch);
    }
}

/* A part that was to get its results from the joined call needs memory of its own to run. */
static void submit_alone(struct rt_batch_part *part)
{
    struct rt_invocation *inv = part->invocation;
    if (rt_invocation_place_workspace(inv, &inv->error) == ST_OK) {
        rt_invocation_submit(inv, HAL_CALLER_BUSY, on_alone_done, part);
    } else {
        rt_invocation_refuse(inv, ST_EXHAUSTED, on_alone_done, part);
    }
}

static void run_alone(struct batch *batch)
{
    end_together(batch, APART);
    free_joined(batch);
    uint32_t left = batch->here;
    atomic_store(&batch->left, left);
    for (uint32_t i = 0; left > 0; i++) { /* the last part may free |batch| */
        struct rt_batch_part *part = &batch->parts[i];
        if (part->invocation) {
            left--;
            submit_alone(part);
        }
    }
}

static void on_joined_done(struct rt_invocation *joined, enum status status, void *arg)
{
    struct batch *batch;
    OBJ_CAST(batch, arg, BATCH_MAGIC);
    must(batch->joined == joined);
    if (status != ST_OK && status != ST_CANCELLED) {
        run_alone(batch);
        return;
    }
    end_together(batch, OVER);
    const struct rt_steps_run *steps = batch->steps.steps ? &batch->steps : NULL;
    if (status == ST_OK && !steps) {
        split(batch);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        bool is_cut = status == ST_OK && steps && !steps->is_kept[i];
        batch->parts[i].status = is_cut ? ST_CANCELLED : status;
        if (batch->parts[i].invocation) {
            batch->parts[i].invocation->was_joined = true;
        }
    }
    free_joined(batch);
    tell(batch);
}

static void fill(struct batch *batch, struct rt_invocation *const *parts, void *const *args,
                 uint32_t count)
{
    pthread_mutex_lock(&batch->lock);
    batch->phase = JOINING;
    batch->count = batch->here = count;
    batch->rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct rt_batch_part *part = &batch->parts[i];
        part->invocation = parts[i];
        part->arg = args[i];
        part->rows = rt_batch_rows(parts[i]);
        part->status = ST_OK;
        batch->rows += part->rows;
        atomic_store(&parts[i]->part, part);
    }
    pthread_mutex_unlock(&batch->lock);
}

/* |ready| has a bit for each part that came with its memory, and keeps it. */
static void unprepare_parts(struct rt_invocation *const *parts, uint32_t count, uint64_t ready)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!(ready >> i & 1)) {
            rt_invocation_unprepare(parts[i]);
        }
    }
}

/* All parts get memory for their results, or none does. */
static enum status prepare_parts(struct rt_invocation *const *parts, uint32_t count,
                                 uint64_t *ready, struct error *err)
{
    _Static_assert(RT_BATCH_CALLS_MAX <= 64, "a bit for each part");
    *ready = 0;
    for (uint32_t i = 0; i < count; i++) {
        *ready |= (uint64_t)(parts[i]->phase == RT_PHASE_PREPARED) << i;
        if (rt_invocation_prepare_results(parts[i], RT_PREPARE_ALL, err) != ST_OK) {
            unprepare_parts(parts, i, *ready);
            return err->code;
        }
    }
    return ST_OK;
}

/* The parts belong to their callers again, with their plans. */
static void dissolve(struct batch *batch, struct rt_invocation *const *parts, uint64_t ready)
{
    uint32_t count = batch->count;
    end_together(batch, OVER);
    free_joined(batch);
    give_back(batch);
    unprepare_parts(parts, count, ready);
}

enum status rt_batch_submit(struct rt_invocation *const *parts, void *const *args, uint32_t count,
                            rt_invocation_done_f *done, struct error *err)
{
    must(count > 0 && count <= RT_BATCH_CALLS_MAX);
    uint64_t ready;
    TRY(prepare_parts(parts, count, &ready, err));
    struct batch *batch = take_batch(parts[0]->method, parts[0]->join_pool);
    if (!batch) {
        unprepare_parts(parts, count, ready);
        return error_no_memory(err, "a batch");
    }
    fill(batch, parts, args, count);
    batch->done = done;
    enum status status = join(batch, err);
    if (status == ST_EXHAUSTED) {
        dissolve(batch, parts, ready);
        return status;
    }
    if (status != ST_OK) {
        run_alone(batch);
        return ST_OK;
    }
    begin_together(batch);
    rt_invocation_submit(batch->joined, HAL_CALLER_BUSY, on_joined_done, batch);
    return ST_OK;
}
