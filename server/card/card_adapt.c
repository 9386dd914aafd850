/* SPDX-License-Identifier: MIT */
/*
 * What a card says that becomes part of a program, while the program is loaded. Entries are found
 * by the names that the file gives; whether each entry is about something, card_apply() says later.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/card/card_priv.h"

/* The raw index of what an entry is about; false: there is no such thing. */
static bool find_index(const struct rt_method *method, enum rt_side side, const struct card_io *io,
                       uint32_t *out_index)
{
    bool is_input = side == RT_INPUT;
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    *out_index = io->index;
    for (uint32_t i = 0; io->present && i < count; i++) {
        const struct rt_io *at =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        if (rt_io_is_called(at, span_str(io->present))) {
            *out_index = i;
            return true;
        }
    }
    return !io->present && io->index < count;
}

static enum status adapt_result(struct rt_method *method, const struct card_io *io, uint32_t index,
                                struct error *err)
{
    for (uint32_t i = 0; i < io->step_count; i++) {
        enum status status = rt_adapt_result(method, index, &io->steps[i].step, err);
        if (status != ST_OK) {
            return status == ST_EXHAUSTED ? status : card_blame(&io->steps[i].place, err);
        }
    }
    return ST_OK;
}

enum status card_adapt(void *arg, struct rt_method *method, bool is_default, struct error *err)
{
    const struct card *card = arg;
    if (!card) {
        return ST_OK;
    }
    const struct card_method *said =
        card_find_named(card, span_str(rt_method_name(method)), is_default);
    for (uint32_t i = 0; said && i < said->ios[RT_INPUT].count; i++) {
        const struct card_io *io = &said->ios[RT_INPUT].items[i];
        uint32_t index;
        TRY(find_index(method, RT_INPUT, io, &index) ? card_adapt_media(method, io, index, err)
                                                     : ST_OK);
    }
    for (uint32_t i = 0; said && i < said->ios[RT_RESULT].count; i++) {
        const struct card_io *io = &said->ios[RT_RESULT].items[i];
        uint32_t index;
        TRY(find_index(method, RT_RESULT, io, &index) ? adapt_result(method, io, index, err)
                                                      : ST_OK);
    }
    return ST_OK;
}
