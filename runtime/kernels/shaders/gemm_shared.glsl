/* SPDX-License-Identifier: MIT */
/*
 * For forms of gemm.c's dispatch whose lanes multiply from shared memory. Include this after
 * gemm.glsl, ROWS, HIGH and WIDE. HIGH x WIDE outputs are multiplied at a time, in tiles of ROWS x
 * 8. Each form defines its own multiply_shared(), which ends with write_sums().
 *
 * The rows of a tile are as far apart as there are tiles below each other, and its two vectors of
 * columns as there are tiles beside each other: neighbouring lanes read neighbouring vectors, in
 * different banks, and write neighbouring results.
 */
const uint ACROSS = WIDE / 8u, DOWN = HIGH / ROWS; /* tiles */

shared Pixel shared_pixels[HIGH]; /* finding a pixel divides: once for all channels */

/* Computes tile |part|, if it exists; all lanes call this. */
void multiply_shared(Block b, uint column, uint part);

/* Writes the sums of tile (x, y), if |works|. */
void write_sums(Block b, uint column, uint x, uint y, bool works, vec4 sums[2u * ROWS])
{
    for (uint m = 0u; m < ROWS; m++) {
        Pixel p = shared_pixels[y + m * DOWN];
        p.exists = p.exists && works;
        for (uint j = 0u; j < 8u; j++) {
            uint at = column + 4u * (x + j / 4u * ACROSS) + j % 4u;
            write_out(b, p, at, sums[2u * m + j / 4u][j % 4u]);
        }
    }
}

void main()
{
    find_walk();
    Block b = find_block();
    for (uint first = 0u; first < b.pixels; first += HIGH) {
        barrier();
        for (uint m = lane(); m < HIGH; m += lanes()) {
            shared_pixels[m] = find_pixel(b, first + m);
        }
        barrier();
        for (uint column = 0u; column < b.columns; column += WIDE) {
            for (uint part = 0u; part < DOWN * ACROSS; part += lanes()) {
                multiply_shared(b, column, part + lane());
            }
        }
    }
}
