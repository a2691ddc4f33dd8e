/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_tree.h - where ranks wait until all have come: a tree in the order of their coming.
 *
 * Whoever comes first waits at the meeting point; those after them wait with those who came
 * before, the relays, as many with each:
 *
 *     meeting point     1st .. 16th
 *     1st               17th .. 32nd
 *     2nd               33rd .. 48th ...
 *
 * So nobody waits for a particular rank to come, and nobody holds more than 16 of the others. A
 * rank that can't reach its relay keeps its first connection, so a tree is never needed.
 */
#ifndef RONDO_COMM_RENDEZVOUS_TREE_H
#define RONDO_COMM_RENDEZVOUS_TREE_H

#include "comm/rendezvous/wire.h"

enum { RELAY_WIDTH = 16 };

enum position {
    POSITION_HERE,
    POSITION_THERE, /* at a relay */
    POSITION_LATER, /* at a relay that is about to say where it listens */
};

struct relay {
    uint32_t rank, pid;
    char host[WIRE_HOST];
    char address[BOOTSTRAP_SHORT_ADDRESS_MAX];
    bool local; /* its address is good on the host of the meeting point only */
    int free;   /* positions */
};

struct relay_tree {
    int clients; /* that will come */
    int given;   /* positions, or none but relays to be */
    int here;
    int expected; /* relays that have not said yet where they listen */
    struct relay *relays;
    int count, room;
};

void relay_tree_init(struct relay_tree *tree, int clients);
void relay_tree_done(struct relay_tree *tree);
/*
 * A position for the next client; `local`: it is on the host of the meeting point. `patient`: it
 * may get none yet, then it asks again. Fills the frame that tells the client, except for the
 * proof.
 */
enum position relay_tree_give(struct relay_tree *tree, bool local, bool patient,
                              struct wire_position *ret_position);
/* A client has taken its position. `told` is what it had been told, `says` what it answered. */
void relay_tree_taken(struct relay_tree *tree, const struct wire_position *told,
                      const struct wire_position *says, const struct relay *who);

#endif
