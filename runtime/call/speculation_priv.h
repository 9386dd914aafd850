/* SPDX-License-Identifier: MIT */
/* Shared by speculation.c and speculation_proof.c. */
#ifndef PTED_RUNTIME_CALL_SPECULATION_PRIV_H
#define PTED_RUNTIME_CALL_SPECULATION_PRIV_H

#include "runtime/call/inside.h"

/* Makes the form for |rows| steps unless it is there. One thread, before any other uses it. */
MUST_CHECK enum status rt_speculation_make_form(struct rt_method *method, uint32_t rows,
                                                struct error *err);

#endif
