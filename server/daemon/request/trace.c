/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/trace.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char digits[] = "0123456789abcdef";

void trace_source_init(struct trace_source *source)
{
    struct timespec now;
    if (getrandom(&source->state, sizeof(source->state), GRND_NONBLOCK) !=
        (ssize_t)sizeof(source->state)) {
        clock_gettime(CLOCK_REALTIME, &now); /* early in the boot */
        source->state = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
    }
}

/* splitmix64 (Steele, Lea, Flood 2014): each state gives another number. */
static uint64_t next(struct trace_source *source)
{
    uint64_t z = source->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 16 characters per number; an id is never 0. */
static void make_id(struct trace_source *source, char *out, size_t chars)
{
    for (size_t i = 0; i < chars; i += TRACE_SPAN_CHARS) {
        uint64_t number = next(source);
        number = number ? number : 1;
        for (size_t k = 0; k < TRACE_SPAN_CHARS; k++) {
            out[i + k] = digits[number >> (60 - 4 * k) & 15];
        }
    }
}

/* Lower-case digits only. */
static int value_of(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(const uint8_t *text, size_t len, bool may_be_zero)
{
    bool is_zero = true;
    for (size_t i = 0; i < len; i++) {
        if (value_of(text[i]) < 0) {
            return false;
        }
        is_zero = is_zero && text[i] == '0';
    }
    return may_be_zero || !is_zero;
}

/* "00-" id "-" parent "-" flags; a later version may have more behind another hyphen. */
static bool is_valid(struct span field)
{
    const uint8_t *p = field.ptr;
    if (field.len < TRACE_PARENT_CHARS || !is_hex(p, 2, true) || memcmp(p, "ff", 2) == 0) {
        return false;
    }
    bool is_first = memcmp(p, "00", 2) == 0;
    if (field.len > TRACE_PARENT_CHARS && (is_first || p[TRACE_PARENT_CHARS] != '-')) {
        return false;
    }
    return p[2] == '-' && is_hex(p + 3, TRACE_ID_CHARS, false) && p[35] == '-' &&
           is_hex(p + 36, TRACE_SPAN_CHARS, false) && p[52] == '-' && is_hex(p + 53, 2, true);
}

void trace_begin(struct trace_source *source, struct span field, struct trace *out_trace)
{
    struct trace *trace = out_trace;
    trace->has_parent = is_valid(field);
    if (trace->has_parent) {
        memcpy(trace->id, field.ptr + 3, sizeof(trace->id));
        memcpy(trace->parent, field.ptr + 36, sizeof(trace->parent));
        trace->flags = (uint8_t)(value_of(field.ptr[53]) << 4 | value_of(field.ptr[54]));
    } else {
        make_id(source, trace->id, sizeof(trace->id));
        trace->flags = 0;
    }
    make_id(source, trace->span, sizeof(trace->span));
}

void trace_make_span(struct trace_source *source, char out[TRACE_SPAN_CHARS])
{
    make_id(source, out, TRACE_SPAN_CHARS);
}

void trace_print(const struct trace *trace, char out[TRACE_PARENT_CHARS])
{
    memcpy(out, "00-", 3);
    memcpy(out + 3, trace->id, sizeof(trace->id));
    out[35] = '-';
    memcpy(out + 36, trace->span, sizeof(trace->span));
    out[52] = '-';
    out[53] = digits[trace->flags >> 4];
    out[54] = digits[trace->flags & 15];
}
