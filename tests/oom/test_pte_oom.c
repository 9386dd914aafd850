/* SPDX-License-Identifier: MIT */
/*
 * Loading a program when memory runs out: the first allocation fails, then the second, and so on
 * until loading succeeds. Each time the reason is said and nothing leaks (LeakSanitizer's to find).
 * The linker sends malloc() and calloc() here.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/pte/pte.h"
#include "tests/oom/failing.h"
#include "tests/unit/pte_sample.h"

#define ALLOCATIONS_MAX 1000

static enum status load_with(long allocations, struct span file, struct error *err)
{
    struct pte_program *program;
    allocations_left = allocations;
    enum status status = pte_parse(file, PTE_FILE_MAPPED, &program, err);
    allocations_left = -1;
    if (status == ST_OK) {
        pte_free(program);
    }
    return status;
}

int main(void)
{
    static struct sample sample;
    struct error err = {0};
    long count = 0;
    sample_make(&sample, SAMPLE_SEGMENTS);
    struct span file = span_of(sample.writer.bytes, sample.writer.len);
    for (enum status status; (status = load_with(count, file, &err)) != ST_OK; count++) {
        must(status == ST_EXHAUSTED);
        must(strstr(err.text, "no memory for ") != NULL);
        must(count < ALLOCATIONS_MAX);
    }
    printf("loading takes %ld allocations\n", count);
    /* The program, its arena and two scratch arrays a method, at the least. */
    return count >= 4 ? 0 : 1;
}
