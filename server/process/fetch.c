/* SPDX-License-Identifier: MIT */
/*
 * The cache has, for the URL whose SHA-256 is HEX, the files
 *
 *     HEX.pte        complete; the extension is the URL's
 *     HEX.pte.part   what has come of it so far
 *     HEX.pte.tag    ETag and Last-Modified of the complete file, a line each
 *     HEX.pte.part.tag   those of the part
 *     HEX.pte.lock   locked by the process that downloads
 */
#include "config.h"

#include "server/process/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "server/process/curl.h"
#include "server/process/fetch_url.h"
#include "server/process/options.h"

#define TRIES 4
#define FIRST_PAUSE_MS 250
#define STEP_MS 50
#define CONNECT_S 15L
#define REDIRECTS_MAX 5L
#define TAG_BYTES_MAX 256
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define PROGRESS_MS 250
#define PROGRAM_HEAD_BYTES 8 /* bytes 4 to 7 are "ET12", or that of another version */
#define FOLDER_MODE 0750
#define FILE_MODE 0640

static atomic_bool is_cancelled;
static _Atomic uint64_t fetched_count, unchanged_count, failed_count;

/* The server's marks of a state of the file; "" if there is none. */
struct tags {
    char etag[TAG_BYTES_MAX], modified[TAG_BYTES_MAX];
    char region[TAG_BYTES_MAX]; /* of Amazon, if the request went to another one; not kept */
};

struct download {
    const struct fetch *fetch;
    const struct curl *curl;
    struct fetch_target target;
    char shown[FETCH_SHOWN_MAX];
    char path[PATH_MAX], part[PATH_MAX];
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    bool lacks_headers;         /* there was no memory for one */
    char url[FETCH_URL_MAX];    /* of the current request: the target's, or where it was sent on */
    bool is_signed;             /* the current request is, by keys of S3 */
    int fd;                     /* owned: of the part */
    uint64_t begin;             /* bytes of the part when the request was made */
    uint64_t bytes;             /* of the part now */
    struct tags old, fresh;     /* of the complete file; of the current answer */
    uint64_t told_ms;
    uint64_t heard_ms; /* when the request was made, or a byte of its answer came last */
    bool is_idle;      /* that was too long ago */
    bool is_begun;     /* the first byte of the body has come, and the part has its beginning */
    int file_error;    /* an errno: the part could not be written */
};

struct fetch fetch_of(const struct options *options)
{
    return (struct fetch){
        .cache_dir = options->cache_dir,
        .hf_endpoint = options->hf_endpoint,
        .s3_endpoint = options->s3_endpoint,
        .bytes_max = options->params.fetch_bytes_max,
        .idle_ms = options->params.fetch_idle_timeout,
    };
}

void fetch_cancel(void)
{
    atomic_store(&is_cancelled, true);
}

struct fetch_counts fetch_counts(void)
{
    return (struct fetch_counts){.fetched = atomic_load(&fetched_count),
                                 .unchanged = atomic_load(&unchanged_count),
                                 .failed = atomic_load(&failed_count)};
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* False: there is no folder, or its path is too long. */
static bool find_folder(const struct fetch *fetch, char out[PATH_MAX])
{
    const char *systemd = getenv("CACHE_DIRECTORY"), *user = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int len = -1;
    if (fetch->cache_dir) {
        len = snprintf(out, PATH_MAX, "%s", fetch->cache_dir);
    } else if (systemd && *systemd) {
        len = snprintf(out, PATH_MAX, "%.*s", (int)strcspn(systemd, ":"), systemd);
    } else if (user && *user) {
        len = snprintf(out, PATH_MAX, "%s/pted", user);
    } else if (home && *home) {
        len = snprintf(out, PATH_MAX, "%s/.cache/pted", home);
    }
    return len > 0 && len < PATH_MAX;
}

static enum status place(const struct fetch *fetch, const char *url,
                         const struct fetch_target *target, char *out, size_t size,
                         struct error *err)
{
    char folder[PATH_MAX], hex[SHA256_HEX_CHARS];
    uint8_t hash[SHA256_BYTES];
    if (target->is_local) {
        snprintf(out, size, "%s", target->url);
        return ST_OK;
    }
    TRY(sha256_load(err));
    if (!find_folder(fetch, folder)) {
        return error_set(err, ST_INVALID, "no folder for files of URLs: expected --cache-dir");
    }
    if (!sha256(span_str(url), hash)) {
        return error_no_memory(err, "a hash");
    }
    sha256_print(hash, hex);
    int len = snprintf(out, size, "%s/%.*s%s", folder, SHA256_HEX_CHARS, hex, target->extension);
    return len > 0 && (size_t)len < size
               ? ST_OK
               : error_set(err, ST_INVALID, "--cache-dir: the path is too long");
}

enum status fetch_path(const struct fetch *fetch, const char *url, char *out, size_t size,
                       struct error *err)
{
    struct fetch_target target;
    TRY(fetch_url_parse(fetch, url, &target, err));
    return place(fetch, url, &target, out, size, err);
}

static enum status file_failed(struct error *err, const char *path, int number)
{
    return error_set(err, status_of_errno(number), "cache file %.160s: %s", path, strerror(number));
}

/* All folders above |path|. */
static enum status make_folders(const char *path, struct error *err)
{
    char text[PATH_MAX];
    snprintf(text, sizeof(text), "%s", path);
    for (char *slash = strchr(text + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(text, FOLDER_MODE) < 0 && errno != EEXIST) {
            return error_set(err, status_of_errno(errno), "cache folder %.160s: %s", text,
                             strerror(errno));
        }
        *slash = '/';
    }
    return ST_OK;
}

static void beside(const char *path, const char *suffix, char out[PATH_MAX])
{
    size_t len = strlen(path), more = strlen(suffix);
    must(len + more < PATH_MAX);
    memcpy(out, path, len);
    memcpy(out + len, suffix, more + 1);
}

static void read_tags(const char *path, struct tags *out)
{
    char name[PATH_MAX];
    *out = (struct tags){0};
    beside(path, ".tag", name);
    FILE *file = fopen(name, "re");
    if (!file) {
        return;
    }
    char *texts[] = {out->etag, out->modified};
    for (size_t i = 0; i < 2 && fgets(texts[i], TAG_BYTES_MAX, file); i++) {
        texts[i][strcspn(texts[i], "\n")] = '\0';
    }
    fclose(file);
}

/* If it fails, the file is only asked for again. */
static void write_tags(const char *path, const struct tags *tags)
{
    char name[PATH_MAX];
    beside(path, ".tag", name);
    FILE *file = fopen(name, "we");
    if (file) {
        fprintf(file, "%s\n%s\n", tags->etag, tags->modified);
        fclose(file);
    }
}

/* The part takes no more bytes. It goes: it is useless while the file has no room. */
static enum status part_unwritten(const struct download *d, int number, struct error *err)
{
    char tag[PATH_MAX];
    beside(d->part, ".tag", tag);
    unlink(tag);
    unlink(d->part);
    return error_set(err, ST_UNWRITTEN, "cache file %.160s, after %llu bytes: %s", d->part,
                     (unsigned long long)d->bytes, strerror(number));
}

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

/* ST_CORRUPT: it has another hash. */
static enum status check_hash(const struct fetch_target *target, const char *path,
                              struct error *err)
{
    char wanted[SHA256_HEX_CHARS], got[SHA256_HEX_CHARS];
    uint8_t hash[SHA256_BYTES];
    struct stat st;
    if (!target->has_hash) {
        return ST_OK;
    }
    TRY(sha256_load(err));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int number = errno;
        close(fd);
        return file_failed(err, path, number);
    }
    size_t size = (size_t)st.st_size;
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    bool is_read = bytes != MAP_FAILED && sha256(span_of(bytes, size), hash);
    if (size && bytes != MAP_FAILED) {
        munmap(bytes, size);
    }
    if (!is_read) {
        return error_no_memory(err, "a hash");
    }
    if (sha256_equal(hash, target->hash)) {
        return ST_OK;
    }
    sha256_print(target->hash, wanted);
    sha256_print(hash, got);
    return error_set(err, ST_CORRUPT, "expected SHA-256 %.*s, got %.*s", SHA256_HEX_CHARS, wanted,
                     SHA256_HEX_CHARS, got);
}

/* ---- what libcurl calls ---------------------------------------------------------------------- */

static long status_of(struct download *d)
{
    long status = 0;
    d->curl->easy_getinfo(d->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The field |name|, with its colon, of a head; a longer value is not kept. */
static void take_tag(const char *line, size_t len, const char *name, char out[TAG_BYTES_MAX])
{
    size_t at = strlen(name);
    if (len <= at || strncasecmp(line, name, at) != 0) {
        return;
    }
    while (at < len && (line[at] == ' ' || line[at] == '\t')) {
        at++;
    }
    while (len > at && (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' ')) {
        len--;
    }
    if (len - at < TAG_BYTES_MAX) {
        memcpy(out, line + at, len - at);
        out[len - at] = '\0';
    }
}

static size_t on_header(char *line, size_t size, size_t count, void *data)
{
    struct download *d = data;
    size_t len = size * count;
    d->heard_ms = now_ms();
    if (len > 5 && memcmp(line, "HTTP/", 5) == 0) { /* of the answer after a redirect, too */
        d->fresh = (struct tags){0};
    }
    take_tag(line, len, "etag:", d->fresh.etag);
    take_tag(line, len, "last-modified:", d->fresh.modified);
    take_tag(line, len, "x-amz-bucket-region:", d->fresh.region);
    return len;
}

/* The answer is the rest of the file (206), or all of it. False: the part cannot be written. */
static bool begin_body(struct download *d)
{
    d->is_begun = true;
    if (status_of(d) != 206) {
        d->bytes = d->begin = 0;
    }
    write_tags(d->part, &d->fresh);
    bool is_placed =
        ftruncate(d->fd, (off_t)d->bytes) == 0 && lseek(d->fd, (off_t)d->bytes, SEEK_SET) >= 0;
    d->file_error = is_placed ? 0 : errno;
    return is_placed;
}

/* Less than all of it ends the download. */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *data)
{
    struct download *d = data;
    size_t len = size * count, done = 0;
    long status = status_of(d);
    d->heard_ms = now_ms();
    if (status != 200 && status != 206) {
        return len; /* the text of an error */
    }
    if (!d->is_begun && !begin_body(d)) {
        return 0;
    }
    if (len > d->fetch->bytes_max || d->bytes > d->fetch->bytes_max - len) {
        return 0;
    }
    while (done < len) {
        ssize_t written = write(d->fd, bytes + done, len - done);
        if (written < 0 && errno != EINTR) {
            d->file_error = errno;
            return 0;
        }
        done += written > 0 ? (size_t)written : 0;
        d->bytes += written > 0 ? (uint64_t)written : 0;
    }
    return len;
}

/* Non-zero ends the download. Called once a second even if nothing comes: CURLOPT_LOW_SPEED_TIME
 * would look at the mean speed of five seconds, and so end a download five seconds late. */
static int on_progress(void *data, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up)
{
    struct download *d = data;
    uint64_t ms = now_ms();
    (void)now, (void)up_total, (void)up;
    if (d->is_begun && d->fetch->on_progress && ms - d->told_ms >= PROGRESS_MS) {
        d->told_ms = ms;
        d->fetch->on_progress(d->fetch->arg, d->shown, d->bytes,
                              total > 0 ? d->begin + (uint64_t)total : 0);
    }
    d->is_idle = ms - d->heard_ms >= d->fetch->idle_ms;
    return d->is_idle || atomic_load(&is_cancelled);
}

/* ---- one request ----------------------------------------------------------------------------- */

static void add_header(struct download *d, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 3;
    char *text = malloc(size);
    struct curl_slist *list = NULL;
    if (text) {
        snprintf(text, size, "%s: %s", name, value);
        list = d->curl->slist_append(d->headers, text);
    }
    free(text);
    d->headers = list ? list : d->headers;
    d->lacks_headers |= !list;
}

/* The rest of a part, or the file if it differs from the one in the cache. */
static void add_conditions(struct download *d, const struct tags *part)
{
    char range[32];
    bool is_strong = part->etag[0] == '"';
    if (d->bytes > 0 && (is_strong || d->target.has_hash)) {
        snprintf(range, sizeof(range), "bytes=%llu-", (unsigned long long)d->bytes);
        add_header(d, "Range", range);
        if (is_strong) {
            add_header(d, "If-Range", part->etag);
        }
    } else if (d->old.etag[0]) {
        add_header(d, "If-None-Match", d->old.etag);
    } else if (d->old.modified[0]) {
        add_header(d, "If-Modified-Since", d->old.modified);
    }
}

/*
 * S3 wants the hash of the body as a header. libcurl adds it only since 8.0; each version signs one
 * that is there.
 */
static void add_signature(struct download *d)
{
    const struct curl *curl = d->curl;
    const char *session = getenv("AWS_SESSION_TOKEN");
    curl->easy_setopt(d->easy, CURLOPT_AWS_SIGV4, d->target.sigv4);
    curl->easy_setopt(d->easy, CURLOPT_USERNAME, getenv("AWS_ACCESS_KEY_ID"));
    curl->easy_setopt(d->easy, CURLOPT_PASSWORD, getenv("AWS_SECRET_ACCESS_KEY"));
    add_header(d, "x-amz-content-sha256", EMPTY_SHA256);
    if (session && *session) {
        add_header(d, "x-amz-security-token", session);
    }
}

static void add_access(struct download *d)
{
    const struct curl *curl = d->curl;
    if (d->target.token) {
        curl->easy_setopt(d->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl->easy_setopt(d->easy, CURLOPT_XOAUTH2_BEARER, d->target.token);
    }
    if (d->is_signed) {
        add_signature(d);
    }
}

static bool is_secure(const char *url)
{
    return strncmp(url, "https:", 6) == 0;
}

static void set_up(struct download *d, const struct tags *part)
{
    const struct curl *curl = d->curl;
    CURL *easy = d->easy;
    const char *bundle = getenv("CURL_CA_BUNDLE");
    d->heard_ms = now_ms();
    d->is_idle = false;
    curl->easy_reset(easy);
    curl->slist_free_all(d->headers);
    d->headers = NULL;
    d->lacks_headers = false;
    add_conditions(d, part);
    add_access(d);
    curl->easy_setopt(easy, CURLOPT_URL, d->url);
    curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, (long)d->target.has_dots);
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, d->headers);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, "pted/" VERSION);
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                      is_secure(d->url) ? "https" : "http,https");
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, (long)!d->is_signed);
    curl->easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    curl->easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)d->fetch->bytes_max);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, d);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, d);
    curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl->easy_setopt(easy, CURLOPT_XFERINFODATA, d);
    if (bundle && *bundle) {
        curl->easy_setopt(easy, CURLOPT_CAINFO, bundle);
    }
}

/* Scheme, host and port are the same text. */
static bool same_origin(const char *a, const char *b)
{
    size_t scheme = strcspn(a, ":") + strlen("://");
    size_t len = strlen(a) > scheme ? scheme + strcspn(a + scheme, "/?#") : 0;
    return len > 0 && strncmp(a, b, len) == 0 && (b[len] == '/' || b[len] == '?' || !b[len]);
}

/* libcurl puts the name and the password of the request into where a relative redirect leads. */
static void drop_user(char *url)
{
    char *host = strstr(url, "://");
    host = host ? host + strlen("://") : url;
    char *rest = host, *end = host + strcspn(host, "/?#");
    for (char *c = host; c < end; c++) {
        rest = *c == '@' ? c + 1 : rest;
    }
    memmove(host, rest, strlen(rest) + 1);
}

/*
 * The request, and those that it is redirected to. libcurl takes headers that it was given, such as
 * x-amz-security-token, along to any origin, so it does not follow redirects of a signed request.
 */
static CURLcode perform(struct download *d, const struct tags *part)
{
    snprintf(d->url, sizeof(d->url), "%s", d->target.url);
    d->is_signed = d->target.sigv4[0] != '\0';
    for (long hops = 0; hops <= REDIRECTS_MAX; hops++) {
        const char *next = NULL;
        set_up(d, part);
        CURLcode code = d->lacks_headers ? CURLE_OUT_OF_MEMORY : d->curl->easy_perform(d->easy);
        if (code == CURLE_OK && d->is_signed) {
            d->curl->easy_getinfo(d->easy, CURLINFO_REDIRECT_URL, &next);
        }
        if (!next) {
            return code;
        }
        char url[FETCH_URL_MAX];
        if (strlen(next) >= sizeof(url) || (is_secure(d->url) && !is_secure(next))) {
            return CURLE_UNSUPPORTED_PROTOCOL;
        }
        memcpy(url, next, strlen(next) + 1);
        drop_user(url);
        d->is_signed = same_origin(d->url, url);
        memcpy(d->url, url, sizeof(url));
    }
    return CURLE_TOO_MANY_REDIRECTS;
}

enum outcome { DONE, UNCHANGED, TRY_AGAIN, FAILED };

static enum outcome fail(struct error *err, enum status code, const char *why)
{
    error_set(err, code, "%s", why);
    return FAILED;
}

/* The download has ended without libcurl's complaint. */
static enum outcome judge_status(struct download *d, long status, struct error *err)
{
    if (status == 304 && exists(d->path)) {
        return UNCHANGED;
    }
    if (status == 200 || status == 206) {
        if (!d->is_begun) {
            begin_body(d); /* an empty file */
        }
        if (d->file_error) {
            part_unwritten(d, d->file_error, err);
        }
        return d->file_error ? FAILED : DONE;
    }
    error_set(err, status == 404 || status == 410 ? ST_NOT_FOUND : ST_UNAVAILABLE,
              "expected HTTP status 200, got %ld%s%.64s", status,
              d->fresh.region[0] ? "; the bucket is in AWS_REGION=" : "", d->fresh.region);
    if (status == 416) { /* the part is longer than the file is now */
        unlink(d->part);
    }
    return status >= 500 || status == 408 || status == 416 || status == 429 ? TRY_AGAIN : FAILED;
}

static enum outcome judge_idle(const struct download *d, struct error *err)
{
    error_set(err, ST_TIMEOUT, "no byte has come for %llu ms (--fetch-idle-timeout)",
              (unsigned long long)d->fetch->idle_ms);
    return d->is_begun ? TRY_AGAIN : FAILED;
}

static enum outcome judge(struct download *d, CURLcode code, struct error *err)
{
    char text[128];
    switch (code) {
    case CURLE_OK:
        return judge_status(d, status_of(d), err);
    case CURLE_ABORTED_BY_CALLBACK:
        return d->is_idle ? judge_idle(d, err) : fail(err, ST_CANCELLED, "the process ends");
    case CURLE_FILESIZE_EXCEEDED:
    case CURLE_WRITE_ERROR:
        if (d->file_error) {
            part_unwritten(d, d->file_error, err);
            return FAILED;
        }
        unlink(d->part);
        snprintf(text, sizeof(text), "expected at most %llu bytes (--fetch-bytes-max), got more",
                 (unsigned long long)d->fetch->bytes_max);
        return fail(err, ST_TOO_LARGE, text);
    case CURLE_OPERATION_TIMEDOUT:
        error_set(err, ST_TIMEOUT, "no connection within %ld s", CONNECT_S);
        return FAILED;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
        error_set(err, ST_UNAVAILABLE, "%s", d->curl->easy_strerror(code));
        return TRY_AGAIN;
    case CURLE_BAD_FUNCTION_ARGUMENT:
        return fail(err, ST_UNAVAILABLE,
                    d->target.has_dots ? "this libcurl cannot sign a key with the part . or .."
                                       : d->curl->easy_strerror(code));
    default:
        return fail(err, ST_UNAVAILABLE, d->curl->easy_strerror(code));
    }
}

static enum outcome request(struct download *d, struct error *err)
{
    struct stat st;
    struct tags part;
    read_tags(d->part, &part);
    d->fd = open(d->part, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (d->fd < 0 || fstat(d->fd, &st) < 0) {
        file_failed(err, d->part, errno);
        return FAILED;
    }
    d->bytes = d->begin = (uint64_t)st.st_size;
    d->is_begun = false;
    d->file_error = 0;
    enum outcome outcome = judge(d, perform(d, &part), err);
    if (outcome == DONE && fsync(d->fd) < 0) {
        part_unwritten(d, errno, err);
        outcome = FAILED;
    }
    close(d->fd);
    return outcome;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* False: the process ends. */
static bool pause_ms(int ms)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (; ms > 0 && !atomic_load(&is_cancelled); ms -= STEP_MS) {
        nanosleep(&step, NULL);
    }
    return !atomic_load(&is_cancelled);
}

/* A page that explains why there is no file often comes with status 200. */
static enum status check_form(const struct download *d, struct error *err)
{
    char head[PROGRAM_HEAD_BYTES] = "";
    if (strcmp(d->target.extension, ".pte") != 0) {
        return ST_OK;
    }
    int fd = open(d->part, O_RDONLY | O_CLOEXEC);
    bool is_read = fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head);
    close(fd);
    return is_read && memcmp(head + 4, "ET", 2) == 0
               ? ST_OK
               : error_set(err, ST_CORRUPT, "expected an ExecuTorch program, got another file");
}

/* The file is complete: it takes its place, if it is right. */
static enum status adopt(struct download *d, struct error *err)
{
    char tag[PATH_MAX];
    enum status status = check_hash(&d->target, d->part, err);
    status = status == ST_OK ? check_form(d, err) : status;
    if (status != ST_OK) {
        unlink(d->part);
        return status;
    }
    if (rename(d->part, d->path) < 0) {
        return file_failed(err, d->path, errno);
    }
    write_tags(d->path, &d->fresh);
    beside(d->part, ".tag", tag);
    unlink(tag);
    atomic_fetch_add(&fetched_count, 1);
    return ST_OK;
}

static void tell_retry(const struct download *d, const struct error *why)
{
    char line[sizeof(d->shown) + sizeof(why->text) + 32];
    if (d->fetch->on_retry) {
        snprintf(line, sizeof(line), "%s: %s; it is tried again", d->shown, why->text);
        d->fetch->on_retry(d->fetch->arg, line);
    }
}

static enum status download(struct download *d, struct error *err)
{
    enum outcome outcome = TRY_AGAIN;
    for (int try = 0; try < TRIES && outcome == TRY_AGAIN; try++) {
        if (try > 0) {
            tell_retry(d, err);
        }
        if (try > 0 && !pause_ms(FIRST_PAUSE_MS << try)) {
            return error_set(err, ST_CANCELLED, "the process ends");
        }
        outcome = request(d, err);
    }
    if (outcome == UNCHANGED) {
        unlink(d->part); /* empty: nothing has come */
        atomic_fetch_add(&unchanged_count, 1);
        return ST_OK;
    }
    return outcome == DONE ? adopt(d, err) : err->code;
}

/* Another process may be downloading the same file; then it is there afterwards. */
static enum status lock(struct download *d, int *out_fd, struct error *err)
{
    char name[PATH_MAX];
    beside(d->path, ".lock", name);
    *out_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (*out_fd < 0) {
        return file_failed(err, name, errno);
    }
    while (flock(*out_fd, LOCK_EX | LOCK_NB) < 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || !pause_ms(STEP_MS)) {
            int number = errno;
            close(*out_fd);
            return error_set(err, ST_CANCELLED, "cache file %.160s: %s", name, strerror(number));
        }
    }
    return ST_OK;
}

static enum status run(struct download *d, struct error *err)
{
    int lock_fd;
    TRY(make_folders(d->path, err));
    TRY(curl_load(err, &d->curl));
    TRY(lock(d, &lock_fd, err));
    struct error ignored;
    if (d->target.has_hash && exists(d->path)) {
        if (check_hash(&d->target, d->path, &ignored) == ST_OK) {
            close(lock_fd);
            atomic_fetch_add(&unchanged_count, 1);
            return ST_OK;
        }
        unlink(d->path); /* damaged: nobody may use it */
    } else if (exists(d->path)) {
        read_tags(d->path, &d->old);
    }
    d->easy = d->curl->easy_init();
    enum status status = d->easy ? download(d, err) : error_no_memory(err, "a download");
    if (d->easy) {
        d->curl->easy_cleanup(d->easy);
    }
    d->curl->slist_free_all(d->headers);
    close(lock_fd);
    return status;
}

enum status fetch_file(const struct fetch *fetch, const char *url, struct error *err)
{
    struct download *d = calloc(1, sizeof(*d));
    if (!d) {
        return error_no_memory(err, "a download");
    }
    d->fetch = fetch;
    fetch_show(url, d->shown);
    enum status status = fetch_url_parse(fetch, url, &d->target, err);
    if (status == ST_OK) {
        status = place(fetch, url, &d->target, d->path, sizeof(d->path) - sizeof(".part.tag"), err);
        bool is_local = d->target.is_local;
        if (status == ST_OK) {
            beside(d->path, ".part", d->part);
            status = is_local ? check_hash(&d->target, d->path, err) : run(d, err);
        }
        if (status != ST_OK) {
            atomic_fetch_add(&failed_count, 1);
            error_prefix(err, "%s: ", d->shown);
        }
    }
    free(d);
    return status;
}
