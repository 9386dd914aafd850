/* SPDX-License-Identifier: MIT */
/*
 * The beginning of all shaders: how a dispatch finds its tile, its bindings and its constants. The
 * driver's side is struct hal_vulkan_push (hal/vulkan/device.h); the contract is hal/kernel.h. A
 * workgroup is one tile; the driver chooses its number of invocations. contrib/shaders.sh puts the
 * version, the extensions and the workgroup's size in front.
 */

/* hal_kernel.variant of the kernel. Each variant has its own pipeline, so conditions on it are
 * decided when the pipeline is compiled. */
layout(constant_id = 1) const uint variant = 0u;
/* 1 if invocations run on a processor's vector units; 2 to 5 are in matrix.glsl. */
layout(constant_id = 6) const uint on_processor = 0u;

struct Binding {
    uint64_t address; /* 0: no bytes */
    uint64_t bytes;
};

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Bindings {
    Binding at[];
};

layout(push_constant, scalar) uniform Push {
    uint64_t bindings, constants; /* addresses, aligned to 16 */
    uvec3 base, grid;
} push;

/*
 * If all invocations read from one address, llvmpipe (Mesa 26) reads it even if a branch or the end
 * of a loop has left none of them active; then there may be nothing to read. So on a processor each
 * invocation seems to use its own address: the bit that is added is always 0.
 */
uint64_t own(uint64_t address)
{
    return on_processor == 0u ? address : address + (gl_LocalInvocationID.x & uint(address) & 1u);
}

uint64_t constants()
{
    return own(push.constants);
}

/* A binding as elements of one type: U32(binding(0)).at[i]. */
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer U8 { uint8_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer U16 { uint16_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer U32 { uint32_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer U64 { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer U32x4 { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer F32 { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer F32x4 { vec4 at[]; };

/* After CONSTANTS(rt_copy_constants), K.width is a constant of the kernel. */
#define CONSTANTS(type)                                                                            \
    layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Constants        \
    {                                                                                              \
        type k;                                                                                    \
    }
#define K Constants(constants()).k

uint64_t binding(uint index)
{
    return Bindings(own(push.bindings)).at[index].address;
}

uint64_t binding_bytes(uint index)
{
    return Bindings(own(push.bindings)).at[index].bytes;
}

/* The tile's place in the grid, and its number. */
uvec3 tile()
{
    return push.base + gl_WorkGroupID;
}

uint tile_number()
{
    uvec3 t = tile();
    return (t.z * push.grid.y + t.y) * push.grid.x + t.x;
}

/* The invocation's number in the workgroup, and the number of invocations. */
uint lane()
{
    return gl_LocalInvocationID.x;
}

uint lanes()
{
    return gl_WorkGroupSize.x;
}
