/* SPDX-License-Identifier: MIT */
/*
 * Start: device, sockets, models, then READY. While a thread loads the first models, only probes
 * get answers. drain.c has the stop.
 */
#include "config.h"

#include "server/daemon/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/connection/session.h"
#include "server/daemon/observe/dump.h"
#include "server/daemon/request/request.h"
#include "server/daemon/route_table.h"
#include "server/daemon/serving/reload.h"
#include "server/daemon/serving/serving.h"
#include "server/process/log.h"

/* Open files that are not connections in use: the daemon's own, and connections that linger. */
#define FILES_RESERVED 48
#define LOOP_TURN_NS 100000 /* the shortest that Linux accepts */

/* ---- the end --------------------------------------------------------------------------------- */

/* All handles except handles of sockets. */
#define HANDLE_COUNT 22
static void list_handles(struct server *server, uv_handle_t *handles[HANDLE_COUNT])
{
    uv_handle_t *all[HANDLE_COUNT] = {
        (uv_handle_t *)&server->loop.handback.wake,
        (uv_handle_t *)&server->deadline,
        (uv_handle_t *)&server->conns.sweep,
        (uv_handle_t *)&server->watchdog.timer,
        (uv_handle_t *)&server->drain.timer,
        (uv_handle_t *)&server->recovery.timer,
        (uv_handle_t *)&server->drain.sigterm,
        (uv_handle_t *)&server->drain.sigint,
        (uv_handle_t *)&server->sighup,
        (uv_handle_t *)&server->listeners.retry,
        (uv_handle_t *)&server->requests.transfers.timer,
        (uv_handle_t *)&server->requests.watches.timer,
        (uv_handle_t *)&server->trim.timer,
        (uv_handle_t *)&server->loop.turns.prepare,
        (uv_handle_t *)&server->loop.turns.idle,
        (uv_handle_t *)&server->changes.timer,
        (uv_handle_t *)&server->watch.poll,
        (uv_handle_t *)&server->watch.timer,
        (uv_handle_t *)&server->sigusr1,
        (uv_handle_t *)&server->tls.hub.idle,
        (uv_handle_t *)&server->watch.ticker,
        (uv_handle_t *)&server->proving.timer,
    };
    memcpy(handles, all, sizeof(all));
}

static void close_handles(struct server *server)
{
    must(!server->loop.is_closing);
    uv_handle_t *handles[HANDLE_COUNT];
    list_handles(server, handles);
    server->loop.is_closing = true;
    alarm_stop(&server->alarm);
    log_gate_close(&server->loop.log);
    listeners_close_all(&server->listeners);
    for (size_t i = 0; i < HANDLE_COUNT; i++) {
        if (handles[i]->data) { /* NULL: the start failed before this handle */
            uv_close(handles[i], NULL);
        }
    }
}

/* Of a callback. */
static struct server *server_of(void *data)
{
    struct server *server;
    OBJ_CAST(server, data, SERVER_MAGIC);
    return server;
}

static void end_loop(void *owner)
{
    close_handles(server_of(owner));
}

/* ---- signals --------------------------------------------------------------------------------- */

static void reopen_access_log(struct server *server)
{
    struct error err;
    const char *path = server->options->access_log_file;
    if (!path || !server->access_log.writer) {
        return;
    }
    if (access_log_reopen(&server->access_log, &err) == ST_OK) {
        log_line(LOG_NOTICE, "SIGHUP: access log %s is open again", path);
    } else {
        log_line(LOG_ERROR, "SIGHUP: %s; the old one stays in use", err.text);
    }
}

static void on_user_signal(uv_signal_t *signal, int number)
{
    (void)number;
    dump_in_flight(&server_of(signal->data)->observed);
}

static void on_hangup(uv_signal_t *signal, int number)
{
    struct error err;
    (void)number;
    reopen_access_log(server_of(signal->data));
    if (log_reopen(&err) != ST_OK) {
        log_line(LOG_ERROR, "SIGHUP: %s; the old one stays in use", err.text);
    } else if (log_path()) {
        log_line(LOG_NOTICE, "SIGHUP: log file %s is open again", log_path());
    }
    reload_begin(&server_of(signal->data)->reload);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_deadline(uv_poll_t *poll, int uv_status, int events)
{
    struct server *server = server_of(poll->data);
    (void)uv_status;
    (void)events;
    turn_watch_enter(&server->loop.watch, TURN_DEADLINES);
    if (!alarm_take(&server->alarm)) {
        return;
    }
    for (struct serving *serving = server->servings.current; serving; serving = serving->older) {
        if (serving->sched) {
            alarm_set(&server->alarm, rt_sched_expire(serving->sched));
            alarm_set(&server->alarm, rt_sequences_expire(serving->sequences));
        }
    }
    alarm_set(&server->alarm, offload_expire(&server->offload));
    alarm_set(&server->alarm, waits_expire(&server->waits, uv_hrtime()));
    alarm_set(&server->alarm, changes_unload_idle(&server->changes, uv_hrtime()));
}

/* ---- what calls run on ----------------------------------------------------------------------- */

/* The device that the user asked for. */
static const char *device_name(const struct server *server)
{
    return server->options->device ? server->options->device : "cpu";
}

static void leave_pool(void *owner)
{
    transfers_leave_pool(&server_of(owner)->requests.transfers);
}

static void enter_pool(void *owner)
{
    transfers_enter_pool(&server_of(owner)->requests.transfers);
}

static const struct servings_ops servings_ops = {leave_pool, enter_pool};

/* Files of TLS first, because tokens are in use once they are read. */
static enum status read_files(void *owner, const struct options *options, struct error *err)
{
    struct server *server = server_of(owner);
    struct tls_context *context = NULL;
    if (server->tls.context) {
        TRY(tls_read(options, &context, err));
    }
    enum status status = access_read(&server->requests.access, options, err);
    if (status != ST_OK) {
        tls_context_free(context);
        return status;
    }
    tls_use(&server->tls, context);
    return ST_OK;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Connections beside |size| places that wait until a proxy says whose they are. */
static uint32_t unnamed_max(const struct server *server, uint32_t size)
{
    bool has_headers = server->options->proxy_says == OPTIONS_PROXY_PROTOCOL;
    return has_headers ? places_unnamed_max(size) : 0;
}

/*
 * A number above the descriptors of all connections. libuv keeps a table by descriptor and aborts
 * if it cannot enlarge the table. Watching a descriptor with this number first makes the table
 * large enough for all others.
 */
static int high_fd(const struct server *server)
{
    uint32_t places = server->conns.places.size;
    return (int)(places + unnamed_max(server, places)) + FILES_RESERVED - 1;
}

/* Raises the soft limit to the hard one. If that is refused, the soft limit stays. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/*
 * Lowers the number of connections to what the descriptors allow. Further clients then get an
 * answer that says so; without a free descriptor they could not even be accepted. Models hold
 * descriptors too, and twice as many while they are loaded again for another device.
 */
static void limit_connections(struct server *server)
{
    struct rlimit limit;
    uint64_t reserved = FILES_RESERVED + 2 * (uint64_t)rt_program_descriptors();
    uint32_t before = server->conns.places.size;
    uint32_t wanted = (uint32_t)server->params->connection_count_max;
    places_resize(&server->conns.places, wanted);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        limit.rlim_cur = RLIM_INFINITY;
    }
    uint64_t allowed =
        limit.rlim_cur > 2 * reserved ? limit.rlim_cur - reserved : limit.rlim_cur / 2;
    uint64_t unnamed = unnamed_max(server, allowed < wanted ? (uint32_t)allowed : wanted);
    allowed -= unnamed < allowed / 2 ? unnamed : allowed / 2;
    if (allowed < wanted) {
        places_resize(&server->conns.places, (uint32_t)allowed);
    }
    requests_resize(&server->requests, server->conns.places.size);
    if (allowed < wanted && allowed != before) {
        log_line(LOG_WARNING, "at most %u connections: the process may have %llu files open",
                 server->conns.places.size, (unsigned long long)limit.rlim_cur);
    }
}

/* There are none yet. Without any of these ways, main.c has not come as far as this. */
static void say_how_models_come(const struct options *options)
{
    if (options->folder_count > 0 && options->watches) {
        log_line(LOG_NOTICE, "no models yet: those that come into the folders are loaded");
    } else if (options->folder_count > 0) {
        log_line(LOG_WARNING, "no models yet: SIGHUP, or a request to load one, loads those that "
                              "come into the folders; --watch loads them at once");
    } else {
        log_line(LOG_WARNING,
                 "no models yet: SIGHUP reads the settings again, which may name some");
    }
}

/* The first models are loaded, or |err| says why not; then the daemon stops. */
static void end_start(void *owner, enum status status, const struct error *err)
{
    struct server *server = server_of(owner);
    must(server->loop.is_starting && !server->loop.is_draining);
    if (status != ST_OK) {
        server->failure = *err;
        drain_begin(&server->drain);
        return;
    }
    server->loop.is_starting = false;
    limit_connections(server);
    listeners_open_all(&server->listeners);
    uint32_t ready = repository_ready_count(&server->servings.current->repository),
             count = repository_count(&server->servings.current->repository);
    log_line(LOG_NOTICE, "serving %u of %u models", ready, count);
    if (count == 0) {
        say_how_models_come(server->options);
    }
    notify_send(&server->notify, "READY=1\nSTATUS=serving %u of %u models", ready, count);
    watchdog_start(&server->watchdog); /* nobody expects signs of life before */
}

/* A connection or a request is gone, or a change is over. */
static void check_drained(void *owner)
{
    drain_check(&server_of(owner)->drain);
}

static const struct turns_ops turns_ops = {request_go_on, session_go_on_reader};
static const struct changes_ops changes_ops = {end_start, check_drained};

static void note_request_end(void *owner, struct request *request)
{
    struct server *server = server_of(owner);
    metrics_count_request(&server->metrics, request);
    access_log_request(&server->access_log, request);
    spans_request(&server->spans, request);
}

static bool begin_trace(void *owner, struct trace *out_trace)
{
    return spans_begin_trace(&server_of(owner)->spans, out_trace);
}

static const struct requests_ops requests_ops = {note_request_end, check_drained, begin_trace};

static void init_requests(struct server *server)
{
    const struct requests_uses uses = {
        .options = server->options,
        .params = server->params,
        .loop = &server->loop,
        .servings = &server->servings,
        .changes = &server->changes,
        .waits = &server->waits,
        .recovery = &server->recovery,
        .trim = &server->trim,
        .proxies = &server->proxies,
        .routes = route_table,
        .api = &server->api,
        .ops = &requests_ops,
        .owner = server,
    };
    requests_init(&server->requests, &uses);
}

/* The parts that change what calls run on. */
static void init_models(struct server *server)
{
    struct loop *loop = &server->loop;
    const struct changes_uses changes = {
        .loop = loop,
        .servings = &server->servings,
        .reload = &server->reload,
        .waits = &server->waits,
        .proving = &server->proving,
        .trim = &server->trim,
        .notify = &server->notify,
        .ops = &changes_ops,
        .owner = server,
    };
    const struct recovery_uses recovery = {
        .loop = loop,
        .servings = &server->servings,
        .changes = &server->changes,
        .proving = &server->proving,
        .reload = &server->reload,
        .notify = &server->notify,
    };
    const struct proving_uses proving = {
        .loop = loop,
        .servings = &server->servings,
        .trim = &server->trim,
        .params = server->params,
    };
    waits_init(&server->waits, &server->alarm, server->params);
    trim_init(&server->trim, loop, &server->servings);
    proving_init(&server->proving, &proving);
    changes_init(&server->changes, &changes);
    recovery_init(&server->recovery, &recovery, device_name(server));
    watch_init(&server->watch, loop, &server->changes, &server->reload);
}

/* What ends the daemon, and what says that it gets on. */
static void init_ends(struct server *server)
{
    const struct drain_uses drain = {
        .loop = &server->loop,
        .params = server->params,
        .listeners = &server->listeners,
        .conns = &server->conns,
        .requests = &server->requests,
        .changes = &server->changes,
        .proving = &server->proving,
        .access_log = &server->access_log,
        .notify = &server->notify,
        .end = end_loop,
        .owner = server,
    };
    const struct watchdog_uses watchdog = {
        .loop = &server->loop,
        .servings = &server->servings,
        .listeners = &server->listeners,
        .notify = &server->notify,
    };
    drain_init(&server->drain, &drain);
    watchdog_init(&server->watchdog, &watchdog);
}

/* The inits without a check cannot fail on an initialised loop. */
static enum status init_handles(struct server *server, struct error *err)
{
    listeners_open(&server->listeners);
    TRY(handback_open(&server->loop.handback, &server->loop.uv, high_fd(server), err));
    TRY(loop_watch(&server->loop.uv, &server->deadline, alarm_open(&server->alarm), on_deadline,
                   server, err));
    TRY(conns_open(&server->conns, err));
    log_gate_open(&server->loop.log, &server->loop.uv);
    requests_open(&server->requests);
    init_models(server);
    turns_init(&server->loop.turns, &server->loop.uv, &server->loop.watch, &turns_ops);
    init_ends(server);
    uv_signal_init(&server->loop.uv, &server->sighup);
    uv_signal_init(&server->loop.uv, &server->sigusr1);
    server->sighup.data = server->sigusr1.data = server;
    tls_init(&server->tls, &server->loop);
    return ST_OK;
}

/* What operators and handlers of routes see. */
static void lend_parts(struct server *server)
{
    server->observed = (struct observed){
        .loop = &server->loop,
        .offload = &server->offload,
        .servings = &server->servings,
        .recovery = &server->recovery,
        .conns = &server->conns,
        .tls = &server->tls,
        .requests = &server->requests,
    };
    server->api = (struct api){
        .options = server->options,
        .params = server->params,
        .loop = &server->loop,
        .observed = &server->observed,
        .servings = &server->servings,
        .changes = &server->changes,
        .waits = &server->waits,
        .offload = &server->offload,
        .regions = &server->requests.regions,
        .seats = &server->requests.seats,
        .transfers = &server->requests.transfers,
        .access = &server->requests.access,
        .conns = &server->conns,
        .tls = &server->tls,
        .metrics = &server->metrics,
        .access_log = &server->access_log,
        .spans = &server->spans,
    };
}

enum status server_init(struct server *server, const struct options *options, struct error *err)
{
    *server = (struct server){
        .magic = SERVER_MAGIC,
        .options = options,
        .params = &options->params,
    };
    servings_init(&server->servings, &servings_ops, server);
    reload_init(&server->reload, options);
    server->reload.changes = &server->changes;
    server->reload.watch = &server->watch;
    server->reload.notify = &server->notify;
    server->reload.read_files = read_files;
    server->reload.owner = server;
    alarm_init(&server->alarm);
    listeners_init(&server->listeners);
    server->listeners.loop = &server->loop;
    server->listeners.conns = &server->conns;
    server->listeners.options = options;
    server->listeners.notify = &server->notify;
    server->listeners.proxies = &server->proxies;
    server->listeners.tls = &server->tls;
    init_requests(server);
    conns_init(&server->conns, &server->requests, check_drained, server);
    notify_init(&server->notify);
    lend_parts(server);
    raise_file_limit();
    signal(SIGHUP, SIG_IGN); /* until the loop sees to them */
    signal(SIGUSR1, SIG_IGN);
    TRY(loop_init(&server->loop, &request_turn_steps, err));
    server->loop.alarm = &server->alarm;
    server->loop.offload = &server->offload;
    limit_connections(server);
    TRY(init_handles(server, err));
    TRY(access_read(&server->requests.access, options, err));
    TRY(tls_open(&server->tls, options, err));
    TRY(access_log_open(&server->access_log, &server->loop, options, err));
    TRY(spans_open(&server->spans, &server->requests.traces, options, err));
    TRY(offload_start(&server->offload, &server->loop.uv, &server->alarm, err));
    TRY(proxies_read(&server->proxies, &options->proxies, err));
    TRY(listeners_bind_all(&server->listeners, err));
    TRY(watch_open(&server->watch, err)); /* first: nothing that comes meanwhile is missed */
    return serving_new(options, device_name(server), true, &server->servings.current, err);
}

/*
 * The loop runs for microseconds between waits, while busy workers run without a pause. From Linux
 * 6.12 on, a thread that asks for short turns gets the processor as soon as it is woken. Otherwise
 * it waits milliseconds until the workers' turns end; in that time no client gets an answer, and a
 * model whose clients wait for answers has nothing to run. Older kernels ignore the request.
 */
static void ask_for_short_turns(void)
{
#if defined(__linux__) && defined(SYS_sched_setattr)
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attr = {
        .size = sizeof(attr),
        .nice = getpriority(PRIO_PROCESS, 0),
        .runtime_ns = LOOP_TURN_NS,
    };
    syscall(SYS_sched_setattr, 0, &attr, 0);
#endif
}

enum status server_start(struct server *server, struct error *err)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    server->loop.is_starting = true;
    TRY(listeners_start_all(&server->listeners, err));
    return changes_start(&server->changes, err);
}

enum status server_run(struct server *server, struct error *err)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    drain_watch_signals(&server->drain);
    uv_signal_start(&server->sighup, on_hangup, SIGHUP);
    uv_signal_start(&server->sigusr1, on_user_signal, SIGUSR1);
    TRY(server_start(server, err));
    ask_for_short_turns();
    uv_run(&server->loop.uv, UV_RUN_DEFAULT);
    if (server->failure.code != ST_OK) {
        *err = server->failure;
        return err->code;
    }
    log_line(LOG_NOTICE, "stopped");
    return ST_OK;
}

void server_fini(struct server *server)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    if (server->loop.has_uv && !server->loop.is_closing) {
        close_handles(server);
        uv_run(&server->loop.uv, UV_RUN_DEFAULT);
    }
    listeners_fini(&server->listeners);
    conns_fini(&server->conns);
    offload_fini(&server->offload);
    requests_fini(&server->requests);
    tls_fini(&server->tls);
    access_log_close(&server->access_log);
    spans_close(&server->spans);
    changes_fini(&server->changes);
    waits_fini(&server->waits);
    watch_fini(&server->watch);
    reload_fini(&server->reload);
    servings_fini(&server->servings);
    loop_fini(&server->loop);
    alarm_close(&server->alarm);
    notify_fini(&server->notify);
}
