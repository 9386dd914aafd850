/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* ---- the command line ------------------------------------------------------------------------ */

/* Finds the input that |option|, NAME=X, names (or its alias), and X; |form| describes X for
 * errors. */
static enum status find_input(const struct cli_inputs *inputs, const char *option, const char *form,
                              uint32_t *out_index, const char **out_value, struct error *err)
{
    char names[NAMES_TEXT_MAX];
    uint32_t index = 0;
    const char *equals = strchr(option, '=');
    struct span name = span_of(option, equals ? (size_t)(equals - option) : strlen(option));
    while (index < inputs->count && !cli_io_is_called(&inputs->ios[index], name)) {
        index++;
    }
    if (!equals || index == inputs->count) {
        return error_set(err, ST_INVALID, "%.64s: expected NAME=%s, where NAME is %s", option, form,
                         cli_io_print_names(inputs->ios, inputs->count, names));
    }
    *out_index = index;
    *out_value = equals + 1;
    return ST_OK;
}

enum status cli_inputs_add(struct cli_inputs_options *options, const char *text, struct error *err)
{
    bool is_named = strchr(text, '=') != NULL;
    uint32_t *count = is_named ? &options->input_count : &options->file_count;
    if (*count == CLI_INPUTS_MAX) {
        return error_set(err, ST_INVALID, "at most %d inputs", CLI_INPUTS_MAX);
    }
    (is_named ? options->inputs : options->files)[(*count)++] = text;
    return ST_OK;
}

/* Media are rows, so an input may have several. */
static enum status add_value(struct cli_inputs *inputs, uint32_t index, const char *value,
                             const char *option, struct error *err)
{
    struct cli_inputs_item *item = &inputs->items[index];
    bool is_medium = inputs->mediums && inputs->mediums[index] && !cli_input_is_tensor(value);
    if (item->text || (item->media && !is_medium)) {
        return error_set(err, ST_INVALID, "%.64s: %s is given twice", option,
                         inputs->ios[index].label);
    }
    if (!is_medium) {
        item->text = value;
        return ST_OK;
    }
    const char **media = realloc(item->media, (item->medium_count + 1) * sizeof(*media));
    if (!media) {
        return error_no_memory(err, "the inputs");
    }
    item->media = media;
    item->media[item->medium_count++] = value;
    return ST_OK;
}

static enum status assign_input(struct cli_inputs *inputs, const char *option, struct error *err)
{
    uint32_t index;
    const char *value;
    return find_input(inputs, option, "X", &index, &value, err) == ST_OK &&
                   add_value(inputs, index, value, option, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "--input ");
}

/* Does a text of one word look like a file's name? It is refused, because the name would be taken
 * for the text. */
static bool is_file_name(const char *text)
{
    return !strpbrk(text, " \t\n") && (strchr(text, '/') || ends_with(text, ".txt"));
}

/* The only input that takes files, or texts. */
static enum status assign_file(struct cli_inputs *inputs, const char *file, struct error *err)
{
    char names[NAMES_TEXT_MAX], media[CARD_MEDIA_TEXT_MAX];
    uint32_t found = 0, index = 0;
    for (uint32_t i = 0; inputs->mediums && i < inputs->count; i++) {
        found += inputs->mediums[i] != NULL;
        index = inputs->mediums[i] ? i : index;
    }
    if (found == 1 && inputs->mediums[index]->is_text && is_file_name(file)) {
        return error_set(err, ST_INVALID,
                         "%.100s looks like a file, expected a text; as a text it is %.64s=%.100s",
                         file, inputs->ios[index].name, file);
    }
    if (inputs->count == 1 && inputs->ios[0].kind == PTED_KIND_TENSOR &&
        cli_input_is_tensor(file)) {
        return add_value(inputs, 0, file, file, err); /* the only input needs no name */
    }
    return found == 1
               ? add_value(inputs, index, file, file, err)
               : error_set(err, ST_INVALID, "%.64s: %s%s; expected NAME=X, where NAME is %s", file,
                           cli_input_is_tensor(file) ? "there are several inputs"
                           : found                   ? "several inputs are made from "
                                                     : "no card says that an input is made from ",
                           cli_input_is_tensor(file) ? "" : card_list_media(" or ", true, media),
                           cli_io_print_names(inputs->ios, inputs->count, names));
}

static enum status assign_shape(struct cli_inputs *inputs, const char *option, struct error *err)
{
    uint32_t index;
    const char *value;
    if (find_input(inputs, option, "2x3x4", &index, &value, err) != ST_OK) {
        return error_prefix(err, "--shape ");
    }
    struct cli_inputs_item *item = &inputs->items[index];
    const struct cli_io *io = &inputs->ios[index];
    if (io->kind != PTED_KIND_TENSOR && !(io->kind == PTED_KIND_STRING && io->shape.rank > 0)) {
        return error_set(err, ST_INVALID, "--shape %s: the input is no tensor", option);
    }
    if (item->has_shape) {
        return error_set(err, ST_INVALID, "--shape %.64s: %s is given twice", option, io->label);
    }
    if (item->media) {
        return error_set(err, ST_INVALID, "--shape %.64s: files and texts have shapes of their own",
                         option);
    }
    if (cli_input_parse_dims(value, &item->shape, err) != ST_OK) {
        return error_prefix(err, "--shape %s: ", option);
    }
    item->has_shape = true;
    return ST_OK;
}

enum status cli_inputs_assign(struct cli_inputs *inputs, const struct cli_io *ios,
                              const struct card_medium *const *mediums, uint32_t count,
                              const struct cli_inputs_options *options, struct error *err)
{
    *inputs = (struct cli_inputs){.ios = ios, .mediums = mediums, .count = count};
    inputs->items = calloc((size_t)count + 1, sizeof(*inputs->items));
    if (!inputs->items) {
        return error_no_memory(err, "the inputs");
    }
    for (uint32_t i = 0; i < options->input_count; i++) {
        TRY(assign_input(inputs, options->inputs[i], err));
    }
    for (uint32_t i = 0; i < options->file_count; i++) {
        TRY(assign_file(inputs, options->files[i], err));
    }
    for (uint32_t i = 0; i < options->shape_count; i++) {
        TRY(assign_shape(inputs, options->shapes[i], err));
    }
    return ST_OK;
}

void cli_inputs_fini(struct cli_inputs *inputs)
{
    for (uint32_t i = 0; inputs->items && i < inputs->count; i++) {
        free(inputs->items[i].media);
    }
    free(inputs->items);
    inputs->items = NULL;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool is_tensor(const struct cli_inputs *inputs, uint32_t index)
{
    return inputs->ios[index].kind == PTED_KIND_TENSOR;
}

/* " input_0=1x3x224x224" for all tensors, or for those whose shape is our choice. */
static void print_shapes(const struct cli_inputs *inputs, const struct shape *const *given,
                         FILE *to)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct cli_io *io = &inputs->ios[i];
        const struct shape *shape = &inputs->items[i].shape;
        if (io->kind != PTED_KIND_TENSOR || (given && (given[i] || io->dynamic_dims == 0))) {
            continue;
        }
        fprintf(to, " %s=", io->name);
        for (uint8_t d = 0; d < shape->rank; d++) {
            fprintf(to, "%s%lld", d ? "x" : "", (long long)shape->dims[d]);
        }
    }
}

void cli_inputs_print_shapes(const struct cli_inputs *inputs, FILE *to)
{
    print_shapes(inputs, NULL, to);
}

/* Prints the shapes that we chose, if others were possible. */
static void note_choice(const struct cli_inputs *inputs, const struct shape *const *given)
{
    bool has_choice = false;
    for (uint32_t i = 0; i < inputs->count; i++) {
        has_choice |= !given[i] && is_tensor(inputs, i) && inputs->ios[i].dynamic_dims != 0;
    }
    if (has_choice) {
        fputs("pte: shapes chosen:", stderr);
        print_shapes(inputs, given, stderr);
        fputs(" (--shape sets others)\n", stderr);
    }
}

static enum status choose_with(struct cli_inputs *inputs, const struct shape **given,
                               struct shape *shapes, cli_inputs_choose_f *choose, void *own,
                               struct error *err)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        given[i] = inputs->items[i].has_shape ? &inputs->items[i].shape : NULL;
    }
    TRY(choose(own, given, shapes, err));
    for (uint32_t i = 0; i < inputs->count; i++) {
        inputs->items[i].shape = shapes[i];
    }
    note_choice(inputs, given);
    return ST_OK;
}

/* Chooses shapes for inputs without one, to match the inputs that have one. */
static enum status choose_shapes(struct cli_inputs *inputs, cli_inputs_choose_f *choose, void *own,
                                 struct error *err)
{
    uint32_t count = inputs->count, open = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct cli_inputs_item *item = &inputs->items[i];
        bool has_content = item->text || item->array || item->media || item->is_filled;
        open += is_tensor(inputs, i) && !(has_content && item->has_shape);
    }
    inputs->is_chosen = true;
    if (open == 0) {
        return ST_OK;
    }
    const struct shape **given = calloc((size_t)count + 1, sizeof(*given));
    struct shape *shapes = calloc((size_t)count + 1, sizeof(*shapes));
    enum status status = given && shapes ? choose_with(inputs, given, shapes, choose, own, err)
                                         : error_no_memory(err, "the inputs");
    free(given);
    free(shapes);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A content has the shape of the input. Media may decide their number and length. */
static enum status set_content(struct cli_inputs *inputs, uint32_t index,
                               const struct cli_input_ops *ops, void *own, struct error *err)
{
    struct cli_inputs_item *item = &inputs->items[index];
    const struct cli_input_to to = {ops, own, &inputs->ios[index], index};
    const struct shape *wanted = item->has_shape ? &item->shape : NULL;
    if (!item->text && !item->media && !item->array) {
        return ST_OK;
    }
    enum status status =
        item->text    ? cli_input_set(&to, item->text, wanted, &item->shape, err)
        : item->array ? cli_input_set_array(&to, item->array, &item->shape, err)
                      : ops->media(own, index, item->media, item->medium_count, &item->shape, err);
    item->has_shape = is_tensor(inputs, index);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", to.io->name);
}

/* Inputs with a content come first: the shapes of patterns follow from theirs. */
enum status cli_inputs_set(struct cli_inputs *inputs, const struct cli_input_ops *ops,
                           cli_inputs_choose_f *choose, void *own, struct error *err)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        TRY(set_content(inputs, i, ops, own, err));
    }
    TRY(inputs->is_chosen ? ST_OK : choose_shapes(inputs, choose, own, err));
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct cli_inputs_item *item = &inputs->items[i];
        const struct cli_input_to to = {ops, own, &inputs->ios[i], i};
        bool is_set = item->text || item->array || item->media || item->is_filled;
        if (!is_set && cli_input_fill(&to, &item->shape, err) != ST_OK) {
            return error_prefix(err, "%s: ", to.io->name);
        }
    }
    return ST_OK;
}
