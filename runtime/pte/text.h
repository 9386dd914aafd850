/* SPDX-License-Identifier: MIT */
/* Is text from a file safe for logs, terminals and URLs? */
#ifndef PTED_RUNTIME_PTE_TEXT_H
#define PTED_RUNTIME_PTE_TEXT_H

#include "base/bytes.h"

/* Well-formed UTF-8 (no overlong forms, no surrogates) without control characters. */
bool pte_text_is_plain(struct span text);

#endif
