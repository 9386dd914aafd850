/* SPDX-License-Identifier: MIT */
/*
 * Texts from the best label of each step: equal neighbours are one, and then blanks are gone.
 * Source: Graves et al., Connectionist Temporal Classification, 2006, best path decoding.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/json.h"
#include "server/model/answer/answer_priv.h"

static void add_label(const struct answer_source *source, int64_t label, struct buf *out)
{
    if (label >= 0 && label < source->label_count) {
        struct span text = source->labels[label];
        buf_add(out, text.ptr, text.len);
    }
}

static void collapse(const struct answer_source *source, const int64_t *labels, size_t count,
                     struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (labels[i] != source->answer->blank && (i == 0 || labels[i] != labels[i - 1])) {
            add_label(source, labels[i], out);
        }
    }
}

enum status answer_print_text(const struct answer_source *source, size_t row, bool is_bare,
                              struct buf *out, struct error *err)
{
    int64_t *labels;
    struct buf text;
    TRY(answer_read_ints(&source->tensor, row, &labels, err));
    buf_init(&text, out->max_bytes);
    collapse(source, labels, answer_row_numel(&source->tensor), &text);
    free(labels);
    enum status status = buf_check(&text, "the text", err);
    if (status == ST_OK && is_bare) {
        buf_add(out, text.ptr, text.len);
    } else if (status == ST_OK) {
        json_print_string(out, buf_span(&text));
    }
    buf_fini(&text);
    return status;
}
