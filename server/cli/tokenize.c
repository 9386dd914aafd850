/* SPDX-License-Identifier: MIT */
/* The command `pte tokenize`: texts to tokens and back, as a model's tokenizer does it. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json.h"
#include "server/cli/cli.h"
#include "server/cli/option.h"
#include "server/text/tokenizer/tokenizer.h"

#define OUTPUT_BYTES_MAX ((size_t)1 << 30)
#define READ_BYTES 65536

enum form { FORM_IDS, FORM_TEXT, FORM_JSON };

struct wish {
    const char *path, *text; /* |text| NULL: standard input */
    unsigned pattern;        /* enum tokenizer_pattern */
    enum form form;
    bool decodes, adds_special, parses_special, skips_special;
};

static enum status set_ids(void *own, const char *value, struct error *err)
{
    struct wish *wish = own;
    (void)value;
    (void)err;
    wish->form = FORM_IDS;
    return ST_OK;
}

static enum status set_text(void *own, const char *value, struct error *err)
{
    struct wish *wish = own;
    (void)value;
    (void)err;
    wish->form = FORM_TEXT;
    return ST_OK;
}

static enum status set_json(void *own, const char *value, struct error *err)
{
    struct wish *wish = own;
    (void)value;
    (void)err;
    wish->form = FORM_JSON;
    return ST_OK;
}

static const struct cli_option own_options[] = {
    {.name = "ids",
     .type = OPTION_SWITCH,
     .set = set_ids,
     .doc = "print the ids of the tokens in one line (the default)"},
    {.name = "text",
     .type = OPTION_SWITCH,
     .set = set_text,
     .doc = "print a line for each token: its id, and its text as in the file"},
    {.name = "json",
     .type = OPTION_SWITCH,
     .set = set_json,
     .doc = "print {\"ids\": [...], \"tokens\": [...]}; with --decode {\"text\": \"...\"}"},
    {.name = "decode",
     .type = OPTION_SWITCH,
     .at = offsetof(struct wish, decodes),
     .doc = "the text has ids: print what they stand for"},
    {.name = "add-special",
     .type = OPTION_SWITCH,
     .at = offsetof(struct wish, adds_special),
     .doc = "with the tokens that the file puts around a text"},
    {.name = "parse-special",
     .type = OPTION_SWITCH,
     .at = offsetof(struct wish, parses_special),
     .doc = "special tokens that are written in the text become their ids"},
    {.name = "skip-special",
     .type = OPTION_SWITCH,
     .at = offsetof(struct wish, skips_special),
     .doc = "with --decode: leave special tokens out"},
    {.name = "pattern",
     .value = "NAME",
     .type = OPTION_WORD,
     .at = offsetof(struct wish, pattern),
     .words = "auto gpt2 cl100k o200k llama3",
     .preset = "auto",
     .doc = "for a .tiktoken file: gpt2, cl100k, o200k or llama3; auto chooses by the number of "
            "ranks"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "tokenize", .options = own_options},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct wish *wish = own;
    if (wish->path && wish->text) {
        return error_set(err, ST_INVALID, "expected one text, got '%.64s' as well", text);
    }
    *(wish->path ? &wish->text : &wish->path) = text;
    return ST_OK;
}

static enum status read_input(const struct wish *wish, struct buf *out, struct error *err)
{
    if (wish->text && strcmp(wish->text, "-") != 0) {
        buf_add_str(out, wish->text);
    } else {
        uint8_t bytes[READ_BYTES];
        size_t len;
        while (!buf_failed(out) && (len = fread(bytes, 1, sizeof(bytes), stdin)) > 0) {
            buf_add(out, bytes, len);
        }
        if (ferror(stdin)) {
            return error_set(err, status_of_errno(errno), "standard input: %s", strerror(errno));
        }
    }
    return buf_failed(out)
               ? error_set(err, ST_TOO_LARGE, "the text has more than %zu bytes", out->max_bytes)
               : ST_OK;
}

static void print_json(const struct tokenizer *tokenizer, const struct token_list *list,
                       struct buf *out)
{
    buf_add_str(out, "{\"ids\":[");
    for (size_t i = 0; i < list->count; i++) {
        buf_printf(out, "%s%u", i ? "," : "", list->ids[i]);
    }
    buf_add_str(out, "],\"tokens\":[");
    for (size_t i = 0; i < list->count; i++) {
        buf_add_str(out, i ? "," : "");
        json_print_string(out, tokenizer_text(tokenizer, list->ids[i]));
    }
    buf_add_str(out, "]}\n");
}

static void print_tokens(const struct wish *wish, const struct tokenizer *tokenizer,
                         const struct token_list *list, struct buf *out)
{
    if (wish->form == FORM_JSON) {
        print_json(tokenizer, list, out);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (wish->form == FORM_TEXT) {
            buf_printf(out, "%u\t", list->ids[i]);
            json_print_string(out, tokenizer_text(tokenizer, list->ids[i]));
            buf_add_char(out, '\n');
        } else {
            buf_printf(out, "%s%u", i ? " " : "", list->ids[i]);
        }
    }
    if (wish->form == FORM_IDS) {
        buf_add_char(out, '\n');
    }
}

static enum status encode(const struct wish *wish, const struct tokenizer *tokenizer,
                          struct span text, struct buf *out, struct error *err)
{
    struct token_list list;
    token_list_init(&list);
    unsigned flags = (wish->adds_special ? TOKENIZER_ADD_SPECIAL : 0u) |
                     (wish->parses_special ? TOKENIZER_PARSE_SPECIAL : 0u);
    enum status status = tokenizer_encode(tokenizer, text, flags, SIZE_MAX, &list, err);
    if (status == ST_OK) {
        print_tokens(wish, tokenizer, &list, out);
    }
    token_list_fini(&list);
    return status;
}

/* Numbers with anything between them that JSON or a shell has: blanks, commas, brackets. */
static enum status parse_ids(const struct tokenizer *tokenizer, struct span text,
                             struct token_list *list, struct error *err)
{
    for (size_t at = 0; at < text.len;) {
        uint64_t id = 0;
        if (memchr(" \t\r\n,[]", text.ptr[at], 8)) {
            at++;
            continue;
        }
        size_t start = at;
        while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9' && id < UINT32_MAX) {
            id = id * 10 + (uint64_t)(text.ptr[at++] - '0');
        }
        if (at == start) {
            return error_set(err, ST_INVALID, "expected the ids of tokens, got '%.*s'",
                             SPAN_SHORT(span_of(text.ptr + at, text.len - at)));
        }
        if (id >= tokenizer_size(tokenizer)) {
            return error_set(err, ST_INVALID, "there is no token %llu; the ids end at %u",
                             (unsigned long long)id, tokenizer_size(tokenizer) - 1);
        }
        TRY(token_list_add(list, (uint32_t)id, err));
    }
    return ST_OK;
}

static enum status decode(const struct wish *wish, const struct tokenizer *tokenizer,
                          struct span text, struct buf *out, struct error *err)
{
    struct token_list list;
    struct buf decoded;
    token_list_init(&list);
    buf_init(&decoded, OUTPUT_BYTES_MAX);
    enum status status = parse_ids(tokenizer, text, &list, err);
    if (status == ST_OK) {
        status =
            tokenizer_decode(tokenizer, list.ids, list.count, wish->skips_special, &decoded, err);
    }
    if (status == ST_OK && wish->form == FORM_JSON) {
        buf_add_str(out, "{\"text\":");
        json_print_string(out, buf_span(&decoded));
        buf_add_str(out, "}\n");
    } else if (status == ST_OK) {
        buf_add(out, decoded.ptr, decoded.len);
    }
    buf_fini(&decoded);
    token_list_fini(&list);
    return status;
}

static enum status answer(const struct wish *wish, const struct tokenizer *tokenizer,
                          struct error *err)
{
    struct buf text, out;
    buf_init(&text, TOKENIZER_TEXT_MAX);
    buf_init(&out, OUTPUT_BYTES_MAX);
    enum status status = read_input(wish, &text, err);
    if (status == ST_OK) {
        status = wish->decodes ? decode(wish, tokenizer, buf_span(&text), &out, err)
                               : encode(wish, tokenizer, buf_span(&text), &out, err);
    }
    status = status == ST_OK ? cli_write(&out, err) : status;
    buf_fini(&text);
    buf_fini(&out);
    return status;
}

static enum status tokenize(int argc, char *const argv[], struct error *err)
{
    struct wish wish = {.pattern = TOKENIZER_PATTERN_AUTO};
    struct tokenizer *tokenizer;
    TRY(cli_option_parse(&cli_tokenize_command, argc, argv, &wish, err));
    if (!wish.path) {
        return error_set(err, ST_INVALID, "expected a tokenizer's file or its folder");
    }
    TRY(tokenizer_load_pattern(wish.path, (enum tokenizer_pattern)wish.pattern, &tokenizer, err));
    enum status status = answer(&wish, tokenizer, err);
    tokenizer_free(tokenizer);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_tokenize_command, tokenize(argc, argv, &err), &err);
}

const struct cli_command cli_tokenize_command = {
    .name = "tokenize",
    .usage = "tokenize [OPTION]... FILE|DIR [TEXT|-]",
    .summary = "text to tokens and back, by a model's tokenizer",
    .about =
        "FILE is a tokenizer.json, a tokenizer.model of SentencePiece or a .tiktoken file; DIR\n"
        "has one of them. Without TEXT, or with -, the text is read from standard input.\n",
    .after = "Example:\n"
             "  pte tokenize --text tokenizer.json 'Hello world'\n",
    .groups = groups,
    .take = take,
    .run = run,
};
