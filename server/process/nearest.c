/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/nearest.h"

#include <string.h>

#define WORD_BYTES_MAX 63

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many letters differ, by Wagner and Fischer: a row has the distances between a prefix of |a|
 * and each prefix of |b|. Both have at most WORD_BYTES_MAX bytes. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[WORD_BYTES_MAX + 1], len = (uint32_t)strlen(b);
    for (uint32_t j = 0; j <= len; j++) {
        row[j] = j;
    }
    for (uint32_t i = 0; a[i]; i++) {
        uint32_t diagonal = row[0];
        row[0] = i + 1;
        for (uint32_t j = 0; j < len; j++) {
            uint32_t changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(changed, least(row[j], diagonal) + 1);
        }
    }
    return row[len];
}

const char *nearest_word(const char *text, const char *const *words, uint32_t count)
{
    const char *best = NULL;
    uint32_t best_distance = UINT32_MAX;
    if (strlen(text) > WORD_BYTES_MAX) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        size_t len = strlen(words[i]);
        uint32_t here = len > WORD_BYTES_MAX ? UINT32_MAX : distance(text, words[i]);
        if (here < best_distance && here <= 1 + len / 4) {
            best = words[i];
            best_distance = here;
        }
    }
    return best;
}
