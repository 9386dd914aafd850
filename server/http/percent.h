/* SPDX-License-Identifier: MIT */
/* Text of a target as RFC 3986, section 2.1, encodes it. Any thread. */
#ifndef PTED_SERVER_HTTP_PERCENT_H
#define PTED_SERVER_HTTP_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* Decodes %XX of |text| into |out|, which has room for |max| characters and a NUL; false when
 * malformed, a control or NUL, or longer than |max|. */
bool percent_decode(struct span text, char *out, size_t max);

#endif
