/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seats.h - where ranks wait until all have come: a tree in the order of their coming.
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
#ifndef RONDO_COMM_RENDEZVOUS_SEATS_H
#define RONDO_COMM_RENDEZVOUS_SEATS_H

#include "comm/rendezvous/wire.h"

enum { SEATS_EACH = 16 };

enum seat {
    SEAT_HERE,
    SEAT_THERE, /* at a relay */
    SEAT_LATER, /* at a relay that is about to say where it listens */
};

struct relay {
    uint32_t rank, pid;
    char host[WIRE_HOST];
    char address[BOOTSTRAP_ADDRESS_MAX];
    bool local; /* its address is good on the host of the meeting point only */
    int free;   /* seats */
};

struct seats {
    int guests; /* that will come */
    int given;  /* seats, or none but relays to be */
    int here;
    int expected; /* relays that have not said yet where they listen */
    struct relay *relays;
    int count, room;
};

void seats_init(struct seats *seats, int guests);
void seats_done(struct seats *seats);
/*
 * A seat for the next guest; `local`: it is on the host of the meeting point. `patient`: it may
 * get none yet, then it asks again. Fills the frame that tells the guest, except for the proof.
 */
enum seat seats_give(struct seats *seats, bool local, bool patient, struct wire_seat *ret_seat);
/* A guest has sat down. `told` is what it had been told, `says` what it answered. */
void seats_taken(struct seats *seats, const struct wire_seat *told, const struct wire_seat *says,
                 const struct relay *who);

#endif
