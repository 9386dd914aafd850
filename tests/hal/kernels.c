/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include "tests/hal/shaders/generated/spirv.h"

static uint32_t number_of(const struct hal_args *args, struct hal_tile tile)
{
    return (tile.z * args->grid[1] + tile.y) * args->grid[0] + tile.x;
}

static void number(const struct hal_args *args, struct hal_tile tile)
{
    const uint32_t *constants = args->constants;
    uint32_t *out = args->bindings[0];
    uint32_t i = number_of(args, tile);
    out[i] = i * constants[0] + constants[1];
}

static void increment(const struct hal_args *args, struct hal_tile tile)
{
    uint32_t *out = args->bindings[0];
    out[number_of(args, tile)]++;
}

static void twice(const struct hal_args *args, struct hal_tile tile)
{
    uint32_t *out = args->bindings[0];
    out[number_of(args, tile)] *= 2;
}

uint64_t cts_mix_of(uint64_t seed, const uint64_t *values, size_t count)
{
    uint64_t h = seed;
    for (size_t i = 0; i < count; i++) {
        h = (h ^ values[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h + 1;
}

static void mix(const struct hal_args *args, struct hal_tile tile)
{
    uint64_t seed, values[HAL_BINDINGS_MAX];
    size_t count = 0;
    (void)tile;
    memcpy(&seed, args->constants, sizeof(seed));
    while (count + 1 < args->binding_count && args->bindings[count + 1]) {
        memcpy(&values[count], args->bindings[count + 1], sizeof(seed));
        count++;
    }
    seed = cts_mix_of(seed, values, count);
    memcpy(args->bindings[0], &seed, sizeof(seed));
}

static void scratch(const struct hal_args *args, struct hal_tile tile)
{
    volatile uint8_t *mine = args->scratch;
    uint32_t i = number_of(args, tile);
    uint32_t *out = args->bindings[0];
    bool intact = (uintptr_t)args->scratch % 64 == 0;
    for (uint32_t k = 0; k < CTS_SCRATCH_BYTES; k++) {
        mine[k] = (uint8_t)(i + k);
    }
    for (uint32_t k = 0; k < CTS_SCRATCH_BYTES; k++) {
        intact &= mine[k] == (uint8_t)(i + k);
    }
    out[i] = intact;
}

const struct hal_kernel cts_number = {
    .name = "number", .cpu = number, .spirv = HAL_SPIRV(number_spirv)};
const struct hal_kernel cts_increment = {
    .name = "increment", .cpu = increment, .spirv = HAL_SPIRV(increment_spirv)};
const struct hal_kernel cts_twice = {.name = "twice", .cpu = twice};
const struct hal_kernel cts_mix = {.name = "mix", .cpu = mix, .spirv = HAL_SPIRV(mix_spirv)};
const struct hal_kernel cts_scratch = {.name = "scratch", .cpu = scratch};
const struct hal_kernel cts_formless = {.name = "formless"};
