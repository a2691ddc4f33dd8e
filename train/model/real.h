/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real.h - the number that the model computes with: float32.
 *
 * The layers are compiled once more with TRAIN_DOUBLE for the gradient checks: in float64 a finite
 * difference agrees with a right gradient in seven digits, so that a wrong one cannot hide behind
 * rounding.
 */
#ifndef RONDO_TRAIN_MODEL_REAL_H
#define RONDO_TRAIN_MODEL_REAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef TRAIN_DOUBLE
typedef double real;
#else
typedef float real;
#endif

/*
 * Marks a function whose loops are worth the machine's widest vectors; the loader picks the clone.
 * Not under sanitizers: the choice happens before their runtime has started.
 */
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define REAL_VECTOR __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define REAL_VECTOR
#endif

#ifdef TRAIN_DOUBLE
static inline real real_exp(real x)
{
    return exp(x);
}

static inline real real_root(real x)
{
    return sqrt(x);
}
#else
/*
 * e^x within two units of the last place, without a branch, so that loops of it become vectors.
 * x = n ln 2 + r with |r| <= ln 2 / 2; e^r is a polynomial, 2^n goes into the exponent's bits.
 */
__attribute__((always_inline)) static inline real real_exp(real x)
{
    const float to_whole = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    float n, r, power;
    uint32_t bits; /* unsigned: of a NaN they are anything */

    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    n = x * 1.44269504f + to_whole;
    memcpy(&bits, &n, sizeof(bits));
    n -= to_whole;
    r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    power = 1.9875691500e-4f;
    power = power * r + 1.3981999507e-3f;
    power = power * r + 8.3334519073e-3f;
    power = power * r + 4.1665795894e-2f;
    power = power * r + 1.6666665459e-1f;
    power = power * r + 5.0000001201e-1f;
    power = power * r * r + r + 1.0f;
    bits = (bits - 0x4b400000u + 127u) << 23;
    memcpy(&n, &bits, sizeof(n));
    return power * n;
}

static inline real real_root(real x)
{
    return sqrtf(x);
}
#endif

#endif
