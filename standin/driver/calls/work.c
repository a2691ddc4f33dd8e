/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.c - work of libraries beside the driver, as operations of streams.
 */
#include "standin/driver/stream.h"

#include "standin/driver/base/call.h"
#include "standin/driver/base/standin.h"

#include <stddef.h>
#include <string.h>

struct work {
    struct op op;
    void (*work)(const void *copy);
    max_align_t copy[];
};

static void run_work(struct op *op)
{
    const struct work *work = (struct work *)op;
    work->work(work->copy);
}

static const struct op_kind work_kind = {CU_GRAPH_NODE_TYPE_KERNEL, run_work, NULL, NULL, NULL};

CUresult cuStandinRun(CUstream handle, void (*function)(const void *copy), const void *argument,
                      size_t size)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    struct work *work = op_new(sizeof *work + size, &work_kind);
    if (work) {
        work->work = function;
        memcpy(work->copy, argument, size);
    }
    return stream_submit(stream, work ? &work->op : NULL);
}
