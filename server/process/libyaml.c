/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/libyaml.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(yaml_##member, struct libyaml, member)
    SYMBOL(parser_initialize), SYMBOL(parser_delete), SYMBOL(parser_set_input_string),
    SYMBOL(parser_parse),      SYMBOL(event_delete),
#undef SYMBOL
};

static struct libyaml functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_YAML, PTED_PACKAGE_YAML, symbols, &functions, ST_UNSUPPORTED),
};

enum status libyaml_load(const struct libyaml **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
