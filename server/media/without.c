/* SPDX-License-Identifier: MIT */
/* ../configure --without-media: no picture and no sound is decoded, and no library for these has to
 * be there. No struct image and no struct sound is ever made, so nobody asks for what is in one. */
#include "config.h"

#include "base/check.h"
#include "server/media/image.h"
#include "server/media/sound.h"

static enum status refuse(struct error *err)
{
    return error_set(err, ST_UNSUPPORTED,
                     "pictures and sound: this pted was configured --without-media");
}

/* ---- pictures -------------------------------------------------------------------------------- */

enum status image_load(struct error *err)
{
    return refuse(err);
}

enum status image_open(struct span file, const struct image_limits *limits, struct image **out,
                       struct error *err)
{
    (void)file;
    (void)limits;
    *out = NULL;
    return refuse(err);
}

void image_close(struct image *image)
{
    must(!image);
}

uint64_t image_decoded_bytes(const struct image *image)
{
    (void)image;
    unreachable();
}

enum status image_size(const struct image *image, const struct image_form *form,
                       uint32_t *out_height, uint32_t *out_width, struct error *err)
{
    (void)image;
    (void)form;
    (void)out_height;
    (void)out_width;
    (void)err;
    unreachable();
}

enum status image_find_place(const struct image *image, const struct image_form *form,
                             struct image_place *out, struct error *err)
{
    (void)image;
    (void)form;
    (void)out;
    (void)err;
    unreachable();
}

size_t image_work_bytes(const struct image *image, const struct image_form *form)
{
    (void)image;
    (void)form;
    unreachable();
}

enum status image_read(struct image *image, const struct image_form *form, uint8_t *out,
                       size_t out_len, struct error *err)
{
    (void)image;
    (void)form;
    (void)out;
    (void)out_len;
    (void)err;
    unreachable();
}

/* ---- sound ----------------------------------------------------------------------------------- */

enum status sound_load(struct error *err)
{
    return refuse(err);
}

enum status sound_open(struct span file, uint32_t rate, const struct sound_limits *limits,
                       struct sound **out, struct error *err)
{
    (void)file;
    (void)rate;
    (void)limits;
    *out = NULL;
    return refuse(err);
}

void sound_close(struct sound *sound)
{
    must(!sound);
}

uint64_t sound_count_max(const struct sound *sound)
{
    (void)sound;
    unreachable();
}

uint64_t sound_decoded_bytes(const struct sound *sound)
{
    (void)sound;
    unreachable();
}

enum status sound_read(struct sound *sound, float *out, uint64_t *out_count, struct error *err)
{
    (void)sound;
    (void)out;
    (void)out_count;
    (void)err;
    unreachable();
}
