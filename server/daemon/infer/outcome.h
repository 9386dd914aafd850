/* SPDX-License-Identifier: MIT */
/* How a step of a call ends. Deep inside a step this is a status; infer.c turns it into an outcome
 * where the step returns, and nobody above looks at the status of a step that begins again. */
#ifndef PTED_SERVER_DAEMON_INFER_OUTCOME_H
#define PTED_SERVER_DAEMON_INFER_OUTCOME_H

enum outcome {
    OUTCOME_DONE,
    OUTCOME_FILES, /* of DECODE: threads read several files, then infer_end_media() does the rest */
    /* The step has undone what it did, and begins again: */
    OUTCOME_HEAVY,       /* at the next place (server/daemon/infer/work.h) */
    OUTCOME_PLAN,        /* on a thread, which makes the plan that is missing */
    OUTCOME_LOAD,        /* when the model is loaded that infer->absent names */
    OUTCOME_WAIT_MEMORY, /* when others have left memory for requests; the error says what lacks */
    OUTCOME_FAILED,      /* the error says why */
};

#endif
