/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_bodies.c - bodies of tests: modules, and kernels of example.cu.
 */
#include "tests/standin/bodies.h"

/* The struct of example.cu, with addresses of the device. */
struct scale {
    CUdeviceptr values;
    unsigned count;
    float factor;
};

struct meeting {
    CUdeviceptr arrived, result;
};

struct sum {
    CUdeviceptr result;
    unsigned count;
};

static CUresult launch(CUfunction kernel, unsigned blocks, CUstream stream, void *argument)
{
    void *parameters[] = {argument};
    return cuLaunchKernel(kernel, blocks, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

void body_kernel_runs_every_block_of_its_grid(struct check *check)
{
    enum { COUNT = 1000 };
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUfunction scale = check_kernel(check, check_module(check), "example_scale");
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    CUdeviceptr memory = check_memory(check, sizeof values);
    struct scale job = {memory, COUNT, 2};
    CHECK_OK(cuMemcpyHtoD(memory, values, sizeof values));
    CHECK_OK(cuStreamSynchronize(NULL));
    CHECK_OK(launch(scale, 1, stream, &job));
    CHECK_OK(launch(scale, 7, stream, &job));
    CHECK_OK(launch(scale, COUNT, stream, &job)); /* more blocks than fit the device at a time */
    job.factor = 100;                             /* parameters were taken at the call */
    CHECK_OK(cuMemcpyDtoHAsync(values, memory, sizeof values, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++)
        CHECK(values[i] == (float)(8 * i));
    check_end(check, 0);
}

void body_resident_blocks_run_side_by_side(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check), other = check_stream(check);
    CUfunction meet = check_kernel(check, check_module(check), "example_meet");
    CUdeviceptr memory = check_memory(check, 4096);
    int each = 0, processors = 0;
    CHECK_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, meet, 1, 0));
    CHECK_OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    unsigned most = (unsigned)(each * processors);
    CHECK(most == 40);
    struct meeting job = {memory, memory + 64}, second = {memory + 2048, memory + 2112};
    void *parameters[] = {&job};
    CHECK_OK(launch(meet, most, other, &second)); /* a kernel of another stream beside it */
    CHECK_OK(cuLaunchCooperativeKernel(meet, most, 1, 1, 1, 1, 1, 0, stream, parameters));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuStreamSynchronize(other));
    CHECK(check_read(check, memory) == most && check_read(check, memory + 2048) == most);
    for (unsigned i = 0; i < most; i++)
        CHECK(check_read(check, memory + 64 + 4 * i) == i + 1);
    CHECK_GIVES(cuLaunchCooperativeKernel(meet, most + 1, 1, 1, 1, 1, 1, 0, stream, parameters),
                CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    check_end(check, 0);
}

void body_kernel_waits_for_a_word_of_the_host(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUfunction meet = check_kernel(check, check_module(check), "example_meet");
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *word = check_word(check);
    struct meeting job = {check_address(word), memory};
    check_release(word, 0U - 3); /* two blocks come to -1: not less than 2 as unsigned numbers */
    CHECK_OK(launch(meet, 2, stream, &job));
    CHECK_OK(cuStreamSynchronize(stream));
    check_release(word, 0);
    CHECK_OK(cuStreamWaitValue32(stream, check_address(word), 9, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_OK(launch(meet, 2, stream, &job));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    check_release(word, 9);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(check_read(check, memory + 4) == 2);
    check_end(check, 0);
}

void body_module_has_variables_and_shared_memory(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUmodule module = check_module(check), second = check_module(check);
    CUfunction sum = check_kernel(check, module, "example_shared");
    CUdeviceptr memory = check_memory(check, 64), variable = 0, other = 0;
    size_t size = 0;
    unsigned value = 1;
    struct sum job = {memory, 100};
    void *parameters[] = {&job};
    CHECK_OK(cuModuleGetGlobal(&variable, &size, module, "example_variable"));
    CHECK_OK(cuModuleGetGlobal(&other, NULL, second, "example_variable"));
    CHECK(size == 4 && other != variable);
    CHECK(check_read(check, variable) == 42);
    CHECK_OK(cuMemcpyHtoD(variable, &value, sizeof value));
    CHECK_OK(cuStreamSynchronize(NULL));
    CHECK(check_read(check, other) == 42); /* each load has its own */
    CHECK_OK(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 400, stream, parameters, NULL));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(check_read(check, memory) == 4950 + 100);
    CHECK_GIVES(cuModuleGetGlobal(&variable, NULL, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    CHECK_OK(cuModuleUnload(module));
    CHECK_GIVES(launch(sum, 1, stream, &job), CUDA_ERROR_INVALID_HANDLE);
    CHECK_GIVES(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    check_end(check, 0);
}

void body_illegal_launches_are_refused(struct check *check)
{
    CUcontext second = check_begin(check, 1);
    CUstream there = check_stream(check);
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUmodule module = check_module(check);
    CUfunction kernel = check_kernel(check, module, "example_scale");
    struct scale job = {check_memory(check, 64), 16, 2};
    void *parameters[] = {&job};
    int value = 0;
    CHECK_GIVES(cuModuleGetFunction(&kernel, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    CHECK_GIVES(cuLaunchKernel(kernel, 1, 1, 1, 2, 1, 1, 0, stream, parameters, NULL),
                CUDA_ERROR_INVALID_VALUE); /* a block has one thread */
    CHECK_GIVES(cuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, stream, parameters, NULL),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(launch(kernel, 1, there, &job), CUDA_ERROR_INVALID_HANDLE); /* other device's */
    CHECK_GIVES(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 64 << 10, stream, parameters, NULL),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
    CHECK_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 64 << 10, stream, parameters, NULL));
    CHECK_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel));
    CHECK(value == 1);
    CHECK_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, kernel, 1, 100 << 10));
    CHECK(value == 2); /* shared memory is what limits it */
    static const char text[128] = "not an image";
    CHECK_GIVES(cuModuleLoadData(&module, text), CUDA_ERROR_INVALID_IMAGE);
    CHECK_OK(cuCtxSetCurrent(second));
    CHECK_GIVES(launch(kernel, 1, NULL, &job), CUDA_ERROR_INVALID_HANDLE);
    check_end(check, 1);
    check_begin(check, 0);
    CHECK_OK(cuDevicePrimaryCtxRelease(0));
    check_end(check, 0);
}

void body_captured_kernel_keeps_its_parameters(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUfunction scale = check_kernel(check, check_module(check), "example_scale");
    CUdeviceptr memory = check_memory(check, 64);
    float one = 1, result = 0;
    struct scale job = {memory, 1, 3};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CHECK_OK(cuMemcpyHtoD(memory, &one, sizeof one));
    CHECK_OK(cuStreamSynchronize(NULL));
    CHECK_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(launch(scale, 1, stream, &job));
    job.factor = 100;
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 4; i++)
        CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuMemcpyDtoH(&result, memory, sizeof result));
    CHECK(result == 81);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    check_end(check, 0);
}
