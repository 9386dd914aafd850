/* SPDX-License-Identifier: MIT */
/* A card's members about pictures, sound and texts: read, and compared with the program. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"

#define RATE_MIN 1000
#define RATE_MAX 768000
#define RATE_DEFAULT 16000
#define SECONDS_MAX 86400

/* Where a member is read from. */
struct source {
    struct card *card;
    const struct document *in;
    const char *path;
};

static const char *const words[MEDIUM_KINDS] = {
    [MEDIUM_NONE] = "", [MEDIUM_IMAGE] = "image", [MEDIUM_SOUND] = "sound", [MEDIUM_TEXT] = "text"};

const char *card_medium_word(enum medium_kind kind)
{
    return words[kind];
}

bool card_find_medium(const char *word, enum medium_kind *out)
{
    for (int kind = MEDIUM_IMAGE; kind < MEDIUM_KINDS; kind++) {
        if (strcmp(word, words[kind]) == 0) {
            *out = (enum medium_kind)kind;
            return true;
        }
    }
    return false;
}

const char *card_path_beside(struct card *card, const char *document_path, const char *path)
{
    const char *slash = strrchr(document_path, '/');
    size_t folder = *path == '/' || !slash ? 0 : (size_t)(slash + 1 - document_path);
    size_t len = strlen(path);
    char *both = arena_alloc(&card->arena, folder + len + 1);
    if (both) {
        memcpy(both, document_path, folder);
        memcpy(both + folder, path, len + 1);
    }
    return both;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The index of a word among |names|, which "|" separates in |expected|. */
static enum status read_word(const struct source *s, const struct cJSON *value,
                             const char *const *names, unsigned count, const char *expected,
                             unsigned *out, struct error *err)
{
    const char *text;
    TRY(document_text(s->in, value, &text, err));
    for (unsigned i = 0; i < count; i++) {
        if (names[i] && strcmp(text, names[i]) == 0) {
            *out = i;
            return ST_OK;
        }
    }
    return document_fail(s->in, value, err, ST_INVALID, "expected %s", expected);
}

static enum status read_side(const struct source *s, const struct cJSON *value, uint32_t *out,
                             struct error *err)
{
    uint64_t number;
    TRY(document_u64_from(s->in, value, 1, IMAGE_SIDE_MAX, &number, err));
    *out = (uint32_t)number;
    return ST_OK;
}

/* A number for both sides, or [height, width]. */
static enum status read_sides(const struct source *s, const struct cJSON *value, uint32_t out[2],
                              bool *out_is_pair, struct error *err)
{
    uint32_t count = 0;
    *out_is_pair = document_type(value) == JSON_ARRAY;
    if (!*out_is_pair) {
        TRY(read_side(s, value, &out[0], err));
        out[1] = out[0];
        return ST_OK;
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at), count++) {
        if (count < 2) {
            TRY(read_side(s, at, &out[count], err));
        }
    }
    return count == 2 ? ST_OK
                      : document_fail(s->in, value, err, ST_INVALID,
                                      "expected a number, or [height, width]");
}

static enum status read_fill(const struct source *s, const struct cJSON *value, uint8_t out[3],
                             struct error *err)
{
    bool is_list = document_type(value) == JSON_ARRAY;
    const struct cJSON *at = is_list ? document_first(value) : value;
    uint32_t count = 0;
    for (; at && count < 3; at = is_list ? document_next(at) : NULL, count++) {
        uint64_t number;
        TRY(document_u64(s->in, at, UINT8_MAX, &number, err));
        out[count] = (uint8_t)number;
    }
    if (is_list && (count != 3 || at)) {
        return document_fail(s->in, value, err, ST_INVALID, "expected 0 to 255, or three of them");
    }
    if (!is_list) {
        out[1] = out[2] = out[0];
    }
    return ST_OK;
}

/* A number for all channels, or one for each. */
static enum status read_channels(const struct source *s, const struct cJSON *value,
                                 double out[RT_PIXEL_CHANNELS_MAX], uint32_t *out_count,
                                 struct error *err)
{
    bool is_list = document_type(value) == JSON_ARRAY;
    const struct cJSON *at = is_list ? document_first(value) : value;
    *out_count = 0;
    for (; at && *out_count < RT_PIXEL_CHANNELS_MAX; at = is_list ? document_next(at) : NULL) {
        TRY(document_f64(s->in, at, &out[(*out_count)++], err));
    }
    return *out_count > 0 && !at
               ? ST_OK
               : document_fail(s->in, value, err, ST_INVALID,
                               "expected a number, or 1 to %d of them", RT_PIXEL_CHANNELS_MAX);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum status read_std(const struct source *s, const struct cJSON *value,
                            struct card_image *image, struct error *err)
{
    TRY(read_channels(s, value, image->std, &image->std_count, err));
    for (uint32_t i = 0; i < image->std_count; i++) {
        if (image->std[i] == 0) {
            return document_fail(s->in, value, err, ST_INVALID, "expected another number than 0");
        }
    }
    return ST_OK;
}

static const char *const fit_words[] = {[IMAGE_SHORTER] = "shorter",
                                        [IMAGE_STRETCH] = "stretch",
                                        [IMAGE_INSIDE] = "inside",
                                        [IMAGE_LETTERBOX] = "letterbox"};

const char *card_fit_word(enum image_fit fit)
{
    return fit_words[fit];
}

static enum status read_choice(const struct source *s, const struct cJSON *member,
                               struct card_image *image, bool *out_is_read, struct error *err)
{
    static const char *const filters[] = {"nearest", "box",     "bilinear",
                                          "bicubic", "lanczos", "linear"};
    static const char *const colors[] = {NULL, "rgb", "bgr", "gray"};
    static const char *const layouts[] = {NULL, "nchw", "nhwc"};
    static const char *const roundings[] = {"even", "down"};
    unsigned index = 0;
    *out_is_read = true;
    if (document_is(member, "fit")) {
        TRY(read_word(s, member, fit_words, 4, "shorter, stretch, inside or letterbox", &index,
                      err));
        image->fit = (enum image_fit)index;
    } else if (document_is(member, "interpolation")) {
        TRY(read_word(s, member, filters, 6, "nearest, box, bilinear, bicubic, lanczos or linear",
                      &index, err));
        image->filter = (enum image_filter)index;
    } else if (document_is(member, "colors")) {
        TRY(read_word(s, member, colors, 4, "rgb, bgr or gray", &index, err));
        image->colors = (enum card_colors)index;
    } else if (document_is(member, "layout")) {
        TRY(read_word(s, member, layouts, 3, "nchw or nhwc", &index, err));
        image->layout = (enum card_layout)index;
    } else if (document_is(member, "crop_rounding")) {
        TRY(read_word(s, member, roundings, 2, "even or down", &index, err));
        image->crop_rounds_down = index == 1;
    } else {
        *out_is_read = false;
    }
    return ST_OK;
}

static enum status read_image_member(const struct source *s, const struct cJSON *member,
                                     struct card_image *image, struct error *err)
{
    bool is_read;
    TRY(read_choice(s, member, image, &is_read, err));
    if (is_read) {
        return ST_OK;
    }
    if (document_is(member, "resize")) {
        return read_sides(s, member, image->resize, &image->is_resized_to_pair, err);
    }
    if (document_is(member, "crop")) {
        return read_sides(s, member, image->crop, &is_read, err);
    }
    if (document_is(member, "fill")) {
        return read_fill(s, member, image->fill, err);
    }
    if (document_is(member, "scale")) {
        image->has_scale = true;
        return document_f64(s->in, member, &image->scale, err);
    }
    if (document_is(member, "mean")) {
        return read_channels(s, member, image->mean, &image->mean_count, err);
    }
    if (document_is(member, "std")) {
        return read_std(s, member, image, err);
    }
    if (document_is(member, "draft")) {
        return document_bool(s->in, member, &image->is_draft, err);
    }
    return document_refuse_member(s->in, member,
                                  "resize, fit, interpolation, crop, crop_rounding, fill, colors, "
                                  "scale, mean, std, layout or draft",
                                  err);
}

static enum status read_image(const struct source *s, const struct cJSON *value,
                              struct card_image *image, struct error *err)
{
    bool has_fit = document_find(value, "fit") != NULL;
    *image = (struct card_image){.filter = IMAGE_BILINEAR};
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_image_member(s, at, image, err));
    }
    if (!has_fit && image->is_resized_to_pair) {
        image->fit = IMAGE_STRETCH;
    }
    if (has_fit && !image->resize[0]) {
        return document_fail(s->in, document_find(value, "fit"), err, ST_INVALID,
                             "it says how to resize, but \"resize\" is missing");
    }
    if (image->fit == IMAGE_SHORTER && image->is_resized_to_pair) {
        return document_fail(s->in, document_find(value, "fit"), err, ST_INVALID,
                             "shorter is for \"resize\" with one number");
    }
    return ST_OK;
}

/* ---- sound, texts ---------------------------------------------------------------------------- */

static enum status read_sound_member(const struct source *s, const struct cJSON *member,
                                     struct card_sound *sound, struct error *err)
{
    static const char *const features[] = {"samples", "log_mel"};
    if (document_is(member, "rate")) {
        uint64_t rate;
        TRY(document_u64_from(s->in, member, RATE_MIN, RATE_MAX, &rate, err));
        sound->rate = (uint32_t)rate;
        return ST_OK;
    }
    if (document_is(member, "features")) {
        unsigned index = 0;
        TRY(read_word(s, member, features, 2, "samples or log_mel", &index, err));
        sound->is_log_mel = index == 1;
        return ST_OK;
    }
    if (document_is(member, "seconds")) {
        TRY(document_f64(s->in, member, &sound->seconds, err));
        return sound->seconds > 0 && sound->seconds <= SECONDS_MAX
                   ? ST_OK
                   : document_fail(s->in, member, err, ST_INVALID, "expected more than 0, up to %d",
                                   SECONDS_MAX);
    }
    return document_refuse_member(s->in, member, "rate, features or seconds", err);
}

static enum status read_sound(const struct source *s, const struct cJSON *value,
                              struct card_sound *sound, struct error *err)
{
    *sound = (struct card_sound){.rate = RATE_DEFAULT};
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_sound_member(s, at, sound, err));
    }
    return ST_OK;
}

static enum status keep_text(const struct source *s, const struct cJSON *value, bool is_path,
                             const char **out, struct error *err)
{
    const char *text;
    TRY(document_text_filled(s->in, value, &text, err));
    *out = is_path ? card_path_beside(s->card, s->path, text)
                   : arena_strdup(&s->card->arena, text, strlen(text));
    return *out ? ST_OK : arena_fail(&s->card->arena, "the card", err);
}

static enum status read_text_member(const struct source *s, const struct cJSON *member,
                                    struct card_text *text, struct error *err)
{
    if (document_is(member, "tokenizer")) {
        return keep_text(s, member, true, &text->tokenizer, err);
    }
    if (document_is(member, "max_tokens")) {
        uint64_t count;
        TRY(document_u64_from(s->in, member, 1, CARD_TOKENS_MAX, &count, err));
        text->max_tokens = (uint32_t)count;
        return ST_OK;
    }
    if (document_is(member, "pad")) {
        return document_bool(s->in, member, &text->is_padded, err);
    }
    if (document_is(member, "mask")) {
        return keep_text(s, member, false, &text->mask, err);
    }
    if (document_is(member, "types")) {
        return keep_text(s, member, false, &text->types, err);
    }
    return document_refuse_member(s->in, member, "tokenizer, max_tokens, pad, mask or types", err);
}

static enum status read_words(const struct source *s, const struct cJSON *value,
                              struct card_text *text, struct error *err)
{
    *text = (struct card_text){.is_padded = false};
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_text_member(s, at, text, err));
    }
    return ST_OK;
}

enum status card_read_media(struct card *card, const struct document *in, const char *path,
                            const struct cJSON *value, enum medium_kind kind,
                            struct card_media *out, struct error *err)
{
    const struct source s = {.card = card, .in = in, .path = path};
    TRY(document_need(in, value, JSON_OBJECT, err));
    if (out->kind != MEDIUM_NONE) {
        return document_fail(in, value, err, ST_INVALID,
                             "expected one of image, sound and text, got %s, too",
                             words[out->kind]);
    }
    *out =
        (struct card_media){.kind = kind, .place = {.document = in, .value = value, .path = path}};
    return kind == MEDIUM_IMAGE   ? read_image(&s, value, &out->image, err)
           : kind == MEDIUM_SOUND ? read_sound(&s, value, &out->sound, err)
                                  : read_words(&s, value, &out->text, err);
}

/* ---- the program ----------------------------------------------------------------------------- */

static enum status refuse(const struct card_io *io, const struct rt_io *is, const char *expected,
                          struct error *err)
{
    char shape[SHAPE_TEXT_MAX];
    if (is->kind != RT_IO_TENSOR) {
        return card_fail(&io->media.place, err, ST_INVALID, "expected %s, '%s' is no tensor",
                         expected, is->name);
    }
    return card_fail(&io->media.place, err, ST_INVALID, "expected %s, '%s' is %s%.80s", expected,
                     is->name, dtype_name(is->dtype), shape_print(&is->shape, shape));
}

/* The shorter side must be one that the program takes: each picture has two sides as long or
 * longer. */
static enum status check_varying(const struct rt_io *is, const struct card_io *io,
                                 struct error *err)
{
    const struct card_image *image = &io->media.image;
    const int64_t *dims = is->shape.dims;
    return image->resize[0] <= dims[1] && image->resize[0] <= dims[2]
               ? ST_OK
               : card_fail(&io->media.place, err, ST_INVALID,
                           "resize: the shorter side becomes %u, the program takes at most "
                           "[%lld, %lld]",
                           image->resize[0], (long long)dims[1], (long long)dims[2]);
}

/* Without a crop, a shorter side of another length than the program's fits no picture. */
static enum status check_shorter(const struct rt_io *is, const struct card_io *io,
                                 struct error *err)
{
    const struct card_image *image = &io->media.image;
    const int64_t *dims = is->shape.dims;
    bool is_open = image->resize[0] && image->fit == IMAGE_SHORTER && !image->crop[0];
    if (is_open && (image->has_any_height || image->has_any_width)) {
        return check_varying(is, io, err);
    }
    return !is_open || image->resize[0] == (dims[1] < dims[2] ? dims[1] : dims[2])
               ? ST_OK
               : card_fail(&io->media.place, err, ST_INVALID,
                           "resize: the shorter side becomes %u, the program takes [%lld, %lld]; "
                           "expected a crop, too",
                           image->resize[0], (long long)dims[1], (long long)dims[2]);
}

/* The pixels that the method takes now: card_adapt() has put its steps in front of it, or it takes
 * bytes itself. */
static enum status apply_image(const struct rt_io *is, struct card_io *io, struct error *err)
{
    struct card_image *image = &io->media.image;
    const int64_t *dims = is->shape.dims;
    bool is_pixels = is->kind == RT_IO_TENSOR && is->dtype == DT_U8 && is->shape.rank == 4 &&
                     (dims[3] == 1 || dims[3] == 3);
    if (!is_pixels) {
        return refuse(io, is, "pixels of 1 or 3 channels", err);
    }
    image->channels = (uint32_t)dims[3];
    if (image->colors == CARD_COLORS_UNSAID) {
        image->colors = image->channels == 1 ? CARD_GRAY : CARD_RGB;
    }
    if ((image->colors == CARD_GRAY) != (image->channels == 1)) {
        return card_fail(&io->media.place, err, ST_INVALID, "colors: the program has %u channel%s",
                         image->channels, image->channels == 1 ? "" : "s");
    }
    image->has_any_height = rt_io_is_dynamic(is, 1);
    image->has_any_width = rt_io_is_dynamic(is, 2);
    TRY(check_shorter(is, io, err));
    bool is_pair = image->resize[0] && image->fit != IMAGE_SHORTER;
    image->height = image->crop[0] ? image->crop[0] : is_pair ? image->resize[0] : 0;
    image->width = image->crop[0] ? image->crop[1] : is_pair ? image->resize[1] : 0;
    image->height = image->height ? image->height : (uint32_t)dims[1];
    image->width = image->width ? image->width : (uint32_t)dims[2];
    return image->height == dims[1] && image->width == dims[2]
               ? ST_OK
               : card_fail(&io->media.place, err, ST_INVALID,
                           "the pictures are [%u, %u], the program takes [%lld, %lld]",
                           image->height, image->width, (long long)dims[1], (long long)dims[2]);
}

bool card_find_doubt(const struct card_io *io, struct error *out)
{
    const struct card_image *image = &io->media.image;
    bool is_shorter = image->resize[0] && image->fit == IMAGE_SHORTER;
    if (io->media.kind != MEDIUM_IMAGE) {
        return false;
    }
    bool has_any = image->has_any_height && image->has_any_width;
    if (!image->crop[0] && (!image->resize[0] || is_shorter) && !has_any) {
        card_fail(&io->media.place, out, ST_INVALID,
                  "only pictures %s %u x %u are taken; with a resize to [%u, %u], or with a "
                  "crop, all are",
                  image->resize[0] ? "with the proportions of" : "of", image->height, image->width,
                  image->height, image->width);
        return true;
    }
    uint32_t side = image->crop[0] < image->crop[1] ? image->crop[0] : image->crop[1];
    if (is_shorter && image->resize[0] < side) {
        card_fail(&io->media.place, out, ST_INVALID,
                  "the crop is larger than the shorter side, which becomes %u: the rest is filled",
                  image->resize[0]);
        return true;
    }
    return false;
}

/* [n, samples], with dims of 1 in between; [n, bands, frames]. */
static enum status apply_sound(const struct rt_io *is, struct card_io *io, struct error *err)
{
    const struct card_sound *sound = &io->media.sound;
    uint8_t rank = is->shape.rank;
    bool fits = is->kind == RT_IO_TENSOR && is->dtype == DT_F32 && rank >= 1 &&
                (!sound->is_log_mel || rank == 2 || rank == 3);
    for (int dim = 1; fits && !sound->is_log_mel && dim < rank - 1; dim++) {
        fits = is->shape.dims[dim] == 1;
    }
    if (!fits) {
        return refuse(io, is,
                      sound->is_log_mel ? "float32[n, bands, frames]" : "float32[n, samples]", err);
    }
    if (sound->is_log_mel && sound->rate != RATE_DEFAULT) {
        return card_fail(&io->media.place, err, ST_INVALID, "rate: expected %d for log_mel",
                         RATE_DEFAULT);
    }
    double per_second = sound->is_log_mel ? 100 : sound->rate;
    int64_t most = is->shape.dims[rank - 1];
    if (sound->seconds * per_second > (double)most) {
        return card_fail(&io->media.place, err, ST_INVALID,
                         "seconds: the program takes at most %lld %s, %g s have %.0f",
                         (long long)most, sound->is_log_mel ? "frames" : "samples", sound->seconds,
                         sound->seconds * per_second);
    }
    return ST_OK;
}

static bool takes_ids(const struct rt_io *is, bool is_mask)
{
    bool is_integer = is->dtype == DT_I64 || is->dtype == DT_I32;
    bool is_flag = is_mask && (is->dtype == DT_BOOL || is->dtype == DT_F32 || is->dtype == DT_U8);
    return is->kind == RT_IO_TENSOR && (is_integer || is_flag) && is->shape.rank >= 1 &&
           is->shape.rank <= 2;
}

/* The input |name|, which is made with the ids; itself, if there is no name. */
static enum status find_beside(const struct rt_method *method, const struct card_io *io,
                               const char *name, bool is_mask, uint32_t *out, struct error *err)
{
    const struct rt_io *ids = rt_method_input(method, io->index);
    struct card_io other = {.present = name, .place = io->media.place};
    *out = io->index;
    if (!name) {
        return ST_OK;
    }
    TRY(card_find_index(method, RT_INPUT, &other, err));
    const struct rt_io *is = rt_method_input(method, other.index);
    if (other.index == io->index || !takes_ids(is, is_mask) ||
        !shape_equal(&is->shape, &ids->shape) || is->dynamic_dims != ids->dynamic_dims) {
        return card_fail(&io->media.place, err, ST_INVALID,
                         "'%s' is no other input of the shape of '%s'", is->name, ids->name);
    }
    *out = other.index;
    return ST_OK;
}

static enum status apply_text(const struct rt_method *method, const struct rt_io *is,
                              struct card_io *io, struct error *err)
{
    struct card_text *text = &io->media.text;
    if (!takes_ids(is, false)) {
        return refuse(io, is, "int64[n, tokens]", err);
    }
    int64_t most = is->shape.dims[is->shape.rank - 1];
    if (text->max_tokens > most) {
        return card_fail(&io->media.place, err, ST_INVALID,
                         "max_tokens: the program takes at most %lld", (long long)most);
    }
    TRY(find_beside(method, io, text->mask, true, &text->mask_index, err));
    TRY(find_beside(method, io, text->types, false, &text->types_index, err));
    return text->mask && text->mask_index == text->types_index
               ? card_fail(&io->media.place, err, ST_INVALID, "mask and types are one input")
               : ST_OK;
}

enum status card_apply_media(const struct rt_method *method, struct card_io *io, struct error *err)
{
    if (io->media.kind == MEDIUM_NONE || rt_method_failure(method)) {
        return ST_OK;
    }
    must(io->index < rt_method_input_count(method));
    const struct rt_io *is = rt_method_input(method, io->index);
    return io->media.kind == MEDIUM_IMAGE   ? apply_image(is, io, err)
           : io->media.kind == MEDIUM_SOUND ? apply_sound(is, io, err)
                                            : apply_text(method, is, io, err);
}
