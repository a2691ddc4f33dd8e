/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cublas.c - matrix products of the stand-in against the plain definition, with small integers
 * so that every order of addition gives the same.
 */
#include "tests/standin/check.h"

#include <criterion/criterion.h>
#include <cublas_v2.h>
#include <math.h>

enum { M = 5, N = 4, K = 3, BATCHES = 2, LEADING = 7, VALUES = 128 };

static struct check checked;
static struct check *const check = &checked;

static float at(const float *values, cublasOperation_t operation, int row, int column)
{
    return operation == CUBLAS_OP_N ? values[row + column * LEADING]
                                    : values[column + row * LEADING];
}

/* alpha 2, beta 3; a column of C and a matrix of a batch begin where the stand-in has to put
 * them. */
static void expect(const float *a, cublasOperation_t a_operation, const float *b,
                   cublasOperation_t b_operation, float *c)
{
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int p = 0; p < K; p++)
                sum += at(a, a_operation, i, p) * at(b, b_operation, p, j);
            c[i + j * LEADING] = 2 * sum + 3 * c[i + j * LEADING];
        }
    }
}

static CUdeviceptr upload(const float *values)
{
    CUdeviceptr memory = check_memory(check, VALUES * sizeof *values);
    CHECK_OK(cuMemcpyHtoD(memory, values, VALUES * sizeof *values));
    CHECK_OK(cuStreamSynchronize(NULL));
    return memory;
}

static float *on_device(CUdeviceptr address)
{
    return (float *)(size_t)address;
}

static void try_product(cublasHandle_t handle, cublasOperation_t a_operation,
                        cublasOperation_t b_operation)
{
    enum { STRIDE = VALUES / BATCHES };
    float a[VALUES], b[VALUES], c[VALUES], result[VALUES], alpha = 2, beta = 3;
    for (int i = 0; i < VALUES; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 5 - 2);
        c[i] = (float)(i % 11 - 5);
    }
    CUdeviceptr da = upload(a), db = upload(b), dc = upload(c);
    cublasStatus_t status = cublasGemmStridedBatchedEx(
        handle, a_operation, b_operation, M, N, K, &alpha, on_device(da), CUDA_R_32F, LEADING,
        STRIDE, on_device(db), CUDA_R_32F, LEADING, STRIDE, &beta, on_device(dc), CUDA_R_32F,
        LEADING, STRIDE, BATCHES, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    CHECK(status == CUBLAS_STATUS_SUCCESS);
    CHECK_OK(cuMemcpyDtoH(result, dc, sizeof result)); /* the default stream puts it in order */
    for (int i = 0; i < BATCHES; i++)
        expect(a + i * STRIDE, a_operation, b + i * STRIDE, b_operation, c + i * STRIDE);
    for (int i = 0; i < VALUES; i++)
        CHECK(result[i] == c[i]);
}

static void assert_well(void)
{
    cr_assert(!checked.what, "%s:%d: %s: got %ld", checked.file, checked.line, checked.what,
              checked.got);
}

Test(cublas, products_of_all_transpositions_are_right)
{
    static const cublasOperation_t operations[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    cublasHandle_t handle = NULL;
    check_begin(check, 0);
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 4; i++)
        try_product(handle, operations[i / 2], operations[i % 2]);
    CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    check_end(check, 0);
    assert_well();
}

Test(cublas, product_runs_in_stream_order_and_is_captured)
{
    cublasHandle_t handle = NULL;
    float values[VALUES] = {3}, one = 1, zero = 0, result = 0;
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    unsigned *gate = check_word(check);
    CUdeviceptr a = upload(values), c = check_memory(check, 4);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    values[0] = NAN; /* times 0 is 0 in C */
    CHECK_OK(cuMemcpyHtoD(c, values, sizeof *values));
    CHECK_OK(cuStreamSynchronize(NULL));
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
    CHECK_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuStreamWaitValue32(stream, check_address(gate), 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, on_device(a), 1,
                      on_device(a), 1, &zero, on_device(c), 1) == CUBLAS_STATUS_SUCCESS);
    one = 100; /* was taken at the call */
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphInstantiate(&exec, graph, 0));
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuMemcpyDtoH(&result, c, sizeof result));
    CHECK(result == 9);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    check_end(check, 0);
    assert_well();
}

Test(cublas, wrong_matrices_are_refused)
{
    cublasHandle_t handle = NULL;
    float one = 1, values[VALUES];
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_NOT_INITIALIZED); /* no context */
    check_begin(check, 0);
    CUdeviceptr a = check_memory(check, 16 * sizeof one);
    float *device = on_device(a);
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, device, 3, device, 4, &one,
                      device, 4) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, values, 4, device, 4, &one,
                      device, 4) == CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 4, &one, device, 4, device, 4, &one,
                      device, 4) == CUBLAS_STATUS_EXECUTION_FAILED); /* longer than its memory */
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, device, CUDA_R_16F, 4,
                       device, CUDA_R_16F, 4, &one, device, CUDA_R_16F, 4, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    check_end(check, 0);
    assert_well();
}
