/* SPDX-License-Identifier: MIT */
/*
 * Open loop load: requests arrive at a fixed rate whether or not earlier ones have been answered,
 * as those of many independent users do. All arrivals are drawn before the first; one that finds
 * every connection busy waits here, and its time runs from when it should have been sent, so a
 * server that stalls is not asked less often and its pause is in the percentiles of all that it
 * delayed.
 *
 * One thread, one epoll, a timer of nanoseconds. Answers need a Content-Length, which ours have.
 *
 *     curl -s URL/v2/models/NAME | awk -f contrib/load/body.awk |
 *         open_load --rate 500 127.0.0.1:8000 /v2/models/NAME/infer
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define US_PER_S 1000000u
#define REQUESTS_MAX 10000000
#define CONNECTIONS_MAX 4096
#define BODY_BYTES_MAX (256u << 20)
#define HEAD_BYTES_MAX 16384 /* of an answer */
#define EVENTS_MAX 64
#define GRACE_S 10 /* for the last answers */

struct options {
    double rate, seconds, warmup; /* arrivals a second; the first |warmup| seconds do not count */
    uint32_t connections;
    uint64_t seed;
    bool is_constant; /* even gaps; else those of a Poisson process */
    const char *header;
    const char *address, *path;
};

struct conn {
    int fd;
    uint64_t request; /* that is under way */
    size_t sent;      /* bytes of it */
    char head[HEAD_BYTES_MAX + 1];
    size_t head_bytes;
    size_t body_left;
    bool is_in_body;
    bool is_full; /* the kernel took only a part of the request: waits for room */
    int status;
};

struct load {
    struct options options;
    char *request; /* the bytes of every request */
    size_t request_bytes;
    struct addrinfo *address;
    int epoll, timer;
    uint64_t *times; /* ns: when each arrives after |start|, then how long it took */
    uint64_t count, first_counted;
    uint64_t arrived, begun, ended; /* requests so far */
    uint64_t refused;               /* not answered by 200 */
    uint64_t start_ns, last_ns;
    uint64_t late_ns; /* the longest that we were late ourselves */
    struct conn *idle[CONNECTIONS_MAX];
    uint32_t idle_count, conn_count;
};

static void die(const char *what)
{
    fprintf(stderr, "open_load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- arrivals -------------------------------------------------------------------------------- */

/* In (0, 1]. xorshift64*, of Vigna. */
static double draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717u >> 11) + 1) * 0x1p-53;
}

static void plan_arrivals(struct load *load)
{
    const struct options *options = &load->options;
    uint64_t state = options->seed;
    double at = 0, gap = 1 / options->rate, end = options->warmup + options->seconds;
    load->times = malloc(REQUESTS_MAX * sizeof(load->times[0])); /* touched as far as it is used */
    if (!load->times) {
        die("arrivals");
    }
    while (load->count < REQUESTS_MAX) {
        at += options->is_constant ? gap : -log(draw(&state)) * gap;
        if (at >= end) {
            return;
        }
        load->first_counted += at < options->warmup;
        load->times[load->count++] = (uint64_t)(at * NS_PER_S);
    }
}

static void set_timer(struct load *load, uint64_t at_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)}};
    if (timerfd_settime(load->timer, TFD_TIMER_ABSTIME, &when, NULL) < 0) {
        die("timer");
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

static void watch(struct load *load, int op, int fd, uint32_t events, void *of)
{
    struct epoll_event event = {.events = events, .data = {.ptr = of}};
    if (epoll_ctl(load->epoll, op, fd, &event) < 0) {
        die("epoll_ctl");
    }
}

/* Waits for it, which on the same machine is a matter of microseconds. */
static struct conn *connect_one(struct load *load)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    const struct addrinfo *to = load->address;
    int one = 1;
    conn = conn ? conn : (die("connection"), NULL);
    conn->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0 || connect(conn->fd, to->ai_addr, to->ai_addrlen) < 0 ||
        setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
        fcntl(conn->fd, F_SETFL, O_NONBLOCK) < 0) {
        die(load->options.address);
    }
    load->conn_count++;
    watch(load, EPOLL_CTL_ADD, conn->fd, EPOLLIN, conn);
    return conn;
}

static void finish(struct load *load, struct conn *conn, int status)
{
    load->last_ns = now_ns();
    load->times[conn->request] = load->last_ns - load->start_ns - load->times[conn->request];
    if (status != 200) {
        load->refused++;
    }
    load->ended++;
}

/* The connection is over, and with it the request that was under way. */
static void drop(struct load *load, struct conn *conn)
{
    finish(load, conn, 0);
    close(conn->fd);
    load->conn_count--;
    free(conn);
}

/* What the kernel takes of the rest of the request; the connection may be gone afterwards. */
static bool send_rest(struct load *load, struct conn *conn)
{
    ssize_t sent =
        send(conn->fd, load->request + conn->sent, load->request_bytes - conn->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        drop(load, conn);
        return false;
    }
    conn->sent += sent > 0 ? (size_t)sent : 0;
    bool is_full = conn->sent < load->request_bytes;
    if (is_full != conn->is_full) {
        watch(load, EPOLL_CTL_MOD, conn->fd, is_full ? EPOLLIN | EPOLLOUT : EPOLLIN, conn);
        conn->is_full = is_full;
    }
    return true;
}

/* Requests that have arrived, as far as there are connections for them. */
static void begin_waiting(struct load *load)
{
    while (load->begun < load->arrived &&
           (load->idle_count > 0 || load->conn_count < load->options.connections)) {
        struct conn *conn =
            load->idle_count > 0 ? load->idle[--load->idle_count] : connect_one(load);
        conn->request = load->begun++;
        conn->head_bytes = conn->sent = 0;
        conn->is_in_body = false;
        send_rest(load, conn);
    }
}

static void on_timer(struct load *load)
{
    uint64_t now = now_ns() - load->start_ns;
    if (load->arrived < load->count && now > load->times[load->arrived] + load->late_ns) {
        load->late_ns = now - load->times[load->arrived];
    }
    while (load->arrived < load->count && load->times[load->arrived] <= now) {
        load->arrived++;
    }
    begin_waiting(load);
    if (load->arrived < load->count) {
        set_timer(load, load->start_ns + load->times[load->arrived]);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The head in |conn| is whole and ends at |end|: the status and the body's size. */
static bool read_head(struct conn *conn, const char *end)
{
    const char *field = strcasestr(conn->head, "\r\ncontent-length:");
    char *number_end;
    if (sscanf(conn->head, "HTTP/1.1 %3d", &conn->status) != 1 || !field || field > end) {
        return false;
    }
    conn->body_left = strtoul(field + strlen("\r\ncontent-length:"), &number_end, 10);
    return *number_end == '\r';
}

/* |len| more bytes; false: this is no answer. */
static bool take(struct load *load, struct conn *conn, const char *bytes, size_t len)
{
    if (!conn->is_in_body) {
        size_t room = HEAD_BYTES_MAX - conn->head_bytes, used = len < room ? len : room;
        memcpy(conn->head + conn->head_bytes, bytes, used);
        conn->head_bytes += used;
        conn->head[conn->head_bytes] = '\0';
        const char *end = strstr(conn->head, "\r\n\r\n");
        if (!end) {
            return used == len;
        }
        size_t before = conn->head_bytes - used;
        size_t taken = (size_t)(end + 4 - conn->head) - before;
        if (!read_head(conn, end)) {
            return false;
        }
        conn->is_in_body = true;
        len -= taken;
    }
    if (len > conn->body_left) {
        return false;
    }
    conn->body_left -= len;
    if (conn->body_left == 0) {
        finish(load, conn, conn->status);
        load->idle[load->idle_count++] = conn;
    }
    return true;
}

static void on_conn(struct load *load, struct conn *conn, uint32_t events)
{
    static char bytes[1 << 16];
    if (events & EPOLLOUT && !send_rest(load, conn)) {
        return;
    }
    if (events & ~(uint32_t)EPOLLOUT) {
        ssize_t got = recv(conn->fd, bytes, sizeof(bytes), 0);
        bool is_good = got > 0 && take(load, conn, bytes, (size_t)got);
        if (!is_good && !(got < 0 && errno == EAGAIN)) {
            drop(load, conn);
        }
    }
    begin_waiting(load);
}

static void run(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t end_ns;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (load->epoll < 0 || load->timer < 0) {
        die("epoll");
    }
    watch(load, EPOLL_CTL_ADD, load->timer, EPOLLIN | EPOLLET, NULL); /* is not read */
    load->start_ns = now_ns();
    end_ns = load->start_ns + load->times[load->count - 1] + (uint64_t)GRACE_S * NS_PER_S;
    set_timer(load, load->start_ns + load->times[0]);
    while (load->ended < load->count && now_ns() < end_ns) {
        int count = epoll_wait(load->epoll, events, EVENTS_MAX, 100);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                on_conn(load, events[i].data.ptr, events[i].events);
            } else {
                on_timer(load);
            }
        }
    }
}

/* ---- the report ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static double percentile_us(const uint64_t *times, uint64_t count, double share)
{
    uint64_t index = (uint64_t)ceil((double)count * share);
    return (double)times[index > 0 ? index - 1 : 0] / (NS_PER_S / US_PER_S);
}

/* 0 when every request was answered by 200. */
static int report(struct load *load)
{
    uint64_t *times = load->times + load->first_counted, count = load->count - load->first_counted;
    uint64_t lost = load->count - load->ended;
    double seconds = (double)(load->last_ns - load->start_ns) / NS_PER_S;
    printf("requests %" PRIu64 ", not answered by 200 %" PRIu64 ", seconds %.3f\n", load->count,
           load->refused + lost, seconds);
    if (load->refused + lost > 0 || count == 0) {
        return 1;
    }
    qsort(times, count, sizeof(times[0]), compare);
    printf("req/s %.1f over %u connections, at most %.0f us late\n", (double)load->count / seconds,
           load->conn_count, (double)load->late_ns / (NS_PER_S / US_PER_S));
    printf("us p50 %.0f  p90 %.0f  p99 %.0f  p99.9 %.0f  max %.0f\n",
           percentile_us(times, count, 0.5), percentile_us(times, count, 0.9),
           percentile_us(times, count, 0.99), percentile_us(times, count, 0.999),
           percentile_us(times, count, 1));
    return 0;
}

/* ---- what was asked for ---------------------------------------------------------------------- */

static void usage(FILE *out)
{
    fputs("usage: open_load [OPTION]... ADDRESS:PORT PATH <BODY\n"
          "  --rate N          arrivals a second (100)\n"
          "  --seconds N       how long they are measured (10)\n"
          "  --warmup N        seconds before that (1)\n"
          "  --constant        even gaps; without it those of a Poisson process\n"
          "  --connections N   at most so many, 1 to 4096 (256)\n"
          "  --seed N          of the arrivals (1)\n"
          "  --header 'A: B'   one more field of the request\n",
          out);
}

static void misuse(void)
{
    usage(stderr);
    exit(64);
}

static double number(const char *text, double min, double max)
{
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value >= min && value <= max)) {
        misuse();
    }
    return value;
}

static void parse(struct options *options, int argc, char *argv[])
{
    static const struct option names[] = {{"rate", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"warmup", required_argument, NULL, 'w'},
                                          {"constant", no_argument, NULL, 'c'},
                                          {"seed", required_argument, NULL, 'S'},
                                          {"connections", required_argument, NULL, 'n'},
                                          {"header", required_argument, NULL, 'H'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 'r':
            options->rate = number(optarg, 1e-3, 1e7);
            break;
        case 's':
            options->seconds = number(optarg, 1e-3, 86400);
            break;
        case 'w':
            options->warmup = number(optarg, 0, 86400);
            break;
        case 'c':
            options->is_constant = true;
            break;
        case 'S':
            options->seed = (uint64_t)number(optarg, 1, 0x1p53);
            break;
        case 'n':
            options->connections = (uint32_t)number(optarg, 1, CONNECTIONS_MAX);
            break;
        case 'H':
            options->header = optarg;
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            misuse();
        }
    }
    if (optind + 2 != argc) {
        misuse();
    }
    options->address = argv[optind];
    options->path = argv[optind + 1];
}

static void resolve(struct load *load)
{
    char host[256];
    const char *colon = strrchr(load->options.address, ':');
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    if (!colon || (size_t)(colon - load->options.address) >= sizeof(host)) {
        misuse();
    }
    memcpy(host, load->options.address, (size_t)(colon - load->options.address));
    host[colon - load->options.address] = '\0';
    int rc = getaddrinfo(host, colon + 1, &hints, &load->address);
    if (rc != 0) {
        fprintf(stderr, "open_load: %s: %s\n", load->options.address, gai_strerror(rc));
        exit(1);
    }
}

/* The body comes from standard input. */
static void make_request(struct load *load)
{
    char *body = malloc(BODY_BYTES_MAX), head[4096];
    size_t body_bytes = body ? fread(body, 1, BODY_BYTES_MAX, stdin) : 0;
    if (!body || ferror(stdin) || body_bytes == BODY_BYTES_MAX) {
        die("body");
    }
    const struct options *options = &load->options;
    int len = snprintf(head, sizeof(head),
                       "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n%s%s\r\n",
                       options->path, options->address, body_bytes,
                       options->header ? options->header : "", options->header ? "\r\n" : "");
    load->request = malloc(sizeof(head) + body_bytes);
    if (len < 0 || (size_t)len >= sizeof(head) || !load->request) {
        die("request");
    }
    memcpy(load->request, head, (size_t)len);
    memcpy(load->request + len, body, body_bytes);
    load->request_bytes = (size_t)len + body_bytes;
    free(body);
}

int main(int argc, char *argv[])
{
    static struct load load = {
        .options = {.rate = 100, .seconds = 10, .warmup = 1, .connections = 256, .seed = 1}};
    parse(&load.options, argc, argv);
    resolve(&load);
    make_request(&load);
    plan_arrivals(&load);
    if (load.count == 0) {
        die("no request arrives in this time");
    }
    errno = 0;
    run(&load);
    freeaddrinfo(load.address);
    return report(&load);
}
