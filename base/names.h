/* SPDX-License-Identifier: MIT */
/* Lists of names in messages. Any thread. */
#ifndef PTED_BASE_NAMES_H
#define PTED_BASE_NAMES_H

#include <stdint.h>

#define NAMES_TEXT_MAX 160 /* bytes of a list; what does not fit is left out */

/* Gives name |index| of |of|; NULL: it has none, and the list leaves it out. */
typedef const char *names_at_f(const void *of, uint32_t index);

/* Prints |count| names for "expected ...": "one of image, mask and 3 more", "boxes", "none".
 * Returns |text|. */
const char *names_print(names_at_f *at, const void *of, uint32_t count, char text[NAMES_TEXT_MAX]);

/* Prints as many of them as fit: "decode, encode", with "..." at the end if that is not all.
 * Returns |text|. */
const char *names_join(names_at_f *at, const void *of, uint32_t count, char text[NAMES_TEXT_MAX]);

#endif
