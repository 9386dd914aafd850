/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/known.h"

#include <pthread.h>

#include "base/check.h"
#include "runtime/ops/op.h"

static const struct rt_op *rows[RT_KNOWN_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_rows(void)
{
    static const char *const names[RT_KNOWN_COUNT] = {
#define KNOWN(name) [RT_KNOWN_##name] = #name,
#include "runtime/ops/known.def"
#undef KNOWN
    };
    for (int id = RT_KNOWN_NONE + 1; id < RT_KNOWN_COUNT; id++) {
        rows[id] = rt_op_find(names[id]);
        must(rows[id]);
    }
}

const struct rt_op *rt_op_known(enum rt_known id)
{
    must(id > RT_KNOWN_NONE && id < RT_KNOWN_COUNT);
    int failure = pthread_once(&once, find_rows);
    must(failure == 0);
    return rows[id];
}

bool rt_op_is(const struct rt_op *op, enum rt_known id)
{
    return op == rt_op_known(id);
}
