/* SPDX-License-Identifier: MIT */
/* The command `pte run`: one program, its inputs from the command line, its results or its time. */
#ifndef PTED_SERVER_PTE_RUN_H
#define PTED_SERVER_PTE_RUN_H

#include "base/status.h"

/* |argv| begins behind "run". ST_INVALID for a wrong command line. */
MUST_CHECK enum status pte_run(int argc, char *const argv[], struct error *err);

#endif
