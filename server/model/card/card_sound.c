/* SPDX-License-Identifier: MIT */
/* Sound in cards: the member "sound" of an input. */
#include "config.h"

#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"

#define RATE_MIN 1000
#define RATE_MAX 768000
#define RATE_DEFAULT 16000
#define SECONDS_MAX 86400

static enum status read_sound_member(const struct card_source *s, const struct cJSON *member,
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
        TRY(card_read_word(s, member, features, 2, "samples or log_mel", &index, err));
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

static enum status read_sound(const struct card_source *s, const struct cJSON *value,
                              struct card_media *out, struct error *err)
{
    struct card_sound *sound = &out->sound;
    *sound = (struct card_sound){.rate = RATE_DEFAULT};
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_sound_member(s, at, sound, err));
    }
    return ST_OK;
}

/* [n, samples], with dims of 1 in between; [n, bands, frames]. */
static enum status apply_sound(const struct rt_method *method, struct card_io *io,
                               struct error *err)
{
    const struct rt_io *is = rt_method_input(method, io->index);
    const struct card_sound *sound = &io->media.sound;
    uint8_t rank = is->shape.rank;
    bool fits = is->kind == RT_IO_TENSOR && is->dtype == DT_F32 && rank >= 1 &&
                (!sound->is_log_mel || rank == 2 || rank == 3);
    for (int dim = 1; fits && !sound->is_log_mel && dim < rank - 1; dim++) {
        fits = is->shape.dims[dim] == 1;
    }
    if (!fits) {
        return card_refuse_input(
            io, is, sound->is_log_mel ? "float32[n, bands, frames]" : "float32[n, samples]", err);
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

const struct card_medium card_medium_sound = {
    .word = "sound",
    .noun = "sound",
    .types = {"audio/*", "video/*", "application/ogg"},
    .formats = MEDIA_SOUND,
    .read = read_sound,
    .apply = apply_sound,
};
