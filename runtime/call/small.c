/* SPDX-License-Identifier: MIT */
/*
 * Small tensors of a call lie in one buffer that its invocation keeps from one call to the next,
 * one behind the other. So a call of a small method takes nothing of a pool and gives nothing back.
 * Who holds a reference to the buffer longer than the call keeps it: the next call gets another.
 *
 * A call that has no other tensors leaves them where they are. If the next one has inputs of the
 * same shapes, they and its results lie there again, and it has the same plan.
 */
#include "config.h"

#include "base/asan.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"

#define SMALL_BYTES 4096

/* Invocations keep only plans that are not worth counting: a method may have many of them. */
#define KEPT_PLAN_BYTES_MAX ((size_t)64 << 10)

/* Bytes between tensors that nobody may touch. */
#define GAP (HAS_ASAN ? 64 : 0)

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
    if (inv->small && !(keeps && hal_buffer_refs_are(inv->small, 1))) {
        asan_unpoison(hal_buffer_map(inv->small), SMALL_BYTES);
        hal_buffer_unref(inv->small);
        inv->small = NULL;
    }
}

/* ---- what the next call finds again ---------------------------------------------------------- */

/* Counts the call's tensors in its small memory; false: not all of them are there. */
static bool count_small(const struct rt_invocation *inv, unsigned *out_count)
{
    const struct rt_method *method = inv->method;
    *out_count = 0;
    for (uint32_t i = 0; i < method->input_count; i++) {
        if (method->inputs[i].kind == RT_IO_TENSOR) {
            if (inv->inputs[i].binding.buffer != inv->small || inv->inputs[i].source) {
                return false;
            }
            ++*out_count;
        }
    }
    for (uint32_t i = 0; i < method->result_count; i++) {
        if (method->results[i].kind == RT_IO_TENSOR) {
            if (inv->bound[i].buffer != inv->small) {
                return false;
            }
            ++*out_count;
        }
    }
    return true;
}

/* Is the call of a kind that the next one may be like? */
static bool is_plain(const struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    return inv->phase == RT_PHASE_DONE && inv->error.code == ST_OK && inv->plan &&
           inv->uses_small && inv->small && inv->orders == 0 &&
           inv->plan->bytes <= KEPT_PLAN_BYTES_MAX && method->callable->is_one_submission &&
           method->state_count == 0;
}

bool rt_invocation_keep(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    unsigned count;
    if (!is_plain(inv) || !count_small(inv, &count) ||
        !hal_buffer_refs_are(inv->small, 1 + count)) {
        return false;
    }
    for (uint32_t i = 0; i < inv->method->input_count; i++) {
        inv->inputs[i].is_given = false;
    }
    inv->kept_plan = inv->plan;
    inv->plan = NULL;
    asan_poison(hal_buffer_map(inv->small), SMALL_BYTES);
    return true;
}

static void unpoison(const struct hal_binding *binding)
{
    asan_unpoison((uint8_t *)hal_buffer_map(binding->buffer) + binding->offset, binding->length);
}

bool rt_invocation_recall_input(struct rt_invocation *inv, uint32_t index, enum dtype dtype,
                                const struct shape *shape)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(index < inv->method->input_count);
    struct rt_bound_input *input = &inv->inputs[index];
    bool is_same = inv->kept_plan && input->binding.buffer && !input->is_given &&
                   dtype == inv->method->inputs[index].dtype && shape_equal(shape, &input->shape);
    if (!is_same) {
        rt_invocation_forget(inv);
        return false;
    }
    unpoison(&input->binding);
    input->is_given = true;
    return true;
}

bool rt_invocation_recall_plan(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    if (!inv->kept_plan) {
        return false;
    }
    inv->plan = inv->kept_plan;
    inv->kept_plan = NULL;
    for (uint32_t i = 0; HAS_ASAN && i < inv->method->result_count; i++) {
        if (inv->bound[i].buffer) {
            unpoison(&inv->bound[i]);
        }
    }
    rt_block_note_found(inv->form);
    return true;
}

void rt_invocation_forget(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    bool has_input = false;
    if (!inv->kept_plan) {
        return;
    }
    rt_plan_unref(inv->kept_plan);
    inv->kept_plan = NULL;
    rt_invocation_drop_results(inv);
    for (uint32_t i = 0; i < inv->method->input_count; i++) {
        struct rt_bound_input *input = &inv->inputs[i];
        if (input->is_given) {
            has_input = true;
        } else {
            rt_invocation_release_input(inv, i);
            input->shape = (struct shape){.rank = 0};
        }
    }
    inv->small_used = has_input ? inv->small_used : 0;
}
