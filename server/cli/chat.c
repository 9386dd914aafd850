/* SPDX-License-Identifier: MIT */
/*
 * pte chat: a conversation with a language model in a terminal. The model is at a server, or in a
 * file that a daemon of our own serves (server/cli/chat_daemon.h): there is one way to generate.
 * Lines are edited by libedit (server/cli/line_editor.h), or by the terminal where it is missing.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "server/cli/chat_daemon.h"
#include "server/cli/chat_stream.h"
#include "server/cli/cli.h"
#include "server/cli/client.h"
#include "server/cli/line_editor.h"
#include "server/cli/transfer.h"
#include "server/process/file.h"
#include "server/process/model_name.h"

#define PROMPT_BYTES_MAX ((size_t)16 << 20)
#define HISTORY_BYTES_MAX ((size_t)256 << 20)
#define SCHEMA_BYTES_MAX ((size_t)1 << 20)
#define MODELS_BYTES_MAX ((size_t)4 << 20)
#define NS_PER_S 1e9
#define MAX_TOKENS_MAX (1 << 24)
#define UNSAID UINT64_MAX
#define PROMPT "> "

struct chat {
    const char *place; /* FILE or URL */
    struct client_options client_options;
    struct chat_daemon_options daemon_options;
    const char *schema_path, *temperature;
    uint64_t max_tokens, seed; /* or UNSAID */
    struct chat_daemon daemon;
    struct target target;
    struct client client;
    struct transfer transfer;
    struct buf system; /* owned, as all: the system's text */
    struct buf turns;  /* messages as JSON, each with a comma in front */
    struct buf schema;
    struct buf input; /* bytes that have been read and are no line yet */
    bool is_input_over;
    bool is_terminal;           /* standard output */
    bool is_interactive;        /* standard input */
    struct line_editor *editor; /* owned; NULL: the terminal edits lines */
};

/* ---- signals --------------------------------------------------------------------------------- */

static volatile int is_interrupted;

/* Signals that are blocked while a line is read. */
static sigset_t reading_mask;

static void on_interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* With SA_RESTART: an interrupt cuts no write of an answer. Where a line or an answer is awaited,
 * ppoll() and poll() end all the same. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigprocmask(SIG_BLOCK, NULL, &reading_mask);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

/* ---- the command line ------------------------------------------------------------------------ */

static enum status take_system(void *own, const char *value, struct error *err)
{
    struct chat *chat = own;
    (void)err;
    buf_reset(&chat->system);
    buf_add_str(&chat->system, value);
    return ST_OK;
}

/* It becomes a number of JSON, so it has to be one. */
static enum status take_temperature(void *own, const char *text, struct error *err)
{
    struct chat *chat = own;
    double value;
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    bool is_number = number_parse_f64(&at, end, &value) == NUMBER_OK && at == end;
    chat->temperature = text;
    return is_number && value >= 0 && value <= 100
               ? ST_OK
               : error_set(err, ST_INVALID, "expected a number from 0 to 100");
}

static const struct cli_option own_options[] = {
    {.name = "system",
     .value = "TEXT",
     .type = OPTION_TEXT,
     .set = take_system,
     .doc = "tell the model who it is"},
    {.name = "temperature",
     .value = "X",
     .type = OPTION_TEXT,
     .set = take_temperature,
     .preset = "1",
     .doc = "0 takes the most probable token"},
    {.name = "max-tokens",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct chat, max_tokens),
     .min = 0,
     .max = MAX_TOKENS_MAX,
     .doc = "tokens of an answer at most"},
    {.name = "seed",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct chat, seed),
     .min = 0,
     .max = INT64_MAX,
     .doc = "the same seed gives the same answers"},
    {.name = "json-schema",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct chat, schema_path),
     .doc = "each answer is JSON by this schema"},
    {.name = "tokenizer",
     .value = "PATH",
     .type = OPTION_FILE,
     .at = offsetof(struct chat, daemon_options.tokenizer),
     .doc = "the tokenizer of FILE, if it is not beside it"},
    {.name = "device",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct chat, daemon_options.device),
     .doc = "where FILE runs"},
    {.name = "workers",
     .value = "N",
     .type = OPTION_TEXT,
     .at = offsetof(struct chat, daemon_options.workers),
     .doc = "threads that it uses"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "chat", .options = own_options},
    {.name = "client", .options = client_option_table, .at = offsetof(struct chat, client_options)},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct chat *chat = own;
    return cli_take_only(&chat->place, "FILE or URL", text, err);
}

static enum status parse(struct chat *chat, int argc, char *const argv[], struct error *err)
{
    TRY(cli_option_parse(&cli_chat_command, argc, argv, chat, err));
    return chat->place ? ST_OK : error_set(err, ST_INVALID, "expected FILE or URL");
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The only name without a dot of {"models": ["a", "a.get_bos_id", ...]}: names with one are other
 * methods of a file. */
static enum status take_only(struct chat *chat, struct json *in, struct error *err)
{
    uint32_t count = 0;
    TRY(json_array(in, err));
    while (true) {
        struct json_string name;
        TRY(json_element(in, err));
        if (in->is_closed) {
            break;
        }
        TRY(json_read_string(in, &name, err));
        if (name.bytes < sizeof(chat->target.model) && !memchr(name.raw.ptr, '.', name.raw.len)) {
            json_string_decode(&name, (uint8_t *)chat->target.model);
            chat->target.model[name.bytes] = '\0';
            count++;
        }
    }
    return count == 1
               ? ST_OK
               : error_set(err, ST_NOT_FOUND,
                           "the server has %u models: expected URL/MODEL, see pte ls", count);
}

static enum status read_models(struct chat *chat, struct error *err)
{
    struct json in;
    json_init(&in, buf_span(&chat->transfer.body));
    TRY(json_object(&in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(&in, &key, err));
        if (in.is_closed) {
            return error_set(err, ST_CORRUPT, "models is missing");
        }
        if (json_string_is(&key, "models")) {
            return take_only(chat, &in, err);
        }
        TRY(json_skip(&in, err));
    }
}

static enum status find_model(struct chat *chat, struct error *err)
{
    const struct transfer_request request = {.path = "/v1/models",
                                             .answer_bytes_max = MODELS_BYTES_MAX};
    if (chat->target.model[0]) {
        return ST_OK;
    }
    TRY(transfer_run(&chat->transfer, &request, err));
    enum status status = read_models(chat, err);
    return status == ST_INVALID ? transfer_blame(&chat->transfer, request.path, err) : status;
}

/* Errors name the file: nobody knows the socket. */
static enum status open_file(struct chat *chat, struct error *err)
{
    char name[MODEL_NAME_MAX + 1], text[CHAT_DAEMON_PATH_MAX + MODEL_NAME_MAX + 16];
    model_name_of_file(chat->place, name);
    chat->daemon_options.path = chat->place;
    chat->daemon_options.name = name;
    enum status status =
        chat_daemon_start(&chat->daemon_options, &is_interrupted, &chat->daemon, err);
    chat->daemon_options.name = NULL;
    TRY(status);
    snprintf(text, sizeof(text), "unix:%s:/%s", chat->daemon.socket, name);
    TRY(target_parse(text, &chat->target, err));
    snprintf(chat->target.text, sizeof(chat->target.text), "%s", chat->place);
    return ST_OK;
}

static enum status open_model(struct chat *chat, struct error *err)
{
    TRY(target_is_one(chat->place) ? target_parse(chat->place, &chat->target, err)
                                   : open_file(chat, err));
    TRY(client_init(&chat->client, &chat->target, &chat->client_options, err));
    TRY(transfer_init(&chat->transfer, &chat->client, err));
    return find_model(chat, err);
}

/* Generates one token: a model of a file that cannot chat says so before the user types. */
static enum status try_model(struct chat *chat, struct error *err)
{
    char text[MODEL_NAME_MAX + 128];
    int len = snprintf(text, sizeof(text),
                       "{\"model\":\"%s\",\"max_tokens\":1,"
                       "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                       chat->target.model);
    const struct span body = span_of(text, (size_t)len);
    const struct transfer_request request = {.path = "/v1/chat/completions",
                                             .is_post = true,
                                             .body = &body,
                                             .body_count = 1,
                                             .answer_bytes_max = MODELS_BYTES_MAX};
    return transfer_run(&chat->transfer, &request, err) == ST_CORRUPT ? ST_CORRUPT : ST_OK;
}

/* ---- a request ------------------------------------------------------------------------------- */

static void print_message(struct buf *out, const char *role, struct span text)
{
    buf_printf(out, ",{\"role\":\"%s\",\"content\":", role);
    json_print_string(out, text);
    buf_add_char(out, '}');
}

/* "[...]": the system's text and the conversation. */
static void print_messages(const struct chat *chat, struct buf *out)
{
    size_t begin = out->len;
    if (chat->system.len > 0) {
        print_message(out, "system", buf_span(&chat->system));
    }
    buf_add(out, chat->turns.ptr, chat->turns.len);
    if (!buf_failed(out) && out->len > begin) {
        out->ptr[begin] = '['; /* in place of the first comma */
    } else {
        buf_add_char(out, '[');
    }
    buf_add_char(out, ']');
}

static void print_request(const struct chat *chat, struct buf *out)
{
    buf_add_str(out, "{\"model\":");
    json_print_string(out, span_str(chat->target.model));
    buf_add_str(out, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if (chat->temperature) {
        buf_printf(out, ",\"temperature\":%s", chat->temperature);
    }
    if (chat->max_tokens != UNSAID) {
        buf_printf(out, ",\"max_tokens\":%llu", (unsigned long long)chat->max_tokens);
    }
    if (chat->seed != UNSAID) {
        buf_printf(out, ",\"seed\":%llu", (unsigned long long)chat->seed);
    }
    if (chat->schema.len > 0) {
        buf_add_str(out, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
                         "{\"name\":\"schema\",\"schema\":");
        buf_add(out, chat->schema.ptr, chat->schema.len);
        buf_add_str(out, "}}");
    }
    buf_add_str(out, ",\"messages\":");
    print_messages(chat, out);
    buf_add_char(out, '}');
}

/* Thoughts that were not shown. */
static void print_thought(const struct chat_answer *answer)
{
    if (!answer->has_thought || answer->shows_thought) {
        return;
    }
    if (answer->thought_count > 0) {
        fprintf(stderr, "[thought for %llu tokens]\n", (unsigned long long)answer->thought_count);
    } else {
        fprintf(stderr, "[thought before it answered]\n");
    }
}

static void print_times(const struct chat_answer *answer)
{
    double rest = (double)(answer->all_ns - answer->first_ns) / NS_PER_S;
    uint64_t count = answer->token_count;
    fprintf(stderr, "[");
    if (answer->is_stopped) {
        fprintf(stderr, "stopped, ");
    } else if (answer->is_cut) {
        fprintf(stderr, "cut, ");
    }
    if (count > 1 && rest > 0) {
        fprintf(stderr, "%llu tokens, %.1f tokens/s, ", (unsigned long long)count,
                (double)(count - 1) / rest);
    }
    fprintf(stderr, "first after %.3f s]\n", (double)answer->first_ns / NS_PER_S);
}

/* The answer stays a part of the conversation, even if it was stopped. */
static enum status say(struct chat *chat, struct span text, struct error *err)
{
    struct buf body;
    struct chat_answer answer;
    size_t before = chat->turns.len;
    buf_init(&body, HISTORY_BYTES_MAX);
    chat_answer_init(&answer);
    print_message(&chat->turns, "user", text);
    print_request(chat, &body);
    enum status status =
        buf_failed(&body) || buf_failed(&chat->turns)
            ? error_set(err, ST_TOO_LARGE, "the conversation is too long: see /clear")
            : chat_stream_run(&chat->transfer, buf_span(&body), chat->is_terminal, &is_interrupted,
                              &answer, err);
    if (answer.text.len > 0 || status == ST_OK) {
        putchar('\n');
        fflush(stdout);
        print_thought(&answer);
    }
    if (status == ST_OK) {
        print_message(&chat->turns, "assistant", buf_span(&answer.text));
    } else if (!buf_failed(&chat->turns)) {
        chat->turns.len = before;
    }
    if (status == ST_OK && chat->is_interactive) {
        print_times(&answer);
    }
    chat_answer_fini(&answer);
    buf_fini(&body);
    return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static enum line_end read_more(struct chat *chat)
{
    uint8_t *room = buf_reserve(&chat->input, 4096);
    if (!room) {
        return LINE_FAILED;
    }
    ssize_t len = line_read_bytes(room, 4096, &reading_mask);
    if (len < 0) {
        return errno == EINTR ? LINE_INTERRUPTED : LINE_FAILED;
    }
    buf_commit(&chat->input, (size_t)len);
    chat->is_input_over = len == 0;
    return LINE_WHOLE;
}

/* A line without its end at |out|; the next line overwrites the bytes. */
static enum line_end read_line(struct chat *chat, struct buf *out)
{
    buf_reset(out);
    while (true) {
        const uint8_t *end =
            chat->input.len ? memchr(chat->input.ptr, '\n', chat->input.len) : NULL;
        bool is_last = !end && chat->is_input_over;
        if (is_last && chat->input.len == 0) {
            return LINE_OVER;
        }
        if (end || is_last) {
            size_t len = end ? (size_t)(end - chat->input.ptr) : chat->input.len;
            size_t used = len + (end ? 1 : 0);
            buf_add(out, chat->input.ptr, len);
            memmove(chat->input.ptr, chat->input.ptr + used, chat->input.len - used);
            chat->input.len -= used;
            return LINE_WHOLE;
        }
        enum line_end state = read_more(chat);
        if (state != LINE_WHOLE) {
            return state;
        }
    }
}

static enum status read_all(struct chat *chat, struct error *err)
{
    while (!chat->is_input_over) {
        if (read_more(chat) != LINE_WHOLE) {
            return error_set(err, ST_INVALID, "standard input: %s",
                             buf_failed(&chat->input) ? "it is too long" : strerror(errno));
        }
    }
    struct span text = buf_span(&chat->input);
    while (text.len > 0 && strchr("\n\r", text.ptr[text.len - 1])) {
        text.len--;
    }
    return text.len > 0 ? say(chat, text, err)
                        : error_set(err, ST_INVALID, "standard input: expected a prompt");
}

/* ---- commands -------------------------------------------------------------------------------- */

static const char commands[] = "/help          this list\n"
                               "/clear         forget what was said\n"
                               "/system TEXT   tell the model who it is; without TEXT: show it\n"
                               "/save FILE     write the conversation as JSON\n"
                               "/bye           end; so does Ctrl-D\n"
                               "Ctrl-C stops an answer.\n";

static void save(const struct chat *chat, const char *path)
{
    struct buf out;
    struct error err;
    buf_init(&out, HISTORY_BYTES_MAX);
    buf_add_str(&out, "{\"messages\":");
    print_messages(chat, &out);
    buf_add_str(&out, "}\n");
    enum status status = buf_failed(&out)
                             ? error_set(&err, ST_TOO_LARGE, "/save: the conversation is too long")
                             : cli_write_file("/save", path, buf_span(&out), span_str(""), &err);
    fprintf(stderr, "%s\n", status == ST_OK ? "saved" : err.text);
    buf_fini(&out);
}

static void set_system(struct chat *chat, const char *text)
{
    if (*text) {
        buf_reset(&chat->system);
        buf_add_str(&chat->system, text);
    } else {
        fprintf(stderr, "%.*s\n", SPAN_FMT(buf_span(&chat->system)));
    }
}

/* The text behind |name| in |line|, without blanks in front, or NULL. */
static const char *behind(const char *line, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(line, name, len) != 0 || (line[len] != '\0' && line[len] != ' ')) {
        return NULL;
    }
    return line + len + strspn(line + len, " ");
}

/* False: the conversation ends. */
static bool obey(struct chat *chat, const char *line)
{
    const char *rest;
    if (behind(line, "/bye") || behind(line, "/exit") || behind(line, "/quit")) {
        return false;
    }
    if (behind(line, "/clear")) {
        buf_reset(&chat->turns);
    } else if ((rest = behind(line, "/system")) != NULL) {
        set_system(chat, rest);
    } else if ((rest = behind(line, "/save")) != NULL && *rest) {
        save(chat, rest);
    } else {
        fputs(commands, stderr);
    }
    return true;
}

/* ---- the conversation ------------------------------------------------------------------------ */

static enum status take_line(struct chat *chat, struct buf *line, bool *out_is_over)
{
    struct error err;
    size_t len = line->len;
    buf_add_char(line, '\0');
    if (buf_failed(line) || len == 0) {
        return ST_OK;
    }
    if (line->ptr[0] == '/') {
        *out_is_over = !obey(chat, (const char *)line->ptr);
        return ST_OK;
    }
    if (say(chat, span_of(line->ptr, len), &err) != ST_OK) {
        fprintf(stderr, "pte: %s\n", err.text);
        return err.code == ST_UNWRITTEN ? err.code : ST_OK;
    }
    return ST_OK;
}

/* An interrupt that comes behind the prompt, but before the line is waited for, must not be lost.
 * So ppoll() alone lets it through. One that comes behind the line stops its answer, and one from
 * before the prompt is over. */
static enum line_end prompt(struct chat *chat, struct buf *line)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, NULL);
    is_interrupted = 0;
    enum line_end end;
    if (chat->editor) {
        end = line_editor_read(chat->editor, &reading_mask, line);
    } else {
        fputs(PROMPT, stderr);
        end = read_line(chat, line);
    }
    sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
    return end;
}

/* It is no error that there is none: the terminal then edits lines. */
static void open_editor(struct chat *chat)
{
    struct error ignored;
    if (chat->is_terminal && isatty(STDERR_FILENO) &&
        line_editor_new(PROMPT, &chat->editor, &ignored) != ST_OK) {
        must(!chat->editor);
    }
}

static enum status converse(struct chat *chat, struct error *err)
{
    struct buf line;
    bool is_over = false;
    buf_init(&line, PROMPT_BYTES_MAX);
    open_editor(chat);
    fprintf(stderr, "%s: /help says what can be done here\n", chat->target.model);
    while (!is_over) {
        enum line_end end = prompt(chat, &line);
        if (end == LINE_INTERRUPTED) {
            fputs("\n", stderr);
            continue;
        }
        is_over = end != LINE_WHOLE;
        if (end == LINE_WHOLE && take_line(chat, &line, &is_over) != ST_OK) {
            is_over = true;
        }
    }
    fputs("\n", stderr);
    buf_fini(&line);
    return cli_flush(err);
}

static enum status run_chat(struct chat *chat, struct error *err)
{
    if (chat->schema_path && file_read(chat->schema_path, &chat->schema, err) != ST_OK) {
        return error_prefix(err, "--json-schema: %.128s: ", chat->schema_path);
    }
    catch_interrupts();
    TRY(open_model(chat, err));
    if (!chat->is_interactive) {
        return read_all(chat, err);
    }
    TRY(chat->daemon.pid ? try_model(chat, err) : ST_OK);
    return converse(chat, err);
}

static enum status chat_main(int argc, char *const argv[], struct error *err)
{
    struct chat chat = {.client_options = CLIENT_OPTIONS_DEFAULT,
                        .max_tokens = UNSAID,
                        .seed = UNSAID,
                        .is_terminal = isatty(STDOUT_FILENO),
                        .is_interactive = isatty(STDIN_FILENO)};
    buf_init(&chat.system, PROMPT_BYTES_MAX);
    buf_init(&chat.turns, HISTORY_BYTES_MAX);
    buf_init(&chat.schema, SCHEMA_BYTES_MAX);
    buf_init(&chat.input, PROMPT_BYTES_MAX);
    enum status status = parse(&chat, argc, argv, err);
    status = status == ST_OK ? run_chat(&chat, err) : status;
    transfer_fini(&chat.transfer);
    chat_daemon_stop(&chat.daemon);
    line_editor_free(chat.editor);
    buf_fini(&chat.input);
    buf_fini(&chat.schema);
    buf_fini(&chat.turns);
    buf_fini(&chat.system);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_chat_command, chat_main(argc, argv, &err), &err);
}

const struct cli_command cli_chat_command = {
    .name = "chat",
    .usage = "chat [OPTION]... FILE.pte|URL[/MODEL]",
    .summary = "talk with a language model in a terminal",
    .about =
        "Talks with the model at a server, or with the one in FILE, for which a pted of its own\n"
        "is started. If standard input is no terminal, all of it is one prompt.\n",
    .after = CLIENT_HELP "\n"
                         "Example:\n"
                         "  pte chat --temperature 0 llama.pte\n",
    .groups = groups,
    .take = take,
    .run = run,
};
