/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/drafts.h"

#include <string.h>

#include "base/check.h"

/* Fewer tokens in the prompt or the answer may be the same by chance; the client's text is meant.
 */
#define MATCH_MIN 2
#define SAID_MATCH_MIN 1

/* A search looks at so many tokens, which takes up to 0.2 ms of the loop's time: contexts may be
 * much longer. */
#define LOOKS_MAX (1u << 16)

/* A new guess counts for so much of a rate. */
#define NEWS 0.125f

/* Times are measured when the machine may do something else, too: a gain of less is none. */
#define GAIN_MIN 1.05

void drafts_init(struct drafts *drafts, const uint32_t *said, uint32_t said_count)
{
    static const float expected[DRAFTS_MATCH_MAX] = {0.5f, 0.5f, 0.6f, 0.7f};
    *drafts = (struct drafts){.said = said, .said_count = said_count};
    memcpy(drafts->rates, expected, sizeof(expected));
}

/* ---- looking for guesses --------------------------------------------------------------------- */

/* How many tokens before |end| in |text| are the same as at the end of |tokens|. */
static uint32_t match_before(const uint32_t *text, uint32_t end, const uint32_t *tokens,
                             uint32_t count)
{
    uint32_t max = end < count ? end : count, match = 0;
    max = max < DRAFTS_MATCH_MAX ? max : DRAFTS_MATCH_MAX;
    while (match < max && text[end - 1 - match] == tokens[count - 1 - match]) {
        match++;
    }
    return match;
}

/* The longest match of |text| that begins to be a guess at |first| or later, before |end|; the
 * first or the last one of them. Its end, or 0. A long text is looked at from that side on. */
static uint32_t find_match(const uint32_t *text, uint32_t first, uint32_t end,
                           const uint32_t *tokens, uint32_t count, bool is_first,
                           uint32_t *out_match)
{
    uint32_t last = tokens[count - 1], found = 0, best = 0;
    if (end - first > LOOKS_MAX) {
        first = is_first ? first : end - LOOKS_MAX;
        end = first + LOOKS_MAX;
    }
    for (uint32_t i = first > 0 ? first : 1; i < end; i++) {
        if (text[i - 1] != last) {
            continue;
        }
        uint32_t match = match_before(text, i, tokens, count);
        if (match > best || (match == best && !is_first)) {
            best = match;
            found = i;
        }
    }
    *out_match = best;
    return found;
}

static void take(struct drafts *drafts, const uint32_t *text, uint32_t count, uint32_t at,
                 uint32_t match, uint32_t max)
{
    uint32_t left = count - at;
    drafts->count = left < max ? left : max;
    drafts->match = match;
    memcpy(drafts->ids, text + at, drafts->count * sizeof(*text));
}

/* Tokens behind the end of the known ones are guessed, too: that they go on as before. */
static void repeat(struct drafts *drafts, uint32_t max)
{
    uint32_t period = drafts->count;
    for (; drafts->count < max; drafts->count++) {
        drafts->ids[drafts->count] = drafts->ids[drafts->count - period];
    }
}

/* In the client's text, from where the answer was last found on; else anywhere. */
static bool find_said(struct drafts *drafts, const uint32_t *tokens, uint32_t count, uint32_t max)
{
    uint32_t match, before, said = drafts->said_count;
    uint32_t at = find_match(drafts->said, drafts->said_at, said, tokens, count, true, &match);
    if (match < DRAFTS_MATCH_MAX && drafts->said_at > 0) {
        uint32_t other = find_match(drafts->said, 0, drafts->said_at, tokens, count, true, &before);
        at = before > match ? other : at;
        match = before > match ? before : match;
    }
    if (match < SAID_MATCH_MIN) {
        return false;
    }
    take(drafts, drafts->said, said, at, match, max);
    drafts->said_at = at;
    drafts->is_said = true;
    return true;
}

void drafts_find(struct drafts *drafts, const uint32_t *tokens, uint32_t count, uint32_t max)
{
    uint32_t match;
    must(count > 0 && max <= DRAFTS_MAX);
    drafts->count = 0;
    drafts->is_said = false;
    if (max == 0 || (drafts->said_count > 0 && find_said(drafts, tokens, count, max))) {
        return;
    }
    uint32_t at = find_match(tokens, 0, count, tokens, count, false, &match);
    if (match >= MATCH_MIN) {
        take(drafts, tokens, count, at, match, max);
        repeat(drafts, max);
    }
}

/* ---- how many are worth it ------------------------------------------------------------------- */

uint32_t drafts_choose(const struct drafts *drafts, const uint64_t *ns, uint32_t tokens_max)
{
    uint32_t best = 0;
    double rate = drafts->count ? (double)drafts->rates[drafts->match - 1] : 0;
    double right = 1, tokens = 1, least = (double)ns[1] / GAIN_MIN;
    for (uint32_t i = 1; i <= drafts->count && i < tokens_max; i++) {
        right *= rate; /* all guesses up to this one */
        tokens += right;
        if ((double)ns[i + 1] / tokens < least) {
            least = (double)ns[i + 1] / tokens;
            best = i;
        }
    }
    return best;
}

void drafts_note(struct drafts *drafts, uint32_t right, bool misses)
{
    if (drafts->count == 0) {
        return;
    }
    float *rate = &drafts->rates[drafts->match - 1];
    for (uint32_t i = 0; i < right; i++) {
        *rate += (1 - *rate) * NEWS;
    }
    *rate -= misses ? *rate * NEWS : 0;
    drafts->said_at += drafts->is_said ? right : 0;
}
