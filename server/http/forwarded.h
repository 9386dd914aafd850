/* SPDX-License-Identifier: MIT */
/*
 * Whom a head came from, as the proxies on its way have noted it: in X-Forwarded-For, a list of
 * addresses, or in Forwarded (RFC 7239). Each proxy adds the address of its own peer at the end, so
 * the list is read from its end: as long as an address is that of a proxy that is believed, so is
 * what it says of the one before it. What is left of that anyone may have written.
 *
 * Any thread.
 */
#ifndef PTED_SERVER_HTTP_FORWARDED_H
#define PTED_SERVER_HTTP_FORWARDED_H

#include <stdbool.h>

#include "base/status.h"
#include "server/http/address.h"
#include "server/http/head.h"
#include "server/http/proxies.h"

/* Addresses of a list that are looked at, from its end. */
#define FORWARDED_HOPS_MAX 32

/*
 * Finds the client of |head|: the last address of |field|, a list, that is no proxy's; if all are,
 * the first of them. |*out_is_found| is false, and the client is the proxy that sent the head, if
 * the list is empty or its last address is not known ("unknown" and names that begin with "_" are
 * no addresses). ST_INVALID likewise, and |err| says which text is no address; |*out| is then that
 * of the proxy which wrote it, if it is known.
 */
MUST_CHECK enum status forwarded_find(const struct proxies *proxies, const struct head *head,
                                      enum http_field field, struct address *out,
                                      bool *out_is_found, struct error *err);

#endif
