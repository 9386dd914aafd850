/* SPDX-License-Identifier: MIT */
/*
 * A request to a speech model as its client says it: the fields of its multipart/form-data, as
 * clients of OpenAI's API send them. server/daemon/generation/speech_ask.def has the fields; others
 * are passed over. Reading knows no model. Any thread.
 */
#ifndef PTED_SERVER_DAEMON_GENERATION_SPEECH_ASK_H
#define PTED_SERVER_DAEMON_GENERATION_SPEECH_ASK_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

enum speech_form {
    SPEECH_JSON,
    SPEECH_TEXT,
    SPEECH_VERBOSE_JSON,
    SPEECH_SRT,
    SPEECH_VTT,
    SPEECH_FORMS
};

/* Texts borrow from the body. */
struct speech_ask {
    struct span file;   /* of sound */
    char model[256];    /* a longer name is none */
    char language[32];  /* "": to be found out */
    struct span prompt; /* text before the sound */
    enum speech_form form;
    double temperature; /* 0: the most probable token */
    bool is_stream;
    bool wants_logprobs; /* of the tokens */
    bool is_translation; /* into English; not a field */
};

/* Fails with ST_INVALID: "temperature: expected 0 to 1, got '7'"; ST_UNSUPPORTED. */
MUST_CHECK enum status speech_ask_parse(struct span content_type, struct span body,
                                        struct speech_ask *out, struct error *err);

#endif
