/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/stops.h"

#include <string.h>

#include "base/check.h"

void stops_init(struct stops *stops, const struct span *texts, uint32_t count, size_t bytes_max)
{
    *stops = (struct stops){.texts = texts, .count = count};
    buf_init(&stops->text, bytes_max);
    for (uint32_t i = 0; i < count; i++) {
        must(texts[i].len > 0);
    }
}

void stops_fini(struct stops *stops)
{
    buf_fini(&stops->text);
}

void stops_restart(struct stops *stops)
{
    buf_reset(&stops->text);
    stops->ready_bytes = 0;
    stops->is_stopped = false;
    stops->stopper = span_str("");
}

/* The string that stands at |at|, or NULL. With |or_part| also one that begins there and goes on
 * behind the end. */
static const struct span *find_at(const struct stops *stops, size_t at, bool or_part)
{
    size_t left = stops->text.len - at;
    for (uint32_t i = 0; i < stops->count; i++) {
        const struct span *stop = &stops->texts[i];
        size_t len = stop->len < left ? stop->len : left;
        if ((or_part || len == stop->len) && memcmp(stop->ptr, stops->text.ptr + at, len) == 0) {
            return stop;
        }
    }
    return NULL;
}

static size_t find(const struct stops *stops, bool or_part)
{
    size_t at = stops->ready_bytes;
    while (at < stops->text.len && !find_at(stops, at, or_part)) {
        at++;
    }
    return at;
}

void stops_look(struct stops *stops)
{
    must(!stops->is_stopped);
    size_t whole = find(stops, false);
    if (whole < stops->text.len) {
        stops->stopper = *find_at(stops, whole, false);
        stops->text.len = whole;
        stops->is_stopped = true;
    }
    stops->ready_bytes = stops->is_stopped ? whole : find(stops, true);
}

void stops_end(struct stops *stops)
{
    stops->ready_bytes = stops->text.len;
}
