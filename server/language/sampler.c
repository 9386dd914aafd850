/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/sampler_order.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Steps of the loop may take 2 ms: a maximum of that many logits takes some 20 us, and the few
 * largest ones 1 ms at worst. Exponentials take some 100 us, and the order of equal logits 1.5 ms.
 */
#define INLINE_MAX 65536
#define INLINE_TOP_MAX 256
#define INLINE_EXP_MAX 32768

void sampler_init(struct sampler *sampler, const struct sampler_options *options, uint32_t vocab)
{
    must(vocab > 0);
    *sampler = (struct sampler){.options = *options, .vocab = vocab};
}

void sampler_fini(struct sampler *sampler)
{
    free(sampler->logits);
    free(sampler->entries);
    free(sampler->counts);
    free(sampler->is_in_prompt);
    *sampler = (struct sampler){0};
}

size_t sampler_bytes(const struct sampler *sampler)
{
    size_t each = (sampler->logits ? sizeof(sampler->logits[0]) : 0) +
                  (sampler->entries ? sizeof(sampler->entries[0]) : 0) +
                  (sampler->counts ? sizeof(sampler->counts[0]) : 0) +
                  (sampler->is_in_prompt ? sizeof(sampler->is_in_prompt[0]) : 0);
    return sampler->vocab * each;
}

static bool has_penalties(const struct sampler *sampler)
{
    const struct sampler_options *options = &sampler->options;
    return options->repetition != 1 || options->frequency != 0 || options->presence != 0;
}

enum status sampler_note(struct sampler *sampler, uint32_t id, bool is_prompt, struct error *err)
{
    if (!has_penalties(sampler)) {
        return ST_OK;
    }
    if (!sampler->counts) {
        sampler->counts = calloc(sampler->vocab, sizeof(sampler->counts[0]));
        sampler->is_in_prompt = calloc(sampler->vocab, 1);
    }
    if (!sampler->counts || !sampler->is_in_prompt) {
        return error_no_memory(err, "sampling");
    }
    must(id < sampler->vocab);
    if (is_prompt) {
        sampler->is_in_prompt[id] = 1;
    } else {
        sampler->counts[id]++;
    }
    return ST_OK;
}

/* ---- changed logits -------------------------------------------------------------------------- */

static void add_biases(struct sampler *sampler)
{
    for (uint32_t i = 0; i < sampler->options.bias_count; i++) {
        const struct sampler_bias *bias = &sampler->options.biases[i];
        must(bias->id < sampler->vocab);
        sampler->logits[bias->id] += bias->value;
    }
}

static void take_penalties(struct sampler *sampler)
{
    const struct sampler_options *options = &sampler->options;
    for (uint32_t id = 0; sampler->counts && id < sampler->vocab; id++) {
        uint32_t count = sampler->counts[id];
        float *logit = &sampler->logits[id];
        if (count == 0 && !sampler->is_in_prompt[id]) {
            continue;
        }
        *logit *= (float)(*logit > 0 ? 1 / options->repetition : options->repetition);
        *logit -= (float)(options->frequency * count + (count ? options->presence : 0));
    }
}

static void mask(struct sampler *sampler, const uint64_t *allowed)
{
    for (uint32_t id = 0; id < sampler->vocab; id++) {
        if (!(allowed[id / 64] >> id % 64 & 1)) {
            sampler->logits[id] = -INFINITY;
        }
    }
}

/* The logits to choose from: the model's own where nothing changes them. */
static const float *change(struct sampler *sampler, const float *logits, const uint64_t *allowed)
{
    if (sampler->options.bias_count == 0 && !sampler->counts && !allowed) {
        return logits;
    }
    if (!sampler->logits) {
        sampler->logits = malloc(sampler->vocab * sizeof(float));
    }
    if (sampler->logits) {
        memcpy(sampler->logits, logits, sampler->vocab * sizeof(float));
        add_biases(sampler);
        take_penalties(sampler);
        if (allowed) {
            mask(sampler, allowed);
        }
    }
    return sampler->logits;
}

/* ---- the largest ones ------------------------------------------------------------------------ */

/* Logits that are looked at or added at a time: a constant, so that the compiler uses vectors. */
#define BLOCK 256
#define LANES 16

static float max_block(const float *logits)
{
    float lanes[LANES], max = -INFINITY;
    for (int j = 0; j < LANES; j++) {
        lanes[j] = -INFINITY;
    }
    for (int i = 0; i < BLOCK; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
        }
    }
    for (int j = 0; j < LANES; j++) {
        max = lanes[j] > max ? lanes[j] : max;
    }
    return max;
}

/* The maximum of a block from |first| on, or of the rest. NaN is none. */
static float max_from(const float *logits, uint32_t first, uint32_t vocab)
{
    float max = -INFINITY;
    if (vocab - first >= BLOCK) {
        return max_block(logits + first);
    }
    for (uint32_t id = first; id < vocab; id++) {
        max = logits[id] > max ? logits[id] : max;
    }
    return max;
}

/* The first of equal ones, as argmax() of PyTorch and numpy; |vocab|: all are NaN or -infinity. */
static uint32_t find_largest(const float *logits, uint32_t vocab)
{
    uint32_t best = vocab;
    float max = -INFINITY;
    for (uint32_t first = 0; first < vocab; first += BLOCK) {
        float here = max_from(logits, first, vocab);
        if (here > max) {
            max = here;
            best = first;
        }
    }
    while (best < vocab && !(logits[best] >= max)) {
        best++;
    }
    return best;
}

/* ---- probabilities --------------------------------------------------------------------------- */

/*
 * exp(x) for x <= 0, within 3e-7 of it, and 0 from -87 on. 2^t is 2^r * 2^f with r a whole number
 * and f from -0.5 to 0.5; the polynomial is the series of 2^f, economized.
 */
static inline float near_exp(float x)
{
    float t = (x > -87.0F ? x : -87.0F) * 1.44269504F;
    float r = (t + 12582912.0F) - 12582912.0F; /* 1.5 * 2^23: rounds to a whole number */
    float f = t - r, scale;
    float p =
        1.0F + f * (0.69314718F +
                    f * (0.24022651F + f * (0.05550332F + f * (0.00961814F + f * 0.00133398F))));
    int32_t bits = (int32_t)((uint32_t)((int32_t)r + 127) << 23);
    memcpy(&scale, &bits, sizeof(scale));
    return x > -87.0F ? p * scale : 0.0F;
}

/* The weight of a logit beside the largest one. NaN has none. */
static inline float weigh(float logit, float max, float scale)
{
    float below = (logit - max) * scale;
    return near_exp(below <= 0 ? below : -100.0F);
}

static float sum_block(const float *logits, float max, float scale)
{
    float sums[LANES] = {0}, sum = 0;
    for (int i = 0; i < BLOCK; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            sums[j] += weigh(logits[i + j], max, scale);
        }
    }
    for (int j = 0; j < LANES; j++) {
        sum += sums[j];
    }
    return sum;
}

/* The sum of the weights of a block from |first| on, or of the rest. */
static double sum_from(const float *logits, uint32_t first, uint32_t vocab, float max, float scale)
{
    double sum = 0;
    if (vocab - first >= BLOCK) {
        return (double)sum_block(logits + first, max, scale);
    }
    for (uint32_t id = first; id < vocab; id++) {
        sum += (double)weigh(logits[id], max, scale);
    }
    return sum;
}

static double sum_all(const float *logits, uint32_t vocab, float max, float scale)
{
    double sum = 0;
    for (uint32_t first = 0; first < vocab; first += BLOCK) {
        sum += sum_from(logits, first, vocab, max, scale);
    }
    return sum;
}

/* The logarithm of the sum of all exponentials. */
static double log_sum(const float *logits, uint32_t vocab)
{
    uint32_t best = find_largest(logits, vocab);
    return best == vocab ? -HUGE_VAL
                         : (double)logits[best] + log(sum_all(logits, vocab, logits[best], 1));
}

float sampler_logprob(const float *logits, uint32_t vocab, uint32_t id)
{
    must(id < vocab);
    return (float)((double)logits[id] - log_sum(logits, vocab));
}

uint32_t sampler_rank(const float *logits, uint32_t vocab, uint32_t id)
{
    uint32_t rank = 1;
    must(id < vocab);
    for (uint32_t i = 0; i < vocab; i++) {
        rank += logits[i] > logits[id];
    }
    return rank;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u; /* the finalizer of SplitMix64 */
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* From 0 up to but not 1. */
static double uniform(uint64_t seed, uint64_t index)
{
    uint64_t bits = mix(mix(seed + 0x9e3779b97f4a7c15u) + (index + 1) * 0x9e3779b97f4a7c15u);
    return (double)(bits >> 11) * 0x1p-53;
}

/* The factor of differences of logits. Finite for the least temperature, too: the weight of the
 * largest logit would be NaN otherwise. */
static float scale_of(const struct sampler *sampler)
{
    double scale = 1 / sampler->options.temperature;
    return scale < (double)FLT_MAX ? (float)scale : FLT_MAX;
}

/* The weight of a token; the weight of the largest logit is 1. */
static double weight(const struct sampler *sampler, float logit, float max)
{
    return exp((double)(logit - max) / sampler->options.temperature);
}

/* All tokens may be chosen: no order is needed. */
static uint32_t choose_of_all(const struct sampler *sampler, const float *logits, float max,
                              double u)
{
    uint32_t vocab = sampler->vocab, last = vocab;
    float scale = scale_of(sampler);
    double wanted = u * sum_all(logits, vocab, max, scale), seen = 0;
    for (uint32_t first = 0; first < vocab; first += BLOCK) {
        double sum = sum_from(logits, first, vocab, max, scale);
        if (seen + sum <= wanted && vocab - first > BLOCK) {
            seen += sum;
            continue;
        }
        for (uint32_t id = first; id < vocab && id - first < BLOCK; id++) {
            double w = (double)weigh(logits[id], max, scale);
            seen += w;
            last = w > 0 ? id : last;
            if (seen > wanted && w > 0) {
                return id;
            }
        }
    }
    must(last < vocab); /* for want of the last bits of the sum: the last one with a weight */
    return last;
}

/* The weight that top_p is a share of: of all tokens, or of the first |most|. */
static double weigh_all(struct sampler *sampler, const float *logits, uint32_t count, uint32_t most,
                        float max)
{
    double all = 0;
    if (sampler->options.top_k == 0) {
        return sum_all(logits, sampler->vocab, max, scale_of(sampler));
    }
    for (uint32_t i = 0; i < most; i++) {
        all += weight(sampler, sampler_take(sampler, count, i).logit, max);
    }
    return all;
}

/* The number of tokens that may be chosen, which are the last ones of |count|, in order.
 * |*out_sum|: of their weights. */
static uint32_t take_candidates(struct sampler *sampler, const float *logits, uint32_t count,
                                float max, double *out_sum)
{
    const struct sampler_options *options = &sampler->options;
    uint32_t most = options->top_k && options->top_k < count ? options->top_k : count;
    bool has_share = options->top_p < 1;
    double all = has_share ? weigh_all(sampler, logits, count, most, max) : 0;
    uint32_t taken = 0;
    *out_sum = 0;
    while (taken < most && (taken == 0 || !has_share || *out_sum < options->top_p * all)) {
        struct sampler_entry entry = sampler_take(sampler, count, taken);
        double w = weight(sampler, entry.logit, max);
        if (taken > 0 && w < options->min_p) {
            break;
        }
        *out_sum += w;
        taken++;
    }
    return taken;
}

/* More than so many are taken from a heap of all. */
#define MOST_MAX 4096

/*
 * No token with a smaller logit is chosen. Tokens that have less than (1 - top_p) / vocab of all
 * weight have less than 1 - top_p together, so the others have top_p without them.
 */
static float least_logit(const struct sampler *sampler, double sum, float max)
{
    const struct sampler_options *options = &sampler->options;
    double temperature = options->temperature, least = -HUGE_VAL;
    if (options->top_p < 1 && options->top_k == 0) {
        least = log((1 - options->top_p) * sum / sampler->vocab) * temperature;
    }
    if (options->min_p > 0) {
        double other = log(options->min_p) * temperature;
        least = other > least ? other : least;
    }
    return (float)((double)max + least - 1e-3 * (1 + temperature)); /* rounding cannot matter */
}

/* ---- a share of all -------------------------------------------------------------------------- */

/*
 * With top_p alone there may be thousands of candidates, and their order matters only where the
 * share ends and where the choice is. So they are put in buckets by their logits, the largest ones
 * first, and only those two buckets are put in order.
 */
#define BUCKETS 1024

struct share {
    struct sampler *sampler;
    uint32_t count; /* of candidates, the first of sampler->entries */
    float max, scale, per_logit;
    double weights[BUCKETS];
};

static uint32_t bucket_of(const struct share *share, const struct sampler_entry *entry)
{
    float bucket = (share->max - entry->logit) * share->per_logit;
    return bucket < BUCKETS - 1 ? (uint32_t)bucket : BUCKETS - 1;
}

static void fill_buckets(struct share *share, const float *logits, float least)
{
    struct sampler *sampler = share->sampler;
    share->count = sampler_collect(sampler, logits, least);
    share->per_logit = BUCKETS / (share->max - least);
    memset(share->weights, 0, sizeof(share->weights));
    for (uint32_t i = 0; i < share->count; i++) {
        const struct sampler_entry *entry = &sampler->entries[i];
        share->weights[bucket_of(share, entry)] +=
            (double)weigh(entry->logit, share->max, share->scale);
    }
}

/* Makes a heap of the entries of |bucket|; their number. */
static uint32_t open_bucket(struct share *share, uint32_t bucket)
{
    struct sampler_entry *entries = share->sampler->entries;
    uint32_t front = 0;
    for (uint32_t i = 0; i < share->count; i++) {
        if (bucket_of(share, &entries[i]) == bucket) {
            struct sampler_entry other = entries[front];
            entries[front++] = entries[i];
            entries[i] = other;
        }
    }
    sampler_order(share->sampler, front);
    return front;
}

/* Takes entries of an open bucket of |count| until |*sum| is at least |wanted|, or more; the last
 * one. */
static uint32_t take_until(struct share *share, uint32_t count, double wanted, bool is_enough,
                           double *sum)
{
    uint32_t id = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct sampler_entry entry = sampler_take(share->sampler, count, i);
        id = entry.id;
        *sum += (double)weigh(entry.logit, share->max, share->scale);
        if (*sum > wanted || (is_enough && *sum >= wanted)) {
            break;
        }
    }
    must(id < share->sampler->vocab);
    return id;
}

/* The bucket in which the sum of all weights so far reaches |wanted|, or passes it; else the last
 * bucket up to |last| that has a weight; the first one has. |*out_before|: the sum before it. */
static uint32_t find_bucket(const struct share *share, uint32_t last, double wanted, bool is_enough,
                            double *out_before)
{
    uint32_t found = 0;
    double sum = 0;
    *out_before = 0;
    for (uint32_t bucket = 0; bucket <= last; bucket++) {
        if (share->weights[bucket] <= 0) {
            continue;
        }
        found = bucket;
        *out_before = sum;
        sum += share->weights[bucket];
        if (sum > wanted || (is_enough && sum >= wanted)) {
            break;
        }
    }
    return found;
}

static uint32_t choose_of_share(struct sampler *sampler, const float *logits, float max, double u)
{
    struct share share = {.sampler = sampler, .max = max, .scale = scale_of(sampler)};
    double all = sum_all(logits, sampler->vocab, max, share.scale), sum, before;
    fill_buckets(&share, logits, least_logit(sampler, all, max));
    uint32_t end = find_bucket(&share, BUCKETS - 1, sampler->options.top_p * all, true, &sum);
    take_until(&share, open_bucket(&share, end), sampler->options.top_p * all, true, &sum);
    double wanted = fmin(u * sum, nextafter(sum, 0)); /* the last one passes it */
    uint32_t bucket = find_bucket(&share, end, wanted, false, &before);
    return take_until(&share, open_bucket(&share, bucket), wanted, false, &before);
}

static uint32_t choose_of_candidates(struct sampler *sampler, const float *logits, float max,
                                     double u)
{
    uint32_t top_k = sampler->options.top_k;
    bool are_few = top_k > 0 && top_k <= MOST_MAX && top_k < sampler->vocab;
    double all = are_few ? 0 : sum_all(logits, sampler->vocab, max, scale_of(sampler));
    uint32_t count = are_few ? sampler_gather_most(sampler, logits, top_k)
                             : sampler_gather(sampler, logits, least_logit(sampler, all, max));
    double sum, seen = 0;
    must(count > 0);
    uint32_t taken = take_candidates(sampler, logits, count, max, &sum);
    for (uint32_t i = 0; i < taken; i++) {
        seen += weight(sampler, sampler->entries[count - 1 - i].logit, max);
        if (seen > u * sum) {
            return sampler->entries[count - 1 - i].id;
        }
    }
    return sampler->entries[count - taken].id;
}

static enum status choose(struct sampler *sampler, const float *logits, uint64_t index,
                          uint32_t *out_id, struct error *err)
{
    const struct sampler_options *options = &sampler->options;
    uint32_t best = find_largest(logits, sampler->vocab);
    if (best == sampler->vocab) {
        return error_set(err, ST_INVALID, "the model gives no token a finite logit");
    }
    bool takes_all = options->top_k == 0 && options->top_p >= 1 && options->min_p <= 0;
    if (options->temperature <= 0 || options->top_k == 1 || logits[best] == INFINITY) {
        *out_id = best;
        return ST_OK;
    }
    double u = uniform(options->seed, index);
    if (takes_all) {
        *out_id = choose_of_all(sampler, logits, logits[best], u);
        return ST_OK;
    }
    if (!sampler_has_entries(sampler)) {
        return error_no_memory(err, "sampling");
    }
    bool is_share = options->top_k == 0 && options->min_p <= 0 && options->top_p > 0;
    *out_id = is_share ? choose_of_share(sampler, logits, logits[best], u)
                       : choose_of_candidates(sampler, logits, logits[best], u);
    return ST_OK;
}

enum status sampler_choose(struct sampler *sampler, const float *logits, const uint64_t *allowed,
                           uint64_t index, uint32_t *out_id, struct error *err)
{
    const float *changed = change(sampler, logits, allowed);
    return changed ? choose(sampler, changed, index, out_id, err)
                   : error_no_memory(err, "sampling");
}

enum status sampler_mark_token(struct sampler *sampler, const float *logits, uint32_t id,
                               uint32_t top_count, struct sampler_mark *out, struct error *err)
{
    must(id < sampler->vocab && top_count <= SAMPLER_TOP_MAX);
    double sum = log_sum(logits, sampler->vocab);
    out->chosen = (struct sampler_choice){id, (float)((double)logits[id] - sum)};
    out->rank = out->offset = 0;
    out->top_count = 0;
    if (top_count == 0) {
        return ST_OK;
    }
    if (!sampler_has_entries(sampler)) {
        return error_no_memory(err, "sampling");
    }
    uint32_t most = top_count < sampler->vocab ? top_count : sampler->vocab;
    uint32_t count = sampler_gather_most(sampler, logits, most);
    out->top_count = count < top_count ? count : top_count;
    for (uint32_t i = 0; i < out->top_count; i++) {
        struct sampler_entry entry = sampler_take(sampler, count, i);
        out->top[i] = (struct sampler_choice){entry.id, (float)((double)entry.logit - sum)};
    }
    return ST_OK;
}

bool sampler_is_long(const struct sampler *sampler, bool needs_logprobs, uint32_t count)
{
    uint32_t top_k = sampler->options.top_k;
    bool has_few = sampler->options.temperature <= 0 || (top_k > 0 && top_k <= INLINE_TOP_MAX);
    bool needs_exp = !has_few || needs_logprobs || sampler->counts;
    return sampler->vocab > (needs_exp ? INLINE_EXP_MAX : INLINE_MAX) / count;
}
