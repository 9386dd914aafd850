/* SPDX-License-Identifier: MIT */
/*
 * A slot is a request under way, or one that may begin. libcurl says which sockets it waits for and
 * when it wants to be called; the rest of the time is ours: the arrivals of an open loop need a
 * clock of less than a millisecond, which libcurl's own waiting does not have.
 */
#include "config.h"

#include "server/cli/bench_load.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "base/check.h"
#include "base/list.h"
#include "server/cli/bench_arrivals.h"
#include "server/cli/transfer.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NEVER UINT64_MAX
#define EVENTS_MAX 256
#define ANSWER_BYTES_MAX ((size_t)256 << 20)
#define FILES_SPARE 64                /* descriptors beside the connections */
#define REST_NS (100 * NS_PER_MS)     /* pause of a client that found no server */
#define PROGRESS_NS (200 * NS_PER_MS) /* between two looks at the run */
#define PROCESSOR_NS NS_PER_S         /* between two looks at our own processor time */
#define BUSY_SHARE 0.95               /* of a processor: we can do no more */
#define LATE_SHARE 0.01               /* of the requests that begin */

const char *const bench_failure_texts[BENCH_FAILURES] = {
    [BENCH_NO_CONNECTION] = "no connection",
    [BENCH_LOST] = "connection lost",
    [BENCH_TIMEOUT] = "timeout",
    [BENCH_NO_ANSWER] = "bad answer",
};

struct slot {
    struct transfer transfer; /* first: libcurl knows the slot by it */
    struct list node;         /* in one of the lists of the load */
    struct transfer_request request;
    struct span piece; /* the request's body */
    char header[64];
    struct bench_stream stream;
    const struct curl *curl;       /* borrowed */
    const struct bench_body *body; /* that the transfer is prepared for; NULL: none */
    uint64_t since_ns;             /* when the latency begins; or when the rest ends */
};

/* Of this process, in which only our thread works. */
struct usage {
    uint64_t cpu_ns, starved_ns; /* running, and ready to run without a processor */
};

struct bench_load {
    struct bench_load_options options;
    const struct curl *curl;
    CURLM *multi; /* owned */
    int epoll;
    uint64_t curl_ns;   /* when libcurl wants to be called */
    struct slot *slots; /* owned */
    uint32_t slot_count;
    struct list idle, busy, resting; /* the last used one is the first of |idle| */

    /* The run. */
    const struct bench_run *run;
    struct bench_result *result;
    struct bench_arrivals arrivals;
    uint64_t began_ns, last_ns; /* |last_ns|: the last answer */
    struct usage usage_began;
    uint64_t body_count;
    uint64_t look_ns; /* the next look at the run */
    struct {
        uint64_t ns, begun, late;
        struct usage usage;
    } before; /* at the last look at the processor time */
};

/* Linux' schedstat has the times that a thread ran and that it waited to run, in ns. */
static struct usage get_usage(void)
{
    struct usage usage = {0};
    struct timespec now;
    unsigned long long ran, starved;
    must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    usage.cpu_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    if (file && fscanf(file, "%llu %llu", &ran, &starved) == 2) {
        usage.starved_ns = starved;
    }
    if (file) {
        fclose(file);
    }
    return usage;
}

uint64_t bench_result_failed(const struct bench_result *result)
{
    uint64_t count = result->unsent;
    for (uint32_t i = 0; i < BENCH_STATUSES; i++) {
        count += i == 200 ? 0 : result->statuses[i];
    }
    for (uint32_t i = 0; i < BENCH_FAILURES; i++) {
        count += result->failures[i];
    }
    return count;
}

/* ---- libcurl --------------------------------------------------------------------------------- */

static enum status curl_failed(const struct bench_load *load, CURLMcode code, struct error *err)
{
    return error_set(err, ST_SYSTEM, "libcurl: %s", load->curl->multi_strerror(code));
}

/* libcurl forgets a socket before it closes it, and so does the epoll. */
static int on_socket(CURL *easy, curl_socket_t socket, int what, void *data, void *own)
{
    const struct bench_load *load = data;
    struct epoll_event event = {.data.fd = socket};
    (void)easy;
    (void)own;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(load->epoll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    event.events |= what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0;
    event.events |= what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0;
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, socket, &event) < 0 && errno == EEXIST) {
        epoll_ctl(load->epoll, EPOLL_CTL_MOD, socket, &event);
    }
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *data)
{
    struct bench_load *load = data;
    (void)multi;
    load->curl_ns = ms < 0 ? NEVER : ms == 0 ? 0 : uv_hrtime() + (uint64_t)ms * NS_PER_MS;
    return 0;
}

/* ---- one request ----------------------------------------------------------------------------- */

/* The text of a refusal is kept for transfer_check(). */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *data)
{
    struct slot *slot = data;
    long status = 0;
    slot->curl->easy_getinfo(slot->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) {
        bool is_taken = bench_stream_take(&slot->stream, bytes, size * count, uv_hrtime());
        return is_taken ? size * count : 0;
    }
    buf_add(&slot->transfer.body, bytes, size * count);
    return buf_failed(&slot->transfer.body) ? 0 : size * count;
}

static enum status prepare(struct bench_load *load, struct slot *slot, struct error *err)
{
    const struct bench_bodies *bodies = load->options.bodies;
    const struct bench_body *body = &bodies->items[load->body_count++ % bodies->count];
    if (slot->body == body) {
        transfer_rewind(&slot->transfer);
        return ST_OK;
    }
    slot->body = body;
    slot->piece = body->bytes;
    slot->request = (struct transfer_request){
        .path = load->options.path,
        .is_post = true,
        .body = &slot->piece,
        .body_count = 1,
        .answer_bytes_max = ANSWER_BYTES_MAX,
    };
    if (!bodies->is_json) {
        snprintf(slot->header, sizeof(slot->header), "Inference-Header-Content-Length: %zu",
                 body->json_bytes);
        slot->request.headers[0] = slot->header;
    }
    TRY(transfer_prepare(&slot->transfer, &slot->request, err));
    if (load->options.is_language) {
        slot->curl->easy_setopt(slot->transfer.easy, CURLOPT_WRITEFUNCTION, on_bytes);
        slot->curl->easy_setopt(slot->transfer.easy, CURLOPT_WRITEDATA, slot);
    }
    return ST_OK;
}

/* The latency counts from |since_ns|. A slot is idle. */
static enum status begin(struct bench_load *load, uint64_t since_ns, struct error *err)
{
    struct slot *slot = LIST_ENTRY(load->idle.next, struct slot, node);
    TRY(prepare(load, slot, err));
    slot->since_ns = since_ns;
    bench_stream_begin(&slot->stream, &load->result->language.itl);
    CURLMcode code = load->curl->multi_add_handle(load->multi, slot->transfer.easy);
    if (code != CURLM_OK) {
        return curl_failed(load, code, err);
    }
    list_remove(&slot->node);
    list_push_back(&load->busy, &slot->node);
    load->result->begun++;
    return ST_OK;
}

static enum bench_failure failure_of(CURLcode code)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return BENCH_TIMEOUT;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
        return BENCH_LOST;
    case CURLE_WRITE_ERROR:
    case CURLE_FILESIZE_EXCEEDED:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return BENCH_NO_ANSWER;
    default:
        return BENCH_NO_CONNECTION;
    }
}

/* Counts an answer. The text of a refusal is read only once. */
static void count_answer(struct bench_result *result, const struct slot *slot, uint64_t now_ns)
{
    const struct transfer *transfer = &slot->transfer;
    result->statuses[transfer->status >= 0 && transfer->status < BENCH_STATUSES ? transfer->status
                                                                                : 0]++;
    if (transfer->status == 200) {
        result->ok++;
        result->rows += slot->body->rows;
        result->sent_bytes += slot->body->bytes.len;
        result->received_bytes += transfer->body.len + slot->stream.bytes;
        bench_histogram_add(&result->latency, now_ns - slot->since_ns);
    } else if (result->first.code == ST_OK && transfer_check(transfer, &result->first) == ST_OK) {
        error_set(&result->first, ST_UNSUPPORTED, "HTTP %ld, expected 200", transfer->status);
    }
}

/* Counts what |code| says of the slot's request; false: the connection is of no use. */
static bool count_end(struct bench_load *load, struct slot *slot, CURLcode code)
{
    struct bench_result *result = load->result;
    struct error err;
    long connects = 0;
    load->curl->easy_getinfo(slot->transfer.easy, CURLINFO_NUM_CONNECTS, &connects);
    result->connects += connects > 0 ? (uint64_t)connects : 0;
    load->last_ns = uv_hrtime();
    enum status status = transfer_end(&slot->transfer, code, &err);
    bool is_stream = load->options.is_language && status == ST_OK && slot->transfer.status == 200;
    if (is_stream || slot->stream.err.code != ST_OK) {
        status =
            bench_stream_end(&slot->stream, slot->since_ns, load->last_ns, &result->language, &err);
        code = status == ST_OK ? code : CURLE_WEIRD_SERVER_REPLY;
    }
    if (status == ST_OK) {
        count_answer(result, slot, load->last_ns);
        return true;
    }
    result->failures[failure_of(code)]++;
    if (result->first.code == ST_OK) {
        result->first = err;
    }
    return false;
}

/* A client that finds no server would otherwise ask again at once, all the time. */
static void end(struct bench_load *load, struct slot *slot, CURLcode code)
{
    bool is_well = count_end(load, slot, code);
    if (load->run->is_open && list_is_empty(&load->idle)) {
        bench_arrivals_block(&load->arrivals, load->last_ns - load->began_ns);
    }
    load->curl->multi_remove_handle(load->multi, slot->transfer.easy);
    list_remove(&slot->node);
    if (is_well || load->run->is_open) {
        list_push_front(&load->idle, &slot->node);
        return;
    }
    slot->since_ns = load->last_ns + REST_NS;
    list_push_back(&load->resting, &slot->node);
}

static void collect(struct bench_load *load)
{
    int left;
    for (CURLMsg *message; (message = load->curl->multi_info_read(load->multi, &left));) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        CURLcode code = message->data.result; /* gone with the handle */
        char *transfer = NULL;
        load->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        must(transfer != NULL);
        end(load, (struct slot *)(void *)transfer, code);
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static uint64_t elapsed(const struct bench_load *load)
{
    return uv_hrtime() - load->began_ns;
}

static void wake_rested(struct bench_load *load, uint64_t now_ns)
{
    while (!list_is_empty(&load->resting)) {
        struct slot *slot = LIST_ENTRY(load->resting.next, struct slot, node);
        if (slot->since_ns > now_ns) {
            return;
        }
        list_remove(&slot->node);
        list_push_back(&load->idle, &slot->node);
    }
}

static bool may_begin(const struct bench_load *load)
{
    return load->result->begun < load->run->count_max && elapsed(load) < load->run->duration_ns;
}

static enum status begin_clients(struct bench_load *load, struct error *err)
{
    wake_rested(load, uv_hrtime());
    while (!list_is_empty(&load->idle) && may_begin(load)) {
        TRY(begin(load, uv_hrtime(), err));
    }
    return ST_OK;
}

static enum status begin_arrivals(struct bench_load *load, struct error *err)
{
    uint64_t due_ns;
    while (!bench_arrivals_are_over(&load->arrivals)) {
        if (list_is_empty(&load->idle)) {
            bench_arrivals_block(&load->arrivals, elapsed(load));
            return ST_OK;
        }
        if (!bench_arrivals_take(&load->arrivals, elapsed(load), &due_ns)) {
            return ST_OK;
        }
        TRY(begin(load, load->began_ns + due_ns, err));
    }
    return ST_OK;
}

/* Does another request begin, now or later? */
static bool goes_on(const struct bench_load *load)
{
    return load->run->is_open ? !bench_arrivals_are_over(&load->arrivals) : may_begin(load);
}

/* When something has to be done, if no socket is ready before. */
static uint64_t next_ns(const struct bench_load *load)
{
    uint64_t next = load->curl_ns < load->look_ns ? load->curl_ns : load->look_ns;
    if (load->run->is_open) {
        bool can_begin = !list_is_empty(&load->idle) && !bench_arrivals_are_over(&load->arrivals);
        uint64_t due = can_begin ? load->began_ns + load->arrivals.due_ns : NEVER;
        return due < next ? due : next;
    }
    if (!list_is_empty(&load->idle) && may_begin(load)) {
        return 0; /* an answer was there before we waited for it */
    }
    if (!list_is_empty(&load->resting)) {
        uint64_t rested = LIST_ENTRY(load->resting.next, struct slot, node)->since_ns;
        next = rested < next ? rested : next;
    }
    return next;
}

/* An epoll waits in whole milliseconds, a poll in nanoseconds. A signal ends it. */
static int wait_for_events(struct bench_load *load, struct epoll_event events[EVENTS_MAX])
{
    int count = epoll_wait(load->epoll, events, EVENTS_MAX, 0);
    uint64_t next = next_ns(load), now = uv_hrtime();
    if (count != 0 || next <= now) {
        return count;
    }
    struct pollfd fd = {.fd = load->epoll, .events = POLLIN};
    uint64_t left = next - now;
    struct timespec time = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
    return ppoll(&fd, 1, &time, NULL) > 0 ? epoll_wait(load->epoll, events, EVENTS_MAX, 0) : 0;
}

static enum status act(struct bench_load *load, curl_socket_t socket, int events, struct error *err)
{
    int running;
    CURLMcode code = load->curl->multi_socket_action(load->multi, socket, events, &running);
    if (code != CURLM_OK) {
        return curl_failed(load, code, err);
    }
    collect(load);
    return ST_OK;
}

static enum status act_in_time(struct bench_load *load, struct error *err)
{
    if (load->curl_ns > uv_hrtime()) {
        return ST_OK;
    }
    load->curl_ns = NEVER;
    return act(load, CURL_SOCKET_TIMEOUT, 0, err);
}

static enum status turn(struct bench_load *load, struct error *err)
{
    struct epoll_event events[EVENTS_MAX];
    TRY(load->run->is_open ? begin_arrivals(load, err) : begin_clients(load, err));
    TRY(act_in_time(load, err));
    int count = wait_for_events(load, events);
    for (int i = 0; i < count; i++) {
        int mask = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        TRY(act(load, events[i].data.fd, mask, err));
    }
    return ST_OK;
}

/* ---- looks at the run ------------------------------------------------------------------------ */

static void take_counts(struct bench_load *load)
{
    const struct bench_arrivals *arrivals = &load->arrivals;
    struct bench_result *result = load->result;
    if (load->run->is_open) {
        result->waited = arrivals->waited;
        result->delayed = arrivals->delayed;
        result->late_ns_max = arrivals->late_ns_max;
    }
}

/* Since the last look: had we something to do all the time, and did requests begin late? Whether
 * they waited for a connection does not matter then: we may have been too busy to read answers. */
static bool is_too_slow(const struct bench_load *load, const struct usage *now, uint64_t now_ns)
{
    const struct usage *before = &load->before.usage;
    double all = (double)(now_ns - load->before.ns);
    double busy = (double)(now->cpu_ns - before->cpu_ns + now->starved_ns - before->starved_ns);
    uint64_t begun = load->result->begun - load->before.begun;
    uint64_t late = load->arrivals.waited + load->arrivals.delayed - load->before.late;
    return load->run->is_open && busy >= BUSY_SHARE * all &&
           (double)late > LATE_SHARE * (double)begun;
}

static void look_at_processor(struct bench_load *load, uint64_t now_ns)
{
    struct usage now = get_usage();
    load->result->is_too_slow |= is_too_slow(load, &now, now_ns);
    load->before.ns = now_ns;
    load->before.usage = now;
    load->before.begun = load->result->begun;
    load->before.late = load->arrivals.waited + load->arrivals.delayed;
}

static void look(struct bench_load *load)
{
    uint64_t now_ns = uv_hrtime();
    if (now_ns < load->look_ns) {
        return;
    }
    load->look_ns = now_ns + PROGRESS_NS;
    if (now_ns - load->before.ns >= PROCESSOR_NS) {
        look_at_processor(load, now_ns);
    }
    take_counts(load);
    if (load->options.on_progress) {
        load->options.on_progress(load->options.arg, load->run, load->result,
                                  now_ns - load->began_ns);
    }
}

/* The end of the run, and some time more for requests that were due before. */
static bool is_grace_over(const struct bench_load *load)
{
    uint64_t duration_ns = load->run->duration_ns;
    uint64_t grace_ns = load->run->grace_ns;
    return load->run->is_open && duration_ns < NEVER - grace_ns &&
           elapsed(load) > duration_ns + grace_ns;
}

static void abandon(struct bench_load *load)
{
    while (!list_is_empty(&load->busy)) {
        struct slot *slot = LIST_ENTRY(load->busy.next, struct slot, node);
        load->curl->multi_remove_handle(load->multi, slot->transfer.easy);
        list_remove(&slot->node);
        list_push_back(&load->idle, &slot->node);
        load->result->abandoned++;
    }
}

static enum status run_to_end(struct bench_load *load, struct error *err)
{
    struct bench_result *result = load->result;
    while (goes_on(load) || !list_is_empty(&load->busy)) {
        TRY(turn(load, err));
        look(load);
        if (is_grace_over(load)) {
            result->unsent += bench_arrivals_give_up(&load->arrivals, elapsed(load));
        }
        result->is_interrupted = *load->options.stop != 0;
        if (result->is_interrupted || result->is_too_slow) {
            return ST_OK;
        }
    }
    return ST_OK;
}

/* All slots are idle again, whatever the last run left. */
static void gather(struct bench_load *load, uint32_t count)
{
    list_init(&load->idle);
    list_init(&load->busy);
    list_init(&load->resting);
    for (uint32_t i = 0; i < count; i++) {
        list_push_back(&load->idle, &load->slots[i].node);
    }
}

static void start(struct bench_load *load, const struct bench_run *run, struct bench_result *result)
{
    must(run->connections > 0 && run->connections <= load->slot_count);
    *result = (struct bench_result){.first = {.code = ST_OK}};
    gather(load, run->connections);
    load->run = run;
    load->result = result;
    load->arrivals = (struct bench_arrivals){0};
    if (run->is_open) {
        bench_arrivals_init(&load->arrivals, run->rate, run->is_poisson, run->seed,
                            run->duration_ns, run->count_max);
    }
    load->usage_began = get_usage();
    load->began_ns = load->last_ns = uv_hrtime();
    load->look_ns = load->began_ns + PROGRESS_NS;
    load->before.ns = load->began_ns;
    load->before.usage = load->usage_began;
    load->before.begun = load->before.late = 0;
}

/* A run that took its whole time is not shorter because its last answer came early. */
static void finish(struct bench_load *load)
{
    struct bench_result *result = load->result;
    uint64_t duration_ns = load->run->duration_ns;
    bool was_cut = result->is_interrupted || result->is_too_slow;
    result->ns = was_cut ? elapsed(load) : load->last_ns - load->began_ns;
    if (!was_cut && duration_ns != NEVER && result->begun < load->run->count_max &&
        result->ns < duration_ns) {
        result->ns = duration_ns;
    }
    struct usage usage = get_usage();
    result->cpu_ns = usage.cpu_ns - load->usage_began.cpu_ns;
    uint64_t starved_ns = usage.starved_ns - load->usage_began.starved_ns;
    result->starved_ns = starved_ns < result->ns ? starved_ns : result->ns; /* some came later */
    if (!was_cut && uv_hrtime() - load->before.ns >= PROCESSOR_NS / 2) {
        look_at_processor(load, uv_hrtime());
    }
    take_counts(load);
    abandon(load);
}

enum status bench_load_run(struct bench_load *load, const struct bench_run *run,
                           struct bench_result *result, struct error *err)
{
    start(load, run, result);
    enum status status = run_to_end(load, err);
    finish(load);
    return status;
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* The system's usual limit is 1024 descriptors, and a process may raise it. */
static enum status raise_limit(uint32_t connections, struct error *err)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)connections + FILES_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted) {
        return ST_OK;
    }
    if (limit.rlim_max < wanted) {
        return error_set(err, ST_EXHAUSTED,
                         "%u connections need %llu descriptors; this process may have %llu "
                         "(ulimit -n)",
                         connections, (unsigned long long)wanted,
                         (unsigned long long)limit.rlim_max);
    }
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    return ST_OK;
}

static enum status make_slots(struct bench_load *load, struct error *err)
{
    uint32_t max = load->options.connections_max;
    load->slots = calloc(max, sizeof(*load->slots));
    if (!load->slots) {
        return error_no_memory(err, "%u connections", max);
    }
    for (uint32_t i = 0; i < max; i++) {
        list_init(&load->slots[i].node);
        load->slots[i].curl = load->curl;
        bench_stream_init(&load->slots[i].stream);
        TRY(transfer_init(&load->slots[i].transfer, load->options.client, err));
        load->slot_count++;
    }
    return ST_OK;
}

/* One connection for each request under way, also where HTTP/2 could share one. */
static enum status make_multi(struct bench_load *load, struct error *err)
{
    const struct curl *curl = load->curl;
    load->multi = curl->multi_init();
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!load->multi || load->epoll < 0) {
        return error_no_memory(err, "connections");
    }
    curl->multi_setopt(load->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl->multi_setopt(load->multi, CURLMOPT_SOCKETDATA, load);
    curl->multi_setopt(load->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl->multi_setopt(load->multi, CURLMOPT_TIMERDATA, load);
    curl->multi_setopt(load->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl->multi_setopt(load->multi, CURLMOPT_MAXCONNECTS, (long)load->options.connections_max);
    return ST_OK;
}

static enum status make(struct bench_load *load, struct error *err)
{
    TRY(raise_limit(load->options.connections_max, err));
    TRY(make_multi(load, err));
    prctl(PR_SET_TIMERSLACK, 1UL); /* the system may else wake us 50 us late */
    return make_slots(load, err);
}

enum status bench_load_new(const struct bench_load_options *options, struct bench_load **out,
                           struct error *err)
{
    must(options->connections_max > 0 && options->connections_max <= BENCH_CONNECTIONS_MAX);
    struct bench_load *load = calloc(1, sizeof(*load));
    if (!load) {
        return error_no_memory(err, "the load");
    }
    load->options = *options;
    load->curl = options->client->curl;
    load->curl_ns = NEVER;
    load->epoll = -1;
    enum status status = make(load, err);
    if (status != ST_OK) {
        bench_load_free(load);
        return status;
    }
    *out = load;
    return ST_OK;
}

void bench_load_free(struct bench_load *load)
{
    for (uint32_t i = 0; load && i < load->slot_count; i++) {
        transfer_fini(&load->slots[i].transfer);
        bench_stream_fini(&load->slots[i].stream);
    }
    if (load) {
        if (load->multi) {
            load->curl->multi_cleanup(load->multi);
        }
        if (load->epoll >= 0) {
            close(load->epoll);
        }
        free(load->slots);
        free(load);
    }
}
