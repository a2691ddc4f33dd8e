/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tracing.c - transfers in the trace of their communicator. They begin and end under the lock of
 * their rondo_p2p, so one thread at a time writes there, as base/trace/trace.h asks.
 */
#include "comm/p2p/p2p.h"

#include "base/trace/trace.h"

static void add(const rondo_transfer *transfer, enum trace_kind kind)
{
    if (trace_has_ring(transfer->p2p->trace))
        trace_add(transfer->p2p->trace, (struct trace_event){.when = clock_nanoseconds(),
                                                             .call = transfer->traced,
                                                             .kind = (uint8_t)kind,
                                                             .tag = transfer->envelope.tag,
                                                             .peer = transfer->envelope.source,
                                                             .of.bytes = transfer->envelope.bytes});
}

void p2p_trace_post(rondo_transfer *transfer)
{
    transfer->traced = transfer->p2p->trace->calls++;
    add(transfer, transfer->sends ? TRACE_SEND : TRACE_RECV);
}

void p2p_trace_end(const rondo_transfer *transfer, rondo_result result)
{
    bool given_up = !transfer->sends && transfer->state == TRANSFER_POSTED;

    add(transfer, result || given_up ? TRACE_FAILED : TRACE_COMPLETE);
}
