/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/answer/boxes.h"

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

/* The class with the highest score, or the class that the model has chosen. NaN never is the
 * highest. */
static struct candidate best_of(const struct boxes_candidates *c, const struct boxes_rules *rules,
                                size_t index)
{
    struct candidate best = {.score = -INFINITY, .index = (uint32_t)index, .class = -1};
    if (c->classes) {
        best.score = number_at(&c->scores, index, 0);
        best.class = c->classes[index] == rules->background ? -1 : c->classes[index];
    }
    for (size_t k = 0; !c->classes && k < c->class_count; k++) {
        float score = number_at(&c->scores, index, k);
        if (score > best.score && (int64_t)k != rules->background) {
            best.score = score;
            best.class = (int64_t)k;
        }
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
        bool is_finite = !c->angles || isfinite(c->angles[i * c->of_angle]);
        if (best.class >= 0 && (double)best.score >= rules->score_least && is_finite &&
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

/* ---- turned boxes ---------------------------------------------------------------------------- */

#define EPSILON 1e-7

/* A box as a normal distribution: the centre, and the covariance [[a, c], [c, b]]. */
struct turned {
    double x, y, a, b, c;
    int64_t class;
};

static struct turned turn(const struct boxes_candidates *c, const struct boxes_rules *rules,
                          const struct candidate *candidate)
{
    struct box box;
    double angle = (double)c->angles[candidate->index * c->of_angle];
    double cosine = cos(angle), sine = sin(angle);
    must(place_of(c, rules->form, candidate->index, &box));
    double width = (double)box.right - (double)box.left;
    double height = (double)box.bottom - (double)box.top;
    double along = width * width / 12, across = height * height / 12;
    return (struct turned){
        .x = ((double)box.left + (double)box.right) / 2,
        .y = ((double)box.top + (double)box.bottom) / 2,
        .a = along * cosine * cosine + across * sine * sine,
        .b = along * sine * sine + across * cosine * cosine,
        .c = (along - across) * cosine * sine,
        .class = candidate->class,
    };
}

static double spread_of(const struct turned *t)
{
    return fmax(0, t->a * t->b - t->c * t->c);
}

/* 1 less the Hellinger distance, by way of the Bhattacharyya distance. */
static double overlap_turned(const struct turned *p, const struct turned *q)
{
    double a = p->a + q->a, b = p->b + q->b, c = p->c + q->c, x = p->x - q->x, y = p->y - q->y;
    double both = a * b - c * c;
    double apart =
        (a * y * y + b * x * x) / (both + EPSILON) / 4 - c * x * y / (both + EPSILON) / 2;
    double shape = log(both / (4 * sqrt(spread_of(p) * spread_of(q)) + EPSILON) + EPSILON) / 2;
    double distance = fmin(fmax(apart + shape, EPSILON), 100);
    return 1 - sqrt(1 - exp(-distance) + EPSILON);
}

static bool is_covered_turned(const struct turned *all, size_t index,
                              const struct boxes_rules *rules)
{
    for (size_t i = 0; i < index; i++) {
        if ((rules->ignores_classes || all[i].class == all[index].class) &&
            overlap_turned(&all[i], &all[index]) > rules->overlap_most) {
            return true;
        }
    }
    return false;
}

/* NULL: no memory. */
static struct turned *turn_all(const struct boxes_candidates *c, const struct boxes_rules *rules,
                               const struct candidate *sorted, size_t count)
{
    struct turned *all = calloc(count + 1, sizeof(*all));
    for (size_t i = 0; all && i < count; i++) {
        all[i] = turn(c, rules, &sorted[i]);
    }
    return all;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* |turned| may be NULL. */
static void keep_best(const struct boxes_candidates *c, const struct boxes_rules *rules,
                      const struct candidate *sorted, size_t count, const struct turned *turned,
                      struct box *kept, uint32_t *out_count)
{
    for (size_t i = 0; i < count && *out_count < rules->count_max; i++) {
        struct box *box = &kept[*out_count];
        must(place_of(c, rules->form, sorted[i].index, box));
        box->score = sorted[i].score;
        box->class = sorted[i].class;
        box->candidate = sorted[i].index;
        *out_count += turned ? !is_covered_turned(turned, i, rules)
                             : !is_covered(box, kept, *out_count, rules);
    }
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
        return error_no_memory(err, "%zu boxes", c->count);
    }
    size_t count = gather(c, rules, sorted);
    count = c->angles && count > BOXES_TURNED_MAX ? BOXES_TURNED_MAX : count;
    struct turned *turned = c->angles ? turn_all(c, rules, sorted, count) : NULL;
    bool has_memory = !c->angles || turned;
    if (has_memory) {
        keep_best(c, rules, sorted, count, turned, kept, out_count);
    }
    free(turned);
    free(sorted);
    *out_boxes = kept;
    return has_memory ? ST_OK : error_no_memory(err, "%zu boxes", count);
}
