/* SPDX-License-Identifier: MIT */
/* libyaml, which reads YAML, loaded when something first needs it. */
#ifndef PTED_SERVER_PROCESS_LIBYAML_H
#define PTED_SERVER_PROCESS_LIBYAML_H

#include <yaml.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "yaml_". */
struct libyaml {
    int (*parser_initialize)(yaml_parser_t *parser);
    void (*parser_delete)(yaml_parser_t *parser);
    void (*parser_set_input_string)(yaml_parser_t *parser, const unsigned char *text, size_t len);
    int (*parser_parse)(yaml_parser_t *parser, yaml_event_t *event);
    void (*event_delete)(yaml_event_t *event);
};

/* Loads the functions at |*library|. ST_UNSUPPORTED: the library is missing; the error has the name
 * of its package. */
MUST_CHECK enum status libyaml_load(const struct libyaml **library, struct error *err);

#endif
