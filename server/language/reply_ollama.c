/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_ollama.h"

#include <inttypes.h>
#include <time.h>

#include "protocol/json.h"
#include "protocol/oip_reply.h"
#include "server/language/reply_marks.h"
#include "server/language/tools.h"

#define NS_PER_S 1000000000u

static bool is_chat(const struct reply *reply)
{
    return reply->ask->form == ASK_OLLAMA_CHAT;
}

/* Loading is what a request without a prompt asks for; keep_alive 0 means the contrary. */
static const char *done_reason(const struct reply *reply, enum reply_reason reason)
{
    const struct ask *ask = reply->ask;
    return ask->is_load             ? ask->has_keep && ask->keep_ns == 0 ? "unload" : "load"
           : reason == REPLY_LENGTH ? "length"
                                    : "stop"; /* calls of tools, too */
}

void reply_ollama_print_time(struct buf *out, uint64_t wall_ns)
{
    time_t s = (time_t)(wall_ns / NS_PER_S);
    char text[sizeof("2026-01-01T00:00:00")];
    struct tm tm;
    gmtime_r(&s, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(out, "\"%s.%09uZ\"", text, (unsigned)(wall_ns % NS_PER_S));
}

static void begin_line(const struct reply *reply, struct buf *out)
{
    buf_add_str(out, "{\"model\":");
    json_print_string(out, span_str(reply->model));
    buf_add_str(out, ",\"created_at\":");
    reply_ollama_print_time(out, reply->wall_ns);
}

/* |arguments| is an object of JSON. Between its tokens there may be the end of a line, which would
 * be that of the answer's. */
static void print_arguments(struct span arguments, struct buf *out)
{
    for (size_t i = 0; i < arguments.len; i++) {
        uint8_t c = arguments.ptr[i];
        buf_add_char(out, c == '\n' || c == '\r' ? ' ' : (char)c);
    }
}

/* Calls from |first| up to |end|. */
static void print_calls(const struct reply *reply, const struct tools_calls *calls, uint32_t first,
                        uint32_t end, struct buf *out)
{
    buf_add_str(out, ",\"tool_calls\":[");
    for (uint32_t i = first; i < end; i++) {
        const struct tools_call *call = &calls->calls[i];
        bool is_cut = calls->is_cut && i + 1 == calls->count;
        buf_printf(out, "%s{\"id\":\"call_%s_%u\",\"function\":{\"index\":%u,\"name\":",
                   i > first ? "," : "", reply->id, i, i);
        buf_add(out, call->name.ptr, call->name.len);
        buf_add_str(out, ",\"arguments\":");
        print_arguments(is_cut ? span_str("{}") : call->arguments, out);
        buf_add_str(out, "}}");
    }
    buf_add_char(out, ']');
}

static void print_thought(struct span thought, struct buf *out)
{
    if (thought.len > 0) {
        buf_add_str(out, ",\"thinking\":");
        json_print_string(out, thought);
    }
}

/* Calls that are over: this API has only whole ones. */
static uint32_t ended_calls(const struct reply_piece *piece)
{
    uint32_t count = piece->calls ? piece->calls->count : 0;
    return count > 0 && piece->calls->is_cut && piece->reason == REPLY_GOES_ON ? count - 1 : count;
}

/* "message" of a chat, else "response". */
static void print_content(const struct reply *reply, const struct reply_piece *piece,
                          struct buf *out)
{
    uint32_t end = ended_calls(piece);
    buf_add_str(out, is_chat(reply) ? ",\"message\":{\"role\":\"assistant\",\"content\":"
                                    : ",\"response\":");
    json_print_string(out, piece->text);
    print_thought(piece->thought, out);
    if (is_chat(reply)) {
        if (end > reply->ended_calls) {
            print_calls(reply, piece->calls, reply->ended_calls, end, out);
        }
        buf_add_char(out, '}');
    }
}

static void print_marks(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    if (reply->ask->wants_logprobs) {
        buf_add_str(out, ",\"logprobs\":");
        reply_marks_print_list(reply, piece, out);
    }
}

static void end_answer(const struct reply *reply, enum reply_reason reason, struct buf *out)
{
    buf_printf(out, ",\"done\":true,\"done_reason\":\"%s\"", done_reason(reply, reason));
    if (!reply->ask->is_load) {
        buf_printf(out,
                   ",\"total_duration\":%" PRIu64 ",\"load_duration\":%" PRIu64
                   ",\"prompt_eval_count\":%" PRIu64 ",\"prompt_eval_duration\":%" PRIu64
                   ",\"eval_count\":%" PRIu64 ",\"eval_duration\":%" PRIu64,
                   reply->total_ns, reply->load_ns, reply->prompt_tokens, reply->prompt_ns,
                   reply->answer_tokens, reply->answer_ns);
    }
    buf_add_char(out, '}');
}

void reply_ollama_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    begin_line(reply, out);
    print_content(reply, piece, out);
    print_marks(reply, piece, out);
    end_answer(reply, piece->reason, out);
}

/* The last line has no text: clients add up those before it. */
void reply_ollama_print_lines(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    static const struct reply_piece nothing = {.choice = 0};
    if (piece->text.len > 0 || piece->thought.len > 0 || ended_calls(piece) > reply->ended_calls ||
        piece->mark_count > 0) {
        begin_line(reply, out);
        print_content(reply, piece, out);
        print_marks(reply, piece, out);
        buf_add_str(out, ",\"done\":false}\n");
        reply->ended_calls = ended_calls(piece);
    }
    if (piece->reason != REPLY_GOES_ON) {
        begin_line(reply, out);
        print_content(reply, &nothing, out);
        end_answer(reply, piece->reason, out);
        buf_add_char(out, '\n');
    }
}

void reply_ollama_print_error_line(struct reply *reply, struct buf *out, const char *text,
                                   int http_status)
{
    (void)reply;
    (void)http_status;
    oip_print_error(out, text);
    buf_add_char(out, '\n');
}
