/* SPDX-License-Identifier: MIT */
/* What conn.c and conn_message.c share. Loop thread. */
#ifndef PTED_SERVER_CONN_PRIV_H
#define PTED_SERVER_CONN_PRIV_H

#include "base/bytes.h"
#include "server/conn.h"
#include "server/server.h"

/* A body that nobody wants is read up to here to keep the connection; beyond, it is closed. */
#define CONN_DISCARD_BYTES_MAX (64 << 10)

static inline const struct params *conn_params(const struct conn *conn)
{
    return conn->server->params;
}

/* The current state may last |ms| from now. */
void conn_set_deadline(struct conn *conn, uint64_t ms);
void conn_enter(struct conn *conn, enum conn_state state, uint64_t ms);

/* ---- conn_message.c -------------------------------------------------------------------------- */

void conn_message_init(struct conn *conn);

/* Takes bytes up to the end of one message, whose request runs then; returns how many. */
size_t conn_message_feed(struct conn *conn, struct span bytes);

/* How many bytes come next that are data of a body that is wanted, whatever the client sends. */
size_t conn_message_missing(const struct conn *conn);

/* The message is not read to its end, for what its request says: its answer is the last one. */
void conn_message_refuse(struct conn *conn);

#endif
