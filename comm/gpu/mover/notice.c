/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notice.c - what a mover's stream is given to do, and what is told when it has done it.
 *
 *     copy, kernel | note: publish slot 3 | copy | note: slot 5 is free | ... | count
 *     on the stream: copy, kernel, copy, "write 7"            7 is read: both notices are told
 *
 * A notice is told when the stream has written a count that comes behind all that was given to it
 * before. Copies are kept until there are many, or something has to come behind them.
 */
#include "comm/gpu/mover/mover.h"

#include "base/fail.h"
#include "cuda/reduce.h"
#include "transport/link/connection.h"

#include <stdlib.h>

void gpu_mover_fail(struct gpu_mover *mover, rondo_result result)
{
    if (!mover->result)
        mover->result = result;
}

/* ---- The stream ------------------------------------------------------------------------------ */

void gpu_mover_flush(struct gpu_mover *mover)
{
    const struct cuda_copies_call call = {.items = mover->copies, .count = mover->copy_count};

    if (call.count && !mover->result)
        gpu_mover_fail(mover, cuda_copies(mover->launcher, &call, mover->stream));
    mover->copy_count = 0;
}

static bool overlap(uint64_t a, uint64_t b, uint64_t a_bytes, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Copies of one launch are in no order. */
void gpu_mover_copy(struct gpu_mover *mover, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    bool after = mover->copy_count == CUDA_COPIES_MAX;

    for (unsigned i = 0; i < mover->copy_count && !after; i++) {
        const struct cuda_copies_item *item = &mover->copies[i];

        after = overlap(to, item->to.address, bytes, item->bytes) ||
                overlap(to, item->from.address, bytes, item->bytes) ||
                overlap(from, item->to.address, bytes, item->bytes);
    }
    if (after)
        gpu_mover_flush(mover);
    mover->copies[mover->copy_count++] = (struct cuda_copies_item){
        .from = cuda_operand_at(from), .to = cuda_operand_at(to), .bytes = bytes};
    mover->uncounted = true;
}

/* Have the stream say when all that was queued so far is done. */
void gpu_mover_count(struct gpu_mover *mover)
{
    const struct cuda_driver *cuda = mover->gpu->device.driver;

    if (!mover->uncounted)
        return;
    gpu_mover_flush(mover);
    mover->uncounted = false;
    mover->counted++;
    if (!mover->result)
        gpu_mover_fail(mover,
                       cuda_result(cuda->cuStreamWriteValue32(mover->stream, mover->device_reached,
                                                              mover->counted, 0),
                                   "cuStreamWriteValue32"));
}

bool gpu_mover_has_reached(const struct gpu_mover *mover, uint32_t after)
{
    /* Acquire: what the device wrote before it is seen. Counts wrap. */
    return (int32_t)(atomic_load_explicit(mover->reached, memory_order_acquire) - after) >= 0;
}

/* ---- Notices --------------------------------------------------------------------------------- */

static void tell(const struct gpu_notice *notice)
{
    struct connection *connection = notice->connection;

    switch (notice->kind) {
    case NOTICE_FLAG: /* Release, pairs with the acquire of step_wait_data(). */
        atomic_store_explicit((_Atomic uint64_t *)notice->where, notice->value,
                              memory_order_release);
        break;
    case NOTICE_COUNT: /* Release, pairs with the acquire of step_wait_credit(). */
        atomic_store_explicit((_Atomic uint32_t *)notice->where, (uint32_t)notice->value,
                              memory_order_release);
        break;
    case NOTICE_PUSH:
        connection_push(connection, notice->where, notice->payload, notice->bytes, notice->value);
        break;
    case NOTICE_PUSH_DEVICE:
        connection->ops->push_device(connection, notice->where, notice->payload, notice->bytes,
                                     notice->value);
        break;
    case NOTICE_RETURN:
        connection_give_back(connection, (uint32_t)notice->value);
        break;
    }
}

/* Tell what is due, in order; true if there was any. */
bool gpu_mover_tell(struct gpu_mover *mover)
{
    size_t before = mover->notice_first;

    while (mover->notice_first < mover->notice_end &&
           gpu_mover_has_reached(mover, mover->notices[mover->notice_first].after))
        tell(&mover->notices[mover->notice_first++]);
    if (mover->notice_first == before)
        return false;
    if (mover->notice_first == mover->notice_end)
        mover->notice_first = mover->notice_end = 0;
    return true;
}

static void make_room(struct gpu_mover *mover)
{
    size_t room = mover->notice_room ? 2 * mover->notice_room : 64;
    struct gpu_notice *notices;

    if (mover->notice_end < mover->notice_room)
        return;
    notices = realloc(mover->notices, room * sizeof(*notices));
    if (!notices) {
        gpu_mover_fail(mover,
                       rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for messages of a device."));
        return;
    }
    mover->notices = notices;
    mover->notice_room = room;
}

void gpu_mover_note(struct gpu_mover *mover, struct gpu_notice notice)
{
    notice.after = mover->counted + mover->uncounted;
    if (mover->notice_first == mover->notice_end && gpu_mover_has_reached(mover, notice.after)) {
        tell(&notice);
        return;
    }
    make_room(mover);
    if (!mover->result)
        mover->notices[mover->notice_end++] = notice;
}
