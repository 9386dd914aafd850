/* SPDX-License-Identifier: MIT */
/*
 * The tokens of --token-file, their scopes and limits. The file has a line for each token:
 *
 *     NAME SCOPES sha256:HEX [rate=N] [burst=N] [running=N]
 *
 * NAME stands for the token in logs and metrics. SCOPES are some of infer, read and admin, with
 * commas between them. HEX is the SHA-256 of the token, so nobody can read tokens in the file. The
 * token makes at most |rate| requests a second, after |burst| of them at once (else |rate|), and at
 * most |running| at the same time. Empty lines, and lines that begin with '#', are passed over.
 *
 * Loop thread; counters may be read by any thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_TOKENS_H
#define PTED_SERVER_DAEMON_REQUEST_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/status.h"
#include "server/process/sha256.h"
#include "server/process/token.h"

#define TOKENS_MAX 256
#define TOKEN_BYTES_MAX 512 /* of a token; longer ones are not known */

/* The use of a token so far. It outlives a change of the file, because it belongs to the name. */
struct token_use {
    struct token_use *_Atomic next;
    char name[TOKEN_NAME_MAX + 1];
    uint32_t number;  /* of the name; no other name has had it */
    uint32_t running; /* requests in progress */
    uint64_t due_ns;  /* when its rate permits the next request that is not part of a burst */
    struct counter admitted, refused; /* requests; refused for its limits */
};

struct token {
    uint8_t hash[SHA256_BYTES];
    unsigned scopes;      /* of enum token_scope */
    uint64_t interval_ns; /* between requests; 0: any rate */
    uint64_t burst;
    uint64_t running_max; /* 0: any number */
    struct token_use *use;
};

/* Zeroed at first. */
struct tokens {
    struct token *items; /* owned */
    uint32_t count;
    bool are_needed;                /* there is a file */
    uint64_t generation;            /* of the items */
    struct token_use *_Atomic uses; /* owned; grows at its head */
};

/* Reads the file |path| again. If it fails, the old tokens stay; ST_INVALID names the line. */
MUST_CHECK enum status tokens_read(struct tokens *tokens, const char *path, struct error *err);

/* Does the same for the lines |text| of the file |path|. */
MUST_CHECK enum status tokens_parse(struct tokens *tokens, const char *path, struct span text,
                                    struct error *err);
void tokens_fini(struct tokens *tokens);

/* Returns the token that a client has sent; NULL: it is not known. The time does not depend on how
 * much of it is right. */
const struct token *tokens_find(const struct tokens *tokens, struct span text);

/* The token that a connection has sent last: it is not hashed again. Zeroed at first. */
#define TOKEN_MEMORY_BYTES 128
struct token_memory {
    uint64_t generation; /* of the tokens; 0: nothing is remembered */
    uint32_t index, len;
    uint8_t text[TOKEN_MEMORY_BYTES]; /* longer tokens are not remembered */
};

/* Does the same, and looks into |memory| first. */
const struct token *tokens_find_again(const struct tokens *tokens, struct token_memory *memory,
                                      struct span text);

/* May a request begin now? Then token_release() follows. Else |*out_retry_s| says when it may, and
 * |err| why not. */
MUST_CHECK bool token_admit(const struct token *token, uint64_t now_ns, uint32_t *out_retry_s,
                            struct error *err);
void token_release(struct token_use *use);

#endif
