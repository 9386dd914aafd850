/* SPDX-License-Identifier: MIT */
/*
 * What exporters write beside a program, and folders that hold one program:
 *
 *     NAME_executorch_model/    Ultralytics: model.pte, metadata.yaml
 *     NAME/                     Hugging Face: model.pte, config.json, and preprocessor_config.json,
 *                               or since transformers 5 processor_config.json;
 * generation_config.json
 *
 * server/model/card/derive.h makes a card of these files. They are hostile, and nobody may have
 * meant them for pted: a file that cannot be read is left out, with a note. Blocks; one thread.
 */
#ifndef PTED_SERVER_MODEL_CARD_BESIDE_H
#define PTED_SERVER_MODEL_CARD_BESIDE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "server/process/document.h"

/* A kind of file. */
enum beside_file {
    BESIDE_METADATA,     /* metadata.yaml of Ultralytics */
    BESIDE_CONFIG,       /* config.json of transformers */
    BESIDE_PREPROCESSOR, /* preprocessor_config.json */
    BESIDE_PROCESSOR,    /* processor_config.json */
    BESIDE_GENERATION,   /* generation_config.json */
    BESIDE_FILES,
};

#define BESIDE_BYTES_MAX ((size_t)4 << 20)
#define BESIDE_VALUES_MAX (1u << 17)

struct beside {
    struct document files[BESIDE_FILES]; /* owned; root is NULL: there is none */
    struct error notes[BESIDE_FILES];    /* why a file is left out; ST_OK: it is not */
};

/* Returns "metadata.yaml" */
const char *beside_name(enum beside_file file);

/* Is one of the files beside the program at |path|? */
bool beside_has_any(const char *path);

/* Reads the files in the folder of the program at |path|. */
void beside_open(struct beside *beside, const char *path);
void beside_close(struct beside *beside);

/* Finds the path of |file| beside the program at |path|. False: it is too long. */
bool beside_path(const char *path, enum beside_file file, char *out, size_t size);

/*
 * Finds the program that |path| stands for, |size| bytes at |out|: |path| itself, or, if it is a
 * folder, its model.pte, or decode.pte beside export.json, or else its only file NAME.pte.
 * ST_NOT_FOUND: a folder without one, or with several, and |out| is the path of its model.pte,
 * which is missing; ST_INVALID: the path is too long.
 */
MUST_CHECK enum status beside_find_program(const char *path, char *out, size_t size,
                                           struct error *err);

#endif
