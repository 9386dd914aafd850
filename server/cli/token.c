/* SPDX-License-Identifier: MIT */
/* The command `pte token`. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "server/cli/cli.h"
#include "server/cli/option.h"
#include "server/process/sha256.h"
#include "server/process/token.h"

#define RANDOM_BYTES 32
#define TEXT_BYTES_MAX 1024

/* The line goes to standard output, for the file; the token itself to standard error. */
static enum status print(const char *name, const char *scopes, struct error *err)
{
    uint8_t random[RANDOM_BYTES], hash[SHA256_BYTES];
    char token[5 + SHA256_HEX_CHARS] = {"pted_"}, hex[SHA256_HEX_CHARS];
    char known[TOKEN_NAME_MAX + 1];
    unsigned ignored;
    struct buf out;
    TRY(sha256_load(err));
    TRY(token_parse_name(span_str(name), known, err));
    TRY(token_parse_scopes(span_str(scopes), &ignored, err));
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return error_set(err, ST_SYSTEM, "the system gives no random numbers");
    }
    sha256_print(random, token + 5);
    if (!sha256(span_of((const uint8_t *)token, sizeof(token)), hash)) {
        return error_no_memory(err, "a hash");
    }
    sha256_print(hash, hex);
    buf_init(&out, TEXT_BYTES_MAX);
    buf_printf(&out, "%s %s sha256:%.*s\n", name, scopes, SHA256_HEX_CHARS, hex);
    enum status status = cli_write(&out, err);
    status = status == ST_OK ? cli_flush(err) : status;
    buf_fini(&out);
    if (status == ST_OK) { /* nobody could use it without its line */
        fprintf(stderr, "%.*s\n", (int)sizeof(token), token);
    }
    return status;
}

struct token_arguments {
    const char *name, *scopes;
    bool has_scopes;
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct token_arguments *arguments = own;
    if (arguments->has_scopes) {
        return error_set(err, ST_INVALID, "expected a name and scopes, got '%.64s' as well", text);
    }
    arguments->has_scopes = arguments->name != NULL;
    *(arguments->name ? &arguments->scopes : &arguments->name) = text;
    return ST_OK;
}

static enum status make(int argc, char *const argv[], struct error *err)
{
    struct token_arguments arguments = {.scopes = "infer,read"};
    TRY(cli_option_parse(&cli_token_command, argc, argv, &arguments, err));
    return arguments.name ? print(arguments.name, arguments.scopes, err)
                          : error_set(err, ST_INVALID, "expected a name for the token");
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_token_command, make(argc, argv, &err), &err);
}

const struct cli_command cli_token_command = {
    .name = "token",
    .usage = "token NAME [SCOPES]",
    .summary = "make a token for pted --token-file",
    .about = "Makes a random token. Standard error gets the token, which the client sends as\n"
             "\"Authorization: Bearer TOKEN\". Standard output gets its line for the file.\n"
             "SCOPES are some of infer, read and admin, with commas between them; without them\n"
             "they are infer,read.\n",
    .after = "Example:\n"
             "  pte token ci infer >>tokens && pted --token-file tokens model.pte\n",
    .take = take,
    .run = run,
};
