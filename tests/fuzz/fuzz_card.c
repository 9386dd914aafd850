/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the card of a model, which is given to a program. It is taken, or the error has a
 * text in one line; the names of the program stay unique and valid in each case. First calls are
 * not made: what they compute is the matter of other tests.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "runtime/load/load.h"
#include "server/model/card/card.h"

#define PATH_BYTES 4096
#define MODEL "keywords"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct document_limits limits = {.bytes_max = 1 << 20, .values_max = 4096};

static struct rt_program *load(void)
{
    static struct hal_device *device;
    char path[PATH_BYTES];
    const char *top = getenv("top_srcdir");
    struct rt_program *program;
    struct error err;
    if (!device) {
        must(hal_device_open("cpu", &(struct hal_device_options){.workers = 1}, &device, &err) ==
             ST_OK);
    }
    const struct rt_load_options options = {.device = device, .precision = PRECISION_FAST};
    snprintf(path, sizeof(path), "%s/tests/models/" MODEL ".pte", top ? top : ".");
    must(rt_load_program(path, &options, &program, &err) == ST_OK);
    return program;
}

static void check_names(const struct rt_method *method)
{
    uint32_t count = rt_method_input_count(method);
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        bool is_alias = strcmp(io->name, io->alias) == 0;
        must(is_alias || rt_name_is_valid(span_str(io->name), RT_INPUT));
        for (uint32_t k = 0; k < i; k++) {
            must(!rt_io_is_called(rt_method_input(method, k), span_str(io->name)));
        }
    }
}

static void use(const struct document *document)
{
    struct rt_program *program = load();
    struct card *card = card_new();
    struct error err = {0};
    must(card != NULL);
    enum status status = card_read_members(card, document, document->root, "d/pted.json", &err);
    if (status == ST_OK) {
        status = card_apply(card, program, &err);
    }
    must(status == ST_OK || (err.text[0] != '\0' && !strchr(err.text, '\n')));
    check_names(rt_program_default_method(program));
    card_free(card);
    rt_program_unref(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct document document;
    struct error err = {0};
    if (document_parse(span_of(data, size), &limits, &document, &err) != ST_OK) {
        return 0;
    }
    if (document_type(document.root) == JSON_OBJECT) {
        enum status status = card_verify_members(&document, document.root, &err);
        must(status == ST_OK || err.text[0] != '\0');
        use(&document);
    }
    document_close(&document);
    return 0;
}
