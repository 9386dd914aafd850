/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/infer/habit.h"

#include "protocol/oip_pattern.h"

/* A client whose requests all differ is believed to have a pattern so many times in a row, then
 * with one request of so many. */
#define TRIES_MAX 4
#define TRY_EACH 16

struct habit habit_take(struct habit *from)
{
    struct habit habit = *from;
    *from = (struct habit){0};
    return habit;
}

void habit_give(struct habit *to, struct habit *habit)
{
    habit_fini(to);
    *to = habit_take(habit);
    to->request_count++;
}

void habit_fini(struct habit *habit)
{
    oip_pattern_free(habit->pattern);
    *habit = (struct habit){0};
}

bool habit_recall(struct habit *habit, const struct oip_body *body, const struct oip_limits *limits,
                  struct oip_request *out)
{
    bool is_known = habit->pattern && oip_pattern_match(habit->pattern, body, limits, out);
    habit->miss_count = is_known ? 0 : habit->miss_count;
    return is_known;
}

void habit_learn(struct habit *habit, const struct oip_body *body,
                 const struct oip_request *request)
{
    if (habit->request_count == 0 ||
        (habit->miss_count++ >= TRIES_MAX && habit->miss_count % TRY_EACH != 0)) {
        return;
    }
    habit->pattern = oip_pattern_new(habit->pattern, body, request);
}
