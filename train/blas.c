/* SPDX-License-Identifier: BSD-3-Clause */
/* blas.c - the one place that knows CBLAS. */
#include "train/blas.h"

#include <cblas.h>

void blas_multiply(struct matrix a, struct matrix b, real scale, real keep, struct matrix c)
{
    enum CBLAS_TRANSPOSE of_a = a.transposed ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE of_b = b.transposed ? CblasTrans : CblasNoTrans;
    int inner = a.transposed ? a.rows : a.columns;

#ifdef TRAIN_DOUBLE
    cblas_dgemm(CblasRowMajor, of_a, of_b, c.rows, c.columns, inner, scale, a.data, a.stride,
                b.data, b.stride, keep, c.data, c.stride);
#else
    cblas_sgemm(CblasRowMajor, of_a, of_b, c.rows, c.columns, inner, scale, a.data, a.stride,
                b.data, b.stride, keep, c.data, c.stride);
#endif
}

void blas_use_one_thread(void)
{
#ifdef OPENBLAS_VERSION
    openblas_set_num_threads(1);
#endif
}
