/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/console/console.h"

#include <string.h>

/* In files.S. */
#define CONSOLE_FILE(symbol, name, type)                                                           \
    extern const uint8_t console_##symbol[], console_##symbol##_end[];
#include "server/daemon/console/files.def"
#undef CONSOLE_FILE

static const struct {
    const char *name, *type;
    const uint8_t *first, *end;
} files[] = {
#define CONSOLE_FILE(symbol, name, type) {name, type, console_##symbol, console_##symbol##_end},
#include "server/daemon/console/files.def"
#undef CONSOLE_FILE
};

bool console_find(const char *name, struct console_file *out)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(name, files[i].name) == 0 || (!*name && i == 0)) {
            *out = (struct console_file){
                .name = files[i].name,
                .type = files[i].type,
                .bytes = span_of(files[i].first, (size_t)(files[i].end - files[i].first)),
            };
            return true;
        }
    }
    return false;
}
