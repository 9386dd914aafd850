/* SPDX-License-Identifier: MIT */
/* What the two halves of reading a request share. */
#ifndef PTED_PROTOCOL_OIP_PRIV_H
#define PTED_PROTOCOL_OIP_PRIV_H

#include "protocol/oip.h"

/* Sizes, sources and binary spans of all inputs, which are known only when all are read. */
MUST_CHECK enum status oip_finish_inputs(struct oip_request *request, struct span binary,
                                         const struct oip_limits *limits, struct error *err);

#endif
