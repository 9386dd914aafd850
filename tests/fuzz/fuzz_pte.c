/* SPDX-License-Identifier: MIT */
/* Any bytes as a program: either refused with a reason, or accepted and printable. With clang,
 * build with -fsanitize=fuzzer and without replay.c; otherwise replay.c is its main(). */
#include "config.h"

#include "base/check.h"
#include "runtime/pte/pte.h"

#define LISTING_BYTES_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pte_program *program;
    struct error err = {0};
    if (pte_parse(span_of(data, size), PTE_FILE_MAPPED, &program, &err) != ST_OK) {
        must(err.text[0] != '\0');
        return 0;
    }
    struct buf listing;
    buf_init(&listing, LISTING_BYTES_MAX);
    pte_print(program, &listing);
    buf_fini(&listing);
    pte_free(program);
    return 0;
}
