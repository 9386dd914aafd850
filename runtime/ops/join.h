/* SPDX-License-Identifier: MIT */
/* Parts of several tensors side by side, for the operator and the pass that makes it. */
#ifndef PTED_RUNTIME_OPS_JOIN_H
#define PTED_RUNTIME_OPS_JOIN_H

#include "hal/kernel.h"

/* Arguments of "join_parts". */
enum rt_join_arg {
    RT_JOIN_LIST, /* the tensors */
    RT_JOIN_DIM,  /* along which they are joined */
    RT_JOIN_PARTS /* RT_JOIN_NUMBERS for each part */
};

/* A part: its tensor's number in the list, the first index, the distance to the next, and how many
 * there are. */
enum { RT_JOIN_ITEM, RT_JOIN_BEGIN, RT_JOIN_STEP, RT_JOIN_COUNT, RT_JOIN_NUMBERS };

/* So many parts, of so many tensors, fit a kernel's constants and bindings. */
#define RT_JOIN_PARTS_MAX 60
#define RT_JOIN_TENSORS_MAX (HAL_BINDINGS_MAX - 1)

#endif
