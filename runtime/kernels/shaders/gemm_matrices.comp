/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of gemm.c for two operands of halves, on devices whose subgroups multiply matrices.
 * Products of halves are exact in floats and are added as floats, so this is the float product in
 * another order of additions. The workgroup copies DEPTH summands of HIGH pixels and WIDE columns
 * as halves to shared memory, from where its subgroups load matrices. Each subgroup computes a part
 * of the result matrices.
 *
 * form gemm_matrices: GL_KHR_cooperative_matrix GL_KHR_memory_scope_semantics GL_KHR_shader_subgroup_basic GL_EXT_shader_explicit_arithmetic_types_float16
 */
#include "runtime/kernels/shaders/gemm.glsl"
#include "hal/vulkan/shaders/matrix.glsl"

/* Numbers of result matrices down and across, and of matrices along the summands. */
const uint DOWN = 64u / matrix_m, ACROSS = 64u / matrix_n, ROUNDS = 32u / matrix_k;
const uint HIGH = DOWN * matrix_m, WIDE = ACROSS * matrix_n, DEPTH = ROUNDS * matrix_k;

/* Parts of the results, one for each subgroup that the workgroup should have, and the rows and
 * columns of matrices in a part. */
const uint PARTS_DOWN = DOWN < subgroups ? DOWN : subgroups;
const uint PARTS_ACROSS = subgroups / PARTS_DOWN < ACROSS ? subgroups / PARTS_DOWN : ACROSS;
const uint ROWS = (DOWN + PARTS_DOWN - 1u) / PARTS_DOWN;
const uint COLUMNS = (ACROSS + PARTS_ACROSS - 1u) / PARTS_ACROSS;

/* Strides in vectors. Matrices begin at multiples of 16 bytes, and consecutive rows are in
 * different banks. */
const uint STRIDE_A = DEPTH / 4u + 2u, STRIDE_B = WIDE / 4u + 2u;

shared Pixel shared_pixels[HIGH];
shared f16vec4 shared_a[HIGH * STRIDE_A], shared_b[DEPTH * STRIDE_B];
shared float shared_sums[HIGH * WIDE];

/* Copies summands [begin, begin + DEPTH). */
void share(Block b, uint column, uint begin)
{
    for (uint i = lane(); i < HIGH * DEPTH / 4u; i += lanes()) {
        uint c = i % (DEPTH / 4u), m = i / (DEPTH / 4u);
        shared_a[m * STRIDE_A + c] = f16vec4(read_pixel(shared_pixels[m], begin + 4u * c));
    }
    uint j = lane() % (WIDE / 4u); /* the number of lanes is a multiple of these */
    uint64_t weights = weights_of(b, column + 4u * j);
    for (uint c = lane() / (WIDE / 4u); c < DEPTH; c += lanes() / (WIDE / 4u)) {
        shared_b[c * STRIDE_B + j] = f16vec4(read_weights(weights, begin + c));
    }
}

/* Computes the sums of |part|, if it exists. */
void multiply(Block b, uint column, uint part)
{
    bool works = part < PARTS_DOWN * PARTS_ACROSS;
    uint y = part % PARTS_DOWN * ROWS, x = part / PARTS_DOWN * COLUMNS;
    coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>
        sums[ROWS * COLUMNS];
    coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA> left;
    coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB> right[COLUMNS];
    [[unroll]] for (uint i = 0u; i < ROWS * COLUMNS; i++) {
        sums[i] = coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>(0);
    }
    for (uint begin = 0u; begin < depth(); begin += DEPTH) {
        share(b, column, begin);
        barrier();
        for (uint k = 0u; works && k < ROUNDS; k++) {
            [[unroll]] for (uint j = 0u; j < COLUMNS; j++) {
                uint at = k * matrix_k * STRIDE_B + min(x + j, ACROSS - 1u) * (matrix_n / 4u);
                coopMatLoad(right[j], shared_b, at, STRIDE_B, gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                uint at = min(y + i, DOWN - 1u) * matrix_m * STRIDE_A + k * (matrix_k / 4u);
                coopMatLoad(left, shared_a, at, STRIDE_A, gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint j = 0u; j < COLUMNS; j++) {
                    sums[i * COLUMNS + j] = coopMatMulAdd(left, right[j], sums[i * COLUMNS + j]);
                }
            }
        }
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < ROWS; i++) {
        [[unroll]] for (uint j = 0u; j < COLUMNS; j++) {
            if (works && y + i < DOWN && x + j < ACROSS) {
                uint at = (y + i) * matrix_m * WIDE + (x + j) * matrix_n;
                coopMatStore(sums[i * COLUMNS + j], shared_sums, at, WIDE,
                             gl_CooperativeMatrixLayoutRowMajor);
            }
        }
    }
}

void main()
{
    find_walk();
    Block b = find_block();
    for (uint first = 0u; first < b.pixels; first += HIGH) {
        for (uint m = lane(); m < HIGH; m += lanes()) {
            shared_pixels[m] = find_pixel(b, first + m);
        }
        barrier();
        for (uint column = 0u; column < b.columns; column += WIDE) {
            for (uint part = 0u; part < PARTS_DOWN * PARTS_ACROSS; part += gl_NumSubgroups) {
                multiply(b, column, part + gl_SubgroupID);
            }
            barrier();
            for (uint i = lane(); i < HIGH * WIDE; i += lanes()) {
                write_out(b, shared_pixels[i / WIDE], column + i % WIDE, shared_sums[i]);
            }
            barrier();
        }
    }
}
