/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include "tests/unit/observe_support.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uv.h>

#include "server/daemon/infer/infer_one.h"

#define MS 1000000u
#define KEPT_BYTES (64 << 10)

/* ---- the clock ------------------------------------------------------------------------------- */

uint64_t __wrap_uv_hrtime(void);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

uint64_t __wrap_uv_hrtime(void)
{
    return NOW_NS;
}

/* The writer's thread waits by the real time. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_REALTIME) {
        return __real_clock_gettime(clock, out);
    }
    *out = (struct timespec){.tv_sec = WALL_S, .tv_nsec = WALL_NS};
    return 0;
}

/* ---- a request ------------------------------------------------------------------------------- */

void observed_request_set_target(struct observed_request *observed, const char *target)
{
    struct head *head = &observed->request.head;
    struct error err;
    head_reset(head);
    assert_int_equal(head_add_target(head, &observed->options.params, span_str(target), &err), 0);
}

void observed_request_add_field(struct observed_request *observed, const char *name,
                                const char *value)
{
    struct head *head = &observed->request.head;
    struct error err;
    head_add_name(head, span_str(name));
    assert_int_equal(head_add_value(head, span_str(value), &err), 0);
    head_end_field(head);
}

void observed_request_init(struct observed_request *observed)
{
    struct request *request = &observed->request;
    *observed = (struct observed_request){
        .exchange = {.magic = EXCHANGE_MAGIC, .outgoing = EXCHANGE_BEGUN, .sent_bytes = 100}};
    observed->requests.traces.state = 1;
    options_init(&observed->options);
    *request = (struct request){
        .magic = REQUEST_MAGIC,
        .requests = &observed->requests,
        .exchange = &observed->exchange,
        .step = STEP_DONE,
        .method = "GET",
        .match = {.id = ROUTE_MODEL, .model = "m"},
        .sender = {.remote = "192.0.2.1"},
        .body_bytes = 7,
        .trace = {.is_decided = true},
        .infer = {.magic = INFER_MAGIC, .arrived_ns = NOW_NS - 31 * MS},
    };
    observed->exchange.request = request;
    head_init(&request->head, &observed->options.params);
    observed_request_set_target(observed, "/v2/models/m");
}

void observed_request_fini(struct observed_request *observed)
{
    head_fini(&observed->request.head);
}

void observed_request_set_run(struct observed_request *observed)
{
    struct infer *infer = &observed->request.infer;
    infer->ops = &infer_one_ops;
    infer->job.queued_ns = infer->arrived_ns + 1 * MS;
    infer->job.started_ns = infer->job.queued_ns + 2 * MS;
    infer->job.finished_ns = infer->job.started_ns + 4 * MS;
    infer->encoded_ns = infer->job.finished_ns + 8 * MS;
    infer->job.batch_size = 3;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static char kept[KEPT_BYTES];
static size_t kept_bytes;
static sem_t unblocked;

static uint64_t keep(struct line_sink *sink, const uint8_t *lines, size_t len)
{
    (void)sink;
    while (sem_wait(&unblocked) != 0) {
    }
    sem_post(&unblocked);
    if (kept_bytes + len >= sizeof(kept)) {
        return line_sink_count(lines, len);
    }
    memcpy(kept + kept_bytes, lines, len);
    kept_bytes += len;
    return 0;
}

static void end(struct line_sink *sink)
{
    (void)sink;
    sem_destroy(&unblocked);
}

struct line_writer *make_writer(bool is_blocked)
{
    static const struct line_sink_ops ops = {.what = "memory", .write = keep, .free = end};
    static struct line_sink sink;
    struct line_writer *writer;
    struct error err;
    sink = (struct line_sink){.ops = &ops, .write_bytes = KEPT_BYTES};
    kept_bytes = 0;
    sem_init(&unblocked, 0, is_blocked ? 0 : 1);
    assert_ok(err, line_writer_new(&sink, KEPT_BYTES, &writer, &err));
    return writer;
}

void unblock_writer(void)
{
    sem_post(&unblocked);
}

const char *kept_lines(struct line_writer *writer)
{
    line_writer_free(writer);
    kept[kept_bytes] = '\0';
    return kept;
}
