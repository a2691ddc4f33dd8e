/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - links over RDMA: the network (connection.h) of one communicator.
 *
 * A message is written by the adapter straight into the reader's slot, then a cell that announces
 * it into a ring that the reader polls; slots are given back by a write into the writer's memory.
 * No peer's processor is asked for any of it. Peers are connected when there is something to say;
 * what they have to know of each other for that goes as notes over another network, which also
 * notices when processes end.
 *
 * Read verbs/inside.h next.
 */
#ifndef RONDO_TRANSPORT_VERBS_VERBS_H
#define RONDO_TRANSPORT_VERBS_VERBS_H

#include "transport/link/card.h"
#include "transport/link/connection.h"
#include "transport/link/device_memory.h"

#include <stdbool.h>

struct verbs_job {
    const struct network_owner *owner; /* copied */
    struct network *control;           /* carries our notes; outlives this network */
    int rank, size, lanes, slots;
    size_t slot_bytes;
    /* All ranks have found their adapters to be able to use their devices' memory, this one so: */
    enum device_way way;
    const struct device_source *device; /* NULL: they have not; outlives this network */
};

/*
 * Open the ports (RONDO_VERBS_DEVICES, RONDO_VERBS_ADDRESSES) and fill the card.
 * RONDO_ERROR_UNSUPPORTED with a sentence that says what is missing.
 */
rondo_result verbs_open(struct verbs_card *ret_card, struct network **ret_network);
/*
 * Are long messages worth more slots' memory, and may so many bytes be pinned? They are where the
 * kernel moves the bytes: each message costs two system calls' worth of packets that carry nothing.
 */
bool verbs_wants_long_slots(const struct network *network, size_t bytes);
/*
 * Which way do the rails use that device's memory, if all do so? Tried by a connection of each rail
 * with itself, unless `wanted` (RONDO_GPUDIRECT) says otherwise. The log says what was found.
 */
enum device_way verbs_try_device(struct network *network, const struct device_source *device,
                                 const char *wanted);
/* Before the first verbs_connect_links(). */
rondo_result verbs_start(struct network *network, const struct verbs_job *job);
/* Make the links to and from a peer: out[lane * size + peer], in[...]. Nothing is pinned yet. */
rondo_result verbs_connect_links(struct network *network, int peer, struct link_out *out,
                                 struct link_in *in);
/* Can two ranks reach each other? If not, `why` is a clause. */
bool verbs_reaches(const struct verbs_card *own, const struct verbs_card *peer, const char **why);
/* owner->note of the control network: a note of the peer's, which progress() will read. */
void verbs_note(struct network *network, int peer, const void *bytes, size_t count);

#endif
