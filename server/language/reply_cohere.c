/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_cohere.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/language/reply_marks.h"
#include "server/language/tools.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static uint32_t call_count(const struct reply_piece *piece)
{
    return piece->calls ? piece->calls->count : 0;
}

static const char *finish_reason(const struct reply *reply, enum reply_reason reason)
{
    switch (reason) {
    case REPLY_STOP:
        return reply->stop.len ? "STOP_SEQUENCE" : "COMPLETE";
    case REPLY_LENGTH:
        return "MAX_TOKENS";
    case REPLY_TOOLS:
        return "TOOL_CALL";
    case REPLY_GOES_ON:
        break;
    }
    unreachable();
}

/* "finish_reason" and "usage". Nobody pays: what is billed is what there is. */
static void print_end(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    buf_printf(out, "\"finish_reason\":\"%s\",\"usage\":{", finish_reason(reply, reason));
    for (int i = 0; i < 2; i++) {
        buf_printf(out, "\"%s\":{\"input_tokens\":%" PRIu64 ",\"output_tokens\":%" PRIu64 "},",
                   i ? "tokens" : "billed_units", reply->prompt_tokens, reply->answer_tokens);
    }
    buf_printf(out, "\"cached_tokens\":%" PRIu64 "}", reply->cached_tokens);
}

/* {"type": |type|, |type|: |text|}, where a block says its type. */
static void print_block(struct buf *out, const char *type, struct span text, bool says_type)
{
    buf_add_char(out, '{');
    if (says_type) {
        buf_printf(out, "\"type\":\"%s\",", type);
    }
    buf_printf(out, "\"%s\":", type);
    json_print_string(out, text);
    buf_add_char(out, '}');
}

static void print_call(const struct reply *reply, const struct tools_call *call, uint32_t index,
                       struct span arguments, struct buf *out)
{
    buf_printf(out,
               "{\"id\":\"call_%s_%u\",\"type\":\"function\",\"function\":{\"name\":", reply->id,
               index);
    buf_add(out, call->name.ptr, call->name.len);
    buf_add_str(out, ",\"arguments\":");
    json_print_string(out, arguments);
    buf_add_str(out, "}}");
}

/* ---- whole answers --------------------------------------------------------------------------- */

/* A client reads the first block of a message without looking, unless there are calls. */
static void print_content(const struct reply_piece *piece, struct buf *out)
{
    bool has_thought = piece->thought.len > 0;
    bool has_text = piece->text.len > 0 || call_count(piece) == 0;
    buf_add_str(out, "\"content\":[");
    if (has_thought) {
        print_block(out, "thinking", piece->thought, true);
    }
    if (has_text) {
        buf_add_str(out, has_thought ? "," : "");
        print_block(out, "text", piece->text, true);
    }
    buf_add_char(out, ']');
}

void reply_cohere_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    uint32_t count = call_count(piece);
    buf_printf(out, "{\"id\":\"%s\",\"message\":{\"role\":\"assistant\",", reply->id);
    print_content(piece, out);
    for (uint32_t i = 0; i < count; i++) {
        const struct tools_call *call = &piece->calls->calls[i];
        buf_add_str(out, i ? "," : ",\"tool_calls\":[");
        print_call(reply, call, i, call->arguments, out);
    }
    buf_add_str(out, count ? "]}," : "},");
    if (reply->ask->wants_logprobs) {
        buf_add_str(out, "\"logprobs\":[");
        for (uint32_t i = 0; i < piece->mark_count; i++) {
            buf_add_str(out, i ? "," : "");
            reply_marks_print_chunk(reply, &piece->marks[i], 1, out);
        }
        buf_add_str(out, "],");
    }
    print_end(reply, piece->reason, out);
    buf_add_char(out, '}');
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

/* Contents and calls are counted apart. */
static void begin_part_event(const char *type, uint32_t index, const char *delta, struct buf *out)
{
    begin_event(type, out);
    buf_printf(out, ",\"index\":%u", index);
    if (delta) {
        buf_printf(out, ",\"delta\":{\"message\":{\"%s\":", delta);
    }
}

static void end_delta(struct buf *out)
{
    buf_add_str(out, "}}");
}

static void tell_start(const struct reply *reply, struct buf *out)
{
    begin_event("message-start", out);
    buf_printf(out,
               ",\"id\":\"%s\",\"delta\":{\"message\":{\"role\":\"assistant\",\"content\":[],"
               "\"tool_plan\":\"\",\"tool_calls\":[],\"citations\":[]}}",
               reply->id);
    end_event(out);
}

static void close_block(struct reply *reply, struct buf *out)
{
    if (reply->block == REPLY_CALL) {
        begin_part_event("tool-call-end", reply->ended_calls++, NULL, out);
        end_event(out);
    } else if (reply->block != REPLY_NO_BLOCK) {
        begin_part_event("content-end", reply->block_count - 1, NULL, out);
        end_event(out);
    }
    reply->block = REPLY_NO_BLOCK;
}

static const char *type_of(enum reply_block block)
{
    return block == REPLY_THOUGHT ? "thinking" : "text";
}

static void open_content(struct reply *reply, enum reply_block block, struct buf *out)
{
    if (reply->block == block) {
        return;
    }
    close_block(reply, out);
    reply->block = block;
    begin_part_event("content-start", reply->block_count++, "content", out);
    print_block(out, type_of(block), span_str(""), true);
    end_delta(out);
    end_event(out);
}

static void tell_content(struct reply *reply, const struct reply_piece *piece,
                         enum reply_block block, struct span text, struct buf *out)
{
    open_content(reply, block, out);
    begin_part_event("content-delta", reply->block_count - 1, "content", out);
    print_block(out, type_of(block), text, false);
    end_delta(out);
    if (reply->ask->wants_logprobs && block == REPLY_TEXT && piece->mark_count > 0) {
        buf_add_str(out, ",\"logprobs\":");
        reply_marks_print_chunk(reply, piece->marks, piece->mark_count, out);
    }
    end_event(out);
}

static void tell_calls(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    for (uint32_t i = reply_first_untold_call(piece); i < call_count(piece); i++) {
        struct span arguments = reply_untold_arguments(piece, i);
        if (i >= piece->told_calls) {
            close_block(reply, out);
            reply->block = REPLY_CALL;
            begin_part_event("tool-call-start", i, "tool_calls", out);
            print_call(reply, &piece->calls->calls[i], i, span_str(""), out);
            end_delta(out);
            end_event(out);
        }
        if (arguments.len > 0) {
            begin_part_event("tool-call-delta", i, "tool_calls", out);
            buf_add_str(out, "{\"function\":{\"arguments\":");
            json_print_string(out, arguments);
            buf_add_str(out, "}}");
            end_delta(out);
            end_event(out);
        }
    }
}

static void tell_end(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    begin_event("message-end", out);
    buf_printf(out, ",\"id\":\"%s\",\"delta\":{", reply->id);
    print_end(reply, reason, out);
    buf_add_char(out, '}');
    end_event(out);
}

void reply_cohere_print_events(struct reply *reply, const struct reply_piece *piece,
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
        tell_content(reply, piece, REPLY_THOUGHT, piece->thought, out);
    }
    if (piece->text.len > 0 || (piece->mark_count > 0 && reply->block == REPLY_TEXT)) {
        tell_content(reply, piece, REPLY_TEXT, piece->text, out);
    }
    if (!goes_on) {
        tell_calls(reply, piece, out);
    }
    if (piece->reason != REPLY_GOES_ON) {
        close_block(reply, out);
        tell_end(reply, piece->reason, out);
    }
}

void reply_cohere_print_end(const struct reply *reply, struct buf *out)
{
    (void)reply;
    buf_add_str(out, "data: [DONE]\n\n");
}

void reply_cohere_print_error_event(struct reply *reply, struct buf *out, const char *text,
                                    int http_status)
{
    (void)http_status;
    close_block(reply, out);
    begin_event("message-end", out);
    buf_printf(out, ",\"id\":\"%s\",\"delta\":{\"finish_reason\":\"ERROR\",\"error\":", reply->id);
    json_print_string(out, span_str(text));
    buf_add_char(out, '}');
    end_event(out);
    reply_cohere_print_end(reply, out);
}
