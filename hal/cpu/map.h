/* SPDX-License-Identifier: MIT */
/* Mappings of zeroed pages. Their memory is taken as it is touched. To be freed with munmap(). */
#ifndef PTED_HAL_CPU_MAP_H
#define PTED_HAL_CPU_MAP_H

#include <stddef.h>

#define HAL_CPU_HUGE_PAGE ((size_t)2 << 20)

/* Returns NULL: there are no addresses. */
void *hal_cpu_map(size_t bytes);

/* Returns a mapping that begins where a huge page can; |bytes| are at most SIZE_MAX less a huge
 * page. */
void *hal_cpu_map_aligned(size_t bytes);

/* Asks for huge pages: a hint, since not every system has them. */
void hal_cpu_map_huge(void *host, size_t bytes);

/* Asks for pages of the usual size, also where the system prefers huge ones. */
void hal_cpu_map_small(void *host, size_t bytes);

/* Moves what lies in |bytes| from |host| on to huge pages: whole ones, all of which has been
 * touched. Pages that are touched there later are small ones again. A hint, too. */
void hal_cpu_map_collapse(void *host, size_t bytes);

#endif
