/* SPDX-License-Identifier: MIT */
/* Amounts in the form that people read. Pure functions, which return |text|. */
#ifndef PTED_SERVER_PROCESS_AMOUNT_H
#define PTED_SERVER_PROCESS_AMOUNT_H

#include <stdint.h>

#define AMOUNT_TEXT_MAX 32

/* Returns "3.2 MiB" */
const char *amount_bytes(uint64_t bytes, char text[AMOUNT_TEXT_MAX]);

/* Returns "3,504,872" */
const char *amount_count(uint64_t count, char text[AMOUNT_TEXT_MAX]);

#endif
