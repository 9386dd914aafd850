/* SPDX-License-Identifier: MIT */
/*
 * The page of `pte inspect`: for each method its inputs and results, its weights, the memory that
 * it needs, and whether it is served. One line each, not longer than COLUMNS if that can be
 * avoided.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "runtime/program/state.h"
#include "server/cli/inspect.h"
#include "server/model/intake/intake.h"
#include "server/process/amount.h"

#define COLUMNS 100
#define INDENT 14       /* column at which the text of a line begins */
#define IO_LINES_MAX 16 /* inputs, or results, that are listed */
#define CONSTANT_TEXT_MAX 60
#define OPERATORS_MAX 4 /* operators named beside a delegate */
#define VALUES_MAX 4    /* that are shown of a constant method */

/* ---- words ----------------------------------------------------------------------------------- */

/* "8x3x224x224" */
static void print_extents(const struct shape *shape, struct buf *out)
{
    for (uint8_t d = 0; d < shape->rank; d++) {
        buf_printf(out, "%s%" PRId64, d ? "x" : "", shape->dims[d]);
    }
    buf_add_str(out, shape->rank ? "" : "a number");
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A line "  label       " to which words are added; it breaks at the edge. */
struct line {
    struct buf *out;
    size_t start;
    bool has_words;
};

static struct line begin_line(struct buf *out, const char *label)
{
    struct line line = {out, out->len, false};
    buf_printf(out, "  %-*s", INDENT - 2, label);
    return line;
}

static void add_text(struct line *line, const char *text, size_t len)
{
    if (line->has_words && line->out->len - line->start + len + 2 > COLUMNS) {
        buf_add_char(line->out, '\n');
        line->start = line->out->len;
        buf_add_fill(line->out, ' ', INDENT);
    } else if (line->has_words) {
        buf_add_char(line->out, ' ');
    }
    buf_add(line->out, text, len);
    line->has_words = true;
}

/* Adds words, which blanks separate. */
static void add_words(struct line *line, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, " ");
        add_text(line, text, len);
        text += len + strspn(text + len, " ");
    }
}

static void add_piece(struct line *line, const struct buf *piece)
{
    if (!buf_failed(piece)) {
        add_text(line, (const char *)piece->ptr, piece->len);
    }
    line->out->failed |= buf_failed(piece);
}

static void end_line(struct line *line)
{
    buf_add_char(line->out, '\n');
}

/* A unit stays on the line of its number. */
static void add_bytes(struct line *line, uint64_t bytes)
{
    char text[AMOUNT_TEXT_MAX];
    add_text(line, text, strlen(amount_bytes(bytes, text)));
}

/* ---- inputs and results ---------------------------------------------------------------------- */

/*
 * "batch<=8", "224", or "batch" in a result. A dim that is no size of an input has its bound alone.
 */
static void print_dim(const struct rt_method *method, bool is_input, uint32_t index, uint8_t d,
                      struct buf *out)
{
    const struct rt_io *io =
        is_input ? rt_method_input(method, index) : rt_method_result(method, index);
    char text[RT_DIM_NAME_MAX];
    const char *name = rt_method_dim_name(method, is_input, index, d, text);
    bool is_dynamic = rt_io_is_dynamic(io, d);
    if (name && is_dynamic) {
        buf_add_str(out, name);
    }
    if (is_dynamic && (is_input || !name)) {
        buf_add_str(out, "<=");
    }
    if (!is_dynamic || is_input || !name) {
        buf_printf(out, "%" PRId64, io->shape.dims[d]);
    }
}

static void print_fixed(const struct rt_io *io, struct buf *out)
{
    uint8_t number[NUMBER_TEXT_MAX];
    switch (io->kind) {
    case RT_IO_INT:
        buf_add(out, number, number_print_i64(number, io->value.i));
        break;
    case RT_IO_FLOAT:
        buf_add(out, number, number_print_f64(number, io->value.f, NUMBER_NAN_TOKEN));
        break;
    case RT_IO_BOOL:
        buf_add_str(out, io->value.b ? "true" : "false");
        break;
    case RT_IO_STRING:
        if (io->value.s.len <= CONSTANT_TEXT_MAX) {
            json_print_string(out, io->value.s);
        } else {
            buf_printf(out, "a string of %zu bytes", io->value.s.len);
        }
        break;
    default:
        break;
    }
}

static const char *const kind_names[] = {
    [RT_IO_NONE] = "nothing", [RT_IO_TENSOR] = "tensor", [RT_IO_INT] = "int",
    [RT_IO_FLOAT] = "float",  [RT_IO_BOOL] = "bool",     [RT_IO_STRING] = "string",
};

/* Of a file that was exported with another order than row-major; most were not. */
static void print_file_order(const struct rt_io *io, struct buf *out)
{
    const uint8_t *channels_last = shape_channels_last(io->shape.rank);
    if (!io->file_order) {
        return;
    }
    buf_add_str(out, "  exported ");
    if (channels_last && memcmp(io->file_order, channels_last, io->shape.rank) == 0) {
        buf_add_str(out, "channels-last");
        return;
    }
    buf_add_str(out, "in the order");
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        buf_printf(out, " %u", io->file_order[d]);
    }
}

static void print_type(const struct rt_method *method, bool is_input, uint32_t index,
                       struct buf *out)
{
    const struct rt_io *io =
        is_input ? rt_method_input(method, index) : rt_method_result(method, index);
    if (io->kind != RT_IO_TENSOR) {
        buf_add_str(out, kind_names[io->kind]);
        if (io->is_fixed) {
            buf_add_str(out, is_input ? ", only " : " ");
            print_fixed(io, out);
        }
        return;
    }
    buf_printf(out, "%-8s [", dtype_name(io->dtype));
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        buf_add_str(out, d ? ", " : "");
        print_dim(method, is_input, index, d, out);
    }
    buf_add_char(out, ']');
    print_file_order(io, out);
}

static int widest_name(const struct rt_method *method, bool is_input, uint32_t count)
{
    size_t width = 0;
    for (uint32_t i = 0; i < count && i < IO_LINES_MAX; i++) {
        const char *name =
            (is_input ? rt_method_input(method, i) : rt_method_result(method, i))->name;
        width = strlen(name) > width ? strlen(name) : width;
    }
    return (int)(width > 40 ? 40 : width);
}

static void print_ios(const struct rt_method *method, bool is_input, struct buf *out)
{
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    int width = widest_name(method, is_input, count);
    const char *label = is_input ? "inputs" : "results";
    for (uint32_t i = 0; i < count && i < IO_LINES_MAX; i++) {
        const struct rt_io *io =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        buf_printf(out, "  %-*s%-*s  ", INDENT - 2, i ? "" : label, width, io->name);
        print_type(method, is_input, i, out);
        buf_add_char(out, '\n');
    }
    if (count > IO_LINES_MAX) {
        buf_printf(out, "%*s... and %u more: pte inspect --all\n", INDENT, "",
                   count - IO_LINES_MAX);
    } else if (count == 0) {
        buf_printf(out, "  %-*snone\n", INDENT - 2, label);
    }
}

/* ---- weights --------------------------------------------------------------------------------- */

static void print_parameters(const struct rt_weight_sum *sum, struct buf *out)
{
    char count[AMOUNT_TEXT_MAX];
    struct line line = begin_line(out, "parameters");
    if (sum->tensors == 0) {
        add_words(&line, "none");
    } else {
        add_words(&line, amount_count(sum->count, count));
        add_words(&line, "in");
        add_bytes(&line, sum->bytes);
        if (sum->named > 0) {
            buf_add_char(out, ',');
            add_words(&line, sum->named == sum->tensors ? "all named" : "some named");
        }
    }
    end_line(&line);
}

static const char *percent_text(uint64_t part, uint64_t whole, char text[16])
{
    double percent = 100.0 * (double)part / (double)whole;
    if (percent < 0.1 || (percent > 99.4 && part < whole)) {
        snprintf(text, 16, "%s %%", percent < 0.1 ? "<0.1" : ">99");
    } else {
        snprintf(text, 16, "%.*f %%", percent < 9.95 ? 1 : 0, percent);
    }
    return text;
}

/* "int8 96 %, float32 4 %; activations of 8 bits, ..." */
static void print_types(const struct rt_method *method, const struct rt_weight_sum *sum,
                        struct buf *out)
{
    static const char *const activations[] = {
        [RT_ACTIVATIONS_PLAIN] = "",
        [RT_ACTIVATIONS_STATIC] = "activations of 8 bits, by scales in the file",
        [RT_ACTIVATIONS_DYNAMIC] = "activations of 8 bits, by scales of each row as it comes",
    };
    const char *rounded = activations[rt_method_activations(method)];
    struct line line = begin_line(out, "types");
    for (uint32_t i = 0; i < sum->type_count; i++) {
        const struct rt_weight_type *type = &sum->types[i];
        bool is_last = i + 1 == sum->type_count;
        char text[64], share[16] = "";
        if (sum->type_count > 1) {
            percent_text(type->count, sum->count, share);
        }
        snprintf(text, sizeof(text), "%s %s", type->name, share);
        add_words(&line, text);
        buf_add_str(out, !is_last ? "," : *rounded ? ";" : "");
    }
    add_words(&line, rounded);
    end_line(&line);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* " for 1x3x224x224 and 1x16" */
static void add_shapes(struct line *line, const struct rt_method *method,
                       const struct call_memory *memory)
{
    const char *before = "for";
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct buf piece;
        if (io->kind != RT_IO_TENSOR || io->dynamic_dims == 0) {
            continue;
        }
        buf_init(&piece, 512);
        print_extents(&memory->shapes[i], &piece);
        add_words(line, before);
        add_piece(line, &piece);
        buf_fini(&piece);
        before = "and";
    }
}

static bool has_dynamic(const struct rt_method *method)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (rt_method_input(method, i)->dynamic_dims) {
            return true;
        }
    }
    return false;
}

/* "a call 1.2 MiB for 1x3x224x224, at most 9.6 MiB for 8x3x224x224"; one of them if they agree. */
static void print_calls(const struct rt_method *method, const struct call_memory *chosen,
                        const struct call_memory *largest, struct buf *out)
{
    struct line line = begin_line(out, "");
    add_words(&line, rt_method_has_statements(method) ? "a call at least" : "a call");
    if (chosen->is_known) {
        add_bytes(&line, chosen->bytes);
        add_shapes(&line, method, chosen);
    }
    bool is_same = chosen->is_known && chosen->bytes == largest->bytes;
    if (largest->is_known && !is_same) {
        buf_add_str(out, chosen->is_known ? "," : "");
        add_words(&line, "at most");
        add_bytes(&line, largest->bytes);
        add_shapes(&line, method, largest);
    }
    if (!chosen->is_known && !largest->is_known) {
        add_words(&line, "what its data needs");
    }
    end_line(&line);
}

static enum status print_call_memory(struct rt_method *method, struct buf *out, struct error *err)
{
    struct call_memory chosen = {0}, largest = {0};
    enum status status = call_memory_measure(method, false, &chosen, err);
    if (status == ST_OK && has_dynamic(method)) {
        status = call_memory_measure(method, true, &largest, err);
    }
    if (status == ST_OK) {
        print_calls(method, &chosen, &largest, out);
    }
    call_memory_fini(&chosen);
    call_memory_fini(&largest);
    return status;
}

static enum status print_memory(const struct inspected *it, struct rt_method *method,
                                struct buf *out, struct error *err)
{
    struct rt_resident resident;
    TRY(rt_method_resident(method, &resident, err));
    struct line line = begin_line(out, "memory");
    add_words(&line, "weights");
    add_bytes(&line, resident.file_bytes + resident.own_bytes);
    if (resident.file_bytes) {
        buf_add_char(out, ',');
        add_bytes(&line, resident.file_bytes);
        add_words(&line, "of them where they are in the file");
    }
    end_line(&line);
    TRY(print_call_memory(method, out, err));
    if (rt_method_has_state(method)) {
        line = begin_line(out, "");
        add_words(&line, "a sequence");
        add_bytes(&line, rt_program_state_bytes(it->program));
        end_line(&line);
    }
    return ST_OK;
}

/* ---- what it calls --------------------------------------------------------------------------- */

struct callees {
    struct line line;
    uint32_t delegates, kernels, operators;
    const char *last; /* the delegate named last */
};

static void count_callee(void *arg, const struct rt_callee *callee)
{
    struct callees *all = arg;
    all->delegates += callee->is_delegate ? callee->calls : 0;
    all->kernels += callee->is_delegate ? 0 : callee->calls;
    all->operators += !callee->is_delegate && callee->calls > 0;
}

static void add_callee(struct callees *all, const char *name, uint32_t calls)
{
    struct buf piece;
    buf_init(&piece, 4096);
    buf_add_str(&piece, name);
    if (calls > 1) {
        buf_printf(&piece, " (%u times)", calls);
    }
    buf_add_char(&piece, '\0');
    if (!buf_failed(&piece)) {
        add_words(&all->line, (const char *)piece.ptr);
    }
    buf_fini(&piece);
}

/* The payloads of one backend are separate entries in the file; this joins them. */
static void print_delegate(void *arg, const struct rt_callee *callee)
{
    struct callees *all = arg;
    bool is_new = !all->last || strcmp(all->last, callee->name) != 0;
    if (callee->is_delegate && callee->calls > 0 && is_new) {
        add_callee(all, callee->name, all->delegates);
        all->last = callee->name;
    }
}

static void print_operator(void *arg, const struct rt_callee *callee)
{
    struct callees *all = arg;
    if (!callee->is_delegate && callee->calls > 0) {
        add_callee(all, callee->name, callee->calls);
    }
}

static enum status print_delegates(const struct rt_method *method, struct buf *out,
                                   struct error *err)
{
    struct callees all = {0};
    char text[96];
    TRY(rt_method_each_callee(method, count_callee, &all, err));
    all.line = begin_line(out, "delegate");
    if (all.delegates == 0) {
        snprintf(text, sizeof(text), "none: %u call%s of %u operator%s", all.kernels,
                 all.kernels == 1 ? "" : "s", all.operators, all.operators == 1 ? "" : "s");
        add_words(&all.line, text);
    } else {
        TRY(rt_method_each_callee(method, print_delegate, &all, err));
    }
    if (all.delegates > 0 && all.operators > OPERATORS_MAX) {
        snprintf(text, sizeof(text), "beside %u calls of %u operators", all.kernels, all.operators);
        add_words(&all.line, text);
    } else if (all.delegates > 0 && all.operators > 0) {
        add_words(&all.line, "beside");
        TRY(rt_method_each_callee(method, print_operator, &all, err));
    }
    end_line(&all.line);
    return ST_OK;
}

/* ---- methods --------------------------------------------------------------------------------- */

/* ", a language model; its tokenizer is beside it", if the method is one by its form. */
static void add_kind(const struct inspected *it, const struct rt_method *method, struct line *line)
{
    const char *kind = intake_kind(method);
    if (kind) {
        buf_add_char(line->out, ',');
        add_words(line, kind);
        buf_add_char(line->out, ';');
        add_words(line, intake_has_tokenizer(it->path) ? "its tokenizer is beside it"
                                                       : "there is no tokenizer beside it");
    }
}

static void print_served(const struct inspected *it, const struct rt_method *method,
                         struct buf *out)
{
    const struct error *failure = rt_method_failure(method);
    struct line line = begin_line(out, "served");
    char text[512];
    if (failure) {
        add_words(&line, "no:");
        add_words(&line, failure->text);
    } else {
        bool is_default = inspect_is_default(it, method);
        snprintf(text, sizeof(text), "as %.*s%s%s", SPAN_FMT(it->name), is_default ? "" : ".",
                 is_default ? "" : rt_method_name(method));
        add_words(&line, text);
        add_kind(it, method, &line);
    }
    end_line(&line);
}

/* "guesses: its mutable buffers do not have a row for each position" */
static void print_lacks(struct rt_method *method, struct buf *out)
{
    struct rt_gains gains;
    const char *label = "lacks";
    intake_find_gains(method, &gains);
    for (int i = 0; i < RT_GAIN_COUNT; i++) {
        const struct error *why = &gains.whys[i];
        if (why->code == ST_OK || why->code == ST_NOT_FOUND) {
            continue;
        }
        struct line line = begin_line(out, label);
        add_words(&line, rt_gain_name((enum rt_gain)i));
        buf_add_char(out, ':');
        add_words(&line, why->text);
        end_line(&line);
        label = "";
    }
}

static enum status print_method(const struct inspected *it, struct rt_method *method,
                                struct buf *out, struct error *err)
{
    struct rt_weight_sum sum;
    buf_printf(out, "\n%s\n", rt_method_name(method));
    print_ios(method, true, out);
    print_ios(method, false, out);
    print_served(it, method, out);
    TRY(print_delegates(method, out, err));
    if (rt_method_failure(method)) {
        return ST_OK;
    }
    TRY(rt_program_sum_weights(it->program, method, &sum, err));
    print_parameters(&sum, out);
    if (sum.tensors > 0) {
        print_types(method, &sum, out);
    }
    struct line line = begin_line(out, "state");
    add_words(&line, rt_method_has_state(method) ? "kept from call to call of a sequence" : "none");
    end_line(&line);
    TRY(print_memory(it, method, out, err));
    print_lacks(method, out);
    return ST_OK;
}

/* "get_width 10"; of a long list the first values, and how many there are. */
static void print_constant(struct line *line, const struct rt_method *method)
{
    struct buf piece;
    buf_init(&piece, 4096);
    buf_printf(&piece, "%s ", rt_method_name(method));
    uint32_t count = rt_method_result_count(method);
    for (uint32_t i = 0; i < count && i < VALUES_MAX; i++) {
        const struct rt_io *io = rt_method_result(method, i);
        buf_add_str(&piece, i ? "," : "");
        if (io->kind == RT_IO_TENSOR) {
            char text[SHAPE_TEXT_MAX];
            buf_printf(&piece, "%s%s", dtype_name(io->dtype), shape_print(&io->shape, text));
        } else {
            print_fixed(io, &piece);
        }
    }
    if (count > VALUES_MAX) {
        buf_printf(&piece, ",... (%" PRIu32 ")", count);
    }
    add_piece(line, &piece);
    buf_fini(&piece);
}

static void print_constants(const struct inspected *it, struct buf *out)
{
    struct line line = {0};
    for (uint32_t i = 0; i < rt_program_method_count(it->program); i++) {
        const struct rt_method *method = rt_program_method(it->program, i);
        if (!rt_method_is_constant(method)) {
            continue;
        }
        if (line.out) {
            buf_add_char(out, ',');
        } else {
            buf_add_str(out, "\nconstant methods\n");
            line = begin_line(out, "values");
        }
        print_constant(&line, method);
    }
    if (line.out) {
        end_line(&line);
    }
}

static enum status print_head(const struct inspected *it, struct buf *out, struct error *err)
{
    struct rt_weight_sum sum;
    char bytes[AMOUNT_TEXT_MAX], count[AMOUNT_TEXT_MAX];
    uint32_t methods = rt_program_method_count(it->program), data = 0;
    TRY(rt_program_sum_weights(it->program, NULL, &sum, err));
    buf_printf(out, "%.*s: ExecuTorch program of %s, %u method%s, %s parameters\n",
               SPAN_FMT(it->name), amount_bytes(rt_program_file_bytes(it->program), bytes), methods,
               methods == 1 ? "" : "s", amount_count(sum.count, count));
    for (const char *path; (path = rt_program_data_path(it->program, data)); data++) {
        buf_printf(out, "%s %s\n", data ? "     " : "with ", path);
    }
    return ST_OK;
}

enum status inspect_print_text(const struct inspected *it, struct buf *out, struct error *err)
{
    TRY(print_head(it, out, err));
    for (uint32_t i = 0; i < rt_program_method_count(it->program); i++) {
        struct rt_method *method = rt_program_method(it->program, i);
        if (!rt_method_is_constant(method)) {
            TRY(print_method(it, method, out, err));
        }
    }
    print_constants(it, out);
    return ST_OK;
}
