/* SPDX-License-Identifier: MIT */
/* zlib, one call at a time: each call reads input and appends at most a window of output to a
 * buffer with a maximum. A decompression bomb therefore costs no more than the largest body. */
#include "config.h"

#include "server/http/coding.h"

#include <limits.h>

#include <zlib.h>

#include "base/check.h"
#include "base/table.h"

#define WINDOW_BYTES (32 << 10)
#define WINDOW_BITS 15
#define GZIP_BITS 16 /* added to the window bits, makes zlib read and write the gzip format */
#define DEFLATE_LEVEL 1

static const char *const names[] = {
    [CODING_IDENTITY] = "identity",
    [CODING_GZIP] = "gzip",
    [CODING_DEFLATE] = "deflate",
};
TABLE_ENDS_WITH(names, CODING_DEFLATE);

const char *coding_name(enum coding coding)
{
    return names[coding];
}

bool coding_find(struct span name, enum coding *out_coding)
{
    if (name.len == 0) {
        *out_coding = CODING_IDENTITY;
        return true;
    }
    if (span_is_word(name, "x-gzip")) { /* the same, RFC 9110 8.4.1.3 */
        *out_coding = CODING_GZIP;
        return true;
    }
    for (int i = CODING_IDENTITY; i <= CODING_DEFLATE; i++) {
        if (span_is_word(name, names[i])) {
            *out_coding = (enum coding)i;
            return true;
        }
    }
    return false;
}

/* ---- Accept-Encoding ------------------------------------------------------------------------- */

/* Takes the text before |separator| from |*rest|. */
static struct span cut(struct span *rest, char separator)
{
    const uint8_t *at = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct span part = at ? span_of(rest->ptr, (size_t)(at - rest->ptr)) : *rest;
    size_t used = part.len + (at ? 1 : 0);
    *rest = span_of(rest->ptr + used, rest->len - used);
    return span_trim(part, " \t");
}

/* "q=0.5" in thousandths; 1000 without it, 0 when it is malformed. */
static int parse_quality(struct span text)
{
    if (text.len == 0) {
        return 1000;
    }
    if (text.len < 3 || (text.ptr[0] | 0x20) != 'q' || text.ptr[1] != '=') {
        return 0;
    }
    int quality = 0, factor = 1000;
    for (size_t i = 2; i < text.len && factor > 0; i++) {
        uint8_t c = text.ptr[i];
        if (c == '.' && i == 3) {
            continue;
        }
        if (c < '0' || c > '9') {
            return 0;
        }
        quality += (c - '0') * factor;
        factor /= 10;
    }
    return quality > 1000 ? 0 : quality;
}

enum coding coding_accept(struct span value)
{
    enum coding best = CODING_IDENTITY;
    int best_quality = 0;
    while (value.len) {
        struct span item = cut(&value, ',');
        struct span name = cut(&item, ';');
        int quality = parse_quality(span_trim(item, " \t"));
        enum coding coding;
        if (name.len && coding_find(name, &coding) && quality > best_quality) {
            best = coding;
            best_quality = quality;
        }
    }
    return best;
}

/* ---- zlib ------------------------------------------------------------------------------------ */

static int window_bits(enum coding coding)
{
    must(coding != CODING_IDENTITY);
    return WINDOW_BITS + (coding == CODING_GZIP ? GZIP_BITS : 0);
}

/* zlib counts in unsigned int, so |in| is handed over in pieces. */
static void feed(z_stream *stream, struct span *in)
{
    size_t len = in->len < INT_MAX ? in->len : INT_MAX;
    stream->next_in = (Bytef *)(uintptr_t)in->ptr;
    stream->avail_in = (uInt)len;
    *in = span_of(in->ptr + len, in->len - len);
}

/* zlib says what is wrong with bytes, and nothing if there are not enough of them, or if they were
 * made with a dictionary, which nobody has agreed on. */
static enum status refuse_data(const z_stream *stream, int rc, enum coding coding,
                               struct error *err)
{
    if (rc == Z_NEED_DICT) {
        return error_set(err, ST_INVALID,
                         "Content-Encoding: expected %s data without a dictionary, got one",
                         names[coding]);
    }
    if (!stream->msg) {
        return error_set(err, ST_INVALID,
                         "Content-Encoding: the body ends in the middle of its %s data",
                         names[coding]);
    }
    return error_set(err, ST_INVALID, "Content-Encoding: expected %s data, got others (%s)",
                     names[coding], stream->msg);
}

/* |stream| followed by |in| begins a zlib stream, or a gzip member (RFC 1952 2.2). */
static enum status inflate_member(z_stream *stream, enum coding coding, struct span *in,
                                  struct body *out, struct error *err)
{
    uint8_t window[WINDOW_BYTES];
    int rc = Z_OK;
    while (rc != Z_STREAM_END) {
        if (stream->avail_in == 0 && in->len) {
            feed(stream, in);
        }
        stream->next_out = window;
        stream->avail_out = sizeof(window);
        rc = inflate(stream, Z_NO_FLUSH);
        if (rc == Z_MEM_ERROR) {
            return error_no_memory(err, "the content coding");
        }
        if (rc != Z_OK && rc != Z_STREAM_END) {
            return refuse_data(stream, rc, coding, err);
        }
        TRY(body_add(out, span_of(window, sizeof(window) - stream->avail_out), err));
    }
    return ST_OK;
}

static enum status inflate_all(z_stream *stream, enum coding coding, struct span in,
                               struct body *out, struct error *err)
{
    TRY(inflate_member(stream, coding, &in, out, err));
    while (coding == CODING_GZIP && (stream->avail_in || in.len)) {
        inflateReset(stream);
        TRY(inflate_member(stream, coding, &in, out, err));
    }
    if (stream->avail_in || in.len) {
        return error_set(err, ST_INVALID,
                         "Content-Encoding: %zu bytes behind the end of the %s data",
                         stream->avail_in + in.len, names[coding]);
    }
    return ST_OK;
}

enum status coding_inflate(enum coding coding, struct span in, struct body *out, struct error *err)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, window_bits(coding)) != Z_OK) {
        return error_no_memory(err, "the content coding");
    }
    enum status status = inflate_all(&stream, coding, in, out, err);
    inflateEnd(&stream);
    return status;
}

/* Processes all of |in|, and ends the stream if |flush| is Z_FINISH. */
static bool deflate_span(z_stream *stream, struct span in, int flush, struct buf *out)
{
    do {
        if (stream->avail_in == 0) {
            feed(stream, &in);
        }
        uint8_t *room = buf_reserve(out, WINDOW_BYTES);
        if (!room) {
            return false;
        }
        stream->next_out = room;
        stream->avail_out = WINDOW_BYTES;
        int rc = deflate(stream, in.len ? Z_NO_FLUSH : flush);
        must(rc != Z_STREAM_ERROR);
        buf_commit(out, WINDOW_BYTES - stream->avail_out);
    } while (stream->avail_in || in.len || stream->avail_out == 0);
    return true;
}

enum status coding_deflate(enum coding coding, const struct span *spans, size_t count,
                           struct buf *out, struct error *err)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, DEFLATE_LEVEL, Z_DEFLATED, window_bits(coding), 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return error_set(err, ST_EXHAUSTED, "answer: out of memory to compress it");
    }
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < count; i++) {
        is_ok = deflate_span(&stream, spans[i], Z_NO_FLUSH, out);
    }
    is_ok = is_ok && deflate_span(&stream, span_of(NULL, 0), Z_FINISH, out);
    deflateEnd(&stream);
    return is_ok ? ST_OK
                 : error_set(err, ST_TOO_LARGE, "answer: larger than %zu bytes", out->max_bytes);
}
