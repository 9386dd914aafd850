/* SPDX-License-Identifier: MIT */
/* How many CPUs this process may use, and their caches. */
#ifndef PTED_HAL_CPU_CPUS_H
#define PTED_HAL_CPU_CPUS_H

#include "base/bytes.h"

/* Returns the number of CPUs in the process's affinity mask, or fewer if its control group (of
 * version 2 or 1) or a parent group has a smaller quota; at least 1. Reads only /proc/self/cgroup
 * and /sys/fs/cgroup. */
unsigned hal_cpu_count(void);

/* Returns the quota in the text of a cpu.max file, in CPUs, rounded up; 0: no limit, or another
 * text. */
unsigned hal_cpu_parse_quota(struct span text);

/* Returns the size of the first CPU's largest cache, as Linux tells it below /sys; 0: it is not
 * told. */
size_t hal_cpu_cache_bytes(void);

/* Returns the bytes in the text of a cache's file `size`, which counts in KB; 0: another text. */
size_t hal_cpu_parse_cache(struct span text);

#endif
