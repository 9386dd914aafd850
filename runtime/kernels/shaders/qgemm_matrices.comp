/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of qgemm.c with matrices of s8 that a subgroup multiplies, with int32 sums. A
 * subgroup keeps DOWN x ACROSS result matrices in registers; the subgroups of a workgroup are side
 * by side. Both operands pass through shared memory, where the words of a pixel and of a column are
 * contiguous.
 *
 * If groups of weights have scales, the sums of each group are converted to floats in place: a
 * matrix of scales has its elements in the same places.
 *
 * form qgemm_matrices: GL_KHR_cooperative_matrix GL_KHR_memory_scope_semantics GL_KHR_shader_subgroup_basic
 */
#define CENTRED
#include "runtime/kernels/shaders/qgemm.glsl"
#include "hal/vulkan/shaders/matrix.glsl"

#define DOWN 2u
#define ACROSS 4u
#define STEPS 2u /* matrix products along k between barriers */

const uint high = DOWN * matrix_m;               /* pixels of a workgroup */
const uint strip = ACROSS * matrix_n;            /* columns of a subgroup */
const uint wide = strip * subgroups;             /* columns of a workgroup */
const uint step_words = matrix_k / 4u;
const uint depth = STEPS * step_words;           /* words */
const uint pitch = depth + 4u;                   /* a multiple of 16 bytes that changes the bank */
const uint patch_size = matrix_m * matrix_n;

#define MATRIX_A coopmat<int8_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA>
#define MATRIX_B coopmat<int8_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB>
#define SUMS(type) coopmat<type, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

shared Pixel shared_pixels[high];
shared uint64_t shared_columns[wide];
shared uint shared_a[high * pitch];
shared uint shared_b[wide * pitch];
shared float shared_scales[wide]; /* for the columns, of the current group */
shared int shared_whole[patch_size * subgroups];
shared float shared_total[patch_size * subgroups];

/* Copies |words| words from row |k| on, with zeros up to |padded|. */
void share(Block b, Runs r, uint column, uint k, uint words, uint padded)
{
    for (uint at = lane(); at < high * padded; at += lanes()) {
        uint d = at % padded, m = at / padded, row = k + d * WORD, word = 0u;
        if (d < words) {
            uint run = r.count == 1u ? 0u : row / r.padded;
            word = input_word(b, r, shared_pixels[m], run, row - run * r.padded) ^ 0x80808080u;
        }
        shared_a[m * pitch + d] = word;
    }
    for (uint at = lane(); at < wide * padded; at += lanes()) {
        uint j = at % wide, d = at / wide;
        shared_b[j * pitch + d] = d < words ? weight_word(shared_columns[j], k + d * WORD) : 0u;
    }
    if (variant == RT_QGEMM_GROUPED) {
        for (uint j = lane(); j < wide; j += lanes()) {
            shared_scales[j] = group_scale(b, k, min(column + j, b.columns - 1u));
        }
    }
}

/* Computes high x wide outputs. */
void multiply(Block b, Runs r, uint column)
{
    uint own = gl_SubgroupID * strip, rows = uint(K.k);
    SUMS(int32_t) sums[DOWN][ACROSS];
    SUMS(float) totals[DOWN][ACROSS];
    [[unroll]] for (uint i = 0u; i < DOWN; i++) {
        [[unroll]] for (uint j = 0u; j < ACROSS; j++) {
            sums[i][j] = SUMS(int32_t)(0);
            totals[i][j] = SUMS(float)(0.0);
        }
    }
    for (uint k = 0u; k < rows;) {
        uint left = variant == RT_QGEMM_GROUPED ? K.group - k % K.group : rows - k;
        uint words = min(left / WORD, depth), steps = (words + step_words - 1u) / step_words;
        share(b, r, column, k, words, steps * step_words);
        barrier();
        for (uint step = 0u; step < steps; step++) {
            MATRIX_A a[DOWN];
            [[unroll]] for (uint i = 0u; i < DOWN; i++) {
                coopMatLoad(a[i], shared_a, i * matrix_m * pitch + step * step_words, pitch,
                            gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint j = 0u; j < ACROSS; j++) {
                MATRIX_B w;
                coopMatLoad(w, shared_b, (own + j * matrix_n) * pitch + step * step_words, pitch,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0u; i < DOWN; i++) {
                    sums[i][j] = coopMatMulAdd(a[i], w, sums[i][j]);
                }
            }
        }
        k += words * WORD;
        if (variant == RT_QGEMM_GROUPED && (k % K.group == 0u || k == rows)) {
            [[unroll]] for (uint j = 0u; j < ACROSS; j++) {
                SUMS(float) scales;
                coopMatLoad(scales, shared_scales, own + j * matrix_n, 0u,
                            gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint i = 0u; i < DOWN; i++) {
                    totals[i][j] += SUMS(float)(sums[i][j]) * scales;
                    sums[i][j] = SUMS(int32_t)(0);
                }
            }
        }
        barrier();
    }
    uint patch_at = gl_SubgroupID * patch_size;
    [[unroll]] for (uint i = 0u; i < DOWN; i++) {
        [[unroll]] for (uint j = 0u; j < ACROSS; j++) {
            if (variant == RT_QGEMM_GROUPED) {
                coopMatStore(totals[i][j], shared_total, patch_at, matrix_n,
                             gl_CooperativeMatrixLayoutRowMajor);
            } else {
                coopMatStore(sums[i][j], shared_whole, patch_at, matrix_n,
                             gl_CooperativeMatrixLayoutRowMajor);
            }
            subgroupBarrier();
            for (uint at = gl_SubgroupInvocationID; at < patch_size; at += gl_SubgroupSize) {
                write_out(b, shared_pixels[i * matrix_m + at / matrix_n],
                          column + own + j * matrix_n + at % matrix_n, shared_whole[patch_at + at],
                          shared_total[patch_at + at]);
            }
            subgroupBarrier();
        }
    }
}

void main()
{
    Block b = find_block();
    Runs r = find_runs();
    for (uint first = 0u; first < b.pixels; first += high) {
        for (uint column = 0u; column < b.columns; column += wide) {
            barrier();
            for (uint m = lane(); m < high; m += lanes()) {
                shared_pixels[m] = find_pixel(b, first + m);
            }
            for (uint j = lane(); j < wide; j += lanes()) {
                shared_columns[j] = column_address(b, min(column + j, b.columns - 1u));
            }
            barrier();
            multiply(b, r, column);
        }
    }
}
