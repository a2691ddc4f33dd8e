/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errors.c - names and sentences of errors: those of cuda.h that the stand-in or a test may give.
 */
#include <cuda.h>
#include <stddef.h>

struct row {
    CUresult code;
    const char *name, *sentence;
};

#define ROW(code, sentence)   \
    {                         \
        code, #code, sentence \
    }

static const struct row rows[] = {
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "an argument is not valid"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised in this process"),
    ROW(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
    ROW(CUDA_ERROR_STUB_LIBRARY, "this is the stub of the driver"),
    ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is busy or not available"),
    ROW(CUDA_ERROR_NO_DEVICE, "no device was found"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "there is no such device"),
    ROW(CUDA_ERROR_INVALID_IMAGE, "the image of kernels is not valid"),
    ROW(CUDA_ERROR_INVALID_CONTEXT, "the context is not valid here"),
    ROW(CUDA_ERROR_MAP_FAILED, "mapping failed"),
    ROW(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
    ROW(CUDA_ERROR_ALREADY_MAPPED, "it is mapped already"),
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image holds no kernels for this device"),
    ROW(CUDA_ERROR_NOT_MAPPED, "it is not mapped"),
    ROW(CUDA_ERROR_ECC_UNCORRECTABLE, "a memory error that can't be corrected"),
    ROW(CUDA_ERROR_UNSUPPORTED_LIMIT, "the limit is not supported"),
    ROW(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "the devices can't reach each other's memory"),
    ROW(CUDA_ERROR_INVALID_PTX, "the PTX is not valid"),
    ROW(CUDA_ERROR_INVALID_SOURCE, "the source is not valid"),
    ROW(CUDA_ERROR_FILE_NOT_FOUND, "the file was not found"),
    ROW(CUDA_ERROR_OPERATING_SYSTEM, "a call of the operating system failed"),
    ROW(CUDA_ERROR_INVALID_HANDLE, "the handle is not valid"),
    ROW(CUDA_ERROR_ILLEGAL_STATE, "not legal in this state"),
    ROW(CUDA_ERROR_NOT_FOUND, "the name or address was not found"),
    ROW(CUDA_ERROR_NOT_READY, "not done yet"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel touched an illegal address"),
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs more than the device has"),
    ROW(CUDA_ERROR_LAUNCH_TIMEOUT, "the kernel took too long"),
    ROW(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"),
    ROW(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    ROW(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is in use"),
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is gone"),
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the memory is registered already"),
    ROW(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
    ROW(CUDA_ERROR_LAUNCH_FAILED, "the kernel failed"),
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        "not all blocks of the launch fit the device at a time"),
    ROW(CUDA_ERROR_NOT_PERMITTED, "the operation is not permitted"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "the operation is not supported"),
    ROW(CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready"),
    ROW(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the driver and its library differ"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error has spoilt the capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would become one"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture was not begun at this stream"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        "the capture has work that its first stream does not wait for"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the capture would depend on work outside of it"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy stream would wait for a captured one"),
    ROW(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture was begun by another thread"),
    ROW(CUDA_ERROR_TIMEOUT, "it took too long"),
    ROW(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph can't be updated that way"),
    ROW(CUDA_ERROR_UNKNOWN, "an unknown error"),
};

static const struct row *find(CUresult code)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].code == code)
            return &rows[i];
    }
    return NULL;
}

CUresult cuGetErrorName(CUresult code, const char **name)
{
    const struct row *row = find(code);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = row ? row->name : NULL;
    return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **sentence)
{
    const struct row *row = find(code);
    if (!sentence)
        return CUDA_ERROR_INVALID_VALUE;
    *sentence = row ? row->sentence : NULL;
    return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
