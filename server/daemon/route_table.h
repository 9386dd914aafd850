/* SPDX-License-Identifier: MIT */
/* The behaviour of all routes, for struct requests. */
#ifndef PTED_SERVER_DAEMON_ROUTE_TABLE_H
#define PTED_SERVER_DAEMON_ROUTE_TABLE_H

#include "server/daemon/request/routes.h"

extern const struct route route_table[ROUTE_ROW_COUNT];

#endif
