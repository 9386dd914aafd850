/* SPDX-License-Identifier: MIT */
/* Long options only, "--name value" or "--name=value"; an argument without a leading dash is a
 * model file. The first wrong argument ends the parse: nothing is guessed. */
#include "config.h"

#include "server/process/options.h"

#include <string.h>

#include "base/bytes.h"
#include "server/process/args.h"
#include "server/process/setting.h"

/* "--watch" is "--watch=true". The next argument is never the value of a switch. */
static enum status take_value(struct args *args, const struct arg *arg,
                              const struct setting *setting, const char **out_value,
                              struct error *err)
{
    if (setting->type == OPTION_SWITCH && !arg->value) {
        *out_value = "true";
        return ST_OK;
    }
    return args_value(args, arg, out_value, err);
}

static enum status add_option(struct options *options, struct args *args, const struct arg *arg,
                              struct error *err)
{
    struct span name = arg->option;
    const struct setting *setting = NULL;
    const char *value;
    char hint[SETTING_HINT_MAX] = "";
    if (name.len > 2 && memcmp(name.ptr, "--", 2) == 0) {
        struct span option = span_of(name.ptr + 2, name.len - 2);
        setting = setting_find(option);
        if (!setting) {
            setting_hint(option, false, hint);
        }
    }
    if (!setting) {
        return error_set(err, ST_INVALID, "unknown option '%.*s'%s", SPAN_SHORT(name), hint);
    }
    TRY(take_value(args, arg, setting, &value, err));
    enum status status = setting_set(setting, options, value, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(name));
}

/* Options that are no settings. */
static bool find_action(struct span option, enum options_action *out_action)
{
    static const struct {
        const char *name;
        enum options_action action;
    } actions[] = {
        {"--help", OPTIONS_HELP},          {"-h", OPTIONS_HELP},
        {"--version", OPTIONS_VERSION},    {"-V", OPTIONS_VERSION},
        {"--check-config", OPTIONS_CHECK},
    };
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (span_is(option, actions[i].name)) {
            *out_action = actions[i].action;
            return true;
        }
    }
    return false;
}

enum status options_add_arguments(struct options *options, int argc, char *const argv[],
                                  struct error *err)
{
    struct args args = {.count = argc, .items = argv, .at = 1};
    options->source = OPTIONS_FROM_ARGUMENTS;
    for (struct arg arg; args_next(&args, &arg);) {
        if (arg.option.len == 0) {
            TRY(options_add_file(options, arg.text, err));
        } else if (!find_action(arg.option, &options->action)) {
            TRY(add_option(options, &args, &arg, err));
        } else if (options->action != OPTIONS_CHECK) {
            return ST_OK;
        }
    }
    return ST_OK;
}
