/* SPDX-License-Identifier: MIT */
/* The part of a server that has connections, without sockets, devices and models. One thread. */
#ifndef PTED_TESTS_UNIT_CONNS_SUPPORT_H
#define PTED_TESTS_UNIT_CONNS_SUPPORT_H

#include <stdint.h>

#include "server/daemon/connection/conns.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/requests.h"
#include "server/process/options.h"

extern struct loop loop;
extern struct options options; /* the defaults, from open_conns() on */
extern struct requests requests;
extern struct conns conns;

/* |protocols| may be NULL: HTTP/1 alone. */
void open_conns(const struct protocol *const *protocols, uint32_t place_count);

/* Expects that no connection, no transfer and no memory of one is left. */
void close_conns(void);

#endif
