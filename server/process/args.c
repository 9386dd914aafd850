/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/args.h"

#include <string.h>

bool args_next(struct args *args, struct arg *out_arg)
{
    if (!args->are_files && args->at < args->count && strcmp(args->items[args->at], "--") == 0) {
        args->are_files = true;
        args->at++;
    }
    if (args->at >= args->count) {
        return false;
    }
    const char *text = args->items[args->at++];
    *out_arg = (struct arg){.text = text};
    if (!args->are_files && text[0] == '-') {
        const char *equals = strchr(text, '=');
        out_arg->option = equals ? span_of(text, (size_t)(equals - text)) : span_str(text);
        out_arg->value = equals ? equals + 1 : NULL;
    }
    return true;
}

enum status args_value(struct args *args, const struct arg *arg, const char **out_value,
                       struct error *err)
{
    if (!arg->value && args->at >= args->count) {
        return error_set(err, ST_INVALID, "option '%s' needs a value", arg->text);
    }
    *out_value = arg->value ? arg->value : args->items[args->at++];
    return ST_OK;
}
