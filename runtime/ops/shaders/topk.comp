/* SPDX-License-Identifier: MIT */
/*
 * topk and sort of order.c: the k largest or smallest elements of each row, the same elements in
 * the same order as there, even among equal elements. Bindings: values, indices, input.
 *
 * For few of many, all lanes look for elements that belong into a heap, and one lane maintains it.
 * In other rows each lane finds the places of some elements by counting the elements above them. If
 * equal elements would get the same place (unless the order is stable), or if the result is not
 * sorted, one lane follows the steps of the CPU kernel.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/order.h"

CONSTANTS(rt_topk_constants);

#define INSERTION_SORT_MAX 16
#define DEPTH_MAX 20 /* for RT_TOPK_SHARED entries: twice the logarithm */

/* Entries: the key of an element, and its place in the row. */
shared int64_t keys[RT_TOPK_SHARED];
shared uint places[RT_TOPK_SHARED];

shared int64_t chunk[gl_WorkGroupSize.x];
shared uint is_found;

/* ---- the order of elements: signed integers, NaN above all, -0 and 0 alike ------------------- */

int64_t key_f32(float v)
{
    int bits = floatBitsToInt(v);
    bits = (bits & 0x7fffffff) == 0 ? 0 : bits ^ (bits >> 31 & 0x7fffffff);
    return is_nan(v) ? INT64_HIGHEST : int64_t(bits);
}

int64_t key_f64(int64_t bits)
{
    int64_t magnitude = bits & INT64_HIGHEST;
    if (magnitude > 0x7ff0000000000000l) {
        return INT64_HIGHEST;
    }
    return magnitude == 0l ? 0l : bits ^ (bits >> 63 & INT64_HIGHEST);
}

int64_t key_at(uint64_t at)
{
    int64_t key;
    if (K.dtype == DT_F64) {
        key = key_f64(int64_t(U64(at).at[0]));
    } else if (is_float(K.dtype)) {
        key = key_f32(load_float(at, K.dtype));
    } else {
        key = load_int(at, K.dtype) ^ (K.dtype == DT_U64 ? INT64_LOWEST : 0l);
    }
    return K.is_smallest == 1u ? ~key : key;
}

void load_entries(uint64_t row, int count)
{
    for (int i = int(lane()); i < count; i += int(lanes())) {
        keys[i] = key_at(row + uint64_t(i * K.in_step));
        places[i] = uint(i);
    }
    barrier();
}

/* ---- what one lane does: see order.c --------------------------------------------------------- */

void move(int to, int from)
{
    keys[to] = keys[from];
    places[to] = places[from];
}

void put(int to, int64_t key, uint place)
{
    keys[to] = key;
    places[to] = place;
}

void swap(int a, int b)
{
    int64_t key = keys[a];
    uint place = places[a];
    move(a, b);
    put(b, key, place);
}

/* For the heap that begins at entry |first|. */
void heap_adjust(int first, int hole, int count, int64_t key, uint place)
{
    int top = hole, child = hole;
    while (child < (count - 1) / 2) {
        child = 2 * child + 2;
        child -= int(keys[first + child] > keys[first + child - 1]);
        move(first + hole, first + child);
        hole = child;
    }
    if (count % 2 == 0 && child == (count - 2) / 2) {
        child = 2 * child + 1;
        move(first + hole, first + child);
        hole = child;
    }
    while (hole > top && keys[first + (hole - 1) / 2] > key) {
        move(first + hole, first + (hole - 1) / 2);
        hole = (hole - 1) / 2;
    }
    put(first + hole, key, place);
}

void heap_make(int first, int count)
{
    for (int i = count / 2; i-- > 0;) {
        heap_adjust(first, i, count, keys[first + i], places[first + i]);
    }
}

void heap_sort(int first, int count)
{
    while (count-- > 1) {
        int64_t key = keys[first + count];
        uint place = places[first + count];
        move(first + count, first);
        heap_adjust(first, 0, count, key, place);
    }
}

void heap_select(int first, int k, int count)
{
    heap_make(first, k);
    for (int i = first + k; i < first + count; i++) {
        if (keys[i] > keys[first]) {
            int64_t key = keys[i];
            uint place = places[i];
            move(i, first);
            heap_adjust(first, 0, k, key, place);
        }
    }
}

void median_to(int to, int a, int b, int c)
{
    if (keys[a] > keys[b]) {
        swap(to, keys[b] > keys[c] ? b : keys[a] > keys[c] ? c : a);
    } else {
        swap(to, keys[a] > keys[c] ? a : keys[b] > keys[c] ? c : b);
    }
}

int split(int first, int last)
{
    int low = first + 1, high = last;
    median_to(first, first + 1, first + (last - first) / 2, last - 1);
    int64_t pivot = keys[first];
    for (;; low++) {
        while (keys[low] > pivot) {
            low++;
        }
        high--;
        while (pivot > keys[high]) {
            high--;
        }
        if (low >= high) {
            return low;
        }
        swap(low, high);
    }
}

void insertion_sort(int first, int last)
{
    for (int i = first + 1; i < last; i++) {
        int64_t key = keys[i];
        uint place = places[i];
        int at = i;
        for (; at > first && key > keys[at - 1]; at--) {
            move(at, at - 1);
        }
        put(at, key, place);
    }
}

int depth_of(int count)
{
    return 2 * findMSB(count);
}

void nth_element(int nth, int count)
{
    int first = 0, last = count;
    for (int depth = depth_of(count); last - first > 3; depth--) {
        if (depth == 0) {
            heap_select(first, nth + 1 - first, last - first);
            swap(first, nth);
            return;
        }
        int cut = split(first, last);
        if (cut <= nth) {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(first, last);
}

void sort(int count)
{
    int ends[DEPTH_MAX], depths[DEPTH_MAX];
    int first = 0, last = count, depth = depth_of(count), waiting = 0;
    for (;;) {
        while (last - first > INSERTION_SORT_MAX && depth > 0) {
            int cut = split(first, last);
            depth--;
            ends[waiting] = last;
            depths[waiting++] = depth;
            last = cut;
        }
        if (last - first > INSERTION_SORT_MAX) {
            heap_make(first, last - first);
            heap_sort(first, last - first);
        }
        if (waiting == 0) {
            break;
        }
        first = last;
        last = ends[--waiting];
        depth = depths[waiting];
    }
    insertion_sort(0, count);
}

/* ---- rows: |places| begins with the result's, in order --------------------------------------- */

void select_few(uint64_t row)
{
    int k = int(K.k);
    load_entries(row, k);
    if (lane() == 0u) {
        heap_make(0, k);
        is_found = 0u;
    }
    barrier();
    for (int64_t begin = K.k; begin < K.n; begin += lanes()) {
        int64_t i = begin + lane();
        if (i < K.n) {
            chunk[lane()] = key_at(row + uint64_t(i * K.in_step));
            if (chunk[lane()] > keys[0]) {
                is_found = 1u;
            }
        }
        barrier();
        if (lane() == 0u && is_found == 1u) {
            for (uint j = 0u; j < lanes() && begin + j < K.n; j++) {
                if (chunk[j] > keys[0]) {
                    heap_adjust(0, 0, k, chunk[j], uint(begin + j));
                }
            }
            is_found = 0u;
        }
        barrier();
    }
    if (lane() == 0u) {
        heap_sort(0, k);
    }
    barrier();
}

/* Places all elements by rank. False if the order is not unique: |places| must be filled again. */
bool rank_all(int n)
{
    for (int i = int(lane()); i < n; i += int(lanes())) {
        int above = 0, same = 0;
        for (int j = 0; j < n; j++) {
            above += int(keys[j] > keys[i]);
            same += int(keys[j] == keys[i] && (j < i || K.is_stable == 0u));
        }
        above += K.is_stable == 1u ? same : 0;
        if (above < int(K.k)) {
            places[above] = uint(i);
            if (same > 1 && K.is_stable == 0u) {
                is_found = 1u;
            }
        }
    }
    barrier();
    return is_found == 0u;
}

void sort_all(uint64_t row)
{
    int n = int(K.n);
    is_found = 0u;
    load_entries(row, n);
    if ((K.is_sorted == 1u || K.is_stable == 1u) && rank_all(n)) {
        return;
    }
    if (lane() == 0u) {
        for (int i = 0; i < n; i++) {
            places[i] = uint(i);
        }
        nth_element(int(K.k) - 1, n);
        if (K.is_sorted == 1u) {
            sort(int(K.k) - 1);
        }
    }
    barrier();
}

void copy(uint64_t to, uint64_t from)
{
    switch (dtype_width(K.dtype)) {
    case 1:
        U8(to).at[0] = U8(from).at[0];
        break;
    case 2:
        U16(to).at[0] = U16(from).at[0];
        break;
    case 4:
        U32(to).at[0] = U32(from).at[0];
        break;
    default:
        U64(to).at[0] = U64(from).at[0];
    }
}

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.rows);
    int64_t width = int64_t(dtype_width(K.dtype));
    for (int64_t r = first; r < end; r++) {
        int64_t from = 0l, to = 0l, left = r;
        for (uint d = K.rank; d-- > 0u; left /= K.dims[d]) {
            from += left % K.dims[d] * K.in[d];
            to += left % K.dims[d] * K.out[d];
        }
        uint64_t row = binding(2) + uint64_t(from * width);
        if (K.is_few == 1u) {
            select_few(row);
        } else {
            sort_all(row);
        }
        for (int i = int(lane()); i < int(K.k); i += int(lanes())) {
            copy(binding(0) + uint64_t(to * width + i * K.value_step),
                 row + uint64_t(places[i] * K.in_step));
            if (binding(1) != 0ul) {
                U64(binding(1) + uint64_t(8l * to + i * K.index_step)).at[0] = uint64_t(places[i]);
            }
        }
        barrier();
    }
}
