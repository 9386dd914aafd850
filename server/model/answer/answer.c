/* SPDX-License-Identifier: MIT */
/* The results that answers are made from, and boxes. */
#include "config.h"

#include "server/model/answer/answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/oip_classes.h"
#include "protocol/tensor_text.h"
#include "server/model/answer/answer_priv.h"

#define BOX_NUMBERS 4

/* ---- reading tensors ------------------------------------------------------------------------- */

static bool is_whole(enum dtype dtype)
{
    return oip_is_score(dtype) && !dtype_is_float(dtype);
}

enum status answer_read_floats(const struct answer_tensor *tensor, size_t row, const float **out,
                               float **out_copy, struct error *err)
{
    size_t numel = answer_row_numel(tensor), bytes = dtype_bytes(tensor->dtype);
    const uint8_t *from = tensor->bytes.ptr + row * numel * bytes;
    *out_copy = NULL;
    if (tensor->dtype == DT_F32 && (uintptr_t)from % sizeof(float) == 0) {
        *out = (const float *)(const void *)from;
        return ST_OK;
    }
    *out = *out_copy = calloc(numel + 1, sizeof(**out_copy));
    if (!*out_copy) {
        return error_no_memory(err, "%zu numbers", numel);
    }
    for (size_t i = 0; i < numel; i++) {
        (*out_copy)[i] = (float)oip_score_at(tensor->dtype, from + i * bytes);
    }
    return ST_OK;
}

static int64_t whole_at(enum dtype dtype, const uint8_t *at)
{
    int64_t i64;
    uint64_t u64;
    if (dtype == DT_I64) {
        memcpy(&i64, at, sizeof(i64));
        return i64;
    }
    if (dtype == DT_U64) {
        memcpy(&u64, at, sizeof(u64));
        return u64 > INT64_MAX ? INT64_MAX : (int64_t)u64;
    }
    double number = oip_score_at(dtype, at); /* exact */
    return number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : -1;
}

enum status answer_read_ints(const struct answer_tensor *tensor, size_t row, int64_t **out,
                             struct error *err)
{
    size_t numel = answer_row_numel(tensor), bytes = dtype_bytes(tensor->dtype);
    const uint8_t *from = tensor->bytes.ptr + row * numel * bytes;
    *out = calloc(numel + 1, sizeof(**out));
    if (!*out) {
        return error_no_memory(err, "%zu numbers", numel);
    }
    for (size_t i = 0; i < numel; i++) {
        (*out)[i] = whole_at(tensor->dtype, from + i * bytes);
    }
    return ST_OK;
}

const struct image_place *answer_place(const struct answer_source *source, size_t row)
{
    size_t index = source->place_count == 1 ? 0 : row;
    return source->answer->picture != ANSWER_OF_MODEL && index < source->place_count
               ? &source->places[index]
               : NULL;
}

/* ---- boxes: where they lie ------------------------------------------------------------------- */

static bool are_candidates_last(const struct answer_form *answer, const struct shape *shape)
{
    return answer->order == ANSWER_BY_SHAPE ? shape->dims[2] > shape->dims[1]
                                            : answer->order == ANSWER_CANDIDATES_LAST;
}

/* Numbers of each candidate. */
static int64_t feature_count(const struct answer_form *answer, const struct shape *shape)
{
    return shape->dims[are_candidates_last(answer, shape) ? 1 : 2];
}

static int64_t candidate_count(const struct answer_form *answer, const struct shape *shape)
{
    return shape->dims[are_candidates_last(answer, shape) ? 2 : 1];
}

static bool is_apart(const struct answer_form *answer)
{
    return answer->scores != ANSWER_NO_INDEX;
}

bool answer_has_joined_scores(const struct answer_form *answer)
{
    return answer->kind == ANSWER_BOXES && !is_apart(answer);
}

/* How many of |scores| numbers are of classes. */
static size_t class_count(const struct answer_form *answer, size_t scores)
{
    return answer->box_classes ? answer->box_classes : scores;
}

static enum status refuse(struct error *err, const char *what, const char *expected,
                          const struct answer_tensor *got)
{
    char shape[SHAPE_TEXT_MAX];
    return error_set(err, ST_INVALID, "%s: expected %s, got %s%s", what, expected,
                     dtype_name(got->dtype), shape_print(&got->shape, shape));
}

/* How many numbers of each candidate follow the scores, as |source| says. */
static size_t count_rest(const struct answer_source *source)
{
    const struct answer_form *answer = source->answer;
    return answer->points                     ? (size_t)answer->points * answer->point_numbers
           : answer->masks != ANSWER_NO_INDEX ? (size_t)source->masks.shape.dims[1]
                                              : answer->has_angle;
}

/* What follows the scores. */
static enum status verify_rest(const struct answer_source *source, struct error *err)
{
    const struct answer_form *answer = source->answer;
    const struct shape *masks = &source->masks.shape;
    bool has_masks = answer->masks != ANSWER_NO_INDEX;
    if (has_masks && (masks->rank != 4 || !dtype_is_float(source->masks.dtype))) {
        return refuse(err, "masks", "floats [n, coefficients, height, width]", &source->masks);
    }
    size_t rest = count_rest(source);
    if (rest > 0 && !answer->box_classes) {
        return error_set(err, ST_INVALID,
                         "boxes: expected class_count, too: %zu numbers follow the "
                         "scores",
                         rest);
    }
    int64_t wanted =
        BOX_NUMBERS + answer->has_objectness + (int64_t)answer->box_classes + (int64_t)rest;
    int64_t got = feature_count(answer, &source->tensor.shape);
    return rest == 0 || got >= wanted
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "boxes: expected at least %" PRIi64 " numbers of a candidate, got "
                           "%" PRIi64,
                           wanted, got);
}

/* Each box with its scores. */
static enum status verify_joined(const struct answer_source *source, struct error *err)
{
    const struct answer_form *answer = source->answer;
    int64_t least = BOX_NUMBERS + answer->has_objectness + 1;
    return source->tensor.shape.rank == 3 && feature_count(answer, &source->tensor.shape) >= least
               ? verify_rest(source, err)
               : refuse(err, "boxes",
                        answer->has_objectness ? "[n, candidates, 5 + classes] or the last two "
                                                 "the other way round"
                                               : "[n, candidates, 4 + classes] or the last two "
                                                 "the other way round",
                        &source->tensor);
}

static enum status verify_apart(const struct answer_source *source, struct error *err)
{
    const struct shape *shape = &source->tensor.shape;
    const struct shape *scores = &source->scores.shape, *classes = &source->classes.shape;
    bool has_classes = source->answer->classes != ANSWER_NO_INDEX;
    if (shape->rank != 3 || shape->dims[2] != BOX_NUMBERS) {
        return refuse(err, "boxes", "[n, candidates, 4]", &source->tensor);
    }
    if (!dtype_is_float(source->scores.dtype) || scores->rank != (has_classes ? 2 : 3)) {
        return refuse(err, "scores",
                      has_classes ? "floats [n, candidates]" : "floats [n, candidates, classes]",
                      &source->scores);
    }
    return has_classes && (!is_whole(source->classes.dtype) || classes->rank != 2)
               ? refuse(err, "classes", "integers [n, candidates]", &source->classes)
               : ST_OK;
}

static enum status verify_boxes(const struct answer_source *source, struct error *err)
{
    if (!dtype_is_float(source->tensor.dtype)) {
        return refuse(err, "boxes", "floats", &source->tensor);
    }
    return is_apart(source->answer) ? verify_apart(source, err) : verify_joined(source, err);
}

/* ---- what a card says ------------------------------------------------------------------------ */

static enum status verify_map(const struct answer_source *source, struct error *err)
{
    const struct shape *shape = &source->tensor.shape;
    bool fits = shape->rank == 3 || (shape->rank == 4 && shape->dims[1] == 1);
    return fits && is_whole(source->tensor.dtype)
               ? ST_OK
               : refuse(err, "map",
                        "floats [n, classes, height, width], or integers [n, height, width]",
                        &source->tensor);
}

static enum status verify_text(const struct answer_source *source, struct error *err)
{
    if (source->tensor.shape.rank != 2 || !is_whole(source->tensor.dtype)) {
        return refuse(err, "text", "floats [n, steps, labels], or integers [n, steps]",
                      &source->tensor);
    }
    return source->label_count > source->answer->blank
               ? ST_OK
               : error_set(err, ST_INVALID, "text: expected labels, and label %u to be the blank",
                           source->answer->blank);
}

static enum status verify_classes(const struct answer_source *source, struct error *err)
{
    return source->tensor.shape.rank > 0 && oip_is_score(source->tensor.dtype)
               ? ST_OK
               : refuse(err, "classes", "scores of classes", &source->tensor);
}

enum status answer_verify(const struct answer_source *source, struct error *err)
{
    switch (source->answer->kind) {
    case ANSWER_TENSOR:
        return ST_OK;
    case ANSWER_CLASSES:
        return verify_classes(source, err);
    case ANSWER_BOXES:
        return verify_boxes(source, err);
    case ANSWER_MAP:
        return verify_map(source, err);
    case ANSWER_TEXT:
        return verify_text(source, err);
    }
    unreachable();
}

uint64_t answer_score_count(const struct answer_source *source)
{
    const struct answer_form *answer = source->answer;
    if (answer->kind != ANSWER_BOXES || answer->classes != ANSWER_NO_INDEX) {
        return 0;
    }
    return is_apart(answer) ? (uint64_t)source->scores.shape.dims[2]
                            : (uint64_t)(feature_count(answer, &source->tensor.shape) -
                                         BOX_NUMBERS - answer->has_objectness);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* A row's numbers, and the memory that is freed behind it. */
struct numbers {
    struct boxes_candidates candidates;
    struct answer_rest rest;
    float *places, *scores;
    int64_t *classes;
};

static void free_numbers(struct numbers *n)
{
    free(n->places);
    free(n->scores);
    free(n->classes);
}

/* Sizes that vary have the values of this call. */
static enum status check_counts(const struct answer_source *source, struct error *err)
{
    const struct shape *shape = &source->tensor.shape;
    bool fits = verify_boxes(source, err) == ST_OK;
    if (fits && is_apart(source->answer)) {
        const struct shape *scores = &source->scores.shape, *classes = &source->classes.shape;
        fits = scores->dims[0] == shape->dims[0] && scores->dims[1] == shape->dims[1] &&
               (source->answer->classes == ANSWER_NO_INDEX ||
                (classes->dims[0] == shape->dims[0] && classes->dims[1] == shape->dims[1]));
    }
    if (fits && source->answer->masks != ANSWER_NO_INDEX) {
        fits = source->masks.shape.dims[0] == shape->dims[0];
    }
    bool has_all = fits && answer_score_count(source) >= source->answer->box_classes;
    return has_all && candidate_count(source->answer, shape) <= UINT32_MAX
               ? ST_OK
               : error_set(err, ST_INVALID, "the results have different numbers of boxes");
}

static enum status read_joined(const struct answer_source *source, size_t row, struct numbers *n,
                               struct error *err)
{
    const struct answer_form *answer = source->answer;
    const struct shape *shape = &source->tensor.shape;
    bool is_last = are_candidates_last(answer, shape);
    size_t candidates = (size_t)candidate_count(answer, shape);
    size_t features = (size_t)feature_count(answer, shape);
    const float *at;
    TRY(answer_read_floats(&source->tensor, row, &at, &n->places, err));
    struct boxes_table table = {at, is_last ? 1 : features, is_last ? candidates : 1};
    size_t before = BOX_NUMBERS + answer->has_objectness;
    n->candidates = (struct boxes_candidates){
        .count = candidates,
        .class_count = class_count(answer, features - before),
        .places = table,
        .scores = {at + before * table.of_feature, table.of_candidate, table.of_feature},
        .objectness = answer->has_objectness ? at + BOX_NUMBERS * table.of_feature : NULL,
        .of_objectness = table.of_candidate,
    };
    n->rest = (struct answer_rest){
        .at = at + (before + n->candidates.class_count) * table.of_feature,
        .of_candidate = table.of_candidate,
        .of_feature = table.of_feature,
    };
    n->candidates.angles = answer->has_angle ? n->rest.at : NULL;
    n->candidates.of_angle = table.of_candidate;
    return ST_OK;
}

static enum status read_apart(const struct answer_source *source, size_t row, struct numbers *n,
                              struct error *err)
{
    bool has_classes = source->answer->classes != ANSWER_NO_INDEX;
    size_t scores_each = has_classes ? 1 : (size_t)source->scores.shape.dims[2];
    const float *places, *scores;
    TRY(answer_read_floats(&source->tensor, row, &places, &n->places, err));
    TRY(answer_read_floats(&source->scores, row, &scores, &n->scores, err));
    TRY(has_classes ? answer_read_ints(&source->classes, row, &n->classes, err) : ST_OK);
    n->candidates = (struct boxes_candidates){
        .count = (size_t)source->tensor.shape.dims[1],
        .class_count = class_count(source->answer, scores_each),
        .places = {places, BOX_NUMBERS, 1},
        .scores = {scores, scores_each, 1},
        .classes = n->classes,
    };
    return ST_OK;
}

/* From the model's form of a box to the card's, as far as the model's picture is known. */
static void place_box(const struct answer_placer *placer, struct box *box)
{
    double left = (double)box->left, top = (double)box->top;
    double right = (double)box->right, bottom = (double)box->bottom;
    answer_put_point(placer, true, &left, &top);
    answer_put_point(placer, true, &right, &bottom);
    box->left = (float)fmin(left, right);
    box->top = (float)fmin(top, bottom);
    box->right = (float)fmax(left, right);
    box->bottom = (float)fmax(top, bottom);
}

void answer_print_float(float number, struct buf *out)
{
    const struct shape scalar = {.rank = 0};
    tensor_text_print_nested(out, DT_F32, &scalar, &number, NUMBER_NAN_STRING);
}

void answer_print_class(const struct answer_source *source, int64_t class, struct buf *out)
{
    if (class >= 0 && class < source->label_count) {
        buf_add_str(out, "\"label\":");
        json_print_string(out, source->labels[class]);
        buf_add_char(out, ',');
    }
    buf_printf(out, "\"index\":%" PRId64, class);
}

static void print_box(const struct answer_source *source, const struct box *box, struct buf *out)
{
    const float sides[] = {box->left, box->top, box->right, box->bottom};
    answer_print_class(source, box->class, out);
    buf_add_str(out, ",\"score\":");
    answer_print_float(box->score, out);
    for (int i = 0; i < BOX_NUMBERS; i++) {
        buf_add_str(out, i ? "," : ",\"box\":[");
        answer_print_float(sides[i], out);
    }
    buf_add_char(out, ']');
}

static void print_corners(float corners[4][2], struct buf *out)
{
    for (int i = 0; i < 4; i++) {
        buf_add_str(out, i ? ",[" : ",\"corners\":[[");
        answer_print_float(corners[i][0], out);
        buf_add_char(out, ',');
        answer_print_float(corners[i][1], out);
        buf_add_char(out, ']');
    }
    buf_add_char(out, ']');
}

/* The boxes of a row that are left, and where they go. */
struct found {
    const struct answer_source *source;
    const struct numbers *numbers;
    struct answer_placer placer;
    struct answer_masks *masks; /* or NULL */
    struct box *boxes;
    uint32_t count;
};

static enum status print_found(const struct found *f, uint32_t index, const char **before,
                               struct buf *out, struct error *err)
{
    const struct answer_form *answer = f->source->answer;
    struct box box = f->boxes[index];
    float corners[4][2];
    if (answer->has_angle) {
        answer_turn(&f->placer, &f->numbers->rest, &f->boxes[index], corners, &box);
    } else {
        place_box(&f->placer, &box);
    }
    if (f->masks && !answer_masks_find(f->masks, &f->numbers->rest, &box)) {
        return ST_OK;
    }
    buf_add_str(out, *before);
    *before = ",";
    buf_add_char(out, '{');
    print_box(f->source, &box, out);
    if (answer->has_angle) {
        print_corners(corners, out);
    }
    answer_print_points(answer, &f->placer, &f->numbers->rest, box.candidate, out);
    enum status status = f->masks ? answer_masks_print(f->masks, out, err) : ST_OK;
    buf_add_char(out, '}');
    return status;
}

/* Masks are sized by all boxes of the row. */
static enum status open_masks(struct found *f, size_t row, struct error *err)
{
    return f->source->answer->masks != ANSWER_NO_INDEX && f->count > 0
               ? answer_masks_new(f->source, row, &f->placer, f->boxes, f->count, &f->masks, err)
               : ST_OK;
}

static enum status print_boxes(const struct answer_source *source, size_t row, struct buf *out,
                               struct error *err)
{
    struct numbers numbers = {0};
    struct found f = {.source = source, .numbers = &numbers};
    const char *before = "";
    TRY(check_counts(source, err));
    f.placer = answer_placer_of(source, row);
    enum status status = is_apart(source->answer) ? read_apart(source, row, &numbers, err)
                                                  : read_joined(source, row, &numbers, err);
    if (status == ST_OK) {
        status = boxes_find(&numbers.candidates, &source->answer->rules, &f.boxes, &f.count, err);
    }
    if (status == ST_OK) {
        status = open_masks(&f, row, err);
    }
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < f.count && status == ST_OK; i++) {
        status = print_found(&f, i, &before, out, err);
    }
    buf_add_char(out, ']');
    answer_masks_free(f.masks);
    free(f.boxes);
    free_numbers(&numbers);
    return status;
}

/* ---- answers --------------------------------------------------------------------------------- */

size_t answer_rows(const struct answer_source *source)
{
    return (size_t)source->tensor.shape.dims[0];
}

static enum status print(const struct answer_source *source, size_t row, enum answer_map_part part,
                         struct buf *out, struct error *err)
{
    must(row < answer_rows(source));
    switch (source->answer->kind) {
    case ANSWER_BOXES:
        return print_boxes(source, row, out, err);
    case ANSWER_MAP:
        return answer_print_map(source, row, part, out, err);
    case ANSWER_TEXT:
        return answer_print_text(source, row, part == ANSWER_MAP_FILE, out, err);
    case ANSWER_TENSOR:
    case ANSWER_CLASSES:
        break;
    }
    unreachable(); /* written by protocol/ */
}

enum status answer_print(const struct answer_source *source, size_t row, struct buf *out,
                         struct error *err)
{
    return print(source, row, ANSWER_MAP_ALL, out, err);
}

enum status answer_write(const struct answer_source *source, size_t row, struct buf *out,
                         struct error *err)
{
    return print(source, row, ANSWER_MAP_FILE, out, err);
}

enum status answer_describe(const struct answer_source *source, size_t row, struct buf *out,
                            struct error *err)
{
    return print(source, row, ANSWER_MAP_CLASSES, out, err);
}

size_t answer_work_bytes(const struct answer_source *source)
{
    if (source->answer->kind == ANSWER_MAP) {
        return answer_map_work_bytes(source);
    }
    /* Numbers become floats or int64 that are used at once; boxes that are left are few. */
    return sizeof(int64_t) *
               (answer_row_numel(&source->tensor) + answer_row_numel(&source->scores) +
                answer_row_numel(&source->classes)) +
           answer_mask_work_bytes(source);
}

size_t answer_cost(const struct answer_source *source)
{
    /* Candidates are compared with boxes, and pixels are compressed: both take longer than numbers
     * take to print. A map may have the size of the picture that was sent. */
    size_t bytes = source->tensor.bytes.len + source->scores.bytes.len;
    for (size_t row = 0; source->answer->kind == ANSWER_MAP && row < answer_rows(source); row++) {
        const struct image_place *place = answer_place(source, row);
        bytes += place ? (size_t)place->height * place->width : 0;
    }
    bytes += answer_mask_work_bytes(source);
    return source->answer->kind == ANSWER_TEXT ? bytes : bytes + (1u << 20);
}
