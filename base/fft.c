/* SPDX-License-Identifier: MIT */
/* Discrete Fourier transforms; see base/fft.h. */
#include "config.h"

#include "base/fft.h"

#include <math.h>
#include <string.h>

/* From the next prime factor on a chirp is cheaper than stages. */
#define FACTOR_MAX 31
#define PI 3.14159265358979323846

/* ---- plans and tables ------------------------------------------------------------------------ */

static bool factorize(int64_t n, struct fft_scheme *scheme)
{
    static const uint8_t radices[] = {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, FACTOR_MAX};

    scheme->factor_count = 0;
    for (uint32_t i = 0; i < sizeof(radices); i++) {
        for (; n % radices[i] == 0; n /= radices[i]) {
            scheme->factors[scheme->factor_count++] = radices[i];
        }
    }
    return n == 1;
}

struct fft_scheme fft_scheme(int64_t n)
{
    struct fft_scheme scheme = {.n = n, .m = n};

    if (!factorize(n, &scheme)) {
        for (scheme.m = 1; scheme.m < 2 * n - 1;) {
            scheme.m *= 2;
        }
        factorize(scheme.m, &scheme);
    }
    return scheme;
}

static bool is_chirp(const struct fft_scheme *scheme)
{
    return scheme->m != scheme->n;
}

/* For stages, their cosines and sines; for a chirp, the chirp and its transformed conjugate. */
int64_t fft_table_count(const struct fft_scheme *scheme)
{
    return is_chirp(scheme) ? 4 * scheme->m + 2 * scheme->n : 2 * scheme->m;
}

int64_t fft_work_count(const struct fft_scheme *scheme)
{
    return scheme->m;
}

void fft_table(const struct fft_scheme *scheme, double *table, double *work)
{
    double *arrays[4] = {work, work + scheme->m, work + 2 * scheme->m, work + 3 * scheme->m};
    double *chirp = table + 2 * scheme->m, *filter = chirp + 2 * scheme->n;
    struct fft_scheme stages = *scheme;

    for (int64_t k = 0; k < scheme->m; k++) {
        table[k] = cos(2 * PI * (double)k / (double)scheme->m);
        table[scheme->m + k] = -sin(2 * PI * (double)k / (double)scheme->m);
    }
    if (!is_chirp(scheme)) {
        return;
    }
    memset(work, 0, (size_t)(2 * scheme->m) * sizeof(*work));
    for (int64_t k = 0; k < scheme->n; k++) {
        double angle = PI * (double)(k * k % (2 * scheme->n)) / (double)scheme->n;
        chirp[k] = cos(angle);
        chirp[scheme->n + k] = -sin(angle);
        arrays[0][k] = arrays[0][(scheme->m - k) % scheme->m] = cos(angle);
        arrays[1][k] = arrays[1][(scheme->m - k) % scheme->m] = sin(angle);
    }
    stages.n = scheme->m;
    fft_f64(&stages, table, 1, arrays);
    memcpy(filter, arrays[0], (size_t)scheme->m * sizeof(*filter));
    memcpy(filter + scheme->m, arrays[1], (size_t)scheme->m * sizeof(*filter));
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* A stage of radix r turns x[q + s * (p + m * k)] into y[q + s * (r * p + j)], with k and j below
 * r, p below m, q below s. Output j is rotated by p * j steps of the current length. */
struct stage {
    int64_t r, m, s;
    int64_t turn; /* entries of the table in one step of the current length */
    int64_t size; /* of the table */
};

#define DEFINE_FFT(type, suffix)                                                                   \
    static void stage_2_##suffix(const struct stage *t, const type *table, const type *xr,         \
                                 const type *xi, type *restrict yr, type *restrict yi)             \
    {                                                                                              \
        for (int64_t p = 0; p < t->m; p++) {                                                       \
            const type wr = table[p * t->turn], wi = table[t->size + p * t->turn];                 \
            const type *ar = xr + t->s * p, *ai = xi + t->s * p;                                   \
            const type *br = ar + t->s * t->m, *bi = ai + t->s * t->m;                             \
            type *zr = yr + t->s * 2 * p, *zi = yi + t->s * 2 * p;                                 \
            for (int64_t q = 0; q < t->s; q++) {                                                   \
                type dr = ar[q] - br[q], di = ai[q] - bi[q];                                       \
                zr[q] = ar[q] + br[q];                                                             \
                zi[q] = ai[q] + bi[q];                                                             \
                zr[t->s + q] = dr * wr - di * wi;                                                  \
                zi[t->s + q] = dr * wi + di * wr;                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void stage_4_##suffix(const struct stage *t, const type *table, const type *xr,         \
                                 const type *xi, type *restrict yr, type *restrict yi)             \
    {                                                                                              \
        const int64_t s = t->s, step = t->s * t->m;                                                \
        for (int64_t p = 0; p < t->m; p++) {                                                       \
            const int64_t at = p * t->turn;                                                        \
            const type w1r = table[at], w1i = table[t->size + at];                                 \
            const type w2r = table[2 * at], w2i = table[t->size + 2 * at];                         \
            const type w3r = table[3 * at], w3i = table[t->size + 3 * at];                         \
            const type *ar = xr + s * p, *ai = xi + s * p;                                         \
            type *zr = yr + s * 4 * p, *zi = yi + s * 4 * p;                                       \
            for (int64_t q = 0; q < s; q++) {                                                      \
                type acr = ar[q] + ar[2 * step + q], aci = ai[q] + ai[2 * step + q];               \
                type sr = ar[q] - ar[2 * step + q], si = ai[q] - ai[2 * step + q];                 \
                type bdr = ar[step + q] + ar[3 * step + q];                                        \
                type bdi = ai[step + q] + ai[3 * step + q];                                        \
                type dr = ar[step + q] - ar[3 * step + q];                                         \
                type di = ai[step + q] - ai[3 * step + q];                                         \
                type oner = sr + di, onei = si - dr, threer = sr - di, threei = si + dr;           \
                type twor = acr - bdr, twoi = aci - bdi;                                           \
                zr[q] = acr + bdr;                                                                 \
                zi[q] = aci + bdi;                                                                 \
                zr[s + q] = oner * w1r - onei * w1i;                                               \
                zi[s + q] = oner * w1i + onei * w1r;                                               \
                zr[2 * s + q] = twor * w2r - twoi * w2i;                                           \
                zi[2 * s + q] = twor * w2i + twoi * w2r;                                           \
                zr[3 * s + q] = threer * w3r - threei * w3i;                                       \
                zi[3 * s + q] = threer * w3i + threei * w3r;                                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Any radix, with r * r sums. One rotation serves both the sum and the stage. */              \
    static void stage_any_##suffix(const struct stage *t, const type *table, const type *xr,       \
                                   const type *xi, type *restrict yr, type *restrict yi)           \
    {                                                                                              \
        const int64_t s = t->s, root = t->size / t->r;                                             \
        for (int64_t p = 0; p < t->m; p++) {                                                       \
            for (int64_t j = 0; j < t->r; j++) {                                                   \
                type *zr = yr + s * (t->r * p + j), *zi = yi + s * (t->r * p + j);                 \
                memset(zr, 0, (size_t)s * sizeof(type));                                           \
                memset(zi, 0, (size_t)s * sizeof(type));                                           \
                for (int64_t k = 0; k < t->r; k++) {                                               \
                    const int64_t at = (j * k % t->r * root + p * j * t->turn) % t->size;          \
                    const type wr = table[at], wi = table[t->size + at];                           \
                    const type *ar = xr + s * (p + t->m * k), *ai = xi + s * (p + t->m * k);       \
                    for (int64_t q = 0; q < s; q++) {                                              \
                        zr[q] += ar[q] * wr - ai[q] * wi;                                          \
                        zi[q] += ar[q] * wi + ai[q] * wr;                                          \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void stages_##suffix(const struct fft_scheme *scheme, const type *table, int64_t lanes, \
                                type *work[4])                                                     \
    {                                                                                              \
        struct stage t = {.m = scheme->m, .s = lanes, .turn = 1, .size = scheme->m};               \
        for (uint32_t f = 0; f < scheme->factor_count; f++) {                                      \
            type *from_re = work[0], *from_im = work[1];                                           \
            t.r = scheme->factors[f];                                                              \
            t.m /= t.r;                                                                            \
            (t.r == 4   ? stage_4_##suffix                                                         \
             : t.r == 2 ? stage_2_##suffix                                                         \
                        : stage_any_##suffix)(&t, table, from_re, from_im, work[2], work[3]);      \
            work[0] = work[2];                                                                     \
            work[1] = work[3];                                                                     \
            work[2] = from_re;                                                                     \
            work[3] = from_im;                                                                     \
            t.s *= t.r;                                                                            \
            t.turn *= t.r;                                                                         \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Multiplies each element by one of |count| complex numbers and by |scale|. */                \
    static void turn_##suffix(type *re, type *im, const type *by_re, const type *by_im,            \
                              int64_t count, int64_t lanes, type scale)                            \
    {                                                                                              \
        for (int64_t k = 0; k < count; k++) {                                                      \
            const type wr = by_re[k] * scale, wi = by_im[k] * scale;                               \
            for (int64_t v = k * lanes; v < (k + 1) * lanes; v++) {                                \
                type a = re[v], b = im[v];                                                         \
                re[v] = a * wr - b * wi;                                                           \
                im[v] = a * wi + b * wr;                                                           \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void swap_parts_##suffix(type *work[4])                                                 \
    {                                                                                              \
        type *re = work[0];                                                                        \
        work[0] = work[1];                                                                         \
        work[1] = re;                                                                              \
    }                                                                                              \
                                                                                                   \
    void fft_##suffix(const struct fft_scheme *scheme, const type *table, int64_t lanes,           \
                      type *work[4])                                                               \
    {                                                                                              \
        int64_t n = scheme->n, m = scheme->m;                                                      \
        const type *chirp = table + 2 * m, *filter = chirp + 2 * n;                                \
        if (!is_chirp(scheme)) {                                                                   \
            stages_##suffix(scheme, table, lanes, work);                                           \
            return;                                                                                \
        }                                                                                          \
        turn_##suffix(work[0], work[1], chirp, chirp + n, n, lanes, 1);                            \
        memset(work[0] + n * lanes, 0, (size_t)((m - n) * lanes) * sizeof(type));                  \
        memset(work[1] + n * lanes, 0, (size_t)((m - n) * lanes) * sizeof(type));                  \
        stages_##suffix(scheme, table, lanes, work);                                               \
        turn_##suffix(work[0], work[1], filter, filter + m, m, lanes, (type)1 / (type)m);          \
        swap_parts_##suffix(work);                                                                 \
        stages_##suffix(scheme, table, lanes, work);                                               \
        swap_parts_##suffix(work);                                                                 \
        turn_##suffix(work[0], work[1], chirp, chirp + n, n, lanes, 1);                            \
    }
DEFINE_FFT(float, f32)
DEFINE_FFT(double, f64)
