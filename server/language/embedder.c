/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/embedder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/number.h"
#include "runtime/program/program.h"
#include "server/language/sidecar.h"
#include "server/language/words.h"

/* More tokens of a text, rows of a call and floats of a vector are not believed. */
#define TOKENS_MAX (1 << 20)
#define ROWS_MAX (1 << 16)
#define WIDTH_MAX (1 << 20)

/* Vectors of texts have at least so many numbers; fewer are rather scores of classes. */
#define VECTOR_MIN 32

static const char *const input_names[EMBEDDER_INPUTS][4] = {
    [EMBEDDER_IDS] = {"input_ids", "ids", "tokens", NULL},
    [EMBEDDER_MASK] = {"attention_mask", "mask", NULL},
    [EMBEDDER_TYPES] = {"token_type_ids", "segment_ids", NULL},
    [EMBEDDER_POSITIONS] = {"position_ids", "positions", NULL},
};

/* ---- inputs ---------------------------------------------------------------------------------- */

static bool is_float(enum dtype dtype)
{
    return dtype == DT_F32 || dtype == DT_F16 || dtype == DT_BF16;
}

/* EMBEDDER_INPUTS: none of them. */
static enum embedder_input kind_of(const struct rt_io *io, uint32_t index, bool is_said)
{
    for (unsigned kind = 0; kind < EMBEDDER_INPUTS; kind++) {
        for (const char *const *name = input_names[kind]; *name; name++) {
            if (strcmp(io->name, *name) == 0) {
                return (enum embedder_input)kind;
            }
        }
    }
    bool is_nameless = strcmp(io->name, io->alias) == 0;
    return is_said && is_nameless && index < EMBEDDER_INPUTS ? (enum embedder_input)index
                                                             : EMBEDDER_INPUTS;
}

static bool takes(const struct rt_io *io, enum embedder_input kind)
{
    bool is_integer = io->dtype == DT_I64 || io->dtype == DT_I32;
    bool is_mask = kind == EMBEDDER_MASK && (io->dtype == DT_BOOL || io->dtype == DT_F32);
    return io->kind == RT_IO_TENSOR && (is_integer || is_mask) && io->shape.rank == 2 &&
           io->shape.dims[0] >= 1 && io->shape.dims[0] <= ROWS_MAX && io->shape.dims[1] >= 1 &&
           io->shape.dims[1] <= TOKENS_MAX && (io->shape.dims[0] == 1 || rt_io_is_dynamic(io, 0));
}

static bool has_same_dims(const struct rt_io *a, const struct rt_io *b)
{
    return shape_equal(&a->shape, &b->shape) && a->dynamic_dims == b->dynamic_dims;
}

static bool read_inputs(struct embedder *embedder, const struct rt_method *method, bool is_said)
{
    uint32_t count = rt_method_input_count(method);
    for (unsigned kind = 0; kind < EMBEDDER_INPUTS; kind++) {
        embedder->inputs[kind] = EMBEDDER_ABSENT;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        enum embedder_input kind = kind_of(io, i, is_said);
        if (kind == EMBEDDER_INPUTS || embedder->inputs[kind] != EMBEDDER_ABSENT ||
            !takes(io, kind)) {
            return false;
        }
        embedder->inputs[kind] = i;
        embedder->dtypes[kind] = io->dtype;
    }
    if (embedder->inputs[EMBEDDER_IDS] == EMBEDDER_ABSENT) {
        return false;
    }
    const struct rt_io *ids = rt_method_input(method, embedder->inputs[EMBEDDER_IDS]);
    for (uint32_t i = 0; i < count; i++) {
        if (!has_same_dims(rt_method_input(method, i), ids)) {
            return false;
        }
    }
    embedder->tokens_max = (uint32_t)ids->shape.dims[1];
    embedder->length = rt_io_is_dynamic(ids, 1) ? 0 : embedder->tokens_max;
    embedder->rows_max = (uint32_t)ids->shape.dims[0];
    return true;
}

/* ---- the result ------------------------------------------------------------------------------ */

static uint32_t choose_result(const struct rt_method *method, bool *out_is_named)
{
    static const char *const names[] = {"sentence_embedding", "last_hidden_state"};
    *out_is_named = true;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (uint32_t j = 0; j < rt_method_result_count(method); j++) {
            if (strcmp(rt_method_result(method, j)->name, names[i]) == 0) {
                return j;
            }
        }
    }
    *out_is_named = false;
    return 0;
}

/* The last dim, if it is known before a call. */
static bool read_width(struct embedder *embedder, const struct rt_io *io)
{
    uint8_t rank = io->shape.rank;
    int64_t width = rank > 1 ? io->shape.dims[rank - 1] : 1;
    embedder->has_states = rank == 3;
    embedder->is_ranker = rank < 3 && width == 1;
    embedder->width = (uint32_t)width;
    return width >= 1 && width <= WIDTH_MAX && (rank == 1 || !rt_io_is_dynamic(io, rank - 1u));
}

static bool read_result(struct embedder *embedder, const struct rt_method *method)
{
    bool is_named;
    if (rt_method_result_count(method) == 0) {
        return false;
    }
    embedder->result = choose_result(method, &is_named);
    embedder->claim = is_named ? EMBEDDER_NAMED : EMBEDDER_SHAPED;
    const struct rt_io *io = rt_method_result(method, embedder->result);
    const struct rt_io *ids = rt_method_input(method, embedder->inputs[EMBEDDER_IDS]);
    embedder->floats = io->dtype;
    return io->kind == RT_IO_TENSOR && is_float(io->dtype) && io->shape.rank >= 1 &&
           io->shape.rank <= 3 && io->shape.dims[0] == ids->shape.dims[0] &&
           (io->shape.rank < 3 || io->shape.dims[1] == ids->shape.dims[1]) &&
           read_width(embedder, io);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* A cross-encoder gives one number on purpose. */
static void settle_claim(struct embedder *embedder, const struct embedder_options *options)
{
    bool is_short = !embedder->is_ranker && embedder->width < VECTOR_MIN;
    if (options->is_said) {
        embedder->claim = EMBEDDER_SAID;
    } else if (options->has_classes || (embedder->claim == EMBEDDER_SHAPED && is_short)) {
        embedder->claim = EMBEDDER_CLASSES;
    }
}

static enum status take_options(struct embedder *embedder, const struct embedder_options *options,
                                struct error *err)
{
    bool is_none = options->pooling == EMBEDDER_NONE;
    settle_claim(embedder, options);
    if (options->pooling != EMBEDDER_UNSAID && is_none == embedder->has_states) {
        return error_set(err, ST_INVALID,
                         is_none
                             ? "embedding.pooling: expected mean, cls, last or splade, because the "
                               "program gives a state for each token"
                             : "embedding.pooling: expected none, because the program gives "
                               "one vector for each text");
    }
    embedder->pooling = options->pooling       ? options->pooling
                        : embedder->has_states ? EMBEDDER_MEAN
                                               : EMBEDDER_NONE;
    embedder->normalizes = !options->is_not_normalized && embedder->pooling != EMBEDDER_SPLADE;
    embedder->has_steps = options->has_steps;
    if (options->max_tokens > embedder->tokens_max) {
        return error_set(err, ST_INVALID,
                         "embedding.max_tokens: the program takes at most %u, got %llu",
                         embedder->tokens_max, (unsigned long long)options->max_tokens);
    }
    embedder->tokens_max =
        options->max_tokens ? (uint32_t)options->max_tokens : embedder->tokens_max;
    if (embedder->length && embedder->inputs[EMBEDDER_MASK] == EMBEDDER_ABSENT &&
        options->is_said) {
        return error_set(err, ST_INVALID,
                         "embedding: the program takes exactly %u tokens and no "
                         "attention_mask, so shorter texts cannot be padded",
                         embedder->length);
    }
    embedder->prefix = options->prefix ? strdup(options->prefix) : NULL;
    return options->prefix && !embedder->prefix ? error_no_memory(err, "an encoder") : ST_OK;
}

/* |*out_is_one|: it has words, and is no model of the next word. */
static enum status find_words(struct embedder *embedder, const char *path, const char *tokenizer,
                              bool is_said, bool *out_is_one, struct error *err)
{
    struct sidecars sidecars;
    *out_is_one = false;
    TRY(sidecar_init(&sidecars, path, tokenizer, err));
    if (!sidecar_has_tokenizer(&sidecars)) {
        return is_said ? error_set(err, ST_INVALID,
                                   "embedding: there is no tokenizer beside the program")
                       : ST_OK;
    }
    TRY(sidecar_load_words(&sidecars, &embedder->words, err));
    embedder->pad = words_pad(embedder->words);
    *out_is_one =
        is_said || !embedder->has_states || embedder->width != words_count(embedder->words);
    return ST_OK;
}

/* Texts that are too short may have to be padded, which takes a mask. */
static bool read_method(struct embedder *embedder, const struct rt_method *method, bool is_said)
{
    return read_inputs(embedder, method, is_said) && read_result(embedder, method) &&
           (is_said || embedder->length == 0 || embedder->inputs[EMBEDDER_MASK] != EMBEDDER_ABSENT);
}

bool embedder_fits(const struct rt_method *method)
{
    struct embedder facts = {.magic = EMBEDDER_MAGIC};
    return !rt_method_failure(method) && read_method(&facts, method, false);
}

enum status embedder_new(const struct rt_method *method, const char *path, const char *tokenizer,
                         const struct embedder_options *options, struct embedder **out,
                         struct error *err)
{
    struct embedder facts = {.magic = EMBEDDER_MAGIC};
    *out = NULL;
    if (!read_method(&facts, method, options->is_said)) {
        return options->is_said
                   ? error_set(err, ST_INVALID,
                               "embedding: the method is no encoder of texts, expected input_ids "
                               "[b, n], perhaps attention_mask, token_type_ids and position_ids, "
                               "and floats [b, n, d] or [b, d]")
                   : ST_OK;
    }
    struct embedder *embedder = malloc(sizeof(*embedder));
    if (!embedder) {
        return error_no_memory(err, "an encoder");
    }
    *embedder = facts;
    bool is_one;
    enum status status = find_words(embedder, path, tokenizer, options->is_said, &is_one, err);
    status = status == ST_OK && is_one ? take_options(embedder, options, err) : status;
    if (status == ST_OK && is_one) {
        *out = embedder;
    } else {
        embedder_free(embedder);
    }
    return status;
}

void embedder_free(struct embedder *embedder)
{
    if (embedder) {
        OBJ_CHECK(embedder, EMBEDDER_MAGIC);
        words_free(embedder->words);
        free(embedder->prefix);
        embedder->magic = 0;
        free(embedder);
    }
}

/* ---- pooling --------------------------------------------------------------------------------- */

static void take_row(const struct embedder *embedder, const uint8_t *bytes, uint32_t index,
                     float *out)
{
    uint32_t width = embedder->width;
    if (embedder->floats == DT_F32) {
        memcpy(out, bytes + (size_t)index * width * sizeof(float), width * sizeof(float));
        return;
    }
    for (uint32_t i = 0; i < width; i++) {
        uint16_t bits;
        memcpy(&bits, bytes + ((size_t)index * width + i) * sizeof(bits), sizeof(bits));
        out[i] = embedder->floats == DT_F16 ? number_from_f16(bits) : number_from_bf16(bits);
    }
}

static float value_at(const struct embedder *embedder, const uint8_t *bytes, size_t index)
{
    float value;
    uint16_t bits;
    if (embedder->floats == DT_F32) {
        memcpy(&value, bytes + index * sizeof(value), sizeof(value));
        return value;
    }
    memcpy(&bits, bytes + index * sizeof(bits), sizeof(bits));
    return embedder->floats == DT_F16 ? number_from_f16(bits) : number_from_bf16(bits);
}

static void add_row(const struct embedder *embedder, const uint8_t *bytes, uint32_t index,
                    float *sum)
{
    uint32_t width = embedder->width;
    for (uint32_t i = 0; i < width; i++) {
        sum[i] += value_at(embedder, bytes, (size_t)index * width + i);
    }
}

/* The logarithm grows with its argument, so it is taken once, of the greatest. */
static void pool_words(const struct embedder *embedder, const uint8_t *row, uint32_t count,
                       float *out)
{
    uint32_t width = embedder->width;
    memset(out, 0, width * sizeof(float));
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < width; j++) {
            float value = value_at(embedder, row, (size_t)i * width + j);
            out[j] = value > out[j] ? value : out[j];
        }
    }
    for (uint32_t j = 0; j < width; j++) {
        out[j] = log1pf(out[j]);
    }
}

void embedder_take_states(const struct embedder *embedder, const uint8_t *row, uint32_t count,
                          float *out)
{
    OBJ_CHECK(embedder, EMBEDDER_MAGIC);
    for (uint32_t i = 0; i < count; i++) {
        take_row(embedder, row, i, out + (size_t)i * embedder->width);
    }
}

void embedder_pool(const struct embedder *embedder, const uint8_t *row, uint32_t count, float *out)
{
    OBJ_CHECK(embedder, EMBEDDER_MAGIC);
    must(count > 0);
    if (embedder->pooling == EMBEDDER_SPLADE) {
        pool_words(embedder, row, count, out);
        return;
    }
    bool is_last = embedder->pooling == EMBEDDER_LAST;
    take_row(embedder, row, is_last ? count - 1 : 0, out);
    if (embedder->pooling != EMBEDDER_MEAN) {
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        add_row(embedder, row, i, out);
    }
    for (uint32_t i = 0; i < embedder->width; i++) {
        out[i] /= (float)count;
    }
}

void embedder_normalize(float *vector, uint32_t width)
{
    double sum = 0;
    for (uint32_t i = 0; i < width; i++) {
        sum += (double)vector[i] * vector[i];
    }
    double length = sqrt(sum);
    for (uint32_t i = 0; length > 0 && i < width; i++) {
        vector[i] = (float)(vector[i] / length);
    }
}
