/* SPDX-License-Identifier: MIT */
/* Shared by conn.c and conn_message.c. Loop thread. */
#ifndef PTED_SERVER_CONN_PRIV_H
#define PTED_SERVER_CONN_PRIV_H

#include "base/bytes.h"
#include "server/conn.h"
#include "server/server.h"

/* An unwanted body up to this size is read to keep the connection; otherwise the connection is
 * closed. */
#define CONN_DISCARD_BYTES_MAX (64 << 10)

static inline const struct params *conn_params(const struct conn *conn)
{
    return conn->server->params;
}

/* The current state may last |ms| from now on. */
void conn_set_deadline(struct conn *conn, uint64_t ms);
void conn_enter(struct conn *conn, enum conn_state state, uint64_t ms);

/* ---- conn_message.c -------------------------------------------------------------------------- */

void conn_message_init(struct conn *conn);

/* Takes bytes up to the end of one message and then runs its request; returns the bytes taken. */
size_t conn_message_feed(struct conn *conn, struct span bytes);

/* Number of bytes to come that certainly are data of a wanted body. */
size_t conn_message_missing(const struct conn *conn);

/* The message is not read to its end, because of its request; its answer is the last one. */
void conn_message_refuse(struct conn *conn);

#endif
