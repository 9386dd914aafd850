/* SPDX-License-Identifier: MIT */
/*
 * Small tensors of a call lie in one buffer that its invocation keeps from one call to the next,
 * one behind the other. So a call of a small method takes nothing of a pool and gives nothing back.
 * Who holds a reference to the buffer longer than the call keeps it: the next call gets another.
 */
#include "config.h"

#include "base/asan.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"

#define SMALL_BYTES 4096

/* Bytes between tensors that nobody may touch. */
#define GAP (HAS_ASAN ? 64 : 0)

void rt_invocation_use_small(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_FILLING);
    inv->uses_small = hal_device_props(inv->method->device)->is_host;
}

/* False: the bytes have to be those of a pool. */
static bool take_small(struct rt_invocation *inv, size_t bytes, struct hal_binding *out)
{
    struct error ignored;
    if (!inv->uses_small || bytes == 0 || bytes > SMALL_BYTES - inv->small_used) {
        return false;
    }
    if (!inv->small &&
        hal_buffer_new(inv->method->device, SMALL_BYTES, &inv->small, &ignored) != ST_OK) {
        return false;
    }
    uint8_t *base = hal_buffer_map(inv->small);
    if (inv->small_used == 0) {
        asan_poison(base, SMALL_BYTES);
    }
    *out = (struct hal_binding){
        .buffer = hal_buffer_ref(inv->small), .offset = inv->small_used, .length = bytes};
    asan_unpoison(base + inv->small_used, bytes);
    size_t align = hal_device_props(inv->method->device)->buffer_align;
    size_t end = align_up(inv->small_used + bytes + GAP, align);
    inv->small_used = end < SMALL_BYTES ? end : SMALL_BYTES;
    return true;
}

enum status rt_invocation_take(struct rt_invocation *inv, struct hal_pool *pool, size_t bytes,
                               struct hal_binding *out, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    if (take_small(inv, bytes, out)) {
        return ST_OK;
    }
    *out = (struct hal_binding){.length = bytes};
    TRY(hal_pool_reserve(pool, bytes, &out->buffer, err));
    inv->bytes += bytes;
    return ST_OK;
}

void rt_invocation_drop_small(struct rt_invocation *inv, bool keeps)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    inv->uses_small = false;
    inv->small_used = 0;
    if (inv->small && !(keeps && hal_buffer_is_only(inv->small))) {
        asan_unpoison(hal_buffer_map(inv->small), SMALL_BYTES);
        hal_buffer_unref(inv->small);
        inv->small = NULL;
    }
}
