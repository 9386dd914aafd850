/* SPDX-License-Identifier: MIT */
/* Shared by conn.c, conn_answer.c and conn_message.c. Loop thread. */
#ifndef PTED_SERVER_DAEMON_CONNECTION_CONN_PRIV_H
#define PTED_SERVER_DAEMON_CONNECTION_CONN_PRIV_H

#include "base/bytes.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/loop/loop.h"
#include "server/process/options.h"

static inline const struct params *conn_params(const struct conn *conn)
{
    return conn->session.conns->params;
}

/* Lets the current state last |ms| from now on. */
void conn_set_deadline(struct conn *conn, uint64_t ms);

/* Changes the state, and with it that of the session; conn_enter() sets its deadline too. */
void conn_set_state(struct conn *conn, enum conn_state state);
void conn_enter(struct conn *conn, enum conn_state state, uint64_t ms);

/* Ends the connection now: the request is cancelled in whatever step it is. */
void conn_abort(struct conn *conn);

/* Call when the bytes that were read ahead or are left of an answer have changed: others count
 * them. */
void conn_count_bytes(struct conn *conn);

/* Call when the answer has been written: the next message, or the end. */
void conn_next(struct conn *conn);

/* Sends nothing more. Bytes that still come are discarded for a while. */
void conn_linger(struct conn *conn);

/* ---- conn_answer.c --------------------------------------------------------------------------- */

enum exchange_written conn_answer_write(struct exchange *exchange,
                                        const struct exchange_part *part);

/* Call when the call is over: the rest of its answer is the connection's. */
void conn_answer_end(struct exchange *exchange);

/* Notes the bytes of the answer that the client has taken since the last look. */
void conn_answer_look(struct conn *conn);

/* Sends the interim answer, for a client that waits for it. */
void conn_answer_continue(struct conn *conn);

/* Gives a client without a place a reason rather than a reset. */
void conn_answer_turn_away(struct conn *conn, enum share_taken why);

/* ---- conn_message.c -------------------------------------------------------------------------- */

void conn_message_init(struct conn *conn);

/* Takes bytes up to the end of one message and then runs its request; returns the bytes taken. */
size_t conn_message_feed(struct conn *conn, struct span bytes);

/* Returns the number of bytes to come that certainly are data of a wanted body. */
size_t conn_message_missing(const struct conn *conn);

/* Stops reading the message, because of its request; its answer is the last one. */
void conn_message_refuse(struct conn *conn);

#endif
