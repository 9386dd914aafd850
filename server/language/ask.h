/* SPDX-License-Identifier: MIT */
/*
 * A request to a language model, read from its body: completions and chats as clients of OpenAI's
 * API, of Anthropic's, of Cohere's and of Ollama send them, and generate of the Open Inference
 * Protocol. server/language/ask.def has the members. Reading knows no model: ids are compared with
 * a vocabulary later.
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_H
#define PTED_SERVER_LANGUAGE_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"
#include "server/language/sampler.h"

/* Bits, because a member may belong to several. */
enum ask_form {
    ASK_COMPLETION = 1,
    ASK_CHAT = 2,
    ASK_GENERATE = 4,
    ASK_RESPONSE = 8,
    ASK_MESSAGE = 16, /* Anthropic's */
    ASK_OLLAMA_CHAT = 32,
    ASK_OLLAMA_GENERATE = 64, /* one message in place of |messages| */
    ASK_COHERE = 128,         /* Cohere's /v2/chat */
    ASK_LLAMA = 256,          /* llama.cpp's /completion */
    ASK_INFILL = 512, /* its /infill: |prompts|, of which there is one, stand before a gap */
};
#define ASK_OLLAMA (ASK_OLLAMA_CHAT | ASK_OLLAMA_GENERATE)
/* The prompt comes from a template, see ask_is_chat(). */
#define ASK_CHATS (ASK_CHAT | ASK_RESPONSE | ASK_MESSAGE | ASK_OLLAMA | ASK_COHERE)

/* Does a client want the model to think before it answers? */
enum ask_thinking { ASK_THINKING_UNSAID, ASK_THINKING_OFF, ASK_THINKING_ON };

/* The form that the text of an answer must have. */
enum ask_shape { ASK_ANY_TEXT, ASK_OBJECT, ASK_SCHEMA, ASK_REGEX, ASK_CHOICE, ASK_GBNF, ASK_CALL };

#define ASK_EFFORT_BYTES_MAX 32
#define ASK_EXTRAS_MAX 256
#define ASK_PROMPTS_MAX 64
#define ASK_STOPS_MAX 16
#define ASK_STOP_BYTES_MAX 256
#define ASK_BIASES_MAX 1024
#define ASK_ALLOWED_MAX 128

struct ask_prompt {
    struct span text;
    const uint32_t *ids; /* instead of a text; NULL: there is a text */
    uint32_t id_count;
};

/* A text that may help, with the name of its file, which may be empty. */
struct ask_extra {
    struct span name, text;
};

/* Everything is in the arena or borrows from the body. */
struct ask {
    enum ask_form form;
    const char *model; /* NULL: the target names it, or it is the only one */
    struct span id;    /* of a request to generate, to be repeated */
    bool is_message;   /* likewise: its answers are messages of gRPC */
    struct ask_prompt *prompts;
    uint32_t prompt_count;
    struct span suffix; /* of each prompt: the answer belongs between them; empty: none */
    struct span begun;  /* of ASK_INFILL: the beginning of the answer */
    struct ask_extra *extras;
    uint32_t extra_count;
    struct span messages, tools; /* JSON; empty: none */
    bool continues;              /* the last message is the beginning of the answer */
    bool is_raw;                 /* of ASK_OLLAMA: the prompt is |prompts| all the same */
    bool is_load;                /* likewise: nothing is asked but that the model is loaded */
    struct span template_values; /* likewise: an object, for the chat template */
    bool drops_tools;            /* tool_choice is none */
    bool has_one_call;           /* parallel_tool_calls is false */
    bool needs_call;             /* tool_choice is "required", or names |chosen_tool| */
    struct span chosen_tool;
    const struct span *allowed_tools; /* their names: others are as if they were not there */
    uint32_t allowed_tool_count;
    enum ask_thinking thinking;
    struct span effort;       /* how much it should think, for the template; empty: not given */
    struct span prediction;   /* a text that the answer may be like; without |ptr|: none */
    struct span instructions; /* JSON: the content of a message before all others; empty: none */
    /* Of a response, JSON as it was given, to be repeated; empty: not given. */
    struct span given_tools, given_choice, format, metadata;
    uint32_t max_tokens; /* UINT32_MAX: not given */
    struct sampler_options sampler;
    bool has_seed;
    struct span *stops;
    uint32_t stop_count;
    const uint32_t *stop_ids;
    uint32_t stop_id_count;
    bool has_keep;    /* keep_alive is given */
    uint64_t keep_ns; /* for so long; UINT64_MAX: for ever */
    bool ignores_ends;
    bool computes_all;   /* no state of an earlier request is used */
    uint32_t n, best_of; /* 0: best_of is not given */
    bool echoes;
    bool is_stream;
    bool wants_usage;    /* in the last event of a stream */
    bool wants_logprobs; /* of the tokens, and of the |top_count| most probable ones beside each */
    uint32_t top_count;
    bool wants_prompt_logprobs; /* in a list of its own, with |prompt_top_count| beside each */
    uint32_t prompt_top_count;
    enum ask_shape shape;
    struct span grammar;      /* a JSON Schema, an expression, texts as JSON, GBNF, or the tool to
                                 call, if one */
    const char *grammar_path; /* goes before the text of an error in it; static */
};

/* What a model says where requests do not. NaN, UINT32_MAX: it says nothing. */
struct ask_defaults {
    double temperature, top_p, min_p, repetition;
    uint32_t top_k, max_tokens;
};

/* Does the prompt come from the model's template? */
static inline bool ask_is_chat(const struct ask *ask)
{
    return (ask->form & ASK_CHATS) && !ask->is_raw;
}

/* Does the answer belong between two texts? */
static inline bool ask_has_gap(const struct ask *ask)
{
    return ask->suffix.len > 0 || ask->form == ASK_INFILL;
}

/* Are logarithms of the prompt's tokens wanted, in either form? */
bool ask_scores_prompt(const struct ask *ask);

/* Returns a request that says nothing; see ask_take_defaults(). */
struct ask ask_new(enum ask_form form);

/* Returns a model that says nothing. */
struct ask_defaults ask_no_defaults(void);

/* Gives |ask|, where the request says nothing, what the model says, or else the API's default.
 * Before that these members of |ask->sampler| mean nothing. */
void ask_take_defaults(struct ask *ask, const struct ask_defaults *model);

/*
 * Reads |body|. Fails with ST_INVALID, with the path and the byte of the error; with ST_UNSUPPORTED
 * for a wish that pted cannot fulfil; with ST_TOO_LARGE and ST_EXHAUSTED for memory.
 */
MUST_CHECK enum status ask_parse(enum ask_form form, struct span body, uint32_t depth_max,
                                 struct arena *arena, struct ask *out, struct error *err);

#endif
