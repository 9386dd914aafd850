/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/precision.h"

#include "base/check.h"

static const char *const words[PRECISION_COUNT] = {"exact", "fast", "bf16"};

const char *precision_word(enum precision precision)
{
    must((unsigned)precision < PRECISION_COUNT);
    return words[precision];
}

bool precision_find(struct span word, enum precision *out_precision)
{
    for (unsigned i = 0; i < PRECISION_COUNT; i++) {
        if (span_is(word, words[i])) {
            *out_precision = (enum precision)i;
            return true;
        }
    }
    return false;
}
