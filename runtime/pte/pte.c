/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/pte.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/pte/decode.h"
#include "runtime/pte/file.h"
#include "runtime/pte/pte_priv.h"

void pte_free(struct pte_program *program)
{
    if (program) {
        OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
        program->magic = 0;
        arena_fini(&program->arena);
        pte_file_unmap(&program->file);
        free(program);
    }
}

/* Takes over |file|, also in failure. |err| is not NULL. */
static enum status parse_pte(struct pte_file *file, struct pte_program **out_program,
                             struct error *err)
{
    struct pte_program *program = malloc(sizeof(*program));
    if (!program) {
        pte_file_unmap(file);
        return error_no_memory(err, "a program");
    }
    *program = (struct pte_program){.magic = PTE_PROGRAM_MAGIC, .file = *file};
    enum status status = pte_container_parse(file->bytes, &program->container, err);
    if (status == ST_OK) {
        status = pte_decode_program(program, err);
    }
    if (status != ST_OK) {
        pte_free(program);
        return status;
    }
    *out_program = program;
    return ST_OK;
}

enum status pte_open(const char *path, enum pte_file_use use, struct pte_program **out_program,
                     struct error *err)
{
    struct error local = {0};
    struct pte_file file;
    err = err ? err : &local;
    TRY(pte_file_open(path, use, &file, err));
    if (parse_pte(&file, out_program, err) != ST_OK) {
        return error_prefix(err, "%.160s: ", path);
    }
    return ST_OK;
}

enum status pte_parse(struct span bytes, enum pte_file_use use, struct pte_program **out_program,
                      struct error *err)
{
    struct error local = {0};
    struct pte_file file;
    err = err ? err : &local;
    if (use == PTE_FILE_COPIED && bytes.len > 0) {
        TRY(pte_file_copy(bytes, &file, err));
    } else {
        pte_file_borrow(&file, bytes);
    }
    return parse_pte(&file, out_program, err);
}

const struct pte_plan *pte_plans(const struct pte_program *program, size_t *out_count)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    *out_count = program->plan_count;
    return program->plans;
}

const struct pte_names *pte_named_data(const struct pte_program *program)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    return &program->named;
}

/* |key| need not be terminated; the entry's is, and has no zero within. */
static int compare_key(const void *key, const void *entry)
{
    const struct span *want = key;
    const struct pte_named_data *const *named = entry;
    int order = strncmp((const char *)want->ptr, (*named)->key, want->len);
    return order ? order : -((*named)->key[want->len] != '\0');
}

const struct pte_named_data *pte_names_find(const struct pte_names *names, struct span key)
{
    /* A zero inside would end the comparison early. */
    if (key.len == 0 || memchr(key.ptr, '\0', key.len)) {
        return NULL;
    }
    const struct pte_named_data **found =
        bsearch(&key, names->sorted, names->count, sizeof(*found), compare_key);
    return found ? *found : NULL;
}

struct pte_file *pte_file_of(struct pte_program *program)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    return &program->file;
}
