/* SPDX-License-Identifier: MIT */
/*
 * The name of a server, or of a model at a server, as the command line writes it:
 *
 *     http://HOST[:PORT]          https://HOST[:PORT]          unix:PATH        unix:@NAME
 *     HOST:PORT                   the same as http://HOST:PORT
 *
 * alone for the server. One of these paths behind it names a model; behind a socket's path it
 * follows a colon, as in "unix:/run/pted.sock:/mlp":
 *
 *     /MODEL                                    /MODEL/versions/VERSION
 *     /v2/models/MODEL[/versions/VERSION][/infer|/call|/stats|...]
 *
 * "/v2" alone is the server. A path in front of /v2, with which a proxy reaches the server, is
 * kept: "http://HOST/ml/v2/models/MODEL". "unix:@NAME" is a socket of Linux' abstract name space;
 * the socket's path ends at the last ":/". The default ports are 80 and 443.
 *
 * Names may be escaped as in URLs (%20). User names, queries and fragments are refused. Borrows
 * nothing from the text. Any thread.
 */
#ifndef PTED_SERVER_CLI_TARGET_H
#define PTED_SERVER_CLI_TARGET_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"

#define TARGET_BASE_MAX 512   /* bytes of the URL in front of /v2 */
#define TARGET_SOCKET_MAX 107 /* bytes of a socket's path or name */
#define TARGET_NAME_MAX 256   /* bytes of a name without escapes; other servers have longer ones */
#define TARGET_VERSION_MAX 64
#define TARGET_TEXT_MAX (TARGET_BASE_MAX + TARGET_SOCKET_MAX + 8)

struct target {
    char base[TARGET_BASE_MAX + 1];       /* "http://host:8000/ml": everything in front of "/v2" */
    char socket[TARGET_SOCKET_MAX + 1];   /* path or name of the socket; "": none */
    bool is_abstract;                     /* the socket has a name and no path */
    char model[TARGET_NAME_MAX + 1];      /* without escapes; "": the server is meant */
    char version[TARGET_VERSION_MAX + 1]; /* "": the server's choice */
    char text[TARGET_TEXT_MAX]; /* for messages: "http://host:8000", "unix:/run/pted.sock" */
};

/* Does |text| begin as a target does? A file that looks like one is "./http:..." or
 * "./host:80". */
bool target_is_one(const char *text);

/* Parses a target; ST_INVALID says what is wrong. */
MUST_CHECK enum status target_parse(const char *text, struct target *out, struct error *err);

/* Does the same, and a model must be named, or must not be. */
MUST_CHECK enum status target_parse_model(const char *text, struct target *out, struct error *err);
MUST_CHECK enum status target_parse_server(const char *text, struct target *out, struct error *err);

/* Appends "/v2/models/MODEL[/versions/VERSION]" and |rest|, such as "/infer". */
void target_print_path(const struct target *target, const char *rest, struct buf *out);

/* Appends |text| as a part of a URL's path; special characters are escaped. */
void target_print_escaped(const char *text, struct buf *out);

#endif
