/* SPDX-License-Identifier: MIT */
/* The loops of hal/resize.h by level: a second table beside that of hal/cpu/uk.h, as no kernel of a
 * device calls them. */
#ifndef PTED_HAL_CPU_RESIZE_H
#define PTED_HAL_CPU_RESIZE_H

#include "hal/cpu/isa.h"
#include "hal/resize.h"

/* Returns NULL: the build lacks the level. Any thread. */
const struct hal_resize *hal_cpu_resize(enum hal_cpu_isa isa);

#endif
