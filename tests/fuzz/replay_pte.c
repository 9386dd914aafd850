/* SPDX-License-Identifier: MIT */
/*
 * Loads each named file and prints the result in one line each. It fails only if an accepted
 * program cannot be printed; crashes and sanitizer reports fail by themselves. The file is parsed
 * from a copy of exactly its size, so that AddressSanitizer finds reads beyond it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/pte/file.h"
#include "runtime/pte/pte.h"

#define LISTING_BYTES_MAX (256u << 20)

static bool print_listing(const struct pte_program *program)
{
    struct buf listing;
    buf_init(&listing, LISTING_BYTES_MAX);
    pte_print(program, &listing);
    bool is_complete = !buf_failed(&listing);
    buf_fini(&listing);
    return is_complete;
}

static bool replay(struct span bytes)
{
    struct pte_program *program;
    struct error err;
    if (pte_parse(bytes, PTE_FILE_MAPPED, &program, &err) != ST_OK) {
        printf("refused: %s\n", err.text);
        return true;
    }
    bool is_printable = print_listing(program);
    printf("accepted%s\n", is_printable ? "" : ", but its listing is too long");
    pte_free(program);
    return is_printable;
}

static bool replay_file(const char *path)
{
    struct pte_file file;
    struct error err;
    if (pte_file_open(path, PTE_FILE_GUARDED, &file, &err) != ST_OK) {
        printf("refused: %s\n", err.text);
        return true;
    }
    uint8_t *copy = malloc(file.bytes.len);
    bool is_good = false;
    if (copy) {
        memcpy(copy, file.bytes.ptr, file.bytes.len);
        printf("%s: ", path);
        is_good = replay(span_of(copy, file.bytes.len));
    }
    free(copy);
    pte_file_unmap(&file);
    return is_good;
}

int main(int argc, char **argv)
{
    int failures = 0;
    for (int i = 1; i < argc; i++) {
        failures += !replay_file(argv[i]);
    }
    return failures ? 1 : 0;
}
