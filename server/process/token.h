/* SPDX-License-Identifier: MIT */
/* The name and the scopes of a token, as a line of --token-file and `pte token` have them. Any
 * thread. */
#ifndef PTED_SERVER_PROCESS_TOKEN_H
#define PTED_SERVER_PROCESS_TOKEN_H

#include "base/bytes.h"
#include "base/status.h"

#define TOKEN_NAME_MAX 64

enum token_scope {
    TOKEN_SCOPE_NONE = 0,
    TOKEN_SCOPE_INFER = 1,
    TOKEN_SCOPE_READ = 2,
    TOKEN_SCOPE_ADMIN = 4,
};

/* Returns "infer", "read" or "admin". */
const char *token_scope_name(enum token_scope scope);

/* Writes the name and a NUL to |out|, which has TOKEN_NAME_MAX + 1 bytes. ST_INVALID: it is none.
 */
MUST_CHECK enum status token_parse_name(struct span word, char *out, struct error *err);

/* "infer,read". ST_INVALID: a scope is not known, or there is none. */
MUST_CHECK enum status token_parse_scopes(struct span word, unsigned *out_scopes,
                                          struct error *err);

#endif
