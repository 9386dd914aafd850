/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/trim.h"

#include <malloc.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/process/offload.h"

/*
 * Blocks of so many bytes are mappings of their own, which go back when they are freed. Without
 * this, glibc takes each large block that is freed for a sign to keep all that are as large.
 */
#define MAPPED_BYTES_MIN (512 << 10)

/* Free memory at the end of a heap that stays there while requests come: with glibc's 128 KB, each
 * picture that is decoded gave its memory back and got zeroed pages again. */
#define KEPT_BYTES_MAX (4 << 20)
#define IDLE_MS 2000
#define LOOK_MS 1000
/* After the last use. Each is a round of the device, which gives memory back in the second one. */
#define LOOKS (IDLE_MS / LOOK_MS + 2)
/* A slice takes the loop some tenths of a ms. */
#define SLICE_BYTES ((size_t)4 << 20)
#define SLICE_MS 10

/* A thread of libuv: it looks through the whole heap. */
static void trim_heap(uv_work_t *work)
{
    (void)work;
#ifdef HAVE_MALLOC_TRIM
    malloc_trim(0);
#endif
}

static void on_heap_trimmed(uv_work_t *work, int uv_status)
{
    struct trim *trim;
    OBJ_CAST(trim, work->data, TRIM_MAGIC);
    must(uv_status == 0 && trim->is_working);
    offload_end(trim->loop->offload, OFFLOAD_LONG);
    trim->is_working = false;
}

/* Gives a slice back. True: there is more. */
static bool trim_slice(const struct serving *serving, uint64_t now_ms)
{
    struct hal_pool *pool = serving->transfers;
    return (pool && hal_pool_trim(pool, now_ms, IDLE_MS, SLICE_BYTES)) ||
           (serving->device && hal_device_trim(serving->device, SLICE_BYTES)); /* it may be lost */
}

static void on_timer(uv_timer_t *timer)
{
    struct trim *trim;
    OBJ_CAST(trim, timer->data, TRIM_MAGIC);
    turn_watch_enter(&trim->loop->watch, TURN_TRIM);
    if (trim_slice(trim->servings->current, uv_now(&trim->loop->uv))) {
        uv_timer_start(timer, on_timer, SLICE_MS, 0);
    } else if (trim->looks < LOOKS || trim->is_working) {
        trim->looks++;
        uv_timer_start(timer, on_timer, LOOK_MS, 0);
    } else {
        offload_begin(trim->loop->offload, OFFLOAD_LONG, &trim->work, trim_heap, on_heap_trimmed);
        trim->is_working = true;
    }
}

void trim_init(struct trim *trim, struct loop *loop, const struct servings *servings)
{
#if defined(HAVE_MALLOPT) && defined(M_MMAP_THRESHOLD)
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
#endif
#if defined(HAVE_MALLOPT) && defined(M_TRIM_THRESHOLD)
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
#endif
    *trim = (struct trim){.magic = TRIM_MAGIC, .loop = loop, .servings = servings};
    uv_timer_init(&trim->loop->uv, &trim->timer);
    trim->timer.data = trim->work.data = trim;
}

void trim_note_use(struct trim *trim)
{
    OBJ_CHECK(trim, TRIM_MAGIC);
    trim->looks = 0;
    if (!uv_is_active((const uv_handle_t *)&trim->timer) && !trim->loop->is_closing) {
        uv_timer_start(&trim->timer, on_timer, LOOK_MS, 0);
    }
}
