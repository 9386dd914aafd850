/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/watched.h"

bool watched_is_stuck(struct watched *seen, struct watched now)
{
    bool is_stuck = seen->has_work && now.has_work && seen->mark == now.mark;
    *seen = now;
    return is_stuck;
}
