/* SPDX-License-Identifier: MIT */
/* The exit status of the process: an outcome as a number of sysexits.h. */
#ifndef PTED_SERVER_PROCESS_EXIT_STATUS_H
#define PTED_SERVER_PROCESS_EXIT_STATUS_H

#include "base/status.h"

int exit_status_of(enum status status);

#endif
