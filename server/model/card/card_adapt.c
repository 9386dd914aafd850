/* SPDX-License-Identifier: MIT */
/*
 * The steps of a card that become part of a program while the program is loaded. Entries are found
 * by the names that the file gives; card_apply() finds out later whether each entry is about
 * something.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"
#include "server/model/card/card_steps.h"

/* Sets the raw index of the input or output of an entry; false: there is none. */
static bool find_index(const struct rt_method *method, enum rt_side side, struct card_io *io)
{
    bool is_input = side == RT_INPUT;
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    for (uint32_t i = 0; io->present && i < count; i++) {
        const struct rt_io *at =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        if (rt_io_is_called(at, span_str(io->present))) {
            io->index = i;
            return true;
        }
    }
    return !io->present && io->index < count;
}

static enum status adapt_result(struct rt_method *method, struct card_io *io, struct error *err)
{
    for (uint32_t i = 0; i < io->step_count; i++) {
        enum status status = rt_adapt_result(method, io->index, &io->steps[i].step, err);
        if (status != ST_OK) {
            return status == ST_EXHAUSTED ? status : card_blame(&io->steps[i].place, err);
        }
    }
    return card_adapt_answer(method, io, err);
}

static enum status adapt_side(struct rt_method *method, enum rt_side side,
                              const struct card_ios *ios, struct error *err)
{
    for (uint32_t i = 0; i < ios->count; i++) {
        struct card_io *io = &ios->items[i];
        if (find_index(method, side, io)) {
            TRY(side == RT_INPUT ? card_adapt_media(method, io, io->index, err)
                                 : adapt_result(method, io, err));
        }
    }
    return ST_OK;
}

enum status card_adapt(void *arg, struct rt_method *method, bool is_default, struct error *err)
{
    struct card *card = arg;
    if (card && card->beside && is_default) {
        TRY(card_derive(card, method, err));
    }
    const struct card_method *said =
        card ? card_find_named(card, span_str(rt_method_name(method)), is_default) : NULL;
    for (int side = RT_INPUT; said && side <= RT_RESULT; side++) {
        TRY(adapt_side(method, (enum rt_side)side, &said->ios[side], err));
    }
    return ST_OK;
}
