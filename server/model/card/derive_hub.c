/* SPDX-License-Identifier: MIT */
/*
 * Files of Hugging Face's transformers: preprocessor_config.json, or processor_config.json, in
 * which transformers 5 nests the same ("image_processor"), and config.json.
 *
 * What the numbers of a preprocessor mean is said by its class alone, such as whether a "size" of
 * one number is a square or the shorter side. So each class has a row here, as in
 * transformers 5.24; a class without a row is left out. A file leaves out members that have the
 * class's defaults.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/program/adapt.h"
#include "runtime/program/program.h"
#include "server/model/card/card.h"
#include "server/model/card/derive_priv.h"

#define CHANNELS 3

/* What a class does beyond resizing and cropping. */
enum family_kind {
    PLAIN,
    CONVNEXT, /* below 384: the shorter side is divided by crop_pct, then cropped; else a square */
    LEVIT,    /* the shorter side is 256 / 224 of "size" */
    POOLFORMER, /* sides are divided by crop_pct */
    EFFICIENT,  /* "include_top": std divides twice */
    FLIPPED,    /* blue comes first, unless "do_flip_channel_order" is false */
};

enum statistics { NONE, HALF, IMAGENET, CLIP };

static const struct {
    double mean[CHANNELS], std[CHANNELS];
} statistics[] = {
    [NONE] = {{0, 0, 0}, {1, 1, 1}},
    [HALF] = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
    [IMAGENET] = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    [CLIP] = {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
};

enum resample { NEAREST, LANCZOS, BILINEAR, BICUBIC, BOX, RESAMPLES };

static const char *const resamples[RESAMPLES] = {"nearest", "lanczos", "bilinear", "bicubic",
                                                 "box"};

/* The class XImageProcessor, with what it takes where the file says nothing. */
struct family {
    const char *name; /* X */
    enum family_kind kind;
    bool is_square; /* a "size" of one number */
    uint32_t side;  /* of "size" without the file */
    uint32_t crop;  /* the side of "crop_size" without the file; 0: not cropped */
    enum resample resample;
    enum statistics statistics; /* NONE: not normalized */
};

static const struct family families[] = {
    {"Beit", PLAIN, true, 224, 0, BICUBIC, HALF},
    {"Bit", PLAIN, false, 224, 224, BICUBIC, CLIP},
    {"Blip", PLAIN, true, 384, 0, BICUBIC, CLIP},
    {"ChineseCLIP", PLAIN, false, 224, 224, BICUBIC, CLIP},
    {"CLIP", PLAIN, false, 224, 224, BICUBIC, CLIP},
    {"ConvNext", CONVNEXT, false, 384, 0, BICUBIC, HALF},
    {"DeiT", PLAIN, true, 256, 224, BICUBIC, HALF},
    {"EfficientNet", EFFICIENT, true, 346, 0, BICUBIC, HALF},
    {"Levit", LEVIT, false, 224, 224, BICUBIC, IMAGENET},
    {"MobileNetV1", PLAIN, false, 256, 224, BILINEAR, HALF},
    {"MobileNetV2", PLAIN, false, 256, 224, BILINEAR, HALF},
    {"MobileViT", FLIPPED, false, 224, 256, BICUBIC, NONE},
    {"PoolFormer", POOLFORMER, false, 224, 224, BICUBIC, IMAGENET},
    {"Pvt", PLAIN, true, 224, 0, BICUBIC, IMAGENET},
    {"RTDetr", PLAIN, false, 640, 0, BILINEAR, NONE},
    {"Segformer", PLAIN, true, 512, 0, BILINEAR, IMAGENET},
    {"Siglip", PLAIN, false, 224, 0, BICUBIC, HALF},
    {"ViT", PLAIN, true, 224, 0, BILINEAR, HALF},
};

struct hub {
    struct derive *derive;
    const struct document *in; /* of the preprocessor */
    const struct cJSON *said;  /* its object */
    const char *file;          /* its name */
    const struct family *family;
    const struct rt_method *method;
};

/* A "size" or "crop_size". */
struct sides {
    uint32_t height, width; /* 0: none */
    bool is_shorter;        /* |height| is the shorter side */
};

/* ---- the class ------------------------------------------------------------------------------- */

/* Is |text|, such as "ViTImageProcessorFast", the class |name|? */
static bool is_class(const char *text, const char *name)
{
    static const char *const ends[] = {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil",
                                       "FeatureExtractor"};
    size_t len = strlen(name);
    for (size_t i = 0; strncmp(text, name, len) == 0 && i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (strcmp(text + len, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const struct family *find_family(const char *text)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (is_class(text, families[i].name)) {
            return &families[i];
        }
    }
    return NULL;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool is_said(const struct hub *h, const char *key)
{
    const struct cJSON *value = document_find(h->said, key);
    return value && document_type(value) != JSON_NULL;
}

/* False: the sides depend on the picture in a way that a card cannot say. */
static bool read_sides(const struct hub *h, const char *key, bool is_square, struct sides *out)
{
    const struct cJSON *value = document_find(h->said, key);
    uint32_t pair[2];
    if (derive_find_u32(h->in, h->said, key, IMAGE_SIDE_MAX, &out->height)) {
        *out = (struct sides){out->height, out->height, !is_square};
        return true;
    }
    if (derive_read_pair(h->in, value, pair)) {
        *out = (struct sides){pair[0], pair[1], false};
        return true;
    }
    if (derive_find_u32(h->in, value, "height", IMAGE_SIDE_MAX, &out->height) &&
        derive_find_u32(h->in, value, "width", IMAGE_SIDE_MAX, &out->width)) {
        out->is_shorter = false;
        return true;
    }
    *out = (struct sides){.is_shorter = true};
    return derive_find_u32(h->in, value, "shortest_edge", IMAGE_SIDE_MAX, &out->height) &&
           !document_find(value, "longest_edge");
}

static bool find_resize(const struct hub *h, struct sides *out)
{
    bool resizes = true;
    (void)derive_find_bool(h->in, h->said, "do_resize", &resizes);
    *out = (struct sides){.height = 0};
    if (!resizes) {
        return true;
    }
    if (is_said(h, "size")) {
        return read_sides(h, "size", h->family->is_square, out);
    }
    bool is_pair = h->family->is_square || h->family->kind == PLAIN;
    *out = (struct sides){h->family->side, h->family->side, !h->family->is_square};
    out->is_shorter = !h->family->is_square && (!is_pair || h->family->crop > 0);
    return true;
}

static bool find_crop(const struct hub *h, struct sides *out)
{
    bool crops = h->family->crop > 0;
    (void)derive_find_bool(h->in, h->said, "do_center_crop", &crops);
    *out = (struct sides){.height = 0};
    if (!crops) {
        return true;
    }
    if (is_said(h, "crop_size")) {
        return read_sides(h, "crop_size", true, out) && !out->is_shorter;
    }
    *out = (struct sides){h->family->crop, h->family->crop, false};
    return h->family->crop > 0;
}

static uint32_t divide(uint32_t side, double by)
{
    double length = by > 0 ? side / by : 0;
    return length >= 1 && length <= IMAGE_SIDE_MAX ? (uint32_t)length : 0;
}

/* What the class makes of both. False: a card cannot say it. */
static bool settle_sides(const struct hub *h, struct sides *resize, struct sides *crop)
{
    double part = h->family->kind == CONVNEXT ? 224.0 / 256 : 0.9;
    (void)derive_find_f64(h->in, h->said, "crop_pct", &part);
    if (resize->height == 0) {
        return true;
    }
    if (h->family->kind == CONVNEXT) {
        uint32_t side = resize->height;
        bool is_square = side >= 384;
        *crop = is_square ? *crop : (struct sides){side, side, false};
        *resize = is_square ? (struct sides){side, side, false}
                            : (struct sides){.height = divide(side, part), .is_shorter = true};
    } else if (h->family->kind == LEVIT && resize->is_shorter) {
        resize->height = (uint32_t)(256.0 / 224 * resize->height);
    } else if (h->family->kind == POOLFORMER) {
        bool is_square = resize->is_shorter || resize->height == resize->width;
        resize->is_shorter = is_square;
        resize->height = divide(resize->height, part);
        resize->width = is_square ? 0 : divide(resize->width, part);
    }
    return resize->height > 0 && resize->height <= IMAGE_SIDE_MAX;
}

/* ---- numbers --------------------------------------------------------------------------------- */

struct scaling {
    double scale; /* 1: numbers stay 0 to 255 */
    double mean[CHANNELS], std[CHANNELS];
    bool normalizes;
};

/* A number, or one for each channel. */
static bool read_numbers(const struct hub *h, const char *key, double out[CHANNELS])
{
    const struct cJSON *value = document_find(h->said, key);
    uint32_t count = 0;
    struct error ignored;
    if (derive_find_f64(h->in, h->said, key, &out[0])) {
        out[1] = out[2] = out[0];
        return true;
    }
    if (!value || document_type(value) != JSON_ARRAY) {
        return !value || document_type(value) == JSON_NULL;
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        if (count == CHANNELS || document_f64(h->in, at, &out[count++], &ignored) != ST_OK) {
            return false;
        }
    }
    if (count == 1) {
        out[1] = out[2] = out[0];
    }
    return count == 1 || count == CHANNELS;
}

static bool find_scaling(const struct hub *h, struct scaling *out)
{
    bool rescales = true, has_top = h->family->kind == EFFICIENT, has_offset = false;
    enum statistics usual = h->family->statistics;
    *out = (struct scaling){.scale = 1.0 / 255, .normalizes = usual != NONE};
    memcpy(out->mean, statistics[usual].mean, sizeof(out->mean));
    memcpy(out->std, statistics[usual].std, sizeof(out->std));
    (void)derive_find_bool(h->in, h->said, "do_rescale", &rescales);
    (void)derive_find_bool(h->in, h->said, "do_normalize", &out->normalizes);
    (void)derive_find_bool(h->in, h->said, "rescale_offset", &has_offset);
    (void)derive_find_f64(h->in, h->said, "rescale_factor", &out->scale);
    out->scale = rescales ? out->scale : 1;
    if (!read_numbers(h, "image_mean", out->mean) || !read_numbers(h, "image_std", out->std) ||
        has_offset) {
        return false;
    }
    if (has_top) {
        (void)derive_find_bool(h->in, h->said, "include_top", &has_top);
    }
    for (int i = 0; i < CHANNELS; i++) {
        out->std[i] *= has_top && out->normalizes ? out->std[i] : 1;
        if (out->std[i] == 0 || !isfinite((float)(out->scale / out->std[i])) ||
            !isfinite((float)(out->mean[i] / out->std[i]))) {
            return false;
        }
    }
    return isfinite(out->scale) && (out->normalizes || !has_top);
}

/* ---- the picture ----------------------------------------------------------------------------- */

static void print_sides(const char *key, const struct sides *sides, struct buf *out)
{
    if (sides->height > 0 && sides->is_shorter) {
        buf_printf(out, "\"%s\": %" PRIu32 ", ", key, sides->height);
    } else if (sides->height > 0) {
        buf_printf(out, "\"%s\": [%" PRIu32 ", %" PRIu32 "], ", key, sides->height, sides->width);
    }
}

static void print_numbers(const char *key, const double *numbers, struct buf *out)
{
    buf_printf(out, ", \"%s\": [%.17g, %.17g, %.17g]", key, numbers[0], numbers[1], numbers[2]);
}

static enum resample find_resample(const struct hub *h)
{
    uint32_t resample = h->family->resample;
    bool is_nearest = false;
    double number;
    if (derive_find_f64(h->in, h->said, "resample", &number)) {
        is_nearest = number == 0;
        (void)derive_find_u32(h->in, h->said, "resample", UINT8_MAX, &resample);
    }
    return is_nearest ? NEAREST : (enum resample)resample;
}

static void print_image(const struct hub *h, const struct sides *resize, const struct sides *crop,
                        const struct scaling *scaling)
{
    bool is_flipped = h->family->kind == FLIPPED;
    if (is_flipped) {
        (void)derive_find_bool(h->in, h->said, "do_flip_channel_order", &is_flipped);
    }
    struct buf *out =
        derive_say(h->derive, DERIVE_IMAGE, "%s: %sImageProcessor", h->file, h->family->name);
    buf_add_char(out, '{');
    print_sides("resize", resize, out);
    print_sides("crop", crop, out);
    buf_add_str(out, crop->height ? "\"crop_rounding\": \"down\", " : "");
    buf_printf(out, "\"interpolation\": \"%s\"", resamples[find_resample(h)]);
    buf_add_str(out, is_flipped ? ", \"colors\": \"bgr\"" : "");
    buf_printf(out, ", \"scale\": %.17g", scaling->scale);
    if (scaling->normalizes) {
        print_numbers("mean", scaling->mean, out);
        print_numbers("std", scaling->std, out);
    }
    buf_add_char(out, '}');
}

/* Do pictures get a size that the program takes? */
static bool check_sides(const struct hub *h, const struct rt_pixels *pixels,
                        const struct sides *resize, const struct sides *crop)
{
    const struct sides *last = crop->height ? crop : resize;
    bool varies = pixels->has_any_height && pixels->has_any_width;
    if (last->height == 0) {
        return true; /* only pictures of the program's size are taken */
    }
    if (!last->is_shorter) {
        return derive_check_sides(h->derive, pixels, last->height, last->width, h->file);
    }
    /* Other sides vary with the picture. */
    uint32_t shorter = pixels->height < pixels->width ? pixels->height : pixels->width;
    bool fits = varies ? last->height <= shorter : last->height == shorter;
    if (!fits) {
        derive_note(h->derive,
                    "%s: the shorter side becomes %" PRIu32 ", but the program takes %" PRIu32
                    " x %" PRIu32,
                    h->file, last->height, pixels->height, pixels->width);
    }
    return fits;
}

static void find_image(struct hub *h)
{
    struct sides resize, crop;
    struct scaling scaling;
    struct rt_pixels pixels;
    if (!derive_find_picture(h->method, &h->derive->input, &pixels) ||
        pixels.channels != CHANNELS) {
        derive_note(h->derive, "%s: the program takes no pictures of 3 channels", h->file);
    } else if (!find_resize(h, &resize) || !find_crop(h, &crop) ||
               !settle_sides(h, &resize, &crop) || !find_scaling(h, &scaling) ||
               find_resample(h) >= RESAMPLES) {
        derive_note(h->derive, "%s: %sImageProcessor with members that no card can say", h->file,
                    h->family->name);
    } else if (check_sides(h, &pixels, &resize, &crop)) {
        print_image(h, &resize, &crop, &scaling);
    }
}

/* The object of the preprocessor of pictures. False: there is none. */
static bool find_preprocessor(const struct beside *beside, struct hub *h)
{
    const struct document *own = &beside->files[BESIDE_PREPROCESSOR];
    const struct document *nested = &beside->files[BESIDE_PROCESSOR];
    bool is_own = own->root != NULL;
    h->in = is_own ? own : nested;
    h->file = beside_name(is_own ? BESIDE_PREPROCESSOR : BESIDE_PROCESSOR);
    h->said = h->in->root;
    if (!is_own) {
        h->said = document_find(h->said, "image_processor");
    }
    return h->said && document_type(h->said) == JSON_OBJECT;
}

static void find_picture(struct derive *derive, const struct beside *beside,
                         const struct rt_method *method)
{
    struct hub h = {.derive = derive, .method = method};
    const char *name;
    if (!find_preprocessor(beside, &h) ||
        (!derive_find_text(h.in, h.said, "image_processor_type", &name) &&
         !derive_find_text(h.in, h.said, "feature_extractor_type", &name))) {
        return;
    }
    h.family = find_family(name);
    if (h.family) {
        find_image(&h);
    } else if (strstr(name, "ImageProcessor")) {
        derive_note(derive, "%s: the class %.60s is not known", h.file, name);
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* transformers invents LABEL_0, LABEL_1 for classes without names. */
static bool are_invented(const struct derive_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strncmp(names->items[i], "LABEL_", strlen("LABEL_")) != 0) {
            return false;
        }
    }
    return true;
}

/* The first output with |count| classes: [n, count], or a map [n, count, height, width]. */
static bool find_output(const struct rt_method *method, uint32_t count, uint32_t *out_index)
{
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_io *io = rt_method_result(method, i);
        bool fits = io->kind == RT_IO_TENSOR && (io->shape.rank == 2 || io->shape.rank == 4) &&
                    dtype_is_float(io->dtype) && io->shape.dims[1] == count;
        if (fits) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

static void put_labels(struct derive *derive, const struct derive_names *names,
                       const struct rt_method *method)
{
    bool is_picture = derive_has_picture(derive);
    derive_print_names(names, derive_say(derive, DERIVE_LABELS, "config.json: id2label"));
    if (rt_method_result(method, derive->output)->shape.rank == 4) {
        buf_add_str(derive_say(derive, DERIVE_ANSWER, "config.json: id2label, one for each pixel"),
                    is_picture ? "{\"map\": {\"picture\": \"sent\"}}" : "\"map\"");
    }
}

static void find_labels(struct derive *derive, const struct document *config,
                        const struct rt_method *method)
{
    struct derive_names names;
    if (!derive_read_names(config, document_find(config->root, "id2label"), &names)) {
        return;
    }
    if (!are_invented(&names) && find_output(method, names.count, &derive->output)) {
        put_labels(derive, &names, method);
    }
    derive_free_names(&names);
}

void derive_from_hub(struct derive *derive, const struct beside *beside,
                     const struct rt_method *method)
{
    find_picture(derive, beside, method);
    find_labels(derive, &beside->files[BESIDE_CONFIG], method);
}
