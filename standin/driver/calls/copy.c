/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c - copies and fills.
 *
 * One operation copies rows of bytes; a plain copy has one row. What comes from memory that the
 * driver does not know ("pageable") is taken at the time of the call, what goes there is there when
 * the call returns. A call that is synchronous returns when its stream has come to
 * it and it has taken what is pageable, as on a GPU: streams that do not wait for the legacy one
 * can overtake such a copy.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/calls/count.h"
#include "standin/driver/capture.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"
#include "standin/driver/queue.h"
#include "standin/driver/stream.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A copy that its call did not wait for comes so late that a program which relies on it fails. */
enum { LATE_NS = 200000 };

struct rows {
    char *to;
    const char *from;
    size_t width, height;
    size_t to_pitch, from_pitch;
};

struct copy {
    struct op op;
    struct rows rows;
    char *staged; /* own copy of the source */
    bool late;
};

enum side { SIDE_ANY, SIDE_DEVICE, SIDE_HOST };

static void copy_rows(const struct rows *rows)
{
    for (size_t y = 0; y < rows->height; y++)
        memmove(rows->to + y * rows->to_pitch, rows->from + y * rows->from_pitch, rows->width);
}

static void run_copy(struct op *op)
{
    const struct copy *copy = (struct copy *)op;
    if (copy->late)
        nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
    copy_rows(&copy->rows);
}

static void close_copy(struct op *op)
{
    free(((struct copy *)op)->staged);
}

static size_t extent(size_t width, size_t height, size_t pitch)
{
    return height ? (height - 1) * pitch + width : 0;
}

static void copy_places(const struct op *op, void (*each)(const void *address, size_t size))
{
    const struct rows *rows = &((const struct copy *)op)->rows;
    each(rows->to, extent(rows->width, rows->height, rows->to_pitch));
    each(rows->from, extent(rows->width, rows->height, rows->from_pitch));
}

static const struct op_kind copy_kind = {CU_GRAPH_NODE_TYPE_MEMCPY, run_copy, close_copy,
                                         copy_places, NULL};

/* True if the address is what this side of the copy must be. A device side is memory of the driver;
 * any other may be unknown, but if it is known all of it must be. Sets whether it is pageable. */
static bool is_fit(const void *address, size_t size, enum side side, bool *pageable)
{
    const struct memory *memory = memory_find(address);
    *pageable = !memory;
    if (!memory)
        return side != SIDE_DEVICE && address;
    if (side == SIDE_HOST && memory_on_device(memory))
        return false;
    return memory_holding((CUdeviceptr)(uintptr_t)address, size);
}

/* Takes the rows of the source that may change when the call is over. */
static bool stage(struct copy *copy)
{
    struct rows *rows = &copy->rows;
    copy->staged = malloc(rows->width * rows->height);
    if (!copy->staged)
        return false;
    struct rows taking = *rows;
    taking.to = copy->staged;
    taking.to_pitch = rows->width;
    copy_rows(&taking);
    rows->from = copy->staged;
    rows->from_pitch = rows->width;
    return true;
}

/* The whole of a copy: `wait` for calls that are synchronous. The lock is held, and is given up. */
static CUresult submit(CUstream stream, const struct rows *rows, const enum side sides[2],
                       bool wait)
{
    bool to_pageable = false, from_pageable = false;
    size_t to_size = extent(rows->width, rows->height, rows->to_pitch);
    size_t from_size = extent(rows->width, rows->height, rows->from_pitch);
    bool nothing = !rows->width || !rows->height;
    if (!nothing && (!is_fit(rows->to, to_size, sides[0], &to_pageable) ||
                     !is_fit(rows->from, from_size, sides[1], &from_pageable))) {
        call_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool captured = capture_active(stream);
    bool takes = from_pageable && !(wait && to_pageable);
    if (wait && takes)
        queue_drain(stream);
    struct copy *copy = op_new(sizeof *copy, &copy_kind);
    if (copy)
        copy->rows = *rows;
    if (copy && takes && !captured && !stage(copy)) {
        op_release(&copy->op);
        copy = NULL;
    }
    if (copy)
        copy->late = wait && takes;
    struct op *op = copy ? &copy->op : NULL;
    count_copy();
    if (wait && takes)
        return stream_submit_unsafe(stream, op);
    if (wait || (to_pageable && !captured))
        return stream_submit_and_wait(stream, op, wait);
    return stream_submit(stream, op);
}

static CUresult copy(const char *function, CUstream handle, const struct rows *rows,
                     const enum side sides[2], bool wait)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(function, handle, &stream);
    return result ? result : submit(stream, rows, sides, wait);
}

static struct rows line(void *to, const void *from, size_t size)
{
    return (struct rows){to, from, size, 1, size, size};
}

static const enum side any_to_any[2] = {SIDE_ANY, SIDE_ANY};
static const enum side host_to_device[2] = {SIDE_DEVICE, SIDE_ANY};
static const enum side device_to_host[2] = {SIDE_ANY, SIDE_DEVICE};
static const enum side device_to_device[2] = {SIDE_DEVICE, SIDE_DEVICE};

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    struct rows rows = line(memory_bytes(to), memory_bytes(from), size);
    return copy(__func__, NULL, &rows, any_to_any, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    struct rows rows = line(memory_bytes(to), memory_bytes(from), size);
    return copy(__func__, stream, &rows, any_to_any, false);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
    struct rows rows = line(memory_bytes(to), from, size);
    return copy(__func__, NULL, &rows, host_to_device, true);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    struct rows rows = line(memory_bytes(to), from, size);
    return copy(__func__, stream, &rows, host_to_device, false);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
    struct rows rows = line(to, memory_bytes(from), size);
    return copy(__func__, NULL, &rows, device_to_host, true);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    struct rows rows = line(to, memory_bytes(from), size);
    return copy(__func__, stream, &rows, device_to_host, false);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    struct rows rows = line(memory_bytes(to), memory_bytes(from), size);
    return copy(__func__, NULL, &rows, device_to_device, true);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    struct rows rows = line(memory_bytes(to), memory_bytes(from), size);
    return copy(__func__, stream, &rows, device_to_device, false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t size, CUstream stream)
{
    call_lock();
    bool valid = context_valid(to_context) && context_valid(from_context);
    call_unlock();
    struct rows rows = line(memory_bytes(to), memory_bytes(from), size);
    return valid ? copy(__func__, stream, &rows, device_to_device, false)
                 : CUDA_ERROR_INVALID_CONTEXT;
}

static bool address_of(CUmemorytype type, CUdeviceptr device, const void *host, char **ret_address)
{
    if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_UNIFIED)
        return false;
    *ret_address = type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)host : memory_bytes(device);
    return true;
}

static enum side side_of(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE
           : type == CU_MEMORYTYPE_HOST ? SIDE_HOST
                                        : SIDE_ANY;
}

static CUresult copy_2d(const char *function, const CUDA_MEMCPY2D *how, CUstream stream, bool wait)
{
    char *to = NULL, *from = NULL;
    if (!how || !address_of(how->dstMemoryType, how->dstDevice, how->dstHost, &to) ||
        !address_of(how->srcMemoryType, how->srcDevice, how->srcHost, &from))
        return CUDA_ERROR_INVALID_VALUE;
    size_t to_pitch = how->dstPitch ? how->dstPitch : how->WidthInBytes + how->dstXInBytes;
    size_t from_pitch = how->srcPitch ? how->srcPitch : how->WidthInBytes + how->srcXInBytes;
    if (to_pitch < how->WidthInBytes + how->dstXInBytes ||
        from_pitch < how->WidthInBytes + how->srcXInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct rows rows = {to + how->dstY * to_pitch + how->dstXInBytes,
                        from + how->srcY * from_pitch + how->srcXInBytes,
                        how->WidthInBytes,
                        how->Height,
                        to_pitch,
                        from_pitch};
    const enum side sides[2] = {side_of(how->dstMemoryType), side_of(how->srcMemoryType)};
    return copy(function, stream, &rows, sides, wait);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *how, CUstream stream)
{
    return copy_2d(__func__, how, stream, false);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *how)
{
    return copy_2d(__func__, how, NULL, true);
}
