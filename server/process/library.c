/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_is_there(const char *name)
{
    return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL;
}

static enum status open_library(const struct library *library, struct error *err)
{
    void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        return error_set(err, library->missing, "no %s (Debian: %s): %.120s", library->name,
                         library->package, reason ? reason : "unknown");
    }
    for (size_t i = 0; i < library->symbol_count; i++) {
        const struct library_symbol *symbol = &library->symbols[i];
        void *function = dlsym(handle, symbol->name);
        if (!function) {
            return error_set(err, library->missing, "%s has no %s()", library->name, symbol->name);
        }
        memcpy((char *)library->functions + symbol->offset, &function, sizeof(function));
    }
    return library->prepare ? library->prepare(err) : ST_OK;
}

enum status library_load(struct library *library, struct error *err)
{
    pthread_mutex_lock(&library->lock);
    if (!library->is_tried) {
        library->is_tried = true;
        library->problem.code = open_library(library, &library->problem);
    }
    pthread_mutex_unlock(&library->lock);
    const struct error *problem = &library->problem;
    return problem->code == ST_OK ? ST_OK : error_set(err, problem->code, "%s", problem->text);
}
