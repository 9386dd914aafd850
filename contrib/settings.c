/* SPDX-License-Identifier: MIT */
/* Prints what the table of settings says, for settings.sh; and with "options GROUP" the items of
 * pte(1) for a group of options. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "server/cli/cli.h"
#include "server/cli/option.h"
#include "server/daemon/conf/conf_print.h"
#include "server/model/card/card_schema.h"
#include "server/process/options.h"

#define TEXT_BYTES_MAX (1 << 20)

static const struct {
    const char *name;
    void (*print)(struct buf *out);
} texts[] = {
    {"manual", conf_print_manual},
    {"schema", conf_print_schema},
    {"card-schema", card_schema_print},
    {"document", conf_print_document},
};

static void print_options(const char *name, struct buf *out)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        for (const struct cli_option_group *g = (*c)->groups; g && g->name; g++) {
            if (strcmp(g->name, name) == 0) {
                cli_option_print_manual(g->options, out);
                return;
            }
        }
    }
}

int main(int argc, char *argv[])
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    for (size_t i = 0; argc == 2 && i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(argv[1], texts[i].name) == 0) {
            texts[i].print(&text);
        }
    }
    if (argc == 3 && strcmp(argv[1], "options") == 0) {
        print_options(argv[2], &text);
    }
    bool is_printed = text.len > 0 && !buf_failed(&text) &&
                      fwrite(text.ptr, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
    buf_fini(&text);
    return is_printed ? EX_OK : EX_SOFTWARE;
}
