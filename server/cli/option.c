/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/option.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "server/cli/cli.h"
#include "server/process/args.h"
#include "server/process/manual.h"
#include "server/process/nearest.h"

#define NAMES_MAX 64
#define NAME_BYTES_MAX 32
#define TEXT_COLUMN 23 /* of --help */
#define COLUMNS 90
#define TEXT_BYTES_MAX 1024 /* of one option */

/* ---- finding --------------------------------------------------------------------------------- */

struct found {
    const struct cli_option *option; /* NULL: there is none */
    size_t at;                       /* of the group's struct */
};

static struct found find(const struct cli_command *command, struct span name)
{
    bool has_dashes = name.len > 2 && memcmp(name.ptr, "--", 2) == 0;
    for (const struct cli_option_group *g = command->groups; has_dashes && g && g->name; g++) {
        for (const struct cli_option *o = g->options; o->name; o++) {
            if (span_is(span_of(name.ptr + 2, name.len - 2), o->name)) {
                return (struct found){o, g->at};
            }
        }
    }
    return (struct found){NULL, 0};
}

/* The option of |command| that is like |text|, with its dashes; NULL: there is none. */
static const char *find_near(const struct cli_command *command, const char *text,
                             char names[NAMES_MAX][NAME_BYTES_MAX])
{
    const char *list[NAMES_MAX];
    uint32_t count = 0;
    for (const struct cli_option_group *g = command->groups; g && g->name; g++) {
        for (const struct cli_option *o = g->options; o->name && count < NAMES_MAX; o++) {
            snprintf(names[count], NAME_BYTES_MAX, "--%s", o->name);
            list[count] = names[count];
            count++;
        }
    }
    return nearest_word(text, list, count);
}

static enum status refuse(const struct cli_command *command, const struct arg *arg,
                          struct error *err)
{
    char names[NAMES_MAX][NAME_BYTES_MAX], said[NAME_BYTES_MAX];
    snprintf(said, sizeof(said), "%.*s", SPAN_FMT(arg->option));
    const char *near = find_near(command, said, names);
    return error_set(err, ST_INVALID, "unknown option '%.*s'%s%s%s", SPAN_FMT(arg->option),
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status add(const struct cli_option *option, char *group, const char *value,
                       struct error *err)
{
    const char **values = (const char **)(void *)(group + option->at);
    uint32_t *count = (uint32_t *)(void *)(group + option->count_at);
    if (*count == option->max) {
        return error_set(err, ST_INVALID, "given more than %u times", (unsigned)option->max);
    }
    values[(*count)++] = value;
    return ST_OK;
}

static enum status set(const struct cli_option *option, char *group, const char *value,
                       struct error *err)
{
    void *at = group + option->at;
    if (option->set) {
        return option->set(group, value, err);
    }
    switch (option->type) {
    case OPTION_SWITCH:
        *(bool *)at = true;
        return ST_OK;
    case OPTION_TEXT:
    case OPTION_FILE:
        *(const char **)at = value;
        return ST_OK;
    case OPTION_TEXTS:
    case OPTION_FILES:
        return add(option, group, value, err);
    case OPTION_PRECISION:
        return options_parse_precision(value, at, err);
    case OPTION_WORD:
        return options_parse_word(value, option->words, at, err);
    case OPTION_BYTES:
    case OPTION_MS:
    case OPTION_COUNT:
        return options_parse_number(value, option->type, option->min, option->max, at, err);
    case OPTION_MODELS:
        break;
    }
    unreachable();
}

/* ---- a command line -------------------------------------------------------------------------- */

static enum status take_option(const struct cli_command *command, struct args *args,
                               const struct arg *arg, void *own, struct error *err)
{
    struct found found = find(command, arg->option);
    const char *value = NULL;
    if (!found.option) {
        return refuse(command, arg, err);
    }
    if (found.option->value) {
        TRY(args_value(args, arg, &value, err));
    } else if (arg->value) {
        return error_set(err, ST_INVALID, "%.*s: expected no value, got '%.64s'",
                         SPAN_FMT(arg->option), arg->value);
    }
    enum status status = set(found.option, (char *)own + found.at, value, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(arg->option));
}

enum status cli_option_parse(const struct cli_command *command, int argc, char *const argv[],
                             void *own, struct error *err)
{
    struct args args = {.count = argc, .items = argv};
    for (struct arg arg; args_next(&args, &arg);) {
        bool is_option = arg.option.len > 0 && strcmp(arg.text, "-") != 0;
        if (!is_option && !command->take) {
            return error_set(err, ST_INVALID, "%s takes no arguments, got '%.64s'", command->name,
                             arg.text);
        }
        TRY(is_option ? take_option(command, &args, &arg, own, err)
                      : command->take(own, arg.text, err));
    }
    return ST_OK;
}

const struct cli_option *cli_option_said(const struct cli_command *command, int argc,
                                         char *const argv[], enum cli_option_only only)
{
    struct args args = {.count = argc, .items = argv};
    const struct cli_option *said = NULL;
    struct error err;
    for (struct arg arg; args_next(&args, &arg);) {
        const struct cli_option *option = find(command, arg.option).option;
        const char *value;
        if (option && option->value) {
            must(args_value(&args, &arg, &value, &err) == ST_OK);
        }
        said = option && option->only == only ? option : said;
    }
    return said;
}

/* ---- --help ---------------------------------------------------------------------------------- */

/* From |column| on. Begins a new line where a word would end behind the last column. */
static void print_wrapped(const char *text, size_t column, struct buf *out)
{
    const char *before = "";
    while (*text) {
        size_t len = strcspn(text, " ");
        if (*before && column + 1 + len > COLUMNS) {
            buf_printf(out, "\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
            before = "";
        }
        buf_add_str(out, before);
        buf_add(out, text, len);
        column += strlen(before) + len;
        before = " ";
        text += len + (text[len] != '\0');
    }
}

static void print_help_of(const struct cli_option *option, struct buf *out)
{
    char name[NAME_BYTES_MAX * 2], text[TEXT_BYTES_MAX];
    snprintf(text, sizeof(text), "%s%s%s%s", option->doc, option->preset ? " (" : "",
             option->preset ? option->preset : "", option->preset ? ")" : "");
    snprintf(name, sizeof(name), "--%s%s%s", option->name, option->value ? " " : "",
             option->value ? option->value : "");
    size_t before = out->len;
    buf_printf(out, "  %-*s  ", TEXT_COLUMN - 4, name);
    print_wrapped(text, out->len - before, out);
    buf_add_char(out, '\n');
}

void cli_option_print_help(const struct cli_command *command, struct buf *out)
{
    for (const struct cli_option_group *g = command->groups; g && g->name; g++) {
        if (g->head) {
            buf_printf(out, "\n%s\n", g->head);
        }
        for (const struct cli_option *o = g->options; o->name; o++) {
            print_help_of(o, out);
        }
    }
}

/* ---- pte(1) ---------------------------------------------------------------------------------- */

void cli_option_print_manual(const struct cli_option *options, struct buf *out)
{
    for (const struct cli_option *o = options; o->name; o++) {
        buf_printf(out, ".It Fl -%s%s%s\n", o->name, o->value ? " Ar " : "",
                   o->value ? o->value : "");
        manual_print_sentence(o->doc, out);
        if (o->more) {
            buf_printf(out, "%s\n", o->more);
        }
        if (o->preset) {
            buf_add_str(out, "Default: ");
            manual_print_text(o->preset, out);
            buf_add_str(out, ".\n");
        }
    }
}
