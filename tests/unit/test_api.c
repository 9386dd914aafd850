/* SPDX-License-Identifier: MIT */
/* Handlers of routes over a plain struct api: no daemon, no socket, no model. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "base/buf.h"
#include "server/daemon/api/api.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/observed.h"
#include "server/daemon/observe/spans.h"
#include "server/daemon/request/request.h"
#include "server/daemon/serving/recovery.h"
#include "server/process/options.h"

static struct loop loop;
static struct recovery recovery;
static struct spans spans;
static struct options options;
static const struct observed observed = {.loop = &loop, .recovery = &recovery};
static const struct api api = {
    .options = &options,
    .params = &options.params,
    .loop = &loop,
    .observed = &observed,
    .spans = &spans,
};
static struct request request;

static int set_up(void **state)
{
    struct error err;
    struct trace_source *none = NULL;
    (void)state;
    options_init(&options);
    loop = (struct loop){.is_starting = false};
    recovery = (struct recovery){.is_active = false};
    assert_int_equal(spans_open(&spans, none, &options, &err), ST_OK);
    request = (struct request){.magic = REQUEST_MAGIC, .api = &api};
    buf_init(&request.out, 4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_fini(&request.out);
    spans_close(&spans);
    return 0;
}

static const char *printed(void)
{
    buf_add(&request.out, "", 1);
    assert_false(buf_failed(&request.out));
    return (const char *)request.out.ptr;
}

static void readiness_follows_the_daemon(void **state)
{
    struct error err;
    (void)state;
    loop.is_starting = true;
    assert_int_equal(api_ready(&request, &err), ST_UNAVAILABLE);
    assert_string_equal(err.text, "models are loading");
    loop.is_starting = false;
    recovery.is_active = true;
    assert_int_equal(api_ready(&request, &err), ST_UNAVAILABLE);
    assert_string_equal(err.text, "the device was lost");
    loop.is_draining = true; /* is told before anything else */
    assert_int_equal(api_ready(&request, &err), ST_UNAVAILABLE);
    assert_string_equal(err.text, "stopping");
    assert_int_equal(request.out.len, 0);
    loop.is_draining = recovery.is_active = false;
    assert_int_equal(api_ready(&request, &err), ST_OK);
    assert_string_equal(printed(), "{\"ready\":true}");
}

static void shared_memory_is_an_extension_if_it_is_in_use(void **state)
{
    struct error err;
    (void)state;
    options.shared_memory = OPTIONS_SHARED_OFF;
    assert_int_equal(api_server(&request, &err), ST_OK);
    assert_null(strstr(printed(), "system_shared_memory"));
    buf_reset(&request.out);
    options.shared_memory = OPTIONS_SHARED_LOOPBACK;
    assert_int_equal(api_server(&request, &err), ST_OK);
    assert_non_null(strstr(printed(), "\"system_shared_memory\""));
}

static void traces_are_off_without_a_collector(void **state)
{
    struct error err;
    (void)state;
    assert_int_equal(api_trace_settings(&request, &err), ST_OK);
    assert_non_null(strstr(printed(), "\"OFF\""));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(readiness_follows_the_daemon),
        TEST(shared_memory_is_an_extension_if_it_is_in_use),
        TEST(traces_are_off_without_a_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
