/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.h - messages between two ranks with tags, from any source, beside collectives.
 *
 * rondo_send() and rondo_recv() are calls of a communicator: they have a place in its order, and
 * the two of a pair must agree on it. A rondo_p2p is for everything else: what is sent there waits
 * for nobody's turn, is found by source and tag, and a thread moves it while the ranks compute or
 * are in collectives. So no order of sends and receives deadlocks that would not with unlimited
 * memory for what nobody has asked for yet.
 *
 * Matching   as in MPI: messages of one sender that a receive fits to are taken in the order in
 *            which they were sent, receives in the order in which they were posted.
 * Memory     of the host, any. A message of up to 64 KiB that nobody waits for is kept in memory of
 *            the receiver; a longer one stays with the sender until it is asked for.
 * Failures   a rank that is dead while somebody waits for it, or silent for the timeout of the
 *            communicator, breaks the rondo_p2p on every rank: all transfers that are not over end
 *            with that error. A receive from any source waits for every rank of this host, and for
 *            those of other hosts with which there have been messages; others it gives up after
 *            the timeout. It ends alone then, and with RONDO_ERROR_PEER when all others have closed
 *            their ends. A rank of another host that ends before there was any message counts as
 *            one that has closed its end. A probe ends as such a receive would, but one that does
 *            not wait has no timeout. Collectives of the communicator go on.
 * Threads    all functions may be called from any thread, but for closing what others use.
 */
#ifndef RONDO_P2P_H
#define RONDO_P2P_H

#include "rondo/rondo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_p2p rondo_p2p;
typedef struct rondo_transfer rondo_transfer; /* a send or a receive that was begun */

enum { RONDO_ANY_SOURCE = -1, RONDO_ANY_TAG = -1 };

/* An envelope tells what a receive or a probe has found. */
typedef struct rondo_envelope {
    int source;
    int tag;
    size_t bytes;
} rondo_envelope;

/* ---- Messages with tags ---------------------------------------------------------------------- */

/* Collective over `comm`, not in a group: the ranks are those of `comm`, which may be closed before
 * it. The caller owns *ret_p2p and closes it. */
RONDO_API rondo_result rondo_p2p_open(rondo_comm *comm, rondo_p2p **ret_p2p);
/*
 * Local; accepts NULL. Waits until what this rank has sent is on its way and receives that have
 * begun are over; receives that no message has come for end with RONDO_ERROR_ABORTED. Transfers
 * stay valid until they are closed themselves. Transfers of peers that wait for this rank, begun
 * before or after, then end with RONDO_ERROR_PEER, each alone: the rondo_p2p of the peer goes on.
 */
RONDO_API void rondo_p2p_close(rondo_p2p *p2p);

/* Break it, from any thread: transfers that are not over end with RONDO_ERROR_ABORTED here, and on
 * every peer that waits for something. Close it after. */
RONDO_API rondo_result rondo_p2p_abort(rondo_p2p *p2p);

/* Set how long this rank waits for a silent peer, counted from now: seconds, 0: for ever. At first
 * it is the communicator's `timeout` setting. Local, from any thread. */
RONDO_API rondo_result rondo_p2p_set_timeout(rondo_p2p *p2p, double seconds);

/* Begin to send. `peer` may be this rank; tags are 0 .. INT_MAX. The input belongs to the transfer
 * until that is over. */
RONDO_API rondo_result rondo_p2p_send(rondo_p2p *p2p, const void *input, size_t bytes, int peer,
                                      int tag, rondo_transfer **ret_transfer);
/*
 * Begin to receive a message from `source` or RONDO_ANY_SOURCE, with `tag` or RONDO_ANY_TAG. It may
 * be shorter than `bytes`; a longer one is lost, and the transfer ends with RONDO_ERROR_MISMATCH.
 */
RONDO_API rondo_result rondo_p2p_recv(rondo_p2p *p2p, void *output, size_t bytes, int source,
                                      int tag, rondo_transfer **ret_transfer);
/*
 * Look for a message that such a receive would take. It stays where it is. Waits for one up to
 * `seconds` (0: not at all, negative: for ever); RONDO_IN_PROGRESS if there is none by then.
 */
RONDO_API rondo_result rondo_p2p_probe(rondo_p2p *p2p, int source, int tag, double seconds,
                                       rondo_envelope *ret_envelope);

/* Wait for the end of a transfer as a probe does; RONDO_IN_PROGRESS if it is not over, else its
 * result, whose sentence rondo_last_error(NULL) has. ret_envelope may be NULL. */
RONDO_API rondo_result rondo_transfer_wait(rondo_transfer *transfer, double seconds,
                                           rondo_envelope *ret_envelope);
/* Free it; accepts NULL. A receive that no message has come for is given up, every other transfer
 * is waited for. */
RONDO_API void rondo_transfer_close(rondo_transfer *transfer);

#ifdef __cplusplus
}
#endif
#endif
