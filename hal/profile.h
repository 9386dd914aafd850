/* SPDX-License-Identifier: MIT */
/*
 * Profiles: when the commands of submissions ran, and on which thread. A device adds a span to the
 * profile of a submission (struct hal_submission) each time a thread runs some tiles of a command,
 * or once for a command that a GPU runs. Only devices with props.has_profile do so; others ignore
 * the profile.
 */
#ifndef PTED_HAL_PROFILE_H
#define PTED_HAL_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct hal_command;
struct hal_profile;

#define HAL_PROFILE_SPANS_MAX (1u << 24)

#define HAL_THREAD_DEVICE UINT32_MAX /* no thread: a device other than the CPU ran the command */

/* Some tiles of one command on one thread, or all of them on a device. */
struct hal_span {
    const struct hal_command *command; /* the profile holds a reference */
    uint32_t number;                   /* of the command: see hal_command_describe() */
    uint32_t thread; /* 0: a thread of the caller; from 1 on: the CPU's workers; or THREAD_DEVICE */
    uint32_t tiles;
    /* CLOCK_MONOTONIC. A GPU's clock gives only the time between events: the last command of a
     * stage counts as ending when the host learns of it. */
    uint64_t begin_ns, end_ns;
};

/*
 * Makes a profile with room for |span_max| spans, at most HAL_PROFILE_SPANS_MAX. Memory is touched
 * only as spans come. The caller frees it after the last submission that carries it.
 */
MUST_CHECK enum status hal_profile_new(size_t span_max, struct hal_profile **out_profile,
                                       struct error *err);
void hal_profile_free(struct hal_profile *profile); /* NULL is fine */

/*
 * Returns the spans so far, in no particular order; valid until the next clear or free. Call it
 * when no submission that carries |profile| is in flight.
 */
const struct hal_span *hal_profile_spans(const struct hal_profile *profile, size_t *out_count);

/* Spans that found no room. */
size_t hal_profile_lost(const struct hal_profile *profile);

/* Forgets all spans; not while a submission that carries |profile| is in flight. */
void hal_profile_clear(struct hal_profile *profile);

/* ---- for the HAL ----------------------------------------------------------------------------- */

/* Makes the profile keep |command| alive. ST_EXHAUSTED: no memory to remember it. Any thread. */
MUST_CHECK enum status hal_profile_keep(struct hal_profile *profile, struct hal_command *command,
                                        struct error *err);

/* Call on any thread, also several at once. */
void hal_profile_add(struct hal_profile *profile, const struct hal_span *span);

/* Returns the time of a span's ends. */
uint64_t hal_profile_now(void);

#endif
