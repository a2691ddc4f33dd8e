/* SPDX-License-Identifier: BSD-3-Clause */
/* reach.h - how ranks reach each other's user buffers:
 * what is announced, and what is made of it. */
#ifndef RONDO_COMM_ENGINE_REACH_H
#define RONDO_COMM_ENGINE_REACH_H

#include "comm/state/address.h"

extern const struct exec_world_ops comm_world_ops;

/* Fill x->own; false if some peer could not reach the buffers, so that none of them tries. */
bool address_announce(rondo_comm *comm, const void *input, const void *output, struct execution *x);

/* True if x->own said where a plain input is. Peers of other processes read it, and all of them
 * notice if it is hidden; nobody looks at an output in a call without a reduction, so hiding that
 * alone would be noticed by this rank only, which would then do something else than its peers. */
bool address_shows_plain_input(const struct execution *x);
/* Announce nothing instead. */
void address_hide(struct execution *x);

#endif
