/* SPDX-License-Identifier: MIT */
/*
 * Networks of the ShuffleNet family mix channels by moving them: concatenation, view, permute,
 * view, split. Nothing of that needs to move. A 1x1 convolution sums over all channels, so it takes
 * them in any order if its weights have the same order, and a depthwise convolution treats each
 * channel by itself. So this pass follows each channel back to the value that computes it, gives
 * convolutions the channels in the order in which they lie there ("join_parts", which copies whole
 * ranges), and puts their weights in that order once, when the graph is compiled.
 *
 * Only channels behind a shuffle are followed: a mere concatenation or split stays. Weights are in
 * a new order, so sums are rounded differently.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/join.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* Channels of an image, and of all images with maps. More is no real network, and takes memory. */
#define CHANNELS_MAX (1 << 14)
#define PLACES_MAX (1 << 20)

enum { CHANNEL_DIM = 1 };
enum { CAT_LIST, CAT_DIM };
enum { SPLIT_X, SPLIT_SIZES, SPLIT_DIM };
enum { SLICE_X, SLICE_DIM, SLICE_BEGIN, SLICE_STEP = 4 }; /* narrow has no step */

/* Where the content of a channel is, too; |index| is its number among the channels of a map. */
struct place {
    uint32_t value, channel, index;
};

struct map {
    struct place *places; /* by channel; NULL: the value itself has them */
    struct place *sorted; /* the same as they lie in memory, once is_sorted */
    uint32_t count;
    bool is_sorted;
};

struct pass {
    struct rt_rewrite rw;
    struct rt_graph *graph;
    struct error *err;
    struct map *maps;  /* by value */
    uint32_t *joined;  /* by value: its channels in the order of sorted(), 0: not made yet */
    uint32_t *readers; /* by value: 1x1 convolutions that read it */
    bool *is_fixed;    /* by value: constants alone decide it */
    uint32_t place_count;
};

/* ---- maps ------------------------------------------------------------------------------------ */

/* The number of channels of an image in floats; 0 of all else. */
static uint32_t channels_of(const struct pass *p, uint32_t value)
{
    const struct rt_value *v = &p->graph->values[value];
    bool is_image = v->kind == RT_TENSOR && v->dtype == DT_F32 && v->rank == 4;
    bool fits = is_image && rt_dim_is_const(v->dims[CHANNEL_DIM]) &&
                v->dims[CHANNEL_DIM].value <= CHANNELS_MAX;
    return fits ? (uint32_t)v->dims[CHANNEL_DIM].value : 0;
}

static bool has_map(const struct pass *p, uint32_t value)
{
    return rt_rewrite_has(&p->rw, value) && p->maps[value].places;
}

/* A map for |value| that the caller fills; false: no room, or it has no channels. */
static bool new_map(struct pass *p, uint32_t value, struct place **out_places)
{
    uint32_t count = channels_of(p, value);
    if (count == 0 || !rt_rewrite_has(&p->rw, value) || count > PLACES_MAX - p->place_count) {
        return false;
    }
    *out_places = arena_array(&p->graph->arena, 2 * (size_t)count, sizeof(**out_places));
    p->graph->failed |= !*out_places;
    if (!*out_places) {
        return false;
    }
    p->place_count += count;
    p->maps[value] = (struct map){*out_places, *out_places + count, count, false};
    return true;
}

/* Where channel |channel| of |value| is. */
static struct place place_of(const struct pass *p, uint32_t value, uint32_t channel)
{
    return has_map(p, value) ? p->maps[value].places[channel]
                             : (struct place){.value = value, .channel = channel};
}

static bool is_along_channels(const struct rt_graph *graph, uint32_t dim)
{
    const struct rt_value *v = &graph->values[dim];
    return rt_dim_is(v->i, CHANNEL_DIM) || rt_dim_is(v->i, CHANNEL_DIM - 4);
}

/* The map of a concatenation of images along their channels. */
static void map_cat(struct pass *p, const struct rt_node *cat)
{
    const struct rt_value *list = rt_node_arg(p->graph, cat, CAT_LIST);
    uint32_t total = channels_of(p, cat->outs[0]), count = 0;
    struct place *places;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t channels = channels_of(p, list->values[i]);
        count = channels && channels <= total - count ? count + channels : total + 1;
        if (count > total) {
            return;
        }
    }
    if (count != total || !is_along_channels(p->graph, cat->args[CAT_DIM]) ||
        !new_map(p, cat->outs[0], &places)) {
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        for (uint32_t c = 0; c < channels_of(p, list->values[i]); c++) {
            *places++ = place_of(p, list->values[i], c);
        }
    }
}

/* The pieces of a mapped image have maps as well. */
static void map_split(struct pass *p, const struct rt_node *split)
{
    const struct rt_value *list = rt_node_out(p->graph, split, 0);
    uint32_t x = split->args[SPLIT_X], at = 0;
    if (!has_map(p, x) || !is_along_channels(p->graph, split->args[SPLIT_DIM])) {
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t count = channels_of(p, list->values[i]);
        struct place *places;
        if (count > p->maps[x].count - at || !new_map(p, list->values[i], &places)) {
            return;
        }
        for (uint32_t c = 0; c < count; c++) {
            places[c] = p->maps[x].places[at + c];
        }
        at += count;
    }
}

/* An int argument; |usual| if it is none, -1 if it is negative or differs from call to call. */
static int64_t int_of(const struct rt_value *v, int64_t usual)
{
    bool is_known = v->kind == RT_INT && rt_dim_is_const(v->i) && v->i.value >= 0;
    return v->kind == RT_NONE ? usual : is_known ? v->i.value : -1;
}

/* The same for a slice. */
static void map_slice(struct pass *p, const struct rt_node *slice)
{
    uint32_t x = slice->args[SLICE_X], count = channels_of(p, slice->outs[0]);
    int64_t begin = int_of(rt_node_arg(p->graph, slice, SLICE_BEGIN), 0), step = 1;
    struct place *places;
    if (rt_op_is(slice->op, RT_KNOWN_slice)) {
        step = int_of(rt_node_arg(p->graph, slice, SLICE_STEP), 1);
    }
    if (!has_map(p, x) || !is_along_channels(p->graph, slice->args[SLICE_DIM]) || count == 0 ||
        begin < 0 || begin >= p->maps[x].count || step < 1 || step > CHANNELS_MAX ||
        begin + (count - 1) * step >= p->maps[x].count || !new_map(p, slice->outs[0], &places)) {
        return;
    }
    for (uint32_t c = 0; c < count; c++) {
        places[c] = p->maps[x].places[begin + c * step];
    }
}

/* Are these the dims of |image| with its channels as |groups| groups? */
static bool is_grouped(const struct rt_value *v, const struct rt_value *image)
{
    return v->rank == 5 && rt_dim_same(v->dims[0], image->dims[0]) &&
           rt_dim_same(v->dims[3], image->dims[2]) && rt_dim_same(v->dims[4], image->dims[3]) &&
           rt_dim_is_const(v->dims[1]) && rt_dim_is_const(v->dims[2]) && v->dims[1].value > 0 &&
           v->dims[2].value > 0;
}

static bool swaps_groups(const struct rt_graph *graph, const struct rt_node *permute)
{
    static const int64_t order[] = {0, 2, 1, 3, 4};
    const struct rt_value *dims = rt_node_arg(graph, permute, 1);
    bool swaps = dims->count == 5;
    for (uint32_t i = 0; swaps && i < 5; i++) {
        swaps = rt_dim_is(dims->ints[i], order[i]) || rt_dim_is(dims->ints[i], order[i] - 5);
    }
    return swaps;
}

/* The image that |view| shuffles, or 0: view, permute and view exchange groups and their members.
 * |out_groups| receives the number of groups. */
static uint32_t shuffled(const struct pass *p, const struct rt_node *view, uint32_t *out_groups)
{
    const struct rt_graph *graph = p->graph;
    const struct rt_node *permute = rt_rewrite_producer(&p->rw, view->args[0], RT_KNOWN_permute);
    const struct rt_node *first =
        permute ? rt_rewrite_producer(&p->rw, permute->args[0], RT_KNOWN_view) : NULL;
    if (!first || !swaps_groups(graph, permute)) {
        return 0;
    }
    uint32_t image = first->args[0], channels = channels_of(p, image);
    const struct rt_value *v = &graph->values[image], *groups = rt_node_out(graph, first, 0);
    bool is_shuffle = channels && channels == channels_of(p, view->outs[0]) &&
                      rt_value_same_dims(v, rt_node_out(graph, view, 0)) && is_grouped(groups, v) &&
                      channels % groups->dims[1].value == 0 &&
                      groups->dims[2].value == channels / groups->dims[1].value;
    *out_groups = is_shuffle ? (uint32_t)groups->dims[1].value : 0;
    return is_shuffle ? image : 0;
}

static void map_view(struct pass *p, const struct rt_node *view)
{
    uint32_t groups, image = shuffled(p, view, &groups);
    struct place *places;
    if (!image || !new_map(p, view->outs[0], &places)) {
        return;
    }
    const struct rt_node *cat = rt_rewrite_producer(&p->rw, image, RT_KNOWN_cat);
    if (cat && !has_map(p, image)) {
        map_cat(p, cat);
    }
    uint32_t members = channels_of(p, image) / groups;
    for (uint32_t i = 0; i < members; i++) {
        for (uint32_t g = 0; g < groups; g++) {
            *places++ = place_of(p, image, g * members + i);
        }
    }
}

/* ---- joined images --------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    if (x->channel != y->channel) {
        return x->channel < y->channel ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The places of |value|, which has a map, as they lie in memory. */
static const struct place *sorted(struct pass *p, uint32_t value)
{
    struct map *map = &p->maps[value];
    if (!map->is_sorted) {
        for (uint32_t i = 0; i < map->count; i++) {
            map->sorted[i] = map->places[i];
            map->sorted[i].index = i;
        }
        qsort(map->sorted, map->count, sizeof(*map->sorted), compare);
        map->is_sorted = true;
    }
    return map->sorted;
}

/* The arguments of a "join_parts". */
struct parts {
    uint32_t items[RT_JOIN_TENSORS_MAX], item_count;
    struct rt_dim numbers[RT_JOIN_PARTS_MAX * RT_JOIN_NUMBERS];
    uint32_t count;
};

/* Appends |count| indices of |item|; false: there are too many parts. */
static bool add_part(struct parts *parts, uint32_t item, int64_t begin, int64_t step, int64_t count)
{
    bool is_new = parts->item_count == 0 || parts->items[parts->item_count - 1] != item;
    if (parts->count == RT_JOIN_PARTS_MAX || (is_new && parts->item_count == RT_JOIN_TENSORS_MAX)) {
        return false;
    }
    if (is_new) {
        parts->items[parts->item_count++] = item;
    }
    struct rt_dim *numbers = parts->numbers + (size_t)parts->count++ * RT_JOIN_NUMBERS;
    numbers[RT_JOIN_ITEM] = rt_dim_of(parts->item_count - 1);
    numbers[RT_JOIN_BEGIN] = rt_dim_of(begin);
    numbers[RT_JOIN_STEP] = rt_dim_of(step);
    numbers[RT_JOIN_COUNT] = rt_dim_of(count);
    return true;
}

/* Ranges of channels of each value. */
static bool find_channels(const struct place *places, uint32_t count, struct parts *parts)
{
    bool fits = true;
    for (uint32_t at = 0, end; fits && at < count; at = end) {
        for (end = at + 1; end < count && places[end].value == places[at].value &&
                           places[end].channel == places[end - 1].channel + 1;
             end++) {
        }
        fits = add_part(parts, places[at].value, places[at].channel, 1, end - at);
    }
    return fits;
}

/* The same for the weights |item| of channels in the order from before. */
static bool find_weights(const struct place *places, uint32_t count, uint32_t item,
                         struct parts *parts)
{
    bool fits = true;
    for (uint32_t at = 0, end; fits && at < count; at = end) {
        int64_t first = places[at].index, step = 1;
        end = at + 1;
        if (end < count && places[end].index > first) {
            step = places[end].index - first;
        }
        while (end < count && places[end].index == first + step * (end - at)) {
            end++;
        }
        fits = add_part(parts, item, first, end == at + 1 ? 1 : step, end - at);
    }
    return fits;
}

static enum status make_join(struct pass *p, const struct parts *parts, int64_t dim, uint32_t *out)
{
    uint32_t args[] = {
        rt_graph_tensors(p->graph, parts->items, parts->item_count),
        rt_graph_int(p->graph, rt_dim_of(dim)),
        rt_graph_ints(p->graph, parts->numbers, parts->count * RT_JOIN_NUMBERS),
    };
    return rt_op_apply(p->graph, RT_OP(join_parts), args, 3, DT_F32, out, p->err);
}

/* Is the joined image made of one whole image? */
static bool is_whole(const struct pass *p, const struct parts *parts)
{
    return parts->count == 1 && rt_dim_is(parts->numbers[RT_JOIN_BEGIN], 0) &&
           rt_dim_is(parts->numbers[RT_JOIN_COUNT], channels_of(p, parts->items[0]));
}

/* All channels of |value| in the order of |places|. */
static enum status join(struct pass *p, uint32_t value, const struct parts *parts)
{
    if (p->joined[value] == 0 && is_whole(p, parts)) {
        p->joined[value] = parts->items[0];
    }
    return p->joined[value] == 0 ? make_join(p, parts, CHANNEL_DIM, &p->joined[value]) : ST_OK;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static bool is_fixed(const struct pass *p, uint32_t value)
{
    return rt_rewrite_has(&p->rw, value) && p->is_fixed[value];
}

static bool is_plain(const struct pass *p, const struct rt_node *conv)
{
    const struct rt_graph *graph = p->graph;
    const struct rt_value *w = rt_node_arg(graph, conv, RT_CONV_W);
    return rt_op_is(conv->op, RT_KNOWN_convolution) && channels_of(p, conv->args[RT_CONV_X]) &&
           channels_of(p, conv->outs[0]) && w->rank == 4 && w->dtype == DT_F32 &&
           !rt_node_arg(graph, conv, RT_CONV_TRANSPOSED)->b && is_fixed(p, conv->args[RT_CONV_W]) &&
           is_fixed(p, conv->args[RT_CONV_BIAS]);
}

/* Does the convolution sum over all channels of single pixels? */
static bool is_product(const struct pass *p, const struct rt_node *conv)
{
    const struct rt_value *w = rt_node_arg(p->graph, conv, RT_CONV_W);
    return is_plain(p, conv) && rt_dim_is(rt_node_arg(p->graph, conv, RT_CONV_GROUPS)->i, 1) &&
           rt_dim_is(w->dims[2], 1) && rt_dim_is(w->dims[3], 1) &&
           rt_dim_is(w->dims[1], channels_of(p, conv->args[RT_CONV_X]));
}

/* A depthwise convolution may exchange channels if only convolutions read them that follow. */
static bool is_depthwise(const struct pass *p, const struct rt_node *conv)
{
    uint32_t channels = is_plain(p, conv) ? channels_of(p, conv->args[RT_CONV_X]) : 0;
    const struct rt_value *w = rt_node_arg(p->graph, conv, RT_CONV_W);
    return channels && rt_dim_is(rt_node_arg(p->graph, conv, RT_CONV_GROUPS)->i, channels) &&
           rt_dim_is(w->dims[0], channels) && rt_dim_is(w->dims[1], 1) &&
           channels_of(p, conv->outs[0]) == channels && p->readers[conv->outs[0]] > 0 &&
           p->readers[conv->outs[0]] == rt_rewrite_uses(&p->rw, conv->outs[0]);
}

/* Puts argument |arg| of node |index| into the order of |weights| along |dim|. */
static enum status order_weights(struct pass *p, uint32_t index, uint32_t arg, int64_t dim,
                                 struct parts *weights)
{
    uint32_t value = p->graph->nodes[index].args[arg], made;
    if (p->graph->values[value].kind == RT_NONE) {
        return ST_OK;
    }
    must(weights->item_count == 1);
    weights->items[0] = value;
    TRY(make_join(p, weights, dim, &made));
    p->graph->nodes[index].args[arg] = made;
    return ST_OK;
}

/* The result of a depthwise convolution has the order of its input. */
static void map_depthwise(struct pass *p, uint32_t out, const struct place *places)
{
    struct place *to;
    if (new_map(p, out, &to)) {
        for (uint32_t i = 0; i < p->maps[out].count; i++) {
            to[places[i].index] = (struct place){.value = out, .channel = i};
        }
    }
}

/* A 1x1 convolution behind a depthwise one whose channels have moved finds the parts that the
 * depthwise one has found, so it never gives up. */
static enum status visit_conv(struct pass *p, uint32_t index)
{
    const struct rt_node *conv = &p->graph->nodes[index];
    uint32_t x = conv->args[RT_CONV_X], out = conv->outs[0];
    bool product = has_map(p, x) && is_product(p, conv);
    if (!has_map(p, x) || (!product && !is_depthwise(p, conv))) {
        return ST_OK;
    }
    uint32_t count = p->maps[x].count;
    const struct place *places = sorted(p, x);
    struct parts parts = {.count = 0}, weights = {.count = 0};
    if (!find_channels(places, count, &parts) ||
        !find_weights(places, count, conv->args[RT_CONV_W], &weights) ||
        (!product && count > PLACES_MAX - p->place_count)) {
        return ST_OK;
    }
    TRY(join(p, x, &parts));
    p->graph->nodes[index].args[RT_CONV_X] = p->joined[x];
    TRY(order_weights(p, index, RT_CONV_W, product ? 1 : 0, &weights));
    if (!product) {
        TRY(order_weights(p, index, RT_CONV_BIAS, 0, &weights));
        map_depthwise(p, out, places);
    }
    return rt_graph_check(p->graph, p->err);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static enum status visit(struct pass *p, uint32_t index)
{
    const struct rt_node *node = rt_rewrite_node(&p->rw, index);
    if (rt_op_is(node->op, RT_KNOWN_view)) {
        map_view(p, node);
    } else if (rt_op_is(node->op, RT_KNOWN_split_sizes)) {
        map_split(p, node);
    } else if (rt_op_is(node->op, RT_KNOWN_slice) || rt_op_is(node->op, RT_KNOWN_narrow)) {
        map_slice(p, node);
    } else if (rt_op_is(node->op, RT_KNOWN_convolution)) {
        return visit_conv(p, index);
    }
    return rt_graph_check(p->graph, p->err);
}

/* Nodes are in topological order. */
static void find_fixed(struct pass *p)
{
    for (uint32_t i = 0; i < p->rw.value_count; i++) {
        const struct rt_value *v = &p->graph->values[i];
        p->is_fixed[i] = v->kind != RT_TENSOR || v->is_constant;
    }
    for (uint32_t i = 0; i < p->rw.node_count; i++) {
        const struct rt_node *node = &p->graph->nodes[i];
        struct rt_tensors args = rt_node_arg_tensors(p->graph, node);
        bool fixed = true;
        for (uint32_t value; fixed && rt_tensors_next(&args, &value);) {
            fixed = p->is_fixed[value];
        }
        for (uint32_t o = 0; o < node->out_count; o++) {
            p->is_fixed[node->outs[o]] = fixed;
        }
    }
}

static void count_readers(struct pass *p)
{
    for (uint32_t i = 0; i < p->rw.node_count; i++) {
        const struct rt_node *node = &p->graph->nodes[i];
        if (rt_op_is(node->op, RT_KNOWN_convolution) && is_product(p, node)) {
            p->readers[node->args[RT_CONV_X]]++;
        }
    }
}

enum status rt_pass_channels(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct pass p = {.graph = graph, .err = err};
    TRY(rt_rewrite_begin(&p.rw, graph, err));
    p.maps = arena_array(&graph->arena, graph->value_count, sizeof(*p.maps));
    p.joined = arena_array(&graph->arena, graph->value_count, sizeof(*p.joined));
    p.readers = arena_array(&graph->arena, graph->value_count, sizeof(*p.readers));
    p.is_fixed = arena_array(&graph->arena, graph->value_count, sizeof(*p.is_fixed));
    graph->failed |= !p.maps || !p.joined || !p.readers || !p.is_fixed;
    TRY(rt_graph_check(graph, err));
    find_fixed(&p);
    count_readers(&p);
    for (uint32_t i = 0; i < p.rw.node_count; i++) {
        TRY(visit(&p, i));
    }
    return rt_rewrite_end(&p.rw, err);
}
