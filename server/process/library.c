/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_is_there(const char *name)
{
#ifdef PTED_LINKED_LIBRARIES
    (void)name;
    return true;
#else
    return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL;
#endif
}

static void put_function(const struct library *library, const struct library_symbol *symbol,
                         const void *function)
{
    memcpy((char *)library->functions + symbol->offset, function, sizeof(void *));
}

static enum status open_functions(const struct library *library, struct error *err)
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
        put_function(library, symbol, &function);
    }
    return ST_OK;
}

/* The rows of a library have one way: all are linked in, or all are opened. */
static enum status take_functions(const struct library *library, struct error *err)
{
    if (!library->symbols[0].linked) {
        return open_functions(library, err);
    }
    for (size_t i = 0; i < library->symbol_count; i++) {
        put_function(library, &library->symbols[i], &library->symbols[i].linked);
    }
    return ST_OK;
}

static enum status prepare_library(const struct library *library, struct error *err)
{
    TRY(take_functions(library, err));
    return library->prepare ? library->prepare(err) : ST_OK;
}

enum status library_load(struct library *library, struct error *err)
{
    pthread_mutex_lock(&library->lock);
    if (!library->is_tried) {
        library->is_tried = true;
        library->problem.code = prepare_library(library, &library->problem);
    }
    pthread_mutex_unlock(&library->lock);
    const struct error *problem = &library->problem;
    return problem->code == ST_OK ? ST_OK : error_set(err, problem->code, "%s", problem->text);
}
