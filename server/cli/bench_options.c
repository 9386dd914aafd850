/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_options.h"

#include <stdio.h>
#include <string.h>

#include "server/cli/cli.h"
#include "server/cli/option.h"

#define RATE_MIN 0.001
#define RATE_MAX 1000000
#define DURATION_MS_MAX (UINT64_C(7) * 24 * 3600 * 1000)
#define DURATION_MS 10000
#define WARM_UP_MS 1000
#define COUNT_MAX UINT64_C(1000000000000)
#define CONNECTIONS 512
#define PROMPT_TOKENS 512
#define ANSWER_TOKENS 128

static enum status set_clients(void *own, const char *value, struct error *err)
{
    static const struct bench_sweep_limits limits = {1, BENCH_CONNECTIONS_MAX, true};
    struct bench_options *options = own;
    return bench_sweep_parse(value, &limits, &options->clients, err);
}

static enum status set_rate(void *own, const char *value, struct error *err)
{
    static const struct bench_sweep_limits limits = {RATE_MIN, RATE_MAX, false};
    struct bench_options *options = own;
    return bench_sweep_parse(value, &limits, &options->rates, err);
}

static enum status set_prompt_tokens(void *own, const char *value, struct error *err)
{
    struct bench_options *options = own;
    return bench_lengths_parse(value, &options->prompts.prompts, err);
}

static enum status set_answer_tokens(void *own, const char *value, struct error *err)
{
    struct bench_options *options = own;
    return bench_lengths_parse(value, &options->prompts.answers, err);
}

static const struct cli_option own_options[] = {
    {.name = "clients",
     .value = "N",
     .type = OPTION_TEXT,
     .set = set_clients,
     .preset = "1",
     .doc = "closed loop: N clients, each of which waits for its answer; several values as 1,2,4 "
            "or a range as 4..32x8 are a sweep with a step for each"},
    {.name = "rate",
     .value = "R",
     .type = OPTION_TEXT,
     .set = set_rate,
     .doc =
         "open loop: R requests a second, whatever the answers do; also a sweep, as 100..2000x8"},
    {.name = "arrivals",
     .value = "KIND",
     .type = OPTION_WORD,
     .at = offsetof(struct bench_options, arrivals),
     .words = "poisson fixed",
     .preset = "poisson",
     .doc = "of an open loop: poisson, as of independent users, or fixed gaps"},
    {.name = "connections",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct bench_options, connections),
     .min = 1,
     .max = BENCH_CONNECTIONS_MAX,
     .preset = "512",
     .doc = "of an open loop: at most N requests under way at once",
     .more = "Others wait, and their latency has begun."},
    {.name = "duration",
     .value = "TIME",
     .type = OPTION_MS,
     .at = offsetof(struct bench_options, duration_ms),
     .min = 1,
     .max = DURATION_MS_MAX,
     .preset = "10s; with --requests no end",
     .doc = "how long a step measures"},
    {.name = "requests",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct bench_options, count_max),
     .min = 1,
     .max = COUNT_MAX,
     .doc = "end a step after N requests"},
    {.name = "warm-up",
     .value = "TIME",
     .type = OPTION_MS,
     .at = offsetof(struct bench_options, warm_up_ms),
     .min = 0,
     .max = DURATION_MS_MAX,
     .preset = "1s",
     .doc = "load before each step that is not measured"},
    {.name = "method",
     .value = "NAME",
     .type = OPTION_TEXT,
     .at = offsetof(struct bench_options, method),
     .doc = "a method other than the model's default"},
    {.name = "shape",
     .value = "NAME=2x3x4",
     .type = OPTION_TEXTS,
     .at = offsetof(struct bench_options, shapes),
     .count_at = offsetof(struct bench_options, body.shape_count),
     .max = BENCH_TEXTS_MAX,
     .doc = "shape of an input, else the server's example; repeatable"},
    {.name = "data",
     .value = "NAME=FILE",
     .type = OPTION_TEXTS,
     .at = offsetof(struct bench_options, data),
     .count_at = offsetof(struct bench_options, body.data_count),
     .max = BENCH_TEXTS_MAX,
     .doc = "an input from FILE.npy or from all of them in a folder, in turn; of BYTES from any "
            "file; else random values; repeatable"},
    {.name = "prompt-tokens",
     .value = "N",
     .type = OPTION_TEXT,
     .set = set_prompt_tokens,
     .preset = "512",
     .doc = "of a language model: completions, with prompts of N random tokens; as 100..500 drawn, "
            "as 128,2048 mixed"},
    {.name = "answer-tokens",
     .value = "N",
     .type = OPTION_TEXT,
     .set = set_answer_tokens,
     .preset = "128",
     .doc = "of a language model: completions, with answers of N tokens; likewise"},
    {.name = "prompts",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct bench_options, prompts.file),
     .doc = "of a language model: prompts from lines of JSON, in turn: a text, or an object with "
            "prompt and perhaps output_tokens"},
    {.name = "form",
     .value = "FORM",
     .type = OPTION_WORD,
     .at = offsetof(struct bench_options, form),
     .words = "binary json",
     .preset = "binary",
     .doc = "tensors as binary or as json"},
    {.name = "seed",
     .value = "N",
     .type = OPTION_COUNT,
     .at = offsetof(struct bench_options, body.seed),
     .min = 0,
     .max = UINT64_MAX,
     .preset = "0",
     .doc = "of random values and arrivals"},
    {.name = "csv",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct bench_options, csv),
     .doc = "write a line for each step; - is standard output",
     .more = "Standard output then has nothing else."},
    {.name = "json",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct bench_options, json),
     .doc = "write all results as a JSON document; - is standard output",
     .more = "pted's page on load explains its members."},
    {.name = "compare",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct bench_options, compare),
     .doc = "print the figures beside those of an earlier run, which --json has written"},
    {.name = "no-plot",
     .type = OPTION_SWITCH,
     .at = offsetof(struct bench_options, has_no_plot),
     .doc = "print no plot"},
    {.name = NULL},
};

const struct cli_option_group bench_option_groups[] = {
    {.name = "bench", .options = own_options},
    {.name = "client",
     .options = client_option_table,
     .at = offsetof(struct bench_options, client)},
    {.name = NULL},
};

enum status bench_options_take(void *own, const char *text, struct error *err)
{
    struct bench_options *options = own;
    return cli_take_only(&options->url, "URL/MODEL", text, err);
}

/* pted serves a method as a model of its own. */
static enum status name_method(struct bench_options *o, struct error *err)
{
    size_t len = strlen(o->target.model);
    int more = snprintf(o->target.model + len, sizeof(o->target.model) - len, ".%s", o->method);
    return more >= 0 && (size_t)more < sizeof(o->target.model) - len
               ? ST_OK
               : error_set(err, ST_INVALID, "--method: the name is too long");
}

/* Any option of them asks for completions. */
static enum status finish_language(struct bench_options *o, struct error *err)
{
    struct bench_prompts_options *prompts = &o->prompts;
    o->is_language = prompts->file || prompts->prompts.count || prompts->answers.count;
    if (!o->is_language) {
        return ST_OK;
    }
    if (prompts->file && prompts->prompts.count) {
        return error_set(err, ST_INVALID, "--prompts and --prompt-tokens: expected one of them");
    }
    if (o->body.shape_count || o->body.data_count || o->method || o->form == BENCH_JSON) {
        return error_set(err, ST_INVALID, "%s: not of completions of a language model",
                         o->body.shape_count  ? "--shape"
                         : o->body.data_count ? "--data"
                         : o->method          ? "--method"
                                              : "--form");
    }
    if (!prompts->prompts.count) {
        prompts->prompts = (struct bench_lengths){1, {{PROMPT_TOKENS, PROMPT_TOKENS}}};
    }
    if (!prompts->answers.count) {
        prompts->answers = (struct bench_lengths){1, {{ANSWER_TOKENS, ANSWER_TOKENS}}};
    }
    prompts->seed = o->body.seed;
    return ST_OK;
}

static enum status finish(struct bench_options *o, struct error *err)
{
    TRY(finish_language(o, err));
    if (!o->url) {
        return error_set(err, ST_INVALID, "expected URL/MODEL");
    }
    TRY(target_parse_model(o->url, &o->target, err));
    TRY(o->method ? name_method(o, err) : ST_OK);
    if (o->clients.count && o->rates.count) {
        return error_set(err, ST_INVALID,
                         "--clients is a closed loop and --rate an open one: "
                         "expected one of them");
    }
    if (!o->rates.count && (o->connections || o->arrivals == BENCH_FIXED)) {
        return error_set(err, ST_INVALID, "%s: only with --rate",
                         o->connections ? "--connections" : "--arrivals");
    }
    if (o->csv && o->json && strcmp(o->csv, "-") == 0 && strcmp(o->json, "-") == 0) {
        return error_set(err, ST_INVALID, "--csv and --json: only one can be standard output");
    }
    if (!o->clients.count && !o->rates.count) {
        o->clients = (struct bench_sweep){.count = 1, .values = {1}};
    }
    o->connections = o->connections ? o->connections : CONNECTIONS;
    o->duration_ms = o->duration_ms || o->count_max ? o->duration_ms : DURATION_MS;
    return ST_OK;
}

enum status bench_options_parse(int argc, char *const argv[], struct bench_options *out,
                                struct error *err)
{
    *out = (struct bench_options){
        .client = CLIENT_OPTIONS_DEFAULT,
        .warm_up_ms = WARM_UP_MS,
    };
    TRY(cli_option_parse(&cli_bench_command, argc, argv, out, err));
    out->body.shapes = out->shapes;
    out->body.data = out->data;
    out->body.is_json = out->form == BENCH_JSON;
    return finish(out, err);
}
