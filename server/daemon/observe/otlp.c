/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/observe/otlp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/check.h"
#include "protocol/json.h"
#include "server/process/curl.h"
#include "server/process/line.h"
#include "server/process/log.h"

#define PATH "/v1/traces"
#define WRITE_BYTES (64 << 10)
#define GATHER_NS 200000000
#define TRIES 3
#define CONNECT_MS 3000L
#define TIMEOUT_MS 10000L
#define STOPPING_MS 1000L /* for a request that runs while the daemon stops */
#define POLL_MS 50
#define ANSWER_BYTES_MAX (64 << 10)

struct otlp {
    struct line_sink sink;
    const struct curl *curl;
    CURL *easy;                 /* owned; the writer's thread uses it */
    struct curl_slist *headers; /* owned */
    struct buf head;            /* the text before the spans */
    struct buf body;
    size_t answer_bytes;  /* of the answer to the current request */
    uint64_t stopping_ms; /* when the sink was first seen to stop; 0: not yet */
    bool is_away;         /* the last request failed, and the log says so */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- one request ----------------------------------------------------------------------------- */

/* The answer says nothing of use; an answer that does not end is cut. */
static size_t on_answer(char *bytes, size_t size, size_t count, void *data)
{
    struct otlp *otlp = data;
    (void)bytes;
    otlp->answer_bytes += size * count;
    return otlp->answer_bytes > ANSWER_BYTES_MAX ? 0 : size * count;
}

/* Non-zero ends the request. */
static int on_progress(void *data, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    struct otlp *otlp = data;
    (void)down_total, (void)down, (void)up_total, (void)up;
    if (!atomic_load(&otlp->sink.is_stopping)) {
        return 0;
    }
    uint64_t now = now_ms();
    otlp->stopping_ms = otlp->stopping_ms ? otlp->stopping_ms : now;
    return now - otlp->stopping_ms > STOPPING_MS;
}

static void make_body(struct otlp *otlp, const uint8_t *lines, size_t len)
{
    struct buf *body = &otlp->body;
    buf_reset(body);
    buf_add(body, otlp->head.ptr, otlp->head.len);
    size_t begin = body->len;
    buf_add(body, lines, len - 1); /* all but the last line's end */
    for (size_t i = begin; i < body->len; i++) {
        body->ptr[i] = body->ptr[i] == '\n' ? ',' : body->ptr[i];
    }
    buf_add_str(body, "]}]}]}");
}

/* 200 to 599, or 0: there is no answer, for the reason |*out_code|. */
static long post(struct otlp *otlp, CURLcode *out_code)
{
    long status = 0;
    otlp->answer_bytes = 0;
    otlp->curl->easy_setopt(otlp->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)otlp->body.len);
    otlp->curl->easy_setopt(otlp->easy, CURLOPT_POSTFIELDS, otlp->body.ptr);
    *out_code = otlp->curl->easy_perform(otlp->easy);
    if (*out_code == CURLE_OK) {
        otlp->curl->easy_getinfo(otlp->easy, CURLINFO_RESPONSE_CODE, &status);
    }
    return status;
}

/* ---- tries ----------------------------------------------------------------------------------- */

/* The statuses that the specification calls retryable, and no answer at all. */
static bool may_try_again(long status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* Doubles from a second on. False: the daemon stops. */
static bool pause_before(struct otlp *otlp, int next_try)
{
    const struct timespec step = {.tv_nsec = POLL_MS * 1000000L};
    for (int ms = 0; ms < 500 << next_try; ms += POLL_MS) {
        if (atomic_load(&otlp->sink.is_stopping)) {
            return false;
        }
        nanosleep(&step, NULL);
    }
    return true;
}

/* One line when the collector goes away, one when it is back. */
static void tell(struct otlp *otlp, long status, CURLcode code)
{
    bool is_away = status < 200 || status > 299;
    if (is_away && !otlp->is_away && status) {
        log_line(LOG_WARNING, "traces: the collector answers %ld; expected 200", status);
    } else if (is_away && !otlp->is_away) {
        log_line(LOG_WARNING, "traces: the collector: %s", otlp->curl->easy_strerror(code));
    } else if (!is_away && otlp->is_away) {
        log_line(LOG_NOTICE, "traces: the collector takes spans again");
    }
    otlp->is_away = is_away;
}

static uint64_t write_spans(struct line_sink *sink, const uint8_t *lines, size_t len)
{
    struct otlp *otlp = (struct otlp *)sink;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    long status = 0;
    make_body(otlp, lines, len);
    for (int try = 0; try < TRIES && may_try_again(status) && !buf_failed(&otlp->body); try++) {
        if (try > 0 && !pause_before(otlp, try)) {
            break;
        }
        status = post(otlp, &code);
    }
    tell(otlp, status, code);
    return otlp->is_away ? line_sink_count(lines, len) : 0;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static void free_otlp(struct line_sink *sink)
{
    struct otlp *otlp = (struct otlp *)sink;
    if (otlp->easy) {
        otlp->curl->easy_cleanup(otlp->easy);
    }
    if (otlp->headers) {
        otlp->curl->slist_free_all(otlp->headers);
    }
    buf_fini(&otlp->head);
    buf_fini(&otlp->body);
    free(otlp);
}

static const struct line_sink_ops otlp_ops = {
    .what = "traces",
    .gather_ns = GATHER_NS,
    .write = write_spans,
    .free = free_otlp,
};

static void make_head(struct otlp *otlp, const char *service)
{
    struct buf *head = &otlp->head;
    buf_add_str(head, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":"
                      "\"service.name\",\"value\":{\"stringValue\":");
    json_print_string(head, span_str(service));
    buf_add_str(head, "}},{\"key\":\"service.version\",\"value\":{\"stringValue\":\"" VERSION
                      "\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"pted\",\"version\":\"" VERSION
                      "\"},\"spans\":[");
}

/* Copies |endpoint| with the path of spans behind it. False: out of memory. */
static bool set_url(struct otlp *otlp, const char *endpoint)
{
    struct buf url;
    size_t len = strlen(endpoint);
    while (len > 0 && endpoint[len - 1] == '/') {
        len--;
    }
    bool has_path =
        len >= strlen(PATH) && strncmp(endpoint + len - strlen(PATH), PATH, strlen(PATH)) == 0;
    buf_init(&url, 256);
    buf_add(&url, endpoint, len);
    buf_add_str(&url, has_path ? "" : PATH);
    buf_add(&url, "", 1);
    bool is_set =
        !buf_failed(&url) && otlp->curl->easy_setopt(otlp->easy, CURLOPT_URL, url.ptr) == CURLE_OK;
    buf_fini(&url);
    return is_set;
}

static bool set_up(struct otlp *otlp, const char *endpoint)
{
    const struct curl *curl = otlp->curl;
    otlp->easy = curl->easy_init();
    otlp->headers = curl->slist_append(NULL, "Content-Type: application/json");
    if (!otlp->easy || !otlp->headers || !set_url(otlp, endpoint)) {
        return false;
    }
    CURL *easy = otlp->easy;
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, otlp->headers);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, "pted/" VERSION);
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, otlp);
    curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl->easy_setopt(easy, CURLOPT_XFERINFODATA, otlp);
    return true;
}

enum status otlp_sink(const char *endpoint, const char *service, struct line_sink **out_sink,
                      struct error *err)
{
    const struct curl *curl;
    if (curl_load(err, &curl) != ST_OK) {
        return error_prefix(err, "traces: ");
    }
    struct otlp *otlp = calloc(1, sizeof(*otlp));
    if (!otlp) {
        return error_no_memory(err, "traces");
    }
    otlp->sink.ops = &otlp_ops;
    otlp->sink.write_bytes = WRITE_BYTES;
    otlp->curl = curl;
    buf_init(&otlp->head, 512);
    buf_init(&otlp->body, WRITE_BYTES + LINE_BYTES_MAX);
    make_head(otlp, service);
    if (buf_failed(&otlp->head) || !set_up(otlp, endpoint)) {
        free_otlp(&otlp->sink);
        return error_no_memory(err, "traces");
    }
    *out_sink = &otlp->sink;
    return ST_OK;
}
