/* SPDX-License-Identifier: MIT */
/*
 * One answer of a chat: asks /v1/chat/completions and hands out the text as it comes. The server's
 * answer is bounded and checked. One thread.
 */
#ifndef PTED_SERVER_CLI_CHAT_STREAM_H
#define PTED_SERVER_CLI_CHAT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "server/cli/transfer.h"

#define CHAT_ANSWER_BYTES_MAX ((size_t)64 << 20)

struct chat_answer {
    struct buf text;           /* owned; as the server sent it, valid UTF-8 */
    uint64_t token_count;      /* 0: the server did not say */
    uint64_t thought_count;    /* of them, of thoughts before the answer; likewise */
    bool has_thought;          /* the answer began with thoughts, which are not in |text| */
    bool shows_thought;        /* and they were printed */
    uint64_t first_ns, all_ns; /* from the request to the first text, and to the end */
    bool is_cut;               /* it ended with "length" */
    bool is_stopped;           /* the user has stopped it */
};

void chat_answer_init(struct chat_answer *answer);
void chat_answer_fini(struct chat_answer *answer);

/*
 * Sends |body| and prints the answer to standard output, cleaned if |is_terminal|. Thoughts are
 * printed dim before it if |is_terminal| and the terminal is not dumb, else not at all. The answer
 * ends when |*stop| becomes true, which a handler of signals may do. ST_CORRUPT: it is no such
 * stream.
 */
MUST_CHECK enum status chat_stream_run(struct transfer *transfer, struct span body,
                                       bool is_terminal, const volatile int *stop,
                                       struct chat_answer *answer, struct error *err);

#endif
