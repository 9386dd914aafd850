/* SPDX-License-Identifier: MIT */
/* For tests of requests that are read without a model: memory, an error, and the comparison. */
#ifndef PTED_TESTS_UNIT_ASK_SUPPORT_H
#define PTED_TESTS_UNIT_ASK_SUPPORT_H

#include "base/arena.h"
#include "base/status.h"

extern struct arena arena; /* of the test */
extern struct error err;   /* of the last request that was refused */

/* Around each test. */
int set_up(void **state);
int tear_down(void **state);

/* Fails unless a request was refused with |expected| and a text with |why|; |what| names it. */
void check_refused(const char *what, enum status status, enum status expected, const char *why);

#endif
