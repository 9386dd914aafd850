/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/answer/boxes.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"

struct candidate {
    float score;
    uint32_t index;
    int64_t class;
};

/* ---- scores ---------------------------------------------------------------------------------- */

static float number_at(const struct boxes_table *table, size_t candidate, size_t feature)
{
    return table->at[candidate * table->of_candidate + feature * table->of_feature];
}

/* The class with the highest score. NaN never is the highest. */
static struct candidate best_of(const struct boxes_candidates *c, const struct boxes_rules *rules,
                                size_t index)
{
    struct candidate best = {.score = -INFINITY, .index = (uint32_t)index, .class = -1};
    for (size_t k = 0; k < c->class_count; k++) {
        float score = number_at(&c->scores, index, k);
        if (score > best.score && (int64_t)k != rules->background) {
            best.score = score;
            best.class = (int64_t)k;
        }
    }
    if (c->classes) {
        best.class = c->classes[index] == rules->background ? -1 : c->classes[index];
    }
    best.score *= c->objectness ? c->objectness[index * c->of_objectness] : 1;
    return best;
}

static bool place_of(const struct boxes_candidates *c, enum boxes_form form, size_t index,
                     struct box *out)
{
    float n[4];
    for (size_t i = 0; i < 4; i++) {
        n[i] = number_at(&c->places, index, i);
    }
    float half = form == BOXES_CENTER ? 0.5f : 0;
    bool is_size = form != BOXES_CORNERS;
    out->left = n[0] - (is_size ? half * n[2] : 0);
    out->top = n[1] - (is_size ? half * n[3] : 0);
    out->right = is_size ? out->left + n[2] : n[2];
    out->bottom = is_size ? out->top + n[3] : n[3];
    return isfinite(out->left) && isfinite(out->top) && isfinite(out->right) &&
           isfinite(out->bottom);
}

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The candidates that are good enough, the best first. */
static size_t gather(const struct boxes_candidates *c, const struct boxes_rules *rules,
                     struct candidate *out)
{
    size_t count = 0;
    struct box ignored;
    for (size_t i = 0; i < c->count; i++) {
        struct candidate best = best_of(c, rules, i);
        if (best.class >= 0 && (double)best.score >= rules->score_least &&
            place_of(c, rules->form, i, &ignored)) {
            out[count++] = best;
        }
    }
    qsort(out, count, sizeof(*out), compare);
    return count < BOXES_CANDIDATES_MAX ? count : BOXES_CANDIDATES_MAX;
}

/* ---- suppression ----------------------------------------------------------------------------- */

static float area_of(const struct box *b)
{
    return (b->right - b->left) * (b->bottom - b->top);
}

/* 0 / 0, of empty boxes, is no overlap. */
static bool overlap(const struct box *a, const struct box *b, double most)
{
    float left = a->left > b->left ? a->left : b->left;
    float top = a->top > b->top ? a->top : b->top;
    float right = a->right < b->right ? a->right : b->right;
    float bottom = a->bottom < b->bottom ? a->bottom : b->bottom;
    float both = (right > left ? right - left : 0) * (bottom > top ? bottom - top : 0);
    return (double)(both / (area_of(a) + area_of(b) - both)) > most;
}

static bool is_covered(const struct box *box, const struct box *kept, uint32_t count,
                       const struct boxes_rules *rules)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((rules->ignores_classes || kept[i].class == box->class) &&
            overlap(&kept[i], box, rules->overlap_most)) {
            return true;
        }
    }
    return false;
}

enum status boxes_find(const struct boxes_candidates *c, const struct boxes_rules *rules,
                       struct box **out_boxes, uint32_t *out_count, struct error *err)
{
    must(rules->count_max >= 1 && rules->count_max <= BOXES_COUNT_MAX && c->count <= UINT32_MAX);
    *out_boxes = NULL;
    *out_count = 0;
    struct candidate *sorted = calloc(c->count + 1, sizeof(*sorted));
    struct box *kept = calloc(rules->count_max, sizeof(*kept));
    if (!sorted || !kept) {
        free(sorted);
        free(kept);
        return error_set(err, ST_EXHAUSTED, "no memory for %zu boxes", c->count);
    }
    size_t count = gather(c, rules, sorted);
    for (size_t i = 0; i < count && *out_count < rules->count_max; i++) {
        struct box *box = &kept[*out_count];
        must(place_of(c, rules->form, sorted[i].index, box));
        box->score = sorted[i].score;
        box->class = sorted[i].class;
        *out_count += !is_covered(box, kept, *out_count, rules);
    }
    free(sorted);
    *out_boxes = kept;
    return ST_OK;
}
