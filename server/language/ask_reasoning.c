/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_reasoning.h"

#include "server/language/ask_values.h"

enum status ask_effort(struct json *in, struct arena *arena, struct ask *ask, struct error *err)
{
    TRY(ask_read_text(in, arena, &ask->effort, err));
    if (ask->effort.len == 0 || ask->effort.len > ASK_EFFORT_BYTES_MAX) {
        return json_fail(in, err, ST_INVALID, "expected a word such as \"low\" or \"high\"");
    }
    ask->thinking = span_is(ask->effort, "none") ? ASK_THINKING_OFF : ASK_THINKING_ON;
    return ST_OK;
}

enum status ask_reasoning(struct json *in, struct arena *arena, struct ask *ask, struct error *err)
{
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        bool is_wanted;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_peek(in) != JSON_NULL && json_string_is(&key, "effort")) {
            TRY(ask_effort(in, arena, ask, err));
        } else if (json_peek(in) != JSON_NULL && json_string_is(&key, "enabled")) {
            TRY(json_read_bool(in, &is_wanted, err));
            ask->thinking = is_wanted ? ASK_THINKING_ON : ASK_THINKING_OFF;
        } else {
            TRY(json_skip(in, err));
        }
    }
}
