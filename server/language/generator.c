/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/generator.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/reason.h"
#include "runtime/program/program.h"
#include "server/language/sidecar.h"
#include "server/language/words.h"
#include "server/process/document.h"
#include "server/process/log.h"
#include "server/text/grammar/grammar.h"

/* A context longer than that is not believed; the memory of a generation grows with it. */
#define CONTEXT_MAX (1 << 20)

/* The texts of all tokens together. */
#define TEXTS_BYTES_MAX (256 << 20)

/* ---- constant methods ------------------------------------------------------------------------ */

/* The numbers that constant method |name| gives, up to |max| of them; their number. */
static uint32_t constants(const struct rt_program *program, const char *name, int64_t *out,
                          uint32_t max)
{
    const struct rt_method *method = rt_program_find_method(program, span_str(name));
    uint32_t count = 0;
    if (!method || rt_method_input_count(method) > 0) {
        return 0;
    }
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_io *io = rt_method_result(method, i);
        struct span bytes;
        bool is_known = rt_method_constant_result(method, i, &bytes);
        bool is_number = io->dtype == DT_I64 || io->dtype == DT_BOOL;
        size_t width = io->dtype == DT_BOOL ? 1 : sizeof(int64_t);
        for (size_t at = 0; is_known && is_number && at + width <= bytes.len && count < max;
             at += width) {
            out[count] = 0;
            memcpy(&out[count++], bytes.ptr + at, width); /* the machine is little-endian */
        }
    }
    return count;
}

static bool constant(const struct rt_program *program, const char *name, int64_t *out)
{
    return constants(program, name, out, 1) == 1;
}

/* Does the exporter say that the program is a language model? */
static bool is_declared(const struct rt_program *program)
{
    static const char *const names[] = {"get_vocab_size", "get_max_seq_len", "get_max_context_len",
                                        "use_kv_cache"};
    int64_t value;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (constant(program, names[i], &value)) {
            return true;
        }
    }
    return false;
}

static void add_end(struct generator *generator, int64_t id)
{
    if (id >= 0 && id < generator->vocab && generator->end_count < GENERATOR_ENDS_MAX &&
        !generator_is_end(generator, (uint32_t)id)) {
        generator->ends[generator->end_count++] = (uint32_t)id;
    }
}

static void read_constants(struct generator *generator, const struct rt_program *program)
{
    int64_t value, ids[GENERATOR_ENDS_MAX];
    static const char *const ends[] = {"get_eos_ids", "get_eos_id"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        uint32_t count = constants(program, ends[i], ids, GENERATOR_ENDS_MAX);
        for (uint32_t j = 0; j < count; j++) {
            add_end(generator, ids[j]);
        }
    }
    if (constant(program, "get_bos_id", &value) && value >= 0 && value < generator->vocab) {
        generator->has_bos = true;
        generator->bos = (uint32_t)value;
    }
    if ((constant(program, "get_max_context_len", &value) ||
         constant(program, "get_max_seq_len", &value)) &&
        value > 0 && value < CONTEXT_MAX) {
        generator->context = (uint32_t)value;
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void add_ends(struct generator *generator, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        add_end(generator, ids[i]);
    }
}

/* Ids that end an answer, of generation_config.json. Others are left out, as `pte card` does. */
static enum status take_member(void *user, const struct document *document,
                               const struct cJSON *member, struct error *err)
{
    uint32_t ids[GENERATOR_ENDS_MAX], count;
    (void)err;
    if (!document_is(member, "eos_token_id") || document_type(member) == JSON_NULL) {
        return ST_OK;
    }
    if (document_token_ids(document, member, ids, GENERATOR_ENDS_MAX, &count)) {
        add_ends(user, ids, count);
    } else {
        log_line(LOG_WARNING,
                 "generation_config.json: eos_token_id: expected up to %d ids of tokens; it is "
                 "left out",
                 GENERATOR_ENDS_MAX);
    }
    return ST_OK;
}

/* Where ids are not given, they are found by the texts of tokens. */
static void take_tokens(struct generator *generator)
{
    const char *end = generator->chat.tokens[CHAT_EOS], *bos = generator->chat.tokens[CHAT_BOS];
    uint32_t id;
    if (end && words_find(generator->words, span_str(end), &id)) {
        add_end(generator, id);
    }
    if (bos && !generator->has_bos && words_find(generator->words, span_str(bos), &id) &&
        id < generator->vocab) {
        generator->has_bos = true;
        generator->bos = id;
    }
}

/* Vocabularies are padded, but not by so much. */
static enum status check_size(const struct generator *generator, struct error *err)
{
    uint32_t size = words_count(generator->words), vocab = generator->vocab;
    return size <= vocab && size >= vocab - vocab / 8
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "the tokenizer has %u tokens, the model's vocabulary %u: expected as "
                           "many, or up to an eighth fewer",
                           size, vocab);
}

/* The family of tools: of the card, or else of the template. */
static enum status find_tools(struct generator *generator, const char *said, struct error *err)
{
    const struct tools_family *family = generator->chat.tools;
    if (said) {
        family = tools_family_named(said);
        if (!family) {
            return error_set(err, ST_INVALID,
                             "generation.tools of the card: expected one of %s, got \"%s\"",
                             tools_family_names(), said);
        }
    }
    family = family ? family : tools_family_find(span_str(""));
    tools_rules_init(&generator->tools, family, generator->words);
    return ST_OK;
}

/* Reads the settings beside a tokenizer. Each of the files may be missing. */
static enum status read_settings(struct generator *generator, const struct sidecars *sidecars,
                                 const struct generator_said *said, struct error *err)
{
    char config[PATH_MAX], jinja[PATH_MAX];
    sidecar_find(sidecars, "tokenizer_config.json", config);
    sidecar_find(sidecars, "chat_template.jinja", jinja);
    if (chat_open(&generator->chat, config, jinja, err) != ST_OK) {
        return error_prefix(err, "tokenizer_config.json: ");
    }
    if (!said || !said->ends) {
        TRY(sidecar_read_generation_config(sidecars, take_member, generator, err));
    }
    take_tokens(generator);
    TRY(find_tools(generator, said ? said->tools : NULL, err));
    TRY(infill_rules_init(&generator->infill, generator->words, said ? &said->infill : NULL, err));
    return thinking_rules_init(&generator->thinking, generator->words, generator->chat.thinking,
                               said ? &said->thinking : NULL, err);
}

static enum status find_words(struct generator *generator, const char *path, const char *tokenizer,
                              const struct generator_said *said, struct error *err)
{
    struct sidecars sidecars;
    TRY(sidecar_init(&sidecars, path, tokenizer, err));
    if (said && said->ends) {
        add_ends(generator, said->ends, said->end_count);
    }
    generator->tools =
        (struct tools_rules){.family = tools_family_find(span_str("")), .begin = UINT32_MAX};
    if (!sidecar_has_tokenizer(&sidecars)) {
        error_set(&generator->chat.failure, ST_UNSUPPORTED, CHAT_NO_TEMPLATE);
        return generator->vocab == WORDS_BYTES ? words_new_bytes(&generator->words, err) : ST_OK;
    }
    TRY(sidecar_load_words(&sidecars, &generator->words, err));
    if (check_size(generator, err) != ST_OK) {
        return error_prefix(err, "%.200s: ", sidecar_tokenizer_name(&sidecars));
    }
    return read_settings(generator, &sidecars, said, err);
}

static bool is_known(const struct forms *forms, const struct rt_method *method)
{
    return form_is_certain(&forms->step) || is_declared(rt_method_program(method));
}

bool generator_fits(const struct rt_method *method)
{
    struct forms forms;
    return forms_find(method, &forms) && is_known(&forms, method);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the shapes of its methods say. */
static void take_forms(struct generator *generator)
{
    const struct form *step = &generator->forms.step, *prefill = &generator->forms.prefill;
    const struct rt_io *logits = rt_method_result(step->method, 0);
    generator->logits = logits->dtype;
    generator->vocab = (uint32_t)logits->shape.dims[logits->shape.rank - 1];
    /* unless a constant method says more */
    generator->context = step->step_max > prefill->step_max ? step->step_max : prefill->step_max;
    int64_t rows = form_is_certain(step) ? rt_method_state_rows(step->method) : 0;
    int64_t context_max = rows > 0 && rows < CONTEXT_MAX ? rows : CONTEXT_MAX;
    context_max = least(context_max, form_columns_max(step));
    context_max = least(context_max, form_columns_max(prefill));
    if (rows > 0) {
        generator->context = (uint32_t)context_max;
    }
    read_constants(generator, rt_method_program(step->method));
    if (generator->context > context_max) {
        generator->context = (uint32_t)context_max;
    }
    if (!form_has_cache(step) && generator->context > step->step_max) {
        generator->context = step->step_max;
    }
    generator->why_whole = form_why_not_positional(step);
    if (generator->why_whole == REASON_NONE) {
        generator->why_whole = rt_method_why_not_positional(step->method);
    }
    if (generator->why_whole == REASON_NONE && prefill->method) {
        generator->why_whole = rt_method_why_not_positional(prefill->method);
    }
}

enum reason generator_why_not_positional(const struct rt_method *method)
{
    struct forms forms;
    return forms_find(method, &forms) ? form_why_not_positional(&forms.step) : REASON_NO_POSITION;
}

enum status generator_new(struct rt_method *method, const char *path, const char *tokenizer,
                          const struct generator_said *said, struct generator **out,
                          struct error *err)
{
    struct generator facts = {.magic = GENERATOR_MAGIC,
                              .defaults = said ? said->defaults : ask_no_defaults()};
    *out = NULL;
    if (!forms_find(method, &facts.forms) || !(tokenizer || is_known(&facts.forms, method))) {
        return ST_OK;
    }
    take_forms(&facts);
    struct generator *generator = malloc(sizeof(*generator));
    if (!generator) {
        return error_no_memory(err, "a language model");
    }
    *generator = facts;
    atomic_init(&generator->is_retired, false);
    share_init(&generator->seats, 0, 0);
    atomic_init(&generator->decoding, 0);
    atomic_init(&generator->speculation_tokens, 1);
    atomic_init(&generator->never_guesses, false);
    (void)reason_set(&generator->why_one, REASON_UNTRIED);
    int rc = pthread_mutex_init(&generator->lock, NULL);
    must(rc == 0);
    enum status status = find_words(generator, path, tokenizer, said, err);
    if (status != ST_OK || !generator->words) {
        generator_free(generator);
        return status;
    }
    *out = generator;
    return ST_OK;
}

void generator_free(struct generator *generator)
{
    if (generator) {
        OBJ_CHECK(generator, GENERATOR_MAGIC);
        chat_close(&generator->chat);
        words_free(generator->words);
        grammar_vocabulary_free(generator->vocabulary);
        share_fini(&generator->seats);
        pthread_mutex_destroy(&generator->lock);
        generator->magic = 0;
        free(generator);
    }
}

/* ---- texts of all tokens --------------------------------------------------------------------- */

enum status generator_token_text(const struct generator *generator, uint32_t id, struct buf *out,
                                 struct error *err)
{
    size_t before = out->len;
    if (words_is_special(generator->words, id)) {
        if (!tools_rules_have(&generator->tools, id)) {
            return ST_OK;
        }
        buf_add_char(out, (char)TOOLS_TOKEN_BYTE);
        return words_bytes(generator->words, id, out, err);
    }
    TRY(words_bytes(generator->words, id, out, err));
    bool is_text =
        out->len == before || !memchr(out->ptr + before, TOOLS_TOKEN_BYTE, out->len - before);
    out->len = is_text ? out->len : before; /* a token of this byte alone spells no mark */
    return ST_OK;
}

/* Appends the texts to |texts|, and where each ends to |ends|. */
static enum status list_texts(const struct generator *generator, struct buf *texts, size_t *ends,
                              struct error *err)
{
    uint32_t count = words_count(generator->words);
    for (uint32_t id = 0; id < generator->vocab; id++) {
        if (id < count) {
            TRY(generator_token_text(generator, id, texts, err));
        }
        ends[id] = texts->len;
    }
    return buf_failed(texts)
               ? error_set(err, ST_EXHAUSTED, "constrained output: the tokens need too much memory")
               : ST_OK;
}

static enum status make_vocabulary(struct generator *generator, struct buf *texts, size_t *ends,
                                   struct span *tokens, struct error *err)
{
    if (!ends || !tokens) {
        return error_no_memory(err, "constrained output");
    }
    TRY(list_texts(generator, texts, ends, err));
    for (uint32_t id = 0; id < generator->vocab; id++) {
        size_t begin = id ? ends[id - 1] : 0;
        tokens[id] =
            begin < ends[id] ? span_of(texts->ptr + begin, ends[id] - begin) : (struct span){0};
    }
    return grammar_vocabulary_new(tokens, generator->vocab, &generator->vocabulary, err);
}

enum status generator_find_vocabulary(struct generator *generator,
                                      const struct grammar_vocabulary **out, struct error *err)
{
    OBJ_CHECK(generator, GENERATOR_MAGIC);
    enum status status = ST_OK;
    int rc = pthread_mutex_lock(&generator->lock);
    must(rc == 0);
    if (!generator->vocabulary) {
        struct buf texts;
        buf_init(&texts, TEXTS_BYTES_MAX);
        size_t *ends = malloc(generator->vocab * sizeof(*ends));
        struct span *tokens = malloc(generator->vocab * sizeof(*tokens));
        status = make_vocabulary(generator, &texts, ends, tokens, err);
        free(tokens);
        free(ends);
        buf_fini(&texts);
    }
    *out = generator->vocabulary;
    rc = pthread_mutex_unlock(&generator->lock);
    must(rc == 0);
    return status;
}

bool generator_is_end(const struct generator *generator, uint32_t id)
{
    OBJ_CHECK(generator, GENERATOR_MAGIC);
    for (uint32_t i = 0; i < generator->end_count; i++) {
        if (generator->ends[i] == id) {
            return true;
        }
    }
    return false;
}

uint32_t generator_part(const struct generator *generator, uint32_t others, uint32_t most)
{
    OBJ_CHECK(generator, GENERATOR_MAGIC);
    const uint32_t tokens = atomic_load(&generator->speculation_tokens);
    if (tokens < 2) {
        return most; /* the times may be about to be set */
    }
    const uint64_t one = generator->speculation_ns[1], all = generator->speculation_ns[tokens];
    if (one == 0 || all <= one) {
        return most;
    }
    uint64_t cheap = 1 + one * (tokens - 1) / (2 * (all - one));
    uint64_t part = others > GENERATOR_PART_MIN ? others : GENERATOR_PART_MIN;
    part = cheap > part ? cheap : part;
    return part < most ? (uint32_t)part : most;
}
