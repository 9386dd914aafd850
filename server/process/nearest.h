/* SPDX-License-Identifier: MIT */
/* Finds the word that a person may have meant. Any thread. */
#ifndef PTED_SERVER_PROCESS_NEAREST_H
#define PTED_SERVER_PROCESS_NEAREST_H

#include <stdint.h>

/* The first of the |count| words that is like |text|: few letters have to be put in, left out,
 * changed or swapped, at most one and another one for each four of the word. NULL: none is. */
const char *nearest_word(const char *text, const char *const *words, uint32_t count);

#endif
