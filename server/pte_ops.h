/* SPDX-License-Identifier: MIT */
/* The command "pte ops": what operators there are, a line for each, or (--json) an object. */
#ifndef PTED_SERVER_PTE_OPS_H
#define PTED_SERVER_PTE_OPS_H

#include "base/status.h"

MUST_CHECK enum status pte_ops(int argc, char *const argv[], struct error *err);

#endif
