/* SPDX-License-Identifier: MIT */
/* How filters, tests, methods and functions get their arguments; and the functions. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "server/text/template/template_priv.h"

#define FORMAT_BYTES_MAX 256
#define DATE_BYTES_MAX 4096

static const struct value missing = {.kind = VALUE_OBJECT, .flags = OBJECT_MISSING};

/* ---- arguments ------------------------------------------------------------------------------- */

static bool takes_all(const char *param)
{
    return param[0] == '*' && param[1] != '*';
}

static bool takes_all_named(const char *param)
{
    return param[0] == '*' && param[1] == '*';
}

/* A tuple for "*", a map for "**". */
static enum status set_defaults(struct render *render, const struct builtin *builtin,
                                struct value *values)
{
    for (size_t i = 0; i < BUILTIN_PARAMS_MAX; i++) {
        const char *param = builtin->params[i];
        bool is_made = true;
        values[i] = missing;
        if (param && takes_all(param)) {
            is_made = value_list_new(render->arena, &values[i]);
            values[i].flags = VALUE_IS_TUPLE;
        } else if (param && takes_all_named(param)) {
            is_made = value_map_new(render->arena, &values[i]);
        }
        if (!is_made) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

static enum status bind_named(struct render *render, const struct node *node,
                              const struct builtin *builtin, const struct argument *argument,
                              struct value *values)
{
    for (size_t i = 0; i < BUILTIN_PARAMS_MAX && builtin->params[i]; i++) {
        const char *param = builtin->params[i];
        if (takes_all_named(param)) {
            TRY(template_charge(render, node, values[i].map->count));
            return value_map_add(render->arena, &values[i], value_string(argument->name),
                                 argument->value)
                       ? ST_OK
                       : template_no_memory(render);
        }
        if (!isupper((unsigned char)param[0]) && span_is(argument->name, param)) {
            if (!template_is(&values[i], OBJECT_MISSING)) {
                break;
            }
            values[i] = argument->value;
            return ST_OK;
        }
    }
    return template_fail_quoting(render, node, ST_INVALID, "'%s' takes no argument '%.*s' here",
                                 builtin->name, SPAN_SHORT(argument->name));
}

static enum status bind_placed(struct render *render, const struct node *node,
                               const struct builtin *builtin, size_t position,
                               const struct value *value, struct value *values)
{
    for (size_t i = 0; i < BUILTIN_PARAMS_MAX && builtin->params[i]; i++) {
        if (takes_all(builtin->params[i])) {
            return value_list_add(render->arena, &values[i], *value) ? ST_OK
                                                                     : template_no_memory(render);
        }
        if (takes_all_named(builtin->params[i])) {
            break;
        }
        if (i == position) {
            values[i] = *value;
            return ST_OK;
        }
    }
    return template_fail(render, node, ST_INVALID, "'%s' takes at most %zu arguments",
                         builtin->name, position);
}

enum status template_call_builtin(struct render *render, const struct node *node,
                                  const struct builtin *builtin, struct value self,
                                  const struct arguments *arguments, struct value *out)
{
    struct value values[BUILTIN_PARAMS_MAX];
    TRY(set_defaults(render, builtin, values));
    for (size_t i = 0; i < arguments->count; i++) {
        const struct argument *argument = &arguments->items[i];
        if (argument->name.len) {
            TRY(bind_named(render, node, builtin, argument, values));
        } else {
            TRY(bind_placed(render, node, builtin, i, &argument->value, values));
        }
    }
    for (size_t i = 0; i < builtin->required; i++) {
        if (template_is(&values[i], OBJECT_MISSING)) {
            return template_fail(render, node, ST_INVALID, "'%s' lacks argument %zu", builtin->name,
                                 i + 1);
        }
    }
    return builtin->call(render, node, self, values, out);
}

/* ---- functions ------------------------------------------------------------------------------- */

static enum status call_raise(struct render *render, const struct node *node, struct value self,
                              const struct value *args, struct value *out)
{
    struct value text;
    (void)self;
    (void)out;
    TRY(template_text(render, node, &args[0], &text));
    if (span_trim(text.string, " \t\r\n").len == 0) {
        return template_fail(render, node, ST_INVALID, "the template refuses these messages");
    }
    error_set(render->err, ST_INVALID, "%.*s", SPAN_FMT(text.string));
    return error_hide(render->err);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the template has the format */

static enum status call_strftime(struct render *render, const struct node *node, struct value self,
                                 const struct value *args, struct value *out)
{
    char format[FORMAT_BYTES_MAX + 1], text[DATE_BYTES_MAX];
    struct tm now;
    time_t seconds = time(NULL);
    (void)self;
    if (args[0].kind != VALUE_STRING || args[0].string.len >= FORMAT_BYTES_MAX ||
        memchr(args[0].string.ptr, 0, args[0].string.len)) {
        return template_fail(render, node, ST_INVALID,
                             "strftime_now() takes a text of at most %d bytes",
                             FORMAT_BYTES_MAX - 1);
    }
    /* A blank in front tells an empty text from a text that is too long. */
    format[0] = ' ';
    memcpy(format + 1, args[0].string.ptr, args[0].string.len);
    format[args[0].string.len + 1] = 0;
    if (render->limits->now) {
        now = *render->limits->now;
    } else {
        localtime_r(&seconds, &now);
    }
    size_t len = strftime(text, sizeof(text), format, &now);
    if (len == 0) {
        return template_fail(render, node, ST_TOO_LARGE, "a date of more than %d bytes",
                             DATE_BYTES_MAX);
    }
    size_t begin = template_text_begin(render);
    buf_add(render->out, text + 1, len - 1);
    return template_text_end(render, node, begin, out);
}

#pragma GCC diagnostic pop

static enum status call_range(struct render *render, const struct node *node, struct value self,
                              const struct value *args, struct value *out)
{
    int64_t numbers[3] = {0, 0, 1}, distance;
    (void)self;
    for (size_t i = 0; i < 3; i++) {
        bool is_given = !template_is(&args[i], OBJECT_MISSING);
        if (is_given && !template_as_int(&args[i], &numbers[i])) {
            return template_fail(render, node, ST_INVALID, "range() takes integers, got %s",
                                 template_type_text(&args[i]));
        }
    }
    if (template_is(&args[1], OBJECT_MISSING)) {
        numbers[1] = numbers[0];
        numbers[0] = 0;
    }
    int64_t step = numbers[2];
    if (step == 0 || step == INT64_MIN || !sub_i64(numbers[1], numbers[0], &distance)) {
        return template_fail(render, node, ST_INVALID, "range() has no such step or ends");
    }
    bool is_empty = step > 0 ? distance <= 0 : distance >= 0;
    int64_t count = is_empty ? 0 : (distance - (step > 0 ? 1 : -1)) / step + 1;
    if (count > TEMPLATE_RANGE_MAX) {
        return template_fail(render, node, ST_TOO_LARGE, "range() of more than %d numbers",
                             TEMPLATE_RANGE_MAX);
    }
    TRY(template_charge(render, node, (size_t)count * 16));
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_RANGE;
    for (int64_t i = 0; i < count; i++) {
        if (!value_list_add(render->arena, out, value_int(numbers[0] + i * step))) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

/* Members of an optional map, then the named arguments. */
static enum status make_map(struct render *render, const struct node *node,
                            const struct value *args, struct value *out)
{
    if (!value_map_new(render->arena, out)) {
        return template_no_memory(render);
    }
    const struct value *const sources[] = {&args[0], &args[1]};
    for (int part = 0; part < 2; part++) {
        if (part == 0 && template_is(&args[0], OBJECT_MISSING)) {
            continue;
        }
        if (sources[part]->kind != VALUE_MAP) {
            return template_fail(render, node, ST_UNSUPPORTED, "expected a map, got %s",
                                 template_type_text(sources[part]));
        }
        const struct value_map *map = sources[part]->map;
        for (size_t i = 0; i < map->count; i++) {
            const struct value_member *member = &map->members[i];
            TRY(template_charge(render, node, out->map->count * 8));
            struct value *old =
                (struct value *)(uintptr_t)template_map_find(out->map, &member->key);
            if (old) {
                *old = member->value;
            } else if (!value_map_add(render->arena, out, member->key, member->value)) {
                return template_no_memory(render);
            }
        }
    }
    return ST_OK;
}

static enum status call_dict(struct render *render, const struct node *node, struct value self,
                             const struct value *args, struct value *out)
{
    (void)self;
    return make_map(render, node, args, out);
}

static enum status call_namespace(struct render *render, const struct node *node, struct value self,
                                  const struct value *args, struct value *out)
{
    struct value map;
    (void)self;
    TRY(make_map(render, node, args, &map));
    for (size_t i = 0; i < map.map->count; i++) {
        const struct value *key = &map.map->members[i].key;
        if (key->kind == VALUE_STRING && key->string.len && key->string.ptr[0] == '_') {
            return template_fail_quoting(render, node, ST_INVALID,
                                         "the attribute '%.*s' of a namespace begins with '_'",
                                         SPAN_SHORT(key->string));
        }
    }
    *out = (struct value){.kind = VALUE_OBJECT, .flags = OBJECT_NAMESPACE, .object = map.map};
    return ST_OK;
}

const struct builtin *template_function_find(struct span name)
{
    static const struct builtin functions[] = {
        {"raise_exception", call_raise, 1, {"message"}},
        {"strftime_now", call_strftime, 1, {"format"}},
        {"range", call_range, 1, {"START", "STOP", "STEP"}},
        {"dict", call_dict, 0, {"MAP", "**"}},
        {"namespace", call_namespace, 0, {"MAP", "**"}},
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (span_is(name, functions[i].name)) {
            return &functions[i];
        }
    }
    return NULL;
}
