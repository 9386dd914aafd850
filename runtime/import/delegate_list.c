/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "runtime/import/delegate.h"
#include "runtime/import/vulkan.h"
#include "runtime/import/xnnpack.h"

static const struct {
    const char *id;
    rt_import_delegate_f *import;
} delegates[] = {
    {"VulkanBackend", rt_import_vulkan},
    {"XnnpackBackend", rt_import_xnnpack},
    {NULL, NULL},
};

rt_import_delegate_f *rt_delegate_find(const char *id)
{
    for (size_t i = 0; delegates[i].id; i++) {
        if (strcmp(delegates[i].id, id) == 0) {
            return delegates[i].import;
        }
    }
    return NULL;
}
