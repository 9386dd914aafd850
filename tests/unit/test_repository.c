/* SPDX-License-Identifier: MIT */
/* The repository of models: states, names, and models that leave while calls hold them. */
#include "config.h"

#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "hal/semaphore.h"
#include "runtime/call/invocation.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/stats.h"
#include "server/model/repository_priv.h"
#include "server/model/update.h"
#include "server/process/options.h"
#include "tests/unit/call_support.h"

static uint64_t fake_clock(void)
{
    return 1;
}

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_sched *sched;
    struct rt_sequences *sequences;
    struct options options;
    struct repository repository;
    char pipelines[256]; /* a path; |options| borrow it */
    char folder[64];     /* holds links to files of tests/models */
    struct error err;
};

/* ---- a folder of models ---------------------------------------------------------------------- */

static void make_folder(struct world *w)
{
    snprintf(w->folder, sizeof(w->folder), "/tmp/test_repository_XXXXXX");
    assert_non_null(mkdtemp(w->folder));
}

static void path_of(const struct world *w, const char *path, char full[256])
{
    snprintf(full, 256, "%s/%s", w->folder, path);
}

static void make_subfolder(const struct world *w, const char *path)
{
    char full[256];
    path_of(w, path, full);
    assert_int_equal(mkdir(full, 0700), 0);
}

static void put_model(const struct world *w, const char *path, const char *model)
{
    const char *top = getenv("top_srcdir");
    char full[256], relative[256], target[4096];
    path_of(w, path, full);
    snprintf(relative, sizeof(relative), "%s/tests/models/%s.pte", top ? top : ".", model);
    assert_non_null(realpath(relative, target));
    assert_int_equal(symlink(target, full), 0);
}

static void put_damaged(const struct world *w, const char *path)
{
    char full[256];
    path_of(w, path, full);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs("this is no program, although it is long enough to be one", file);
    fclose(file);
}

static void remove_folder(const struct world *w)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", w->folder);
    assert_int_equal(system(command), 0);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void load(struct world *w, const char *pipeline)
{
    char *file = w->pipelines;
    path_of(w, "pipelines.json", w->pipelines);
    char *argv[] = {
        (char[]){"pted"}, (char[]){"--models"}, w->folder, (char[]){"--pipeline"}, file, NULL};
    if (pipeline) {
        FILE *out = fopen(file, "w");
        assert_non_null(out);
        fputs(pipeline, out);
        fclose(out);
    } else {
        argv[3] = NULL;
    }
    options_init(&w->options);
    assert_ok(w->err, options_add_arguments(&w->options, pipeline ? 5 : 3, argv, &w->err));
    assert_ok(w->err, repository_load(&w->repository, &w->options, NULL, &w->err));
}

static int open_world(void **state)
{
    static struct world world;
    struct world *w = &world;
    const struct rt_sched_options sched = {.depth = 2, .clock = fake_clock};
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    assert_ok(w->err, rt_sched_new(&sched, &w->sched, &w->err));
    assert_ok(w->err,
              repository_init(&w->repository, w->device, w->pool, w->pool, w->sched, &w->err));
    const struct rt_sequences_options sequences = {
        .count_max = 8, .bytes_max = 1 << 20, .idle_ns = 1000, .clock = fake_clock};
    assert_ok(w->err, rt_sequences_new(&sequences, &w->sequences, &w->err));
    make_folder(w);
    *state = w;
    return 0;
}

/* The scheduler asserts that no queue is left, and the device that no memory is left. So every
 * model has been freed. */
static int close_world(void **state)
{
    struct world *w = *state;
    rt_sequences_free(w->sequences);
    repository_fini(&w->repository);
    rt_sched_free(w->sched);
    close_two_workers(w->device, w->pool);
    remove_folder(w);
    return 0;
}

static struct model *find(struct world *w, const char *name, uint32_t version)
{
    struct model *model = NULL;
    assert_ok(w->err, repository_find(&w->repository, name, version, &model, &w->err));
    return model;
}

static uint32_t find_version(struct world *w, const char *name)
{
    struct model *model = find(w, name, 0);
    uint32_t version = model->version;
    model_unref(model);
    return version;
}

/* Checks the name and the version of the model that is found. */
static void assert_found(struct world *w, const char *name, uint32_t version, const char *found,
                         uint32_t found_version)
{
    struct model *model = find(w, name, version);
    assert_string_equal(model->name, found);
    assert_int_equal(model->version, found_version);
    model_unref(model);
}

static void assert_not_found(struct world *w, const char *name, uint32_t version, const char *text)
{
    struct model *model = NULL;
    assert_fails(w->err, repository_find(&w->repository, name, version, &model, &w->err),
                 ST_NOT_FOUND, text);
    assert_null(model);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void states_follow_each_other(void **state)
{
    static const bool may[MODEL_STATES][MODEL_STATES] = {
        [MODEL_UNKNOWN] = {[MODEL_LOADING] = true, [MODEL_UNLOADING] = true},
        [MODEL_LOADING] = {[MODEL_READY] = true, [MODEL_FAILED] = true, [MODEL_UNLOADING] = true},
        [MODEL_READY] = {[MODEL_FAILED] = true, [MODEL_UNLOADING] = true},
        [MODEL_FAILED] = {[MODEL_UNLOADING] = true},
    };
    (void)state;
    for (unsigned from = 0; from < MODEL_STATES; from++) {
        for (unsigned to = 0; to < MODEL_STATES; to++) {
            assert_int_equal(model_state_may_follow(from, to), may[from][to]);
        }
    }
    assert_string_equal(model_state_word(MODEL_READY), "READY");
    assert_string_equal(model_state_word(MODEL_FAILED), "UNAVAILABLE");
}

static void each_state_says_why_a_model_cannot_be_called(void **state)
{
    struct world *w = *state;
    struct origin *origin;
    struct model *model;
    struct error first, second;
    error_set(&first, ST_CORRUPT, "the file is damaged");
    error_set(&second, ST_UNAVAILABLE, "the device was lost");
    assert_ok(w->err, origin_new(span_str("m"), 1, "m.pte", &origin, &w->err));
    assert_ok(w->err, model_new(origin, span_str("m"), &model, &w->err));
    origin_unref(origin); /* the model keeps it */
    assert_fails(w->err, model_verify_ready(model, &w->err), ST_UNAVAILABLE,
                 "model 'm' cannot be called: it is not loaded");
    model_set_state(model, MODEL_LOADING);
    assert_fails(w->err, model_verify_ready(model, &w->err), ST_UNAVAILABLE, "it is being loaded");
    model_fail(model, &first);
    model_fail(model, &second);
    assert_fails(w->err, model_verify_ready(model, &w->err), ST_UNAVAILABLE, "the file is damaged");
    model_set_state(model, MODEL_UNLOADING);
    model_fail(model, &second);
    assert_fails(w->err, model_verify_ready(model, &w->err), ST_UNAVAILABLE,
                 "it is being unloaded");
    assert_string_equal(model->origin->path, "m.pte");
    model_unref(model);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A name as a browser or a person gives it to a file is no name of a model. */
static void other_names_become_names_of_models(void **state)
{
    struct world *w = *state;
    put_model(w, "net (1).pte", "add");
    put_model(w, "a+b.pte", "mlp");
    put_model(w, "a_b.pte", "add");
    make_subfolder(w, "my sums");
    make_subfolder(w, "my sums/2");
    put_model(w, "my sums/2/model.pte", "add");
    load(w, NULL);
    assert_found(w, "net_1", 0, "net_1", 1);
    assert_found(w, "my_sums", 0, "my_sums", 2);
    struct model *model = find(w, "a_b", 0); /* that file keeps its own name */
    assert_non_null(strstr(model->origin->path, "/a_b.pte"));
    model_unref(model);
    assert_int_equal(repository_count(&w->repository), 3);
}

static void names_aliases_and_versions(void **state)
{
    struct world *w = *state;
    make_subfolder(w, "sum");
    make_subfolder(w, "sum/1");
    make_subfolder(w, "sum/12");
    put_model(w, "sum/1/model.pte", "add");
    put_model(w, "sum/12/model.pte", "add");
    put_model(w, "both.pte", "methods");
    put_model(w, "one.pte", "mlp");
    put_model(w, "one.forward.pte", "linear");
    load(w, NULL);
    assert_found(w, "sum", 0, "sum", 12);
    assert_found(w, "sum", 1, "sum", 1);
    assert_found(w, "sum", 12, "sum", 12);
    assert_found(w, "sum.forward", 0, "sum", 12); /* the alias */
    assert_found(w, "sum.forward", 1, "sum", 1);
    assert_not_found(w, "sum", 2, "model 'sum' has no version 2");
    assert_not_found(w, "sum.backward", 0, "no model 'sum.backward'");
    assert_not_found(w, "su", 0, "no model 'su'");
    assert_found(w, "both.encode", 0, "both.encode", 1);
    assert_not_found(w, "both", 0, "no model 'both', but models of its methods, such as 'both.");
    assert_found(w, "one.forward", 0, "one.forward", 1); /* the file's name wins over the alias */
    assert_found(w, "one", 0, "one", 1);
    struct model *model = find(w, "both.encode", 0);
    assert_string_equal(model->origin->name, "both");
    assert_string_equal(model->method_name, "encode");
    assert_non_null(strstr(model->origin->path, "both.pte"));
    assert_int_equal(repository_count(&w->repository), 6); /* without the constants of `both` */
    assert_int_equal(repository_ready_count(&w->repository), 6);
    model_unref(model);
}

static void nothing_is_found_in_an_empty_repository(void **state)
{
    struct world *w = *state;
    assert_not_found(w, "add", 0, "no model 'add'");
    assert_int_equal(repository_count(&w->repository), 0);
}

static void a_damaged_file_is_a_model_that_failed(void **state)
{
    struct world *w = *state;
    make_subfolder(w, "m");
    make_subfolder(w, "m/1");
    make_subfolder(w, "m/2");
    put_model(w, "m/1/model.pte", "add");
    put_damaged(w, "m/2/model.pte");
    load(w, NULL);
    assert_found(w, "m", 0, "m", 1); /* the highest that can be called */
    struct model *model = find(w, "m", 2);
    assert_int_equal(model_state(model), MODEL_FAILED);
    assert_string_equal(model_refusal(model), model->failure.text);
    assert_null(model->method_name);
    assert_int_equal(repository_count(&w->repository), 2);
    assert_int_equal(repository_ready_count(&w->repository), 1);
    model_unref(model);
}

static void a_pipeline_is_a_model_without_a_file(void **state)
{
    struct world *w = *state;
    put_model(w, "sum.pte", "add");
    load(w, "{\"twice\":{\"steps\":[{\"model\":\"sum\",\"inputs\":[{\"input\":0},{\"input\":1}]},"
            "{\"model\":\"sum\",\"inputs\":[{\"from\":0},{\"input\":1}]}]}}");
    struct model *model = find(w, "twice", 0);
    assert_null(model->origin->path);
    assert_null(model->alias);
    assert_int_equal(model->step_count, 2);
    model_unref(model);
}

static void no_two_models_have_the_same_name_and_version(void **state)
{
    struct world *w = *state;
    struct repository_draft draft;
    put_model(w, "sum.pte", "add");
    load(w, NULL);
    struct model *before = find(w, "sum", 0), *twin;
    assert_ok(w->err, repository_draft_init(&draft, &w->repository, &w->options, &w->err));
    assert_ok(w->err,
              repository_draft_add(&draft, before->origin, span_str("sum"), &twin, &w->err));
    assert_fails(w->err, repository_draft_publish(&draft, &w->err), ST_INVALID,
                 "model 'sum' version 1: there are two of them");
    repository_draft_fini(&draft);
    struct model *after = find(w, "sum", 0);
    assert_ptr_equal(before, after); /* the draft is given up, and the index is as it was */
    assert_true(model_is_ready(after));
    model_unref(before);
    model_unref(after);
}

/* ---- models that leave ----------------------------------------------------------------------- */

/* A call of "sum" that waits for |gate|. */
static struct rt_invocation *begin_sum(struct world *w, struct model *model,
                                       struct hal_semaphore *gate)
{
    static const float ones[6] = {1, 1, 1, 1, 1, 1};
    const struct shape shape = {.rank = 2, .dims = {2, 3}};
    const struct input inputs[] = {{DT_F32, shape, ones}, {DT_F32, shape, ones}};
    const struct hal_timepoint opening = {gate, 1};
    struct rt_invocation *call = begin_call(model->method, model->pool, NULL, inputs, 2);
    rt_invocation_after(call, &opening);
    assert_ok(w->err, rt_invocation_prepare(call, RT_PREPARE_ALL, &w->err));
    return call;
}

static void remove_model(struct world *w, const struct model *model)
{
    struct repository_draft draft;
    assert_ok(w->err, repository_draft_init(&draft, &w->repository, &w->options, &w->err));
    repository_draft_remove(&draft, model);
    assert_ok(w->err, repository_draft_publish(&draft, &w->err));
    repository_draft_fini(&draft);
}

static void a_model_is_removed_while_a_call_runs(void **state)
{
    struct world *w = *state;
    struct hal_semaphore *gate;
    struct done done = DONE_INIT;
    put_model(w, "sum.pte", "add");
    put_model(w, "other.pte", "mlp");
    load(w, NULL);
    struct model *model = find(w, "sum", 0);
    assert_ok(w->err, hal_semaphore_new(0, &gate, &w->err));
    struct rt_invocation *call = begin_sum(w, model, gate);
    rt_invocation_submit(call, HAL_CALLER_BUSY, on_done, &done);
    remove_model(w, model);
    assert_not_found(w, "sum", 0, "no model 'sum'");
    assert_not_found(w, "sum.forward", 0, "no model 'sum.forward'");
    assert_found(w, "other", 0, "other", 1);
    assert_int_equal(model_state(model), MODEL_UNLOADING);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(await_done(&done), ST_OK);
    const float *sums = (const float *)rt_invocation_result(call, 0)->bytes.ptr;
    assert_true(sums[0] == 2 && sums[5] == 2);
    rt_invocation_free(call);
    /* The next call of a holder of the model works as well. */
    call = begin_sum(w, model, gate);
    assert_int_equal(submit_and_wait(call, false), ST_OK);
    rt_invocation_free(call);
    hal_semaphore_unref(gate);
    uint32_t before = rt_program_descriptors();
    model_unref(model);
    assert_true(rt_program_descriptors() <= before);
}

static void the_last_reference_frees(void **state)
{
    struct world *w = *state;
    put_model(w, "net.pte", "mlp");
    uint32_t none = rt_program_descriptors();
    load(w, NULL);
    assert_true(rt_program_descriptors() > none); /* its weights are read from the file */
    struct repository_index *index = repository_ref_index(&w->repository);
    struct model *model = find(w, "net", 0);
    remove_model(w, model);
    assert_int_equal(repository_count(&w->repository), 0);
    assert_int_equal(index->count, 1); /* a reader of the index keeps the old one */
    assert_ptr_equal(index->models[0], model);
    model_unref(model);
    assert_true(rt_program_descriptors() > none);
    repository_unref_index(index);
    assert_int_equal(rt_program_descriptors(), none);
}

static void a_lost_device_leaves_names_and_counts(void **state)
{
    struct world *w = *state;
    struct error why;
    error_set(&why, ST_UNAVAILABLE, "the device was lost");
    put_model(w, "sum.pte", "add");
    load(w, NULL);
    struct model *model = find(w, "sum", 0);
    model->stats->inference_count = 7;
    model_unref(model);
    repository_fail(&w->repository, &why);
    repository_close(&w->repository);
    repository_close(&w->repository); /* for the next attempt */
    assert_int_equal(repository_ready_count(&w->repository), 0);
    struct repository again = {0};
    assert_ok(w->err, repository_init(&again, w->device, w->pool, w->pool, w->sched, &w->err));
    assert_ok(w->err, repository_load(&again, &w->options, &w->repository, &w->err));
    repository_keep_stats(&again, &w->repository);
    model = find(w, "sum", 0);
    assert_null(model->program);
    assert_fails(w->err, model_verify_ready(model, &w->err), ST_UNAVAILABLE, "the device was lost");
    model_unref(model);
    assert_ok(w->err, repository_find(&again, "sum", 0, &model, &w->err));
    assert_true(model_is_ready(model));
    assert_int_equal(model->stats->inference_count, 7);
    model_unref(model);
    repository_fini(&again);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Makes the change; returns the status of its first half, or of its second one. */
static enum status change(struct world *w, struct update *update)
{
    update->repository = &w->repository;
    update->options = &w->options;
    enum status status = update_prepare(update, &w->err);
    if (status == ST_OK) {
        status = update_publish(update, w->sequences, &w->err);
    }
    return status;
}

static void expect_change(struct world *w, enum update_kind kind, const char *name, uint32_t loaded,
                          uint32_t gone, uint32_t kept)
{
    struct update update = {.kind = kind};
    snprintf(update.name, sizeof(update.name), "%s", name);
    assert_ok(w->err, change(w, &update));
    assert_int_equal(update.loaded_count, loaded);
    assert_int_equal(update.gone_count, gone);
    assert_int_equal(update.kept_count, kept);
    update_fini(&update);
}

static void drop_model(const struct world *w, const char *path)
{
    char full[256];
    path_of(w, path, full);
    assert_int_equal(unlink(full), 0);
}

static void a_scan_finds_what_is_new_changed_or_gone(void **state)
{
    struct world *w = *state;
    put_model(w, "same.pte", "add");
    put_model(w, "other.pte", "add");
    load(w, NULL);
    struct model *same = find(w, "same", 0), *other = find(w, "other", 0);
    expect_change(w, UPDATE_SCAN, "", 0, 0, 2);
    put_model(w, "late.pte", "mlp");
    drop_model(w, "other.pte");
    put_model(w, "other.pte", "mlp");
    expect_change(w, UPDATE_SCAN, "", 2, 0, 1);
    drop_model(w, "late.pte");
    expect_change(w, UPDATE_SCAN, "", 0, 1, 2);
    struct model *now = find(w, "same", 0);
    assert_ptr_equal(now, same);
    model_unref(now);
    now = find(w, "other", 0);
    assert_ptr_not_equal(now, other);
    assert_int_equal(model_state(other), MODEL_UNLOADING);
    assert_ptr_equal(now->stats, other->stats); /* the new one goes on counting */
    model_unref(now);
    model_unref(other);
    model_unref(same);
}

static void a_bad_file_does_not_take_the_place_of_a_good_one(void **state)
{
    struct world *w = *state;
    struct update scan = {.kind = UPDATE_SCAN}, update = {.kind = UPDATE_LOAD, .name = "sum"};
    put_model(w, "sum.pte", "add");
    load(w, NULL);
    struct model *before = find(w, "sum", 0);
    drop_model(w, "sum.pte");
    put_damaged(w, "sum.pte");
    assert_ok(w->err, change(w, &scan));
    assert_int_equal(scan.failed_count, 1);
    update_fini(&scan);
    assert_int_equal(before->origin->refusal.code, ST_CORRUPT);
    expect_change(w, UPDATE_SCAN, "", 0, 0, 1);
    assert_fails(w->err, change(w, &update), ST_CORRUPT, "");
    update_fini(&update);
    struct model *after = find(w, "sum", 0);
    assert_ptr_equal(before, after);
    assert_true(model_is_ready(after));
    model_unref(before);
    model_unref(after);
}

static void an_unloaded_model_stays_so_until_it_is_loaded_by_name(void **state)
{
    struct world *w = *state;
    struct model *model;
    put_model(w, "sum.pte", "add");
    put_model(w, "net.pte", "mlp");
    load(w, NULL);
    expect_change(w, UPDATE_UNLOAD, "sum", 0, 1, 1);
    expect_change(w, UPDATE_SCAN, "", 0, 0, 1);
    expect_change(w, UPDATE_LOAD, "net", 1, 0, 0);
    model = find(w, "sum", 0);
    assert_string_equal(model_refusal(model), "unloaded");
    model_unref(model);
    struct repository again = {0}; /* as after the loss of the device */
    assert_ok(w->err, repository_init(&again, w->device, w->pool, w->pool, w->sched, &w->err));
    assert_ok(w->err, repository_load(&again, &w->options, &w->repository, &w->err));
    assert_int_equal(repository_ready_count(&again), 1);
    repository_fini(&again);
    expect_change(w, UPDATE_LOAD, "sum", 1, 0, 1);
    model = find(w, "sum", 0);
    assert_true(model_is_ready(model));
    model_unref(model);
}

static void unknown_names_and_two_files_of_one_name_change_nothing(void **state)
{
    struct world *w = *state;
    struct update unknown = {.kind = UPDATE_UNLOAD, .name = "nobody"};
    struct update twins = {.kind = UPDATE_SCAN};
    put_model(w, "sum.pte", "add");
    load(w, NULL);
    assert_fails(w->err, change(w, &unknown), ST_NOT_FOUND, "'nobody'");
    update_fini(&unknown);
    make_subfolder(w, "sum");
    put_model(w, "sum/model.pte", "add");
    assert_fails(w->err, change(w, &twins), ST_INVALID, "there are two of them");
    update_fini(&twins);
    assert_int_equal(repository_ready_count(&w->repository), 1);
}

static void a_pipeline_does_not_lose_a_step_unnoticed(void **state)
{
    struct world *w = *state;
    struct update update = {.kind = UPDATE_UNLOAD, .name = "sum"};
    struct update whole = {.kind = UPDATE_UNLOAD, .name = "sum", .with_dependents = true};
    put_model(w, "sum.pte", "add");
    load(w,
         "{\"same\":{\"steps\":[{\"model\":\"sum\",\"inputs\":[{\"input\":0},{\"input\":1}]}]}}");
    struct model *before = find(w, "same", 0);
    assert_fails(w->err, change(w, &update), ST_INVALID, "pipeline 'same': step 0");
    update_fini(&update);
    expect_change(w, UPDATE_LOAD, "sum", 1, 0, 0);
    struct model *after = find(w, "same", 0);
    assert_ptr_not_equal(before, after); /* its step is of the new generation */
    assert_true(model_is_ready(after));
    assert_ok(w->err, change(w, &whole));
    update_fini(&whole);
    assert_int_equal(repository_ready_count(&w->repository), 0);
    model_unref(before);
    model_unref(after);
}

static void a_sequence_stays_with_its_generation(void **state)
{
    struct world *w = *state;
    put_model(w, "running.pte", "running");
    load(w, NULL);
    struct model *first = find(w, "running", 0);
    struct rt_sequence_key key = {.program = first->program, .number = 7};
    struct rt_sequence *sequence;
    assert_ok(w->err, rt_sequences_open(w->sequences, &key, true, &sequence, &w->err));
    rt_sequence_close(sequence);
    for (unsigned i = 0; i < 3; i++) {
        expect_change(w, UPDATE_LOAD, "running", 1, 0, 0);
        struct model *now = find(w, "running", 0);
        struct model *found = repository_find_generation(&w->repository, now, w->sequences, &key);
        assert_ptr_equal(found, first);
        model_unref(found);
        model_unref(now);
    }
    struct model *now = find(w, "running", 0);
    repository_forget_generations(&w->repository, w->sequences);
    assert_ptr_equal(now->older, first); /* those between had no sequence */
    rt_sequences_end_all(w->sequences, first->program);
    struct model *found = repository_find_generation(&w->repository, now, w->sequences, &key);
    assert_ptr_equal(found, now);
    repository_forget_generations(&w->repository, w->sequences);
    assert_null(now->older);
    model_unref(found);
    model_unref(now);
    model_unref(first);
}

static void the_highest_versions_are_listed(void **state)
{
    struct world *w = *state;
    make_subfolder(w, "net");
    for (const char *const *name = (const char *const[]){"1", "2", "10", "11", NULL}; *name;
         name++) {
        char path[64];
        snprintf(path, sizeof(path), "net/%s", *name);
        make_subfolder(w, path);
        snprintf(path, sizeof(path), "net/%s/model.pte", *name);
        put_model(w, path, "add");
    }
    load(w, NULL);
    assert_int_equal(repository_count(&w->repository), 4);
    w->options.params.version_count_max = 2;
    expect_change(w, UPDATE_SCAN, "", 0, 2, 2);
    assert_int_equal(find_version(w, "net"), 11);
}

/* ---- idle models ----------------------------------------------------------------------------- */

#define IDLE_MS 5u
#define IDLE_NS (IDLE_MS * 1000000u)
#define BUSY_NS 1000000000u
#define BEGIN_NS 1000u

/* All models are needed at BEGIN_NS, and may idle for IDLE_MS from then on. */
static void begin_idle(struct world *w)
{
    struct repository_index *index = repository_ref_index(&w->repository);
    for (uint32_t i = 0; i < index->count; i++) {
        index->models[i]->origin->keep = (struct keep){0};
        index->models[i]->params.idle_unload = IDLE_MS;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        repository_count_idle(index->models[i]);
        keep_begin(&index->models[i]->origin->keep, BEGIN_NS, 0);
    }
    repository_unref_index(index);
}

/* Looks at |now_ns|: so many models go, and the next look is at |next_ns|. */
static void expect_idle(struct world *w, uint64_t now_ns, uint32_t count, uint64_t next_ns)
{
    struct repository_removed removed;
    uint64_t next;
    assert_ok(w->err, repository_unload_idle(&w->repository, w->sequences, now_ns, &removed, &next,
                                             &w->err));
    assert_int_equal(removed.count, count);
    assert_true(next == next_ns);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(model_state(removed.models[i]), MODEL_UNLOADING);
    }
    repository_drop_removed(&removed);
}

static enum model_state state_of(struct world *w, const char *name)
{
    struct model *model = find(w, name, 0);
    enum model_state state = model_state(model);
    model_unref(model);
    return state;
}

static void idle_files_are_listed(void **state)
{
    struct world *w = *state;
    put_model(w, "a.pte", "add");
    put_model(w, "b.pte", "methods");
    put_damaged(w, "c.pte");
    load(w, NULL);
    expect_idle(w, UINT64_MAX - 1, 0, RT_SCHED_NEVER); /* nobody wants it */
    begin_idle(w);
    expect_idle(w, BEGIN_NS + IDLE_NS - 1, 0, BEGIN_NS + IDLE_NS);
    struct model *a = find(w, "a", 0), *b = find(w, "b.decode", 0);
    struct model_stats *stats = a->stats;
    const struct keep_wish none = {0};
    keep_use(&b->origin->keep, &none, BEGIN_NS + 7); /* one method keeps the others */
    model_unref(b);
    expect_idle(w, BEGIN_NS + IDLE_NS, 0, BEGIN_NS + IDLE_NS + 7); /* a call holds |a| */
    /* All methods of b, the constants too. */
    expect_idle(w, BEGIN_NS + IDLE_NS + 7, 8, BEGIN_NS + IDLE_NS + 7 + BUSY_NS);
    assert_int_equal(repository_count(&w->repository), 3);
    model_unref(a);
    expect_idle(w, BEGIN_NS + IDLE_NS + 7 + BUSY_NS, 1, RT_SCHED_NEVER);
    assert_int_equal(state_of(w, "a"), MODEL_UNKNOWN);
    assert_int_equal(state_of(w, "b.decode"), MODEL_UNKNOWN);
    assert_int_equal(state_of(w, "c"), MODEL_FAILED);
    a = find(w, "a", 0);
    assert_string_equal(model_refusal(a), "it was idle, its next call loads it");
    assert_ptr_equal(a->stats, stats);
    model_unref(a);
    expect_change(w, UPDATE_NEED, "a", 1, 0, 2);
    assert_int_equal(state_of(w, "a"), MODEL_READY);
    a = find(w, "a", 0);
    assert_ptr_equal(a->stats, stats);
    model_unref(a);
}

static void a_sequence_and_a_pipeline_keep_a_model(void **state)
{
    struct world *w = *state;
    put_model(w, "add.pte", "add");
    put_model(w, "running.pte", "running");
    load(w, "{\"p\": {\"steps\": [{\"model\": \"add\", "
            "\"inputs\": [{\"input\": 0}, {\"input\": 1}]}]}}");
    begin_idle(w);
    struct model *model = find(w, "running", 0);
    struct rt_sequence_key key = {.program = model->program, .number = 7};
    struct rt_sequence *sequence;
    assert_ok(w->err, rt_sequences_open(w->sequences, &key, true, &sequence, &w->err));
    rt_sequence_close(sequence);
    model_unref(model);
    expect_idle(w, BEGIN_NS + IDLE_NS, 0, BEGIN_NS + IDLE_NS + BUSY_NS);
    rt_sequences_end_all(w->sequences, key.program);
    expect_idle(w, BEGIN_NS + IDLE_NS, 1, RT_SCHED_NEVER);
    assert_int_equal(state_of(w, "running"), MODEL_UNKNOWN);
    assert_int_equal(state_of(w, "add"), MODEL_READY);
}

static void many_idle_files_go_in_parts(void **state)
{
    struct world *w = *state;
    for (unsigned i = 0; i < 40; i++) {
        char path[16];
        snprintf(path, sizeof(path), "m%u.pte", i);
        put_model(w, path, "add");
    }
    load(w, NULL);
    begin_idle(w);
    expect_idle(w, BEGIN_NS + IDLE_NS, 32, BEGIN_NS + IDLE_NS);
    expect_idle(w, BEGIN_NS + IDLE_NS, 8, RT_SCHED_NEVER);
    assert_int_equal(repository_count(&w->repository), 40);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define ROUNDS 300

struct seeker {
    struct world *w;
    atomic_bool is_over;
    unsigned found;
};

static void *seek(void *arg)
{
    struct seeker *seeker = arg;
    struct error err;
    while (!atomic_load(&seeker->is_over) || seeker->found == 0) {
        struct model *model;
        if (repository_find(&seeker->w->repository, "net", 0, &model, &err) == ST_OK) {
            seeker->found += rt_method_input_count(model->method) > 0;
            model_unref(model);
        }
        repository_ready_count(&seeker->w->repository);
    }
    return NULL;
}

/* A model without a file is added and removed. The other one is always found. */
static void the_index_changes_while_threads_read_it(void **state)
{
    struct world *w = *state;
    struct seeker seekers[2] = {{.w = w}, {.w = w}};
    pthread_t threads[2];
    struct error why;
    error_set(&why, ST_CORRUPT, "no file");
    put_model(w, "net.pte", "mlp");
    load(w, NULL);
    struct model *net = find(w, "net", 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, seek, &seekers[i]), 0);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct repository_draft draft;
        struct model *guest;
        assert_ok(w->err, repository_draft_init(&draft, &w->repository, &w->options, &w->err));
        assert_ok(w->err,
                  repository_draft_add(&draft, net->origin, span_str("guest"), &guest, &w->err));
        assert_ok(w->err, repository_draft_publish(&draft, &w->err));
        repository_draft_fini(&draft);
        model_fail(guest, &why); /* LOADING until now */
        remove_model(w, guest);
    }
    for (unsigned i = 0; i < 2; i++) {
        atomic_store(&seekers[i].is_over, true);
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(seekers[i].found > 0);
    }
    model_unref(net);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_follow_each_other),
        IN_WORLD(other_names_become_names_of_models),
        IN_WORLD(each_state_says_why_a_model_cannot_be_called),
        IN_WORLD(names_aliases_and_versions),
        IN_WORLD(nothing_is_found_in_an_empty_repository),
        IN_WORLD(a_damaged_file_is_a_model_that_failed),
        IN_WORLD(a_pipeline_is_a_model_without_a_file),
        IN_WORLD(no_two_models_have_the_same_name_and_version),
        IN_WORLD(a_model_is_removed_while_a_call_runs),
        IN_WORLD(the_last_reference_frees),
        IN_WORLD(a_lost_device_leaves_names_and_counts),
        IN_WORLD(a_scan_finds_what_is_new_changed_or_gone),
        IN_WORLD(a_bad_file_does_not_take_the_place_of_a_good_one),
        IN_WORLD(an_unloaded_model_stays_so_until_it_is_loaded_by_name),
        IN_WORLD(unknown_names_and_two_files_of_one_name_change_nothing),
        IN_WORLD(a_pipeline_does_not_lose_a_step_unnoticed),
        IN_WORLD(a_sequence_stays_with_its_generation),
        IN_WORLD(the_highest_versions_are_listed),
        IN_WORLD(idle_files_are_listed),
        IN_WORLD(a_sequence_and_a_pipeline_keep_a_model),
        IN_WORLD(many_idle_files_go_in_parts),
        IN_WORLD(the_index_changes_while_threads_read_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
