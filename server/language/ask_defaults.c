/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <math.h>

#include "server/language/ask.h"

struct ask ask_new(enum ask_form form)
{
    return (struct ask){.form = form,
                        .n = 1,
                        .is_stream = form & ASK_OLLAMA,
                        .max_tokens = UINT32_MAX,
                        .sampler = {.temperature = NAN,
                                    .top_p = NAN,
                                    .min_p = NAN,
                                    .repetition = NAN,
                                    .top_k = UINT32_MAX}};
}

struct ask_defaults ask_no_defaults(void)
{
    return (struct ask_defaults){.temperature = NAN,
                                 .top_p = NAN,
                                 .min_p = NAN,
                                 .repetition = NAN,
                                 .top_k = UINT32_MAX,
                                 .max_tokens = UINT32_MAX};
}

static void take_number(double *said, double of_model, double otherwise)
{
    if (isnan(*said)) {
        *said = isnan(of_model) ? otherwise : of_model;
    }
}

static void take_count(uint32_t *said, uint32_t of_model, uint32_t otherwise)
{
    if (*said == UINT32_MAX) {
        *said = of_model == UINT32_MAX ? otherwise : of_model;
    }
}

void ask_take_defaults(struct ask *ask, const struct ask_defaults *model)
{
    struct sampler_options *sampler = &ask->sampler;
    take_number(&sampler->temperature, model->temperature, 1);
    take_number(&sampler->top_p, model->top_p, 1);
    take_number(&sampler->min_p, model->min_p, 0);
    take_number(&sampler->repetition, model->repetition, 1);
    take_count(&sampler->top_k, model->top_k, 0);
    take_count(&ask->max_tokens, model->max_tokens, UINT32_MAX);
}
