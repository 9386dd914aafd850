/* SPDX-License-Identifier: MIT */
/*
 * Detections: from candidates, each a box with a score for each class, to the boxes that are left
 * when weak boxes, and further boxes around the same thing, are dropped (non-maximum suppression).
 *
 *     1. A candidate has the class with its highest score; if scores are equal, the first of them.
 *     2. Candidates whose score is below |score_least| or is NaN are dropped, and so are boxes with
 *        a number that is not finite. The BOXES_CANDIDATES_MAX best of the rest go on.
 *     3. Boxes are taken by falling score, equal ones in the order of their candidates. A box is
 *        kept, unless a kept box of the same class (with |ignores_classes|: of any class) overlaps
 *        it by more than |overlap_most|. The overlap is the area that both cover, divided by the
 *        area that at least one covers (IoU), as in torchvision.ops.nms and batched_nms.
 *     4. That ends with |count_max| boxes.
 *
 * Step 3 compares each candidate with at most BOXES_COUNT_MAX boxes. Turned boxes are compared as
 * Ultralytics does it: by the overlap of two normal distributions (probiou, arXiv:2106.06072), and
 * a box goes if any better candidate of its class overlaps it by more, also one that goes itself;
 * of them only the BOXES_TURNED_MAX best go on. Any thread, but not the loop.
 */
#ifndef PTED_SERVER_MODEL_ANSWER_BOXES_H
#define PTED_SERVER_MODEL_ANSWER_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define BOXES_COUNT_MAX 1000
#define BOXES_CANDIDATES_MAX 30000
#define BOXES_TURNED_MAX 3000

/* The meaning of the four numbers of a box. */
enum boxes_form {
    BOXES_CENTER,  /* centre x, y, width, height */
    BOXES_CORNERS, /* left, top, right, bottom */
    BOXES_SIZE,    /* left, top, width, height */
};

struct boxes_rules {
    enum boxes_form form;
    double score_least, overlap_most;
    uint32_t count_max; /* 1 to BOXES_COUNT_MAX */
    bool ignores_classes;
    int64_t background; /* a class that is no thing, or -1 */
};

/* Floats [count, features] by strides in elements, so that either dim may come first. */
struct boxes_table {
    const float *at;
    size_t of_candidate, of_feature;
};

/* The candidates of one picture; borrowed. */
struct boxes_candidates {
    size_t count, class_count;
    struct boxes_table places; /* 4 features */
    struct boxes_table scores; /* |class_count| features; without |classes|, at least 1 */
    const float *objectness;   /* a factor for the scores of each candidate, or NULL */
    size_t of_objectness;      /* its stride */
    const int64_t *classes;    /* the class of each; |scores| has one feature; or NULL */
    const float *angles;       /* of each, in radians, around its centre; or NULL */
    size_t of_angle;           /* the stride */
};

struct box {
    float left, top, right, bottom, score; /* before it is turned */
    int64_t class;
    uint32_t candidate; /* its index */
};

/* Finds the boxes that are left, |*out_count| of them, the best one first; free() takes them. NULL
 * if there are none. ST_EXHAUSTED. */
MUST_CHECK enum status boxes_find(const struct boxes_candidates *candidates,
                                  const struct boxes_rules *rules, struct box **out_boxes,
                                  uint32_t *out_count, struct error *err);

#endif
