/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.h - the networks of a communicator, as one: those of all transports that may be used
 * (link/ops.h), and which of the transports two ranks use.
 *
 * Only the table of transports says which there are. A network whose bytes are seen in memory is
 * looked at always; beside one, others less often, as each look at them is a system call, and
 * whenever a wait has been long enough to sleep.
 */
#ifndef RONDO_TRANSPORT_NETWORKS_H
#define RONDO_TRANSPORT_NETWORKS_H

#include "transport/link/ops.h"

#include <stdatomic.h>

enum { NETWORKS = 4 }; /* rows of the table that have one, at most */

struct networks {
    struct network *open[NETWORKS]; /* by row of the table; NULL: not used */
    bool polled;                    /* what comes over one of them is seen in memory */
    int culprit;                    /* of the last error */
    atomic_uint looks;              /* who dozes writes it beside who looks: any number is good */
};

/* ---- Transports ------------------------------------------------------------------------------ */

/* The transport of that name; NULL: there is none. */
const struct transport_ops *transport_find(const char *name);
/* The best transport for a pair, of all ("auto") or the one of that name, and what is its own in
 * `pair`; RONDO_ERROR_UNSUPPORTED with a sentence that says why none can. */
rondo_result transport_choose(const struct networks *networks, struct transport_pair *pair,
                              const char *wanted, const struct transport_ops **ret_transport);
/* Make the links of the pair, and those of the transport's control network. */
rondo_result transport_connect(const struct networks *networks,
                               const struct transport_ops *transport, struct transport_pair *pair,
                               struct link_out *out, struct link_in *in);

/* ---- Opening and closing --------------------------------------------------------------------- */

/* The networks that RONDO_TRANSPORT = `wanted` allows; each fills its part of the endpoint. */
rondo_result networks_open_all(struct networks *networks, const char *wanted,
                               const struct network_wish *wish, struct endpoint *endpoint);
/* `job` is that of all, but for the control network. */
rondo_result networks_start_all(struct networks *networks, const struct network_job *job);
void networks_close_all(struct networks *networks);

/* ---- In use: what struct network_ops says, of all that are open ------------------------------ */

bool networks_is_any(const struct networks *networks);
/* True if messages come over a network that takes system calls; otherwise such a network carries
 * only what is not urgent. */
bool networks_carry_by_calls(const struct networks *networks);
/* Those that are worth a look in this round: beside one that is seen in memory, others once in so
 * many looks (a power of 2). */
rondo_result networks_look(struct networks *networks, unsigned seldom, bool *ret_moved);
bool networks_are_flushed(const struct networks *networks, int *ret_peer);
bool networks_owe(const struct networks *networks, int rank);
/* The next look is one at all of them. */
void networks_doze(struct networks *networks, double seconds);
/* The culprit of an error is the peer, or this rank itself. */
rondo_result networks_watch_peer(const struct networks *networks, int peer, int *ret_culprit);
/* True if the peer is the culprit. */
bool networks_has_lost(const struct networks *networks, int peer);
void networks_tell_all(const struct networks *networks, const struct network_failure *failure);
void networks_end_zcopies(const struct networks *networks);
/* True if every peer that is reached over a network can be sent notes. */
bool networks_can_note(const struct networks *networks);
/* Over the first one that can; who can't be told is watched. */
void networks_note(const struct networks *networks, int peer, const void *bytes, size_t count);
/* A note has come that the owner does not know. */
void networks_hear(const struct networks *networks, int peer, const void *bytes, size_t count);
rondo_result networks_place(const struct networks *networks, char *ret_text, size_t room);
/* The network that adapters may use a device's memory for; NULL: none. */
struct network *networks_for_devices(const struct networks *networks);

#endif
