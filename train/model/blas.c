/* SPDX-License-Identifier: BSD-3-Clause */
/* blas.c - the one place that knows CBLAS. */
#include "train/model/blas.h"

#include <cblas.h>
#include <dlfcn.h>

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
    void (*set_threads)(int);
    void *function = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");

    if (!function) /* it is another library, with one thread */
        return;
    memcpy(&set_threads, &function, sizeof(function)); /* POSIX: a symbol may be a function */
    set_threads(1);
}
