/* SPDX-License-Identifier: MIT */
/* Handlers of routes that are not about one model: health, settings, the page for people, the
 * description of all routes, regions of memory, orders to load. */
#include "config.h"

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "server/daemon/console/console.h"
#include "server/process/log.h"
#include "tests/unit/api_support.h"

#define REGION_BYTES 4096

static struct api_world world;
static char cards[2][64]; /* files */

static void write_card(char path[64], const char *text)
{
    snprintf(path, 64, "/tmp/test_api_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int open_world(void **state)
{
    char digits[96], encoder[96];
    (void)state;
    write_card(cards[0],
               "{\"description\":\"\\\"0\\\" to '9'\",\"outputs\":{\"output_0\":{\"labels\":"
               "[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}}}");
    write_card(cards[1], "{\"inputs\":{\"input_ids\":{\"text\":{\"mask\":\"attention_mask\","
                         "\"types\":\"token_type_ids\"}}}}");
    snprintf(digits, sizeof(digits), "--card=digits=%s", cards[0]);
    snprintf(encoder, sizeof(encoder), "--card=text=%s", cards[1]);
    const char *const arguments[] = {"@add.pte", "@digits.pte",
                                     digits,     "--model=text=@encoder/model.pte",
                                     encoder,    "--shared-memory=loopback",
                                     NULL};
    api_world_open(&world, arguments);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    api_world_close(&world);
    return unlink(cards[0]) || unlink(cards[1]);
}

static enum status ask(api_handler_f *handler, const char *body)
{
    return api_world_ask(&world, handler, "", body);
}

static enum status ask_region(api_handler_f *handler, const char *region, const char *body)
{
    api_world_begin(&world, "", body);
    snprintf(world.request.match.region, sizeof(world.request.match.region), "%s", region);
    return handler(&world.request, &world.err);
}

static void check(api_handler_f *handler, const char *body, const char *expected)
{
    assert_ok(world.err, ask(handler, body));
    api_world_check(&world, expected);
}

/* ---- health ---------------------------------------------------------------------------------- */

static void readiness_follows_the_daemon(void **state)
{
    struct loop *loop = &world.loop;
    (void)state;
    loop->is_starting = true;
    assert_fails(world.err, ask(api_ready, ""), ST_UNAVAILABLE, "models are loading");
    loop->is_starting = false;
    world.recovery.is_active = true;
    assert_fails(world.err, ask(api_ready, ""), ST_UNAVAILABLE, "the device was lost");
    loop->is_draining = true; /* is told before anything else */
    assert_fails(world.err, ask(api_ready, ""), ST_UNAVAILABLE, "stopping");
    assert_int_equal(world.request.out.len, 0);
    check(api_live, "", "{`live`:true}"); /* whatever happens */
    loop->is_draining = world.recovery.is_active = false;
    check(api_ready, "", "{`ready`:true}");
}

static void the_server_names_its_extensions(void **state)
{
    (void)state;
    world.request.client.scopes = TOKEN_SCOPE_INFER | TOKEN_SCOPE_ADMIN;
    check(api_server, "",
          "{`name`:`pted`,`version`:`" PACKAGE_VERSION "`,`extensions`:[`binary_tensor_data`,"
          "`classification`,`logging`,`model_configuration`,`model_repository`,"
          "`model_repository(unload_dependents)`,`schedule_policy`,`sequence`,"
          "`sequence(string_id)`,`statistics`,`trace`,`system_shared_memory`],"
          "`scopes`:[`infer`,`admin`]}");
    world.options.shared_memory = OPTIONS_SHARED_OFF;
    assert_ok(world.err, ask(api_server, ""));
    assert_null(strstr(api_world_answer(&world), "shared_memory"));
    world.options.shared_memory = OPTIONS_SHARED_LOOPBACK;
}

static void a_preflight_has_nothing_to_say(void **state)
{
    (void)state;
    check(api_preflight, "", "{}");
}

/* ---- settings -------------------------------------------------------------------------------- */

#define LOG(warning, info, verbose)                                                                \
    "{`log_file`:``,`log_error`:true,`log_warning`:" warning ",`log_info`:" info                   \
    ",`log_verbose_level`:" verbose ",`log_format`:`ISO8601`}"

static void settings_of_the_log_change(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    check(api_log_settings, "", LOG("false", "false", "0"));
    check(api_set_log, "{\"log_warning\":true}", LOG("true", "false", "0"));
    assert_int_equal(log_level(), LOG_NOTICE);
    check(api_set_log, "{\"log_verbose_level\":1}", LOG("true", "true", "1"));
    check(api_set_log, "{\"log_verbose_level\":0}", LOG("true", "true", "0"));
    assert_int_equal(log_level(), LOG_INFO);
    assert_fails(world.err, ask(api_set_log, "{\"log_file\":\"/tmp/x\"}"), ST_UNSUPPORTED,
                 "log_file: expected \"\"");
    check(api_set_log, "{\"log_info\":false,\"log_warning\":false}", LOG("false", "false", "0"));
    assert_int_equal(log_level(), LOG_ERROR);
}

#define TRACES(level, rate, count)                                                                 \
    "{`trace_level`:[`" level "`],`trace_rate`:`" rate "`,`trace_count`:`" count                   \
    "`,`log_frequency`:`0`,`trace_file`:``,`trace_mode`:`opentelemetry`}"

static void traces_are_off_without_a_collector(void **state)
{
    (void)state;
    check(api_trace_settings, "", TRACES("OFF", "100", "-1"));
    assert_fails(world.err, ask(api_set_trace, "{\"trace_rate\":\"5\"}"), ST_UNSUPPORTED,
                 "there is no collector");
    assert_fails(world.err, ask(api_set_trace, "{\"trace_level\":[\"TIMESTAMPS\"]}"),
                 ST_UNSUPPORTED, "there is no collector");
    check(api_set_trace, "{\"trace_level\":[\"OFF\"]}", TRACES("OFF", "100", "-1"));
}

static void settings_of_traces_change(void **state)
{
    (void)state;
    world.spans.writer = (struct line_writer *)&world; /* only looked at: there is a collector */
    check(api_set_trace,
          "{\"trace_level\":[\"TIMESTAMPS\"],\"trace_rate\":\"5\","
          "\"trace_count\":\"9\"}",
          TRACES("TIMESTAMPS", "5", "9"));
    check(api_set_trace, "{\"trace_level\":[\"OFF\"]}", TRACES("OFF", "5", "9"));
    check(api_set_trace,
          "{\"trace_level\":[\"TIMESTAMPS\"],\"trace_rate\":null,"
          "\"trace_count\":null}",
          TRACES("TIMESTAMPS", "100", "-1"));
    assert_fails(world.err, ask(api_set_trace, "{\"trace_rate\":\"x\"}"), ST_INVALID, "trace_rate");
    world.spans.writer = NULL;
}

static void a_model_has_the_settings_of_all(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_model_trace_settings, "add", ""));
    api_world_check(&world, TRACES("OFF", "100", "-1"));
    assert_ok(world.err, api_world_ask(&world, api_set_model_trace, "add", "{}"));
    api_world_check(&world, TRACES("OFF", "100", "-1"));
    assert_fails(world.err,
                 api_world_ask(&world, api_set_model_trace, "add", "{\"trace_level\":[\"OFF\"]}"),
                 ST_UNSUPPORTED, "a model has none of its own");
}

/* ---- the page for people --------------------------------------------------------------------- */

static void the_console_is_its_files(void **state)
{
    static const struct {
        const char *name, *type, *beginning;
    } files[] = {
        {"", "text/html; charset=utf-8", "<!doctype html>"},
        {"index.html", "text/html; charset=utf-8", "<!doctype html>"},
        {"console.css", "text/css; charset=utf-8", "/*"},
        {"main.js", "text/javascript; charset=utf-8", "// SPDX"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        assert_ok(world.err, ask_region(api_console, files[i].name, ""));
        assert_string_equal(world.request.content_type, files[i].type);
        assert_true(world.request.is_page);
        assert_int_equal(
            strncmp(api_world_answer(&world), files[i].beginning, strlen(files[i].beginning)), 0);
    }
    assert_fails(world.err, ask_region(api_console, "../conf", ""), ST_NOT_FOUND,
                 "no file of this name");
    world.options.has_no_console = true;
    assert_fails(world.err, ask_region(api_console, "", ""), ST_NOT_FOUND, "--console is off");
    world.options.has_no_console = false;
}

static void a_page_is_compressed_if_the_client_takes_it(void **state)
{
    struct console_file file;
    (void)state;
    api_world_begin(&world, "", "");
    api_world_add_field(&world, "Accept-Encoding", "gzip");
    work_begin(&world.request.infer.work, WORK_HEAVY);
    assert_ok(world.err, api_console(&world.request, &world.err));
    assert_true(console_find("", &file));
    assert_int_equal(world.request.infer.coding, CODING_GZIP);
    assert_between(world.request.infer.deflated.len, 100, file.bytes.len - 1);
    assert_memory_equal(world.request.infer.deflated.ptr, "\x1f\x8b\x08", 3);
}

/* ---- the description of all routes ----------------------------------------------------------- */

static const cJSON *member(const cJSON *json, const char *const *path)
{
    for (; *path; path++) {
        const cJSON *found = cJSON_GetObjectItemCaseSensitive(json, *path);
        if (!found) {
            fail_msg("%s is missing", *path);
        }
        json = found;
    }
    return json;
}

#define MEMBER(json, ...) member(json, (const char *const[]){__VA_ARGS__, NULL})

static void check_text(const cJSON *json, const char *expected)
{
    char *text = cJSON_PrintUnformatted(json);
    assert_string_equal(text, expected);
    free(text);
}

static const cJSON *find_call(const cJSON *document, const char *model)
{
    char path[64];
    snprintf(path, sizeof(path), "/v2/models/%s/call", model);
    return MEMBER(document, "paths", path, "post");
}

static cJSON *read_document(void)
{
    assert_ok(world.err, ask(api_openapi, ""));
    cJSON *document = cJSON_ParseWithOpts(api_world_answer(&world), NULL, true);
    assert_non_null(document);
    return document;
}

static void the_description_has_the_call_of_each_model(void **state)
{
    cJSON *document = read_document();
    (void)state;
    const cJSON *call = find_call(document, "add");
    check_text(MEMBER(call, "operationId"), "\"call_add\"");
    check_text(MEMBER(call, "summary"), "\"add\"");
    check_text(MEMBER(call, "parameters"), "[{\"$ref\":\"#/components/parameters/Profile\"}]");
    const cJSON *content = MEMBER(call, "requestBody", "content");
    assert_int_equal(cJSON_GetArraySize(content), 1);
    const cJSON *args = MEMBER(content, "application/json", "schema", "properties", "args");
    assert_int_equal(cJSON_GetArraySize(MEMBER(args, "prefixItems")), 2);
    check_text(MEMBER(call, "responses", "200", "content", "application/json", "schema",
                      "properties", "result", "description"),
               "\"float32[2,3]\"");
    MEMBER(document, "paths", "/v2/models/{model}/infer", "post");
    cJSON_Delete(document);
}

static void a_model_with_labels_has_top_k_and_its_description(void **state)
{
    cJSON *document = read_document();
    (void)state;
    const cJSON *call = find_call(document, "digits");
    check_text(MEMBER(call, "summary"), "\"\\\"0\\\" to '9'\"");
    check_text(MEMBER(call, "parameters"), "[{\"$ref\":\"#/components/parameters/Profile\"},"
                                           "{\"$ref\":\"#/components/parameters/TopK\"}]");
    cJSON_Delete(document);
}

/* The other two inputs are made together with the text. */
static void a_model_of_texts_takes_them_as_they_are(void **state)
{
    cJSON *document = read_document();
    (void)state;
    const cJSON *content = MEMBER(find_call(document, "text"), "requestBody", "content");
    assert_int_equal(cJSON_GetArraySize(content), 3);
    check_text(MEMBER(content, "text/plain"), "{\"schema\":{\"type\":\"string\"}}");
    check_text(MEMBER(content, "multipart/form-data", "schema"),
               "{\"type\":\"object\",\"properties\":{"
               "\"input_ids\":{\"type\":\"string\"},"
               "\"attention_mask\":{\"type\":\"string\",\"contentMediaType\":\"application/json\","
               "\"description\":\"as in JSON: int64[1,?]\"},"
               "\"token_type_ids\":{\"type\":\"string\",\"contentMediaType\":\"application/json\","
               "\"description\":\"as in JSON: int64[1,?]\"},"
               "\"parameters\":{\"type\":\"string\",\"contentMediaType\":\"application/json\"}},"
               "\"required\":[\"input_ids\"],\"additionalProperties\":false}");
    cJSON_Delete(document);
}

/* ---- regions of memory ----------------------------------------------------------------------- */

static void regions_are_for_clients_of_this_machine(void **state)
{
    static api_handler_f *const handlers[] = {api_region_status, api_register, api_unregister};
    (void)state;
    world.request.client.is_local = false;
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        assert_fails(world.err, ask_region(handlers[i], "", ""), ST_UNSUPPORTED,
                     "it is for clients at a unix socket or the loopback address");
    }
}

static void regions_come_and_go(void **state)
{
    char key[32], body[96], expected[160];
    (void)state;
    snprintf(key, sizeof(key), "/test_api_%d", (int)getpid());
    int fd = shm_open(key, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, REGION_BYTES), 0);
    world.request.client.is_local = true;
    snprintf(body, sizeof(body), "{\"key\":\"%s\",\"offset\":16,\"byte_size\":64}", key);
    assert_ok(world.err, ask_region(api_register, "mine", body));
    api_world_check(&world, "{}");
    snprintf(expected, sizeof(expected), "[{`name`:`mine`,`key`:`%s`,`offset`:16,`byte_size`:64}]",
             key);
    check(api_region_status, "", expected);
    assert_fails(world.err, ask_region(api_register, "mine", body), ST_INVALID, "mine");
    assert_fails(world.err, ask_region(api_register, "other", "{\"key\":5}"), ST_INVALID, "key");
    assert_fails(world.err, ask_region(api_region_status, "other", ""), ST_NOT_FOUND, "other");
    assert_ok(world.err, ask_region(api_unregister, "mine", ""));
    check(api_region_status, "", "[]");
    world.request.client.is_local = false;
    close(fd);
    shm_unlink(key);
}

static void there_is_no_memory_of_cuda(void **state)
{
    (void)state;
    check(api_cuda_status, "", "[]");
    assert_fails(world.err, ask_region(api_cuda_status, "a", ""), ST_NOT_FOUND, "no region 'a'");
    assert_fails(world.err, ask(api_cuda_register, "{}"), ST_UNSUPPORTED, "CUDA");
    check(api_cuda_unregister, "", "{}");
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void orders_are_kept_for_the_change(void **state)
{
    const struct changes_order *order = &world.request.order;
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_load, "add", ""));
    assert_int_equal(order->kind, UPDATE_LOAD);
    assert_string_equal(order->name, "add");
    assert_ok(world.err, api_world_ask(&world, api_unload, "digits",
                                       "{\"parameters\":{\"unload_dependents\":true}}"));
    assert_int_equal(order->kind, UPDATE_UNLOAD);
    assert_string_equal(order->name, "digits");
    assert_true(order->with_dependents);
    assert_ok(world.err, api_world_ask(&world, api_unload, "digits", "{}"));
    assert_false(order->with_dependents);
}

static void files_and_settings_do_not_come_with_an_order(void **state)
{
    (void)state;
    assert_fails(world.err,
                 api_world_ask(&world, api_load, "add", "{\"parameters\":{\"config\":\"{}\"}}"),
                 ST_UNSUPPORTED, "expected no \"config\" and no \"file:\"");
    assert_fails(world.err, api_world_ask(&world, api_load, "add", "[1]"), ST_INVALID,
                 "expected an object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readiness_follows_the_daemon),
        cmocka_unit_test(the_server_names_its_extensions),
        cmocka_unit_test(a_preflight_has_nothing_to_say),
        cmocka_unit_test(settings_of_the_log_change),
        cmocka_unit_test(traces_are_off_without_a_collector),
        cmocka_unit_test(settings_of_traces_change),
        cmocka_unit_test(a_model_has_the_settings_of_all),
        cmocka_unit_test(the_console_is_its_files),
        cmocka_unit_test(a_page_is_compressed_if_the_client_takes_it),
        cmocka_unit_test(the_description_has_the_call_of_each_model),
        cmocka_unit_test(a_model_with_labels_has_top_k_and_its_description),
        cmocka_unit_test(a_model_of_texts_takes_them_as_they_are),
        cmocka_unit_test(regions_are_for_clients_of_this_machine),
        cmocka_unit_test(regions_come_and_go),
        cmocka_unit_test(there_is_no_memory_of_cuda),
        cmocka_unit_test(orders_are_kept_for_the_change),
        cmocka_unit_test(files_and_settings_do_not_come_with_an_order),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
