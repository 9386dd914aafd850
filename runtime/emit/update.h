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
    RT_UPDATE_WORDS
};

#endif
