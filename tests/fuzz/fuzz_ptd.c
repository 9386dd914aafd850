/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a data file: either refused with a reason, or every entry is found and can be read.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/pte/ptd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ptd_file *file;
    struct error err = {0};
    if (ptd_parse(span_of(data, size), &file, &err) != ST_OK) {
        must(err.text[0] != '\0');
        return 0;
    }
    const struct pte_names *names = ptd_names(file);
    for (uint32_t i = 0; i < names->count; i++) {
        const struct pte_named_data *entry = &names->entries[i];
        must(pte_names_find(names, span_str(entry->key)) == entry);
        for (size_t j = 0; j < entry->bytes.len; j++) {
            sink ^= entry->bytes.ptr[j];
        }
    }
    ptd_free(file);
    return 0;
}
