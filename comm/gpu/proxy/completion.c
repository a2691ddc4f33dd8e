/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completion.c - what a proxy's stream is given to do, and what is told when it has done it.
 *
 *     copy, kernel | note: publish slot 3 | copy | note: slot 5 is free | ... | count
 *     on the stream: copy, kernel, copy, "write 7"            7 is read: both completions are told
 *
 * A completion is told when the stream has written a count that comes behind all that was given to
 * it before. Copies are kept until there are many, or something has to come behind them.
 */
#include "comm/gpu/proxy/proxy.h"

#include "base/fail.h"
#include "cuda/reduce.h"
#include "transport/link/connection.h"

#include <stdlib.h>

void gpu_proxy_fail(struct gpu_proxy *proxy, rondo_result result)
{
    if (!proxy->result)
        proxy->result = result;
}

/* ---- The stream ------------------------------------------------------------------------------ */

void gpu_proxy_flush(struct gpu_proxy *proxy)
{
    const struct cuda_copies_call call = {.items = proxy->copies, .count = proxy->copy_count};

    if (call.count && !proxy->result)
        gpu_proxy_fail(proxy, cuda_copies(proxy->launcher, &call, proxy->stream));
    proxy->copy_count = 0;
}

static bool overlap(uint64_t a, uint64_t b, uint64_t a_bytes, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Copies of one launch are in no order. */
void gpu_proxy_copy(struct gpu_proxy *proxy, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    bool after = proxy->copy_count == CUDA_COPIES_MAX;

    for (unsigned i = 0; i < proxy->copy_count && !after; i++) {
        const struct cuda_copies_item *item = &proxy->copies[i];

        after = overlap(to, item->to.address, bytes, item->bytes) ||
                overlap(to, item->from.address, bytes, item->bytes) ||
                overlap(from, item->to.address, bytes, item->bytes);
    }
    if (after)
        gpu_proxy_flush(proxy);
    proxy->copies[proxy->copy_count++] = (struct cuda_copies_item){
        .from = cuda_operand_at(from), .to = cuda_operand_at(to), .bytes = bytes};
    proxy->uncounted = true;
}

/* Have the stream say when all that was queued so far is done. */
void gpu_proxy_count(struct gpu_proxy *proxy)
{
    const struct cuda_driver *cuda = proxy->gpu->device.driver;

    if (!proxy->uncounted)
        return;
    gpu_proxy_flush(proxy);
    proxy->uncounted = false;
    proxy->counted++;
    if (!proxy->result)
        gpu_proxy_fail(proxy,
                       cuda_result(cuda->cuStreamWriteValue32(proxy->stream, proxy->device_reached,
                                                              proxy->counted, 0),
                                   "cuStreamWriteValue32"));
}

bool gpu_proxy_has_reached(const struct gpu_proxy *proxy, uint32_t after)
{
    /* Acquire: what the device wrote before it is seen. Counts wrap. */
    return (int32_t)(atomic_load_explicit(proxy->reached, memory_order_acquire) - after) >= 0;
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void tell(const struct gpu_completion *completion)
{
    struct connection *connection = completion->connection;

    switch (completion->kind) {
    case COMPLETION_FLAG: /* Release, pairs with the acquire of step_wait_data(). */
        atomic_store_explicit((_Atomic uint64_t *)completion->where, completion->value,
                              memory_order_release);
        break;
    case COMPLETION_COUNT: /* Release, pairs with the acquire of step_wait_credit(). */
        atomic_store_explicit((_Atomic uint32_t *)completion->where, (uint32_t)completion->value,
                              memory_order_release);
        break;
    case COMPLETION_PUSH:
        connection_push(connection, completion->where, completion->payload, completion->bytes,
                        completion->value);
        break;
    case COMPLETION_PUSH_DEVICE:
        connection->ops->push_device(connection, completion->where, completion->payload,
                                     completion->bytes, completion->value);
        break;
    case COMPLETION_RETURN:
        connection_give_back(connection, (uint32_t)completion->value);
        break;
    }
}

/* Tell what is due, in order; true if there was any. */
bool gpu_proxy_tell(struct gpu_proxy *proxy)
{
    size_t before = proxy->completion_first;

    while (proxy->completion_first < proxy->completion_end &&
           gpu_proxy_has_reached(proxy, proxy->completions[proxy->completion_first].after))
        tell(&proxy->completions[proxy->completion_first++]);
    if (proxy->completion_first == before)
        return false;
    if (proxy->completion_first == proxy->completion_end)
        proxy->completion_first = proxy->completion_end = 0;
    return true;
}

static void make_room(struct gpu_proxy *proxy)
{
    size_t room = proxy->completion_room ? 2 * proxy->completion_room : 64;
    struct gpu_completion *completions;

    if (proxy->completion_end < proxy->completion_room)
        return;
    completions = realloc(proxy->completions, room * sizeof(*completions));
    if (!completions) {
        gpu_proxy_fail(proxy,
                       rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for messages of a device."));
        return;
    }
    proxy->completions = completions;
    proxy->completion_room = room;
}

void gpu_proxy_note(struct gpu_proxy *proxy, struct gpu_completion completion)
{
    completion.after = proxy->counted + proxy->uncounted;
    if (proxy->completion_first == proxy->completion_end &&
        gpu_proxy_has_reached(proxy, completion.after)) {
        tell(&completion);
        return;
    }
    make_room(proxy);
    if (!proxy->result)
        proxy->completions[proxy->completion_end++] = completion;
}
