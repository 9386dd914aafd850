/* SPDX-License-Identifier: MIT */
/*
 * Pages of rows that several states have (hal/pages.h). When a state gets the content of another
 * one (rt_state_share()), the rows that it wants move into pages, and both map these. So it has the
 * rows without a copy, until one of them writes: the system copies that page.
 *
 * A piece is what a buffer has of such rows in one place: rows lie together, or in as many blocks
 * as there are heads. Only whole pages are shared. The rest of a piece is copied, up to a page at
 * each end. Pieces of a few pages are not worth a mapping; buffers that have only such ones are
 * shared as a whole until a call writes.
 *
 * A state that has pages of another one may lend its rows, too, as each turn of a chat does. Then
 * only its own rows move, into pages on top of those. A stack of STACK_MAX ends that: the next
 * state has only the lowest pages, which most have in common, and copies what lies above.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/refs.h"
#include "hal/buffer.h"
#include "hal/pages.h"
#include "runtime/program/state_cells.h"

#define PIECE_PAGES_MIN 4
#define STACK_MAX 8

/* Rows [first, end) of a cell, in the whole pages that begin with row |first|. */
struct place {
    int64_t first, end;
    size_t at; /* of the first block's; that of the next follows */
};

#define RT_PAGES_MAGIC 0x57a7ea6eu

struct rt_pages {
    uint32_t magic;
    struct refs refs;
    struct rt_pages *under;   /* owned: pages of earlier rows, or NULL */
    uint32_t depth;           /* how many there are, with these */
    struct hal_pages *memory; /* owned */
    size_t bytes;             /* of it that have content */
    struct place places[];    /* by cell */
};

static struct rt_pages *take(struct rt_pages *pages)
{
    refs_take(&pages->refs);
    return pages;
}

void rt_pages_unref(struct rt_pages *pages)
{
    while (pages) {
        struct rt_pages *under = pages->under;
        must(pages->magic == RT_PAGES_MAGIC);
        if (!refs_drop(&pages->refs)) {
            return;
        }
        hal_pages_unref(pages->memory);
        pages->magic = 0;
        free(pages);
        pages = under;
    }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The rows of a cell of one geometry, as blocks. */
struct blocks {
    size_t size, block, row, page;
};

static struct blocks blocks_of(const struct rt_state_cell *cell, const struct rt_rows *rows)
{
    return (struct blocks){.size = cell->tensor.byte_count,
                           .block = (size_t)(rows->rows * rows->row_bytes),
                           .row = (size_t)rows->row_bytes,
                           .page = hal_buffer_page_bytes(cell->initial)};
}

/* Where the whole pages of the block at |base| end that have rows before |row|, and begin that have
 * |row| and later ones. */
static size_t edge(const struct blocks *blocks, size_t base, int64_t row)
{
    size_t begin = align_up(base, blocks->page);
    size_t at = (base + (size_t)row * blocks->row) & ~(blocks->page - 1);
    return at > begin ? at : begin;
}

/* Bytes of the whole pages of rows [first, end) in all blocks. */
static size_t whole_bytes(const struct blocks *blocks, int64_t first, int64_t end)
{
    size_t bytes = 0;
    for (size_t base = 0; first < end && base < blocks->size; base += blocks->block) {
        bytes += edge(blocks, base, end) - edge(blocks, base, first);
    }
    return bytes;
}

static bool is_worth_it(const struct blocks *blocks, int64_t first, int64_t end)
{
    return first < end && whole_bytes(blocks, first, end) >=
                              blocks->size / blocks->block * PIECE_PAGES_MIN * blocks->page;
}

size_t rt_state_paged_bytes(const struct rt_state *state, uint32_t cell, int64_t end)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    const struct rt_rows *paged = &state->paged[cell];
    if (paged->end == 0) {
        return 0;
    }
    const struct blocks blocks = blocks_of(&state->cells->items[cell], paged);
    return whole_bytes(&blocks, 0, end < paged->end ? end : paged->end);
}

void rt_state_own_from(struct rt_state *state, uint32_t cell, size_t offset)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct rt_rows *paged = &state->paged[cell];
    if (paged->end > 0) {
        const struct blocks blocks = blocks_of(&state->cells->items[cell], paged);
        int64_t row = (int64_t)(offset % blocks.block / blocks.row);
        paged->end = row < paged->end ? row : paged->end;
    }
}

void rt_state_own(struct rt_state *state, uint32_t cell, struct rt_rows written)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct rt_rows *paged = &state->paged[cell];
    if (paged->end == 0 || written.rows == RT_ROWS_NONE) {
        return;
    }
    bool is_known = written.rows == paged->rows && written.row_bytes == paged->row_bytes;
    int64_t end = !is_known ? 0 : written.first < written.end ? written.first : paged->end;
    paged->end = end < paged->end ? end : paged->end;
}

/* ---- lending --------------------------------------------------------------------------------- */

/* Has cell |i| of |from| rows at its beginning that can be pages? */
static bool has_rows(const struct rt_state *from, uint32_t i)
{
    const struct rt_state_cell *cell = &from->cells->items[i];
    const struct hal_buffer *current = from->current[i];
    return cell->is_written && !cell->is_replaced && cell->begins_zero &&
           hal_buffer_page_bytes(cell->initial) > 0 && current != cell->initial &&
           current != from->shared[i] && from->touched[i].rows > 0 && from->touched[i].first == 0;
}

/* Moves the pages of |place| of cell |i| from |from| to |pages|. If that fails, some blocks may
 * have moved: |from| holds them, and they count with all others, but nobody else gets them. */
static enum status move_rows(struct rt_state *from, uint32_t i, struct rt_pages *pages,
                             struct error *err)
{
    const struct place *place = &pages->places[i];
    const struct blocks blocks = blocks_of(&from->cells->items[i], &from->touched[i]);
    enum status status = ST_OK;
    size_t at = place->at;
    for (size_t base = 0; status == ST_OK && base < blocks.size; base += blocks.block) {
        size_t begin = edge(&blocks, base, place->first);
        size_t size = edge(&blocks, base, place->end) - begin;
        if (size > 0) {
            status = hal_pages_take(pages->memory, at, from->current[i], begin, size, err);
        }
        at += status == ST_OK ? size : 0;
    }
    if (at > place->at) {
        pages->bytes += whole_bytes(&blocks, place->first, place->end);
    }
    return status;
}

/* The places of rows before |rows| that are no pages yet. Returns their bytes. */
static size_t place_rows(const struct rt_state *from, int64_t rows, struct rt_pages *pages)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < from->cells->count; i++) {
        const struct rt_rows *touched = &from->touched[i];
        int64_t first = from->paged[i].end, end = touched->end < rows ? touched->end : rows;
        pages->places[i] = (struct place){first, first, bytes};
        if (has_rows(from, i)) {
            const struct blocks blocks = blocks_of(&from->cells->items[i], touched);
            if (is_worth_it(&blocks, first, end)) {
                pages->places[i].end = end;
                bytes += whole_bytes(&blocks, first, end);
            }
        }
    }
    return bytes;
}

static struct rt_pages *new_pages(const struct rt_state *from, int64_t rows)
{
    uint32_t count = from->cells->count;
    struct rt_pages *pages = calloc(1, sizeof(*pages) + count * sizeof(pages->places[0]));
    if (!pages) {
        return NULL;
    }
    size_t bytes = place_rows(from, rows, pages);
    if (bytes == 0 || hal_pages_new(hal_buffer_device(from->cells->items[0].initial), bytes,
                                    &pages->memory, NULL) != ST_OK) {
        free(pages);
        return NULL;
    }
    pages->magic = RT_PAGES_MAGIC;
    refs_init(&pages->refs);
    return pages;
}

/* Rows of |from| before |rows| become pages, as far as they are worth it and can. */
static void lend(struct rt_state *from, int64_t rows)
{
    if (from->pages && from->pages->depth >= STACK_MAX) {
        return;
    }
    struct rt_pages *pages = new_pages(from, rows);
    for (uint32_t i = 0; pages && i < from->cells->count; i++) {
        struct place *place = &pages->places[i];
        if (place->first == place->end) {
            continue;
        }
        if (move_rows(from, i, pages, NULL) == ST_OK) {
            from->paged[i] = from->touched[i];
            from->paged[i].end = place->end;
        } else {
            place->end = place->first;
        }
    }
    if (pages && pages->bytes == 0) {
        rt_pages_unref(pages);
    } else if (pages) {
        pages->under = from->pages; /* with its reference */
        pages->depth = pages->under ? pages->under->depth + 1 : 1;
        from->pages = pages;
        from->made_count++;
        from->made_bytes += pages->bytes;
    }
}

/* ---- borrowing ------------------------------------------------------------------------------- */

/* What a state gets of the rows of a cell of another. */
struct loan {
    const struct rt_pages *pages; /* borrowed: the uppermost ones */
    struct hal_buffer *from;      /* the content */
    struct blocks blocks;
    uint32_t cell;
    int64_t rows;  /* wanted */
    int64_t paged; /* of them, those that |pages| have */
};

static enum status map_pages(const struct loan *loan, const struct rt_pages *pages, int64_t end,
                             struct hal_buffer *target, struct error *err)
{
    const struct blocks *blocks = &loan->blocks;
    const struct place *place = &pages->places[loan->cell];
    size_t at = place->at;
    for (size_t base = 0; base < blocks->size; base += blocks->block) {
        size_t begin = edge(blocks, base, place->first), size = edge(blocks, base, end) - begin;
        if (size > 0) {
            TRY(hal_pages_map(pages->memory, at, target, begin, size, err));
        }
        at += edge(blocks, base, place->end) - begin;
    }
    return ST_OK;
}

static void copy(const struct loan *loan, struct hal_buffer *target, size_t begin, size_t end)
{
    if (begin < end) {
        memcpy((char *)hal_buffer_map(target) + begin, (char *)hal_buffer_map(loan->from) + begin,
               end - begin);
    }
}

/* What the whole pages have not. */
static void copy_rest(const struct loan *loan, struct hal_buffer *target)
{
    const struct blocks *blocks = &loan->blocks;
    for (size_t base = 0; base < blocks->size; base += blocks->block) {
        size_t end = base + (size_t)loan->rows * blocks->row, first = edge(blocks, base, 0);
        copy(loan, target, base, first < end ? first : end);
        copy(loan, target, edge(blocks, base, loan->paged), end);
    }
}

static enum status borrow(const struct loan *loan, struct hal_buffer **out_target,
                          struct error *err)
{
    int64_t end = loan->paged;
    *out_target = NULL;
    enum status status =
        hal_buffer_new_sparse(hal_buffer_device(loan->from), loan->blocks.size, out_target, err);
    for (const struct rt_pages *at = loan->pages; status == ST_OK && end > 0; at = at->under) {
        must(at); /* pages have all rows before |paged| */
        const struct place *place = &at->places[loan->cell];
        if (place->first < end && place->first < place->end) {
            status = map_pages(loan, at, end, *out_target, err);
            end = place->first;
        }
    }
    if (status == ST_OK) {
        copy_rest(loan, *out_target);
    } else {
        hal_buffer_unref(*out_target);
    }
    return status;
}

/* The rows of cell |i| that |pages| have. */
static int64_t rows_of(const struct rt_pages *pages, uint32_t i)
{
    int64_t end = 0;
    for (const struct rt_pages *at = pages; end == 0 && at; at = at->under) {
        end = at->places[i].first < at->places[i].end ? at->places[i].end : 0;
    }
    return end;
}

/* |state| knows the rows that are pages in |from|: |io_loan| is what its cell |i| can get. */
static bool find_loan(const struct rt_state *state, const struct rt_state *from, uint32_t i,
                      struct loan *io_loan)
{
    if (!has_rows(from, i)) {
        return false;
    }
    int64_t rows = state->touched[i].end, paged = rows_of(io_loan->pages, i);
    paged = paged < state->paged[i].end ? paged : state->paged[i].end;
    io_loan->cell = i;
    io_loan->from = from->current[i];
    io_loan->blocks = blocks_of(&from->cells->items[i], &from->touched[i]);
    io_loan->rows = rows;
    io_loan->paged = paged < rows ? paged : rows;
    return is_worth_it(&io_loan->blocks, 0, io_loan->paged);
}

/* May |state| have what it does not get as pages? */
static bool pays(struct rt_state *state, const struct rt_state *from, const struct rt_pages *pages)
{
    size_t bytes = rt_program_state_bytes_least(state->program);
    struct loan loan = {.pages = pages};
    for (uint32_t i = 0; i < state->cells->count; i++) {
        if (find_loan(state, from, i, &loan)) {
            bytes += rt_state_rows_bytes(&state->cells->items[i], state->touched[i]) -
                     whole_bytes(&loan.blocks, 0, loan.paged);
        }
    }
    const struct rt_state_account *account = state->account;
    return !account || account->charge(account, bytes, NULL) == ST_OK;
}

/* Buffers that cannot be had remain those of |from|, and are copied when a call writes. False: that
 * is all of them. */
static bool borrow_all(struct rt_state *state, struct rt_state *from, const struct rt_pages *pages)
{
    struct loan loan = {.pages = pages};
    bool has_pages = pages && pays(state, from, pages), has_any = false;
    for (uint32_t i = 0; i < state->cells->count; i++) {
        struct hal_buffer *target;
        bool has_loan = has_pages && find_loan(state, from, i, &loan);
        state->paged[i] = (struct rt_rows){0};
        if (has_loan && borrow(&loan, &target, NULL) == ST_OK) {
            hal_buffer_unref(state->current[i]);
            hal_buffer_unref(state->shared[i]);
            state->current[i] = target;
            state->shared[i] = NULL;
            state->paged[i] = state->touched[i];
            state->paged[i].end = loan.paged;
            has_any = true;
        }
    }
    return has_any;
}

/* The pages of |from| that |state| may have, and as |state->paged| the rows of |from| that they
 * have. Those of pages that are left out are none of them: what lies below at these rows is content
 * of other states. NULL: there are no pages. The caller owns a reference. */
static struct rt_pages *choose_pages(const struct rt_state *from, struct rt_state *state)
{
    struct rt_pages *pages = from->pages;
    for (uint32_t i = 0; i < state->cells->count; i++) {
        state->paged[i] = from->paged[i];
    }
    while (pages && from->pages->depth >= STACK_MAX && pages->under) {
        for (uint32_t i = 0; i < state->cells->count; i++) {
            const struct place *place = &pages->places[i];
            if (place->first < place->end && place->first < state->paged[i].end) {
                state->paged[i].end = place->first;
            }
        }
        pages = pages->under;
    }
    return pages ? take(pages) : NULL;
}

void rt_state_borrow(struct rt_state *state, struct rt_state *from, int64_t rows)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    OBJ_CHECK(from, RT_STATE_MAGIC);
    must(!state->pages);
    pthread_mutex_lock(&from->lending);
    lend(from, rows);
    struct rt_pages *pages = choose_pages(from, state);
    pthread_mutex_unlock(&from->lending);
    if (borrow_all(state, from, pages)) { /* without the lock: an account has locks of its own */
        state->pages = pages;
    } else {
        rt_pages_unref(pages);
    }
}

/* ---- what others have ------------------------------------------------------------------------ */

size_t rt_state_lent_bytes(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    size_t bytes = 0;
    bool is_lent = false;
    if (!refs_is_only(&state->refs)) {
        return SIZE_MAX;
    }
    struct rt_pages *at = state->pages;
    for (uint32_t i = 0; i < state->made_count; i++, at = at->under) {
        is_lent = is_lent || !refs_is_only(&at->refs);
        bytes += is_lent ? at->bytes : 0;
    }
    return bytes;
}

static void drop_pages(struct rt_state *state)
{
    struct rt_pages *unwanted = state->pages;
    state->pages = unwanted->under ? take(unwanted->under) : NULL;
    rt_pages_unref(unwanted);
}

void rt_state_retire(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(refs_is_only(&state->refs));
    (void)rt_state_trim(state);
    for (uint32_t i = 0; i < state->cells->count; i++) {
        hal_buffer_unref(state->current[i]);
        hal_buffer_unref(state->shared[i]);
        state->current[i] = hal_buffer_ref(state->cells->items[i].initial);
        state->shared[i] = NULL;
        state->touched[i] = (struct rt_rows){.rows = RT_ROWS_NONE};
        state->paged[i] = (struct rt_rows){0};
    }
    while (state->made_count > 0 && refs_is_only(&state->pages->refs)) {
        state->made_count--;
        state->made_bytes -= state->pages->bytes;
        drop_pages(state);
    }
    while (state->made_count == 0 && state->pages) {
        drop_pages(state);
    }
    while (state->part_count > 0) {
        rt_state_unref(state->parts[--state->part_count]);
    }
}
