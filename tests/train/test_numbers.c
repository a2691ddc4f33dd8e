/* SPDX-License-Identifier: BSD-3-Clause */
/* test_numbers.c - the arithmetic of the float32 model beside that of the C library. */
#include "train/model/layers.h"

#include "train/model/blas.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <float.h>

Test(numbers, exp_is_right_within_two_units_of_the_last_place)
{
    for (float x = -87; x < 88; x += 0.0137f) {
        double right = exp((double)x);

        cr_assert(le(dbl, fabs((double)real_exp(x) - right), 2 * right * (double)FLT_EPSILON),
                  "e^%g is %.9g, not %.9g", (double)x, (double)real_exp(x), right);
    }
}

Test(numbers, exp_stays_finite_far_away)
{
    cr_assert(lt(flt, real_exp(-1e30f), 1e-37f));
    cr_assert(ge(flt, real_exp(-1e30f), 0));
    cr_assert(gt(flt, real_exp(1e30f), 1e38f));
    cr_assert(isfinite(real_exp(1e30f)));
}

Test(numbers, gelu_is_the_known_function)
{
    for (float x = -8; x < 8; x += 0.0173f) {
        double u = sqrt(2 / 3.14159265358979323846) * ((double)x + 0.044715 * pow((double)x, 3));
        float y;

        gelu_forward(1, &x, &y);
        cr_assert(epsilon_eq(dbl, y, 0.5 * (double)x * (1 + tanh(u)), 2e-6));
    }
}

Test(numbers, products_of_transposed_matrices_are_right)
{
    const float left[6] = {1, 2, 3, 4, 5, 6};  /* 2 x 3 */
    const float right[6] = {1, 0, 2, 1, 0, 3}; /* 2 x 3 */
    const float wanted[9] = {5, 0, 14, 7, 0, 19, 9, 0, 24};
    float product[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct matrix crossed = matrix_transpose(matrix_of(left, 2, 3, 3));

    blas_multiply(crossed, matrix_of(right, 2, 3, 3), 1, 0, matrix_of(product, 3, 3, 3));
    for (int i = 0; i < 9; i++)
        cr_assert(eq(flt, product[i], wanted[i]));
    blas_multiply(crossed, matrix_of(right, 2, 3, 3), 2, 1, matrix_of(product, 3, 3, 3));
    for (int i = 0; i < 9; i++)
        cr_assert(eq(flt, product[i], 3 * wanted[i]));
}

Test(numbers, loss_counts_what_is_right)
{
    float logits[4 * 3] = {5, 0, 0, 0, 5, 0, 0, 5, 0, 0, 0, 5};
    const int targets[4] = {LOSS_IGNORED, 1, 2, 2};
    struct loss loss;

    loss_of(3, 2, 4, targets, 1, logits, &loss);
    cr_assert(eq(long, loss.counted, 3));
    cr_assert(eq(long, loss.right, 2));
    cr_assert(eq(long, loss.complete, 1));
    cr_assert(epsilon_eq(dbl, loss.sum, 3 * log(1 + 2 * exp(-5)) + 5, 1e-5));
}
