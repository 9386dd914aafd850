/* SPDX-License-Identifier: MIT */
/*
 * Prompts with a gap, as editors ask llama.cpp's server for them (/infill): the texts around the
 * gap, other texts that may help, and the beginning of the answer. What has no room is left out, so
 * an editor may send more than a context has: whole other texts, the first ones before the last;
 * of the text before the gap its beginning, and of that behind it its end. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_INFILL_FIT_H
#define PTED_SERVER_LANGUAGE_INFILL_FIT_H

#include "server/language/infill.h"

/* Borrowed. */
struct infill_gap {
    struct span before, after, begun; /* |begun|: the beginning of the answer */
    const struct ask_extra *extras;
    uint32_t extra_count;
    uint32_t answer_max; /* tokens that the answer may have; UINT32_MAX: as many as there is room */
};

/*
 * Puts the ids of a prompt into |room|, whose |max| is the context: a quarter of it stays for the
 * answer, or its tokens if they are known, up to half. The text behind the gap has a quarter of the
 * rest, or more where the other one is short. ST_INVALID: the beginning of the answer is too long;
 * ST_EXHAUSTED.
 */
MUST_CHECK enum status infill_fit(const struct infill_rules *rules, const struct words *words,
                                  const struct infill_gap *gap, struct words_room *room,
                                  struct error *err);

#endif
