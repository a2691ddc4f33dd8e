/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cublas.c - libcublas.so.13 for the stand-in: products of float matrices, in stream order.
 *
 * Matrices are stored by columns. The inner loop runs down a column of C, or where A is transposed
 * along a column of A, so that both are contiguous.
 */
#include "standin/driver/base/standin.h"

#include <cublas_v2.h>
#include <stdbool.h>
#include <stdlib.h>

struct cublasContext {
    CUcontext context;
    CUstream stream;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
};

struct matrix {
    const float *values;
    bool transposed;
    int leading; /* from one column to the next */
    long long stride;
};

struct product {
    struct matrix a, b;
    float *c;
    int c_leading;
    long long c_stride;
    int m, n, k, batches;
    const float *alpha_at, *beta_at; /* on the device; NULL: the values below count */
    float alpha, beta;
};

static float at(const struct matrix *matrix, int row, int column)
{
    return matrix->transposed ? matrix->values[column + (size_t)row * (size_t)matrix->leading]
                              : matrix->values[row + (size_t)column * (size_t)matrix->leading];
}

/* column += factor times a column of the untransposed A. */
static void add_column(float *column, const float *of_a, float factor, int rows)
{
    for (int i = 0; i < rows; i++)
        column[i] += factor * of_a[i];
}

static float dot(const float *of_a, const struct matrix *b, int column, int count)
{
    float sum = 0;
    for (int p = 0; p < count; p++)
        sum += of_a[p] * at(b, p, column);
    return sum;
}

static void multiply(const struct product *product, float alpha, float beta)
{
    const struct matrix *a = &product->a;
    for (int j = 0; j < product->n; j++) {
        float *column = product->c + (size_t)j * (size_t)product->c_leading;
        for (int i = 0; i < product->m; i++)
            column[i] = beta == 0 ? 0 : beta * column[i]; /* 0 also where C is not a number */
        for (int p = 0; !a->transposed && p < product->k; p++)
            add_column(column, a->values + (size_t)p * (size_t)a->leading,
                       alpha * at(&product->b, p, j), product->m);
        for (int i = 0; a->transposed && i < product->m; i++)
            column[i] +=
                alpha * dot(a->values + (size_t)i * (size_t)a->leading, &product->b, j, product->k);
    }
}

static void run_product(const void *copy)
{
    struct product product = *(const struct product *)copy;
    float alpha = product.alpha_at ? *product.alpha_at : product.alpha;
    float beta = product.beta_at ? *product.beta_at : product.beta;
    for (int i = 0; i < product.batches; i++) {
        multiply(&product, alpha, beta);
        product.a.values += product.a.stride;
        product.b.values += product.b.stride;
        product.c += product.c_stride;
    }
}

struct shape {
    int rows, columns, leading;
    long long stride;
};

/*
 * True if a batch of such matrices, the last column included, is in memory that the driver knows.
 */
static bool is_known(const float *values, const struct shape *shape, int batches)
{
    CUdeviceptr base = 0, address = (CUdeviceptr)(size_t)values;
    size_t size = 0;
    long long count = shape->stride * (batches - 1) +
                      (long long)(shape->columns - 1) * shape->leading + shape->rows;
    return cuMemGetAddressRange(&base, &size, address) == CUDA_SUCCESS &&
           (size_t)count * sizeof *values <= size - (address - base);
}

static bool are_known(const struct product *p)
{
    struct shape a = {p->m, p->k, p->a.leading, p->a.stride};
    struct shape b = {p->k, p->n, p->b.leading, p->b.stride};
    struct shape c = {p->m, p->n, p->c_leading, p->c_stride};
    if (p->a.transposed)
        a = (struct shape){p->k, p->m, p->a.leading, p->a.stride};
    if (p->b.transposed)
        b = (struct shape){p->n, p->k, p->b.leading, p->b.stride};
    return is_known(p->c, &c, p->batches) && (!p->k || (is_known(p->a.values, &a, p->batches) &&
                                                        is_known(p->b.values, &b, p->batches)));
}

static cublasStatus_t submit(cublasHandle_t handle, const struct product *product)
{
    const struct product *p = product;
    if (p->m < 0 || p->n < 0 || p->k < 0 || p->batches < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    int a_rows = p->a.transposed ? p->k : p->m, b_rows = p->b.transposed ? p->n : p->k;
    if (p->a.leading < (a_rows > 1 ? a_rows : 1) || p->b.leading < (b_rows > 1 ? b_rows : 1) ||
        p->c_leading < (p->m > 1 ? p->m : 1))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!p->m || !p->n || !p->batches)
        return CUBLAS_STATUS_SUCCESS;
    if (!are_known(p) || cuStandinRun(handle->stream, run_product, product, sizeof *product))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_operation(cublasOperation_t operation)
{
    return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_operation,
                                         cublasOperation_t b_operation, int m, int n, int k,
                                         const float *alpha, const float *a, int a_leading,
                                         long long a_stride, const float *b, int b_leading,
                                         long long b_stride, const float *beta, float *c,
                                         int c_leading, long long c_stride, int batches)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!alpha || !beta || !is_operation(a_operation) || !is_operation(b_operation))
        return CUBLAS_STATUS_INVALID_VALUE;
    struct product product = {
        .a = {a, a_operation != CUBLAS_OP_N, a_leading, a_stride},
        .b = {b, b_operation != CUBLAS_OP_N, b_leading, b_stride},
        .c = c,
        .c_leading = c_leading,
        .c_stride = c_stride,
        .m = m,
        .n = n,
        .k = k,
        .batches = batches,
    };
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        product.alpha_at = alpha;
        product.beta_at = beta;
    } else {
        product.alpha = *alpha;
        product.beta = *beta;
    }
    return submit(handle, &product);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_operation,
                           cublasOperation_t b_operation, int m, int n, int k, const float *alpha,
                           const float *a, int a_leading, const float *b, int b_leading,
                           const float *beta, float *c, int c_leading)
{
    return cublasSgemmStridedBatched(handle, a_operation, b_operation, m, n, k, alpha, a, a_leading,
                                     0, b, b_leading, 0, beta, c, c_leading, 0, 1);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
                                          cublasOperation_t b_operation, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int a_leading, long long a_stride, const void *b,
                                          cudaDataType b_type, int b_leading, long long b_stride,
                                          const void *beta, void *c, cudaDataType c_type,
                                          int c_leading, long long c_stride, int batches,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    bool in_float = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                    compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    if (!in_float || a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return cublasSgemmStridedBatched(handle, a_operation, b_operation, m, n, k, alpha, a, a_leading,
                                     a_stride, b, b_leading, b_stride, beta, c, c_leading, c_stride,
                                     batches);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation,
                            cublasOperation_t b_operation, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int a_leading, const void *b,
                            cudaDataType b_type, int b_leading, const void *beta, void *c,
                            cudaDataType c_type, int c_leading, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, a_operation, b_operation, m, n, k, alpha, a, a_type,
                                      a_leading, 0, b, b_type, b_leading, 0, beta, c, c_type,
                                      c_leading, 0, 1, compute, algorithm);
}

cublasStatus_t cublasCreate(cublasHandle_t *ret_handle)
{
    CUcontext context = NULL;
    if (!ret_handle)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cuCtxGetCurrent(&context) || !context)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    cublasHandle_t handle = calloc(1, sizeof *handle);
    if (!handle)
        return CUBLAS_STATUS_ALLOC_FAILED;
    handle->context = context;
    *ret_handle = handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream)
{
    if (!handle || !stream)
        return handle ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_NOT_INITIALIZED;
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->math_mode = mode; /* products are of full precision in every mode */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    if (!handle || !mode)
        return handle ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_NOT_INITIALIZED;
    *mode = handle->math_mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* Products need no workspace here: whatever is offered is not used. */
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    if (!version)
        return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "no error";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "there is no handle, or no current context";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "out of memory";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an argument is not valid";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the product could not be put into the stream";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "not supported";
    default:
        return "an unknown error";
    }
}
