/* SPDX-License-Identifier: BSD-3-Clause */
/* registration.h - memory of the user's that peers map, as a communicator lists it. */
#ifndef RONDO_COMM_STATE_REGISTRATION_H
#define RONDO_COMM_STATE_REGISTRATION_H

struct rondo_registration {
    struct rondo_registration *next;
    void *memory; /* NULL: it was taken back from peers */
};

#endif
