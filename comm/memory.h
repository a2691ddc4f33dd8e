/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - how ranks reach each other's user buffers:
 * what is announced, and what is made of it. */
#ifndef RONDO_COMM_MEMORY_H
#define RONDO_COMM_MEMORY_H

#include "plan/exec.h"

enum address_kind {
    ADDRESS_NONE,   /* the buffer is not used */
    ADDRESS_HEAP,   /* an offset in the sender's shared heap */
    ADDRESS_PLAIN,  /* an address in the sender's process */
    ADDRESS_HIDDEN, /* peers can't reach it */
};

extern const struct exec_world_ops comm_world_ops;

/* Fill x->own; false if some peer could not reach the buffers, so that none of them tries. */
bool address_announce(rondo_comm *comm, const void *input, const void *output, struct execution *x);

/* Bytes of this rank's buffers in the call. */
struct address_lengths {
    size_t input, output;
};
struct address_lengths address_lengths(const struct execution *x);

/*
 * Did x->own say where a plain input is? Peers of other processes read it, and all of them notice
 * if it is hidden; nobody looks at an output in a call without a reduction, so hiding that alone
 * would be noticed by this rank only, which would then do something else than its peers.
 */
bool address_shows_plain_input(const struct execution *x);
/* Announce nothing instead. */
void address_hide(struct execution *x);

/* Memory in [begin, end) was taken back from peers: it is registered no more. From any thread. */
void memory_forget_registration(rondo_comm *comm, const char *begin, const char *end);
/* What is still registered when a communicator closes becomes private again, where that works. */
void memory_deregister_all(rondo_comm *comm);

#endif
