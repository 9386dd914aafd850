/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/ask_support.h"

#include "tests/unit/unit.h"

#include <string.h>

struct arena arena;
struct error err;

int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 1 << 20);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

void check_refused(const char *what, enum status status, enum status expected, const char *why)
{
    if (status != expected || !strstr(err.text, why)) {
        fail_msg("%s: %d, %s, expected %s", what, (int)status, status ? err.text : "", why);
    }
}
