/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_nodes.h - some ranks in one thread, each with a verbs network over the fake adapter, and
 * notes that travel by hand. Messages have contents and lengths that both sides can work out.
 */
#ifndef RONDO_TESTS_VERBS_NODES_H
#define RONDO_TESTS_VERBS_NODES_H

#include "tests/transport/verbs/fake_device.h"
#include "transport/verbs/verbs.h"

enum { NODES = 3, NODE_LANES = 2, NODE_SLOTS = 4, NODE_SLOT_BYTES = 150000 };

struct node_note {
    int from;
    size_t count;
    char bytes[NETWORK_NOTE];
};

struct node {
    struct network control; /* first member: ours as the fake control network */
    int rank;
    struct network *network;
    struct network_owner owner;
    struct link_out out[NODE_LANES * NODES];
    struct link_in in[NODE_LANES * NODES];
    struct node_note notes[16];
    int note_count;
    rondo_result fate; /* what the control network says of any peer */
    int heard_from;    /* captions that came and were right */
    char caption[NETWORK_CAPTION];
    char *lent; /* of NODE_SLOT_BYTES, for messages on whatever link */
    int naps;   /* looks at the control network */
};

extern struct node nodes[NODES];
/* What those that are opened from now on have; NULL: no device. */
extern const struct device_source *nodes_device;

/* Networks and links of all; an error is returned as it came. */
rondo_result nodes_open(void);
void nodes_close(void);
/* Hand over the notes that are under way. */
rondo_result nodes_deliver(void);
/* progress() of all. */
rondo_result nodes_progress(void);

size_t node_length(int from, int to, int lane, uint32_t number);
/* From now on long messages leave from memory of the sender that is written again at once. */
extern bool nodes_lend;
/* Push the next message; false: there is no slot. */
bool node_send(int from, int to, int lane);
/* Take the next message; 1: it was right, 0: it is not there, -1: it was wrong. */
int node_receive(int to, int from, int lane);
/* The same from device to device, or where the rings are in its place; the first is false, too, if
 * that is not known yet. */
bool node_send_device(int from, int to, int lane);
int node_receive_device(int to, int from, int lane);
/* Are these rings of a device? */
bool node_has_device(int from, int to, int lane);

#endif
