/* SPDX-License-Identifier: MIT */
/* Finds the word that a person may have meant. Any thread. */
#ifndef PTED_SERVER_PROCESS_NEAREST_H
#define PTED_SERVER_PROCESS_NEAREST_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the word among |count| that is most like |text|; the first of equal ones. To make the
 * word from |text|, at most 1 + length / 4 letters may be put in, left out, changed or swapped.
 * NULL: no word is like it. */
const char *nearest_word(const char *text, const char *const *words, uint32_t count);

/* Tells whether |text| is the |word| but for one slip: a letter put in, left out, changed or
 * swapped with its neighbour. The case of letters, '_' and '-' do not count. For texts that may
 * also be words of others, where nearest_word() would find too many. */
bool nearest_is_slip(const char *text, const char *word);

#endif
