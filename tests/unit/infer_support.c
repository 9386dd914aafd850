/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/infer_support.h"

#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include "hal/pool.h"
#include "server/process/log.h"
#include "tests/unit/unit.h"

#define ANSWER_BYTES_MAX (1 << 20)
#define WORLD_PATH_MAX 4096
#define FILE_BYTES_MAX (1 << 20)

/* ---- what is above the call ------------------------------------------------------------------ */

static struct world *world_of(struct infer *infer)
{
    struct world *w = infer->env->owner;
    assert_ptr_equal(infer, &w->infer);
    return w;
}

static void go_on(struct infer *infer)
{
    world_of(infer)->turn_count++;
}

static void note_failure(struct infer *infer, const struct error *why, uint32_t index)
{
    struct world *w = world_of(infer);
    assert_int_not_equal(why->code, ST_OK);
    assert_true(w->failure_count < WORLD_FAILURES_MAX);
    w->failures[w->failure_count++] = index;
}

static void note_idle(void *owner, uint64_t due_ns)
{
    (void)due_ns;
    ((struct world *)owner)->idle_notes++;
}

static void note_run(struct infer *infer, enum status status)
{
    struct world *w = infer->env->owner;
    w->run_status = status;
    w->is_unreleased = infer->job.started_ns != 0;
    sem_post(&w->run);
}

static void note_left(struct infer *infer)
{
    sem_post(&((struct world *)infer->env->owner)->left);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void add_arg(struct world *w, const char *before, const char *text)
{
    assert_true(w->arg_count < WORLD_ARGS_MAX);
    size_t bytes = strlen(before) + strlen(text) + 1;
    char *arg = malloc(bytes);
    assert_non_null(arg);
    snprintf(arg, bytes, "%s%s", before, text);
    w->args[w->arg_count++] = arg;
}

static void add_model(struct world *w, const char *model)
{
    const char *top = getenv("top_srcdir"), *path = strchr(model, '=');
    char before[WORLD_PATH_MAX];
    int name = path ? (int)(path - model) + 1 : 0;
    snprintf(before, sizeof(before), "%s%.*s%s/tests/models/", name > 0 ? "--model=" : "", name,
             model, top ? top : "..");
    add_arg(w, before, model + name);
}

static void serve(struct world *w, const char *const *models, const char *const *options)
{
    add_arg(w, "pted", "");
    add_arg(w, "--workers=1", "");
    while (*options) {
        add_arg(w, *options++, "");
    }
    while (*models) {
        add_model(w, *models++);
    }
    options_init(&w->options);
    assert_ok(w->err, options_add_arguments(&w->options, w->arg_count, w->args, &w->err));
    assert_ok(w->err, log_open(NULL, LOG_ERROR, &w->err));
    assert_ok(w->err, serving_new(&w->options, "cpu", true, &w->serving, &w->err));
    assert_ok(w->err, repository_load(&w->serving->repository, &w->options, NULL, &w->err));
}

static void lend(struct world *w)
{
    head_init(&w->head, &w->options.params);
    body_init(&w->body, NULL, w->options.params.body_bytes_max);
    buf_init(&w->out, ANSWER_BYTES_MAX);
    buf_init(&w->events, ANSWER_BYTES_MAX);
    assert_ok(w->err, hal_pool_member_new(&w->upload, &w->err));
    assert_ok(w->err, hal_pool_member_new(&w->other, &w->err));
    assert_ok(w->err, infer_init(&w->infer, &w->env, &w->err));
    w->infer.serving = w->serving;
    w->infer.head = &w->head;
    w->infer.received = &w->body;
    w->infer.out = &w->out;
    w->infer.client = &w->client;
    w->infer.model_name = w->name;
}

void world_open(struct world *w, const char *const *models, const char *const *options)
{
    *w = (struct world){0};
    serve(w, models, options);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_ok(w->err, offload_start(&w->offload, &w->loop, &w->alarm, &w->err));
    regions_init(&w->regions, &w->options.params);
    seats_init(&w->seats);
    sem_init(&w->run, 0, 0);
    sem_init(&w->left, 0, 0);
    w->env = (struct infer_env){
        .options = &w->options,
        .params = &w->options.params,
        .offload = &w->offload,
        .alarm = &w->alarm,
        .regions = &w->regions,
        .seats = &w->seats,
        .owner = w,
        .go_on = go_on,
        .note_failure = note_failure,
        .note_run = note_run,
        .note_left = note_left,
        .note_idle = note_idle,
    };
    lend(w);
}

void world_close(struct world *w)
{
    infer_fini(&w->infer);
    hal_pool_free(w->other);
    hal_pool_free(w->upload);
    buf_fini(&w->events);
    buf_fini(&w->out);
    body_fini(&w->body);
    head_fini(&w->head);
    seats_fini(&w->seats);
    regions_fini(&w->regions);
    uv_run(&w->loop, UV_RUN_DEFAULT); /* the task that has started the pool */
    offload_fini(&w->offload);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    serving_free(w->serving);
    sem_destroy(&w->run);
    sem_destroy(&w->left);
    for (int i = 0; i < w->arg_count; i++) {
        free(w->args[i]);
    }
}

struct model *world_model(struct world *w, const char *name)
{
    struct model *model;
    assert_ok(w->err, repository_find(&w->serving->repository, name, 0, &model, &w->err));
    return model;
}

/* ---- the head and the body ------------------------------------------------------------------- */

void world_add_field(struct world *w, const char *name, const char *value)
{
    head_add_name(&w->head, span_str(name));
    assert_int_equal(head_add_value(&w->head, span_str(value), &w->err), 0);
    head_end_field(&w->head);
}

int world_begin(struct world *w, const char *name, const char *query, const struct infer_ops *ops,
                const struct codec *codec)
{
    const uint32_t known = QUERY_BIT(BINARY) | QUERY_BIT(PROFILE) | QUERY_BIT(TOP_K);
    snprintf(w->name, sizeof(w->name), "%s", name);
    assert_ok(w->err, query_parse(span_str(query), known, &w->infer.query, &w->err));
    w->infer.version = 0;
    w->failure_count = w->idle_notes = w->run_count = w->move_count = w->turn_count = 0;
    w->event_count = 0;
    w->is_parsed = false;
    w->err.code = ST_OK;
    buf_reset(&w->events);
    hal_pool_join(w->upload, w->serving->transfers);
    w->body.pool = w->upload;
    return infer_begin(&w->infer, ops, codec, false, &w->err);
}

void world_receive(struct world *w, struct span body)
{
    assert_ok(w->err, body_add(&w->body, body, &w->err));
    w->infer.arrived_ns = uv_hrtime();
    assert_int_equal(infer_settle(&w->infer, &w->err), OUTCOME_DONE);
}

/* ---- the steps ------------------------------------------------------------------------------- */

typedef enum outcome step_f(struct infer *infer, struct error *err);

/* The rules of a request: a step begins at the first place that may do, and moves on when it says
 * so. */
static enum outcome run_step(struct world *w, step_f *run, enum infer_step step)
{
    struct infer *infer = &w->infer;
    enum outcome outcome;
    work_reset(&infer->work);
    for (;;) {
        uint64_t known = step == INFER_ENCODE ? infer_encode_bytes(infer) : 0;
        enum work_place place = work_place(&infer->work, known, infer_is_long(infer, step));
        work_begin(&infer->work, place);
        outcome = run(infer, &w->err);
        if (outcome != OUTCOME_HEAVY && outcome != OUTCOME_PLAN) {
            return outcome;
        }
        assert_int_equal(w->err.code, ST_OK);
        assert_true(place != WORK_HEAVY || step == INFER_SAMPLE);
        w->move_count++;
        work_move_on(&infer->work);
    }
}

static void release(struct world *w)
{
    if (w->is_unreleased) {
        w->is_unreleased = false;
        rt_sched_released(w->serving->sched);
    }
}

/* Threads read the files of the call. */
static enum outcome read_media(struct world *w)
{
    assert_ok(w->err, infer_media_begin(&w->infer, &w->err));
    while (w->turn_count == 0) {
        uv_run(&w->loop, UV_RUN_ONCE);
    }
    w->turn_count = 0;
    return run_step(w, infer_end_media, INFER_OTHER);
}

static enum outcome decode(struct world *w)
{
    enum outcome outcome = run_step(w, infer_decode, INFER_DECODE);
    return outcome == OUTCOME_FILES ? read_media(w) : outcome;
}

enum outcome world_decode(struct world *w)
{
    enum outcome outcome = w->is_parsed ? OUTCOME_DONE : run_step(w, infer_parse, INFER_PARSE);
    w->is_parsed = outcome == OUTCOME_DONE;
    if (!w->is_parsed) {
        return outcome;
    }
    w->err.code = ST_OK; /* of an attempt that had no memory */
    return decode(w);
}

/* Another call takes all memory of |pool|. */
static void hold(struct world *w, struct hal_pool *pool)
{
    struct hal_pool_stats stats;
    hal_pool_join(w->other, pool);
    hal_pool_stats(w->other, &stats);
    for (size_t bytes = stats.size_bytes; bytes > 0; bytes /= 2) {
        while (hal_pool_try_charge(w->other, bytes)) {
            w->held_bytes += bytes;
        }
    }
}

static enum outcome run(struct world *w)
{
    struct rt_sched_queue *queue;
    w->run_count++;
    if (w->is_short) {
        hold(w, w->infer.running);
    }
    if (infer_submit(&w->infer, &queue, &w->err) != ST_OK) {
        return OUTCOME_FAILED;
    }
    if (w->meanwhile) {
        w->meanwhile(w);
    }
    while (sem_wait(&w->run) != 0) {
    }
    if (w->run_status == ST_CANCELLED) {
        return OUTCOME_FAILED; /* the client has gone, nobody asks for the reason */
    }
    return infer_finish(&w->infer, w->run_status, &w->err);
}

/* The events of a stream go to the client, which may be gone by then. */
static void send_events(struct world *w)
{
    if (infer_has_events(&w->infer)) {
        w->event_count++;
        buf_add(&w->events, w->out.ptr, w->out.len);
        buf_reset(&w->out);
    }
}

/* PREPARE to ENCODE, or to SAMPLE; the next run begins with DECODE. */
static enum outcome run_once(struct world *w)
{
    enum outcome outcome = run_step(w, infer_prepare, INFER_OTHER);
    outcome = outcome == OUTCOME_DONE ? run(w) : outcome;
    if (outcome == OUTCOME_DONE && infer_has_runs(&w->infer)) {
        outcome = run_step(w, infer_sample, INFER_SAMPLE);
    }
    return outcome;
}

enum outcome world_run(struct world *w)
{
    enum outcome outcome = run_once(w);
    while (outcome == OUTCOME_DONE && infer_has_runs(&w->infer)) {
        release(w);
        send_events(w);
        if (infer_is_over(&w->infer) || w->run_count == w->stop_after) {
            break;
        }
        outcome = decode(w);
        outcome = outcome == OUTCOME_DONE ? run_once(w) : outcome;
    }
    if (outcome != OUTCOME_DONE && w->event_count > 0) {
        infer_print_error_event(&w->infer, &w->err, 500, &w->events);
    }
    bool is_left = infer_has_runs(&w->infer) && w->run_count == w->stop_after;
    if (outcome != OUTCOME_DONE || w->event_count > 0 || is_left) {
        return outcome;
    }
    outcome = run_step(w, infer_encode, INFER_ENCODE);
    w->infer.encoded_ns = uv_hrtime();
    return outcome;
}

enum outcome world_go(struct world *w)
{
    enum outcome outcome = world_decode(w);
    return outcome == OUTCOME_DONE ? world_run(w) : outcome;
}

enum outcome world_ask(struct world *w, const char *name, const char *query,
                       const struct infer_ops *ops, const struct codec *codec, const char *body)
{
    int status = world_begin(w, name, query, ops, codec);
    if (status != 200) {
        fail_msg("%s: %d: %s", name, status, w->err.text);
    }
    world_receive(w, span_str(body));
    return world_go(w);
}

/* ---- the answer and the end ------------------------------------------------------------------ */

struct span world_answer(struct world *w)
{
    const struct oip_encoded *encoded = &w->infer.encoded;
    if (w->infer.coding != CODING_IDENTITY) {
        return buf_span(&w->infer.deflated);
    }
    uint8_t *all = arena_alloc(&w->infer.arena, encoded->total_bytes + 1);
    size_t len = 0;
    assert_non_null(all);
    for (size_t i = 0; i < encoded->span_count; i++) {
        memcpy(all + len, encoded->spans[i].ptr, encoded->spans[i].len);
        len += encoded->spans[i].len;
    }
    assert_int_equal(len, encoded->total_bytes);
    return span_of(all, len);
}

bool world_says(struct world *w, const char *text)
{
    struct span said = w->event_count > 0 ? buf_span(&w->events) : world_answer(w);
    return memmem(said.ptr, said.len, text, strlen(text)) != NULL;
}

void world_end(struct world *w, int http_status)
{
    if (http_status) {
        infer_count(&w->infer, http_status, uv_hrtime());
    }
    body_reset(&w->body);
    while (!infer_leave(&w->infer)) {
        while (sem_wait(&w->left) != 0) {
        }
    }
    infer_reset(&w->infer);
    release(w);
    buf_reset(&w->out);
    head_reset(&w->head);
    hal_pool_leave(w->upload);
    w->body.pool = w->infer.inflated.pool = NULL;
    w->infer.is_left = false;
    w->stop_after = 0;
    w->meanwhile = NULL;
    w->is_short = false;
}

void world_hold_memory(struct world *w)
{
    hold(w, w->infer.share);
}

void world_give_memory(struct world *w)
{
    hal_pool_discharge(w->other, w->held_bytes);
    hal_pool_leave(w->other);
    w->held_bytes = 0;
}

struct cJSON *world_read_json(const char *path)
{
    const char *top = getenv("top_srcdir");
    char whole[WORLD_PATH_MAX];
    snprintf(whole, sizeof(whole), "%s/tests/models/%s", top ? top : "..", path);
    char *text = calloc(1, FILE_BYTES_MAX);
    FILE *file = fopen(whole, "r");
    if (!file || !text) {
        fail_msg("%s cannot be read", whole);
    }
    size_t len = fread(text, 1, FILE_BYTES_MAX - 1, file);
    assert_true(len < FILE_BYTES_MAX - 1);
    fclose(file);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    free(text);
    return json;
}
