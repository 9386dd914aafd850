/* SPDX-License-Identifier: MIT */
/*
 * Faults: errors in data that only a kernel can find, such as an index in a tensor that is out of
 * range. The kernel calls hal_fault() and goes on with something harmless; the submission then
 * fails with ST_INVALID, and the record names the error and the dispatch. If there are several
 * faults, the record keeps the first report, which depends on the order in which tiles ran.
 *
 * Any thread. A record costs nothing as long as there is no fault.
 */
#ifndef PTED_HAL_FAULT_H
#define PTED_HAL_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct hal_args;

enum hal_fault_code {
    HAL_FAULT_NONE,
#define FAULT(name, text) HAL_FAULT_##name,
#include "hal/fault.def"
#undef FAULT
    HAL_FAULT_COUNT
};

/* A number that the kernel refuses. */
struct hal_fault_number {
    const void *at; /* its address in the memory of a binding; NULL: it was computed */
    int64_t got;
    int64_t low, high; /* the allowed range, both included; high < low: no number is allowed */
};

/*
 * The first fault sets it. The submitter resets it before a submission and reads it after the
 * signals. Submissions that run one after the other may share one record. The other members are
 * valid once |code| is set.
 */
struct hal_fault_record {
    atomic_uint code;  /* enum hal_fault_code */
    const char *label; /* of the dispatch (struct hal_dispatch) */
    bool has_number;
    struct hal_fault_number number;
};

static inline void hal_fault_reset(struct hal_fault_record *record)
{
    atomic_store_explicit(&record->code, HAL_FAULT_NONE, memory_order_relaxed);
}

static inline enum hal_fault_code hal_fault_code_of(const struct hal_fault_record *record)
{
    return (enum hal_fault_code)atomic_load_explicit(&record->code, memory_order_relaxed);
}

/* For kernels, any number of times. |number| may be NULL. */
void hal_fault(const struct hal_args *args, enum hal_fault_code code,
               const struct hal_fault_number *number);

/*
 * Returns ST_INVALID with "gather: an index is out of range: got 5, expected 0 to 4"; ST_OK when
 * there is no fault.
 */
enum status hal_fault_error(const struct hal_fault_record *record, struct error *err);

#endif
