/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_nodes.h - some ranks in one thread, each with a verbs network over the fake adapter, and
 * notes that travel by hand. Messages have contents and lengths that both sides can work out.
 */
#ifndef RONDO_TESTS_VERBS_NODES_H
#define RONDO_TESTS_VERBS_NODES_H

#include "tests/transport/traffic.h"
#include "tests/transport/verbs/fake_device.h"
#include "transport/verbs/inside.h"

struct node_note {
    int from;
    size_t count;
    char bytes[NETWORK_NOTE];
};

struct node {
    struct network control; /* first member: ours as the fake control network */
    int rank;
    struct network *network;
    struct link_out out[NODE_CHANNELS * NODES];
    struct link_in in[NODE_CHANNELS * NODES];
    struct node_note notes[16];
    int note_count;
    rondo_result fate; /* what the control network says of any peer */
    char *zcopy;       /* of NODE_SLOT_BYTES, for messages on whatever link */
    int naps;          /* looks at the control network */
    double held; /* the adapter moves nothing before that time, if such looks are what lasts */
};

extern struct node nodes[NODES];
/* Nodes that are opened from now on have this device; NULL: none. */
extern const struct device_source *nodes_device;

/* Networks and links of all; an error is returned as it came. */
rondo_result nodes_open(void);
void nodes_close(void);
/* Hand over the notes that are under way. */
rondo_result nodes_deliver(void);
/* progress() of all. */
rondo_result nodes_progress(void);

/* From now on long messages leave from memory of the sender that is written again at once. */
extern bool nodes_zcopy;
/* Push the next message; false: there is no slot. */
bool node_send(int from, int to, int channel);
/* Take the next message; 1: it was right, 0: it is not there, -1: it was wrong. */
int node_receive(int to, int from, int channel);
/* Sends from device to device, or where the rings are in its place; the first is false, too, if
 * that is not known yet. */
bool node_send_device(int from, int to, int channel);
int node_receive_device(int to, int from, int channel);
/* True if these are rings of a device. */
bool node_has_device(int from, int to, int channel);

#endif
