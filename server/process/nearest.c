/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/nearest.h"

#include <stdbool.h>
#include <string.h>

#define WORD_BYTES_MAX 63
#define SLIP_BYTES_MIN 4 /* of shorter words another letter makes another word */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many letters differ, by Wagner and Fischer: row i % 3 has the distances between the first i
 * letters of |a| and each prefix of |b|. Two neighbours that have changed places count once. Both
 * have at most WORD_BYTES_MAX bytes. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t rows[3][WORD_BYTES_MAX + 1], len = (uint32_t)strlen(b), i;
    for (uint32_t j = 0; j <= len; j++) {
        rows[0][j] = j;
    }
    for (i = 1; a[i - 1]; i++) {
        uint32_t *row = rows[i % 3], *above = rows[(i - 1) % 3];
        row[0] = i;
        for (uint32_t j = 1; j <= len; j++) {
            bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            uint32_t swapped = is_swapped ? rows[(i - 2) % 3][j - 2] + 1 : UINT32_MAX;
            uint32_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(least(changed, swapped), least(row[j - 1], above[j]) + 1);
        }
    }
    return rows[(i - 1) % 3][len];
}

/* In lower case and without the signs between words, as far as there is room. */
static void fold(const char *text, char out[WORD_BYTES_MAX + 1])
{
    size_t len = 0;
    for (; *text && len < WORD_BYTES_MAX; text++) {
        if (*text != '_' && *text != '-') {
            out[len++] = (char)(*text >= 'A' && *text <= 'Z' ? *text + ('a' - 'A') : *text);
        }
    }
    out[len] = '\0';
}

bool nearest_is_slip(const char *text, const char *word)
{
    char a[WORD_BYTES_MAX + 1], b[WORD_BYTES_MAX + 1];
    if (strlen(text) > WORD_BYTES_MAX || strlen(word) > WORD_BYTES_MAX) {
        return false;
    }
    fold(text, a);
    fold(word, b);
    return strlen(b) >= SLIP_BYTES_MIN && distance(a, b) <= 1;
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
