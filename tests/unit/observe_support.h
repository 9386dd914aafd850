/* SPDX-License-Identifier: MIT */
/*
 * For tests of what is told of a request at its end: a request that a client has sent, in every
 * member that is looked at; a clock that stands; lines that a writer has written, in memory. The
 * linker sends uv_hrtime() and clock_gettime() of the program here.
 */
#ifndef PTED_TESTS_UNIT_OBSERVE_SUPPORT_H
#define PTED_TESTS_UNIT_OBSERVE_SUPPORT_H

#include <stdint.h>

#include "server/daemon/observe/access_log.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/process/line_writer.h"

/* Now, on the monotone clock and in the world: 2100-01-01T00:00:00.123456Z. A writer that ends
 * waits until then for its last lines. */
#define NOW_NS UINT64_C(5000000000)
#define WALL_S 4102444800
#define WALL_NS 123456789

struct observed_request {
    struct options options;
    struct requests requests; /* its source of ids is the same in each test */
    struct exchange exchange;
    struct request request;
};

/* GET /v2/models/m, answered with 200 and 100 bytes. observed_request_fini() follows. */
void observed_request_init(struct observed_request *observed);
void observed_request_fini(struct observed_request *observed);

/* Gives it another target, and a field. Any bytes. */
void observed_request_set_target(struct observed_request *observed, const char *target);
void observed_request_add_field(struct observed_request *observed, const char *name,
                                const char *value);

/* Its model has run: 1 ms to prepare, 2 to wait, 4 to compute, 8 to encode, 16 since then. */
void observed_request_set_run(struct observed_request *observed);

/* A writer whose lines go to memory. kept_lines() ends it and returns them, until the next one.
 * While |is_blocked| the sink takes none: further ones are lost once the writer has 128 KiB. */
struct line_writer *make_writer(bool is_blocked);
void unblock_writer(void);
const char *kept_lines(struct line_writer *writer);

#endif
