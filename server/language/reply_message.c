/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_message.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/language/tools.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static uint32_t call_count(const struct reply_piece *piece)
{
    return piece->calls ? piece->calls->count : 0;
}

/* The limit of the request, or else that of the model. */
static const char *length_reason(const struct reply *reply)
{
    return reply->answer_tokens >= reply->ask->max_tokens ? "\"max_tokens\""
                                                          : "\"model_context_window_exceeded\"";
}

static const char *stop_reason(const struct reply *reply, enum reply_reason reason)
{
    switch (reason) {
    case REPLY_GOES_ON:
        return "null";
    case REPLY_STOP:
        return reply->stop.len ? "\"stop_sequence\"" : "\"end_turn\"";
    case REPLY_LENGTH:
        return length_reason(reply);
    case REPLY_TOOLS:
        return "\"tool_use\"";
    }
    unreachable();
}

/* "stop_reason" and "stop_sequence". */
static void print_end(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    buf_printf(out, "\"stop_reason\":%s,\"stop_sequence\":", stop_reason(reply, reason));
    if (reason == REPLY_STOP && reply->stop.len) {
        json_print_string(out, reply->stop);
    } else {
        buf_add_str(out, "null");
    }
}

/* Tokens that were not computed again are not among the input's: the sum of the three is the
 * prompt.
 */
static void print_usage(const struct reply *reply, struct buf *out)
{
    buf_printf(out,
               "\"usage\":{\"input_tokens\":%" PRIu64 ",\"cache_creation_input_tokens\":0,"
               "\"cache_read_input_tokens\":%" PRIu64 ",\"output_tokens\":%" PRIu64,
               reply->prompt_tokens - reply->cached_tokens, reply->cached_tokens,
               reply->answer_tokens);
    if (reply->thinks) {
        buf_printf(out, ",\"output_tokens_details\":{\"thinking_tokens\":%" PRIu64 "}",
                   reply->thought_tokens);
    }
    buf_add_char(out, '}');
}

static void begin_message(const struct reply *reply, struct buf *out)
{
    buf_printf(out, "{\"id\":\"msg_%s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":",
               reply->id);
    json_print_string(out, span_str(reply->model));
    buf_add_str(out, ",\"content\":[");
}

static void end_message(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    buf_add_str(out, "],");
    print_end(reply, reason, out);
    buf_add_char(out, ',');
    print_usage(reply, out);
    buf_add_char(out, '}');
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void print_text(struct buf *out, struct span text)
{
    buf_add_str(out, "{\"type\":\"text\",\"text\":");
    json_print_string(out, text);
    buf_add_char(out, '}');
}

/* Nobody signs thoughts here. */
static void print_thought(struct buf *out, struct span thought)
{
    buf_add_str(out, "{\"type\":\"thinking\",\"signature\":\"\",\"thinking\":");
    json_print_string(out, thought);
    buf_add_char(out, '}');
}

/* |input| is an object of JSON. */
static void print_call(const struct reply *reply, const struct tools_call *call, uint32_t index,
                       struct span input, struct buf *out)
{
    buf_printf(out, "{\"type\":\"tool_use\",\"id\":\"toolu_%s_%u\",\"name\":", reply->id, index);
    buf_add(out, call->name.ptr, call->name.len);
    buf_add_str(out, ",\"input\":");
    buf_add(out, input.ptr, input.len);
    buf_add_char(out, '}');
}

static const char *comma(uint32_t *count)
{
    return (*count)++ ? "," : "";
}

void reply_message_print(const struct reply *reply, const struct reply_piece *piece,
                         struct buf *out)
{
    uint32_t blocks = 0;
    begin_message(reply, out);
    if (piece->thought.len > 0) {
        buf_add_str(out, comma(&blocks));
        print_thought(out, piece->thought);
    }
    if (piece->text.len > 0) {
        buf_add_str(out, comma(&blocks));
        print_text(out, piece->text);
    }
    for (uint32_t i = 0; i < call_count(piece); i++) {
        const struct tools_call *call = &piece->calls->calls[i];
        buf_add_str(out, comma(&blocks));
        bool is_cut = piece->calls->is_cut && i + 1 == piece->calls->count;
        print_call(reply, call, i, is_cut ? span_str("{}") : call->arguments, out);
    }
    end_message(reply, piece->reason, out);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void begin_event(const char *type, struct buf *out)
{
    buf_printf(out, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void end_event(struct buf *out)
{
    buf_add_str(out, "}\n\n");
}

static void tell_start(const struct reply *reply, struct buf *out)
{
    begin_event("message_start", out);
    buf_add_str(out, ",\"message\":");
    begin_message(reply, out);
    end_message(reply, REPLY_GOES_ON, out);
    end_event(out);
}

/* Of the block that is open. */
static void begin_block_event(const struct reply *reply, const char *type, struct buf *out)
{
    begin_event(type, out);
    buf_printf(out, ",\"index\":%u", reply->block_count - 1);
}

static void close_block(struct reply *reply, struct buf *out)
{
    if (reply->block != REPLY_NO_BLOCK) {
        begin_block_event(reply, "content_block_stop", out);
        end_event(out);
    }
    reply->block = REPLY_NO_BLOCK;
}

/* The beginning of the event that opens a block; the block itself follows. */
static void open_block(struct reply *reply, enum reply_block block, struct buf *out)
{
    close_block(reply, out);
    reply->block = block;
    reply->block_count++;
    begin_block_event(reply, "content_block_start", out);
    buf_add_str(out, ",\"content_block\":");
}

/* {"type": |type|, |name|: |text|} */
static void tell_delta(const struct reply *reply, const char *type, const char *name,
                       struct span text, struct buf *out)
{
    begin_block_event(reply, "content_block_delta", out);
    buf_printf(out, ",\"delta\":{\"type\":\"%s\",\"%s\":", type, name);
    json_print_string(out, text);
    buf_add_char(out, '}');
    end_event(out);
}

static void tell_thought(struct reply *reply, struct span thought, struct buf *out)
{
    if (reply->block != REPLY_THOUGHT) {
        open_block(reply, REPLY_THOUGHT, out);
        print_thought(out, span_str(""));
        end_event(out);
    }
    tell_delta(reply, "thinking_delta", "thinking", thought, out);
}

static void tell_text(struct reply *reply, struct span text, struct buf *out)
{
    if (reply->block != REPLY_TEXT) {
        open_block(reply, REPLY_TEXT, out);
        print_text(out, span_str(""));
        end_event(out);
    }
    tell_delta(reply, "text_delta", "text", text, out);
}

static void tell_calls(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    for (uint32_t i = reply_first_untold_call(piece); i < call_count(piece); i++) {
        struct span arguments = reply_untold_arguments(piece, i);
        if (i >= piece->told_calls) {
            open_block(reply, REPLY_CALL, out);
            print_call(reply, &piece->calls->calls[i], i, span_str("{}"), out);
            end_event(out);
        }
        if (arguments.len > 0) {
            tell_delta(reply, "input_json_delta", "partial_json", arguments, out);
        }
    }
}

static void tell_end(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    begin_event("message_delta", out);
    buf_add_str(out, ",\"delta\":{");
    print_end(reply, reason, out);
    buf_add_str(out, "},");
    print_usage(reply, out);
    end_event(out);
    begin_event("message_stop", out);
    end_event(out);
}

void reply_message_print_events(struct reply *reply, const struct reply_piece *piece,
                                struct buf *out)
{
    if (piece->is_first) {
        tell_start(reply, out);
    }
    bool goes_on = reply->block == REPLY_CALL; /* a thought comes behind it */
    if (goes_on) {
        tell_calls(reply, piece, out);
    }
    if (piece->thought.len > 0) {
        tell_thought(reply, piece->thought, out);
    }
    if (piece->text.len > 0) {
        tell_text(reply, piece->text, out);
    }
    if (!goes_on) {
        tell_calls(reply, piece, out);
    }
    if (piece->reason == REPLY_GOES_ON) {
        return;
    }
    close_block(reply, out);
    tell_end(reply, piece->reason, out);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const char *error_type(int http_status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {
        {401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
        {413, "request_too_large"},    {429, "rate_limit_error"}, {503, "overloaded_error"},
        {504, "timeout_error"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].status == http_status) {
            return types[i].type;
        }
    }
    return http_status < 500 ? "invalid_request_error" : "api_error";
}

void reply_message_print_error(struct buf *out, const char *text, int http_status)
{
    buf_printf(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
               error_type(http_status));
    json_print_string(out, span_str(text));
    buf_add_str(out, "}}");
}

void reply_message_print_error_event(struct reply *reply, struct buf *out, const char *text,
                                     int http_status)
{
    (void)reply;
    buf_add_str(out, "event: error\ndata: ");
    reply_message_print_error(out, text, http_status);
    buf_add_str(out, "\n\n");
}
