/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fill.c - cuMemset and its kin.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/memory.h"
#include "standin/driver/stream.h"

#include <string.h>

struct fill {
    struct op op;
    char *to;
    size_t count; /* elements */
    unsigned value;
    unsigned width; /* bytes of an element: 1, 2 or 4 */
};

static void run_fill(struct op *op)
{
    const struct fill *fill = (struct fill *)op;
    if (fill->width == 1) {
        memset(fill->to, (int)fill->value, fill->count);
        return;
    }
    for (size_t i = 0; i < fill->count; i++)
        memcpy(fill->to + i * fill->width, &fill->value, fill->width); /* little-endian */
}

static void fill_places(const struct op *op, void (*each)(const void *address, size_t size))
{
    const struct fill *fill = (const struct fill *)op;
    each(fill->to, fill->count * fill->width);
}

static const struct op_kind fill_kind = {CU_GRAPH_NODE_TYPE_MEMSET, run_fill, NULL, fill_places,
                                         NULL};

static CUresult fill(const char *function, CUstream handle, const struct fill *what, bool wait)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(function, handle, &stream);
    if (result)
        return result;
    uintptr_t address = (uintptr_t)what->to;
    bool known = memory_holding((CUdeviceptr)address, what->count * what->width);
    if (address % what->width || (what->count && !known)) {
        call_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct fill *fill = op_new(sizeof *fill, &fill_kind);
    if (fill) {
        fill->to = what->to;
        fill->count = what->count;
        fill->value = what->value;
        fill->width = what->width;
    }
    struct op *op = fill ? &fill->op : NULL;
    return wait ? stream_submit_and_wait(stream, op, true) : stream_submit(stream, op);
}

static struct fill bytes(CUdeviceptr to, unsigned value, size_t count)
{
    return (struct fill){.to = memory_bytes(to), .count = count, .value = value, .width = 1};
}

static struct fill halves(CUdeviceptr to, unsigned value, size_t count)
{
    return (struct fill){.to = memory_bytes(to), .count = count, .value = value, .width = 2};
}

static struct fill words(CUdeviceptr to, unsigned value, size_t count)
{
    return (struct fill){.to = memory_bytes(to), .count = count, .value = value, .width = 4};
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count)
{
    struct fill what = bytes(to, value, count);
    return fill(__func__, NULL, &what, true);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    struct fill what = bytes(to, value, count);
    return fill(__func__, stream, &what, false);
}

CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count)
{
    struct fill what = halves(to, value, count);
    return fill(__func__, NULL, &what, true);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    struct fill what = halves(to, value, count);
    return fill(__func__, stream, &what, false);
}

CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count)
{
    struct fill what = words(to, value, count);
    return fill(__func__, NULL, &what, true);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    struct fill what = words(to, value, count);
    return fill(__func__, stream, &what, false);
}
