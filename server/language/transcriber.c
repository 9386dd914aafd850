/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/transcriber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/program/program.h"
#include "server/language/sidecar.h"
#include "server/language/words.h"
#include "server/media/log_mel.h"
#include "server/media/sound.h"
#include "server/process/document.h"
#include "server/process/log.h"

#define DECODER "text_decoder"
#define ENCODER "encoder"

/* Numbers beyond these are not believed. */
#define CONTEXT_MAX (1 << 16)
#define VOCAB_MAX (1 << 22)
#define WINDOW_SAMPLES_MAX (1 << 24)

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool is_tensor(const struct rt_io *io, enum dtype dtype, uint8_t rank)
{
    return io->kind == RT_IO_TENSOR && io->dtype == dtype && io->shape.rank == rank;
}

/* False: it is no encoder of sound. */
static bool read_encoder(struct transcriber *transcriber)
{
    const struct rt_method *method = transcriber->encoder;
    if (rt_method_failure(method) || rt_method_input_count(method) != 1 ||
        rt_method_result_count(method) != 1) {
        return false;
    }
    const struct rt_io *in = rt_method_input(method, 0), *out = rt_method_result(method, 0);
    const int64_t *dims = in->shape.dims;
    uint8_t rank = in->shape.rank;
    if (!is_tensor(in, DT_F32, rank) || rank < 1 || rank > 3 || !is_tensor(out, DT_F32, 3) ||
        rt_io_is_dynamic(out, 2) || dims[rank - 1] < 2 || dims[rank - 1] > WINDOW_SAMPLES_MAX) {
        return false;
    }
    transcriber->rate = LOG_MEL_RATE;
    transcriber->input_rank = rank;
    transcriber->is_window_fixed = !rt_io_is_dynamic(in, rank - 1u);
    transcriber->window_samples = (uint32_t)dims[rank - 1];
    memcpy(transcriber->hidden, out->shape.dims, sizeof(transcriber->hidden));
    if (rank == 3) {
        transcriber->bands = (uint32_t)dims[1];
        transcriber->frames = (uint32_t)dims[2];
        transcriber->window_samples = transcriber->frames * LOG_MEL_HOP;
    }
    bool has_bands = rank < 3 || (dims[0] == 1 && dims[1] >= 1 && dims[1] <= LOG_MEL_BANDS_MAX &&
                                  dims[2] <= WINDOW_SAMPLES_MAX / LOG_MEL_HOP);
    return has_bands && (rank != 2 || dims[0] == 1) && out->shape.dims[0] == 1;
}

static bool read_decoder(struct transcriber *transcriber, const struct rt_method *method)
{
    if (rt_method_failure(method) || rt_method_input_count(method) != 3 ||
        rt_method_result_count(method) != 1) {
        return false;
    }
    const struct rt_io *tokens = rt_method_input(method, 0), *hidden = rt_method_input(method, 1);
    const struct rt_io *position = rt_method_input(method, 2), *out = rt_method_result(method, 0);
    if (!is_tensor(tokens, DT_I64, 2) || !is_tensor(hidden, DT_F32, 3) ||
        !is_tensor(position, DT_I64, 1) || !is_tensor(out, DT_F32, 3) || rt_io_is_dynamic(out, 2)) {
        return false;
    }
    int64_t step = tokens->shape.dims[1], vocab = out->shape.dims[2];
    transcriber->step_max = (uint32_t)step;
    transcriber->is_step_fixed = !rt_io_is_dynamic(tokens, 1);
    transcriber->has_positions = position->shape.dims[0] > 1 || rt_io_is_dynamic(position, 0);
    transcriber->vocab = (uint32_t)vocab;
    return tokens->shape.dims[0] == 1 && step >= 1 && step <= CONTEXT_MAX && vocab > 1 &&
           vocab <= VOCAB_MAX && (step == 1 || !transcriber->is_step_fixed) &&
           hidden->shape.dims[2] == transcriber->hidden[2];
}

/* ---- constant methods ------------------------------------------------------------------------ */

static bool constant(const struct rt_program *program, const char *name, int64_t *out)
{
    const struct rt_method *method = rt_program_find_method(program, span_str(name));
    struct span bytes;
    if (!method || rt_method_input_count(method) > 0 || rt_method_result_count(method) != 1 ||
        !rt_method_constant_result(method, 0, &bytes) ||
        rt_method_result(method, 0)->dtype != DT_I64 || bytes.len < sizeof(*out)) {
        return false;
    }
    memcpy(out, bytes.ptr, sizeof(*out)); /* the machine is little-endian */
    return true;
}

static void limit_context(struct transcriber *transcriber, int64_t max)
{
    if (max > 0 && max < transcriber->context) {
        transcriber->context = (uint32_t)max;
    }
}

/* ---- generation_config.json ------------------------------------------------------------------ */

static enum status take_ids(struct transcriber_ids *ids, const struct document *document,
                            const struct cJSON *list, struct error *err)
{
    const struct cJSON *item = document_type(list) == JSON_ARRAY ? document_first(list) : NULL;
    for (; item; item = document_next(item)) {
        uint64_t id;
        TRY(document_u64(document, item, UINT32_MAX, &id, err));
        if (ids->count < TRANSCRIBER_SUPPRESSED_MAX) {
            ids->items[ids->count++] = (uint32_t)id;
        }
    }
    return ST_OK;
}

static enum status take_member(void *user, const struct document *document,
                               const struct cJSON *member, struct error *err)
{
    struct transcriber *transcriber = user;
    uint64_t number;
    if (document_is(member, "suppress_tokens")) {
        return take_ids(&transcriber->suppressed, document, member, err);
    }
    if (document_is(member, "begin_suppress_tokens")) {
        return take_ids(&transcriber->suppressed_first, document, member, err);
    }
    bool is_limit = document_is(member, "max_length");
    bool is_first = document_is(member, "max_initial_timestamp_index");
    if ((!is_limit && !is_first) || document_type(member) == JSON_NULL) {
        return ST_OK;
    }
    TRY(document_u64(document, member, INT32_MAX, &number, err));
    if (is_limit) {
        limit_context(transcriber, (int64_t)number);
    } else {
        transcriber->first_time_max = (uint32_t)number;
    }
    return ST_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool find(const struct transcriber *transcriber, const char *text, uint32_t *out_id)
{
    return words_find(transcriber->words, span_str(text), out_id) && *out_id < transcriber->vocab;
}

static enum status need(const struct transcriber *transcriber, const char *text, uint32_t *out_id,
                        struct error *err)
{
    return find(transcriber, text, out_id)
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "the tokenizer has no %s below %u, as those of speech models have", text,
                           transcriber->vocab);
}

static void find_languages(struct transcriber *transcriber)
{
    static const char *const codes[] = {
#define LANGUAGE(code, name) #code,
#include "server/language/language.def"
#undef LANGUAGE
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct transcriber_language *language =
            &transcriber->languages[transcriber->language_count];
        char text[16];
        snprintf(text, sizeof(text), "<|%s|>", codes[i]);
        if (find(transcriber, text, &language->id)) {
            snprintf(language->code, sizeof(language->code), "%s", codes[i]);
            transcriber->language_count++;
        }
    }
}

/* Tokens of times are in a row, each as much later as one step of the encoder's result. */
static void find_times(struct transcriber *transcriber)
{
    int64_t steps = transcriber->hidden[1];
    uint32_t last, count = steps > 0 ? (uint32_t)steps + 1 : 0;
    if (steps <= 0 || transcriber->window_samples % (uint64_t)steps != 0 ||
        !find(transcriber, "<|0.00|>", &transcriber->first_time)) {
        return;
    }
    transcriber->time_samples = transcriber->window_samples / (uint32_t)steps;
    char text[32];
    double seconds = (double)transcriber->window_samples / transcriber->rate;
    snprintf(text, sizeof(text), "<|%.2f|>", seconds);
    bool is_known = find(transcriber, text, &last) &&
                    last == transcriber->first_time + (count - 1) && transcriber->has_no_times;
    transcriber->time_count = is_known ? count : 0;
}

static enum status find_tokens(struct transcriber *transcriber, struct error *err)
{
    TRY(need(transcriber, "<|startoftranscript|>", &transcriber->start, err));
    TRY(need(transcriber, "<|endoftext|>", &transcriber->end, err));
    find_languages(transcriber);
    if (transcriber->language_count > 0) {
        TRY(need(transcriber, "<|transcribe|>", &transcriber->transcribe, err));
    }
    transcriber->has_translate = find(transcriber, "<|translate|>", &transcriber->translate);
    transcriber->has_previous = find(transcriber, "<|startofprev|>", &transcriber->previous);
    transcriber->has_no_times = find(transcriber, "<|notimestamps|>", &transcriber->no_times);
    transcriber->has_no_speech = find(transcriber, "<|nospeech|>", &transcriber->no_speech) ||
                                 find(transcriber, "<|nocaptions|>", &transcriber->no_speech);
    find_times(transcriber);
    return ST_OK;
}

static bool is_multilingual_needed(const struct transcriber *transcriber)
{
    return transcriber->language_count > 1;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum status open_words(struct transcriber *transcriber, const char *path,
                              const char *tokenizer, struct error *err)
{
    struct sidecars sidecars;
    TRY(sidecar_init(&sidecars, path, tokenizer, err));
    if (!sidecar_has_tokenizer(&sidecars)) {
        return ST_OK;
    }
    TRY(sidecar_load_words(&sidecars, &transcriber->words, err));
    if (words_count(transcriber->words) > transcriber->vocab) {
        return error_set(
            err, ST_INVALID,
            "%.200s: the tokenizer has %u tokens, the model's vocabulary %u: expected no "
            "more",
            sidecar_tokenizer_name(&sidecars), words_count(transcriber->words), transcriber->vocab);
    }
    TRY(sidecar_read_generation_config(&sidecars, take_member, transcriber, err));
    TRY(find_tokens(transcriber, err));
    if (!is_multilingual_needed(transcriber)) {
        transcriber->language_count = 0; /* a single one is not told */
    }
    return transcriber->input_rank == 3
               ? log_mel_new(transcriber->bands, &transcriber->log_mel, err)
               : ST_OK;
}

/* Reads the constant methods of its program. */
static bool read_methods(struct transcriber *transcriber, const struct rt_method *method)
{
    transcriber->encoder = rt_program_find_method(rt_method_program(method), span_str(ENCODER));
    return strcmp(rt_method_name(method), DECODER) == 0 && transcriber->encoder &&
           read_encoder(transcriber) && read_decoder(transcriber, method);
}

bool transcriber_fits(const struct rt_method *method)
{
    struct transcriber facts = {.magic = TRANSCRIBER_MAGIC};
    return read_methods(&facts, method);
}

enum status transcriber_new(struct rt_method *method, const char *path, const char *tokenizer,
                            struct transcriber **out, struct error *err)
{
    const struct rt_program *program = rt_method_program(method);
    struct transcriber facts = {.magic = TRANSCRIBER_MAGIC};
    int64_t value;
    *out = NULL;
    if (!read_methods(&facts, method)) {
        return ST_OK;
    }
    struct transcriber *transcriber = calloc(1, sizeof(*transcriber));
    if (!transcriber) {
        return error_no_memory(err, "a speech model");
    }
    *transcriber = facts;
    share_init(&transcriber->seats, 0, 0);
    transcriber->context = CONTEXT_MAX;
    transcriber->first_time_max = UINT32_MAX;
    limit_context(transcriber, constant(program, "get_max_seq_len", &value) ? value : 448);
    enum status status = open_words(transcriber, path, tokenizer, err);
    if (status != ST_OK || !transcriber->words) {
        transcriber_free(transcriber);
        return status;
    }
    struct error missing;
    if (sound_load(&missing) != ST_OK) {
        log_line(LOG_WARNING, "speech model: %s; files of sound are answered 501", missing.text);
    }
    *out = transcriber;
    return ST_OK;
}

void transcriber_free(struct transcriber *transcriber)
{
    if (transcriber) {
        OBJ_CHECK(transcriber, TRANSCRIBER_MAGIC);
        words_free(transcriber->words);
        log_mel_free(transcriber->log_mel);
        share_fini(&transcriber->seats);
        transcriber->magic = 0;
        free(transcriber);
    }
}

/* ---- languages ------------------------------------------------------------------------------- */

const char *transcriber_language_name(const char *code)
{
#define LANGUAGE(its_code, name)                                                                   \
    if (strcmp(code, #its_code) == 0) {                                                            \
        return name;                                                                               \
    }
#include "server/language/language.def"
#undef LANGUAGE
    return code;
}

const struct transcriber_language *transcriber_find_language(const struct transcriber *transcriber,
                                                             const char *text)
{
    OBJ_CHECK(transcriber, TRANSCRIBER_MAGIC);
    for (uint32_t i = 0; i < transcriber->language_count; i++) {
        const struct transcriber_language *language = &transcriber->languages[i];
        if (strcasecmp(text, language->code) == 0 ||
            strcasecmp(text, transcriber_language_name(language->code)) == 0) {
            return language;
        }
    }
    return NULL;
}
