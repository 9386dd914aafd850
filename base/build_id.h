/* SPDX-License-Identifier: MIT */
#ifndef PTED_BASE_BUILD_ID_H
#define PTED_BASE_BUILD_ID_H

#include "base/bytes.h"

/* Returns the number that the linker has given to this very program (NT_GNU_BUILD_ID of its ELF
 * file, see ld(1), --build-id), or nothing if it has none. Any thread. */
struct span build_id(void);

#endif
