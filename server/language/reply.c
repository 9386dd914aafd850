/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/table.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/oip_reply.h"
#include "server/language/reply_cohere.h"
#include "server/language/reply_grpc.h"
#include "server/language/reply_llama.h"
#include "server/language/reply_marks.h"
#include "server/language/reply_message.h"
#include "server/language/reply_ollama.h"
#include "server/language/reply_response.h"
#include "server/language/tools.h"
#include "server/language/words.h"

static const char *reason_text(enum reply_reason reason)
{
    static const char *const texts[] = {[REPLY_GOES_ON] = "null",
                                        [REPLY_STOP] = "\"stop\"",
                                        [REPLY_LENGTH] = "\"length\"",
                                        [REPLY_TOOLS] = "\"tool_calls\""};
    TABLE_ENDS_WITH(texts, REPLY_TOOLS);
    return texts[reason];
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct span reply_untold_arguments(const struct reply_piece *piece, uint32_t index)
{
    struct span arguments = piece->calls->calls[index].arguments;
    size_t told = index + 1 < piece->told_calls    ? arguments.len
                  : index + 1 == piece->told_calls ? piece->told_argument_bytes
                                                   : 0;
    return told > 0 ? span_of(arguments.ptr + told, arguments.len - told) : arguments;
}

uint32_t reply_first_untold_call(const struct reply_piece *piece)
{
    return piece->told_calls > 0 ? piece->told_calls - 1 : 0;
}

bool reply_has_news_of_calls(const struct reply_piece *piece)
{
    return piece->calls && (piece->calls->count > piece->told_calls ||
                            reply_untold_arguments(piece, piece->calls->count - 1).len > 0);
}

/* ---- parts ----------------------------------------------------------------------------------- */

size_t reply_count_characters(struct span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += (text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

/* ---- OpenAI's API ---------------------------------------------------------------------------- */

/* Up to the choices. */
static void begin_object(const struct reply *reply, const char *object, struct buf *out)
{
    buf_printf(out, "{\"id\":\"%s-%s\",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
               reply->ask->form == ASK_CHAT ? "chatcmpl" : "cmpl", reply->id, object,
               reply->created);
    json_print_string(out, span_str(reply->model));
}

/* What of the answer's tokens was not its text. */
static void print_details(const struct reply *reply, struct buf *out)
{
    buf_add_str(out, ",\"completion_tokens_details\":{");
    if (reply->thinks) {
        buf_printf(out, "\"reasoning_tokens\":%" PRIu64, reply->thought_tokens);
    }
    if (reply->ask->prediction.ptr) {
        buf_printf(out,
                   "%s\"accepted_prediction_tokens\":%" PRIu64
                   ",\"rejected_prediction_tokens\":%" PRIu64,
                   reply->thinks ? "," : "", reply->accepted_tokens, reply->rejected_tokens);
    }
    buf_add_char(out, '}');
}

static void print_usage(const struct reply *reply, struct buf *out)
{
    buf_printf(out,
               "{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
               ",\"total_tokens\":%" PRIu64 ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRIu64
               "}",
               reply->prompt_tokens, reply->answer_tokens,
               reply->prompt_tokens + reply->answer_tokens, reply->cached_tokens);
    if (reply->thinks || reply->ask->prediction.ptr) {
        print_details(reply, out);
    }
    buf_add_char(out, '}');
}

static void end_choice(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    reply_marks_print(reply, piece, out);
    buf_printf(out, ",\"finish_reason\":%s}", reason_text(piece->reason));
}

static void print_text(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    buf_printf(out, "{\"index\":%u,\"text\":", piece->choice);
    json_print_string(out, piece->text);
    reply_marks_print_prompt(reply, piece, out);
    end_choice(reply, piece, out);
}

/* The members of a call that has begun, but its arguments. */
static void print_call_begin(const struct reply *reply, const struct reply_piece *piece,
                             uint32_t index, struct buf *out)
{
    struct span name = piece->calls->calls[index].name;
    buf_printf(out,
               "\"id\":\"call_%s_%u_%u\",\"type\":\"function\",\"function\":{\"name\":", reply->id,
               piece->choice, index);
    buf_add(out, name.ptr, name.len);
    buf_add_char(out, ',');
}

static void print_arguments(struct span arguments, struct buf *out)
{
    buf_add_str(out, "\"arguments\":");
    json_print_string(out, arguments);
    buf_add_str(out, "}}");
}

static void print_calls(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    buf_add_str(out, "\"tool_calls\":[");
    for (uint32_t i = 0; i < piece->calls->count; i++) {
        buf_add_str(out, i ? ",{" : "{");
        print_call_begin(reply, piece, i, out);
        print_arguments(piece->calls->calls[i].arguments, out);
    }
    buf_add_char(out, ']');
}

/* What is new of them. Each has its index, and the rest as far as it has not been told. */
static void print_call_deltas(const struct reply *reply, const struct reply_piece *piece,
                              struct buf *out)
{
    const char *before = "";
    buf_add_str(out, "\"tool_calls\":[");
    for (uint32_t i = reply_first_untold_call(piece); i < piece->calls->count; i++) {
        struct span arguments = reply_untold_arguments(piece, i);
        if (i < piece->told_calls && arguments.len == 0) {
            continue;
        }
        buf_printf(out, "%s{\"index\":%u,", before, i);
        if (i < piece->told_calls) {
            buf_add_str(out, "\"function\":{");
        } else {
            print_call_begin(reply, piece, i, out);
        }
        print_arguments(arguments, out);
        before = ",";
    }
    buf_add_char(out, ']');
}

/* Servers have moved from the first name to the second, and clients read either. */
static void print_thought(struct span thought, struct buf *out)
{
    buf_add_str(out, "\"reasoning_content\":");
    json_print_string(out, thought);
    buf_add_str(out, ",\"reasoning\":");
    json_print_string(out, thought);
}

static void print_message(const struct reply *reply, const struct reply_piece *piece,
                          struct buf *out)
{
    buf_printf(out,
               "{\"index\":%u,\"message\":{\"role\":\"assistant\",\"content\":", piece->choice);
    if (piece->calls && piece->text.len == 0) {
        buf_add_str(out, "null");
    } else {
        json_print_string(out, piece->text);
    }
    buf_add_str(out, ",\"refusal\":null");
    if (piece->thought.len > 0) {
        buf_add_char(out, ',');
        print_thought(piece->thought, out);
    }
    if (piece->calls) {
        buf_add_char(out, ',');
        print_calls(reply, piece, out);
    }
    buf_add_char(out, '}');
    end_choice(reply, piece, out);
}

static void print_delta(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    const char *before = "";
    buf_printf(out, "{\"index\":%u,\"delta\":{", piece->choice);
    if (piece->is_first) {
        buf_add_str(out, "\"role\":\"assistant\"");
        before = ",";
    }
    if (piece->thought.len > 0) {
        buf_add_str(out, before);
        print_thought(piece->thought, out);
        before = ",";
    }
    if ((piece->is_first && !piece->calls && piece->thought.len == 0) || piece->text.len > 0) {
        buf_printf(out, "%s\"content\":", before);
        json_print_string(out, piece->text);
        before = ",";
    }
    if (reply_has_news_of_calls(piece)) {
        buf_add_str(out, before);
        print_call_deltas(reply, piece, out);
    }
    buf_add_char(out, '}');
    end_choice(reply, piece, out);
}

/* ---- generate -------------------------------------------------------------------------------- */

/* Also an event: there is one choice, so the answer is the choice. */
static void print_generated(const struct reply *reply, const struct reply_piece *piece,
                            struct buf *out)
{
    buf_add_char(out, '{');
    if (reply->ask->id.len) {
        oip_print_id(out, reply->ask->id);
    }
    buf_add_str(out, "\"model_name\":");
    json_print_string(out, span_str(reply->model));
    buf_printf(out, ",\"model_version\":\"%s\",\"text_output\":", reply->version);
    json_print_string(out, piece->text);
    if (piece->reason != REPLY_GOES_ON) {
        buf_printf(out, ",\"finish_reason\":%s,\"usage\":", reason_text(piece->reason));
        print_usage(reply, out);
    }
    buf_add_char(out, '}');
}

/* ---- whole answers --------------------------------------------------------------------------- */

/* The choices of OpenAI's API are a list, and the first one begins it. */
static void begin_choice(const struct reply *reply, const struct reply_piece *piece,
                         const char *object, struct buf *out)
{
    if (piece->choice == 0) {
        begin_object(reply, object, out);
        if (reply->ask->form == ASK_CHAT) { /* its choices have one prompt */
            reply_marks_print_prompt(reply, piece, out);
        }
        buf_add_str(out, ",\"choices\":[");
    } else {
        buf_add_char(out, ',');
    }
}

static void print_completion(const struct reply *reply, const struct reply_piece *piece,
                             struct buf *out)
{
    begin_choice(reply, piece, "text_completion", out);
    print_text(reply, piece, out);
}

static void print_chat(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    begin_choice(reply, piece, "chat.completion", out);
    print_message(reply, piece, out);
}

static void print_list_end(const struct reply *reply, struct buf *out)
{
    buf_add_str(out, "],\"usage\":");
    print_usage(reply, out);
    buf_add_char(out, '}');
}

/* ---- streams --------------------------------------------------------------------------------- */

static void begin_event(const struct reply *reply, struct buf *out)
{
    bool is_chat = reply->ask->form == ASK_CHAT;
    buf_add_str(out, "data: ");
    begin_object(reply, is_chat ? "chat.completion.chunk" : "text_completion", out);
    buf_add_str(out, ",\"choices\":[");
}

static void print_chunk(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    begin_event(reply, out);
    (reply->ask->form == ASK_CHAT ? print_delta : print_text)(reply, piece, out);
    buf_add_str(out, reply->ask->wants_usage ? "],\"usage\":null}\n\n" : "]}\n\n");
}

static void print_last_chunk(const struct reply *reply, struct buf *out)
{
    if (reply->ask->wants_usage) {
        begin_event(reply, out);
        buf_add_str(out, "],\"usage\":");
        print_usage(reply, out);
        buf_add_str(out, "}\n\n");
    }
    buf_add_str(out, "data: [DONE]\n\n");
}

static void print_generated_event(struct reply *reply, const struct reply_piece *piece,
                                  struct buf *out)
{
    buf_add_str(out, "data: ");
    print_generated(reply, piece, out);
    buf_add_str(out, "\n\n");
}

/* ---- errors ---------------------------------------------------------------------------------- */

struct kind {
    int status;
    const char *type, *param, *code;
};

static const struct kind *kind_of(int http_status)
{
    static const struct kind kinds[] = {
        {400, "\"invalid_request_error\"", "null", "null"},
        {401, "\"invalid_request_error\"", "null", "\"invalid_api_key\""},
        {403, "\"permission_error\"", "null", "null"},
        {404, "\"invalid_request_error\"", "\"model\"", "\"model_not_found\""},
        {413, "\"invalid_request_error\"", "null", "\"request_too_large\""},
        {429, "\"rate_limit_error\"", "null", "\"rate_limit_exceeded\""},
        {503, "\"server_error\"", "null", "\"unavailable\""},
        {504, "\"server_error\"", "null", "\"timeout\""},
    };
    static const struct kind client = {0, "\"invalid_request_error\"", "null", "null"};
    static const struct kind server = {0, "\"server_error\"", "null", "null"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].status == http_status) {
            return &kinds[i];
        }
    }
    return http_status < 500 ? &client : &server;
}

void reply_print_error(struct buf *out, const char *text, int http_status)
{
    const struct kind *kind = kind_of(http_status);
    buf_add_str(out, "{\"error\":{\"message\":");
    json_print_string(out, span_str(text));
    buf_printf(out, ",\"type\":%s,\"param\":%s,\"code\":%s}}", kind->type, kind->param, kind->code);
}

void reply_print_error_data(struct buf *out, const char *text, int http_status)
{
    buf_add_str(out, "data: ");
    reply_print_error(out, text, http_status);
    buf_add_str(out, "\n\n");
}

static void print_error_event(struct reply *reply, struct buf *out, const char *text,
                              int http_status)
{
    (void)reply;
    reply_print_error_data(out, text, http_status);
}

static void print_generate_error(struct reply *reply, struct buf *out, const char *text,
                                 int http_status)
{
    (void)reply;
    (void)http_status; /* the protocol has no member for it */
    buf_add_str(out, "data: ");
    oip_print_error(out, text);
    buf_add_str(out, "\n\n");
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* The functions of one form; NULL: nothing is printed there. */
struct printer {
    enum ask_form form;
    void (*choice)(const struct reply *reply, const struct reply_piece *piece, struct buf *out);
    void (*rest)(const struct reply *reply, struct buf *out);
    void (*event)(struct reply *reply, const struct reply_piece *piece, struct buf *out);
    void (*end)(const struct reply *reply, struct buf *out);
    void (*error)(struct reply *reply, struct buf *out, const char *text, int http_status);
};

static const struct printer printers[] = {
    {ASK_COMPLETION, print_completion, print_list_end, print_chunk, print_last_chunk,
     print_error_event},
    {ASK_CHAT, print_chat, print_list_end, print_chunk, print_last_chunk, print_error_event},
    {ASK_GENERATE, print_generated, NULL, print_generated_event, NULL, print_generate_error},
    {ASK_RESPONSE, reply_response_print, NULL, reply_response_print_events, NULL,
     reply_response_print_error_event},
    {ASK_MESSAGE, reply_message_print, NULL, reply_message_print_events, NULL,
     reply_message_print_error_event},
    {ASK_COHERE, reply_cohere_print, NULL, reply_cohere_print_events, reply_cohere_print_end,
     reply_cohere_print_error_event},
    {ASK_LLAMA, reply_llama_print, NULL, reply_llama_print_events, NULL, print_error_event},
    {ASK_INFILL, reply_llama_print, NULL, reply_llama_print_events, NULL, print_error_event},
    {ASK_OLLAMA_CHAT, reply_ollama_print, NULL, reply_ollama_print_lines, NULL,
     reply_ollama_print_error_line},
    {ASK_OLLAMA_GENERATE, reply_ollama_print, NULL, reply_ollama_print_lines, NULL,
     reply_ollama_print_error_line},
};

static const struct printer message_printer = {
    ASK_GENERATE, reply_grpc_print, NULL, reply_grpc_print_event, NULL, NULL};

static const struct printer *printer_of(const struct reply *reply)
{
    if (reply->ask->is_message) {
        return &message_printer;
    }
    for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++) {
        if (printers[i].form == reply->ask->form) {
            return &printers[i];
        }
    }
    unreachable();
}

void reply_print_choice(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    printer_of(reply)->choice(reply, piece, out);
}

void reply_print_rest(const struct reply *reply, struct buf *out)
{
    const struct printer *printer = printer_of(reply);
    if (printer->rest) {
        printer->rest(reply, out);
    }
}

void reply_print_event(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    printer_of(reply)->event(reply, piece, out);
}

void reply_print_end(const struct reply *reply, struct buf *out)
{
    const struct printer *printer = printer_of(reply);
    if (printer->end) {
        printer->end(reply, out);
    }
}

void reply_print_error_event(struct reply *reply, struct buf *out, const char *text,
                             int http_status)
{
    printer_of(reply)->error(reply, out, text, http_status);
}
