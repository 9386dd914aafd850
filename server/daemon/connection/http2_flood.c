/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/http2_flood.h"

#include "base/check.h"

#define MS_PER_S 1000

struct row {
    const char *name;
    uint32_t burst, rate, earned;
};

static const struct row rows[HTTP2_FLOOD_COUNT] = {
#define FLOOD(ID, name, burst, rate, earned, ...) [HTTP2_FLOOD_##ID] = {#name, burst, rate, earned},
#include "server/daemon/connection/http2_flood.def"
#undef FLOOD
};

const char *http2_flood_name(enum http2_flood flood)
{
    must(flood < HTTP2_FLOOD_COUNT);
    return rows[flood].name;
}

void http2_flood_init(struct http2_floods *floods, uint64_t now_ms)
{
    *floods = (struct http2_floods){.filled_ms = now_ms};
    for (int i = 0; i < HTTP2_FLOOD_COUNT; i++) {
        floods->left[i] = rows[i].burst;
    }
}

static void add(struct http2_floods *floods, int flood, uint64_t count)
{
    uint32_t missing = rows[flood].burst - floods->left[flood];
    floods->left[flood] += count < missing ? (uint32_t)count : missing;
}

/* Whole seconds, so that nothing is lost between two looks. */
static void fill(struct http2_floods *floods, uint64_t now_ms)
{
    uint64_t seconds = (now_ms - floods->filled_ms) / MS_PER_S;
    if (seconds > 0) {
        floods->filled_ms += seconds * MS_PER_S;
        for (int i = 0; i < HTTP2_FLOOD_COUNT; i++) {
            add(floods, i, seconds * rows[i].rate);
        }
    }
}

bool http2_flood_take(struct http2_floods *floods, enum http2_flood flood, uint64_t now_ms)
{
    must(flood < HTTP2_FLOOD_COUNT);
    fill(floods, now_ms);
    if (floods->left[flood] == 0) {
        return false;
    }
    floods->left[flood]--;
    return true;
}

void http2_flood_refill(struct http2_floods *floods, enum http2_flood flood)
{
    must(flood < HTTP2_FLOOD_COUNT);
    floods->left[flood] = rows[flood].burst;
}

void http2_flood_earn(struct http2_floods *floods)
{
    for (int i = 0; i < HTTP2_FLOOD_COUNT; i++) {
        if (rows[i].earned) {
            add(floods, i, rows[i].earned);
        }
    }
}
