/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void library_load(const char *name, const char *package, const struct library_symbol *symbols,
                  size_t count, void *functions, char problem[LIBRARY_PROBLEM_MAX])
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(problem, LIBRARY_PROBLEM_MAX, "no %s (Debian: %s): %.120s", name, package,
                 reason ? reason : "unknown");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            snprintf(problem, LIBRARY_PROBLEM_MAX, "%s has no %s()", name, symbols[i].name);
            return;
        }
        memcpy((char *)functions + symbols[i].offset, &symbol, sizeof(symbol));
    }
}
