/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include "tests/unit/api_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "server/process/log.h"

#define ARGUMENTS_MAX 32
#define ARGUMENT_BYTES 1024
#define PLACES 64
#define THREADS 4

/* ---- the parts ------------------------------------------------------------------------------- */

/* "a=@b" becomes "a=FOLDER/b". Options borrow it: it stays. */
static char *expand(const char *argument)
{
    const char *top = getenv("top_srcdir"), *at = strchr(argument, '@');
    char *text = malloc(ARGUMENT_BYTES);
    assert_non_null(text);
    int head = at ? (int)(at - argument) : (int)strlen(argument);
    snprintf(text, ARGUMENT_BYTES, "%.*s%s%s%s", head, argument, at ? (top ? top : "..") : "",
             at ? "/tests/models/" : "", at ? at + 1 : "");
    return text;
}

static void read_options(struct api_world *world, const char *const *arguments)
{
    static char *kept[ARGUMENTS_MAX];
    int count = 0;
    for (int i = 0; i < ARGUMENTS_MAX; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
    kept[count++] = expand("pted");
    kept[count++] = expand("--workers=1");
    for (; *arguments; arguments++) {
        assert_true(count < ARGUMENTS_MAX);
        kept[count++] = expand(*arguments);
    }
    options_init(&world->options);
    assert_ok(world->err, options_add_arguments(&world->options, count, kept, &world->err));
}

/* Of parts that handlers only look at. */
static void init_shares(struct api_world *world)
{
    places_init(&world->conns.places, PLACES);
    waits_init(&world->waits, &world->alarm, &world->options.params);
    share_init(&world->changes.loads, CHANGES_LOADS_MAX, 0);
    share_init(&world->offload.heavy, THREADS, 0);
    world->offload.threads = THREADS;
}

static void init_requests(struct api_world *world)
{
    const struct requests_uses uses = {
        .options = &world->options,
        .params = &world->options.params,
        .loop = &world->loop,
        .servings = &world->servings,
        .changes = &world->changes,
        .waits = &world->waits,
        .recovery = &world->recovery,
        .api = &world->api,
    };
    requests_init(&world->requests, &uses);
    requests_open(&world->requests);
    requests_resize(&world->requests, PLACES);
}

static void lend_parts(struct api_world *w)
{
    w->observed = (struct observed){
        .loop = &w->loop,
        .offload = &w->offload,
        .servings = &w->servings,
        .recovery = &w->recovery,
        .conns = &w->conns,
        .tls = &w->tls,
        .requests = &w->requests,
    };
    w->api = (struct api){
        .options = &w->options,
        .params = &w->options.params,
        .loop = &w->loop,
        .observed = &w->observed,
        .servings = &w->servings,
        .changes = &w->changes,
        .waits = &w->waits,
        .offload = &w->offload,
        .regions = &w->requests.regions,
        .seats = &w->requests.seats,
        .transfers = &w->requests.transfers,
        .access = &w->requests.access,
        .conns = &w->conns,
        .tls = &w->tls,
        .metrics = &w->metrics,
        .access_log = &w->access_log,
        .spans = &w->spans,
    };
}

static void open_request(struct api_world *world)
{
    struct request *request = &world->request;
    const struct params *params = &world->options.params;
    assert_ok(world->err, infer_init(&request->infer, &world->requests.calls, &world->err));
    request->magic = REQUEST_MAGIC;
    request->requests = &world->requests;
    request->api = &world->api;
    request->serving = request->infer.serving = world->serving;
    request->infer.head = &request->head;
    request->infer.received = &request->body;
    request->infer.out = &request->out;
    request->infer.client = &request->client;
    request->infer.model_name = request->match.model;
    head_init(&request->head, params);
    body_init(&request->body, NULL, params->body_bytes_max);
    buf_init(&request->out, params->answer_bytes_max);
}

void api_world_open(struct api_world *world, const char *const *arguments)
{
    struct options *options = &world->options;
    struct error *err = &world->err;
    *world = (struct api_world){.err.code = ST_OK};
    read_options(world, arguments);
    assert_ok(*err, log_open(NULL, LOG_ERROR, err));
    assert_ok(*err, loop_init(&world->loop, &request_turn_steps, err));
    world->loop.alarm = &world->alarm;
    world->loop.offload = &world->offload;
    turns_init(&world->loop.turns, &world->loop.uv, &world->loop.watch, NULL);
    assert_ok(*err, serving_new(options, "cpu", true, &world->serving, err));
    assert_ok(*err, repository_load(&world->serving->repository, options, NULL, err));
    world->servings.current = world->serving;
    init_shares(world);
    init_requests(world);
    lend_parts(world);
    assert_ok(*err, spans_open(&world->spans, &world->requests.traces, options, err));
    open_request(world);
}

static void end_request(struct api_world *world)
{
    struct request *request = &world->request;
    if (request->page.listing) {
        repository_unref_index(request->page.listing);
    }
    request->page = (struct request_page){.listing = NULL};
    infer_reset(&request->infer);
    work_reset(&request->infer.work);
    body_reset(&request->body);
    head_reset(&request->head);
    buf_reset(&request->out);
    request->match = (struct route_match){.id = ROUTE_COUNT};
    request->content_type = NULL;
    request->is_page = request->is_unfinished = false;
    world->err.code = ST_OK;
}

static void close_loop(struct loop *loop)
{
    uv_close((uv_handle_t *)&loop->turns.prepare, NULL);
    uv_close((uv_handle_t *)&loop->turns.idle, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop_fini(loop);
}

static void close_request(struct api_world *world)
{
    struct request *request = &world->request;
    end_request(world);
    infer_fini(&request->infer);
    buf_fini(&request->out);
    body_fini(&request->body);
    head_fini(&request->head);
}

void api_world_renew(struct api_world *world)
{
    close_request(world);
    open_request(world);
}

void api_world_close(struct api_world *world)
{
    close_request(world);
    spans_close(&world->spans);
    requests_fini(&world->requests);
    share_fini(&world->offload.heavy);
    share_fini(&world->changes.loads);
    waits_fini(&world->waits);
    places_fini(&world->conns.places);
    serving_free(world->serving);
    uv_close((uv_handle_t *)&world->requests.transfers.timer, NULL);
    uv_close((uv_handle_t *)&world->requests.watches.timer, NULL);
    close_loop(&world->loop);
}

/* ---- requests -------------------------------------------------------------------------------- */

void api_world_begin(struct api_world *world, const char *model, const char *body)
{
    struct request *request = &world->request;
    end_request(world);
    snprintf(request->match.model, sizeof(request->match.model), "%s", model);
    if (*body) {
        assert_ok(world->err, body_add(&request->body, span_str(body), &world->err));
    }
}

void api_world_add_field(struct api_world *world, const char *name, const char *value)
{
    struct head *head = &world->request.head;
    head_add_name(head, span_str(name));
    assert_int_equal(head_add_value(head, span_str(value), &world->err), 0);
    head_end_field(head);
}

enum status api_world_call(struct api_world *world, api_handler_f *handler)
{
    struct request *request = &world->request;
    enum status status;
    work_begin(&request->infer.work, WORK_ON_LOOP);
    do {
        request->is_unfinished = false;
        status = handler(request, &world->err);
        if (status == ST_WOULD_BE_HEAVY && request->infer.work.place == WORK_ON_LOOP) {
            work_begin(&request->infer.work, WORK_HEAVY);
            request->is_unfinished = true;
        }
        turn_watch_end(&world->loop.watch);
    } while (request->is_unfinished);
    return status;
}

enum status api_world_ask(struct api_world *world, api_handler_f *handler, const char *model,
                          const char *body)
{
    api_world_begin(world, model, body);
    return api_world_call(world, handler);
}

const char *api_world_answer(struct api_world *world)
{
    struct buf *out = &world->request.out;
    buf_add_char(out, '\0');
    assert_false(buf_failed(out));
    out->len--;
    return (const char *)out->ptr;
}

/* ---- answers --------------------------------------------------------------------------------- */

static char *with_quotes(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *at = copy; *at; at++) {
        *at = *at == '`' ? '"' : *at;
    }
    return copy;
}

/* Is |got| what is wanted? |in_part|: it may have more members than |want|. */
static bool is_as_wanted(const cJSON *got, const cJSON *want, bool in_part)
{
    if (!in_part) {
        return cJSON_Compare(got, want, true);
    }
    for (const cJSON *item = want->child; item; item = item->next) {
        const cJSON *member = cJSON_GetObjectItemCaseSensitive(got, item->string);
        if (!member || !cJSON_Compare(member, item, true)) {
            return false;
        }
    }
    return true;
}

static void check(struct api_world *world, const char *expected, bool in_part)
{
    char *text = with_quotes(expected);
    const char *answer = api_world_answer(world);
    cJSON *want = cJSON_ParseWithOpts(text, NULL, true);
    cJSON *got = cJSON_ParseWithOpts(answer, NULL, true);
    if (!want || !got || !is_as_wanted(got, want, in_part)) {
        fail_msg("the answer is%s\n%s\nexpected%s\n%s", got ? "" : " no JSON", answer,
                 want ? "" : " no JSON", text);
    }
    cJSON_Delete(want);
    cJSON_Delete(got);
    free(text);
}

void api_world_check(struct api_world *world, const char *expected)
{
    check(world, expected, false);
}

void api_world_check_members(struct api_world *world, const char *expected)
{
    check(world, expected, true);
}
