/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.h - what kind of call a collective is; plan_input_blocks() knows its buffers. */
#ifndef RONDO_BASE_COLLECTIVE_H
#define RONDO_BASE_COLLECTIVE_H

#include "rondo/rondo.h"

#include <stdbool.h>

/* True if the collective has an operation, which combines what ranks contribute. */
static inline bool collective_reduces(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
           collective == RONDO_REDUCE_SCATTER;
}

/* One rank's buffers differ from all others'. */
static inline bool collective_has_root(rondo_collective collective)
{
    return collective == RONDO_REDUCE || collective == RONDO_BROADCAST ||
           collective == RONDO_GATHER || collective == RONDO_SCATTER;
}

/* One end of a message between two ranks; "root" is the peer then. */
static inline bool collective_is_pair(rondo_collective collective)
{
    return collective == RONDO_SEND || collective == RONDO_RECV;
}

#endif
