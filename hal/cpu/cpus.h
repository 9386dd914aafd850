/* SPDX-License-Identifier: MIT */
/* How many CPUs this process may use. */
#ifndef PTED_HAL_CPU_CPUS_H
#define PTED_HAL_CPU_CPUS_H

#include "base/bytes.h"

/*
 * The CPUs in the process's affinity mask, or fewer where the quota of its control group (version
 * 2) or of one above it is smaller; at least 1. Reads /proc/self/cgroup and /sys/fs/cgroup only.
 */
unsigned hal_cpu_count(void);

/* The quota in the text of a cpu.max file in CPUs, rounded up; 0: no limit, or no such text. */
unsigned hal_cpu_parse_quota(struct span text);

#endif
