/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/transfer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "protocol/number.h"
#include "server/process/document.h"
#include "server/process/line.h"

#define SHOWN_MAX 280 /* bytes of a server's text in an error */
#define DOCUMENT_VALUES_MAX 4096
#define RECEIVE_BYTES (128 << 10)

/* ---- what libcurl calls ---------------------------------------------------------------------- */

static size_t on_read(char *room, size_t size, size_t count, void *data)
{
    struct transfer *t = data;
    size_t max = size * count, len = 0;
    while (len < max && t->piece < t->request->body_count) {
        const struct span *piece = &t->request->body[t->piece];
        size_t left = piece->len - t->offset, part = left < max - len ? left : max - len;
        if (part > 0) {
            memcpy(room + len, piece->ptr + t->offset, part);
        }
        len += part;
        t->offset += part;
        if (t->offset == piece->len) {
            t->piece++;
            t->offset = 0;
        }
    }
    return len;
}

/* libcurl sends the body again from its beginning if an old connection turns out to be dead. */
static int on_seek(void *data, curl_off_t offset, int origin)
{
    struct transfer *t = data;
    t->piece = 0;
    t->offset = 0;
    return offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

/* The field |name|, with its colon, if |line| has it. If two fields have one name, the last counts;
 * a longer value becomes a value that nobody takes. */
static void take_field(struct span line, const char *name, char out[TRANSFER_FIELD_MAX])
{
    size_t at = strlen(name);
    if (line.len <= at || strncasecmp((const char *)line.ptr, name, at) != 0) {
        return;
    }
    while (at < line.len && (line.ptr[at] == ' ' || line.ptr[at] == '\t')) {
        at++;
    }
    while (line.len > at && strchr(" \t\r\n", line.ptr[line.len - 1])) {
        line.len--;
    }
    size_t len = line.len - at < TRANSFER_FIELD_MAX ? line.len - at : TRANSFER_FIELD_MAX - 1;
    memcpy(out, line.ptr + at, len);
    out[len] = '\0';
}

static void begin_head(struct transfer *t)
{
    t->content_type[0] = t->location[0] = t->json_bytes[0] = '\0';
    t->is_head_over = false;
}

/* Interim answers have heads too, and a chunked body may have fields behind it: of these none
 * counts. */
static size_t on_header(char *bytes, size_t size, size_t count, void *data)
{
    struct transfer *t = data;
    struct span line = span_of(bytes, size * count);
    t->head_bytes += line.len;
    if (t->head_bytes > TRANSFER_HEAD_BYTES_MAX) {
        return 0;
    }
    if (line.len > 5 && memcmp(line.ptr, "HTTP/", 5) == 0) {
        begin_head(t);
    } else if (span_is(line, "\r\n") || span_is(line, "\n")) {
        t->is_head_over = true;
    } else if (!t->is_head_over) {
        take_field(line, "content-type:", t->content_type);
        take_field(line, "location:", t->location);
        take_field(line, "inference-header-content-length:", t->json_bytes);
    }
    return line.len;
}

/* Less than all of it ends the transfer. */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *data)
{
    struct transfer *t = data;
    buf_add(&t->body, bytes, size * count);
    return buf_failed(&t->body) ? 0 : size * count;
}

/* ---- a request ------------------------------------------------------------------------------- */

enum status transfer_init(struct transfer *transfer, const struct client *client, struct error *err)
{
    *transfer = (struct transfer){.client = client};
    TRY(client_handle_new(client, &transfer->easy, err));
    buf_init(&transfer->body, TRANSFER_TEXT_BYTES_MAX);
    return ST_OK;
}

void transfer_fini(struct transfer *transfer)
{
    if (transfer->easy) {
        transfer->client->curl->easy_cleanup(transfer->easy);
        transfer->client->curl->slist_free_all(transfer->headers);
        buf_fini(&transfer->body);
    }
    transfer->easy = NULL;
}

static enum status add_header(struct transfer *t, const char *text, struct error *err)
{
    struct curl_slist *list = t->client->curl->slist_append(t->headers, text);
    t->headers = list ? list : t->headers;
    return list ? ST_OK : error_no_memory(err, "a request");
}

/* Without Expect a large body goes at once; the type is not the type of a form. */
static enum status set_headers(struct transfer *t, struct error *err)
{
    const struct transfer_request *request = t->request;
    t->client->curl->slist_free_all(t->headers);
    t->headers = NULL;
    TRY(add_header(t, "Expect:", err));
    const char *type = request->content_type ? request->content_type : "application/json";
    char text[TRANSFER_FIELD_MAX];
    snprintf(text, sizeof(text), "Content-Type:%s%s", request->body_count ? " " : "",
             request->body_count ? type : "");
    TRY(add_header(t, text, err));
    for (size_t i = 0; i < TRANSFER_HEADERS_MAX && request->headers[i]; i++) {
        TRY(add_header(t, request->headers[i], err));
    }
    return ST_OK;
}

static CURLcode set_url(const struct transfer *t)
{
    struct buf url;
    buf_init(&url, (16 << 10));
    buf_add_str(&url, t->client->target.base);
    buf_add_str(&url, t->request->path);
    buf_add(&url, "", 1);
    CURLcode code = buf_failed(&url) ? CURLE_OUT_OF_MEMORY
                                     : t->client->curl->easy_setopt(t->easy, CURLOPT_URL, url.ptr);
    buf_fini(&url);
    return code;
}

/* A body in one piece is not copied; one in several is read piece by piece. */
static void set_body(struct transfer *t)
{
    const struct curl *curl = t->client->curl;
    const struct transfer_request *request = t->request;
    if (!request->is_post) {
        return;
    }
    curl->easy_setopt(t->easy, CURLOPT_POST, 1L);
    curl->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_bytes);
    if (request->body_count <= 1) {
        const void *bytes = t->body_bytes ? (const void *)request->body[0].ptr : "";
        curl->easy_setopt(t->easy, CURLOPT_POSTFIELDS, bytes);
        return;
    }
    curl->easy_setopt(t->easy, CURLOPT_READFUNCTION, on_read);
    curl->easy_setopt(t->easy, CURLOPT_READDATA, t);
    curl->easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, on_seek);
    curl->easy_setopt(t->easy, CURLOPT_SEEKDATA, t);
}

static void set_callbacks(struct transfer *t)
{
    const struct curl *curl = t->client->curl;
    curl->easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    curl->easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->problem);
    curl->easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl->easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl->easy_setopt(t->easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    curl->easy_setopt(t->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->request->answer_bytes_max);
}

enum status transfer_prepare(struct transfer *transfer, const struct transfer_request *request,
                             struct error *err)
{
    struct transfer *t = transfer;
    t->request = request;
    t->body_bytes = 0;
    for (uint32_t i = 0; i < request->body_count; i++) {
        if (!add_size(t->body_bytes, request->body[i].len, &t->body_bytes)) {
            return error_set(err, ST_TOO_LARGE, "the request is too large");
        }
    }
    t->client->curl->easy_reset(t->easy);
    TRY(client_set_up(t->client, t->easy, err));
    TRY(set_headers(t, err));
    if (set_url(t) != CURLE_OK ||
        t->client->curl->easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK) {
        return error_no_memory(err, "a request");
    }
    set_callbacks(t);
    set_body(t);
    t->body.max_bytes = request->answer_bytes_max;
    transfer_rewind(t);
    return ST_OK;
}

void transfer_rewind(struct transfer *transfer)
{
    transfer->piece = 0;
    transfer->offset = 0;
    transfer->status = 0;
    transfer->head_bytes = 0;
    transfer->problem[0] = '\0';
    begin_head(transfer);
    buf_reset(&transfer->body);
}

/* ---- how it ended ---------------------------------------------------------------------------- */

enum status transfer_blame_event(enum status status, struct error *err)
{
    if (status != ST_INVALID && status != ST_TOO_LARGE) {
        return status;
    }
    (void)error_prefix(err, "the server sent no event: ");
    return err->code = ST_CORRUPT;
}

void transfer_show(struct span text, size_t max, struct buf *out)
{
    struct line line = {.len = 0};
    size_t room = sizeof(line.text) / LINE_ESCAPED;
    line_add_text(&line, text, max < room ? max : room);
    buf_add(out, line.text, line.len);
}

/* |text| behind |what|, for an error. */
static enum status fail_with(struct error *err, enum status code, const char *what,
                             struct span text)
{
    struct buf shown;
    buf_init(&shown, ERROR_TEXT_MAX * LINE_ESCAPED);
    transfer_show(text, SHOWN_MAX, &shown);
    error_set(err, code, "%s%.*s", what, SPAN_FMT(buf_span(&shown)));
    buf_fini(&shown);
    return code;
}

static enum status refuse_size(const struct transfer *t, struct error *err)
{
    if (t->body.lacks_memory) {
        return error_no_memory(err, "the answer");
    }
    if (t->head_bytes > TRANSFER_HEAD_BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "the head of the answer has more than %zu bytes",
                         TRANSFER_HEAD_BYTES_MAX);
    }
    return error_set(err, ST_TOO_LARGE, "the answer has more than %zu bytes",
                     t->request->answer_bytes_max);
}

static enum status say_timeout(const struct transfer *t, struct error *err)
{
    curl_off_t connected_us = 0;
    uint64_t ms = t->client->options.timeout_ms;
    t->client->curl->easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    bool is_connected = connected_us > 0;
    return error_set(err, ST_TIMEOUT, "%s within %llu ms%s",
                     is_connected ? "no whole answer" : "no connection",
                     (unsigned long long)(is_connected ? ms : client_connect_ms(t->client)),
                     is_connected ? " (--timeout)" : "");
}

/* The system's reason is better than "Couldn't connect to server". */
static enum status say_connect(const struct transfer *t, const char *words, struct error *err)
{
    long number = 0;
    t->client->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number);
    return number > 0 ? error_set(err, ST_UNAVAILABLE, "cannot connect: %s", strerror((int)number))
                      : fail_with(err, ST_UNAVAILABLE, "cannot connect: ", span_str(words));
}

static enum status explain(const struct transfer *t, CURLcode code, struct error *err)
{
    const char *words = t->problem[0] ? t->problem : t->client->curl->easy_strerror(code);
    switch (code) {
    case CURLE_OUT_OF_MEMORY: /* it says so too of a field with more than 100 KB */
        return t->head_bytes > 0 && !t->is_head_over
                   ? error_set(err, ST_TOO_LARGE, "the head of the answer is too large")
                   : error_no_memory(err, "a request");
    case CURLE_OPERATION_TIMEDOUT:
        return say_timeout(t, err);
    case CURLE_WRITE_ERROR:
    case CURLE_FILESIZE_EXCEEDED:
        return refuse_size(t, err);
    case CURLE_COULDNT_CONNECT:
        return say_connect(t, words, err);
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
        return fail_with(err, ST_UNAVAILABLE,
                         "the connection ended before the answer: ", span_str(words));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return fail_with(err, ST_CORRUPT, "expected an answer in HTTP: ", span_str(words));
    default:
        return fail_with(err, ST_UNAVAILABLE, "", span_str(words));
    }
}

enum status transfer_end(struct transfer *transfer, CURLcode code, struct error *err)
{
    struct transfer *t = transfer;
    if (code != CURLE_OK) {
        explain(t, code, err);
        return error_prefix(err, "%.160s: ", t->client->target.text);
    }
    t->client->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
    return ST_OK;
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* From a status of HTTP that is no success to a status, which decides the exit status of a command.
 */
static enum status status_of(long http_status)
{
    switch (http_status) {
    case 401:
    case 403:
    case 502:
    case 503:
        return ST_UNAVAILABLE;
    case 404:
    case 410:
        return ST_NOT_FOUND;
    case 408:
    case 504:
        return ST_TIMEOUT;
    case 400: /* the user's values are bad, not the usage */
        return ST_CORRUPT;
    case 413:
        return ST_TOO_LARGE;
    case 429:
        return ST_EXHAUSTED;
    case 501:
        return ST_UNSUPPORTED;
    default:
        return http_status >= 500 ? ST_INTERNAL : http_status >= 400 ? ST_INVALID : ST_UNSUPPORTED;
    }
}

/* The text of a refusal, where servers put it: in "error", "detail" or "message", a string or an
 * object with such a member. NULL: none. Goes as deep as a document may be nested. */
static const struct cJSON *find_text(const struct cJSON *value)
{
    static const char *const keys[] = {"error", "detail", "message"};
    if (document_type(value) == JSON_STRING) {
        return value;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct cJSON *member = document_find(value, keys[i]);
        const struct cJSON *text = member ? find_text(member) : NULL;
        if (text) {
            return text;
        }
    }
    return NULL;
}

static enum status refuse(long http_status, struct span text, struct error *err)
{
    char what[32];
    snprintf(what, sizeof(what), "HTTP %ld%s", http_status, text.len ? ": " : "");
    enum status status = fail_with(err, status_of(http_status), what, text);
    if (http_status == 401) {
        struct error why = *err;
        return error_set(err, status, "%.300s; the token comes from --token-file or PTED_TOKEN",
                         why.text);
    }
    return status;
}

/* The server's text; if it sent something else, its first bytes. */
static enum status refuse_body(const struct transfer *t, struct error *err)
{
    const struct document_limits limits = {TRANSFER_HEAD_BYTES_MAX, DOCUMENT_VALUES_MAX};
    struct span body = buf_span(&t->body);
    struct document document;
    struct error ignored;
    const char *text = NULL;
    if (body.len == 0 || document_parse(body, &limits, &document, &ignored) != ST_OK) {
        return refuse(t->status, body, err);
    }
    const struct cJSON *value = find_text(document.root);
    if (!value || document_text(&document, value, &text, &ignored) != ST_OK) {
        text = NULL;
    }
    enum status status = refuse(t->status, text ? span_str(text) : body, err);
    document_close(&document);
    return status;
}

enum status transfer_check(const struct transfer *transfer, struct error *err)
{
    const struct transfer *t = transfer;
    if (t->status >= 200 && t->status < 300) {
        return ST_OK;
    }
    if (t->status >= 300 && t->status < 400 && t->location[0]) {
        refuse(t->status, span_str(t->location), err);
        char text[ERROR_TEXT_MAX];
        snprintf(text, sizeof(text), "%s", err->text);
        error_set(err, err->code, "%.240s (redirects are not followed)", text);
    } else {
        refuse_body(t, err);
    }
    return error_prefix(err, "%.160s: ", t->client->target.text);
}

enum status transfer_run(struct transfer *transfer, const struct transfer_request *request,
                         struct error *err)
{
    TRY(transfer_prepare(transfer, request, err));
    TRY(transfer_end(transfer, transfer->client->curl->easy_perform(transfer->easy), err));
    return transfer_check(transfer, err);
}

static enum status split(const struct transfer *t, struct span *out_json, struct span *out_rest,
                         struct error *err)
{
    struct span body = buf_span(&t->body), text = span_str(t->json_bytes);
    uint64_t bytes = body.len;
    if (text.len > 0) {
        const uint8_t *at = text.ptr, *end = text.ptr + text.len;
        if (number_parse_u64(&at, end, &bytes) != NUMBER_OK || at != end || bytes > body.len) {
            char what[96];
            snprintf(what, sizeof(what),
                     "Inference-Header-Content-Length: expected at most %zu, got ", body.len);
            return fail_with(err, ST_CORRUPT, what, text);
        }
    }
    *out_json = span_of(body.ptr, (size_t)bytes);
    *out_rest =
        bytes < body.len ? span_of(body.ptr + bytes, body.len - (size_t)bytes) : span_of(NULL, 0);
    return ST_OK;
}

enum status transfer_split(const struct transfer *transfer, struct span *out_json,
                           struct span *out_rest, struct error *err)
{
    return split(transfer, out_json, out_rest, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "%.160s: ", transfer->client->target.text);
}

enum status transfer_blame(const struct transfer *transfer, const char *path, struct error *err)
{
    bool is_ours = err->code != ST_INVALID && err->code != ST_NOT_FOUND;
    struct error why = *err;
    fail_with(err, is_ours ? why.code : ST_CORRUPT, "", span_str(why.text));
    error_prefix(err, "%.100s: ", path);
    return error_prefix(err, "%.100s", transfer->client->target.text);
}
