/* SPDX-License-Identifier: MIT */
/* No format is read yet. */
#include "config.h"

#include "server/media/image.h"

uint32_t image_form_channels(const struct image_form *form)
{
    return form->colors == IMAGE_GRAY ? 1 : 3;
}

enum status image_load(struct error *err)
{
    return error_set(err, ST_UNSUPPORTED, "pictures are not read");
}

enum status image_open(struct span file, const struct image_limits *limits, struct image **out,
                       struct error *err)
{
    (void)file;
    (void)limits;
    (void)out;
    return image_load(err);
}

void image_close(struct image *image)
{
    (void)image;
}

enum status image_size(const struct image *image, const struct image_form *form,
                       uint32_t *out_height, uint32_t *out_width, struct error *err)
{
    (void)image;
    (void)form;
    (void)out_height;
    (void)out_width;
    return image_load(err);
}

size_t image_work_bytes(const struct image *image, const struct image_form *form)
{
    (void)image;
    (void)form;
    return 0;
}

enum status image_read(struct image *image, const struct image_form *form, uint8_t *out,
                       size_t out_len, struct error *err)
{
    (void)image;
    (void)form;
    (void)out;
    (void)out_len;
    return image_load(err);
}
