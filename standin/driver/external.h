/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * external.h - events of graphs that mean the same outside of them: nodes that record an event, or
 * wait for it, as if each launch did so in its stream.
 */
#pragma once

#include "standin/driver/event.h"
#include "standin/driver/op.h"

/* Under the lock; NULL when memory is out. */
struct op *external_record(CUevent event);
struct op *external_wait(CUevent event);

/* True if the operation is one of these. */
bool external_is(const struct op *op);

/* A launch of its graph begins: what the node completes or waits for in this launch, with a
 * reference; NULL: nothing. Under the lock, for the nodes in their order. */
struct record *external_begin(const struct op *op);

/* The node's turn in that launch. Takes over the reference. Without the lock. */
void external_run(const struct op *op, struct record *record);
