/* SPDX-License-Identifier: MIT */
/* Messages between a run and a kernel about an update of some rows (rt_emit_update()). */
#ifndef PTED_RUNTIME_EMIT_UPDATE_H
#define PTED_RUNTIME_EMIT_UPDATE_H

/* Messages between kernels and their caller about one update; each is an i64. */
enum rt_update_word {
    RT_UPDATE_STALE,     /* from this row */
    RT_UPDATE_STALE_END, /* to this one the output may differ from argument 0; other rows do not */
    RT_UPDATE_WRITTEN,   /* the kernel stores here the first row */
    RT_UPDATE_WRITTEN_END, /* and here the end of the rows that it has written differently */
    RT_UPDATE_LOG,        /* the address of the struct rt_log that gets what is overwritten, or 0 */
    RT_UPDATE_LOGGED,     /* from this row */
    RT_UPDATE_LOGGED_END, /* to this one; nobody needs the old content of others */
    RT_UPDATE_WORDS
};

#ifndef HAL_SHADER
#include "runtime/emit/log.h"

/* |bytes| of row |row| at |at| in the output, which begins at |out|, are about to be overwritten by
 * tile |tile|. |words| may be NULL. */
static inline void rt_update_log(const int64_t *words, uint32_t tile, int64_t row, const char *out,
                                 const char *at, size_t bytes)
{
    if (words && words[RT_UPDATE_LOG] && row >= words[RT_UPDATE_LOGGED] &&
        row < words[RT_UPDATE_LOGGED_END]) {
        rt_log_put((struct rt_log *)(uintptr_t)words[RT_UPDATE_LOG], tile, at, (uint64_t)(at - out),
                   bytes);
    }
}
#endif

#endif
