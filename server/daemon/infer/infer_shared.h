/* SPDX-License-Identifier: MIT */
/* Tensors of a request that lie in shared memory (server/daemon/infer/regions.h). The request holds
 * the regions that these functions find. */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_SHARED_H
#define PTED_SERVER_DAEMON_INFER_INFER_SHARED_H

#include <stddef.h>

#include "base/status.h"

struct infer;
struct infer_output;
struct oip_result;
struct oip_shared;

/* May the request's client use shared memory? ST_UNSUPPORTED says why not. */
MUST_CHECK enum status infer_shared_check(const struct infer *infer, struct error *err);

/* Reads an input of |bytes| bytes. */
MUST_CHECK enum status infer_shared_read(struct infer *infer, const struct oip_shared *shared,
                                         void *dst, size_t bytes, struct error *err);

/* Notes that |output| goes to |shared|; and writes |result| there. */
MUST_CHECK enum status infer_shared_note(struct infer *infer, struct infer_output *output,
                                         const struct oip_shared *shared, struct error *err);
MUST_CHECK enum status infer_shared_write(struct infer_output *output,
                                          const struct oip_result *result, struct error *err);

/* Call when the request is over. */
void infer_shared_drop(struct infer *infer);

#endif
