/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.h - messages between the nodes of a transport's tests, whose lengths and bytes both sides
 * can work out. Slots are used as plan/step_slots.h does it.
 */
#ifndef RONDO_TESTS_TRAFFIC_H
#define RONDO_TESTS_TRAFFIC_H

#include "transport/link/call_header.h"
#include "transport/link/link.h"

enum { NODES = 3, NODE_CHANNELS = 2, NODE_SLOTS = 4, NODE_SLOT_BYTES = 150000 };

struct traffic {
    int from, to, channel;
};

uint64_t traffic_flag(uint32_t number);
size_t traffic_length(struct traffic traffic, uint32_t number);
void traffic_fill(struct traffic traffic, uint32_t number, char *payload, size_t bytes);
/* True if a message that came in the slot has the right flag and these bytes. */
bool traffic_is_right(struct traffic traffic, uint32_t number, const struct link_slot *slot,
                      const char *payload);

/* Opens the slot of the next message, out->sent from now on; NULL: none is free. */
struct link_slot *traffic_open(struct link_out *out);
/* Returns where a message in a slot has its payload. */
char *traffic_payload(struct link_slot *slot, size_t bytes);
/* Fills and pushes the message of the slot that was opened. */
void traffic_push(struct traffic traffic, struct link_out *out, struct link_slot *slot,
                  char *payload);
/* Counts the next message if it has come, as in->received; NULL: it has not. */
struct link_slot *traffic_take(struct link_in *in);
/* Takes the next message and gives it back. 1: it was right, 0: it is not there, -1: wrong. */
int traffic_receive(struct traffic traffic, struct link_in *in);

/* Each node has a page with its call, which is said in `header`, and what it heard of others. */
struct traffic_calls {
    struct call_header_page page, pages[NODES];
    char header[sizeof(struct call_header)];
};
extern struct traffic_calls traffic_calls[NODES];

/* Begins the call of a node, which is another one than those of its peers. */
void traffic_begin_call(int rank);
/* True if the node has heard of the calls of all others. */
bool traffic_heard(int rank);

#endif
