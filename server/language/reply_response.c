/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_response.h"

#include <inttypes.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "server/language/tools.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static void print_number(struct buf *out, double value)
{
    uint8_t text[NUMBER_TEXT_MAX];
    buf_add(out, text, number_print_f64(text, value, NUMBER_NAN_NULL));
}

/* JSON of the request, or |otherwise|. */
static void print_given(struct buf *out, const char *name, struct span given, const char *otherwise)
{
    buf_printf(out, ",\"%s\":", name);
    if (given.len) {
        buf_add(out, given.ptr, given.len);
    } else {
        buf_add_str(out, otherwise);
    }
}

/* All of the text so far: |piece| is its end. */
static struct span text_so_far(const struct reply_piece *piece)
{
    return span_of(piece->text.ptr - piece->text_offset, piece->text_offset + piece->text.len);
}

static const char *end_status(enum reply_reason reason)
{
    return reason == REPLY_LENGTH ? "incomplete" : "completed";
}

static void print_part(struct buf *out, struct span text)
{
    buf_add_str(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    json_print_string(out, text);
    buf_add_char(out, '}');
}

/* |has_part|: its text is |text|; otherwise it has no content yet. */
static void print_message(const struct reply *reply, const char *status, bool has_part,
                          struct span text, struct buf *out)
{
    buf_printf(out,
               "{\"id\":\"msg_%s\",\"type\":\"message\",\"status\":\"%s\",\"role\":\"assistant\","
               "\"content\":[",
               reply->id, status);
    if (has_part) {
        print_part(out, text);
    }
    buf_add_str(out, "]}");
}

/* Call |index| goes on, or has been cut. */
static bool is_cut(const struct reply_piece *piece, uint32_t index)
{
    return piece->calls->is_cut && index + 1 == piece->calls->count;
}

/* What a call is when it is over. */
static const char *call_status(const struct reply_piece *piece, uint32_t index)
{
    return is_cut(piece, index) ? "incomplete" : "completed";
}

/* |status| is NULL as long as the call is being written: it has no arguments yet. */
static void print_call(const struct reply *reply, const struct tools_call *call, uint32_t index,
                       const char *status, struct buf *out)
{
    buf_printf(out,
               "{\"id\":\"fc_%s_%u\",\"type\":\"function_call\",\"status\":\"%s\","
               "\"call_id\":\"call_%s_%u\",\"name\":",
               reply->id, index, status ? status : "in_progress", reply->id, index);
    buf_add(out, call->name.ptr, call->name.len);
    buf_add_str(out, ",\"arguments\":");
    json_print_string(out, status ? call->arguments : span_str(""));
    buf_add_char(out, '}');
}

static uint32_t call_count(const struct reply_piece *piece)
{
    return piece->calls ? piece->calls->count : 0;
}

static struct span thought_so_far(const struct reply_piece *piece)
{
    return span_of(piece->thought.ptr - piece->thought_offset,
                   piece->thought_offset + piece->thought.len);
}

/* An answer of calls alone has no message, nor one that was cut while it was thinking. */
static bool has_message(const struct reply_piece *piece)
{
    bool is_empty = call_count(piece) > 0 || piece->reason == REPLY_GOES_ON ||
                    (thought_so_far(piece).len > 0 && piece->reason == REPLY_LENGTH);
    return text_so_far(piece).len > 0 || !is_empty;
}

/* Calls come behind a message, so with them it is whole. */
static const char *message_status(const struct reply_piece *piece)
{
    return call_count(piece) > 0 ? "completed" : end_status(piece->reason);
}

/* A thought without an answer behind it may have been cut. */
static const char *thought_status(const struct reply_piece *piece)
{
    return text_so_far(piece).len > 0 || call_count(piece) > 0 ? "completed"
                                                               : end_status(piece->reason);
}

static void print_thought_part(struct buf *out, struct span thought)
{
    buf_add_str(out, "{\"type\":\"reasoning_text\",\"text\":");
    json_print_string(out, thought);
    buf_add_char(out, '}');
}

/* |has_part| as in print_message(). */
static void print_thought(const struct reply *reply, const char *status, bool has_part,
                          struct span thought, struct buf *out)
{
    buf_printf(out,
               "{\"id\":\"rs_%s\",\"type\":\"reasoning\",\"status\":\"%s\",\"summary\":[],"
               "\"content\":[",
               reply->id, status);
    if (has_part) {
        print_thought_part(out, thought);
    }
    buf_add_str(out, "]}");
}

/* At the end of a stream the thought is what events have told of it: one that comes behind the
 * beginning of the message is not among them. */
static struct span told_thought(const struct reply *reply, const struct reply_piece *piece)
{
    struct span thought = thought_so_far(piece);
    return reply->ask->is_stream ? span_of(thought.ptr, reply->told_thought_bytes) : thought;
}

/* The items of the whole answer |piece|. */
static void print_output(const struct reply *reply, const struct reply_piece *piece,
                         struct buf *out)
{
    struct span thought = told_thought(reply, piece);
    bool has_thought = thought.len > 0;
    if (has_thought) {
        print_thought(reply, thought_status(piece), true, thought, out);
    }
    if (has_message(piece)) {
        buf_add_str(out, has_thought ? "," : "");
        print_message(reply, message_status(piece), true, text_so_far(piece), out);
    }
    for (uint32_t i = 0; i < call_count(piece); i++) {
        buf_add_str(out, i > 0 || has_message(piece) || has_thought ? "," : "");
        print_call(reply, &piece->calls->calls[i], i, call_status(piece, i), out);
    }
}

/* ---- the object ------------------------------------------------------------------------------ */

static void print_usage(const struct reply *reply, struct buf *out)
{
    buf_printf(out,
               ",\"usage\":{\"input_tokens\":%" PRIu64
               ",\"input_tokens_details\":{\"cached_tokens\":%" PRIu64
               "},\"output_tokens\":%" PRIu64
               ",\"output_tokens_details\":{\"reasoning_tokens\":%" PRIu64
               "},\"total_tokens\":%" PRIu64 "}",
               reply->prompt_tokens, reply->cached_tokens, reply->answer_tokens,
               reply->thought_tokens, reply->prompt_tokens + reply->answer_tokens);
}

static void print_asked(const struct ask *ask, struct buf *out)
{
    print_given(out, "instructions", ask->instructions, "null");
    print_given(out, "metadata", ask->metadata, "{}");
    print_given(out, "tools", ask->given_tools, "[]");
    print_given(out, "tool_choice", ask->given_choice, "\"auto\"");
    print_given(out, "text", (struct span){0}, "{\"format\":");
    buf_add(out, ask->format.ptr, ask->format.len);
    buf_add_str(out, ask->format.len ? "}" : "{\"type\":\"text\"}}");
    buf_add_str(out, ",\"temperature\":");
    print_number(out, ask->sampler.temperature);
    buf_add_str(out, ",\"top_p\":");
    print_number(out, ask->sampler.top_p);
    if (ask->max_tokens != UINT32_MAX) {
        buf_printf(out, ",\"max_output_tokens\":%u", ask->max_tokens);
    } else {
        buf_add_str(out, ",\"max_output_tokens\":null");
    }
}

static void print_effort(const struct ask *ask, struct buf *out)
{
    buf_add_str(out, ",\"reasoning\":{\"effort\":");
    if (ask->effort.len > 0) {
        json_print_string(out, ask->effort);
    } else {
        buf_add_str(out, "null");
    }
    buf_add_str(out, ",\"summary\":null}");
}

/* With the items of |piece|; NULL: there are none yet. */
static void print_object(const struct reply *reply, const char *status,
                         const struct reply_piece *piece, struct buf *out)
{
    bool is_over = reply->reason != REPLY_GOES_ON;
    buf_printf(out,
               "{\"id\":\"resp_%s\",\"object\":\"response\",\"created_at\":%" PRId64
               ",\"status\":\"%s\",\"error\":null,\"incomplete_details\":%s,\"model\":",
               reply->id, reply->created, status,
               reply->reason == REPLY_LENGTH ? "{\"reason\":\"max_output_tokens\"}" : "null");
    json_print_string(out, span_str(reply->model));
    buf_add_str(out, ",\"output\":[");
    if (piece) {
        print_output(reply, piece, out);
    }
    buf_add_char(out, ']');
    print_asked(reply->ask, out);
    buf_printf(out, ",\"parallel_tool_calls\":%s", reply->ask->has_one_call ? "false" : "true");
    buf_add_str(out, ",\"previous_response_id\":null,\"store\":false,"
                     "\"background\":false,\"truncation\":\"disabled\",\"user\":null");
    print_effort(reply->ask, out);
    if (is_over) {
        print_usage(reply, out);
    } else {
        buf_add_str(out, ",\"usage\":null");
    }
    buf_add_char(out, '}');
}

void reply_response_print(const struct reply *reply, const struct reply_piece *piece,
                          struct buf *out)
{
    print_object(reply, end_status(reply->reason), piece, out);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void begin_event(struct reply *reply, const char *type, struct buf *out)
{
    buf_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%u", type, type,
               reply->event_count++);
}

static void end_event(struct buf *out)
{
    buf_add_str(out, "}\n\n");
}

static void tell_object(struct reply *reply, const char *type, const char *status,
                        const struct reply_piece *piece, struct buf *out)
{
    begin_event(reply, type, out);
    buf_add_str(out, ",\"response\":");
    print_object(reply, status, piece, out);
    end_event(out);
}

/* ---- events of a thought, which is the first item ------------------------------------------- */

static void begin_thought_event(struct reply *reply, const char *type, struct buf *out)
{
    begin_event(reply, type, out);
    buf_printf(out, ",\"item_id\":\"rs_%s\",\"output_index\":0,\"content_index\":0", reply->id);
}

static void tell_thought_item(struct reply *reply, const char *type, const char *status,
                              bool has_part, struct span thought, struct buf *out)
{
    begin_event(reply, type, out);
    buf_add_str(out, ",\"output_index\":0,\"item\":");
    print_thought(reply, status, has_part, thought, out);
    end_event(out);
}

static void begin_thought(struct reply *reply, struct buf *out)
{
    tell_thought_item(reply, "response.output_item.added", "in_progress", false, span_str(""), out);
    begin_thought_event(reply, "response.content_part.added", out);
    buf_add_str(out, ",\"part\":");
    print_thought_part(out, span_str(""));
    end_event(out);
    reply->has_thought = true;
}

static void tell_thought_delta(struct reply *reply, struct span thought, struct buf *out)
{
    begin_thought_event(reply, "response.reasoning_text.delta", out);
    buf_add_str(out, ",\"delta\":");
    json_print_string(out, thought);
    end_event(out);
    reply->told_thought_bytes += thought.len;
}

static void end_thought(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    struct span thought = thought_so_far(piece);
    begin_thought_event(reply, "response.reasoning_text.done", out);
    buf_add_str(out, ",\"text\":");
    json_print_string(out, thought);
    end_event(out);
    begin_thought_event(reply, "response.content_part.done", out);
    buf_add_str(out, ",\"part\":");
    print_thought_part(out, thought);
    end_event(out);
    tell_thought_item(reply, "response.output_item.done", thought_status(piece), true, thought,
                      out);
    reply->ends_thought = true;
}

/* The first thought, see told_thought(). */
static void tell_thought(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    bool is_told = !reply->ends_thought && !reply->has_item && piece->told_calls == 0;
    if (is_told && piece->thought.len > 0) {
        if (!reply->has_thought) {
            begin_thought(reply, out);
        }
        tell_thought_delta(reply, piece->thought, out);
    }
    bool is_over = piece->text.len > 0 || call_count(piece) > 0 || piece->reason != REPLY_GOES_ON;
    if (reply->has_thought && !reply->ends_thought && is_over) {
        end_thought(reply, piece, out);
    }
}

/* ---- events of a message, and all ----------------------------------------------------------- */

/* Of the message and its only part. */
static void begin_text_event(struct reply *reply, const char *type, struct buf *out)
{
    begin_event(reply, type, out);
    buf_printf(out, ",\"item_id\":\"msg_%s\",\"output_index\":%u,\"content_index\":0", reply->id,
               reply->has_thought);
}

static void begin_message(struct reply *reply, struct buf *out)
{
    begin_event(reply, "response.output_item.added", out);
    buf_printf(out, ",\"output_index\":%u,\"item\":", reply->has_thought);
    print_message(reply, "in_progress", false, span_str(""), out);
    end_event(out);
    begin_text_event(reply, "response.content_part.added", out);
    buf_add_str(out, ",\"part\":");
    print_part(out, span_str(""));
    end_event(out);
    reply->has_item = true;
}

static void tell_delta(struct reply *reply, struct span text, struct buf *out)
{
    begin_text_event(reply, "response.output_text.delta", out);
    buf_add_str(out, ",\"logprobs\":[],\"delta\":");
    json_print_string(out, text);
    end_event(out);
}

static void end_message(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    struct span text = text_so_far(piece);
    begin_text_event(reply, "response.output_text.done", out);
    buf_add_str(out, ",\"logprobs\":[],\"text\":");
    json_print_string(out, text);
    end_event(out);
    begin_text_event(reply, "response.content_part.done", out);
    buf_add_str(out, ",\"part\":");
    print_part(out, text);
    end_event(out);
    begin_event(reply, "response.output_item.done", out);
    buf_printf(out, ",\"output_index\":%u,\"item\":", reply->has_thought);
    print_message(reply, message_status(piece), true, text, out);
    end_event(out);
    reply->ends_item = true;
}

static void tell_item(struct reply *reply, const struct tools_call *call, uint32_t index,
                      uint32_t place, const char *status, struct buf *out)
{
    begin_event(reply, status ? "response.output_item.done" : "response.output_item.added", out);
    buf_printf(out, ",\"output_index\":%u,\"item\":", place);
    print_call(reply, call, index, status, out);
    end_event(out);
}

static void begin_arguments_event(struct reply *reply, const char *type, uint32_t index,
                                  uint32_t place, struct buf *out)
{
    begin_event(reply, type, out);
    buf_printf(out, ",\"item_id\":\"fc_%s_%u\",\"output_index\":%u", reply->id, index, place);
}

static void tell_arguments_delta(struct reply *reply, struct span arguments, uint32_t index,
                                 uint32_t place, struct buf *out)
{
    begin_arguments_event(reply, "response.function_call_arguments.delta", index, place, out);
    buf_add_str(out, ",\"delta\":");
    json_print_string(out, arguments);
    end_event(out);
}

static void end_call(struct reply *reply, const struct reply_piece *piece, uint32_t index,
                     uint32_t place, struct buf *out)
{
    const struct tools_call *call = &piece->calls->calls[index];
    begin_arguments_event(reply, "response.function_call_arguments.done", index, place, out);
    buf_add_str(out, ",\"name\":");
    buf_add(out, call->name.ptr, call->name.len);
    buf_add_str(out, ",\"arguments\":");
    json_print_string(out, call->arguments);
    end_event(out);
    tell_item(reply, call, index, place, call_status(piece, index), out);
    reply->ended_calls = index + 1;
}

/* What is new of the calls that have not ended. */
static void tell_calls(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    for (uint32_t i = reply->ended_calls; i < call_count(piece); i++) {
        uint32_t place = i + reply->has_item + reply->has_thought;
        struct span arguments = reply_untold_arguments(piece, i);
        if (i >= piece->told_calls) {
            tell_item(reply, &piece->calls->calls[i], i, place, NULL, out);
        }
        if (arguments.len > 0) {
            tell_arguments_delta(reply, arguments, i, place, out);
        }
        if (!is_cut(piece, i) || piece->reason != REPLY_GOES_ON) {
            end_call(reply, piece, i, place, out);
        }
    }
}

void reply_response_print_events(struct reply *reply, const struct reply_piece *piece,
                                 struct buf *out)
{
    bool is_end = piece->reason != REPLY_GOES_ON;
    enum reply_reason reason = reply->reason;
    if (piece->is_first) {
        reply->reason = REPLY_GOES_ON; /* as it was then */
        tell_object(reply, "response.created", "in_progress", NULL, out);
        tell_object(reply, "response.in_progress", "in_progress", NULL, out);
        reply->reason = reason;
    }
    tell_thought(reply, piece, out);
    if (!reply->has_item && has_message(piece)) {
        begin_message(reply, out);
    }
    if (piece->text.len > 0) {
        tell_delta(reply, piece->text, out);
    }
    if (reply->has_item && !reply->ends_item && (is_end || call_count(piece) > 0)) {
        end_message(reply, piece, out);
    }
    tell_calls(reply, piece, out);
    if (!is_end) {
        return;
    }
    tell_object(reply, piece->reason == REPLY_LENGTH ? "response.incomplete" : "response.completed",
                end_status(piece->reason), piece, out);
}

void reply_response_print_error_event(struct reply *reply, struct buf *out, const char *text,
                                      int http_status)
{
    begin_event(reply, "error", out);
    buf_printf(out, ",\"code\":\"%s\",\"param\":null,\"message\":",
               http_status < 500 ? "invalid_request" : "server_error");
    json_print_string(out, span_str(text));
    end_event(out);
}
