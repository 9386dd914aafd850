/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/keep.h"

/* A model stays so many times as long as its load took: a client that unloads it with each request
 * has a thread loading for a tenth of the time. */
#define STAY_LOADS 10

static uint64_t add(uint64_t ns, uint64_t more)
{
    uint64_t sum;
    return __builtin_add_overflow(ns, more, &sum) ? KEEP_FOR_EVER : sum;
}

static uint64_t stay_ns(const struct keep *keep)
{
    uint64_t ns;
    return __builtin_mul_overflow(keep->load_ns, STAY_LOADS, &ns) ? KEEP_FOR_EVER : ns;
}

void keep_begin(struct keep *keep, uint64_t now_ns, uint64_t load_ns)
{
    keep->begin_ns = now_ns;
    keep->load_ns = load_ns;
    keep->due_ns = add(now_ns, keep->idle_ns);
    keep->is_used = keep->is_asked = false;
}

/* How long a client may keep it. */
static uint64_t bound(const struct keep *keep, const struct keep_wish *wish)
{
    uint64_t max_ns = wish->ns_max > keep->idle_ns ? wish->ns_max : keep->idle_ns;
    return keep->idle_ns == KEEP_FOR_EVER || !wish->is_given ? keep->idle_ns
           : wish->ns < max_ns                               ? wish->ns
                                                             : max_ns;
}

void keep_use(struct keep *keep, const struct keep_wish *wish, uint64_t now_ns)
{
    bool is_order = wish->is_given && wish->is_order;
    uint64_t due_ns = add(now_ns, is_order ? wish->ns : bound(keep, wish));
    uint64_t least_ns = add(keep->begin_ns, stay_ns(keep));
    if (!is_order && wish->is_given && due_ns < least_ns) {
        due_ns = least_ns;
    }
    if (is_order || !keep->is_used || due_ns > keep->due_ns) {
        keep->due_ns = due_ns;
        keep->is_asked = wish->is_given;
    }
    keep->is_used = true;
}
