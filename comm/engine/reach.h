/* SPDX-License-Identifier: BSD-3-Clause */
/* reach.h - how ranks reach each other's user buffers:
 * what is announced, and what is made of it. */
#ifndef RONDO_COMM_ENGINE_REACH_H
#define RONDO_COMM_ENGINE_REACH_H

#include "comm/state/address.h"

extern const struct exec_world_ops comm_world_ops;

/* Fill x->own, and say where the execution finds the buffers: x->input and x->output. False if some
 * peer could not reach them, so that none of them tries. */
bool address_announce(rondo_comm *comm, const void *input, void *output, struct execution *x);
/* Gives the caller what the execution has of the output, if x->output is elsewhere, once all is
 * done. Comes before leave_well(), which lets the memory be taken back. */
void address_return(const struct execution *x, void *output);

/* True if x->own said where a plain input is. Peers of other processes read it, and all of them
 * notice if it is hidden; nobody looks at an output in a call without a reduction, so hiding that
 * alone would be noticed by this rank only, which would then do something else than its peers. */
bool address_shows_plain_input(const struct execution *x);
/* Announce nothing instead. */
void address_hide(struct execution *x);

#endif
