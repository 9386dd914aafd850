/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an archive of numpy, or as one array of it. Arrays that are accepted lie in the file
 * or in memory of their own, have the bytes that their shape says, and names that no other one has.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/cli/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COPY_MAX ((size_t)1 << 20) /* bytes of an array whose elements are put in order here */

static void check_refused(enum status status, const struct error *err)
{
    must(status == err->code && err->text[0] != '\0' && status != ST_INTERNAL);
}

static void check_array(const struct npy *array)
{
    struct error err;
    size_t bytes;
    must(shape_bytes(&array->shape, array->dtype, &bytes, &err) == ST_OK);
    must(bytes == array->data.len);
    uint8_t *copy = bytes <= COPY_MAX ? malloc(bytes + 1) : NULL;
    if (copy) {
        npy_copy(array, copy);
    }
    free(copy);
}

static void check_archive(struct span file, const struct npz *npz)
{
    must(npz->count <= NPZ_ARRAYS_MAX);
    for (uint32_t i = 0; i < npz->count; i++) {
        const struct npz_array *item = &npz->items[i];
        const uint8_t *data = item->array.data.ptr;
        size_t len = strlen(item->name);
        must(len >= 1 && len <= NPZ_NAME_MAX && npz_find(npz, item->name) == item);
        must(item->inflated || item->array.data.len == 0 ||
             (data >= file.ptr && data + item->array.data.len <= file.ptr + file.len));
        check_array(&item->array);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span file = span_of(data, size);
    struct error err = {0};
    struct npy array;
    enum status status = npy_parse(file, &array, &err);
    if (status == ST_OK) {
        check_array(&array);
    } else {
        check_refused(status, &err);
    }
    struct npz npz;
    err = (struct error){0};
    status = npz_parse(&npz, file, &err);
    if (status == ST_OK) {
        check_archive(file, &npz);
    } else {
        check_refused(status, &err);
    }
    npz_fini(&npz);
    return 0;
}
