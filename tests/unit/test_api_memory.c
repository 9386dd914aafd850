/* SPDX-License-Identifier: MIT */
/*
 * Handlers when memory runs out: the first allocation fails, then the second, and so on until the
 * answer is whole. Each time before, the error says so; no answer is cut. The linker sends the
 * allocating functions of the program here.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/oom/failing.h"
#include "tests/unit/api_support.h"

#define ALLOCATIONS_MAX 400

static struct api_world world;
static char pipeline[64];

static int open_world(void **state)
{
    char argument[96];
    (void)state;
    snprintf(pipeline, sizeof(pipeline), "/tmp/test_api_memory_XXXXXX");
    int fd = mkstemp(pipeline);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs("{\"twice\":{\"steps\":["
          "{\"model\":\"add\",\"inputs\":[{\"input\":0},{\"input\":1}]},"
          "{\"model\":\"add\",\"inputs\":[{\"from\":0,\"output\":0},{\"input\":1}]}]}}",
          file);
    fclose(file);
    snprintf(argument, sizeof(argument), "--pipeline=%s", pipeline);
    const char *const arguments[] = {
        "@add.pte", "@shapes.pte", "@found.pte", "--model=chat=@chat/model.pte", argument, NULL};
    api_world_open(&world, arguments);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    api_world_close(&world);
    return unlink(pipeline);
}

static const struct {
    const char *name;
    api_handler_f *handler;
    const char *model, *body, *region;
} rows[] = {
    {"models", api_models, "", "", ""},
    {"index", api_index, "", "{}", ""},
    {"model", api_model, "shapes.step", "", ""},
    {"model with lacks", api_model, "add", "", ""},
    {"config", api_config, "add", "", ""},
    {"ready", api_model_ready, "add", "", ""},
    {"v1 models", api_v1_models, "", "", ""},
    {"v1 model", api_v1_model, "chat", "", ""},
    {"stats", api_stats, "", "", ""},
    {"model stats", api_model_stats, "twice", "", ""},
    {"signature", api_signature, "shapes.step", "", ""},
    {"shape", api_shape, "shapes.step", "{\"args\":[[[1,2,3]]]}", ""},
    {"shape of infer", api_shape, "found",
     "{\"inputs\":[],\"outputs\":[{\"name\":\"output_0\",\"shape\":[7,2]}]}", ""},
    {"results", api_results, "shapes.step", "{\"args\":[3]}", "step$results"},
    {"graph", api_graph, "found", "", ""},
    {"graph of a pipeline", api_graph, "twice", "", ""},
    {"tokenize", api_tokenize, "chat", "{\"text\":\"hello \\u0062\"}", ""},
    {"detokenize", api_detokenize, "chat", "{\"tokens\":[277,297,222]}", ""},
    {"tokenize in pieces", api_tokenize, "",
     "{\"model\":\"chat\",\"content\":\"hi\",\"with_pieces\":true,\"return_token_strs\":true}", ""},
    {"prompt of a chat", api_apply_template, "",
     "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", ""},
    {"props", api_props, "", "", ""},
    {"openapi", api_openapi, "", "", ""},
    {"console", api_console, "", "", ""},
    {"log settings", api_log_settings, "", "", ""},
    {"trace settings", api_trace_settings, "", "", ""},
    {"regions", api_region_status, "", "", ""},
    {"cuda regions", api_cuda_status, "", "", ""},
};

/* A request that has kept no memory of earlier ones. */
static void begin(size_t row)
{
    struct request *request = &world.request;
    api_world_renew(&world);
    api_world_begin(&world, rows[row].model, rows[row].body);
    request->client.is_local = true;
    snprintf(request->match.region, sizeof(request->match.region), "%s", rows[row].region);
}

static char *whole_answer(size_t row)
{
    begin(row);
    assert_ok(world.err, api_world_call(&world, rows[row].handler));
    char *answer = strdup(api_world_answer(&world));
    assert_non_null(answer);
    return answer;
}

static void check(size_t row)
{
    char *whole = whole_answer(row);
    enum status status = ST_EXHAUSTED;
    long count = 0;
    for (; status == ST_EXHAUSTED; count++) {
        begin(row);
        assert_true(count < ALLOCATIONS_MAX);
        allocations_left = count;
        status = api_world_call(&world, rows[row].handler);
        allocations_left = -1;
        if (status != ST_OK && (status != ST_EXHAUSTED || !strstr(world.err.text, "memory"))) {
            fail_msg("%s: after %ld allocations: %d, %s", rows[row].name, count, (int)status,
                     world.err.text);
        }
    }
    if (strcmp(api_world_answer(&world), whole) != 0) {
        fail_msg("%s: after %ld allocations the answer is\n%s\nexpected\n%s", rows[row].name,
                 count - 1, api_world_answer(&world), whole);
    }
    assert_true(count > 1); /* some of them failed */
    free(whole);
}

static void no_answer_is_cut(void **state)
{
    (void)state;
    world.options.shared_memory = OPTIONS_SHARED_LOOPBACK;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        check(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_answer_is_cut)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
