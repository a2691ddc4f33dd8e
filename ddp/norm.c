/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm.c - the norm of gradients, and clipping by it.
 *
 * A sum of floats depends on its order, and so on how gradients are cut among ranks. Here it does
 * not, because nothing is rounded: a float32 is an integer of 24 bits (the significand) times a
 * power of two (the exponent field, 256 values). Squares of significands are added up as integers,
 * one sum per exponent:
 *
 *     exponent field     ...  126            127            128  ...
 *     sum of squares     ...  m*m + m*m ...  m*m + m*m ...
 *
 * Invariant: a square has 48 bits, so 2^16 of them fit into `low`; then what is above 32 bits moves
 * to `high`. Integers add up in any order, over ranks too; only norm_root() rounds.
 */
#include "ddp/norm.h"

#include "ddp/fail.h"

#include <math.h>
#include <string.h>

enum { BATCH = 65535 }; /* squares that fit beside what carry() leaves in `low` */

void norm_init(struct norm *norm)
{
    memset(norm, 0, sizeof(*norm));
}

static void carry(struct norm *norm)
{
    for (int e = 0; e < NORM_EXPONENTS; e++) {
        norm->high[e] += norm->low[e] >> 32;
        norm->low[e] &= UINT32_MAX;
    }
}

static void add_batch(uint64_t *low, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits, exponent;
        uint64_t significand;

        memcpy(&bits, &values[i], sizeof(bits));
        exponent = bits >> 23 & 0xff;
        significand = (bits & 0x7fffff) | (exponent ? 0x800000 : 0); /* the hidden bit */
        low[exponent] += significand * significand;
    }
}

void norm_add(struct norm *norm, const float *values, size_t count)
{
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < BATCH ? count - done : BATCH;
        add_batch(norm->low, values + done, some);
        carry(norm);
    }
}

rondo_result norm_all_reduce(struct norm *norm, rondo_comm *comm)
{
    rondo_result result = rondo_all_reduce(norm, norm, sizeof(*norm) / sizeof(uint64_t),
                                           RONDO_UINT64, RONDO_SUM, comm, NULL);

    carry(norm);
    return result ? ddp_fail_call(result, comm, "Summing up the norm") : RONDO_OK;
}

/* Smallest first. Exponent fields 0 and 1 both stand for units of 2^-149; 255 for no number. */
double norm_root(const struct norm *norm)
{
    double sum = 0;

    if (norm->low[255] || norm->high[255])
        return NAN;
    for (int e = 0; e < 255; e++) {
        int unit = 2 * ((e ? e : 1) - 150);

        sum += ldexp((double)norm->low[e], unit) + ldexp((double)norm->high[e], unit + 32);
    }
    return sqrt(sum);
}

int norm_exceeds(double root, double limit, float *ret_scale)
{
    if (!(root > limit) || !(limit > 0))
        return 0;
    *ret_scale = (float)(limit / root);
    return 1;
}

void norm_scale(float *values, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= scale;
}

static rondo_result norm_of(const rondo_span *spans, size_t count, rondo_comm *comm,
                            double *ret_root, const char *function)
{
    rondo_result result = RONDO_OK;
    struct norm norm;

    if ((count && !spans) || !ret_root)
        return ddp_fail(RONDO_ERROR_INVALID, "%s: there is no %s.", function,
                        ret_root ? "list of spans" : "place for the norm");
    if (comm)
        result = ddp_check_call(comm, function);
    if (result)
        return result;
    norm_init(&norm);
    for (size_t i = 0; i < count; i++)
        norm_add(&norm, spans[i].values, spans[i].count);
    if (comm)
        result = norm_all_reduce(&norm, comm);
    if (!result)
        *ret_root = norm_root(&norm);
    return result;
}

rondo_result rondo_norm(const rondo_span *spans, size_t count, rondo_comm *comm, double *ret_norm)
{
    return norm_of(spans, count, comm, ret_norm, "rondo_norm");
}

rondo_result rondo_clip(const rondo_span *spans, size_t count, double limit, rondo_comm *comm,
                        double *ret_norm)
{
    rondo_result result;
    double root;
    float scale;

    if (!(limit > 0))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_clip: a norm cannot be at most %g.", limit);
    result = norm_of(spans, count, comm, ret_norm ? &root : NULL, "rondo_clip");
    if (result)
        return result;
    if (norm_exceeds(root, limit, &scale))
        for (size_t i = 0; i < count; i++)
            norm_scale(spans[i].values, spans[i].count, scale);
    *ret_norm = root;
    return RONDO_OK;
}
