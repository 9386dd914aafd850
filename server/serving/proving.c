/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/serving/proving.h"

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/speculation.h"
#include "runtime/call/batch.h"
#include "runtime/sched/sched.h"
#include "server/language/generator.h"
#include "server/model/model_log.h"
#include "server/server.h"
#include "server/serving/serving.h"
#include "server/serving/trim.h"

/* Time for trying rows of one model; measuring comes on top of it. */
#define PROOF_NS 50000000u
/* The same for steps of sequences: a step of a large model takes a tenth of a second. */
#define STEPS_PROOF_NS 15000000000u

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

/* How many tokens of one answer may run as one call, and how long that takes. The times are read
 * only after publish(). */
static void prove_speculation(struct proving *proving, struct hal_pool *pool)
{
    struct generator *generator = proving->model->generator;
    int64_t guesses = (int64_t)proving->model->params.draft_tokens_max;
    struct error *why_not = &proving->why_one;
    proving->speculation_tokens = 1;
    error_set(why_not, ST_UNSUPPORTED, "its steps are not joined, or none are to be checked");
    if (!generator || generator->position_input == 0 || guesses == 0 || proving->rows_max == 1) {
        return;
    }
    int64_t max = guesses < proving->rows_max ? guesses + 1 : proving->rows_max;
    uint32_t tokens =
        (uint32_t)rt_speculation_prove(proving->model->method, pool, max, STEPS_PROOF_NS, why_not);
    if (tokens > 1 && rt_speculation_measure(proving->model->method, pool, tokens,
                                             generator->speculation_ns, why_not) == ST_OK) {
        proving->speculation_tokens = tokens;
    }
}

/* On a thread of libuv: proves how many rows give the same bits, and chooses the number to begin
 * with: the given one, or the one that looks best. */
static void prove(uv_work_t *work)
{
    struct proving *proving = &server_of(work->data)->proving;
    const struct model *model = proving->model;
    struct error *why_not = &proving->why_not;
    OBJ_CHECK(proving, PROVING_MAGIC);
    OBJ_CHECK(model, MODEL_MAGIC);
    must(model->rows_form > 1); /* else there is nothing to try */
    struct hal_pool *pool;
    proving->rows_max = proving->rows = 1;
    proving->speculation_tokens = 1;
    if (hal_pool_new(proving->serving->device, proving->ring_bytes, &pool, why_not) != ST_OK) {
        return;
    }
    proving->rows_max = rt_batch_prove(model->method, pool, model->rows_form,
                                       has_steps(model) ? STEPS_PROOF_NS : PROOF_NS, why_not);
    proving->rows = proving->rows_max;
    if (is_learning(model)) {
        struct error ignored; /* real runs will tell */
        proving->rows = rt_batch_measure(model->method, pool, proving->rows_max, &ignored);
    }
    prove_speculation(proving, pool);
    hal_pool_free(pool);
}

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

static void publish(const struct proving *proving)
{
    struct model *model = proving->model;
    bool is_alone = proving->rows_max == 1, are_all = proving->rows_max == model->rows_form;
    OBJ_CHECK(model, MODEL_MAGIC);
    must(proving->rows_max >= 1 && proving->rows_max <= model->rows_form);
    model->rows_form = proving->rows_max;
    model->rows_max = proving->rows_max;
    if (model->generator) {
        model->generator->why_one = proving->why_one;
        atomic_store(&model->generator->speculation_tokens, proving->speculation_tokens);
        atomic_store(&model->generator->never_guesses, proving->speculation_tokens == 1);
    }
    if (is_alone) {
        model->why_alone = proving->why_not;
    } else {
        const struct rt_sched_join join = {
            .rows_max = model->rows_max,
            .rows = proving->rows,
            .is_learning = is_learning(model) && !has_steps(model),
            .running_max = running_max(model, proving->serving->device),
            .delay_ns = model->params.max_delay_us * 1000,
        };
        rt_sched_queue_join(model->queue, &join);
    }
    model_log_batches(model, are_all ? NULL : &proving->why_not);
}

/* The next callable model whose form takes several rows, with their number still unknown; the
 * caller owns a reference. */
static struct model *next_model(struct repository *repository)
{
    struct repository_index *index = repository_ref_index(repository);
    struct model *next = NULL;
    for (uint32_t i = 0; i < index->count && !next; i++) {
        struct model *model = index->models[i];
        if (model_is_ready(model) && model->rows_form > 1 && model->rows_max == 1) {
            next = model_ref(model);
        }
    }
    repository_unref_index(index);
    return next;
}

static void on_proved(uv_work_t *work, int uv_status);

static void prove_next(struct server *server)
{
    struct proving *proving = &server->proving;
    OBJ_CHECK(proving, PROVING_MAGIC);
    OBJ_CHECK(proving->serving, SERVING_MAGIC);
    bool is_wanted = !server->drain.is_active &&
                     !server->is_closing && /* nor has the serving been replaced */
                     server->serving == proving->serving;
    model_unref(proving->model);
    proving->model = is_wanted ? next_model(&proving->serving->repository) : NULL;
    if (!proving->model) {
        struct serving *serving = proving->serving;
        proving->serving = NULL;
        server_let_go_serving(server, serving);
        trim_note_use(server); /* the device keeps memory of the first calls */
        return;
    }
    offload_begin(server, OFFLOAD_LONG, &proving->work, prove, on_proved);
}

static void on_proved(uv_work_t *work, int uv_status)
{
    struct server *server = server_of(work->data);
    must(uv_status == 0 && server->proving.model);
    offload_end(server, OFFLOAD_LONG);
    publish(&server->proving);
    prove_next(server);
    if (!server->proving.serving) {
        proving_begin(server); /* for the serving that has come in the meantime */
    }
}

void proving_begin(struct server *server)
{
    struct proving *proving = &server->proving;
    OBJ_CHECK(server, SERVER_MAGIC);
    OBJ_CHECK(proving, PROVING_MAGIC);
    if (!proving->serving) {
        proving->work.data = server;
        proving->ring_bytes = (size_t)server->params->ring_bytes;
        proving->serving = server_hold_serving(server);
        prove_next(server);
    }
}

void proving_stop(struct server *server)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    if (server->proving.model) {
        rt_batch_stop_proving(server->proving.model->method);
    }
}
