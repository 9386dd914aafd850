/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/fault.h"

#include <inttypes.h>

#include "base/check.h"
#include "hal/kernel.h"

static const char *const texts[HAL_FAULT_COUNT] = {
#define FAULT(name, text) [HAL_FAULT_##name] = text,
#include "hal/fault.def"
#undef FAULT
};

/* The thread that sets the code writes the rest, which is read after all tiles have ended. */
void hal_fault(const struct hal_args *args, enum hal_fault_code code,
               const struct hal_fault_number *number)
{
    struct hal_fault_record *record = args->fault;
    unsigned none = HAL_FAULT_NONE;
    must(code > HAL_FAULT_NONE && code < HAL_FAULT_COUNT);
    if (hal_fault_code_of(record) == HAL_FAULT_NONE &&
        atomic_compare_exchange_strong_explicit(&record->code, &none, code, memory_order_relaxed,
                                                memory_order_relaxed)) {
        record->label = args->label;
        record->has_number = number != NULL;
        record->number = number ? *number : (struct hal_fault_number){0};
    }
}

enum status hal_fault_error(const struct hal_fault_record *record, struct error *err)
{
    enum hal_fault_code code = hal_fault_code_of(record);
    if (code == HAL_FAULT_NONE) {
        return ST_OK;
    }
    const struct hal_fault_number *number = &record->number;
    if (!record->has_number) {
        return error_set(err, ST_INVALID, "%s: %s", record->label, texts[code]);
    }
    if (number->high < number->low) {
        return error_set(err, ST_INVALID, "%s: %s: got %" PRId64 ", expected none", record->label,
                         texts[code], number->got);
    }
    if (number->high == number->low) {
        return error_set(err, ST_INVALID, "%s: %s: got %" PRId64 ", expected %" PRId64,
                         record->label, texts[code], number->got, number->low);
    }
    return error_set(err, ST_INVALID, "%s: %s: got %" PRId64 ", expected %" PRId64 " to %" PRId64,
                     record->label, texts[code], number->got, number->low, number->high);
}
