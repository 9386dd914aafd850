/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/vulkan/features.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/vulkan/inject.h"

/* ---- extensions ------------------------------------------------------------------------------ */

enum extension { IMPORT, SUBGROUP_SIZES, DOT_PRODUCTS, MATRICES, EXTENSIONS };

static const char *const extension_names[EXTENSIONS] = {
    [IMPORT] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    [SUBGROUP_SIZES] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
    [DOT_PRODUCTS] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
    [MATRICES] = HAL_VULKAN_MATRIX_EXTENSION,
};
_Static_assert(EXTENSIONS <= HAL_VULKAN_EXTENSIONS_MAX, "room for all names");

/* The extensions that |physical| has, as bits. A device lists an extension even if its version of
 * Vulkan includes it. */
static uint32_t find_extensions(const struct hal_vulkan_instance *instance,
                                VkPhysicalDevice physical)
{
    uint32_t count = 0, found = 0;
    if (instance->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL) !=
        VK_SUCCESS) {
        return 0;
    }
    VkExtensionProperties *list = calloc(count + 1, sizeof(*list));
    if (list && instance->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, list) ==
                    VK_SUCCESS) {
        for (uint32_t i = 0; i < count * EXTENSIONS; i++) {
            uint32_t e = i % EXTENSIONS;
            found |= (uint32_t)!strcmp(list[i / EXTENSIONS].extensionName, extension_names[e]) << e;
        }
    }
    free(list);
    return found;
}

bool hal_vulkan_can_import(const struct hal_vulkan_abilities *abilities)
{
    return abilities->extensions >> IMPORT & 1;
}

/* ---- features -------------------------------------------------------------------------------- */

struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT sizes;
    VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dots;
    struct hal_vulkan_matrix_features matrices;
};

static void add_link(VkBaseOutStructure **last, void *next)
{
    (*last)->pNext = next;
    *last = next;
}

/* Makes the list of structures that Vulkan reads and writes, including those of |extensions|. */
static void chain(struct features *f, uint32_t extensions)
{
    *f = (struct features){
        .core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2},
        .v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES},
        .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES},
        .sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT},
        .dots = {.sType =
                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR},
        .matrices = {.type = HAL_VULKAN_MATRIX_FEATURES_TYPE},
    };
    VkBaseOutStructure *last = (void *)&f->core;
    add_link(&last, &f->v11);
    add_link(&last, &f->v12);
    if (extensions >> SUBGROUP_SIZES & 1) {
        add_link(&last, &f->sizes);
    }
    if (extensions >> DOT_PRODUCTS & 1) {
        add_link(&last, &f->dots);
    }
    if (extensions >> MATRICES & 1) {
        add_link(&last, &f->matrices);
    }
}

static void read_features(const struct hal_vulkan_instance *instance, VkPhysicalDevice physical,
                          uint32_t extensions, struct features *out)
{
    chain(out, extensions);
    instance->vkGetPhysicalDeviceFeatures2(physical, &out->core);
}

/*
 * Each feature that a shader or the driver relies on is in one of these tables; others are not
 * used. The first table has the features that all shaders may use, the second has the features of
 * each capability. hal_vulkan_find_abilities() checks what Vulkan does not express as a feature.
 */
#define FEATURE(member) offsetof(struct features, member)

static const struct {
    const char *name;
    size_t offset;
} needed[] = {
#define NEED(where, feature)                                                                       \
    {                                                                                              \
#feature, FEATURE(where.feature)                                                           \
    }
    NEED(core.features, shaderInt64),
    NEED(core.features, shaderInt16),
    NEED(v11, storageBuffer16BitAccess),
    NEED(v12, storageBuffer8BitAccess),
    NEED(v12, shaderInt8),
    NEED(v12, scalarBlockLayout),
    NEED(v12, bufferDeviceAddress),
    NEED(v12, timelineSemaphore),
#undef NEED
};

#define MEMBERS_MAX 3

/* The features that capabilities need; 0 ends the list. */
static const struct {
    uint32_t capabilities; /* each of them needs all members */
    size_t members[MEMBERS_MAX];
} wanted[] = {
    {HAL_F64, {FEATURE(core.features.shaderFloat64)}},
    {HAL_F16 | HAL_MATRICES_F16, {FEATURE(v12.shaderFloat16)}},
    {HAL_DOTS, {FEATURE(dots.shaderIntegerDotProduct)}},
    {HAL_MATRICES_F16 | HAL_MATRICES_S8,
     {FEATURE(matrices.matrices), FEATURE(v12.vulkanMemoryModel)}},
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static VkBool32 *member(struct features *features, size_t offset)
{
    return (VkBool32 *)(void *)((char *)features + offset);
}

enum status hal_vulkan_check_features(const struct hal_vulkan_instance *instance,
                                      VkPhysicalDevice physical, const char *name,
                                      struct error *err)
{
    struct features has;
    read_features(instance, physical, 0, &has);
    for (size_t i = 0; i < LENGTH(needed); i++) {
        if (!*member(&has, needed[i].offset) ||
            hal_vulkan_inject(HAL_VULKAN_FEATURES) != VK_SUCCESS) {
            return error_set(err, ST_UNSUPPORTED, "%s: the device lacks the feature %s", name,
                             needed[i].name);
        }
    }
    return ST_OK;
}

/* All capabilities except those that lack a feature. */
static uint32_t with_features(struct features *has)
{
    uint32_t lacking = 0;
    for (size_t i = 0; i < LENGTH(wanted) * MEMBERS_MAX; i++) {
        size_t offset = wanted[i / MEMBERS_MAX].members[i % MEMBERS_MAX];
        if (offset && !*member(has, offset)) {
            lacking |= wanted[i / MEMBERS_MAX].capabilities;
        }
    }
    return ((1u << HAL_CAPABILITIES) - 1) & ~lacking;
}

VkResult hal_vulkan_create_device(const struct hal_vulkan_instance *instance,
                                  VkPhysicalDevice physical,
                                  const struct hal_vulkan_abilities *abilities,
                                  VkDeviceCreateInfo info, VkDevice *out_device)
{
    struct features enabled;
    const char *names[EXTENSIONS];
    must(!info.pNext && info.enabledExtensionCount == 0);
    chain(&enabled, abilities->extensions);
    for (size_t i = 0; i < LENGTH(needed); i++) {
        *member(&enabled, needed[i].offset) = VK_TRUE;
    }
    for (size_t i = 0; i < LENGTH(wanted) * MEMBERS_MAX; i++) {
        size_t offset = wanted[i / MEMBERS_MAX].members[i % MEMBERS_MAX];
        if (offset && wanted[i / MEMBERS_MAX].capabilities & abilities->capabilities) {
            *member(&enabled, offset) = VK_TRUE;
        }
    }
    enabled.sizes.computeFullSubgroups = abilities->full_subgroups;
    for (uint32_t e = 0; e < EXTENSIONS; e++) {
        if (abilities->extensions >> e & 1) {
            names[info.enabledExtensionCount++] = extension_names[e];
        }
    }
    info.pNext = &enabled.core;
    info.ppEnabledExtensionNames = names;
    return instance->vkCreateDevice(physical, &info, NULL, out_device);
}

/* ---- capabilities ---------------------------------------------------------------------------- */

/* Larger matrices leave no room in shared memory for the data of shaders. */
#define MATRIX_MN_MAX 16
#define MATRIX_K_MAX 32

/* Does the device also have matrices of |m| x |n| floats as sums? */
static bool has_float_sums(const struct hal_vulkan_matrix_properties *list, uint32_t count,
                           uint32_t m, uint32_t n)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        found |= list[i].m == m && list[i].n == n && list[i].result == HAL_VULKAN_MATRIX_F32 &&
                 list[i].scope == HAL_VULKAN_MATRIX_OF_SUBGROUP;
    }
    return found;
}

/* The largest matrices with elements of type |in| and sums of type |out|. The device must have
 * float sums of the same size as well: weights with a scale for each group need them. */
static struct hal_vulkan_shape find_shape(const struct hal_vulkan_matrix_properties *list,
                                          uint32_t count, enum hal_vulkan_matrix_element in,
                                          enum hal_vulkan_matrix_element out)
{
    struct hal_vulkan_shape best = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        const struct hal_vulkan_matrix_properties *p = &list[i];
        bool fits = p->a == in && p->b == in && p->c == out && p->result == out && !p->saturates &&
                    p->scope == HAL_VULKAN_MATRIX_OF_SUBGROUP && p->m <= MATRIX_MN_MAX &&
                    p->n <= MATRIX_MN_MAX && p->k <= MATRIX_K_MAX &&
                    has_float_sums(list, count, p->m, p->n);
        if (fits && (uint64_t)p->m * p->n * p->k > (uint64_t)best.m * best.n * best.k) {
            best = (struct hal_vulkan_shape){p->m, p->n, p->k};
        }
    }
    return best;
}

static void find_shapes(const struct hal_vulkan_instance *instance, VkPhysicalDevice physical,
                        struct hal_vulkan_abilities *a)
{
    struct hal_vulkan_matrix_properties
        list[128]; /* the longest known list, NVIDIA's, has half as many */
    uint32_t count = LENGTH(list);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (struct hal_vulkan_matrix_properties){.type = HAL_VULKAN_MATRIX_PROPERTIES_TYPE};
    }
    if (!(a->extensions >> MATRICES & 1) || !instance->list_matrices ||
        instance->list_matrices(physical, &count, list) < VK_SUCCESS) {
        return;
    }
    a->matrices_f16 = find_shape(list, count, HAL_VULKAN_MATRIX_F16, HAL_VULKAN_MATRIX_F32);
    a->matrices_s8 = find_shape(list, count, HAL_VULKAN_MATRIX_S8, HAL_VULKAN_MATRIX_S32);
}

/* For tests: changes |chosen| as the environment says, within |possible|. */
static uint32_t as_wanted(uint32_t chosen, uint32_t possible)
{
    const char *text = getenv("PTED_VULKAN_CAPABILITIES");
    for (text = text ? text : ""; *text; text += *text == ',') {
        size_t len = strcspn(text, ",");
        uint32_t bits = 0;
        for (unsigned i = 0; i <= HAL_CAPABILITIES && len > 0; i++) {
            const char *word = i < HAL_CAPABILITIES ? hal_capability_word(i) : "all";
            if (strlen(word) == len - 1 && memcmp(word, text + 1, len - 1) == 0) {
                bits = i < HAL_CAPABILITIES ? 1u << i : UINT32_MAX;
            }
        }
        chosen = *text == '+' ? chosen | (bits & possible) : chosen & ~bits;
        text += len;
    }
    return chosen;
}

static bool has_subgroup_operations(const VkPhysicalDeviceSubgroupProperties *properties)
{
    const VkSubgroupFeatureFlags needs = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                         VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                         VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    return properties->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT &&
           (properties->supportedOperations & needs) == needs;
}

/* Clears |bit| in |bits| unless |condition| is true. */
static uint32_t only_if(bool condition, uint32_t bits, uint32_t bit)
{
    return condition ? bits : bits & ~bit;
}

void hal_vulkan_find_abilities(const struct hal_vulkan_instance *instance,
                               VkPhysicalDevice physical, struct hal_vulkan_abilities *a)
{
    VkPhysicalDeviceShaderIntegerDotProductPropertiesKHR dots = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES_KHR};
    VkPhysicalDeviceFloatControlsProperties floats = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &floats};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &subgroup};
    struct features has;
    *a = (struct hal_vulkan_abilities){.extensions = find_extensions(instance, physical)};
    floats.pNext = a->extensions >> DOT_PRODUCTS & 1 ? &dots : NULL;
    instance->vkGetPhysicalDeviceProperties2(physical, &all);
    read_features(instance, physical, a->extensions, &has);
    find_shapes(instance, physical, a);
    a->subgroup = subgroup.subgroupSize;
    a->full_subgroups = has.sizes.computeFullSubgroups;
    a->keeps_nan = floats.shaderSignedZeroInfNanPreserveFloat32;

    uint32_t possible = with_features(&has);
    possible = only_if(has_subgroup_operations(&subgroup), possible, HAL_SUBGROUPS);
    possible = only_if(a->matrices_f16.m > 0, possible, HAL_MATRICES_F16);
    possible = only_if(a->matrices_s8.m > 0, possible, HAL_MATRICES_S8);
    uint32_t pays =
        only_if(dots.integerDotProduct4x8BitPackedSignedAccelerated, possible, HAL_DOTS);
    a->is_processor = all.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (a->is_processor) {
        pays &= HAL_F64 | HAL_SUBGROUPS; /* a processor emulates the others */
    }
    a->capabilities = as_wanted(pays, possible);
    must((a->capabilities & ~possible) == 0);
}

static void print_shape(struct buf *out, const struct hal_vulkan_shape *shape)
{
    buf_printf(out, " %ux%ux%u", shape->m, shape->n, shape->k);
}

void hal_vulkan_print_abilities(const struct hal_vulkan_abilities *a, struct buf *out)
{
    const char *separator = "; ";
    for (unsigned i = 0; i < HAL_CAPABILITIES; i++) {
        if (!(a->capabilities >> i & 1)) {
            continue;
        }
        buf_printf(out, "%s%s", separator, hal_capability_word(i));
        separator = ", ";
        if (i == HAL_INDEX_SUBGROUPS) {
            buf_printf(out, " of %u", a->subgroup);
        } else if (i == HAL_INDEX_MATRICES_F16) {
            print_shape(out, &a->matrices_f16);
        } else if (i == HAL_INDEX_MATRICES_S8) {
            print_shape(out, &a->matrices_s8);
        }
    }
}
