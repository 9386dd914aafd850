/* SPDX-License-Identifier: MIT */
/* What handlers say of models: lists, metadata, settings and statistics, as a whole. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/infer/stats.h"
#include "server/daemon/serving/serving.h"
#include "tests/unit/api_support.h"

static struct api_world world;
static char folder[] = "/tmp/test_api_models_XXXXXX"; /* made anew for each world */

/* ---- models ---------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The files of the folder, in an order in which they can be made; the other way round, removed. */
static const char *const paths[] = {"bad.pte", "digits.card.json", "twice.json", "two",
                                    "two/1",   "two/1/model.pte",  "two/3",      "two/3/model.pte"};
#define PATHS (sizeof(paths) / sizeof(paths[0]))

static void make_files(void)
{
    const char *top = getenv("top_srcdir");
    char add[4096], path[128];
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    write_file(paths[0], "no program");
    write_file(paths[1], "{\"description\":\"digits: \\\"0\\\" to '9' \\\\ </script> \\u001b[31m\","
                         "\"outputs\":{\"output_0\":{\"name\":\"scores\",\"labels\":[\"0\",\"1\","
                         "\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"nine, \\\"9\\\"\"]}}}");
    write_file(paths[2], "{\"twice\":{\"steps\":["
                         "{\"model\":\"add\",\"inputs\":[{\"input\":0},{\"input\":1}]},"
                         "{\"model\":\"add\",\"inputs\":[{\"from\":0,\"output\":0},{\"input\":1}]}"
                         "]}}");
    assert_non_null(realpath(top ? top : "..", add));
    strncat(add, "/tests/models/add.pte", sizeof(add) - strlen(add) - 1);
    for (size_t i = 3; i < PATHS; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, paths[i]);
        assert_int_equal(strstr(path, ".pte") ? symlink(add, path) : mkdir(path, 0700), 0);
    }
}

static int open_world(void **state)
{
    char models[64], pipeline[64], card[64];
    (void)state;
    make_files();
    snprintf(models, sizeof(models), "--models=%s", folder);
    snprintf(pipeline, sizeof(pipeline), "--pipeline=%s/%s", folder, paths[2]);
    snprintf(card, sizeof(card), "--card=digits=%s/%s", folder, paths[1]);
    const char *const arguments[] = {"@add.pte", "@shapes.pte", "@digits.pte",        card,
                                     models,     pipeline,      "--set=add:weight=3", NULL};
    api_world_open(&world, arguments);
    return 0;
}

static int close_world(void **state)
{
    char path[128];
    (void)state;
    api_world_close(&world);
    for (size_t i = PATHS; i-- > 0;) {
        snprintf(path, sizeof(path), "%s/%s", folder, paths[i]);
        assert_int_equal(remove(path), 0);
    }
    return rmdir(folder);
}

#define BAD "not a program that pted reads: the identifier at byte 4 is \"rogr\", expected \"ET12\""

static void check(api_handler_f *handler, const char *model, const char *body, const char *expected)
{
    assert_ok(world.err, api_world_ask(&world, handler, model, body));
    api_world_check(&world, expected);
}

static void check_version(api_handler_f *handler, uint32_t version, const char *expected)
{
    api_world_begin(&world, "two", "");
    world.request.match.version = version;
    assert_ok(world.err, handler(&world.request, &world.err));
    api_world_check(&world, expected);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void models_are_the_names_that_can_be_called(void **state)
{
    (void)state;
    check(api_models, "", "",
          "{`models`:[`add`,`digits`,`shapes.recall`,`shapes.step`,`twice`,`two`]}");
}

#define TWO_ROW(version)                                                                           \
    "{`name`:`two`,`version`:`" version                                                            \
    "`,`state`:`READY`,`lacks`:{`batches`:`dim 0 of input 'input_0' is not 1`}}"
#define READY_ROWS                                                                                 \
    "{`name`:`digits`,`version`:`1`,`state`:`READY`},"                                             \
    "{`name`:`shapes.recall`,`version`:`1`,`state`:`READY`,"                                       \
    "`lacks`:{`batches`:`dim 0 of input 'input_1' is not the number of rows`}},"                   \
    "{`name`:`shapes.step`,`version`:`1`,`state`:`READY`},"                                        \
    "{`name`:`twice`,`version`:`1`,`state`:`READY`,"                                               \
    "`lacks`:{`batches`:`it is a pipeline, whose steps join the batches of their "                 \
    "models`}}," TWO_ROW("3") "," TWO_ROW("1") "]"
#define ADD_ROW                                                                                    \
    "[{`name`:`add`,`version`:`1`,`state`:`READY`,"                                                \
    "`lacks`:{`batches`:`dim 0 of input 'input_0' is not 1`}},"

static void the_index_has_failed_models_with_the_reason(void **state)
{
    (void)state;
    check(api_index, "", "",
          ADD_ROW
          "{`name`:`bad`,`version`:`1`,`state`:`UNAVAILABLE`,`reason`:`not a program that "
          "pted reads: the identifier at byte 4 is \\`rogr\\`, expected \\`ET12\\``}," READY_ROWS);
    check(api_index, "", "{\"ready\":true}", ADD_ROW READY_ROWS);
    assert_fails(world.err, api_world_ask(&world, api_index, "", "{\"ready\":1}"), ST_INVALID,
                 "ready: expected a boolean, got a number");
}

/* There is room for the rows and for no text beside them. */
static void an_index_without_room_leaves_out_what_models_lack(void **state)
{
    (void)state;
    api_world_begin(&world, "", "");
    struct arena *arena = &world.request.infer.arena;
    struct repository_index *index = repository_ref_index(&world.serving->repository);
    size_t most = arena->max_bytes;
    arena->max_bytes = arena->used_bytes + index->count * sizeof(struct oip_index_row);
    repository_unref_index(index);
    assert_ok(world.err, api_index(&world.request, &world.err));
    arena->max_bytes = most;
    assert_non_null(strstr(api_world_answer(&world),
                           "{\"name\":\"add\",\"version\":\"1\",\"state\":\"READY\"}"));
    assert_null(strstr(api_world_answer(&world), "lacks"));
}

/* A newer file that was refused is the reason of a model that still serves. */
static void the_index_tells_why_a_newer_file_was_refused(void **state)
{
    struct model *model;
    (void)state;
    assert_ok(world.err,
              repository_find(&world.serving->repository, "digits", 0, &model, &world.err));
    error_set(&model->origin->refusal, ST_CORRUPT, "it was \"cut\"");
    assert_ok(world.err, api_world_ask(&world, api_index, "", ""));
    assert_non_null(strstr(api_world_answer(&world),
                           "{\"name\":\"digits\",\"version\":\"1\",\"state\":\"READY\","
                           "\"reason\":\"it was \\\"cut\\\"\"}"));
    model->origin->refusal.code = ST_OK;
    model_unref(model);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static void metadata_has_what_the_card_says(void **state)
{
    (void)state;
    check(api_model, "digits", "",
          "{`name`:`digits`,`versions`:[`1`],`platform`:`executorch_pte`,"
          "`inputs`:[{`name`:`input_0`,`datatype`:`FP32`,`shape`:[-1,1,-1,-1],"
          "`example_shape`:[1,1,8,8],`max_shape`:[360,1,8,8]}],"
          "`outputs`:[{`name`:`scores`,`datatype`:`FP32`,`shape`:[-1,10],`label_count`:10}],"
          "`precision`:`fast`,"
          "`description`:`digits: \\`0\\` to '9' \\\\ </script> \\u001b[31m`}");
}

static void metadata_of_a_pipeline_has_no_precision(void **state)
{
    (void)state;
    check(api_model, "twice", "",
          "{`name`:`twice`,`versions`:[`1`],`platform`:`pipeline`,"
          "`inputs`:[{`name`:`input_0`,`datatype`:`FP32`,`shape`:[2,3]},"
          "{`name`:`input_1`,`datatype`:`FP32`,`shape`:[2,3]}],"
          "`outputs`:[{`name`:`output_0`,`datatype`:`FP32`,`shape`:[2,3]}],"
          "`lacks`:{`batches`:`it is a pipeline, whose steps join the batches of their models`}}");
}

#define TWO(versions)                                                                              \
    "{`name`:`two`,`versions`:" versions ",`platform`:`executorch_pte`,"                           \
    "`inputs`:[{`name`:`input_0`,`datatype`:`FP32`,`shape`:[2,3]},"                                \
    "{`name`:`input_1`,`datatype`:`FP32`,`shape`:[2,3]}],"                                         \
    "`outputs`:[{`name`:`output_0`,`datatype`:`FP32`,`shape`:[2,3]}],`precision`:`fast`,"          \
    "`lacks`:{`batches`:`dim 0 of input 'input_0' is not 1`}}"

static void metadata_names_all_versions_or_the_one_that_was_named(void **state)
{
    (void)state;
    check_version(api_model, 0, TWO("[`3`,`1`]"));
    check_version(api_model, 1, TWO("[`1`]"));
    api_world_begin(&world, "two", "");
    world.request.match.version = 2;
    assert_fails(world.err, api_model(&world.request, &world.err), ST_NOT_FOUND, "version 2");
}

static api_handler_f *const of_models[] = {
    api_model,    api_config,     api_model_stats, api_signature,
    api_shape,    api_graph,      api_results,     api_model_trace_settings,
    api_tokenize, api_detokenize, api_v1_model,    api_set_model_trace};

static void every_handler_refuses_models_that_cannot_be_called(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(of_models) / sizeof(of_models[0]); i++) {
        assert_fails(world.err, api_world_ask(&world, of_models[i], "nobody", "{}"), ST_NOT_FOUND,
                     "no model 'nobody'");
        assert_fails(world.err, api_world_ask(&world, of_models[i], "bad", "{}"), ST_UNAVAILABLE,
                     "model 'bad' cannot be called: " BAD);
        assert_int_equal(world.request.out.len, 0);
    }
}

static void a_model_is_ready_or_says_why_not(void **state)
{
    (void)state;
    check(api_model_ready, "add", "", "{`name`:`add`,`ready`:true}");
    assert_fails(world.err, api_world_ask(&world, api_model_ready, "bad", ""), ST_UNAVAILABLE, BAD);
}

#define FP32_2X3(name)                                                                             \
    "{`name`:`" name "`,`data_type`:`TYPE_FP32`,`dims`:[2,3],`format`:`FORMAT_NONE`,"              \
    "`is_shape_tensor`:false,`allow_ragged_batch`:false,`optional`:false}"
#define CONFIG_END                                                                                 \
    "`parameters`:{},`model_warmup`:[],`model_transaction_policy`:{`decoupled`:false}}"
#define CONFIG_BEGIN                                                                               \
    "`platform`:`executorch_pte`,`backend`:`pted`,`version_policy`:{`all`:{}},`max_batch_size`:0,"
#define ON_CPU "`instance_group`:[{`name`:`cpu`,`kind`:`KIND_CPU`,`count`:1,`gpus`:[]}],"

static void settings_have_the_form_of_tritons(void **state)
{
    (void)state;
    check(api_config, "add", "",
          "{`name`:`add`," CONFIG_BEGIN "`input`:[" FP32_2X3("input_0") "," FP32_2X3(
              "input_1") "],"
                         "`output`:[{`name`:`output_0`,`data_type`:`TYPE_FP32`,`dims`:[2,3],`label_"
                         "filename`:``,"
                         "`is_shape_tensor`:false}]," ON_CPU CONFIG_END);
}

static void settings_of_a_model_with_state_are_those_of_sequences(void **state)
{
    (void)state;
    check(api_config, "shapes.step", "",
          "{`name`:`shapes.step`," CONFIG_BEGIN
          "`input`:[{`name`:`input_0`,`data_type`:`TYPE_INT64`,`dims`:[1,-1],"
          "`format`:`FORMAT_NONE`,`is_shape_tensor`:false,`allow_ragged_batch`:false,"
          "`optional`:false}],`output`:[{`name`:`output_0`,`data_type`:`TYPE_FP32`,"
          "`dims`:[1,-1,4],`label_filename`:``,`is_shape_tensor`:false}]," ON_CPU
          "`sequence_batching`:{`oldest`:{`max_candidate_sequences`:4096,"
          "`preferred_batch_size`:[],`max_queue_delay_microseconds`:0},"
          "`max_sequence_idle_microseconds`:60000000,`control_input`:[],`state`:[]}," CONFIG_END);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static struct model *add_calls(void)
{
    struct model *model;
    assert_ok(world.err,
              repository_find(&world.serving->repository, "twice", 0, &model, &world.err));
    struct model_stats *stats = model->stats;
    stats->ok = (struct model_stats_phase){7, 700};
    stats->failed = (struct model_stats_phase){2, 20};
    stats->cancelled = (struct model_stats_phase){1, 11};
    stats->input = (struct model_stats_phase){7, 70};
    stats->decode = (struct model_stats_phase){3, 33};
    stats->queue = (struct model_stats_phase){7, 71};
    stats->batch_wait = (struct model_stats_phase){5, 55};
    stats->compute = (struct model_stats_phase){7, 72};
    stats->encode = (struct model_stats_phase){7, 73};
    stats->write = (struct model_stats_phase){7, 74};
    stats->inference_count = 9;
    stats->execution_count = 8;
    stats->batches[0] = (struct model_stats_batch){7, 1, 2, 3};
    stats->batches[3] = (struct model_stats_batch){1, 4, 5, 6};
    return model;
}

static void statistics_of_a_model_have_all_phases(void **state)
{
    struct model *model = add_calls();
    (void)state;
    check(api_model_stats, "twice", "",
          "{`model_stats`:[{`name`:`twice`,`version`:`1`,`last_inference`:0,`inference_count`:9,"
          "`execution_count`:8,`inference_stats`:{"
          "`success`:{`count`:7,`ns`:700},`fail`:{`count`:2,`ns`:20},"
          "`cancel`:{`count`:1,`ns`:11},`queue`:{`count`:7,`ns`:71},"
          "`compute_input`:{`count`:7,`ns`:70},`compute_infer`:{`count`:7,`ns`:72},"
          "`compute_output`:{`count`:7,`ns`:73},`cache_hit`:{`count`:0,`ns`:0},"
          "`cache_miss`:{`count`:0,`ns`:0},`write`:{`count`:7,`ns`:74},"
          "`batch_wait`:{`count`:5,`ns`:55},`decode`:{`count`:3,`ns`:33}},"
          "`response_stats`:{},`batch_stats`:["
          "{`batch_size`:1,`compute_input`:{`count`:7,`ns`:1},`compute_infer`:{`count`:7,`ns`:2},"
          "`compute_output`:{`count`:7,`ns`:3}},"
          "{`batch_size`:4,`compute_input`:{`count`:1,`ns`:4},`compute_infer`:{`count`:1,`ns`:5},"
          "`compute_output`:{`count`:1,`ns`:6}}],"
          "`batch_rows_max`:1,`batch_rows_proven`:1,`batch_trial_open`:false,"
          "`batch_refusal`:`it is a pipeline, whose steps join the batches of their models`,"
          "`batch_sizes`:[],`steps`:["
          "{`name`:`add`,`model`:`add`,`success`:{`count`:0,`ns`:0},`fail`:{`count`:0,`ns`:0},"
          "`joined`:0},"
          "{`name`:`add`,`model`:`add`,`success`:{`count`:0,`ns`:0},`fail`:{`count`:0,`ns`:0},"
          "`joined`:0}],"
          "`memory_usage`:[],`inputs`:{`in_place`:0,`converted`:0},"
          "`load`:{`waiting`:0,`waiting_bytes`:0,`running`:0},`memory`:{`held`:0,`peak`:0},"
          "`weights`:{`own`:0,`shared`:0,`rest`:0}}]}");
    *model->stats = (struct model_stats){.refs = model->stats->refs};
    model_unref(model);
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) {
        count++;
    }
    return count;
}

static void statistics_of_a_version_are_apart(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_model_stats, "two", ""));
    assert_int_equal(count_of(api_world_answer(&world), "\"name\":\"two\""), 2);
    api_world_begin(&world, "two", "");
    world.request.match.version = 3;
    assert_ok(world.err, api_model_stats(&world.request, &world.err));
    assert_int_equal(count_of(api_world_answer(&world), "\"name\":\"two\""), 1);
    assert_int_equal(count_of(api_world_answer(&world), "\"version\":\"3\""), 1);
}

/* Those that are ready, and the memory of requests. */
static void statistics_of_all_models(void **state)
{
    (void)state;
    world.requests.transfers.evicted_count = 5;
    assert_ok(world.err, api_world_ask(&world, api_stats, "", ""));
    const char *answer = api_world_answer(&world);
    assert_int_equal(count_of(answer, "\"last_inference\":0"), 7);
    assert_null(strstr(answer, "\"bad\""));
    assert_non_null(strstr(answer, "],\"memory\":{\"bytes\":268435456,\"used\":0,"));
    assert_non_null(strstr(answer, "\"evicted\":5,"));
}

/* ---- of clients of other protocols ----------------------------------------------------------- */

static void the_first_protocol_has_all_names_and_openais_none(void **state)
{
    (void)state;
    check(api_v1_models, "", "",
          "{`object`:`list`,`data`:[],"
          "`models`:[`add`,`digits`,`shapes.recall`,`shapes.step`,`twice`,`two`]}");
}

static void one_model_answers_both_protocols(void **state)
{
    struct model *model;
    char expected[256];
    (void)state;
    assert_ok(world.err, repository_find(&world.serving->repository, "add", 0, &model, &world.err));
    snprintf(expected, sizeof(expected),
             "{`name`:`add`,`ready`:true,`id`:`add`,`root`:`add`,`object`:`model`,`created`:%llu,"
             "`owned_by`:`pted`}",
             (unsigned long long)model->origin->id.program.modified_ns / 1000000000);
    model_unref(model);
    check(api_v1_model, "add", "", expected);
}

/* ---- files that are loaded when they are called ---------------------------------------------- */

static int open_listed(void **state)
{
    char models[64];
    (void)state;
    make_files();
    snprintf(models, sizeof(models), "--models=%s", folder);
    const char *const arguments[] = {"@add.pte", models, "--model-bytes-max=1500", NULL};
    api_world_open(&world, arguments);
    return 0;
}

static void files_that_are_only_listed_can_be_called(void **state)
{
    (void)state;
    check(api_models, "", "", "{`models`:[`add`,`two`]}");
    assert_ok(world.err, api_world_ask(&world, api_index, "", ""));
    const char *answer = api_world_answer(&world);
    assert_non_null(strstr(answer, "{\"name\":\"two\",\"version\":\"3\",\"state\":\"UNKNOWN\","
                                   "\"reason\":\"it is not loaded\"},{\"name\":\"two\","));
    assert_non_null(strstr(answer, "{\"name\":\"bad\",\"version\":\"1\","
                                   "\"state\":\"UNAVAILABLE\""));
    assert_ok(world.err, api_world_ask(&world, api_index, "", "{\"ready\":true}"));
    assert_null(strstr(api_world_answer(&world), "two"));
}

static void a_listed_model_is_ready_and_not_yet_known(void **state)
{
    (void)state;
    check(api_model_ready, "two", "", "{`name`:`two`,`ready`:true}");
    assert_int_equal(api_world_ask(&world, api_model, "two", ""), ST_WOULD_LOAD);
    assert_string_equal(world.request.infer.absent, "two");
    assert_int_equal(world.request.out.len, 0);
}

/* Nobody knows what it can do before it was loaded once. */
static void a_listed_model_may_be_for_openai(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_v1_models, "", ""));
    assert_int_equal(count_of(api_world_answer(&world), "\"object\":\"model\""), 1);
    assert_non_null(strstr(api_world_answer(&world), "{\"id\":\"two\",\"root\":\"two\","));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_the_names_that_can_be_called),
        cmocka_unit_test(the_index_has_failed_models_with_the_reason),
        cmocka_unit_test(an_index_without_room_leaves_out_what_models_lack),
        cmocka_unit_test(the_index_tells_why_a_newer_file_was_refused),
        cmocka_unit_test(metadata_has_what_the_card_says),
        cmocka_unit_test(metadata_of_a_pipeline_has_no_precision),
        cmocka_unit_test(metadata_names_all_versions_or_the_one_that_was_named),
        cmocka_unit_test(every_handler_refuses_models_that_cannot_be_called),
        cmocka_unit_test(a_model_is_ready_or_says_why_not),
        cmocka_unit_test(settings_have_the_form_of_tritons),
        cmocka_unit_test(settings_of_a_model_with_state_are_those_of_sequences),
        cmocka_unit_test(statistics_of_a_model_have_all_phases),
        cmocka_unit_test(statistics_of_a_version_are_apart),
        cmocka_unit_test(statistics_of_all_models),
        cmocka_unit_test(the_first_protocol_has_all_names_and_openais_none),
        cmocka_unit_test(one_model_answers_both_protocols),
    };
    const struct CMUnitTest of_listed[] = {
        cmocka_unit_test(files_that_are_only_listed_can_be_called),
        cmocka_unit_test(a_listed_model_is_ready_and_not_yet_known),
        cmocka_unit_test(a_listed_model_may_be_for_openai),
    };
    int failed = cmocka_run_group_tests(tests, open_world, close_world);
    return failed + cmocka_run_group_tests(of_listed, open_listed, close_world);
}
