/* SPDX-License-Identifier: MIT */
/* The command `pte card`, and the card that other commands find beside a program. */
#include "config.h"

#include "server/model/card/card.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "hal/device.h"
#include "lib/cards.h"
#include "runtime/load/load.h"
#include "runtime/program/carries.h"
#include "runtime/pte/files.h"
#include "server/cli/cli.h"
#include "server/cli/option.h"
#include "server/cli/target.h"
#include "server/model/card/beside.h"
#include "server/model/card/derive.h"
#include "server/model/card/warm_up.h"
#include "server/model/intake/intake.h"

#define CARD_TEXT_BYTES_MAX (4 << 20)

struct card_options {
    const char *path, *checked, *tokenizer;
    char place[PATH_MAX];
    const char *data[RT_DATA_FILES_MAX];
    uint32_t data_count;
};

/* ---- with a card ----------------------------------------------------------------------------- */

/* A check of a card in all that the daemon does with it, too. */
struct check {
    struct hal_device *device;
    const char *path, *tokenizer; /* of the program; as the daemon's option has it, or NULL */
};

/* A probable mistake gets a warning, and is no error. */
static void warn(const struct card *card, const struct rt_method *method)
{
    const struct card_method *said = card_find_method(card, method);
    for (uint32_t i = 0; said && i < rt_method_input_count(method); i++) {
        const struct card_io *io = card_find_io(said, RT_INPUT, i);
        struct error doubt;
        if (io && !rt_method_failure(method) && card_find_doubt(io, &doubt)) {
            fprintf(stderr, "pte card: warning: %s\n", doubt.text);
        }
    }
}

static enum status run_check(const struct check *check, const struct card *card,
                             struct rt_program *program, struct error *err)
{
    TRY(card_warm_up(card, program, check->device, err));
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        TRY(intake_verify(method, card, check->path, check->tokenizer, err));
        warn(card, method);
    }
    return ST_OK;
}

/* |check| may be NULL. */
static enum status apply(struct card *card, struct rt_program *program, const struct check *check,
                         struct error *err)
{
    for (uint32_t i = 0; i < card->note_count; i++) {
        fprintf(stderr, "pte: warning: %s\n", card->notes[i].text);
    }
    TRY(card_apply(card, program, err));
    TRY(check ? run_check(check, card, program, err) : ST_OK);
    card_settle(card);
    return ST_OK;
}

/* What the card, which may be NULL, says of the loading. */
static void prepare(void *card, struct rt_load_options *load)
{
    load->composition = intake_composition();
    load->adapt = card ? card_adapt : NULL;
    load->adapt_arg = card;
    load->has_int8_caches = card_has_int8_cache(card);
}

/* Loads the program at |path|. |card| may be NULL. */
typedef enum status load_f(void *own, const char *path, struct card *card, struct error *err);

/* What lies beside the program, and over it the card at |card_path|, which may be NULL. */
static enum status read_card(struct card *card, const char *path, const char *card_path,
                             struct error *err)
{
    TRY(card_read_beside(card, path, err));
    return card_path ? card_read_file(card, card_path, err) : ST_OK;
}

/* Loads with the card at |card_path|, and what lies beside the program. */
static enum status load_with(const char *path, const char *card_path, load_f *load, void *own,
                             struct card **out_card, struct error *err)
{
    struct card *card = card_new();
    if (!card) {
        return error_no_memory(err, "the card");
    }
    enum status status = read_card(card, path, card_path, err);
    if (status == ST_OK) {
        status = load(own, path, card, err);
    }
    if (status != ST_OK) {
        card_free(card);
        card = NULL;
    }
    if (status == ST_INVALID || status == ST_TOO_LARGE) { /* the command line is well */
        err->code = status = ST_CORRUPT;
    }
    *out_card = card;
    return status;
}

/* A file that is not there may have been meant as a model at a server. */
static enum status explain_missing(const char *path, struct error *err)
{
    return strstr(path, "://") || target_is_one(path)
               ? error_set(err, ST_NOT_FOUND,
                           "%.800s: this command takes a file; pte run, ls, top and chat ask a "
                           "server, and pte fetch fetches a file",
                           path)
               : err->code;
}

/* Loads with the card |said| or, with NULL, with what lies beside the program. */
static enum status load_any(const char *path, const char *said, load_f *load, void *own,
                            struct card **out_card, struct error *err)
{
    char beside[PATH_MAX];
    *out_card = NULL;
    if (said) {
        return load_with(path, said, load, own, out_card, err);
    }
    bool has_path = card_path_of(path, beside, sizeof(beside)) && access(beside, F_OK) == 0;
    enum status status = has_path || beside_has_any(path)
                             ? load_with(path, has_path ? beside : NULL, load, own, out_card, err)
                             : load(own, path, NULL, err);
    return status == ST_NOT_FOUND && access(path, F_OK) < 0 ? explain_missing(path, err) : status;
}

/* A program of the runtime. */
struct runtime_load {
    struct rt_load_options *options;
    const struct check *check; /* or NULL */
    struct rt_program *program;
};

static enum status load_runtime(void *own, const char *path, struct card *card, struct error *err)
{
    struct runtime_load *load = own;
    prepare(card, load->options);
    TRY(rt_load_program(path, load->options, &load->program, err));
    if (card && apply(card, load->program, load->check, err) != ST_OK) {
        rt_program_unref(load->program);
        load->program = NULL;
        return err->code;
    }
    return ST_OK;
}

enum status cli_load(const char *path, struct rt_load_options *options, const char *said,
                     struct rt_program **out_program, struct card **out_card, struct error *err)
{
    struct runtime_load load = {.options = options};
    enum status status = load_any(path, said, load_runtime, &load, out_card, err);
    *out_program = load.program;
    return status;
}

/* A program of the library. */
struct library_load {
    struct pted_device *device;
    const struct pted_load_options *options;
    struct pted_program *program;
};

static enum status apply_to_new(void *card, struct rt_program *program, struct error *err)
{
    return card ? apply(card, program, NULL, err) : ST_OK;
}

static enum status load_library(void *own, const char *path, struct card *card, struct error *err)
{
    struct library_load *load = own;
    const struct lib_adapter adapter = {card, prepare, apply_to_new};
    struct pted_error why;
    enum pted_status status =
        lib_program_load(load->device, path, load->options, &adapter, &load->program, &why);
    return cli_take_status(status, &why, err);
}

enum status cli_load_program(struct pted_device *device, const char *path,
                             const struct pted_load_options *options, const char *said,
                             struct pted_program **out_program, struct card **out_card,
                             struct error *err)
{
    struct library_load load = {.device = device, .options = options};
    enum status status = load_any(path, said, load_library, &load, out_card, err);
    *out_program = load.program;
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct cli_option own_options[] = {
    {.name = "check",
     .value = "CARD",
     .type = OPTION_FILE,
     .at = offsetof(struct card_options, checked),
     .doc = "read CARD as pted does, compare it with the program, make its first calls, and open "
            "tokenizers and libraries; exit status 65 and the place if something is wrong, and "
            "warnings of what may be"},
    {.name = "tokenizer",
     .value = "PATH",
     .type = OPTION_FILE,
     .at = offsetof(struct card_options, tokenizer),
     .doc = "with --check: as pted's --tokenizer, if it is not beside FILE.pte"},
    {.name = "data",
     .value = "FILE",
     .type = OPTION_FILES,
     .at = offsetof(struct card_options, data),
     .count_at = offsetof(struct card_options, data_count),
     .max = RT_DATA_FILES_MAX,
     .doc = "look for external weights in this .ptd file instead of beside FILE.pte; repeatable"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "card", .options = own_options},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct card_options *options = own;
    return cli_take_only(&options->path, "FILE", text, err);
}

static enum status parse(int argc, char *const argv[], struct card_options *out, struct error *err)
{
    TRY(cli_option_parse(&cli_card_command, argc, argv, out, err));
    if (out->checked && ends_with(out->checked, ".pte")) {
        return error_set(err, ST_INVALID,
                         "--check %.200s: expected a card; the order is --check CARD FILE.pte",
                         out->checked);
    }
    if (out->tokenizer && !out->checked) {
        return error_set(err, ST_INVALID, "--tokenizer: only with --check");
    }
    return out->path ? cli_enter_folder(&out->path, out->place, err)
                     : error_set(err, ST_INVALID, "expected FILE");
}

/* What `pte card` prints, while the program still has the inputs that its file says. */
struct first {
    struct beside beside;
    struct derive derive;
};

/* A rt_adapt_f that changes nothing. */
static enum status look_beside(void *arg, struct rt_method *method, bool is_default,
                               struct error *err)
{
    struct first *first = arg;
    if (!is_default) {
        return ST_OK;
    }
    const struct derive_own none = {.has_inputs = false};
    derive_fini(&first->derive);
    return derive_init(&first->derive, &first->beside, &none, method, err);
}

static void print_notes(const struct first *first)
{
    for (int file = 0; file < BESIDE_FILES; file++) {
        if (first->beside.notes[file].code != ST_OK) {
            fprintf(stderr, "pte card: warning: %s\n", first->beside.notes[file].text);
        }
    }
    for (uint32_t i = 0; i < first->derive.note_count; i++) {
        fprintf(stderr, "pte card: warning: %s\n", first->derive.notes[i].text);
    }
}

static enum status print_card(const struct rt_program *program, const struct derive *derive,
                              struct error *err)
{
    struct buf out;
    buf_init(&out, CARD_TEXT_BYTES_MAX);
    card_print(program, derive, &out);
    enum status status = cli_write(&out, err);
    buf_fini(&out);
    return status;
}

static enum status load_and_print(const char *path, struct rt_load_options *load, struct error *err)
{
    struct first first = {.derive = {.note_count = 0}};
    struct rt_program *program = NULL;
    load->adapt = look_beside;
    load->adapt_arg = &first;
    beside_open(&first.beside, path);
    enum status status = rt_load_program(path, load, &program, err);
    if (status == ST_OK) {
        print_notes(&first);
        first.derive.carry_count = load->carries ? load->carries->count : 0;
        status = print_card(program, &first.derive, err);
    }
    derive_fini(&first.derive);
    beside_close(&first.beside);
    rt_program_unref(program);
    return status;
}

/* As pted loads it, with |exported|, which may be NULL. */
static enum status load_and_use(const struct card_options *options, struct hal_device *device,
                                const struct exported *exported, struct error *err)
{
    struct rt_load_options load = {
        .device = device,
        .data_paths = options->data,
        .data_count = options->data_count,
        .precision = PRECISION_FAST,
        .composition = intake_composition(),
        .carries = intake_carries(exported),
    };
    const struct check check = {device, options->path, options->tokenizer};
    struct runtime_load loading = {.options = &load, .check = &check};
    struct card *checked;
    if (!options->checked) {
        return load_and_print(options->path, &load, err);
    }
    TRY(load_any(options->path, options->checked, load_runtime, &loading, &checked, err));
    card_free(checked);
    rt_program_unref(loading.program);
    return ST_OK;
}

static enum status card(int argc, char *const argv[], struct error *err)
{
    struct card_options options = {.path = NULL};
    struct hal_device *device;
    TRY(parse(argc, argv, &options, err));
    struct exported *exported;
    enum status status = intake_read_exported(options.path, &exported, err);
    if (status == ST_EXHAUSTED) {
        return status;
    }
    if (status != ST_OK) {
        fprintf(stderr, "pte card: warning: %s\n", err->text);
    }
    status = hal_device_open("cpu", &(struct hal_device_options){.workers = 0}, &device, err);
    if (status == ST_OK) {
        status = load_and_use(&options, device, exported, err);
        hal_device_unref(device);
    }
    intake_free_exported(exported);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_card_command, card(argc, argv, &err), &err);
}

const struct cli_command cli_card_command = {
    .name = "card",
    .usage = "card [--check CARD] [--tokenizer PATH] [--data FILE]... FILE.pte|FOLDER",
    .summary = "a first card of a program: names, labels and more; or a check of one",
    .about =
        "Prints what the program says of itself as a card, for you to go on with: write it to\n"
        "NAME.card.json beside NAME.pte, and pted, `pte run` and `pte inspect` use it. What\n"
        "exporters wrote beside it (metadata.yaml, config.json, preprocessor_config.json,\n"
        "generation_config.json) is in it, too, with a comment that says where a member comes\n"
        "from.\n",
    .after = "Examples:\n"
             "  pte card mobilenet.pte >mobilenet.card.json\n"
             "  pte card --check mobilenet.card.json mobilenet.pte\n",
    .groups = groups,
    .take = take,
    .run = run,
};
