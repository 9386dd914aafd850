// SPDX-License-Identifier: MIT
// Vectors of texts: how alike they are, and where they lie on a map of two dimensions.

const ROUNDS = 100; // of the power method; more do not move a point that is seen

function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

export function cosine(a, b) {
    return dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);
}

// The rows without their mean.
function centred(rows) {
    const mean = rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
    return rows.map((row) => row.map((value, i) => value - mean[i]));
}

// The direction in which the rows differ most, by the power method; at right angles to |found|.
function principal(rows, found) {
    let direction = rows[0].map((_, i) => Math.cos(i * 1.7 + found.length));
    for (let round = 0; round < ROUNDS; round++) {
        const next = new Array(direction.length).fill(0);
        for (const row of rows) {
            const share = dot(row, direction);
            row.forEach((value, i) => {
                next[i] += share * value;
            });
        }
        for (const other of found) {
            const share = dot(next, other);
            other.forEach((value, i) => {
                next[i] -= share * value;
            });
        }
        const length = Math.sqrt(dot(next, next));
        if (!(length > 1e-12)) {
            return direction.map(() => 0); // they differ in no further direction
        }
        direction = next.map((value) => value / length);
    }
    return direction;
}

// Principal components: {points, shares}: [x, y] of each row, and how much of all differences each
// axis has, from 0 to 1.
export function mapOf(rows) {
    const moved = centred(rows);
    const axes = [];
    axes.push(principal(moved, axes));
    axes.push(principal(moved, axes));
    const all = moved.reduce((sum, row) => sum + dot(row, row), 0) || 1;
    const points = moved.map((row) => axes.map((axis) => dot(row, axis)));
    return {
        points,
        shares: [0, 1].map((i) => points.reduce((sum, point) => sum + point[i] ** 2, 0) / all),
    };
}
