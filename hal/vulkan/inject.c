/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/vulkan/inject.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define FAULTS_MAX 8

struct fault {
    enum hal_vulkan_site site;
    unsigned long number; /* of the call, counted from 1 */
    bool and_later;
};

static const struct {
    const char *word;
    VkResult result;
} sites[HAL_VULKAN_SITES] = {
#define INJECT(name, word, result) [HAL_VULKAN_##name] = {word, result},
#include "hal/vulkan/inject.def"
#undef INJECT
};

/* Read once, then constant. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fault faults[FAULTS_MAX];
static unsigned fault_count;
static atomic_ulong calls[HAL_VULKAN_SITES];

/* Reads a fault such as "memory=3-"; unknown text is skipped. Returns the remaining text. */
static const char *read_fault(const char *text)
{
    size_t word_len = strcspn(text, "=,");
    if (text[word_len] != '=') {
        return text + word_len;
    }
    char *end;
    unsigned long number = strtoul(text + word_len + 1, &end, 10);
    for (int i = 0; i < HAL_VULKAN_SITES && fault_count < FAULTS_MAX; i++) {
        if (strlen(sites[i].word) == word_len && memcmp(sites[i].word, text, word_len) == 0) {
            faults[fault_count++] = (struct fault){(enum hal_vulkan_site)i, number, *end == '-'};
        }
    }
    return end + strcspn(end, ",");
}

static void read_faults(void)
{
    const char *text = getenv("PTED_VULKAN_FAULTS");
    while (text && *text) {
        text = read_fault(text);
        text += *text == ',';
    }
}

VkResult hal_vulkan_inject(enum hal_vulkan_site site)
{
    must(site < HAL_VULKAN_SITES);
    pthread_once(&once, read_faults);
    if (fault_count == 0) {
        return VK_SUCCESS;
    }
    unsigned long number = atomic_fetch_add_explicit(&calls[site], 1, memory_order_relaxed) + 1;
    for (unsigned i = 0; i < fault_count; i++) {
        const struct fault *fault = &faults[i];
        if (fault->site == site &&
            (number == fault->number || (fault->and_later && number > fault->number))) {
            return sites[site].result;
        }
    }
    return VK_SUCCESS;
}
