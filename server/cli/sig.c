/* SPDX-License-Identifier: MIT */
/* Signatures on the command line. The canonical line holds the bytes of the signature as they are;
 * the readable line is always text. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json.h"
#include "protocol/pytree.h"
#include "protocol/rawsig.h"
#include "protocol/sig.h"
#include "protocol/sip.h"
#include "server/cli/cli.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define MEMORY_BYTES_MAX ((size_t)2 << 30)
#define EXIT_REFUSED 1

/* A signature in two spellings. */
struct answer {
    struct arena *arena; /* borrowed: for structures that a reader builds */
    struct buf readable, canonical;
};

static enum status read_lex(struct span text, struct answer *answer, struct error *err)
{
    struct sig_reader in;
    struct sig_item item;
    sig_init(&in, text);
    while (!sig_is_at_end(&in)) {
        TRY(sig_next(&in, &item, err));
        buf_printf(&answer->readable, "%s%c ", answer->readable.len ? ", " : "", item.tag);
        if (item.tag >= 'A' && item.tag <= 'Z') {
            json_print_string(&answer->readable, item.content);
            sig_add_span(&answer->canonical, item.tag, item.content);
        } else {
            buf_printf(&answer->readable, "%" PRId64, item.value);
            sig_add_integer(&answer->canonical, item.tag, item.value);
        }
    }
    return ST_OK;
}

static enum status read_version(struct span text, enum rawsig_version version,
                                struct answer *answer, struct error *err)
{
    struct rawsig sig;
    TRY(rawsig_parse(text, version, answer->arena, &sig, err));
    rawsig_print(&sig, version, &answer->readable);
    rawsig_mangle(&sig, version, &answer->canonical);
    return ST_OK;
}

static enum status read_raw(struct span text, struct answer *answer, struct error *err)
{
    return read_version(text, RAWSIG_1, answer, err);
}

static enum status read_raw_with_orders(struct span text, struct answer *answer, struct error *err)
{
    return read_version(text, RAWSIG_2, answer, err);
}

static void answer_sip(const struct sip *sip, struct answer *answer)
{
    sip_print_signature(sip, &answer->readable);
    sip_mangle(sip, &answer->canonical);
}

static enum status read_sip(struct span text, struct answer *answer, struct error *err)
{
    struct sip sip;
    TRY(sip_parse(text, answer->arena, &sip, err));
    answer_sip(&sip, answer);
    return ST_OK;
}

static enum status read_text(struct json *in, struct arena *arena, struct span *out,
                             struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    return json_string_copy(&text, arena, "the signature", out, err);
}

static enum status read_source(struct span text, struct arena *arena, struct pytree_source *out,
                               struct error *err)
{
    struct json in;
    struct json_string name;
    bool has_inputs = false, has_results = false;
    json_init(&in, text);
    TRY(json_object(&in, err));
    while (true) {
        TRY(json_member(&in, &name, err));
        if (in.is_closed) {
            break;
        }
        if (json_string_is(&name, "encoded_inp_str")) {
            has_inputs = true;
            TRY(read_text(&in, arena, &out->inputs, err));
        } else if (json_string_is(&name, "encoded_out_str")) {
            has_results = true;
            TRY(read_text(&in, arena, &out->results, err));
        } else {
            return json_fail(&in, err, ST_INVALID, "unknown member");
        }
    }
    TRY(json_end(&in, err));
    return has_inputs && has_results
               ? ST_OK
               : error_set(err, ST_INVALID, "byte 0: expected encoded_inp_str and encoded_out_str");
}

static enum status read_pytree(struct span text, struct answer *answer, struct error *err)
{
    struct pytree_source source;
    struct sip sip;
    TRY(read_source(text, answer->arena, &source, err));
    TRY(pytree_parse(&source, answer->arena, &sip, err));
    answer_sip(&sip, answer);
    return ST_OK;
}

typedef enum status read_f(struct span text, struct answer *answer, struct error *err);

struct sig_kind {
    const char *name;
    read_f *read;
};

static const struct sig_kind kinds[] = {
    {"lex", read_lex}, {"f", read_raw},         {"f2", read_raw_with_orders},
    {"sip", read_sip}, {"pytree", read_pytree},
};

static read_f *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].read;
        }
    }
    return NULL;
}

static enum status read_stdin(struct buf *out, struct error *err)
{
    size_t got;
    do {
        uint8_t *room = buf_reserve(out, BUFSIZ);
        if (!room) {
            return error_set(err, ST_TOO_LARGE, "more than %zu bytes on standard input",
                             TEXT_BYTES_MAX - BUFSIZ);
        }
        got = fread(room, 1, BUFSIZ, stdin);
        buf_commit(out, got);
    } while (got > 0);
    return ferror(stdin) ? error_set(err, ST_SYSTEM, "standard input cannot be read") : ST_OK;
}

static void print_line(const char *label, const struct buf *line)
{
    printf("%s: ", label);
    if (line->len) {
        fwrite(line->ptr, 1, line->len, stdout);
    }
    putchar('\n');
}

/* Reads |text| and prints its meaning. */
static enum status explain(read_f *read, struct span text, struct error *err)
{
    struct arena arena;
    struct answer answer = {.arena = &arena};
    arena_init(&arena, MEMORY_BYTES_MAX);
    buf_init(&answer.readable, MEMORY_BYTES_MAX);
    buf_init(&answer.canonical, MEMORY_BYTES_MAX);
    enum status status = read(text, &answer, err);
    if (status == ST_OK && (buf_failed(&answer.readable) || buf_failed(&answer.canonical))) {
        status = error_no_memory(err, "the answer");
    }
    if (status == ST_OK) {
        print_line("readable", &answer.readable);
        print_line("canonical", &answer.canonical);
    }
    buf_fini(&answer.readable);
    buf_fini(&answer.canonical);
    arena_fini(&arena);
    return status;
}

/* Without the line end that tools put behind a text; true: there was one. */
static bool drop_line_end(struct span *text)
{
    size_t len = text->len;
    len -= len > 0 && text->ptr[len - 1] == '\n';
    len -= len < text->len && len > 0 && text->ptr[len - 1] == '\r';
    bool had_one = len < text->len;
    text->len = len;
    return had_one;
}

/* A signature may end in a line end of its own, "K3!a\n". Only its reader can tell it from one that
 * was put behind it: with the latter it is no signature. */
static enum status explain_stdin(read_f *read, struct error *err)
{
    struct buf input;
    buf_init(&input, TEXT_BYTES_MAX);
    enum status status = read_stdin(&input, err);
    struct span text = buf_span(&input);
    if (status == ST_OK) {
        status = explain(read, text, err);
        if (status == ST_INVALID && drop_line_end(&text)) {
            status = explain(read, text, err);
        }
    }
    buf_fini(&input);
    return status;
}

static int run(int argc, char *const argv[])
{
    read_f *read = argc == 2 ? find_kind(argv[0]) : NULL;
    struct error err;
    if (!read) {
        error_set(&err, ST_INVALID, "sig: expected lex, f, sip or pytree, and a signature");
        return cli_finish(&cli_sig_command, ST_INVALID, &err);
    }
    enum status status = strcmp(argv[1], "-") == 0 ? explain_stdin(read, &err)
                                                   : explain(read, span_str(argv[1]), &err);
    if (status == ST_INVALID || status == ST_TOO_LARGE) {
        fprintf(stderr, "pte: %s\n", err.text);
        return EXIT_REFUSED;
    }
    return cli_finish(&cli_sig_command, status, &err);
}

const struct cli_command cli_sig_command = {
    .name = "sig",
    .usage = "sig lex|f|f2|sip|pytree STRING",
    .summary = "check a function signature",
    .about =
        "Prints the signature STRING for people and in its canonical spelling; exit status 1:\n"
        "it is refused. A STRING of - is standard input, with or without a line end.\n"
        "\n"
        "  lex       components of any signature\n"
        "  f         raw types: what goes into a call and comes out of it\n"
        "  f2        the same in version 2, with the orders of memory that are preferred\n"
        "  sip       the structure of arguments and results\n"
        "  pytree    what an exporter stored of the structure, a JSON object:\n"
        "            {\"encoded_inp_str\": ..., \"encoded_out_str\": ...}\n",
    .after = "Example:\n"
             "  pte sig f 'I15!B5!d2d3B5!d2d3R8!B5!d2d3'\n",
    .run = run,
};
