/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/names.h"

#include <stdio.h>
#include <string.h>

#define REST_BYTES 20 /* room behind a name for " and 1023 more" */

static size_t add(char text[NAMES_TEXT_MAX], size_t len, const char *before, const char *name)
{
    return len + (size_t)snprintf(text + len, NAMES_TEXT_MAX - len, "%s%s", before, name);
}

const char *names_print(names_at_f *at, const void *of, uint32_t count, char text[NAMES_TEXT_MAX])
{
    uint32_t all = 0, shown = 0;
    for (uint32_t i = 0; i < count; i++) {
        all += at(of, i) != NULL;
    }
    size_t len = add(text, 0, all > 1 ? "one of " : all ? "" : "none", "");
    for (uint32_t i = 0; i < count; i++) {
        const char *name = at(of, i);
        if (name && len + strlen(name) >= NAMES_TEXT_MAX - REST_BYTES) {
            break;
        }
        if (name) {
            len = add(text, len, shown == 0 ? "" : shown + 1 == all ? " and " : ", ", name);
            shown++;
        }
    }
    if (shown < all) {
        snprintf(text + len, NAMES_TEXT_MAX - len, "%s%u more", shown ? " and " : "", all - shown);
    }
    return text;
}

const char *names_join(names_at_f *at, const void *of, uint32_t count, char text[NAMES_TEXT_MAX])
{
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && len < NAMES_TEXT_MAX; i++) {
        const char *name = at(of, i);
        len = name ? add(text, len, len ? ", " : "", name) : len;
    }
    if (len >= NAMES_TEXT_MAX) {
        snprintf(text + NAMES_TEXT_MAX - 4, 4, "...");
    }
    return text;
}
