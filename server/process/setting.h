/* SPDX-License-Identifier: MIT */
/* The table of all settings, made of params.def, for those who read settings and those who describe
 * them. Constant; any thread. */
#ifndef PTED_SERVER_PROCESS_SETTING_H
#define PTED_SERVER_PROCESS_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "server/process/options.h"

/* Takes a value as the command line has it. |value| is borrowed by |options|. */
typedef enum status setting_set_f(struct options *options, const char *value, struct error *err);

struct setting {
    const char *name;   /* as in C, with underscores */
    const char *member; /* of a document, or NULL */
    enum option_type type;
    uint64_t preset, min, max; /* of a number */
    const char *words;         /* of a WORD, separated by blanks; otherwise NULL */
    const char *value;         /* the word for the value in --help; "": it may be left out */
    const char *preset_text;   /* the default for people; NULL: there is none, or it is |preset| */
    const char *example;       /* JSON, or NULL */
    const char *doc;
    bool is_of_model;   /* may be set for one model */
    size_t offset;      /* of a number in struct params */
    setting_set_f *set; /* NULL: a number in struct params */
};

/* A further member of one model in a document. */
struct setting_of_model {
    const char *name;
    enum option_type type;
    const char *example; /* JSON */
    const char *doc;
    enum status (*add)(struct options *options, struct option_model model, struct error *err);
};

extern const struct setting settings[];
extern const uint32_t setting_count;
extern const struct setting_of_model settings_of_model[];
extern const uint32_t setting_of_model_count;

/* Finds a setting by the name of the option without its dashes; NULL: there is none. */
const struct setting *setting_find(struct span option);

/* Finds a setting by the member of a document that has one value or a list of values. A member of
 * "models" is found by its name. NULL: there is none. */
const struct setting *setting_find_member(const char *member);
const struct setting *setting_find_of_model(const char *member);

/* Sets the value; ST_INVALID says what was expected and what is there, without a name. */
MUST_CHECK enum status setting_set(const struct setting *setting, struct options *options,
                                   const char *value, struct error *err);

/* Parses the number that |value|, as the command line has it, is for a setting of struct params.
 * ST_INVALID likewise. */
MUST_CHECK enum status setting_parse(const struct setting *setting, const char *value,
                                     uint64_t *out_value, struct error *err);

/* The value of a setting that is no path, in a document, as the command line has it; a number may
 * be put into |room|. Otherwise |*out| belongs to the document. */
#define SETTING_NUMBER_BYTES 24
MUST_CHECK enum status setting_read(const struct setting *setting, const struct document *document,
                                    const struct cJSON *value, char room[SETTING_NUMBER_BYTES],
                                    const char **out, struct error *err);

/* Prints "body-bytes-max", and "PTED_BODY_BYTES_MAX", terminated. */
void setting_print_option(const struct setting *setting, struct buf *out);

/* "; did you mean '--max-batch'?", if a setting is like |option|, which comes without its dashes;
 * otherwise "". If |is_of_model|, only settings of models count, and the hint has no dashes. */
#define SETTING_HINT_MAX 96
void setting_hint(struct span option, bool is_of_model, char hint[SETTING_HINT_MAX]);

#define SETTING_VARIABLE_MAX 64
void setting_variable(const struct setting *setting, char name[SETTING_VARIABLE_MAX]);

/* Prints the default as a person writes it: "64M". Nothing is printed if there is none. */
void setting_print_preset(const struct setting *setting, struct buf *out);

/* Prints a number as a person writes it, in the largest unit that it is a multiple of. */
void setting_print_number(const struct setting *setting, uint64_t value, struct buf *out);

/* Prints the default as JSON. false: the setting has none. */
bool setting_print_json_preset(const struct setting *setting, struct buf *out);

/* Prints what a JSON Schema says of values of |type|. |words|: of OPTION_WORD, with blanks between
 * them. */
void setting_print_type(enum option_type type, const char *words, uint64_t min, uint64_t max,
                        struct buf *out);

/* Prints the setting as a member of a JSON Schema. */
void setting_print_schema(const char *indent, const struct setting *setting, struct buf *out);

/* May a card say it? Not what is about all versions of a model. */
bool setting_is_of_card(const struct setting *setting);

/* May the option be given several times? */
static inline bool option_is_list(enum option_type type)
{
    return type >= OPTION_TEXTS;
}

static inline bool option_is_path(enum option_type type)
{
    return type == OPTION_FILE || type == OPTION_FILES;
}

#endif
